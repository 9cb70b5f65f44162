/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h: what the worker needs of a device, the same for the host and for CUDA.
 *
 * Used by workers only: the supervisor never opens a device. A status of GATE_WRONG means that the
 * device reported an error that a kernel caused (an illegal address, say); after it the device
 * must not be used any more and the worker ends. GATE_ENVIRONMENT: no such device, not built in,
 * busy, or out of memory.
 */
#ifndef GATE_DEVICE_DEVICE_H
#define GATE_DEVICE_DEVICE_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/ops/op.h"
#include "gate/base/error.h"

struct device;

/* Peak rates by arithmetic, dense, in FLOP/s as the datasheet gives them; 0: not known. A chip
 * whose clock goes past the datasheet boost clock can exceed them by as much. */
struct device_peaks {
    double fp16_flops; /* fp16 and bf16 with fp32 accumulation */
    double tf32_flops;
    double fp32_flops;
    double bytes_per_s; /* device memory */
};

/* By the name that a GPU gives itself, "NVIDIA H200". All 0 for a chip that is not listed: a wrong
 * ceiling would be worse than none. */
struct device_peaks cuda_peaks(const char *name);

struct device_info {
    struct kg_device kg;
    char model[64];      /* key of the stored baselines: "nvidia-h200", "host-amd-epyc" */
    char name[128];      /* as the device calls itself */
    char uuid[64];       /* "GPU-..."; of the host a hash of its machine id, never the id itself */
    char capability[32]; /* "9.0"; "avx512" on the host */
    char driver[64];     /* "580.159.03"; kernel release on the host */
    char runtime[64];    /* CUDA runtime "13.0"; C library on the host */
    int64_t memory_bytes;
    int64_t memory_free_bytes;
    int64_t power_limit_mw;   /* 0: not known */
    int64_t sm_clock_max_mhz; /* 0: not known */
    struct device_peaks peaks;
    bool users_checked;        /* the driver lists the processes on it, of which none is another */
    bool launch_order_checked; /* a recording shows whether its launches overlap (serial.h) */
};

/* So many pieces of memory, each `stride` bytes behind the one before. */
struct device_pieces {
    size_t n, bytes, stride;
};

/* Device memory with nothing but the allocation itself behind it. */
struct device_memory {
    void *data; /* aligned to 256 bytes */
    size_t bytes;
    struct device_pieces apart; /* n is 0: of device_alloc() */
};

#define DEVICE_TILE 128
#define DEVICE_BIAS_MAX 2.0

/* What the elements, rows and tiles of an output are held to. */
struct device_part_rule {
    bool exact;       /* each element is the reference rounded once, to the bit */
    double least_rms; /* rows and tiles of smaller norm are measured by this much an element */
    double bad_share; /* an element is bad when it is off by more than this share of ... */
    double bad_rms;   /* ... its reference and this much */
};

/* One that is not what it must be: what is there, and what should be, rounded to the dtype where
 * it must be that. */
struct device_element {
    int64_t at; /* flat index; -1: none */
    double value, reference;
};

/*
 * How far an output is from its reference: a matrix whose last dimension are the
 * columns and all others together the rows (a vector is one row), in tiles of DEVICE_TILE squared.
 * Where the rounded reference is not finite, the element must be the same infinity, or a NaN; where
 * the fp64 reference is an infinity, which then came from an input, a NaN will do (kernel.h).
 */
struct device_comparison {
    int64_t elements;
    int64_t bad;       /* elements, those that follow too */
    int64_t nonfinite; /* NaN or Inf where a number must be */
    int64_t swallowed; /* anything else where NaN or Inf must be */
    struct device_element first_bad, first_nonfinite, first_swallowed;
    int64_t bad_rows[2], bad_columns[2]; /* the first and the last with a bad one; -1: not told */
    double reference_sq, error_sq; /* over elements that are finite, both; 0 of an exact rule */
    double max_abs;                /* largest difference between finite numbers, of any rule */
    int64_t over_1e2, over_1e3;    /* elements not within so much + so much times |reference| */
    double bias; /* away from zero, from the number nearest to the reference, in units of the last
                    place, at most DEVICE_BIAS_MAX each */
    int64_t biased; /* elements that it is the sum of: of 16 bits, and normal numbers */
    double worst_row, worst_tile; /* relative Frobenius errors; 0 where nothing is off */
    int64_t worst_row_at, worst_tile_row, worst_tile_column; /* the first such; -1 */
};

/* A sequence of serial launches, recorded once and replayed many times. */
struct device_replay;

/* One of the kernels that a replay is made of, as the driver has it. */
struct device_kernel {
    const char *name; /* mangled; the library's, until it is closed */
    unsigned grid[3], block[3];
    unsigned registers, local_bytes; /* of a thread */
    unsigned shared_bytes;           /* of a block, static and dynamic */
    unsigned launches;               /* of it in the replay */
};

struct device_kernels {
    const struct device_kernel
        *list;         /* the different ones, in the order in which they come first */
    size_t n;          /* 0: not known; the host's replays have none */
    uint64_t sequence; /* a hash of all launches and their arguments, true within a process; 0: not
                          known */
    uint64_t order;    /* a hash of the launches alone: kernels by their place in the list,
                          cluster, attributes and who waits for whom; the same in any process. 0:
                          not known */
};

/* What a launch in a replay is made of. */
#define DEVICE_NODES_MAX 16

struct device_nodes {
    const char *name[DEVICE_NODES_MAX]; /* of a kernel mangled, the library's; else what it does */
    bool is_kernel[DEVICE_NODES_MAX];
    unsigned n;
};

/* The nodes of number `node` of all launches in `from` take the place of those in `into`. */
struct device_transplant {
    struct device_replay *into, *from;
    unsigned launches, node;
    const struct device_memory *shared; /* memory that kernels of both may be given */
    unsigned n_shared;
};

struct device_time {
    double device_ns;    /* from the first launch's start to the last one's end */
    double host_ns;      /* wall clock around the same, ended by a synchronisation of the device */
    double sm_clock_mhz; /* mean over the span, from cycle counters; 0: not measured */
};

/* What the gate's own kernels do as fast as the device can: nothing else, and as much of it as
 * fits. Matrix products are accumulated in fp32; CEILING_FP32 is fused multiply-adds. */
enum device_ceiling {
    CEILING_READ, /* of device memory */
    CEILING_COPY,
    CEILING_FP16,
    CEILING_BF16,
    CEILING_TF32,
    CEILING_FP32,
    CEILINGS
};

struct device_ceiling_run {
    double device_ns;
    double work; /* bytes read and written, or FLOP */
};

/* Compute throttling since some moment, where the driver reports it; all 0 on the host. */
struct device_throttle {
    int64_t power_ns, thermal_ns;
};

/* What the device's own sensors say; NaN: not known, as on the host. */
struct device_sensors {
    double power_w, temperature_c;
};

/* What all that runs on a device shares; all 0 on the host, whose state is the process's. */
struct device_state {
    int current; /* ordinal of the device that calls go to */
    size_t memory_free_bytes;
    size_t memory_own_bytes; /* this process's, as the driver has it; 0: not known */
    size_t malloc_heap_bytes, printf_bytes, persisting_l2_bytes; /* limits */
    size_t l2_fetch_bytes; /* another: how much of the L2 a miss fills */
    uint64_t pool_keeps;   /* bytes that the default pool does not give back */
    unsigned wait_flags;   /* how a call waits */
    int cache_preference;  /* of L1 and shared memory */
};

/* Device memory, aligned or not. */
struct device_span {
    const void *data;
    size_t bytes;
};

/* Enqueues launch number `index` of a sequence on `stream`. */
typedef enum kg_status (*device_launch_fn)(void *context, unsigned index, void *stream);

/* Launches in a row, by their numbers. */
struct device_calls {
    unsigned first, n;
};

/* What a kind of device implements. The functions and macros below call it. */
struct device_backend {
    void (*close)(struct device *d);
    /* GATE_ENVIRONMENT when memory is short; the device is usable afterwards. */
    enum gate_status (*alloc)(struct device *d, size_t bytes, struct device_memory *out,
                              struct gate_error *err);
    /* Pieces with nothing mapped before, between and behind them: what touches that ends the
     * process or spoils the device, and on the host `name` is reported first. out->data is where
     * the first begins; of one piece alone out->bytes are whole pages, at least as many as asked
     * for. GATE_ENVIRONMENT where the device does not offer that, or memory or addresses are short,
     * as `err` says; the device is usable afterwards. */
    enum gate_status (*alloc_apart)(struct device *d, const struct device_pieces *pieces,
                                    const char *name, struct device_memory *out,
                                    struct gate_error *err);
    void (*free)(struct device *d, const struct device_memory *m);
    void (*free_apart)(struct device *d, const struct device_memory *m);
    enum gate_status (*upload)(struct device *d, void *to, const void *from, size_t bytes,
                               struct gate_error *err);
    enum gate_status (*download)(struct device *d, void *to, const void *from, size_t bytes,
                                 struct gate_error *err);
    /* The first `row_bytes` of each of `rows` rows that begin `stride_bytes` apart, without gaps.
     */
    enum gate_status (*download_rows)(struct device *d, void *to, const void *from,
                                      size_t row_bytes, size_t stride_bytes, size_t rows,
                                      struct gate_error *err);
    /* From device memory to device memory, which does not overlap. */
    enum gate_status (*copy)(struct device *d, void *to, const void *from, size_t bytes,
                             struct gate_error *err);
    enum gate_status (*fill_bytes)(struct device *d, void *to, unsigned char byte, size_t bytes,
                                   struct gate_error *err);
    /* Fills `count` elements with normal numbers, rounded to dtype: element i depends on (seed, i)
     * alone. */
    enum gate_status (*fill_normal)(struct device *d, void *to, enum kg_dtype dtype, int64_t count,
                                    struct op_spread spread, uint64_t seed, struct gate_error *err);
    /* Fills `count` elements with integers in [-largest, largest] but 0 (a term that is left out
     * must show) by a hash of (seed, i): the same on every device. */
    enum gate_status (*fill_integers)(struct device *d, void *to, enum kg_dtype dtype,
                                      int64_t count, int largest, uint64_t seed,
                                      struct gate_error *err);
    /* fp64 reference of the problem; out[i] is dense row-major fp64 device memory of output i. */
    enum gate_status (*reference)(struct device *d, const struct kg_problem *p,
                                  const struct kg_tensor *in, double *const *out,
                                  struct gate_error *err);
    /* Compares a dense output with its reference by elements, rows and tiles. */
    enum gate_status (*compare)(struct device *d, const struct kg_tensor *out,
                                const double *reference, const struct device_part_rule *rule,
                                struct device_comparison *result, struct gate_error *err);
    /* A hash of each of n spans, with one wait for all of them: bytes that differ, or lie
     * elsewhere, give another hash. It means nothing on another device. */
    enum gate_status (*hash)(struct device *d, const struct device_span *spans, size_t n,
                             uint64_t *hashes, struct gate_error *err);
    /* One launch outside of any measurement: errors of the launch itself and of its execution are
     * reported apart in the message. */
    enum gate_status (*launch_checked)(struct device *d, device_launch_fn launch, void *context,
                                       unsigned index, struct gate_error *err);
    /* Records launches 0 .. n-1. A launch that cannot be captured (it synchronises, allocates or
     * uses another stream) is GATE_WRONG. `delayed`: a delay node follows the launches inside of
     * the timed span, zero long until replay_delay() says otherwise; for calibration only. */
    enum gate_status (*replay_record)(struct device *d, device_launch_fn launch, void *context,
                                      unsigned n, bool delayed, struct device_replay **out,
                                      struct gate_error *err);
    /* From now on each replay is `ns` longer than its launches take: time of a known length. */
    enum gate_status (*replay_delay)(struct device *d, struct device_replay *r, double ns,
                                     struct gate_error *err);
    enum gate_status (*replay_run)(struct device *d, struct device_replay *r,
                                   struct device_time *out, struct gate_error *err);
    void (*replay_free)(struct device *d, struct device_replay *r);
    /* One cold launch: caches are swept first, then a single launch is timed between two events. */
    enum gate_status (*single_run)(struct device *d, device_launch_fn launch, void *context,
                                   unsigned index, double *device_ns, struct gate_error *err);
    /* Wall clock of the calls alone, which a caller waits for; the device's work is waited for
     * after them. On the host a call does the work. */
    enum gate_status (*calls_run)(struct device *d, device_launch_fn launch, void *context,
                                  struct device_calls calls, double *host_ns,
                                  struct gate_error *err);
    /* The control: a fixed piece of work of about 1 ms on a GPU, half of it dependent arithmetic
     * and half memory traffic past the caches, which never changes and needs no kernel library.
     * When its time moves, the machine has changed and not the code under test. */
    enum gate_status (*control_run)(struct device *d, struct device_time *out,
                                    struct gate_error *err);

    /* Those from here on are NULL where they have no meaning. */

    /* Makes a NaN of all shared memory, so that a kernel shows which uses what it has not written.
     */
    enum gate_status (*poison_shared)(struct device *d, struct gate_error *err);
    /* What is enqueued from now on does not begin before release(), or a second has passed. */
    enum gate_status (*hold)(struct device *d, struct gate_error *err);
    void (*release)(struct device *d);
    /* Waits for all work and reads the device's error state. */
    enum gate_status (*synchronize)(struct device *d, struct gate_error *err);
    /* Tells a profiler that watches this process, if there is one, to begin or to stop. On CUDA a
     * kernel named kernel_gate_case_begins is the first that it sees. */
    enum gate_status (*profiler_switch)(struct device *d, bool on, struct gate_error *err);
    /* Runs one of the gate's own kernels for `rounds` rounds (at least 1) and checks its result;
     * how long a round takes is the backend's. GATE_ENVIRONMENT: the result is wrong, memory is
     * short, or this kind of device has no such kernels. */
    enum gate_status (*ceiling_run)(struct device *d, enum device_ceiling which, unsigned rounds,
                                    struct device_ceiling_run *out, struct gate_error *err);
    /* What the replay launches; the list is the replay's. */
    struct device_kernels (*replay_kernels)(struct device_replay *r);
    /* The nodes of a launch; `launches` are in the replay. GATE_USAGE: they cannot be told apart
     * there, as `err` says. */
    enum gate_status (*replay_nodes)(struct device *d, struct device_replay *r, unsigned launches,
                                     struct device_nodes *out, struct gate_error *err);
    /* A replay of its own, of nodes of two others, which must outlive it. GATE_USAGE: the nodes do
     * not fit, as `err` says: arguments of other sizes, or memory that is one library's own and
     * that other nodes use, too. Where there are no nodes nobody asks for it. */
    enum gate_status (*replay_transplant)(struct device *d, const struct device_transplant *t,
                                          struct device_replay **out, struct gate_error *err);
    /* Of launches such as the one that `r` records, how many a replay can hold and still be
     * enqueued as a whole before the device begins with it; at least 1. */
    unsigned (*replay_room)(const struct device_replay *r);
    /* Keeps the device busy with low-power work (memory fills) for about `ns`. */
    enum gate_status (*rest)(struct device *d, double ns, struct gate_error *err);
    enum gate_status (*state_read)(struct device *d, struct device_state *out,
                                   struct gate_error *err);
    struct device_throttle (*throttle_read)(struct device *d);
    struct device_sensors (*sensors_read)(struct device *d);
};

/* First member of each backend's own struct. */
struct device {
    const struct device_backend *backend;
    void *stream; /* for kg_args.stream */
    struct device_info info;
};

enum gate_status device_host_open(struct device **out, struct gate_error *err);
enum gate_status device_cuda_open(int ordinal, struct device **out, struct gate_error *err);

/* "host-" and "AMD EPYC" -> "host-amd-epyc". */
void device_model_key(const char *prefix, const char *name, char *key, size_t size);

/* `spec` is "host" or "cuda:N". */
enum gate_status device_open(const char *spec, struct device **out, struct gate_error *err);
static inline const struct device_info *device_info(const struct device *d)
{
    return &d->info;
}

/* Memory that only grows: what is equally large stays where it is. */
enum gate_status device_reserve(struct device *d, struct device_memory *m, size_t bytes,
                                struct gate_error *err);

void device_close(struct device *d);                                /* NULL is fine */
void device_free(struct device *d, struct device_memory *m);        /* zeroes *m */
void device_replay_free(struct device *d, struct device_replay *r); /* NULL is fine */

#define DEVICE_CALL(d, member, ...) (d)->backend->member(d, __VA_ARGS__)
#define device_alloc(d, ...) DEVICE_CALL(d, alloc, __VA_ARGS__)
#define device_alloc_apart(d, ...) DEVICE_CALL(d, alloc_apart, __VA_ARGS__)
#define device_upload(d, ...) DEVICE_CALL(d, upload, __VA_ARGS__)
#define device_download(d, ...) DEVICE_CALL(d, download, __VA_ARGS__)
#define device_download_rows(d, ...) DEVICE_CALL(d, download_rows, __VA_ARGS__)
#define device_copy(d, ...) DEVICE_CALL(d, copy, __VA_ARGS__)
#define device_fill_bytes(d, ...) DEVICE_CALL(d, fill_bytes, __VA_ARGS__)
#define device_fill_normal(d, ...) DEVICE_CALL(d, fill_normal, __VA_ARGS__)
#define device_fill_integers(d, ...) DEVICE_CALL(d, fill_integers, __VA_ARGS__)
#define device_reference(d, ...) DEVICE_CALL(d, reference, __VA_ARGS__)
#define device_compare(d, ...) DEVICE_CALL(d, compare, __VA_ARGS__)
#define device_hash(d, ...) DEVICE_CALL(d, hash, __VA_ARGS__)
#define device_launch_checked(d, ...) DEVICE_CALL(d, launch_checked, __VA_ARGS__)
#define device_replay_record(d, ...) DEVICE_CALL(d, replay_record, __VA_ARGS__)
#define device_replay_delay(d, ...) DEVICE_CALL(d, replay_delay, __VA_ARGS__)
#define device_replay_run(d, ...) DEVICE_CALL(d, replay_run, __VA_ARGS__)
#define device_replay_transplant(d, ...) DEVICE_CALL(d, replay_transplant, __VA_ARGS__)
#define device_single_run(d, ...) DEVICE_CALL(d, single_run, __VA_ARGS__)
#define device_calls_run(d, ...) DEVICE_CALL(d, calls_run, __VA_ARGS__)
#define device_control_run(d, ...) DEVICE_CALL(d, control_run, __VA_ARGS__)

#define DEVICE_OPTIONAL(d, member, arguments, otherwise)                                           \
    ((d)->backend->member ? (d)->backend->member arguments : (otherwise))
#define device_poison_shared(d, err) DEVICE_OPTIONAL(d, poison_shared, (d, err), GATE_OK)
#define device_hold(d, err) DEVICE_OPTIONAL(d, hold, (d, err), GATE_OK)
#define device_release(d) DEVICE_OPTIONAL(d, release, (d), (void)0)
#define device_synchronize(d, err) DEVICE_OPTIONAL(d, synchronize, (d, err), GATE_OK)
#define device_profiler_switch(d, on, err)                                                         \
    DEVICE_OPTIONAL(d, profiler_switch, (d, on, err), GATE_OK)
#define device_rest(d, ns, err) DEVICE_OPTIONAL(d, rest, (d, ns, err), GATE_OK)
#define device_replay_room(d, r) DEVICE_OPTIONAL(d, replay_room, (r), UINT_MAX)
#define device_replay_kernels(d, r)                                                                \
    DEVICE_OPTIONAL(d, replay_kernels, (r), ((struct device_kernels){0}))
#define device_throttle_read(d)                                                                    \
    DEVICE_OPTIONAL(d, throttle_read, (d), ((struct device_throttle){0}))
#define device_sensors_read(d)                                                                     \
    DEVICE_OPTIONAL(d, sensors_read, (d), ((struct device_sensors){NAN, NAN}))

/* The same where more is to be done: the result is zero, or the message says which device. */
enum gate_status device_ceiling_run(struct device *d, enum device_ceiling which, unsigned rounds,
                                    struct device_ceiling_run *out, struct gate_error *err);
enum gate_status device_replay_nodes(struct device *d, struct device_replay *r, unsigned launches,
                                     struct device_nodes *out, struct gate_error *err);
enum gate_status device_state_read(struct device *d, struct device_state *out,
                                   struct gate_error *err);

/* device_compare() of memory of the host, whatever the device. */
void host_parts(const struct kg_tensor *out, const double *reference,
                const struct device_part_rule *rule, struct device_comparison *result);

#endif
