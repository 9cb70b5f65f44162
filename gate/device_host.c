/*
 * device_host.c: the CPU as a device.
 *
 * Launches run in the calling thread, so a replay is a loop and its time is wall clock. Memory is
 * plain memory; a kernel that writes out of bounds takes the worker process with it, not the gate.
 */
#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <gnu/libc-version.h>

#include "../kernels/reference/half.h"
#include "../kernels/reference/reference.h"
#include "base/file.h"
#include "device_backend.h"
#include "library.h"
#include "problem.h"

#define ALIGNMENT 256

/* Some systems report the sum over all slices of a socket; no core holds more than its own. */
#define CACHE_MAX_BYTES ((int64_t)64 << 20)

struct host_device {
    struct device base;
    unsigned char *sweep; /* memory that is swept to empty the caches; allocated on first use */
    size_t sweep_bytes;
    unsigned char sweep_value;
};

struct device_replay {
    device_launch_fn launch;
    void *context;
    unsigned n;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void host_close(struct device *d)
{
    struct host_device *h = (struct host_device *)d;
    free(h->sweep);
    free(h);
}

static void *host_stream(const struct device *d)
{
    (void)d;
    return NULL;
}

static enum gate_status host_alloc(struct device *d, size_t bytes, struct device_memory *out,
                                   struct gate_error *err)
{
    (void)d;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *data = rounded < bytes ? NULL : aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    if (!data)
        return gate_fail(err, GATE_ENVIRONMENT, "the host has no %zu bytes of memory left", bytes);
    *out = (struct device_memory){data, bytes};
    return GATE_OK;
}

static void host_free(struct device *d, struct device_memory *m)
{
    (void)d;
    free(m->data);
}

static enum gate_status host_copy(struct device *d, void *to, const void *from, size_t bytes,
                                  struct gate_error *err)
{
    (void)d;
    (void)err;
    memcpy(to, from, bytes);
    return GATE_OK;
}

static enum gate_status host_fill_bytes(struct device *d, void *to, unsigned char byte,
                                        size_t bytes, struct gate_error *err)
{
    (void)d;
    (void)err;
    memset(to, byte, bytes);
    return GATE_OK;
}

/* Uniform in (0, 1] from a counter: the finaliser of splitmix64. */
static double uniform(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
}

/* Box and Muller: elements 2i and 2i + 1 share their two uniform numbers. */
static enum gate_status host_fill_normal(struct device *d, void *to, enum kg_dtype dtype,
                                         int64_t count, uint64_t seed, struct gate_error *err)
{
    (void)d;
    (void)err;
    for (int64_t i = 0; i < count; i += 2) {
        double radius = sqrt(-2 * log(uniform(seed, (uint64_t)i)));
        double angle = 2 * M_PI * uniform(seed, (uint64_t)i + 1);
        kg_store_float(to, dtype, i, (float)(radius * cos(angle)));
        if (i + 1 < count)
            kg_store_float(to, dtype, i + 1, (float)(radius * sin(angle)));
    }
    return GATE_OK;
}

static enum gate_status host_reference(struct device *d, const struct kg_problem *p,
                                       const struct kg_tensor *in, double *const *out,
                                       struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    uint32_t n_in = 0;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        n_in += !tensors[i].is_output;
    enum kg_status status = kg_reference_host(p, in, n_in, out, d->info.kg.sm_count);
    if (status == KG_LAUNCH_FAILED)
        return gate_fail(err, GATE_ENVIRONMENT, "the host has no memory for the fp64 reference");
    if (status != KG_OK)
        return gate_fail(err, GATE_INTERNAL, "the fp64 reference refused the problem");
    return GATE_OK;
}

static int64_t elements_of(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

static enum gate_status host_compare(struct device *d, const struct kg_tensor *out,
                                     const double *reference, struct device_comparison *result,
                                     struct gate_error *err)
{
    (void)d;
    (void)err;
    struct device_comparison c = {.elements = elements_of(out), .first_bad = -1};
    for (int64_t i = 0; i < c.elements; i++) {
        double got = (double)kg_load_float(out->data, out->dtype, i), ref = reference[i];
        double error = fabs(got - ref);
        bool within_1e2 = error <= 1e-2 + 1e-2 * fabs(ref); /* false for NaN */
        c.reference_sq += ref * ref;
        c.over_1e2 += !within_1e2;
        c.over_1e3 += !(error <= 1e-3 + 1e-3 * fabs(ref));
        if (isfinite(error)) {
            c.error_sq += error * error;
            c.max_abs = fmax(c.max_abs, error);
        } else if (isfinite(ref)) {
            c.nonfinite++;
        }
        if (!within_1e2 && c.first_bad < 0) {
            c.first_bad = i;
            c.first_bad_value = got;
            c.first_bad_reference = ref;
        }
    }
    *result = c;
    return GATE_OK;
}

static enum gate_status host_synchronize(struct device *d, struct gate_error *err)
{
    (void)d;
    (void)err;
    return GATE_OK;
}

static enum gate_status host_launch_checked(struct device *d, device_launch_fn launch,
                                            void *context, unsigned index, struct gate_error *err)
{
    (void)d;
    enum kg_status status = launch(context, index, NULL);
    if (status != KG_OK)
        return gate_fail(err, GATE_WRONG, "the launch returned '%s'", library_status_name(status));
    return GATE_OK;
}

static enum gate_status host_replay_record(struct device *d, device_launch_fn launch, void *context,
                                           unsigned n, struct device_replay **out,
                                           struct gate_error *err)
{
    (void)d;
    struct device_replay *r = malloc(sizeof *r);
    if (!r)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    *r = (struct device_replay){launch, context, n};
    *out = r;
    return GATE_OK;
}

static enum gate_status host_replay_run(struct device *d, struct device_replay *r,
                                        struct device_time *out, struct gate_error *err)
{
    double start = now_ns();
    for (unsigned i = 0; i < r->n; i++) {
        enum gate_status status = host_launch_checked(d, r->launch, r->context, i, err);
        if (status)
            return status;
    }
    double ns = now_ns() - start;
    *out = (struct device_time){.device_ns = ns, .host_ns = ns};
    return GATE_OK;
}

static void host_replay_free(struct device *d, struct device_replay *r)
{
    (void)d;
    free(r);
}

/* Writes twice the last-level cache, so that nothing of the operands is left in it. */
static enum gate_status sweep_caches(struct host_device *h, struct gate_error *err)
{
    if (!h->sweep) {
        h->sweep_bytes = 2 * (size_t)h->base.info.kg.l2_bytes;
        h->sweep = malloc(h->sweep_bytes);
        if (!h->sweep)
            return gate_fail(err, GATE_ENVIRONMENT, "the host has no memory to sweep its caches");
    }
    memset(h->sweep, h->sweep_value++, h->sweep_bytes);
    return GATE_OK;
}

static enum gate_status host_single_run(struct device *d, device_launch_fn launch, void *context,
                                        unsigned index, double *device_ns, struct gate_error *err)
{
    enum gate_status status = sweep_caches((struct host_device *)d, err);
    if (status)
        return status;
    double start = now_ns();
    status = host_launch_checked(d, launch, context, index, err);
    *device_ns = now_ns() - start;
    return status;
}

static enum gate_status host_rest(struct device *d, double ns, struct gate_error *err)
{
    (void)d;
    (void)ns;
    (void)err;
    return GATE_OK;
}

static enum gate_status host_throttle_read(struct device *d, struct device_throttle *out,
                                           struct gate_error *err)
{
    (void)d;
    (void)err;
    *out = (struct device_throttle){0};
    return GATE_OK;
}

static const struct device_backend host_backend = {
    .close = host_close,
    .stream = host_stream,
    .alloc = host_alloc,
    .free = host_free,
    .upload = host_copy,
    .download = host_copy,
    .fill_bytes = host_fill_bytes,
    .fill_normal = host_fill_normal,
    .reference = host_reference,
    .compare = host_compare,
    .synchronize = host_synchronize,
    .launch_checked = host_launch_checked,
    .replay_record = host_replay_record,
    .replay_run = host_replay_run,
    .replay_free = host_replay_free,
    .single_run = host_single_run,
    .rest = host_rest,
    .throttle_read = host_throttle_read,
};

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

/* Lower case, everything else than letters and digits as single dashes: "host-amd-epyc". */
static void model_key(const char *prefix, const char *name, char *key, size_t size)
{
    size_t n = (size_t)snprintf(key, size, "%s", prefix);
    for (; *name && n + 1 < size; name++) {
        if (isalnum((unsigned char)*name))
            key[n++] = (char)tolower((unsigned char)*name);
        else if (n && key[n - 1] != '-')
            key[n++] = '-';
    }
    while (n && key[n - 1] == '-')
        n--;
    key[n] = '\0';
}

static int64_t memory_from_proc(const char *key)
{
    char text[64];
    return proc_value("/proc/meminfo", key, text, sizeof text) ? strtoll(text, NULL, 10) * 1024 : 0;
}

static const char *instruction_set(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return "avx512";
    return __builtin_cpu_supports("avx2") ? "avx2" : "sse2";
#elif defined(__aarch64__)
    return "neon";
#else
    return "generic";
#endif
}

static int usable_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int64_t last_level_cache_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0)
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes <= 0)
        return (int64_t)8 << 20;
    return bytes < CACHE_MAX_BYTES ? bytes : CACHE_MAX_BYTES;
}

static void describe_host(struct device_info *info)
{
    struct utsname system;
    char hash[65];
    *info = (struct device_info){
        .kg = {.struct_bytes = sizeof info->kg,
               .kind = KG_DEVICE_HOST,
               .sm_count = usable_threads(),
               .l2_bytes = last_level_cache_bytes()},
        .memory_bytes = memory_from_proc("MemTotal"),
        .memory_free_bytes = memory_from_proc("MemAvailable"),
    };
    if (!proc_value("/proc/cpuinfo", "model name", info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "unknown CPU");
    model_key("host-", info->name, info->model, sizeof info->model);
    bool known = !file_sha256("/etc/machine-id", hash, NULL);
    snprintf(info->uuid, sizeof info->uuid, "HOST-%.16s", known ? hash : "unknown");
    snprintf(info->capability, sizeof info->capability, "%s", instruction_set());
    if (!uname(&system))
        snprintf(info->driver, sizeof info->driver, "%.63s", system.release);
    snprintf(info->runtime, sizeof info->runtime, "glibc %s", gnu_get_libc_version());
}

enum gate_status device_host_open(struct device **out, struct gate_error *err)
{
    struct host_device *h = calloc(1, sizeof *h);
    if (!h)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    h->base.backend = &host_backend;
    describe_host(&h->base.info);
    *out = &h->base;
    return GATE_OK;
}
