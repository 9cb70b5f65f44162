/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_state.h"

#include <dirent.h>
#include <fenv.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/seed.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#define LEAK_BYTES 64           /* of the heap, a launch */
#define LEAK_ADDRESS_BYTES 4096 /* of the address space */
#define LEAK_DEVICE_BYTES ((size_t)128 << 10)
#define GATHERED 3 /* threads, files or children in half of the launches, at least */
#define MANY 500

/* Entries of a folder of /proc. */
static unsigned count_entries(const char *path)
{
    unsigned n = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* The lines of a file of /proc that start with one of the letters, as one text. */
static void read_lines(const char *path, const char *prefix, char *out, size_t size)
{
    char line[512];
    size_t used = 0;
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, prefix, strlen(prefix)) && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s", line);
    if (f)
        fclose(f);
}

/* Signals 32 and 33 are the C library's own: it handles them from a process's first thread on. */
#define OWN_SIGNALS (3ull << 31)

/* A set of signals of /proc; which are blocked is this thread's. */
static unsigned long long read_signals(const char *name)
{
    char line[40];
    read_lines("/proc/thread-self/status", name, line, sizeof line);
    return line[0] ? strtoull(line + strlen(name) + 1, NULL, 16) & ~OWN_SIGNALS : 0;
}

static struct state_counts state_count(void)
{
    struct state_counts counts = {count_entries("/proc/self/task"), count_entries("/proc/self/fd"),
                                  0};
    char children[2048];
    read_lines("/proc/thread-self/children", "", children, sizeof children);
    for (const char *c = children; *c; c++)
        counts.children += *c == ' ';
    return counts;
}

enum gate_status surroundings_read(struct device *d, struct surroundings *out,
                                   struct gate_error *err)
{
    *out = (struct surroundings){.float_control = (unsigned)fegetround()};
#if defined(__SSE__)
    out->float_control |= (_mm_getcsr() & ~(unsigned)_MM_EXCEPT_MASK) << 8; /* no sticky flags */
#endif
    if (!getcwd(out->folder, sizeof out->folder))
        out->folder[0] = '\0';
    out->signals_ignored = read_signals("SigIgn");
    out->signals_caught = read_signals("SigCgt");
    out->signals_blocked = read_signals("SigBlk");
    out->environment = SEED_HASH;
    for (char **variable = environ; variable && *variable; variable++)
        out->environment = seed_hash(out->environment, *variable, strlen(*variable) + 1);
    read_lines("/proc/self/limits", "Max", out->limits, sizeof out->limits);
    read_lines("/proc/thread-self/status", "Cpus_allowed_list", out->affinity,
               sizeof out->affinity);
    out->umask = umask(0);
    umask(out->umask);
    out->scheduler = sched_getscheduler(0);
    out->niceness = getpriority(PRIO_PROCESS, 0);
    out->counts = state_count();
    return device_state_read(d, &out->device, err);
}

static bool has_more(unsigned before, unsigned now, unsigned more)
{
    return now > before && now - before > more;
}

static size_t growth(size_t before, size_t now)
{
    return now > before ? now - before : 0;
}

/* What this process took if the driver tells, else what anybody did. */
static size_t lost_bytes(const struct device_state *before, const struct device_state *now)
{
    return before->memory_own_bytes && now->memory_own_bytes
               ? growth(before->memory_own_bytes, now->memory_own_bytes)
               : growth(now->memory_free_bytes, before->memory_free_bytes);
}

static enum gate_status compare_memory(const struct device_state *before,
                                       const struct device_state *now, struct verification *v,
                                       struct gate_error *err)
{
    const size_t had = before->memory_free_bytes, lost = lost_bytes(before, now);
    const bool told = before->memory_own_bytes && now->memory_own_bytes;
    if (now->memory_free_bytes >= had / 2)
        return GATE_OK;
    if (!told || lost <= had / 2)
        return gate_fail(
            err, GATE_ENVIRONMENT,
            "during the check %s took %zu of the %zu free bytes of device memory; run it again "
            "while nothing else uses the device",
            told ? "another process" : "a process that the driver does not name",
            had - now->memory_free_bytes, had);
    verification_fault(v, "the kernel took %zu of the %zu free bytes of device memory", lost, had);
    return GATE_OK;
}

enum gate_status surroundings_compare(struct device *d, const struct surroundings *before,
                                      unsigned more, struct verification *v, struct gate_error *err)
{
    struct surroundings now;
    TRY(surroundings_read(d, &now, err));
    const struct state_counts *had = &before->counts, *has = &now.counts;
    const struct device_state *was = &before->device, *is = &now.device;
    const struct {
        bool is_one;
        const char *of, *what;
    } changes[] = {
        {before->float_control != now.float_control, "process", "the floating-point mode"},
        {strcmp(before->folder, now.folder) != 0, "process", "the current folder"},
        {before->signals_ignored != now.signals_ignored ||
             before->signals_caught != now.signals_caught,
         "process", "the handling of signals"},
        {before->signals_blocked != now.signals_blocked, "process", "the mask of signals"},
        {before->environment != now.environment, "process", "the environment"},
        {strcmp(before->limits, now.limits) != 0, "process", "a resource limit"},
        {strcmp(before->affinity, now.affinity) != 0, "process", "the set of CPUs"},
        {before->umask != now.umask, "process", "the file mode mask (umask)"},
        {before->scheduler != now.scheduler || before->niceness != now.niceness, "process",
         STATE_SCHEDULING},
        {has_more(had->threads, has->threads, more), "process", "the number of threads"},
        {has_more(had->files, has->files, more), "process", "the number of open files"},
        {has_more(had->children, has->children, more), "process", "the number of child processes"},
        {was->current != is->current, "device", "the current device"},
        {was->malloc_heap_bytes != is->malloc_heap_bytes, "device",
         "the limit of its malloc() heap"},
        {was->printf_bytes != is->printf_bytes, "device", "the limit of its printf() buffer"},
        {was->persisting_l2_bytes != is->persisting_l2_bytes, "device",
         "the part of the L2 reserved for persisting accesses"},
        {was->l2_fetch_bytes != is->l2_fetch_bytes, "device", "the fetch granularity of the L2"},
        {was->wait_flags != is->wait_flags, "device",
         "the way in which calls wait (cudaSetDeviceFlags)"},
        {was->cache_preference != is->cache_preference, "device",
         "the preference for L1 or shared memory"},
        {was->pool_keeps != is->pool_keeps, "device", "the release threshold of its memory pool"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        if (changes[i].is_one)
            verification_fault(v, "the kernel changed the state of the %s: %s", changes[i].of,
                               changes[i].what);
    return v->ok ? compare_memory(was, is, v, err) : GATE_OK;
}

enum gate_status surroundings_check(struct device *d, const struct surroundings *before,
                                    const char *what, struct gate_error *err)
{
    struct verification v = {.ok = true};
    const enum gate_status status = surroundings_compare(d, before, STATE_MORE_ANY, &v, err);
    return v.ok ? status : gate_fail(err, GATE_WRONG, "%s: %s", what, v.message);
}

/* ---- what launches lose ---- */

/* A sanitizer keeps what was freed, so that nothing can be said of memory. Private writable pages
 * are counted of the address space: what the C library only reserves for threads is none. */
enum gate_status holdings_read(struct device *d, struct holdings *out, struct gate_error *err)
{
    *out = (struct holdings){.counts = state_count()};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct mallinfo2 heap = mallinfo2();
    out->heap_bytes = heap.uordblks + heap.hblkhd;
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (f && fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages) == 1)
        out->address_bytes = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    if (f)
        fclose(f);
#endif
    return device_state_read(d, &out->device, err);
}

static bool is_lost(const size_t at[3], size_t least)
{
    return growth(at[0], at[1]) >= least && growth(at[1], at[2]) >= least;
}

void holdings_compare(const struct holdings at[3], unsigned launches, bool host,
                      struct verification *v)
{
    static const char *const names[] = {"threads", "open files", "child processes"};
    const size_t counts[3][3] = {
        {at[0].counts.threads, at[1].counts.threads, at[2].counts.threads},
        {at[0].counts.files, at[1].counts.files, at[2].counts.files},
        {at[0].counts.children, at[1].counts.children, at[2].counts.children}};
    const size_t half = launches / 2, quarter = launches / 4;
    for (unsigned i = 0; i < 3; i++)
        if (is_lost(counts[i], quarter > GATHERED ? quarter : GATHERED))
            verification_fault(v, "the kernel leaks %s: their number grew by %zu in %u launches",
                               names[i], counts[i][2] - counts[i][0], launches);
    const size_t losses[2] = {lost_bytes(&at[0].device, &at[1].device),
                              lost_bytes(&at[1].device, &at[2].device)};
    if (losses[0] >= half * LEAK_DEVICE_BYTES && losses[1] >= half * LEAK_DEVICE_BYTES)
        verification_fault(v, "the kernel leaks device memory: %zu bytes in %u launches",
                           losses[0] + losses[1], launches); /* the driver's heap grows with it */
    /* A CUDA driver takes memory of the process when it pleases: little of the heap in many. */
    const size_t heap[3] = {at[0].heap_bytes, at[1].heap_bytes, at[2].heap_bytes};
    const size_t address[3] = {at[0].address_bytes, at[1].address_bytes, at[2].address_bytes};
    const bool of_heap = (host || launches >= MANY) && is_lost(heap, half * LEAK_BYTES);
    if (half && (of_heap || (host && is_lost(address, half * LEAK_ADDRESS_BYTES))))
        verification_fault(v,
                           "the kernel leaks memory: %zu bytes of the heap and %zu of the address "
                           "space in %u launches",
                           growth(heap[0], heap[2]), host ? growth(address[0], address[2]) : 0,
                           launches);
}
