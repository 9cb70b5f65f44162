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
#include "gate/device/cuda_driver.cuh"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 64 /* different ones in one replay */

/* The kernels found so far. */
struct kernel_list {
    struct device_kernel kernel[KERNELS_MAX];
    CUDA_KERNEL_NODE_PARAMS_v2 launch[KERNELS_MAX]; /* the first of each */
    size_t n;
    uint64_t sequence, order;
};

/* The driver is loaded since the runtime uses it. */
bool cuda_driver_load(struct cuda_driver *d)
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

bool cuda_driver_node(const struct cuda_driver *d, cudaGraphNode_t node,
                      CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    memset(p, 0, sizeof(*p));
    return d->node((CUgraphNode)node, p) == CUDA_SUCCESS &&
           (p->func || d->function(&p->func, p->kern) == CUDA_SUCCESS);
}

/* The arguments of a launch, by value: that of a pointer is where it points to. */
static bool mix_parameters(const struct cuda_driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
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
static void mix_settings(const struct cuda_driver *d, CUgraphNode node, uint64_t *hash)
{
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof(value));
    if (d->setting(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS)
        *hash = seed_hash(*hash, &value.clusterDim, sizeof(value.clusterDim));
    memset(&value, 0, sizeof(value));
    if (d->setting(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
        *hash = seed_hash(*hash, &value.cooperative, sizeof(value.cooperative));
}

static bool ask(const struct cuda_driver *d, CUfunction_attribute what, CUfunction function,
                unsigned *value)
{
    int number = 0;
    if (d->attribute(&number, what, function) != CUDA_SUCCESS || number < 0)
        return false;
    *value = (unsigned)number;
    return true;
}

static bool describe(const struct cuda_driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
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
static size_t place_of(const struct cuda_driver *d, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
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

static bool add_node(const struct cuda_driver *d, cudaGraphNode_t node, struct kernel_list *list)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    if (!cuda_driver_node(d, node, &p))
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

static bool add_nodes(const struct cuda_driver *d, const cudaGraphNode_t *nodes, size_t n,
                      struct kernel_list *list)
{
    for (size_t i = 0; i < n; i++) {
        cudaGraphNodeType type;
        if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess)
            return false;
        list->sequence = seed_hash(list->sequence, &type, sizeof(type));
        list->order = seed_hash(list->order, &type, sizeof(type));
        const bool known = type == cudaGraphNodeTypeKernel
                               ? add_node(d, nodes[i], list)
                               : add_other(nodes[i], type, &list->sequence);
        if (!known)
            return false;
    }
    return true;
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

static bool add_graph(const struct cuda_driver *d, cudaGraph_t graph, struct kernel_list *list)
{
    size_t n = 0;
    if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess || n == 0)
        return false;
    cudaGraphNode_t *const nodes = (cudaGraphNode_t *)xcalloc(n, sizeof(*nodes));
    const bool known = cudaGraphGetNodes(graph, nodes, &n) == cudaSuccess &&
                       add_nodes(d, nodes, n, list) && mix_edges(graph, nodes, n, list);
    free(nodes);
    return known;
}

struct device_kernels cuda_kernels_of(cudaGraph_t graph)
{
    struct device_kernels kernels = {};
    struct cuda_driver driver;
    struct kernel_list *const list = (struct kernel_list *)xcalloc(1, sizeof(*list));
    list->sequence = list->order = SEED_HASH;
    if (cuda_driver_load(&driver) && add_graph(&driver, graph, list)) {
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
