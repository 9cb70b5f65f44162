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
#include <string.h>

extern "C" {
#include "gate/device/serial.h"
}

/* A launch that joins its streams ends with one node, and has hardly more than a few. */
#define ENDS_MAX ((size_t)1 << 23)

#define TOLD_SINCE 12030

#if CUDART_VERSION >= 13000
#define CAPTURE_INFO cudaStreamGetCaptureInfo
#else
#define CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#endif

/* The nodes that launches end with, in the order of the launches. */
struct ends {
    bool unknown; /* not told here (cuda_serial_is_told), or the capture is broken */
    cudaGraphNode_t *node;
    size_t n, room;
    size_t *end; /* by launch: where in `node` its own end */
    unsigned n_launches;
};

#ifdef GRAPH_EDGES

/* ---- what launches end with ---- */

static enum gate_status keep(struct ends *e, const cudaGraphNode_t *nodes, size_t n,
                             struct gate_error *err)
{
    if (n > ENDS_MAX - e->n)
        return gate_fail(err, GATE_WRONG,
                         "launch %u ends with %zu operations side by side, %zu with those of the "
                         "launches before; a launch that uses streams of its own joins them",
                         e->n_launches, n, e->n + n);
    if (e->n + n > e->room) {
        e->room = 2 * (e->n + n);
        e->node = (cudaGraphNode_t *)xrealloc(e->node, e->room, sizeof(*e->node));
    }
    for (size_t i = 0; i < n; i++)
        e->node[e->n++] = nodes[i];
    e->end[e->n_launches++] = e->n;
    return GATE_OK;
}

/* A driver of an older CUDA 12 than the runtime does not know the question. */
bool cuda_serial_is_told(void)
{
    int driver = 0;
    return cudaDriverGetVersion(&driver) == cudaSuccess && driver >= TOLD_SINCE;
}

/* Adds what the launch that was just captured into `stream` ends with. */
static enum gate_status add_ends(struct ends *e, cudaStream_t stream, struct gate_error *err)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *nodes = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t n = 0;
    if (!e->n_launches)
        e->unknown = !cuda_serial_is_told();
    if (e->unknown)
        return GATE_OK;
    CUDA_TRY(CAPTURE_INFO(stream, &status, NULL, NULL, &nodes, &edges, &n), err);
    e->unknown = status != cudaStreamCaptureStatusActive;
    return e->unknown ? GATE_OK : keep(e, nodes, n, err);
}

/* ---- the graph ---- */

/* How many edges there are cannot be asked where they have types: room is made until some is left.
 */
enum gate_status cuda_edges_of(cudaGraph_t graph, size_t nodes, struct cuda_edges *out,
                               struct gate_error *err)
{
    for (size_t room = 2 * nodes + 8;; room *= 2) {
        out->from = (cudaGraphNode_t *)xrealloc(out->from, room, sizeof(*out->from));
        out->to = (cudaGraphNode_t *)xrealloc(out->to, room, sizeof(*out->to));
        out->data = (cudaGraphEdgeData *)xrealloc(out->data, room, sizeof(*out->data));
        memset(out->data, 0, room * sizeof(*out->data));
        out->n = room;
        CUDA_TRY(GRAPH_EDGES(graph, out->from, out->to, out->data, &out->n), err);
        if (out->n < room)
            return GATE_OK;
    }
}

void cuda_edges_release(struct cuda_edges *e)
{
    free(e->from);
    free(e->to);
    free(e->data);
}

/* A graph as CUDA tells of it, and as serial.h wants it. */
struct told {
    cudaGraphNode_t *nodes; /* sorted, so that a node's number is found */
    size_t n_nodes;
    struct cuda_edges told;
    struct serial_edge *edges;
    uint32_t *last;
};

static int by_handle(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const cudaGraphNode_t *)a;
    const uintptr_t y = (uintptr_t) * (const cudaGraphNode_t *)b;
    return (x > y) - (x < y);
}

/* A node that is none of the graph gets a number that is out of range. */
static uint32_t number_of(const struct told *t, cudaGraphNode_t node)
{
    const void *found = bsearch(&node, t->nodes, t->n_nodes, sizeof(node), by_handle);
    return found ? (uint32_t)((const cudaGraphNode_t *)found - t->nodes) : UINT32_MAX;
}

static enum gate_status ask(struct told *t, cudaGraph_t graph, const struct ends *ends,
                            struct gate_error *err)
{
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &t->n_nodes), err);
    if (t->n_nodes >= UINT32_MAX)
        return gate_fail(err, GATE_ENVIRONMENT, "out of memory for %zu graph nodes", t->n_nodes);
    t->nodes = (cudaGraphNode_t *)xcalloc(t->n_nodes, sizeof(*t->nodes));
    CUDA_TRY(cudaGraphGetNodes(graph, t->nodes, &t->n_nodes), err);
    qsort(t->nodes, t->n_nodes, sizeof(*t->nodes), by_handle);
    TRY(cuda_edges_of(graph, t->n_nodes, &t->told, err));
    t->edges = (struct serial_edge *)xcalloc(t->told.n, sizeof(*t->edges));
    t->last = (uint32_t *)xcalloc(ends->n, sizeof(*t->last));
    for (size_t i = 0; i < t->told.n; i++) {
        t->edges[i].from = number_of(t, t->told.from[i]);
        t->edges[i].to = number_of(t, t->told.to[i]);
        t->edges[i].early = t->told.data[i].type == cudaGraphDependencyTypeProgrammatic;
    }
    for (size_t i = 0; i < ends->n; i++)
        t->last[i] = number_of(t, ends->node[i]);
    return GATE_OK;
}

static enum gate_status judge(const struct told *t, const struct ends *ends, struct gate_error *err)
{
    struct serial_graph g = {};
    unsigned launch = 0;
    g.n_nodes = (uint32_t)t->n_nodes;
    g.edges = t->edges;
    g.n_edges = t->told.n;
    g.n_launches = ends->n_launches;
    g.last = t->last;
    g.last_end = ends->end;
    switch (serial_check(&g, &launch)) {
    case SERIAL:
        return GATE_OK;
    case SERIAL_NOTHING:
        return gate_fail(err, GATE_WRONG,
                         "launch %u left no operation that its stream waits for; a launch must "
                         "enqueue its work on the stream it is given",
                         launch);
    case SERIAL_OVERLAPS:
        return gate_fail(err, GATE_WRONG,
                         "launch %u begins before launch %u has ended (work on a stream of its "
                         "own that does not wait for all of the launch before): neither takes the "
                         "time that is measured",
                         launch, launch - 1);
    case SERIAL_EARLY:
        return gate_fail(err, GATE_WRONG,
                         "launch %u begins before launch %u has ended (programmatic dependent "
                         "launch across launches): neither takes the time that is measured",
                         launch, launch - 1);
    default:
        return gate_fail(err, GATE_WRONG,
                         "launch %u did more to the recording than to add to it: the graph's nodes "
                         "and edges do not fit together",
                         launch);
    }
}

/* What a graph must be like is serial.h's. GATE_WRONG: a launch left nothing in the graph, or
 * begins before the one before it has ended. */
static enum gate_status check_serial(cudaGraph_t graph, const struct ends *ends,
                                     struct gate_error *err)
{
    struct told t = {};
    if (ends->unknown)
        return GATE_OK;
    enum gate_status status = ask(&t, graph, ends, err);
    if (status == GATE_OK)
        status = judge(&t, ends, err);
    free(t.nodes);
    cuda_edges_release(&t.told);
    free(t.edges);
    free(t.last);
    return status;
}

#else

bool cuda_serial_is_told(void)
{
    return false;
}

static enum gate_status add_ends(struct ends *e, cudaStream_t, struct gate_error *)
{
    e->unknown = true;
    return GATE_OK;
}

static enum gate_status check_serial(cudaGraph_t, const struct ends *, struct gate_error *)
{
    return GATE_OK;
}

#endif

/* ---- the capture ---- */

static const char capture_rule[] =
    "a launch must only enqueue work on the stream it is given: it may not synchronise, allocate, "
    "free, call back to the host or use another stream";

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
        if (error != cudaSuccess)
            break;
        const bool allocates =
            type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree;
        if (allocates || type == cudaGraphNodeTypeHost)
            status = gate_fail(err, GATE_WRONG, "the launches %s; %s",
                               allocates ? "allocate or free memory" : "call back to the host",
                               capture_rule);
    }
    free(nodes);
    CUDA_TRY(error, err);
    return status;
}

/* The launches, each with the nodes that it ends with, and what comes behind them. */
static enum gate_status enqueue_all(struct cuda_device *d, const struct cuda_launches *launches,
                                    cuda_enqueue_fn behind, const void *work, struct ends *ends,
                                    struct gate_error *err)
{
    for (unsigned i = 0; i < launches->n; i++) {
        TRY(cuda_call_launch(d, launches->launch, launches->context, i, err));
        TRY(add_ends(ends, d->stream, err));
    }
    /* Into a capture that a launch broke nothing can be enqueued: its end tells that. */
    return behind && cudaPeekAtLastError() == cudaSuccess ? behind(d, work, err) : GATE_OK;
}

/* In the global mode every call that could disturb a capture is an error, whichever thread makes
 * it. Whatever happens the stream ends up as it was and no error is left behind. */
static enum gate_status capture(struct cuda_device *d, const struct cuda_launches *launches,
                                cuda_enqueue_fn behind, const void *work, struct ends *ends,
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
    struct ends ends = {};
    ends.end = (size_t *)xcalloc(launches->n, sizeof(*ends.end));
    enum gate_status status = capture(d, launches, behind, work, &ends, graph, err);
    if (status == GATE_OK)
        status = check_nodes(*graph, launches->n, behind != NULL, err);
    if (status == GATE_OK)
        status = check_serial(*graph, &ends, err);
    free(ends.node);
    free(ends.end);
    return status;
}
