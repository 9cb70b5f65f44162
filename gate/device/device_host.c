/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_host.c: the CPU as a device.
 *
 * Launches run in the calling thread, so a replay is a loop and its time is wall clock. Memory is
 * plain memory, or lies between unmapped pages; a kernel that writes out of bounds takes the worker
 * process with it, not the gate.
 */
#include <gnu/libc-version.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernels/ops/storage.h"
#include "kernels/ops/rows.h"
#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/seed.h"
#include "gate/device/device.h"
#include "gate/library/library.h"
#include "gate/cases/problem.h"

#define ALIGNMENT 256
#define MUCH_BYTES ((size_t)1 << 20)
#define REGIONS_MAX 32
#define FENCE ((size_t)1 << 20) /* of address space on either side of memory apart */

/* A delay is a share of a replay of milliseconds; what is longer is a mistake of the caller. */
#define DELAY_MAX_NS 1e9

/* The work of the control, never to be changed: see host_control_run(). */
#define CONTROL_STEPS (2 << 20)
#define CONTROL_COPY_BYTES ((size_t)64 << 20) /* read, and as much written */

struct host_device {
    struct device base;
    unsigned char *sweep; /* memory that is swept to empty the caches; allocated on first use */
    size_t sweep_bytes;
    unsigned char sweep_value;
    unsigned char *control; /* two halves of CONTROL_COPY_BYTES; allocated on first use */
    double control_value;   /* outlives the control, so that no compiler leaves its sum out */
};

struct device_replay {
    device_launch_fn launch;
    void *context;
    unsigned n;
    bool delayed;
    double delay_ns;
};

static void host_close(struct device *d)
{
    struct host_device *h = (struct host_device *)d;
    free(h->sweep);
    free(h->control);
    free(h);
}

static enum gate_status host_alloc(struct device *, size_t bytes, struct device_memory *out,
                                   struct gate_error *err)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *data = rounded < bytes ? NULL : aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    if (!data)
        return gate_fail(err, GATE_ENVIRONMENT, "the host has no %zu bytes of memory left", bytes);
    *out = (struct device_memory){.data = data, .bytes = bytes};
    return GATE_OK;
}

static void host_free(struct device *, const struct device_memory *m)
{
    free(m->data);
}

/*
 * To be called before much memory is written for the first time: page faults one by one take half a
 * second for 128 MiB on a virtual machine, and a third of that all at once. An old kernel (before
 * Linux 5.14) refuses.
 */
static bool take_pages(void *data, size_t bytes, int advice)
{
    uintptr_t in_page = (uintptr_t)data % (uintptr_t)sysconf(_SC_PAGESIZE);
    return data && bytes >= MUCH_BYTES && !madvise((char *)data - in_page, in_page + bytes, advice);
}

static enum gate_status host_copy(struct device *, void *to, const void *from, size_t bytes,
                                  struct gate_error *)
{
    (void)take_pages(to, bytes, MADV_POPULATE_WRITE);
    memcpy(to, from, bytes);
    return GATE_OK;
}

static enum gate_status host_download_rows(struct device *, void *to, const void *from,
                                           size_t row_bytes, size_t stride_bytes, size_t rows,
                                           struct gate_error *)
{
    for (size_t i = 0; i < rows; i++)
        memcpy((char *)to + i * row_bytes, (const char *)from + i * stride_bytes, row_bytes);
    return GATE_OK;
}

static enum gate_status host_fill_bytes(struct device *, void *to, unsigned char byte, size_t bytes,
                                        struct gate_error *)
{
    memset(to, byte, bytes);
    return GATE_OK;
}

/* ---- memory between pages that may not be touched ---- */

static struct region {
    char *begin, *end;
    char name[32];
} regions[REGIONS_MAX];

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

static struct region *find_region(const void *begin)
{
    for (struct region *r = regions; r < regions + REGIONS_MAX; r++)
        if (r->begin == begin)
            return r;
    return NULL;
}

static enum gate_status host_alloc_apart(struct device *, const struct device_pieces *pieces,
                                         const char *name, struct device_memory *out,
                                         struct gate_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t span = (pieces->n - 1) * pieces->stride + pieces->bytes;
    size_t size = (span + page - 1) / page * page;
    struct region *r = find_region(NULL);
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

static void host_free_apart(struct device *, const struct device_memory *m)
{
    munmap((char *)m->data - FENCE, m->bytes + 2 * FENCE);
    *find_region(m->data) = (struct region){0};
}

/* ---- normal numbers: the ziggurat ----
 *
 * Inputs rotate through three times the cache, so a run draws hundreds of millions of numbers, and
 * this was nine tenths of its time when each took a logarithm, a sine and a cosine.
 *
 * Marsaglia and Tsang, "The ziggurat method for generating random variables", Journal of
 * Statistical Software 5(8), 2000: the curve is covered by layers of one area; 98 numbers of 100
 * fall where a layer lies wholly under the curve, and cost one multiplication. As Doornik asks for
 * ("An improved ziggurat method", 2005), a layer and the place in it are drawn from different bits.
 */

enum { NORMAL_LAYERS = 128 };

/* A stream of N(0, 1); those of different seeds have nothing in common. */
struct normal {
    uint64_t state;
    double edge[NORMAL_LAYERS + 1];   /* right ends of the layers, the widest first */
    double inner[NORMAL_LAYERS];      /* share of a layer's width that lies under the curve */
    double height[NORMAL_LAYERS + 1]; /* of the curve at each edge */
};

static const double TAIL = 3.442619855899;      /* where the lowest of 128 layers ends, */
static const double AREA = 9.91256303526217e-3; /* and their area; both from the papers */

static double curve(double x)
{
    return exp(-0.5 * x * x);
}

/* In (0, 1): neither 0, whose logarithm is infinite, nor 1. */
static double next_unit(struct normal *n)
{
    return ((double)(seed_next(&n->state) >> 12) + 0.5) * 0x1p-52;
}

static void seed_normal(struct normal *n, uint64_t seed)
{
    n->state = seed;
    n->state = seed_next(&n->state); /* neighbouring seeds would walk one sequence */
    n->edge[0] = AREA / curve(TAIL); /* as if the tail were a part of its rectangle */
    n->edge[1] = TAIL;
    for (int i = 2; i < NORMAL_LAYERS; i++)
        n->edge[i] = sqrt(-2 * log(AREA / n->edge[i - 1] + curve(n->edge[i - 1])));
    n->edge[NORMAL_LAYERS] = 0;
    for (int i = 0; i < NORMAL_LAYERS; i++)
        n->inner[i] = n->edge[i + 1] / n->edge[i];
    for (int i = 0; i <= NORMAL_LAYERS; i++)
        n->height[i] = curve(n->edge[i]);
}

static double next_normal(struct normal *n)
{
    for (;;) {
        uint64_t bits = seed_next(&n->state);
        unsigned layer = bits & (NORMAL_LAYERS - 1);
        double place = (double)((int64_t)bits >> 11) * 0x1p-52; /* in [-1, 1) */
        double x = place * n->edge[layer], low = n->height[layer], high = n->height[layer + 1], y;
        if (fabs(place) < n->inner[layer])
            return x;
        if (layer > 0) { /* between the layer's two edges the curve is asked */
            if (low + next_unit(n) * (high - low) < curve(x))
                return x;
            continue;
        }
        /* Beyond TAIL: Marsaglia, "Generating a variable from the tail of the normal distribution",
         * 1964. */
        do {
            x = log(next_unit(n)) / TAIL;
            y = log(next_unit(n));
        } while (-2 * y < x * x);
        return copysign(TAIL - x, place);
    }
}

static enum gate_status host_fill_normal(struct device *, void *to, enum kg_dtype dtype,
                                         int64_t count, struct op_spread spread, uint64_t seed,
                                         struct gate_error *)
{
    struct normal normal;
    seed_normal(&normal, seed);
    for (int64_t i = 0; i < count; i++)
        storage_put(to, dtype, i, spread.mean + spread.deviation * next_normal(&normal));
    return GATE_OK;
}

static enum gate_status host_fill_integers(struct device *, void *to, enum kg_dtype dtype,
                                           int64_t count, int largest, uint64_t seed,
                                           struct gate_error *)
{
    for (int64_t i = 0; i < count; i++)
        storage_put(to, dtype, i, seed_factor(seed_at(seed, (uint64_t)i), largest));
    return GATE_OK;
}

static enum gate_status host_reference(struct device *d, const struct kg_problem *p,
                                       const struct kg_tensor *in, double *const *out,
                                       struct gate_error *err)
{
    return rows_reference(p, in, out, d->info.kg.sm_count) == KG_OK
               ? GATE_OK
               : gate_fail(err, GATE_ENVIRONMENT, "the host has no memory for the fp64 reference");
}

static enum gate_status host_compare(struct device *, const struct kg_tensor *out,
                                     const double *reference, const struct device_part_rule *rule,
                                     struct device_comparison *result, struct gate_error *)
{
    host_parts(out, reference, rule, result);
    return GATE_OK;
}

/* Four lanes, so that the multiplications do not wait for each other. */
static enum gate_status host_hash(struct device *, const struct device_span *spans, size_t n,
                                  uint64_t *hashes, struct gate_error *)
{
    for (size_t s = 0; s < n; s++) {
        const unsigned char *byte = spans[s].data;
        const size_t bytes = spans[s].bytes;
        uint64_t lane[4] = {bytes, ~bytes, bytes + 1, bytes - 1}, word;
        size_t i = 0;
        for (; i + 32 <= bytes; i += 32)
            for (unsigned j = 0; j < 4; j++) {
                memcpy(&word, byte + i + 8 * j, sizeof word);
                lane[j] = (lane[j] ^ word) * 0x9e3779b97f4a7c15u;
                lane[j] ^= lane[j] >> 29;
            }
        for (; i < bytes; i++)
            lane[i % 4] = (lane[i % 4] ^ byte[i]) * 0x100000001b3u;
        hashes[s] = lane[0] ^ lane[1] * 3 ^ lane[2] * 5 ^ lane[3] * 7;
    }
    return GATE_OK;
}

static enum gate_status host_launch_checked(struct device *, device_launch_fn launch, void *context,
                                            unsigned index, struct gate_error *err)
{
    enum kg_status status = launch(context, index, NULL);
    if (status != KG_OK)
        return gate_fail(err, GATE_WRONG, "the launch returned '%s'", library_status_name(status));
    return GATE_OK;
}

/* Meanwhile a fault before or behind memory apart is reported on standard error, with its name,
 * before the process dies of it. */
static enum gate_status host_launch_watched(struct device *d, device_launch_fn launch,
                                            void *context, unsigned index, struct gate_error *err)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    bool any = false;
    for (int i = 0; i < REGIONS_MAX; i++)
        any |= regions[i].begin != NULL;
    const bool watching = any && !sigaction(SIGSEGV, &action, &before);
    enum gate_status status = host_launch_checked(d, launch, context, index, err);
    if (watching)
        sigaction(SIGSEGV, &before, NULL);
    return status;
}

static enum gate_status host_replay_record(struct device *, device_launch_fn launch, void *context,
                                           unsigned n, bool delayed, struct device_replay **out,
                                           struct gate_error *)
{
    struct device_replay *r = xcalloc(1, sizeof *r);
    *r = (struct device_replay){.launch = launch, .context = context, .n = n, .delayed = delayed};
    *out = r;
    return GATE_OK;
}

static enum gate_status host_replay_delay(struct device *, struct device_replay *r, double ns,
                                          struct gate_error *err)
{
    if (!r->delayed)
        return gate_fail(err, GATE_INTERNAL, "the replay was recorded without a delay");
    if (!(ns >= 0 && ns <= DELAY_MAX_NS))
        return gate_fail(err, GATE_INTERNAL, "a replay cannot be delayed by %g ns", ns);
    r->delay_ns = ns;
    return GATE_OK;
}

static enum gate_status host_replay_run(struct device *d, struct device_replay *r,
                                        struct device_time *out, struct gate_error *err)
{
    double start = clock_ns();
    for (unsigned i = 0; i < r->n; i++)
        TRY(host_launch_checked(d, r->launch, r->context, i, err));
    if (r->delayed)
        clock_spin(r->delay_ns);
    double ns = clock_ns() - start;
    *out = (struct device_time){.device_ns = ns, .host_ns = ns};
    return GATE_OK;
}

static void host_replay_free(struct device *, struct device_replay *r)
{
    free(r);
}

/* Twice the last-level cache is written, so that nothing of the operands is left in it. */
static enum gate_status host_single_run(struct device *d, device_launch_fn launch, void *context,
                                        unsigned index, double *device_ns, struct gate_error *err)
{
    struct host_device *h = (struct host_device *)d;
    if (!h->sweep) {
        h->sweep_bytes = 2 * (size_t)d->info.kg.l2_bytes;
        h->sweep = malloc(h->sweep_bytes);
        if (!h->sweep)
            return gate_fail(err, GATE_ENVIRONMENT, "the host has no memory to sweep its caches");
        (void)take_pages(h->sweep, h->sweep_bytes, MADV_HUGEPAGE);
    }
    memset(h->sweep, h->sweep_value++, h->sweep_bytes);
    double start = clock_ns();
    enum gate_status status = host_launch_checked(d, launch, context, index, err);
    *device_ns = clock_ns() - start;
    return status;
}

static enum gate_status host_calls_run(struct device *d, device_launch_fn launch, void *context,
                                       struct device_calls calls, double *host_ns,
                                       struct gate_error *err)
{
    double start = clock_ns();
    for (unsigned i = 0; i < calls.n; i++)
        TRY(host_launch_checked(d, launch, context, calls.first + i, err));
    *host_ns = clock_ns() - start;
    return GATE_OK;
}

/*
 * One thread; a half that follows the clock and a half that follows the memory, each of some 3 ms
 * on a server of today. Nothing is tuned when it runs and nothing may ever change, neither the
 * counts nor their order: the control of today is compared with those of all past sessions.
 */
static enum gate_status host_control_run(struct device *d, struct device_time *out,
                                         struct gate_error *err)
{
    struct host_device *h = (struct host_device *)d;
    double value = h->control_value;
    if (!h->control) {
        h->control = malloc(2 * CONTROL_COPY_BYTES);
        if (!h->control)
            return gate_fail(err, GATE_ENVIRONMENT, "the host has no memory for the control");
        /* Memory that was never written is one page of zeros, however much of it is read. */
        if (!take_pages(h->control, 2 * CONTROL_COPY_BYTES, MADV_POPULATE_WRITE))
            memset(h->control, 0x5a, 2 * CONTROL_COPY_BYTES); /* no larger pages */
    }
    double start = clock_ns();
    /* Each step waits for the one before. It tends to 1, so that no step meets a subnormal. */
    for (int i = 0; i < CONTROL_STEPS; i++)
        value = value * 0.75 + 0.25;
    h->control_value = value;
    memcpy(h->control + CONTROL_COPY_BYTES, h->control, CONTROL_COPY_BYTES);
    double ns = clock_ns() - start;
    *out = (struct device_time){.device_ns = ns, .host_ns = ns};
    return GATE_OK;
}

static const struct device_backend host_backend = {
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .alloc_apart = host_alloc_apart,
    .free_apart = host_free_apart,
    .upload = host_copy,
    .download = host_copy,
    .download_rows = host_download_rows,
    .copy = host_copy,
    .fill_bytes = host_fill_bytes,
    .fill_normal = host_fill_normal,
    .fill_integers = host_fill_integers,
    .reference = host_reference,
    .compare = host_compare,
    .hash = host_hash,
    .launch_checked = host_launch_watched,
    .replay_record = host_replay_record,
    .replay_delay = host_replay_delay,
    .control_run = host_control_run,
    .replay_run = host_replay_run,
    .replay_free = host_replay_free,
    .single_run = host_single_run,
    .calls_run = host_calls_run,
};

/* ---- what the host says of its processor, memory, caches and system ---- */

/* Some systems report the sum over all slices of a socket; no core holds more than its own. */
#define CACHE_MAX_BYTES ((int64_t)64 << 20)

/* Copies the value of "key : value" from a /proc file; false when it is not there. */
static bool proc_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        found = true;
    }
    fclose(f);
    return found;
}

static int64_t memory_from_proc(const char *key)
{
    char text[64];
    return proc_value("/proc/meminfo", key, text, sizeof text) ? strtoll(text, NULL, 10) * 1024 : 0;
}

static void describe(struct device_info *info)
{
    struct utsname system;
    cpu_set_t set;
    char hash[65];
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache <= 0)
        cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (cache <= 0)
        cache = 8 << 20;
#if defined(__x86_64__)
    const char *instructions = __builtin_cpu_supports("avx512f") ? "avx512"
                               : __builtin_cpu_supports("avx2")  ? "avx2"
                                                                 : "sse2";
#elif defined(__aarch64__)
    const char *instructions = "neon";
#else
    const char *instructions = "generic";
#endif
    *info = (struct device_info){
        .kg = {.struct_bytes = sizeof info->kg,
               .kind = KG_DEVICE_HOST,
               .sm_count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set),
               .l2_bytes = cache < CACHE_MAX_BYTES ? cache : CACHE_MAX_BYTES},
        .memory_bytes = memory_from_proc("MemTotal"),
        .memory_free_bytes = memory_from_proc("MemAvailable"),
    };
    if (!proc_value("/proc/cpuinfo", "model name", info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "unknown CPU");
    device_model_key("host-", info->name, info->model, sizeof info->model);
    bool known = !file_sha256("/etc/machine-id", hash, NULL);
    snprintf(info->uuid, sizeof info->uuid, "HOST-%.16s", known ? hash : "unknown");
    snprintf(info->capability, sizeof info->capability, "%s", instructions);
    if (!uname(&system))
        snprintf(info->driver, sizeof info->driver, "%.63s", system.release);
    snprintf(info->runtime, sizeof info->runtime, "glibc %s", gnu_get_libc_version());
}

enum gate_status device_host_open(struct device **out, struct gate_error *)
{
    struct host_device *h = xcalloc(1, sizeof *h);
    h->base.backend = &host_backend;
    describe(&h->base.info);
    *out = &h->base;
    return GATE_OK;
}
