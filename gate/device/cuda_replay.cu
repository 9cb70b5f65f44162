/*
 * cuda_replay.cu: launches, one at a time under scrutiny, and many recorded as a CUDA graph.
 *
 * The backend's stream is a blocking one on purpose: a kernel that launches into the legacy default
 * stream is then still ordered with it, and while the stream is being captured such a launch is an
 * error instead of work that nobody times.
 */
#include "cuda_device.cuh"

#include <stdlib.h>

/* A delay is a share of a replay of milliseconds; what is longer is a mistake of the caller. */
#define DELAY_MAX_NS 1e9

struct device_replay {
    cudaGraph_t graph; /* kept for those who ask what it is made of */
    cudaGraphExec_t exec;
    uint64_t *delay_ns; /* on the device, read by the delay node; NULL: there is no such node */
    struct device_kernels kernels;
};

/* Whatever goes wrong in the middle of a launch the launch is to blame, unless the device or the
 * driver failed. */
static enum gate_status launch_failed(struct gate_error *err, cudaError_t error, unsigned index,
                                      const char *when)
{
    if (cuda_fail(err, error, "a launch") == GATE_ENVIRONMENT)
        return GATE_ENVIRONMENT;
    return gate_fail(err, GATE_WRONG, "launch %u failed %s: %s (%s)", index, when,
                     cudaGetErrorString(error), cudaGetErrorName(error));
}

/*
 * A launch that says no more than that it failed may have met an error that the device keeps for
 * every call: what that is the device still says. Its work so far is waited for as that of a right
 * launch is, so that the answer does not depend on who is faster.
 */
static enum gate_status launch_refused(struct cuda_device *d, struct gate_error *err)
{
    cudaError_t error = cudaStreamSynchronize(d->stream);
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize();
    return error == cudaSuccess ? GATE_WRONG : cuda_fail_more(err, error);
}

enum gate_status cuda_launch_checked(struct device *device, device_launch_fn launch, void *context,
                                     unsigned index, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const cudaError_t before = cudaGetLastError();
    if (before != cudaSuccess)
        return launch_failed(err, before, index, "before it began");
    if (cuda_call_launch(d, launch, context, index, err) != GATE_OK)
        return launch_refused(d, err);
    const cudaError_t launched = cudaGetLastError();
    if (launched != cudaSuccess)
        return launch_failed(err, launched, index, "when it was enqueued");
    const cudaError_t executed = cudaStreamSynchronize(d->stream);
    if (executed != cudaSuccess)
        return launch_failed(err, executed, index, "while it ran");
    const cudaError_t elsewhere = cudaDeviceSynchronize();
    if (elsewhere != cudaSuccess)
        return launch_failed(err, elsewhere, index, "while it ran on another stream");
    return GATE_OK;
}

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

/* A launch that left no node did its work, if any, where it would not be timed. `delayed`: one of
 * the nodes is the gate's own. */
static enum gate_status check_nodes(cudaGraph_t graph, unsigned launches, bool delayed,
                                    struct gate_error *err)
{
    size_t count = 0;
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &count), err);
    if (count < (size_t)launches + delayed)
        return gate_fail(err, GATE_WRONG, "%u launches left only %zu operations on the stream; %s",
                         launches, count - delayed, capture_rule);
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)calloc(count, sizeof(*nodes));
    if (!nodes)
        return gate_fail(err, GATE_ENVIRONMENT, "out of memory for %zu graph nodes", count);
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

static __device__ uint64_t global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/*
 * Adds *ns to a replay. The span begins when *ns has been read, so that node and read cost the same
 * however long the delay is, zero included, and cancel between two replays that both have the node.
 * It is true to a step of the global timer, 32 ns on Hopper and up to 1 us on older chips: each
 * delay is off by less than that, their mean by at most half of it. The SM clock would be finer,
 * but how many ns its cycles last is just what changes.
 */
static __global__ void delay(const uint64_t *ns)
{
    const uint64_t span = *ns;
    if (span == 0)
        return;
    const uint64_t begin = global_ns();
    while (global_ns() - begin < span)
        continue;
}

static enum gate_status enqueue_delay(struct cuda_device *d, const uint64_t *ns,
                                      struct gate_error *err)
{
    delay<<<1, 1, 0, d->stream>>>(ns);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static enum gate_status write_delay(struct cuda_device *d, uint64_t *to, uint64_t ns,
                                    struct gate_error *err)
{
    CUDA_TRY(cudaMemcpyAsync(to, &ns, sizeof(ns), cudaMemcpyHostToDevice, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

/* The kernel runs once outside of any graph, so that its code is loaded before it is captured. */
static enum gate_status make_delay(struct cuda_device *d, uint64_t **delay_ns,
                                   struct gate_error *err)
{
    CUDA_TRY(cudaMalloc((void **)delay_ns, sizeof(**delay_ns)), err);
    GATE_TRY(write_delay(d, *delay_ns, 0, err));
    GATE_TRY(enqueue_delay(d, *delay_ns, err));
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

#define LAST_MAX ((size_t)16)

/* The nodes that a recorded launch ends with. */
struct last_nodes {
    bool known; /* not where the runtime or the driver is too old to tell */
    cudaGraphNode_t node[LAST_MAX];
    size_t n;
};

/* A driver of an older CUDA 12 than the runtime has none of these questions. */
static cudaError_t unless_too_old(cudaError_t error, bool *known)
{
    *known = error == cudaSuccess;
    if (error != cudaErrorCallRequiresNewerDriver && error != cudaErrorNotSupported)
        return error;
    (void)cudaGetLastError();
    return cudaSuccess;
}

/* The types of the edges from a node, and how many there are. A graph is asked by other names since
 * CUDA 13, and had no types before 12.3. */
static cudaError_t edges_from(cudaGraphNode_t node, cudaGraphEdgeData *edges, size_t *n,
                              bool *known)
{
    cudaGraphNode_t to[LAST_MAX];
    *n = LAST_MAX;
#if CUDART_VERSION >= 13000
    return unless_too_old(cudaGraphNodeGetDependentNodes(node, to, edges, n), known);
#elif CUDART_VERSION >= 12030
    return unless_too_old(cudaGraphNodeGetDependentNodes_v2(node, to, edges, n), known);
#else
    (void)node, (void)to, (void)edges;
    *known = false;
    return cudaSuccess;
#endif
}

/* Nothing is known of a capture that a launch broke: its end tells that. */
static cudaError_t find_last(struct cuda_device *d, struct last_nodes *last)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *nodes = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t n = 0;
    cudaError_t error = cudaErrorNotSupported;
#if CUDART_VERSION >= 13000
    error = cudaStreamGetCaptureInfo(d->stream, &status, NULL, NULL, &nodes, &edges, &n);
#elif CUDART_VERSION >= 12030
    error = cudaStreamGetCaptureInfo_v3(d->stream, &status, NULL, NULL, &nodes, &edges, &n);
#else
    (void)d, (void)nodes, (void)edges;
#endif
    error = unless_too_old(error, &last->known);
    last->known &= status == cudaStreamCaptureStatusActive;
    last->n = !last->known ? 0 : n < LAST_MAX ? n : LAST_MAX;
    for (size_t i = 0; i < last->n; i++)
        last->node[i] = nodes[i];
    return error;
}

/* A programmatic edge from the end of a launch lets the next one begin before it is done. */
static enum gate_status check_edges(cudaGraphNode_t node, unsigned index, struct gate_error *err)
{
    cudaGraphEdgeData edges[LAST_MAX];
    bool known;
    size_t n;
    CUDA_TRY(edges_from(node, edges, &n, &known), err);
    for (size_t j = 0; known && j < n && j < LAST_MAX; j++)
        if (edges[j].type == cudaGraphDependencyTypeProgrammatic)
            return gate_fail(err, GATE_WRONG,
                             "launch %u begins before launch %u has ended (programmatic "
                             "dependent launch across launches): neither takes the time that "
                             "is measured",
                             index, index - 1);
    return GATE_OK;
}

/*
 * Launch `index` into the capture; `last` holds what the one before it ended with. Its edges are
 * looked at only while the capture is whole: of a broken one the nodes may be gone.
 */
static enum gate_status capture_launch(struct cuda_device *d, device_launch_fn launch,
                                       void *context, unsigned index, struct last_nodes *last,
                                       struct gate_error *err)
{
    struct last_nodes now = {};
    GATE_TRY(cuda_call_launch(d, launch, context, index, err));
    CUDA_TRY(find_last(d, &now), err);
    for (size_t i = 0; now.known && i < last->n; i++)
        GATE_TRY(check_edges(last->node[i], index, err));
    *last = now;
    return GATE_OK;
}

/*
 * Captures the launches, and the delay behind them unless `delay_ns` is NULL. In the global mode
 * every call that could disturb a capture is an error, whichever thread makes it. Whatever happens
 * the stream ends up as it was and no error is left behind; on success the graph is the caller's.
 */
static enum gate_status capture(struct cuda_device *d, device_launch_fn launch, void *context,
                                unsigned n, const uint64_t *delay_ns, cudaGraph_t *graph,
                                struct gate_error *err)
{
    CUDA_TRY(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeGlobal), err);
    enum gate_status status = GATE_OK;
    struct last_nodes last = {};
    for (unsigned i = 0; i < n && status == GATE_OK; i++)
        status = capture_launch(d, launch, context, i, &last, err);
    const cudaError_t during = cudaGetLastError();
    if (status == GATE_OK && during == cudaSuccess && delay_ns)
        status = enqueue_delay(d, delay_ns, err);
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

/* Makes the graph executable and moves it to the device, so that a replay only starts it. */
static enum gate_status instantiate(struct cuda_device *d, cudaGraph_t graph, cudaGraphExec_t *exec,
                                    struct gate_error *err)
{
    CUDA_TRY(cudaGraphInstantiateWithFlags(exec, graph, 0), err);
    CUDA_TRY(cudaGraphUpload(*exec, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

static enum gate_status record(struct cuda_device *d, device_launch_fn launch, void *context,
                               unsigned n, bool delayed, struct device_replay *r,
                               struct gate_error *err)
{
    if (delayed)
        GATE_TRY(make_delay(d, &r->delay_ns, err));
    GATE_TRY(capture(d, launch, context, n, r->delay_ns, &r->graph, err));
    GATE_TRY(check_nodes(r->graph, n, delayed, err));
    return instantiate(d, r->graph, &r->exec, err);
}

enum gate_status cuda_replay_record(struct device *device, device_launch_fn launch, void *context,
                                    unsigned n, bool delayed, struct device_replay **out,
                                    struct gate_error *err)
{
    struct device_replay *r = (struct device_replay *)calloc(1, sizeof(*r));
    if (!r)
        return gate_fail(err, GATE_ENVIRONMENT, "out of memory for a replay of %u launches", n);
    const enum gate_status status = record(cuda_of(device), launch, context, n, delayed, r, err);
    if (status != GATE_OK) {
        cuda_replay_free(device, r);
        return status;
    }
    *out = r;
    return GATE_OK;
}

enum gate_status cuda_replay_delay(struct device *device, struct device_replay *r, double ns,
                                   struct gate_error *err)
{
    if (!r->delay_ns)
        return gate_fail(err, GATE_INTERNAL, "the replay was recorded without a delay");
    if (!(ns >= 0.0 && ns <= DELAY_MAX_NS))
        return gate_fail(err, GATE_INTERNAL, "a replay cannot be delayed by %g ns", ns);
    return write_delay(cuda_of(device), r->delay_ns, (uint64_t)(ns + 0.5), err);
}

/* Most recordings are not asked: they are made to see how long a launch takes. */
struct device_kernels cuda_replay_kernels(struct device_replay *r)
{
    if (!r->kernels.list)
        r->kernels = cuda_kernels_of(r->graph);
    return r->kernels;
}

void cuda_replay_free(struct device *device, struct device_replay *r)
{
    (void)device;
    if (!r)
        return;
    if (r->exec)
        (void)cudaGraphExecDestroy(r->exec);
    if (r->graph)
        (void)cudaGraphDestroy(r->graph);
    if (r->delay_ns)
        (void)cudaFree(r->delay_ns);
    free((void *)r->kernels.list);
    free(r);
}

static enum gate_status enqueue_graph(struct cuda_device *d, const void *exec,
                                      struct gate_error *err)
{
    CUDA_TRY(cudaGraphLaunch((cudaGraphExec_t)exec, d->stream), err);
    return GATE_OK;
}

enum gate_status cuda_replay_run(struct device *device, struct device_replay *r,
                                 struct device_time *out, struct gate_error *err)
{
    return cuda_time(cuda_of(device), enqueue_graph, r->exec, out, err);
}
