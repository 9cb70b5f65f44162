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
#define GATHERED 3 /* threads, files or children in half of an endurance, at least */

static unsigned float_control(void)
{
    unsigned control = (unsigned)fegetround();
#if defined(__SSE__)
    control |= (_mm_getcsr() & ~(unsigned)_MM_EXCEPT_MASK) << 8; /* without its sticky flags */
#endif
    return control;
}

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

static uint64_t hash_environment(void)
{
    uint64_t hash = SEED_HASH;
    for (char **variable = environ; variable && *variable; variable++)
        hash = seed_hash(hash, *variable, strlen(*variable) + 1);
    return hash;
}

static unsigned count_children(void)
{
    char text[2048];
    unsigned n = 0;
    read_lines("/proc/thread-self/children", "", text, sizeof text);
    for (const char *c = text; *c; c++)
        n += *c == ' ';
    return n;
}

struct state_counts state_count(void)
{
    return (struct state_counts){count_entries("/proc/self/task"), count_entries("/proc/self/fd"),
                                 count_children()};
}

void state_read(struct state *out)
{
    *out = (struct state){.float_control = float_control()};
    if (!getcwd(out->folder, sizeof out->folder))
        out->folder[0] = '\0';
    out->signals_ignored = read_signals("SigIgn");
    out->signals_caught = read_signals("SigCgt");
    out->signals_blocked = read_signals("SigBlk");
    out->environment = hash_environment();
    read_lines("/proc/self/limits", "Max", out->limits, sizeof out->limits);
    read_lines("/proc/thread-self/status", "Cpus_allowed_list", out->affinity,
               sizeof out->affinity);
    out->umask = umask(0);
    umask(out->umask);
    out->scheduler = sched_getscheduler(0);
    out->niceness = getpriority(PRIO_PROCESS, 0);
    out->counts = state_count();
}

static void describe_change(struct verification *v, const char *whose, const char *what)
{
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message, "the kernel changed the state of the %s: %s", whose,
                 what);
}

static void describe_process(struct verification *v, const char *what)
{
    describe_change(v, "process", what);
}

static bool has_more(unsigned before, unsigned now, unsigned more)
{
    return now > before && now - before > more;
}

void state_compare(const struct state *before, const struct state *now, unsigned more,
                   struct verification *v)
{
    if (before->float_control != now->float_control)
        describe_process(v, "the floating-point mode");
    if (strcmp(before->folder, now->folder) != 0)
        describe_process(v, "the current folder");
    if (before->signals_ignored != now->signals_ignored ||
        before->signals_caught != now->signals_caught)
        describe_process(v, "the handling of signals");
    if (before->signals_blocked != now->signals_blocked)
        describe_process(v, "the mask of signals");
    if (before->environment != now->environment)
        describe_process(v, "the environment");
    if (strcmp(before->limits, now->limits) != 0)
        describe_process(v, "a resource limit");
    if (strcmp(before->affinity, now->affinity) != 0)
        describe_process(v, "the set of CPUs");
    if (before->umask != now->umask)
        describe_process(v, "the file mode mask (umask)");
    if (before->scheduler != now->scheduler || before->niceness != now->niceness)
        describe_process(v, STATE_SCHEDULING);
    if (has_more(before->counts.threads, now->counts.threads, more))
        describe_process(v, "the number of threads");
    if (has_more(before->counts.files, now->counts.files, more))
        describe_process(v, "the number of open files");
    if (has_more(before->counts.children, now->counts.children, more))
        describe_process(v, "the number of child processes");
}

/* A sanitizer keeps what was freed, so that nothing can be said. Private writable pages are counted
 * of the address space: what the C library only reserves for threads is none. */
struct state_memory state_memory(void)
{
    struct state_memory m = {0};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return m;
#endif
    struct mallinfo2 heap = mallinfo2();
    m.heap_bytes = heap.uordblks + heap.hblkhd;
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (f && fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages) == 1)
        m.address_bytes = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    if (f)
        fclose(f);
    return m;
}

static size_t growth(size_t before, size_t now)
{
    return now > before ? now - before : 0;
}

static bool is_lost(const size_t at[3], size_t least)
{
    return growth(at[0], at[1]) >= least && growth(at[1], at[2]) >= least;
}

void state_find_leak(const struct state_memory at[3], unsigned launches, struct verification *v)
{
    const size_t heap[3] = {at[0].heap_bytes, at[1].heap_bytes, at[2].heap_bytes};
    const size_t address[3] = {at[0].address_bytes, at[1].address_bytes, at[2].address_bytes};
    const size_t half = launches / 2;
    if (!half ||
        (!is_lost(heap, half * LEAK_BYTES) && !is_lost(address, half * LEAK_ADDRESS_BYTES)))
        return;
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message,
                 "the kernel leaks memory: %zu bytes of the heap and %zu of the address space in "
                 "%u launches",
                 growth(heap[0], heap[2]), growth(address[0], address[2]), launches);
}

static void find_gathering(const unsigned at[3], unsigned launches, const char *what,
                           struct verification *v)
{
    const size_t counts[3] = {at[0], at[1], at[2]}, half = launches / 2;
    const size_t least = half / 2 > GATHERED ? half / 2 : GATHERED;
    if (!is_lost(counts, least))
        return;
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message,
                 "the kernel leaks %s: their number grew by %zu in %u launches", what,
                 counts[2] - counts[0], launches);
}

void state_find_gathering(const struct state_counts at[3], unsigned launches,
                          struct verification *v)
{
    const unsigned threads[3] = {at[0].threads, at[1].threads, at[2].threads};
    const unsigned files[3] = {at[0].files, at[1].files, at[2].files};
    const unsigned children[3] = {at[0].children, at[1].children, at[2].children};
    find_gathering(threads, launches, "threads", v);
    find_gathering(files, launches, "open files", v);
    find_gathering(children, launches, "child processes", v);
}

/* What this process took if the driver tells, else what anybody did. */
static size_t lost_bytes(const struct device_state *before, const struct device_state *now)
{
    if (before->memory_own_bytes && now->memory_own_bytes)
        return now->memory_own_bytes > before->memory_own_bytes
                   ? now->memory_own_bytes - before->memory_own_bytes
                   : 0;
    return before->memory_free_bytes > now->memory_free_bytes
               ? before->memory_free_bytes - now->memory_free_bytes
               : 0;
}

/* Most of the memory went: to whom? */
static enum gate_status judge_taking(const struct device_state *before,
                                     const struct device_state *now, struct verification *v,
                                     struct gate_error *err)
{
    size_t gone = before->memory_free_bytes - now->memory_free_bytes;
    bool told = before->memory_own_bytes && now->memory_own_bytes;
    if (!told || lost_bytes(before, now) <= before->memory_free_bytes / 2)
        return gate_fail(
            err, GATE_ENVIRONMENT,
            "during the check %s took %zu of the %zu free bytes of device memory; run it again "
            "while nothing else uses the device",
            told ? "another process" : "a process that the driver does not name", gone,
            before->memory_free_bytes);
    v->ok = false;
    snprintf(v->message, sizeof v->message,
             "the kernel took %zu of the %zu free bytes of device memory", lost_bytes(before, now),
             before->memory_free_bytes);
    return GATE_OK;
}

enum gate_status state_compare_device(const struct device_state *before,
                                      const struct device_state *now, struct verification *v,
                                      struct gate_error *err)
{
    if (before->current != now->current)
        describe_change(v, "device", "the current device");
    if (before->malloc_heap_bytes != now->malloc_heap_bytes)
        describe_change(v, "device", "the limit of its malloc() heap");
    if (before->printf_bytes != now->printf_bytes)
        describe_change(v, "device", "the limit of its printf() buffer");
    if (before->persisting_l2_bytes != now->persisting_l2_bytes)
        describe_change(v, "device", "the part of the L2 reserved for persisting accesses");
    if (before->l2_fetch_bytes != now->l2_fetch_bytes)
        describe_change(v, "device", "the fetch granularity of the L2");
    if (before->wait_flags != now->wait_flags)
        describe_change(v, "device", "the way in which calls wait (cudaSetDeviceFlags)");
    if (before->cache_preference != now->cache_preference)
        describe_change(v, "device", "the preference for L1 or shared memory");
    if (before->pool_keeps != now->pool_keeps)
        describe_change(v, "device", "the release threshold of its memory pool");
    if (!v->ok || now->memory_free_bytes >= before->memory_free_bytes / 2)
        return GATE_OK;
    return judge_taking(before, now, v, err);
}

void state_find_device_leak(const struct device_state at[3], unsigned launches,
                            struct verification *v)
{
    size_t first = lost_bytes(&at[0], &at[1]), then = lost_bytes(&at[1], &at[2]);
    size_t least = launches / 2 * LEAK_DEVICE_BYTES;
    if (first < least || then < least)
        return;
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message,
                 "the kernel leaks device memory: %zu bytes in %u launches", first + then,
                 launches);
}
