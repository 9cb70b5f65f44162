/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device.cuh: what the files of the CUDA backend share.
 *
 * The backend is C-like C++ and needs no C++ runtime: the final program is linked as C.
 */
#ifndef GATE_DEVICE_CUDA_DEVICE_CUH
#define GATE_DEVICE_CUDA_DEVICE_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

extern "C" {
#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/error.h"
#include "gate/base/seed.h"
#include "gate/device/device.h"
#include "gate/device/nvml.h"
}

/* Cycle counter and global timer of one multiprocessor at one moment. */
struct sm_stamp {
    uint64_t sequence; /* which measurement wrote it */
    uint64_t cycles, ns;
};

enum { SM_STAMPS_MAX = 1024 };

/* Host memory that the device reads and writes while it runs. */
struct cuda_shared {
    uint64_t released;     /* the host raises it to open the gate: see cuda_hold() */
    uint64_t hold_expired; /* sequence number of the last hold that ran into its limit */
    struct sm_stamp stamp[2][SM_STAMPS_MAX]; /* before and after; by multiprocessor */
};

struct cuda_device {
    struct device base;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    struct nvml *nvml;          /* NULL: no NVML here */
    pid_t listed_as;            /* this process's number in NVML's list; 0: not known */
    struct cuda_shared *shared; /* page-locked, the same address on the device */
    uint64_t sequence;          /* of the last hold or measurement */
    void *compare_scratch;      /* of cuda_compare.cu and cuda_hash.cu */
    uint64_t *sweep;            /* at least twice the L2; NULL until first needed */
    size_t sweep_words;
    uint64_t sweep_salt;
    double sweep_ns; /* time of one sweep over it */
    char *control;   /* memory of the control, see cuda_control.cu; NULL until first needed */
    struct cuda_ceiling *ceiling; /* see cuda_ceiling.cu; NULL until first needed */
};

static inline __device__ uint64_t cuda_global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static inline struct cuda_device *cuda_of(struct device *d)
{
    return (struct cuda_device *)d;
}

/*
 * Turns a CUDA error into a status and a message, and takes it from the runtime's memory.
 * GATE_ENVIRONMENT: memory is short, or the device or driver is at fault; GATE_WRONG: work that ran
 * on the device broke a rule; GATE_INTERNAL: the gate itself called the runtime wrongly.
 */
enum gate_status cuda_fail(struct gate_error *err, cudaError_t error, const char *what);

/* Adds what the device says to a launch's own failure, which `err` holds already. The device or its
 * driver is to blame where the error is one of theirs, else the launch. */
enum gate_status cuda_fail_more(struct gate_error *err, cudaError_t error);

/* Returns from the calling function when `call` fails. The one way to call the runtime here. */
#define CUDA_TRY(call, err)                                                                        \
    do {                                                                                           \
        const cudaError_t cuda_try_error_ = (call);                                                \
        if (cuda_try_error_ != cudaSuccess)                                                        \
            return cuda_fail((err), cuda_try_error_, #call);                                       \
    } while (0)

/* Calls the launch function and turns its status into an error. */
enum gate_status cuda_call_launch(struct cuda_device *d, device_launch_fn launch, void *context,
                                  unsigned index, struct gate_error *err);

/* cuda_time.cu: between cuda_hold() and cuda_release() the stream stands still, so that what the
 * host enqueues in between runs without gaps, however slow the host is. */

/* Enqueues a stamp of all multiprocessors; `which` is 0 before and 1 after. */
enum gate_status cuda_clock_stamp(struct cuda_device *d, int which, struct gate_error *err);

/* Runs what `enqueue` puts on the stream and times it. The code of its kernels must
 * be loaded before: that cannot be done while the stream is held. */
typedef enum gate_status (*cuda_enqueue_fn)(struct cuda_device *d, const void *work,
                                            struct gate_error *err);
enum gate_status cuda_time(struct cuda_device *d, cuda_enqueue_fn enqueue, const void *work,
                           struct device_time *out, struct gate_error *err);

/* cuda_capture.cu: launches, and behind them what `behind` enqueues unless it is NULL, as a graph,
 * which is the caller's even where it is refused. */
struct cuda_launches {
    device_launch_fn launch;
    void *context;
    unsigned n;
};
enum gate_status cuda_capture(struct cuda_device *d, const struct cuda_launches *launches,
                              cuda_enqueue_fn behind, const void *work, cudaGraph_t *graph,
                              struct gate_error *err);

/* ---- do the launches in a graph come one after the other? ----
 *
 * Launches that overlap take less time together than one by one, and their time is what is
 * measured.
 */

/* The questions have other names since CUDA 13, and do not tell the types of edges before 12.3. */
#if CUDART_VERSION >= 13000
#define GRAPH_EDGES cudaGraphGetEdges
#elif CUDART_VERSION >= 12030
#define GRAPH_EDGES cudaGraphGetEdges_v2
#endif

#ifdef GRAPH_EDGES
/* The edges of a graph of `nodes`, to be released in any case. */
struct cuda_edges {
    cudaGraphNode_t *from, *to;
    cudaGraphEdgeData *data;
    size_t n;
};
enum gate_status cuda_edges_of(cudaGraph_t graph, size_t nodes, struct cuda_edges *out,
                               struct gate_error *err);
void cuda_edges_release(struct cuda_edges *e);
#endif

/* Whether runtime and driver tell the order of launches; where they do not, none is checked. */
bool cuda_serial_is_told(void);

/*
 * cuda_kernels.cu: what the kernel nodes of a graph are. Nothing is known (n is 0) where the driver
 * does not tell, or a kernel is none that it can name. The list is the caller's, to be freed.
 */
struct device_kernels cuda_kernels_of(cudaGraph_t graph);

/* device_replay_nodes() and device_replay_transplant() of graphs. The new graph is
 * the caller's even where it fails. */
enum gate_status cuda_nodes_of(cudaGraph_t graph, unsigned launches, struct device_nodes *out,
                               struct gate_error *err);
enum gate_status cuda_transplant(const struct device_transplant *t, cudaGraph_t into,
                                 cudaGraph_t from, cudaGraph_t *graph, struct gate_error *err);

size_t cuda_compare_scratch_bytes(void);
void cuda_ceiling_free(struct cuda_device *d);

/* Members of the backend's table. */
#define CUDA_MEMBER(name) std::remove_pointer_t<decltype(device_backend::name)> cuda_##name
CUDA_MEMBER(alloc_apart);
CUDA_MEMBER(free_apart);
CUDA_MEMBER(fill_normal);
CUDA_MEMBER(fill_integers);
CUDA_MEMBER(compare);
CUDA_MEMBER(hash);
CUDA_MEMBER(launch_checked);
CUDA_MEMBER(replay_record);
CUDA_MEMBER(replay_delay);
CUDA_MEMBER(replay_run);
CUDA_MEMBER(replay_free);
CUDA_MEMBER(single_run);
CUDA_MEMBER(calls_run);
CUDA_MEMBER(control_run);
CUDA_MEMBER(poison_shared);
CUDA_MEMBER(hold);
CUDA_MEMBER(release);
CUDA_MEMBER(ceiling_run);
CUDA_MEMBER(replay_kernels);
CUDA_MEMBER(replay_nodes);
CUDA_MEMBER(replay_transplant);
CUDA_MEMBER(replay_room);
CUDA_MEMBER(rest);

#endif
