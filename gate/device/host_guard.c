/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/device/device.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGIONS_MAX 32
#define FENCE ((size_t)1 << 20) /* of address space on either side */

static struct region {
    char *begin, *end;
    char name[32];
} regions[REGIONS_MAX];

static struct sigaction before;
static bool watching;

/* ---- the fault ---- */

/* So short a text takes no memory of the heap, whose lock the kernel may hold. */
static void report_overrun(const struct region *r, size_t distance, const char *where)
{
    dprintf(STDERR_FILENO, "the kernel touched memory that is not its own: %zu bytes %s '%s'\n",
            distance, where, r->name);
}

/* Returns to the instruction that failed, which then ends the process. */
static void on_fault(int signal_number, siginfo_t *info, void *)
{
    char *at = info->si_addr;
    for (const struct region *r = regions; r < regions + REGIONS_MAX; r++) {
        if (r->begin && at >= r->end && at < r->end + FENCE)
            report_overrun(r, (size_t)(at - r->end) + 1, "past the end of");
        else if (r->begin && at < r->begin && at >= r->begin - FENCE)
            report_overrun(r, (size_t)(r->begin - at), "before the begin of");
    }
    signal(signal_number, SIG_DFL);
}

void host_guard_watch(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    bool any = false;
    for (int i = 0; i < REGIONS_MAX; i++)
        any |= regions[i].begin != NULL;
    watching = any && !sigaction(SIGSEGV, &action, &before);
}

void host_guard_rest(void)
{
    if (watching)
        sigaction(SIGSEGV, &before, NULL);
    watching = false;
}

/* ---- the memory ---- */

static struct region *find(const void *begin)
{
    for (struct region *r = regions; r < regions + REGIONS_MAX; r++)
        if (r->begin == begin)
            return r;
    return NULL;
}

enum gate_status host_alloc_apart(struct device *, const struct device_pieces *pieces,
                                  const char *name, struct device_memory *out,
                                  struct gate_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t span = (pieces->n - 1) * pieces->stride + pieces->bytes;
    size_t size = (span + page - 1) / page * page;
    struct region *r = find(NULL);
    if (!r)
        return gate_fail(err, GATE_INTERNAL, "no more than %d pieces of memory can be guarded",
                         REGIONS_MAX);
    char *all =
        mmap(NULL, size + 2 * FENCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return gate_fail(err, GATE_ENVIRONMENT, "the host has no %zu GiB of addresses in one piece",
                         size >> 30);
    bool open = true;
    for (size_t i = 0; i < pieces->n && open; i++) {
        size_t begin = i * pieces->stride / page * page;
        size_t end = (i * pieces->stride + pieces->bytes + page - 1) / page * page;
        open = !mprotect(all + FENCE + begin, end - begin, PROT_READ | PROT_WRITE);
    }
    if (!open) {
        munmap(all, size + 2 * FENCE);
        return gate_fail(err, GATE_ENVIRONMENT, "the host has no %zu bytes of memory left",
                         pieces->n * pieces->bytes);
    }
    r->begin = all + FENCE;
    r->end = r->begin + size;
    snprintf(r->name, sizeof r->name, "%s", name);
    *out = (struct device_memory){r->begin, size, *pieces};
    return GATE_OK;
}

void host_free_apart(struct device *, const struct device_memory *m)
{
    munmap((char *)m->data - FENCE, m->bytes + 2 * FENCE);
    *find(m->data) = (struct region){0};
}
