/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_serial.cuh: do the launches in a CUDA graph come one after the other?
 *
 * Launches that overlap take less time together than one by one, and their time is what is
 * measured.
 */
#ifndef GATE_DEVICE_CUDA_SERIAL_CUH
#define GATE_DEVICE_CUDA_SERIAL_CUH

#include "gate/device/cuda_device.cuh"

/* The questions have other names since CUDA 13, and do not tell the types of edges before 12.3. */
#if CUDART_VERSION >= 13000
#define GRAPH_EDGES cudaGraphGetEdges
#elif CUDART_VERSION >= 12030
#define GRAPH_EDGES cudaGraphGetEdges_v2
#endif

/* The nodes that launches end with, in the order of the launches. All zero: of no launch. */
struct cuda_ends {
    bool unknown; /* not told here (cuda_serial_is_told), or the capture is broken */
    cudaGraphNode_t *node;
    size_t n, room;
    size_t *end; /* by launch: where in `node` its own end */
    unsigned n_launches, launches_room;
};

/* Adds what the launch that was just captured into `stream` ends with. */
enum gate_status cuda_ends_add(struct cuda_ends *e, cudaStream_t stream, struct gate_error *err);
void cuda_ends_release(struct cuda_ends *e);

/* Whether runtime and driver tell the order of launches; where they do not, none is checked. */
bool cuda_serial_is_told(void);

/* GATE_WRONG: a launch left nothing in the graph, or begins before the one before it has ended. */
enum gate_status cuda_check_serial(cudaGraph_t graph, const struct cuda_ends *ends,
                                   struct gate_error *err);

#endif
