#include <stdlib.h>
#include <string.h>

#include "device_backend.h"

enum gate_status device_open(const char *spec, struct device **out, struct gate_error *err)
{
    if (!strcmp(spec, "host"))
        return device_host_open(out, err);
    char *end;
    if (!strncmp(spec, "cuda:", 5) && spec[5] >= '0' && spec[5] <= '9') {
        long ordinal = strtol(spec + 5, &end, 10);
        if (!*end && ordinal <= 1023) {
#ifdef GATE_CUDA
            return device_cuda_open((int)ordinal, out, err);
#else
            return gate_fail(err, GATE_ENVIRONMENT,
                             "this gate was built without CUDA, so it cannot open '%s'; build it "
                             "with nvcc, or use --device host",
                             spec);
#endif
        }
    }
    return gate_fail(err, GATE_USAGE, "no device is named '%s'; there are 'host' and 'cuda:N'",
                     spec);
}

void device_close(struct device *d)
{
    if (d)
        d->backend->close(d);
}

const struct device_info *device_info(const struct device *d)
{
    return &d->info;
}

void *device_stream(const struct device *d)
{
    return d->backend->stream(d);
}

enum gate_status device_alloc(struct device *d, size_t bytes, struct device_memory *out,
                              struct gate_error *err)
{
    return d->backend->alloc(d, bytes, out, err);
}

void device_free(struct device *d, struct device_memory *m)
{
    if (m->data)
        d->backend->free(d, m);
    *m = (struct device_memory){0};
}

enum gate_status device_guard_alloc(struct device *d, size_t bytes, const char *name,
                                    struct device_memory *out, struct gate_error *err)
{
    *out = (struct device_memory){0};
    return d->backend->guard_alloc(d, bytes, name, out, err);
}

void device_guard_free(struct device *d, struct device_memory *m)
{
    if (m->data)
        d->backend->guard_free(d, m);
    *m = (struct device_memory){0};
}

enum gate_status device_spread_alloc(struct device *d, const struct device_pieces *pieces,
                                     struct device_memory *out, struct gate_error *err)
{
    *out = (struct device_memory){0};
    return d->backend->spread_alloc(d, pieces, out, err);
}

void device_spread_free(struct device *d, const struct device_pieces *pieces,
                        struct device_memory *m)
{
    if (m->data)
        d->backend->spread_free(d, pieces, m);
    *m = (struct device_memory){0};
}

enum gate_status device_upload(struct device *d, void *to, const void *from, size_t bytes,
                               struct gate_error *err)
{
    return d->backend->upload(d, to, from, bytes, err);
}

enum gate_status device_download(struct device *d, void *to, const void *from, size_t bytes,
                                 struct gate_error *err)
{
    return d->backend->download(d, to, from, bytes, err);
}

enum gate_status device_download_rows(struct device *d, void *to, const void *from,
                                      size_t row_bytes, size_t stride_bytes, size_t rows,
                                      struct gate_error *err)
{
    return d->backend->download_rows(d, to, from, row_bytes, stride_bytes, rows, err);
}

enum gate_status device_copy(struct device *d, void *to, const void *from, size_t bytes,
                             struct gate_error *err)
{
    return d->backend->copy(d, to, from, bytes, err);
}

enum gate_status device_fill_bytes(struct device *d, void *to, unsigned char byte, size_t bytes,
                                   struct gate_error *err)
{
    return d->backend->fill_bytes(d, to, byte, bytes, err);
}

enum gate_status device_fill_normal(struct device *d, void *to, enum kg_dtype dtype, int64_t count,
                                    uint64_t seed, struct gate_error *err)
{
    return d->backend->fill_normal(d, to, dtype, count, seed, err);
}

enum gate_status device_fill_integers(struct device *d, void *to, enum kg_dtype dtype,
                                      int64_t count, int largest, uint64_t seed,
                                      struct gate_error *err)
{
    return d->backend->fill_integers(d, to, dtype, count, largest, seed, err);
}

enum gate_status device_reference(struct device *d, const struct kg_problem *p,
                                  const struct kg_tensor *in, double *const *out,
                                  struct gate_error *err)
{
    return d->backend->reference(d, p, in, out, err);
}

enum gate_status device_compare(struct device *d, const struct kg_tensor *out,
                                const double *reference, struct device_comparison *result,
                                struct gate_error *err)
{
    return d->backend->compare(d, out, reference, result, err);
}

enum gate_status device_compare_parts(struct device *d, const struct kg_tensor *out,
                                      const double *reference, const struct device_part_rule *rule,
                                      struct device_parts *result, struct gate_error *err)
{
    return d->backend->compare_parts(d, out, reference, rule, result, err);
}

enum gate_status device_synchronize(struct device *d, struct gate_error *err)
{
    return d->backend->synchronize(d, err);
}

enum gate_status device_hash(struct device *d, const struct device_span *spans, size_t n,
                             uint64_t *hashes, struct gate_error *err)
{
    return d->backend->hash(d, spans, n, hashes, err);
}

enum gate_status device_launch_checked(struct device *d, device_launch_fn launch, void *context,
                                       unsigned index, struct gate_error *err)
{
    return d->backend->launch_checked(d, launch, context, index, err);
}

enum gate_status device_replay_record(struct device *d, device_launch_fn launch, void *context,
                                      unsigned n, bool delayed, struct device_replay **out,
                                      struct gate_error *err)
{
    return d->backend->replay_record(d, launch, context, n, delayed, out, err);
}

enum gate_status device_replay_delay(struct device *d, struct device_replay *r, double ns,
                                     struct gate_error *err)
{
    return d->backend->replay_delay(d, r, ns, err);
}

enum gate_status device_control_run(struct device *d, struct device_time *out,
                                    struct gate_error *err)
{
    return d->backend->control_run(d, out, err);
}

enum gate_status device_replay_run(struct device *d, struct device_replay *r,
                                   struct device_time *out, struct gate_error *err)
{
    return d->backend->replay_run(d, r, out, err);
}

struct device_kernels device_replay_kernels(const struct device *d, struct device_replay *r)
{
    return d->backend->replay_kernels(r);
}

void device_replay_free(struct device *d, struct device_replay *r)
{
    if (r)
        d->backend->replay_free(d, r);
}

enum gate_status device_single_run(struct device *d, device_launch_fn launch, void *context,
                                   unsigned index, double *device_ns, struct gate_error *err)
{
    return d->backend->single_run(d, launch, context, index, device_ns, err);
}

enum gate_status device_rest(struct device *d, double ns, struct gate_error *err)
{
    return d->backend->rest(d, ns, err);
}

enum gate_status device_throttle_read(struct device *d, struct device_throttle *out,
                                      struct gate_error *err)
{
    return d->backend->throttle_read(d, out, err);
}

struct device_sensors device_sensors_read(struct device *d)
{
    return d->backend->sensors_read(d);
}

enum gate_status device_state_read(struct device *d, struct device_state *out,
                                   struct gate_error *err)
{
    *out = (struct device_state){0};
    return d->backend->state_read(d, out, err);
}
