/*
 * cuda_replay.cu: launches, one at a time under scrutiny, and many recorded as a CUDA graph.
 *
 * The backend's stream is a blocking one on purpose: a kernel that launches into the legacy default
 * stream is then still ordered with it, and while the stream is being captured such a launch is an
 * error instead of work that nobody times.
 */
#include "cuda_device.cuh"

#include <stdlib.h>
#include <time.h>

struct device_replay {
    cudaGraphExec_t exec;
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

enum gate_status cuda_launch_checked(struct device *device, device_launch_fn launch, void *context,
                                     unsigned index, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const cudaError_t before = cudaGetLastError();
    if (before != cudaSuccess)
        return launch_failed(err, before, index, "before it began");
    GATE_TRY(cuda_call_launch(d, launch, context, index, err));
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

/* A launch that left no node did its work, if any, where it would not be timed. */
static enum gate_status check_nodes(cudaGraph_t graph, unsigned launches, struct gate_error *err)
{
    size_t count = 0;
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &count), err);
    if (count < launches)
        return gate_fail(err, GATE_WRONG, "%u launches left only %zu operations on the stream; %s",
                         launches, count, capture_rule);
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

/*
 * Captures the launches. In the global mode every call that could disturb a capture is an error,
 * whichever thread makes it. Whatever happens the stream ends up as it was and no error is left
 * behind; on success the graph is the caller's.
 */
static enum gate_status capture(struct cuda_device *d, device_launch_fn launch, void *context,
                                unsigned n, cudaGraph_t *graph, struct gate_error *err)
{
    CUDA_TRY(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeGlobal), err);
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < n && status == GATE_OK; i++)
        status = cuda_call_launch(d, launch, context, i, err);
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

/* Makes the graph executable and moves it to the device, so that a replay only starts it. */
static enum gate_status instantiate(struct cuda_device *d, cudaGraph_t graph, cudaGraphExec_t *exec,
                                    struct gate_error *err)
{
    CUDA_TRY(cudaGraphInstantiateWithFlags(exec, graph, 0), err);
    CUDA_TRY(cudaGraphUpload(*exec, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

enum gate_status cuda_replay_record(struct device *device, device_launch_fn launch, void *context,
                                    unsigned n, struct device_replay **out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    cudaGraph_t graph = NULL;
    GATE_TRY(capture(d, launch, context, n, &graph, err));
    struct device_replay *r = (struct device_replay *)calloc(1, sizeof(*r));
    enum gate_status status =
        r ? check_nodes(graph, n, err)
          : gate_fail(err, GATE_ENVIRONMENT, "out of memory for a replay of %u launches", n);
    if (status == GATE_OK)
        status = instantiate(d, graph, &r->exec, err);
    (void)cudaGraphDestroy(graph);
    if (status != GATE_OK) {
        cuda_replay_free(device, r);
        return status;
    }
    *out = r;
    return GATE_OK;
}

void cuda_replay_free(struct device *device, struct device_replay *r)
{
    (void)device;
    if (!r)
        return;
    if (r->exec)
        (void)cudaGraphExecDestroy(r->exec);
    free(r);
}

static double host_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Between the two events there is the graph and nothing else. */
static enum gate_status enqueue_replay(struct cuda_device *d, const struct device_replay *r,
                                       struct gate_error *err)
{
    GATE_TRY(cuda_clock_stamp(d, 0, err));
    CUDA_TRY(cudaEventRecord(d->start, d->stream), err);
    CUDA_TRY(cudaGraphLaunch(r->exec, d->stream), err);
    CUDA_TRY(cudaEventRecord(d->stop, d->stream), err);
    return cuda_clock_stamp(d, 1, err);
}

enum gate_status cuda_replay_run(struct device *device, struct device_replay *r,
                                 struct device_time *out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    GATE_TRY(cuda_hold(d, err));
    const enum gate_status enqueued = enqueue_replay(d, r, err);
    const double begin = host_now_ns();
    cuda_release(d);
    GATE_TRY(enqueued);
    CUDA_TRY(cudaDeviceSynchronize(), err);
    const double end = host_now_ns();
    GATE_TRY(cuda_hold_check(d, err));
    float ms;
    CUDA_TRY(cudaEventElapsedTime(&ms, d->start, d->stop), err);
    out->device_ns = 1e6 * (double)ms;
    out->host_ns = end - begin;
    out->sm_clock_mhz = cuda_clock_mhz(d);
    return GATE_OK;
}
