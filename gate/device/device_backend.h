/*
 * device_backend.h: the table behind device.h. Included by device.c and the two backends only.
 */
#ifndef GATE_DEVICE_DEVICE_BACKEND_H
#define GATE_DEVICE_DEVICE_BACKEND_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each member is the function of the same name in device.h. */
struct device_backend {
    void (*close)(struct device *d);
    void *(*stream)(const struct device *d);
    enum gate_status (*alloc)(struct device *d, size_t bytes, struct device_memory *out,
                              struct gate_error *err);
    void (*free)(struct device *d, struct device_memory *m);
    enum gate_status (*guard_alloc)(struct device *d, size_t bytes, const char *name,
                                    struct device_memory *out, struct gate_error *err);
    void (*guard_free)(struct device *d, struct device_memory *m);
    enum gate_status (*spread_alloc)(struct device *d, const struct device_pieces *pieces,
                                     struct device_memory *out, struct gate_error *err);
    void (*spread_free)(struct device *d, const struct device_pieces *pieces,
                        struct device_memory *m);
    enum gate_status (*upload)(struct device *d, void *to, const void *from, size_t bytes,
                               struct gate_error *err);
    enum gate_status (*download)(struct device *d, void *to, const void *from, size_t bytes,
                                 struct gate_error *err);
    enum gate_status (*download_rows)(struct device *d, void *to, const void *from,
                                      size_t row_bytes, size_t stride_bytes, size_t rows,
                                      struct gate_error *err);
    enum gate_status (*copy)(struct device *d, void *to, const void *from, size_t bytes,
                             struct gate_error *err);
    enum gate_status (*fill_bytes)(struct device *d, void *to, unsigned char byte, size_t bytes,
                                   struct gate_error *err);
    enum gate_status (*fill_normal)(struct device *d, void *to, enum kg_dtype dtype, int64_t count,
                                    uint64_t seed, struct gate_error *err);
    enum gate_status (*fill_integers)(struct device *d, void *to, enum kg_dtype dtype,
                                      int64_t count, int largest, uint64_t seed,
                                      struct gate_error *err);
    enum gate_status (*reference)(struct device *d, const struct kg_problem *p,
                                  const struct kg_tensor *in, double *const *out,
                                  struct gate_error *err);
    enum gate_status (*compare)(struct device *d, const struct kg_tensor *out,
                                const double *reference, struct device_comparison *result,
                                struct gate_error *err);
    enum gate_status (*compare_parts)(struct device *d, const struct kg_tensor *out,
                                      const double *reference, const struct device_part_rule *rule,
                                      struct device_parts *result, struct gate_error *err);
    enum gate_status (*hash)(struct device *d, const struct device_span *spans, size_t n,
                             uint64_t *hashes, struct gate_error *err);
    enum gate_status (*synchronize)(struct device *d, struct gate_error *err);
    enum gate_status (*launch_checked)(struct device *d, device_launch_fn launch, void *context,
                                       unsigned index, struct gate_error *err);
    enum gate_status (*replay_record)(struct device *d, device_launch_fn launch, void *context,
                                      unsigned n, bool delayed, struct device_replay **out,
                                      struct gate_error *err);
    enum gate_status (*replay_delay)(struct device *d, struct device_replay *r, double ns,
                                     struct gate_error *err);
    enum gate_status (*control_run)(struct device *d, struct device_time *out,
                                    struct gate_error *err);
    enum gate_status (*replay_run)(struct device *d, struct device_replay *r,
                                   struct device_time *out, struct gate_error *err);
    struct device_kernels (*replay_kernels)(struct device_replay *r);
    void (*replay_free)(struct device *d, struct device_replay *r);
    enum gate_status (*single_run)(struct device *d, device_launch_fn launch, void *context,
                                   unsigned index, double *device_ns, struct gate_error *err);
    enum gate_status (*rest)(struct device *d, double ns, struct gate_error *err);
    enum gate_status (*state_read)(struct device *d, struct device_state *out,
                                   struct gate_error *err);
    enum gate_status (*throttle_read)(struct device *d, struct device_throttle *out,
                                      struct gate_error *err);
    struct device_sensors (*sensors_read)(struct device *d);
};

/* First member of each backend's own struct. */
struct device {
    const struct device_backend *backend;
    struct device_info info;
};

enum gate_status device_host_open(struct device **out, struct gate_error *err);
enum gate_status device_cuda_open(int ordinal, struct device **out, struct gate_error *err);

#ifdef __cplusplus
}
#endif

#endif
