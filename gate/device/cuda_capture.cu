/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_capture.cu: launches become a CUDA graph, and that they did no more than they may.
 *
 * The backend's stream is a blocking one on purpose: a kernel that launches into the legacy default
 * stream is then still ordered with it, and while the stream is being captured such a launch is an
 * error instead of work that nobody times.
 */
#include "gate/device/cuda_device.cuh"

#include <stdlib.h>

static const char capture_rule[] =
    "a launch must only enqueue work on the stream it is given: it may not synchronise, allocate, "
    "free, call back to the host or use another stream";

static enum gate_status refuse_node(cudaGraphNodeType type, struct gate_error *err)
{
    switch (type) {
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
        return gate_fail(err, GATE_WRONG, "the launches allocate or free memory; %s", capture_rule);
    case cudaGraphNodeTypeHost:
        return gate_fail(err, GATE_WRONG, "the launches call back to the host; %s", capture_rule);
    default:
        return GATE_OK;
    }
}

/* A launch that left no node did its work, if any, where it would not be timed. `others`: nodes
 * that are the gate's own. */
static enum gate_status check_nodes(cudaGraph_t graph, unsigned launches, unsigned others,
                                    struct gate_error *err)
{
    size_t count = 0;
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &count), err);
    if (count < (size_t)launches + others)
        return gate_fail(err, GATE_WRONG, "%u launches left only %zu operations on the stream; %s",
                         launches, count - others, capture_rule);
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)xcalloc(count, sizeof(*nodes));
    cudaError_t error = cudaGraphGetNodes(graph, nodes, &count);
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < count && error == cudaSuccess && status == GATE_OK; i++) {
        cudaGraphNodeType type;
        error = cudaGraphNodeGetType(nodes[i], &type);
        if (error == cudaSuccess)
            status = refuse_node(type, err);
    }
    free(nodes);
    CUDA_TRY(error, err);
    return status;
}

/* The launches, each with the nodes that it ends with, and what comes behind them. */
static enum gate_status enqueue_all(struct cuda_device *d, const struct cuda_launches *launches,
                                    cuda_enqueue_fn behind, const void *work,
                                    struct cuda_ends *ends, struct gate_error *err)
{
    for (unsigned i = 0; i < launches->n; i++) {
        TRY(cuda_call_launch(d, launches->launch, launches->context, i, err));
        TRY(cuda_ends_add(ends, d->stream, err));
    }
    /* Into a capture that a launch broke nothing can be enqueued: its end tells that. */
    return behind && cudaPeekAtLastError() == cudaSuccess ? behind(d, work, err) : GATE_OK;
}

/* In the global mode every call that could disturb a capture is an error, whichever thread makes
 * it. Whatever happens the stream ends up as it was and no error is left behind. */
static enum gate_status capture(struct cuda_device *d, const struct cuda_launches *launches,
                                cuda_enqueue_fn behind, const void *work, struct cuda_ends *ends,
                                cudaGraph_t *graph, struct gate_error *err)
{
    CUDA_TRY(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeGlobal), err);
    const enum gate_status status = enqueue_all(d, launches, behind, work, ends, err);
    const cudaError_t during = cudaGetLastError();
    const cudaError_t ended = cudaStreamEndCapture(d->stream, graph);
    (void)cudaGetLastError();
    const cudaError_t error = ended != cudaSuccess ? ended : during;
    if (status == GATE_OK && error == cudaSuccess)
        return GATE_OK;
    if (ended == cudaSuccess)
        (void)cudaGraphDestroy(*graph);
    *graph = NULL;
    if (error == cudaSuccess)
        return gate_fail_context(err, "while the launches were recorded (%s)", capture_rule);
    return gate_fail(err, GATE_WRONG, "the launches cannot be recorded: %s (%s); %s",
                     cudaGetErrorString(error), cudaGetErrorName(error), capture_rule);
}

enum gate_status cuda_capture(struct cuda_device *d, const struct cuda_launches *launches,
                              cuda_enqueue_fn behind, const void *work, cudaGraph_t *graph,
                              struct gate_error *err)
{
    struct cuda_ends ends = {};
    enum gate_status status = capture(d, launches, behind, work, &ends, graph, err);
    if (status == GATE_OK)
        status = check_nodes(*graph, launches->n, behind != NULL, err);
    if (status == GATE_OK)
        status = cuda_check_serial(*graph, &ends, err);
    cuda_ends_release(&ends);
    return status;
}
