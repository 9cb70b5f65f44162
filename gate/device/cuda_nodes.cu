/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_nodes.cu: what each launch in a graph is made of, and a graph with some nodes of another.
 *
 * Launches that use one stream make a chain. Two of them correspond where each launch has the same
 * number of nodes, of the same types, that wait for each other in the same way. A kernel may take
 * the place of another whose arguments have the same sizes. What they mean is not known, so what a
 * graph with a transplanted node computes must be looked at.
 */
#include "gate/device/cuda_driver.cuh"

#include <stdlib.h>
#include <string.h>

#if CUDART_VERSION >= 13000
#define NEXT_NODES cudaGraphNodeGetDependentNodes
#define ADD_EDGES cudaGraphAddDependencies
#else
#define NEXT_NODES cudaGraphNodeGetDependentNodes_v2
#define ADD_EDGES cudaGraphAddDependencies_v2
#endif

enum { OWN_MAX = 8 /* allocations */ };

#ifdef GRAPH_EDGES

/* The nodes of a graph in the order in which they run, and what each waits for. */
struct chain {
    cudaGraphNode_t *node;
    cudaGraphEdgeData *edge; /* into it */
    unsigned n;
};

static void release(struct chain *c)
{
    free(c->node);
    free(c->edge);
}

static enum gate_status not_a_chain(struct gate_error *err)
{
    return gate_fail(err, GATE_USAGE, "the nodes of a launch do not run one after the other");
}

static enum gate_status walk(cudaGraph_t graph, struct chain *c, size_t count,
                             struct gate_error *err)
{
    size_t n = 1;
    if (cudaGraphGetRootNodes(graph, NULL, &n) != cudaSuccess || n != 1)
        return not_a_chain(err);
    CUDA_TRY(cudaGraphGetRootNodes(graph, c->node, &n), err);
    for (c->n = 1; c->n < count; c->n++) {
        cudaGraphNode_t next[2];
        cudaGraphEdgeData edge[2];
        n = 2;
        CUDA_TRY(NEXT_NODES(c->node[c->n - 1], next, edge, &n), err);
        if (n != 1)
            return not_a_chain(err);
        c->node[c->n] = next[0];
        c->edge[c->n] = edge[0];
    }
    return GATE_OK;
}

/* To be released in any case. *each: the nodes of a launch. */
static enum gate_status chain_of(cudaGraph_t graph, unsigned launches, struct chain *c,
                                 unsigned *each, struct gate_error *err)
{
    size_t count = 0;
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &count), err);
    if (launches == 0 || count == 0 || count % launches != 0)
        return gate_fail(err, GATE_USAGE, "not all launches have the same number of nodes");
    *each = (unsigned)(count / launches);
    if (*each > DEVICE_NODES_MAX)
        return gate_fail(err, GATE_USAGE, "a launch has %u nodes, and %d are the most", *each,
                         DEVICE_NODES_MAX);
    c->node = (cudaGraphNode_t *)xcalloc(count, sizeof(*c->node));
    c->edge = (cudaGraphEdgeData *)xcalloc(count, sizeof(*c->edge));
    return walk(graph, c, count, err);
}

static enum gate_status driver_of(struct cuda_driver *driver, struct gate_error *err)
{
    return cuda_driver_load(driver)
               ? GATE_OK
               : gate_fail(err, GATE_USAGE, "this driver does not tell what kernels a launch has");
}

/* ---- names ---- */

static enum gate_status name_node(const struct cuda_driver *d, cudaGraphNode_t node,
                                  struct device_nodes *out, struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaGraphNodeType type;
    const char *name = NULL;
    CUDA_TRY(cudaGraphNodeGetType(node, &type), err);
    const bool is_kernel = type == cudaGraphNodeTypeKernel;
    if (is_kernel && (!cuda_driver_node(d, node, &p) || d->name(&name, p.func) != CUDA_SUCCESS))
        return gate_fail(err, GATE_USAGE, "the driver does not name a kernel of the launch");
    out->name[out->n] = is_kernel                         ? name
                        : type == cudaGraphNodeTypeMemset ? "fill"
                        : type == cudaGraphNodeTypeMemcpy ? "copy"
                                                          : "other work";
    out->is_kernel[out->n++] = is_kernel;
    return GATE_OK;
}

enum gate_status cuda_nodes_of(cudaGraph_t graph, unsigned launches, struct device_nodes *out,
                               struct gate_error *err)
{
    struct cuda_driver driver;
    struct chain c = {};
    unsigned each = 0;
    enum gate_status status = driver_of(&driver, err);
    if (status == GATE_OK)
        status = chain_of(graph, launches, &c, &each, err);
    for (unsigned i = 0; i < each && status == GATE_OK; i++)
        status = name_node(&driver, c.node[i], out, err);
    release(&c);
    return status;
}

/* ---- do two nodes fit? ---- */

static bool is_shared(const struct device_transplant *t, uint64_t address)
{
    for (unsigned i = 0; i < t->n_shared; i++)
        if (address - (uint64_t)(uintptr_t)t->shared[i].data < t->shared[i].bytes)
            return true;
    return false;
}

/* Allocations of the library's own that a node's arguments point into. */
struct own_memory {
    CUdeviceptr base[OWN_MAX];
    unsigned n;
};

static void note_address(const struct cuda_driver *d, const struct device_transplant *t,
                         uint64_t address, struct own_memory *own)
{
    CUdeviceptr base = 0;
    if (is_shared(t, address) || own->n == OWN_MAX ||
        d->pointer(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS || !base)
        return;
    for (unsigned i = 0; i < own->n; i++)
        if (own->base[i] == base)
            return;
    own->base[own->n++] = base;
}

/* A struct that is an argument may have pointers in it: each aligned word may be one. */
static void look_at_kernel(const struct cuda_driver *d, const struct device_transplant *t,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *p, struct own_memory *own)
{
    size_t offset, bytes;
    uint64_t word;
    for (size_t i = 0; d->parameter(p->func, i, &offset, &bytes) == CUDA_SUCCESS; i++)
        for (size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
            memcpy(&word, (const char *)p->kernelParams[i] + at, sizeof(word));
            note_address(d, t, word, own);
        }
}

static struct own_memory own_memory_of(const struct cuda_driver *d,
                                       const struct device_transplant *t, cudaGraphNode_t node)
{
    struct own_memory own = {};
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaGraphNodeType type;
    cudaMemsetParams fill;
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess)
        return own;
    if (type == cudaGraphNodeTypeKernel && cuda_driver_node(d, node, &p) && p.kernelParams)
        look_at_kernel(d, t, &p, &own);
    if (type == cudaGraphNodeTypeMemset && cudaGraphMemsetNodeGetParams(node, &fill) == cudaSuccess)
        note_address(d, t, (uint64_t)(uintptr_t)fill.dst, &own);
    return own;
}

static bool have_common(const struct own_memory *a, const struct own_memory *b)
{
    for (unsigned i = 0; i < a->n; i++)
        for (unsigned k = 0; k < b->n; k++)
            if (a->base[i] == b->base[k])
                return true;
    return false;
}

/* Does a node get or give what it computes through memory that the other library knows nothing of?
 * Scratch of one node alone goes with it. */
static bool uses_private(const struct cuda_driver *d, const struct device_transplant *t,
                         const struct chain *c, unsigned each)
{
    const struct own_memory mine = own_memory_of(d, t, c->node[t->node]);
    if (mine.n == OWN_MAX) /* there may be more */
        return true;
    for (unsigned i = 0; i < each && mine.n > 0; i++) {
        const struct own_memory other = own_memory_of(d, t, c->node[i]);
        if (i != t->node && have_common(&mine, &other))
            return true;
    }
    return false;
}

static enum gate_status check_arguments(const struct cuda_driver *d,
                                        const CUDA_KERNEL_NODE_PARAMS_v2 *a,
                                        const CUDA_KERNEL_NODE_PARAMS_v2 *b, struct gate_error *err)
{
    size_t offset, bytes = 0, others = 0;
    for (size_t i = 0;; i++) {
        const bool more = d->parameter(a->func, i, &offset, &bytes) == CUDA_SUCCESS;
        const bool other = d->parameter(b->func, i, &offset, &others) == CUDA_SUCCESS;
        if (!more && !other)
            return i > 0 && (!a->kernelParams || !b->kernelParams)
                       ? gate_fail(err, GATE_USAGE, "the driver does not tell its arguments")
                       : GATE_OK;
        if (more != other)
            return gate_fail(err, GATE_USAGE, "the two kernels take unequal numbers of arguments");
        if (bytes != others)
            return gate_fail(err, GATE_USAGE,
                             "argument %zu of the two kernels is of %zu and %zu bytes", i + 1,
                             bytes, others);
    }
}

/* Of the first launch, which stands for all. */
static enum gate_status check_fit(const struct cuda_driver *d, const struct device_transplant *t,
                                  const struct chain *into, const struct chain *from, unsigned each,
                                  struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 a, b;
    if (into->n != from->n || t->node >= each)
        return gate_fail(err, GATE_USAGE, "the two sides have unequal numbers of nodes");
    if (memcmp(into->edge, from->edge, into->n * sizeof(*into->edge)) != 0)
        return gate_fail(err, GATE_USAGE, "the nodes wait for each other in another way");
    if (!cuda_driver_node(d, into->node[t->node], &a) ||
        !cuda_driver_node(d, from->node[t->node], &b))
        return gate_fail(err, GATE_USAGE, "it is no kernel that the driver tells of");
    TRY(check_arguments(d, &a, &b, err));
    if (uses_private(d, t, into, each) || uses_private(d, t, from, each))
        return gate_fail(err, GATE_USAGE,
                         "it shares memory of its library's own with other nodes of the launch");
    return GATE_OK;
}

/* ---- the graph ---- */

static enum gate_status driver_failed(struct gate_error *err, CUresult result, const char *what)
{
    return gate_fail(err, GATE_USAGE, "%s failed with CUDA driver error %d", what, (int)result);
}

/* In `graph`, a clone of the one that `into` is of. */
static enum gate_status replace(const struct cuda_driver *d, cudaGraph_t graph,
                                const struct chain *into, const struct chain *from, unsigned at,
                                struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUgraphNode added;
    cudaGraphNode_t old, beside;
    if (!cuda_driver_node(d, from->node[at], &p))
        return gate_fail(err, GATE_USAGE, "it is no kernel that the driver tells of");
    CUDA_TRY(cudaGraphNodeFindInClone(&old, into->node[at], graph), err);
    CUDA_TRY(cudaGraphDestroyNode(old), err);
    CUresult result = d->add(&added, (CUgraph)graph, NULL, 0, &p);
    if (result != CUDA_SUCCESS)
        return driver_failed(err, result, "cuGraphAddKernelNode");
    result = d->copy_settings(added, (CUgraphNode)from->node[at]);
    if (result != CUDA_SUCCESS)
        return driver_failed(err, result, "cuGraphKernelNodeCopyAttributes");
    const cudaGraphNode_t node = (cudaGraphNode_t)added;
    if (at > 0) {
        CUDA_TRY(cudaGraphNodeFindInClone(&beside, into->node[at - 1], graph), err);
        CUDA_TRY(ADD_EDGES(graph, &beside, &node, &into->edge[at], 1), err);
    }
    if (at + 1 < into->n) {
        CUDA_TRY(cudaGraphNodeFindInClone(&beside, into->node[at + 1], graph), err);
        CUDA_TRY(ADD_EDGES(graph, &node, &beside, &into->edge[at + 1], 1), err);
    }
    return GATE_OK;
}

static enum gate_status transplant(const struct device_transplant *t, cudaGraph_t into_graph,
                                   const struct chain *into, const struct chain *from,
                                   unsigned each, cudaGraph_t *graph, struct gate_error *err)
{
    struct cuda_driver driver;
    TRY(driver_of(&driver, err));
    TRY(check_fit(&driver, t, into, from, each, err));
    CUDA_TRY(cudaGraphClone(graph, into_graph), err);
    for (unsigned at = t->node; at < into->n; at += each)
        TRY(replace(&driver, *graph, into, from, at, err));
    return GATE_OK;
}

enum gate_status cuda_transplant(const struct device_transplant *t, cudaGraph_t into,
                                 cudaGraph_t from, cudaGraph_t *graph, struct gate_error *err)
{
    struct chain a = {}, b = {};
    unsigned each = 0, others = 0;
    enum gate_status status = chain_of(into, t->launches, &a, &each, err);
    if (status == GATE_OK)
        status = chain_of(from, t->launches, &b, &others, err);
    if (status == GATE_OK)
        status = transplant(t, into, &a, &b, each, graph, err);
    release(&a);
    release(&b);
    return status;
}

#else

static enum gate_status too_old(struct gate_error *err)
{
    return gate_fail(err, GATE_USAGE,
                     "the gate was built by a CUDA before 12.3, which does not "
                     "tell how nodes wait for each other");
}

enum gate_status cuda_nodes_of(cudaGraph_t graph, unsigned launches, struct device_nodes *out,
                               struct gate_error *err)
{
    (void)graph, (void)launches, (void)out;
    return too_old(err);
}

enum gate_status cuda_transplant(const struct device_transplant *t, cudaGraph_t into,
                                 cudaGraph_t from, cudaGraph_t *graph, struct gate_error *err)
{
    (void)t, (void)into, (void)from, (void)graph;
    return too_old(err);
}

#endif
