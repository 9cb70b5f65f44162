/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_kernels.cu: what kernels a graph is made of, asked of the driver.
 *
 * The runtime knows only kernels that it launched itself, and vendors' libraries launch theirs by
 * the driver. Its functions are looked up by name, since names and argument lists came with drivers
 * of CUDA 12.3 and 12.4 only; without them nothing is known.
 *
 * `sequence` shall be equal only where the work is, so all bytes of an argument count: what a
 * struct means is not known. Padding that a library leaves undefined therefore makes equal work
 * look different, as does an order of nodes other than that of their launch, which the runtime
 * keeps without promising it. Both are errors to the safe side: "not known to be the same". The
 * edges of the graph are part of it: the same nodes one after the other and side by side are not
 * the same.
 */
#include "gate/device/cuda_device.cuh"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 64 /* different ones in one replay */

/* What is asked of the driver about kernel nodes. */
struct driver {
    CUresult (*node)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *);
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                    const CUDA_KERNEL_NODE_PARAMS_v2 *);
    CUresult (*copy_settings)(CUgraphNode, CUgraphNode);
    CUresult (*function)(CUfunction *, CUkernel);
    CUresult (*name)(const char **, CUfunction);
    CUresult (*attribute)(int *, CUfunction_attribute, CUfunction);
    CUresult (*parameter)(CUfunction, size_t, size_t *, size_t *);
    CUresult (*setting)(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue *);
    CUresult (*pointer)(void *, CUpointer_attribute, CUdeviceptr);
};

/* The kernels found so far. */
struct kernel_list {
    struct device_kernel kernel[KERNELS_MAX];
    CUDA_KERNEL_NODE_PARAMS_v2 launch[KERNELS_MAX]; /* the first of each */
    size_t n;
    uint64_t sequence, order;
};

/* False: this driver has not all of it. It is loaded since the runtime uses it. */
static bool load_driver(struct driver *d)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library && driver_symbol(library, "cuGraphKernelNodeGetParams_v2", &d->node) &&
           driver_symbol(library, "cuGraphAddKernelNode_v2", &d->add) &&
           driver_symbol(library, "cuGraphKernelNodeCopyAttributes", &d->copy_settings) &&
           driver_symbol(library, "cuKernelGetFunction", &d->function) &&
           driver_symbol(library, "cuFuncGetName", &d->name) &&
           driver_symbol(library, "cuFuncGetAttribute", &d->attribute) &&
           driver_symbol(library, "cuFuncGetParamInfo", &d->parameter) &&
           driver_symbol(library, "cuGraphKernelNodeGetAttribute", &d->setting) &&
           driver_symbol(library, "cuPointerGetAttribute", &d->pointer);
}

/* What a kernel node launches, `func` filled in. */
static bool look_at_node(const struct driver *d, cudaGraphNode_t node,
                         CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    memset(p, 0, sizeof(*p));
    return d->node((CUgraphNode)node, p) == CUDA_SUCCESS &&
           (p->func || d->function(&p->func, p->kern) == CUDA_SUCCESS);
}

/* The arguments of a launch, by value: that of a pointer is where it points to. */
static bool mix_parameters(const struct driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
                           uint64_t *hash)
{
    size_t offset, bytes;
    for (size_t i = 0; d->parameter(p->func, i, &offset, &bytes) == CUDA_SUCCESS; i++) {
        if (!p->kernelParams)
            return false;
        *hash = seed_hash(*hash, p->kernelParams[i], bytes);
    }
    return true;
}

/* How the blocks of a launch belong together, as far as the driver tells. */
static void mix_settings(const struct driver *d, CUgraphNode node, uint64_t *hash)
{
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof(value));
    if (d->setting(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS)
        *hash = seed_hash(*hash, &value.clusterDim, sizeof(value.clusterDim));
    memset(&value, 0, sizeof(value));
    if (d->setting(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
        *hash = seed_hash(*hash, &value.cooperative, sizeof(value.cooperative));
}

static bool ask(const struct driver *d, CUfunction_attribute what, CUfunction function,
                unsigned *value)
{
    int number = 0;
    if (d->attribute(&number, what, function) != CUDA_SUCCESS || number < 0)
        return false;
    *value = (unsigned)number;
    return true;
}

static bool describe(const struct driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
                     struct device_kernel *k)
{
    const struct device_kernel shape = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                                        .block = {p->blockDimX, p->blockDimY, p->blockDimZ}};
    *k = shape;
    if (d->name(&k->name, p->func) != CUDA_SUCCESS || !k->name ||
        !ask(d, CU_FUNC_ATTRIBUTE_NUM_REGS, p->func, &k->registers) ||
        !ask(d, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, p->func, &k->local_bytes) ||
        !ask(d, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, p->func, &k->shared_bytes))
        return false;
    k->shared_bytes += p->sharedMemBytes;
    return true;
}

static bool is_same_launch(const CUDA_KERNEL_NODE_PARAMS_v2 *a, const CUDA_KERNEL_NODE_PARAMS_v2 *b)
{
    return a->func == b->func && a->gridDimX == b->gridDimX && a->gridDimY == b->gridDimY &&
           a->gridDimZ == b->gridDimZ && a->blockDimX == b->blockDimX &&
           a->blockDimY == b->blockDimY && a->blockDimZ == b->blockDimZ &&
           a->sharedMemBytes == b->sharedMemBytes;
}

/* Where in the list the launch's kernel is, behind the others if it is new; KERNELS_MAX: none. */
static size_t place_of(const struct driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
                       struct kernel_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (is_same_launch(&list->launch[i], p))
            return i;
    if (list->n == KERNELS_MAX || !describe(d, p, &list->kernel[list->n]))
        return KERNELS_MAX;
    list->launch[list->n] = *p;
    return list->n++;
}

static bool add_node(const struct driver *d, cudaGraphNode_t node, struct kernel_list *list)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    if (!look_at_node(d, node, &p))
        return false;
    const size_t place = place_of(d, &p, list);
    list->sequence = seed_hash(list->sequence, &place, sizeof(place));
    mix_settings(d, (CUgraphNode)node, &list->sequence);
    list->order = seed_hash(list->order, &place, sizeof(place));
    mix_settings(d, (CUgraphNode)node, &list->order);
    if (place < KERNELS_MAX)
        list->kernel[place].launches++;
    return place < KERNELS_MAX && mix_parameters(d, &p, &list->sequence);
}

/* A node that is no kernel, with all that it was given; false: one whose work is not known. */
static bool add_other(cudaGraphNode_t node, cudaGraphNodeType type, uint64_t *sequence)
{
    cudaMemsetParams fill;
    cudaMemcpy3DParms copy;
    memset(&fill, 0, sizeof(fill));
    memset(&copy, 0, sizeof(copy));
    switch (type) {
    case cudaGraphNodeTypeEmpty:
        return true;
    case cudaGraphNodeTypeMemset:
        if (cudaGraphMemsetNodeGetParams(node, &fill) != cudaSuccess)
            return false;
        if (fill.height <= 1) /* the pitch means nothing to one line */
            fill.pitch = 0;
        *sequence = seed_hash(*sequence, &fill, sizeof(fill));
        return true;
    case cudaGraphNodeTypeMemcpy:
        if (cudaGraphMemcpyNodeGetParams(node, &copy) != cudaSuccess)
            return false;
        /* Up to its last member: the padding behind that is the runtime's. */
        *sequence =
            seed_hash(*sequence, &copy, offsetof(cudaMemcpy3DParms, kind) + sizeof(copy.kind));
        return true;
    default:
        return false;
    }
}

static size_t index_of(const cudaGraphNode_t *nodes, size_t n, cudaGraphNode_t node)
{
    size_t i = 0;
    while (i < n && nodes[i] != node)
        i++;
    return i;
}

/* Who waits for whom; the sum does not depend on the order in which the edges are told. */
static bool mix_edges(cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t n,
                      struct kernel_list *list)
{
#ifdef GRAPH_EDGES
    struct cuda_edges edges = {};
    struct gate_error unused;
    uint64_t sum = 0;
    const bool known = cuda_edges_of(graph, n, &edges, &unused) == GATE_OK;
    for (size_t i = 0; i < edges.n && known; i++) {
        const uint64_t ends[2] = {index_of(nodes, n, edges.from[i]),
                                  index_of(nodes, n, edges.to[i])};
        sum += seed_hash(seed_hash(SEED_HASH, ends, sizeof(ends)), &edges.data[i],
                         sizeof(edges.data[i]));
    }
    cuda_edges_release(&edges);
    list->sequence = seed_hash(list->sequence, &sum, sizeof(sum));
    list->order = seed_hash(list->order, &sum, sizeof(sum));
    return known;
#else
    (void)graph, (void)nodes, (void)n, (void)list;
    return false;
#endif
}

static bool add_graph(const struct driver *d, cudaGraph_t graph, struct kernel_list *list)
{
    size_t n = 0;
    if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess || n == 0)
        return false;
    cudaGraphNode_t *const nodes = (cudaGraphNode_t *)xcalloc(n, sizeof(*nodes));
    bool known = cudaGraphGetNodes(graph, nodes, &n) == cudaSuccess;
    for (size_t i = 0; i < n && known; i++) {
        cudaGraphNodeType type;
        known = cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess;
        if (!known)
            break;
        list->sequence = seed_hash(list->sequence, &type, sizeof(type));
        list->order = seed_hash(list->order, &type, sizeof(type));
        known = type == cudaGraphNodeTypeKernel ? add_node(d, nodes[i], list)
                                                : add_other(nodes[i], type, &list->sequence);
    }
    known = known && mix_edges(graph, nodes, n, list);
    free(nodes);
    return known;
}

struct device_kernels cuda_kernels_of(cudaGraph_t graph)
{
    struct device_kernels kernels = {};
    struct driver driver;
    struct kernel_list *const list = (struct kernel_list *)xcalloc(1, sizeof(*list));
    list->sequence = list->order = SEED_HASH;
    if (load_driver(&driver) && add_graph(&driver, graph, list)) {
        kernels.list = list->kernel; /* its first member: freeing it frees the list */
        kernels.n = list->n;
        kernels.sequence = list->sequence;
        kernels.order = list->order;
        return kernels;
    }
    (void)cudaGetLastError(); /* not knowing is no error of the launches */
    free(list);
    return kernels;
}

/* ---- what each launch is made of, and a graph with some nodes of another ----
 *
 * Launches that use one stream make a chain. Two of them correspond where each launch has the same
 * number of nodes, of the same types, that wait for each other in the same way. A kernel may take
 * the place of another whose arguments have the same sizes. What they mean is not known, so what a
 * graph with a transplanted node computes must be looked at.
 */

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

/* To be released in any case. *each: the nodes of a launch. */
static enum gate_status chain_of(cudaGraph_t graph, unsigned launches, struct chain *c,
                                 unsigned *each, struct gate_error *err)
{
    size_t count = 0, n = 1;
    CUDA_TRY(cudaGraphGetNodes(graph, NULL, &count), err);
    if (launches == 0 || count == 0 || count % launches != 0)
        return gate_fail(err, GATE_USAGE, "not all launches have the same number of nodes");
    *each = (unsigned)(count / launches);
    if (*each > DEVICE_NODES_MAX)
        return gate_fail(err, GATE_USAGE, "a launch has %u nodes, and %d are the most", *each,
                         DEVICE_NODES_MAX);
    c->node = (cudaGraphNode_t *)xcalloc(count, sizeof(*c->node));
    c->edge = (cudaGraphEdgeData *)xcalloc(count, sizeof(*c->edge));
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

static enum gate_status driver_of(struct driver *driver, struct gate_error *err)
{
    return load_driver(driver)
               ? GATE_OK
               : gate_fail(err, GATE_USAGE, "this driver does not tell what kernels a launch has");
}

/* ---- names ---- */

static enum gate_status name_node(const struct driver *d, cudaGraphNode_t node,
                                  struct device_nodes *out, struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaGraphNodeType type;
    const char *name = NULL;
    CUDA_TRY(cudaGraphNodeGetType(node, &type), err);
    const bool is_kernel = type == cudaGraphNodeTypeKernel;
    if (is_kernel && (!look_at_node(d, node, &p) || d->name(&name, p.func) != CUDA_SUCCESS))
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
    struct driver driver;
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

static void note_address(const struct driver *d, const struct device_transplant *t,
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
static void look_at_kernel(const struct driver *d, const struct device_transplant *t,
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

static struct own_memory own_memory_of(const struct driver *d, const struct device_transplant *t,
                                       cudaGraphNode_t node)
{
    struct own_memory own = {};
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaGraphNodeType type;
    cudaMemsetParams fill;
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess)
        return own;
    if (type == cudaGraphNodeTypeKernel && look_at_node(d, node, &p) && p.kernelParams)
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
static bool uses_private(const struct driver *d, const struct device_transplant *t,
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

static enum gate_status check_arguments(const struct driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *a,
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
static enum gate_status check_fit(const struct driver *d, const struct device_transplant *t,
                                  const struct chain *into, const struct chain *from, unsigned each,
                                  struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 a, b;
    if (into->n != from->n || t->node >= each)
        return gate_fail(err, GATE_USAGE, "the two sides have unequal numbers of nodes");
    if (memcmp(into->edge, from->edge, into->n * sizeof(*into->edge)) != 0)
        return gate_fail(err, GATE_USAGE, "the nodes wait for each other in another way");
    if (!look_at_node(d, into->node[t->node], &a) || !look_at_node(d, from->node[t->node], &b))
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
static enum gate_status replace(const struct driver *d, cudaGraph_t graph, const struct chain *into,
                                const struct chain *from, unsigned at, struct gate_error *err)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUgraphNode added;
    cudaGraphNode_t old, beside;
    if (!look_at_node(d, from->node[at], &p))
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
    struct driver driver;
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

enum gate_status cuda_nodes_of(cudaGraph_t, unsigned, struct device_nodes *, struct gate_error *err)
{
    return too_old(err);
}

enum gate_status cuda_transplant(const struct device_transplant *, cudaGraph_t, cudaGraph_t,
                                 cudaGraph_t *, struct gate_error *err)
{
    return too_old(err);
}

#endif
