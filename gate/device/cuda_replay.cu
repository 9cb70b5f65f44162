/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_replay.cu: launches, one at a time under scrutiny, and many recorded as a CUDA graph, which
 * is made executable and replayed.
 */
#include "gate/device/cuda_device.cuh"

#include <limits.h>
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
 * every call, or have left one that the next call would be given: what that is the device still
 * says. Its work so far is waited for as that of a right launch is, so that the answer does not
 * depend on who is faster.
 */
static enum gate_status launch_refused(struct cuda_device *d, struct gate_error *err)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(d->stream);
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
    const uint64_t begin = cuda_global_ns();
    while (cuda_global_ns() - begin < span)
        continue;
}

static enum gate_status enqueue_delay(struct cuda_device *d, const void *ns, struct gate_error *err)
{
    delay<<<1, 1, 0, d->stream>>>((const uint64_t *)ns);
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
    TRY(write_delay(d, *delay_ns, 0, err));
    TRY(enqueue_delay(d, *delay_ns, err));
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
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
        TRY(make_delay(d, &r->delay_ns, err));
    const struct cuda_launches launches = {launch, context, n};
    TRY(cuda_capture(d, &launches, delayed ? enqueue_delay : NULL, r->delay_ns, &r->graph, err));
    return instantiate(d, r->graph, &r->exec, err);
}

enum gate_status cuda_replay_record(struct device *device, device_launch_fn launch, void *context,
                                    unsigned n, bool delayed, struct device_replay **out,
                                    struct gate_error *err)
{
    struct device_replay *r = (struct device_replay *)xcalloc(1, sizeof(*r));
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

enum gate_status cuda_replay_nodes(struct device *, struct device_replay *r, unsigned launches,
                                   struct device_nodes *out, struct gate_error *err)
{
    return cuda_nodes_of(r->graph, launches, out, err);
}

enum gate_status cuda_replay_transplant(struct device *device, const struct device_transplant *t,
                                        struct device_replay **out, struct gate_error *err)
{
    struct device_replay *r = (struct device_replay *)xcalloc(1, sizeof(*r));
    enum gate_status status = cuda_transplant(t, t->into->graph, t->from->graph, &r->graph, err);
    if (status == GATE_OK)
        status = instantiate(cuda_of(device), r->graph, &r->exec, err);
    if (status != GATE_OK) {
        cuda_replay_free(device, r);
        return status;
    }
    *out = r;
    return GATE_OK;
}

/*
 * A graph of kernels alone is started by one command, however many they are. With a fill or a copy
 * among them each node is a command of its own, and a stream takes about a thousand: on an H200
 * with driver 580 the host waited for the device in the midst of 512 fills and 512 kernels, which
 * it did not of 256 each.
 */
enum { MIXED_NODES_MAX = 512 };

unsigned cuda_replay_room(const struct device_replay *r)
{
    size_t count = 0, kernels = 0;
    if (cudaGraphGetNodes(r->graph, NULL, &count) != cudaSuccess || count == 0)
        return 1;
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)xcalloc(count, sizeof(*nodes));
    if (cudaGraphGetNodes(r->graph, nodes, &count) != cudaSuccess)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        cudaGraphNodeType type;
        kernels +=
            cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
    }
    free(nodes);
    if (count > 0 && kernels == count)
        return UINT_MAX;
    return count > 0 && count < MIXED_NODES_MAX ? (unsigned)(MIXED_NODES_MAX / count) : 1;
}

void cuda_replay_free(struct device *, struct device_replay *r)
{
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

/* The device is waited for in any case: the next calls must not find its queue full. */
enum gate_status cuda_calls_run(struct device *device, device_launch_fn launch, void *context,
                                struct device_calls calls, double *host_ns, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    enum gate_status status = GATE_OK;
    const double begin = clock_ns();
    for (unsigned i = 0; i < calls.n && status == GATE_OK; i++)
        status = cuda_call_launch(d, launch, context, calls.first + i, err);
    *host_ns = clock_ns() - begin;
    const cudaError_t executed = cudaDeviceSynchronize();
    TRY(status);
    CUDA_TRY(executed, err);
    return GATE_OK;
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
