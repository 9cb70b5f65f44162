/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd.c: O = softmax(scale * Q K^T) V as one execution of a cuDNN plan. cuDNN reads and
 * writes the tensors where they lie, in any layout whose rows begin at multiples of 16 bytes. Last
 * the table of the provider "cudnn", opening and closing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cudnn/attention.h"

enum {
    STEP = 8,          /* elements of 16 bytes */
    HEADS_MAX = 65535, /* of all batches */
    HEAD_DIM_MAX = 256,
    CONFIGURATIONS_MAX = 8
};

static cudnn_handle handle;

/* ---- plans ---- */

/* Of one layout; the plan of a kernel is a list of these, all of one problem. */
struct layout_plan {
    struct layout_plan *next;
    struct attention_strides strides;
    struct descriptors descriptors; /* all that the plan is made of */
    cudnn_descriptor plan;
    int64_t workspace_bytes;
};

/* The engines that cuDNN expects to serve the graph, the fastest first; returns their number. */
static int64_t ask_heuristics(struct descriptors *list, cudnn_descriptor graph,
                              cudnn_descriptor found[CONFIGURATIONS_MAX])
{
    int64_t n = 0;
    cudnn_descriptor heuristics = descriptor_new(list, KCUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    descriptor_link(list, heuristics, KCUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    descriptor_set_int(list, heuristics, KCUDNN_ATTR_ENGINEHEUR_MODE, KCUDNN_TYPE_HEUR_MODE,
                       KCUDNN_HEUR_MODE_A);
    descriptor_finish(list, heuristics);
    for (int i = 0; i < CONFIGURATIONS_MAX; i++)
        found[i] = descriptor_new(list, KCUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (list->status == KCUDNN_STATUS_SUCCESS)
        list->status = cudnn_api()->cudnnBackendGetAttribute(
            heuristics, KCUDNN_ATTR_ENGINEHEUR_RESULTS, KCUDNN_TYPE_BACKEND_DESCRIPTOR,
            CONFIGURATIONS_MAX, &n, found);
    if (list->status != KCUDNN_STATUS_SUCCESS || n < 0)
        return 0;
    return n < CONFIGURATIONS_MAX ? n : CONFIGURATIONS_MAX;
}

/* Compiles the kernel of the first engine that takes the problem. KG_UNSUPPORTED: none does. */
static enum kg_status build(const struct attention_sizes *p, struct layout_plan *a)
{
    struct descriptors *list = &a->descriptors;
    cudnn_descriptor found[CONFIGURATIONS_MAX];
    int64_t count = 0;
    const int64_t n = ask_heuristics(list, attention_graph(list, handle, p, &a->strides), found);
    if (list->status == KCUDNN_STATUS_SUCCESS && n == 0)
        return KG_UNSUPPORTED;
    for (int64_t i = 0; i < n; i++) {
        list->status = KCUDNN_STATUS_SUCCESS; /* whatever the engine before said */
        a->plan = descriptor_new(list, KCUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        descriptor_set(list, a->plan, KCUDNN_ATTR_EXECUTION_PLAN_HANDLE, KCUDNN_TYPE_HANDLE, 1,
                       &handle);
        descriptor_link(list, a->plan, KCUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, found[i]);
        descriptor_finish(list, a->plan);
        if (list->status == KCUDNN_STATUS_SUCCESS)
            list->status = cudnn_api()->cudnnBackendGetAttribute(
                a->plan, KCUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, KCUDNN_TYPE_INT64, 1, &count,
                &a->workspace_bytes);
        if (list->status == KCUDNN_STATUS_SUCCESS)
            break;
    }
    return descriptors_status(list);
}

static void release(void *plans)
{
    for (struct layout_plan *plan = plans, *next; plan; plan = next) {
        next = plan->next;
        descriptors_free(&plan->descriptors);
        free(plan);
    }
}

/* The plan of a layout in the list at *plans, or a new one at its end. */
static enum kg_status find_plan(const struct attention_sizes *p, const struct attention_strides *s,
                                struct layout_plan **plans, const struct layout_plan **out)
{
    for (; *plans; plans = &(*plans)->next)
        if (!memcmp(&(*plans)->strides, s, sizeof(*s))) {
            *out = *plans;
            return KG_OK;
        }
    struct layout_plan *made = calloc(1, sizeof(*made));
    if (!made)
        return KG_LAUNCH_FAILED;
    made->strides = *s;
    const enum kg_status status = build(p, made);
    if (status != KG_OK)
        release(made);
    else
        *out = *plans = made;
    return status;
}

/* ---- the kernel ---- */

/* Rows that the mask leaves no key. Their softmax is left to cuDNN's engines, and they must be
 * zeros.
 */
static bool has_blind_rows(const struct attention_sizes *p)
{
    return (p->flags & KG_FLAG_CAUSAL) && p->seqlen_q > p->seqlen_kv;
}

/* cuDNN 9.19 gives NaN for a negative scale, and a launch of it fails with more heads in all than a
 * grid has blocks in y and z. */
static int supports(const struct kg_problem *problem, const struct kg_device *d)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    return d->kind == KG_DEVICE_CUDA && (p->dtype == KG_F16 || p->dtype == KG_BF16) &&
           !(p->flags & ~(uint32_t)KG_FLAG_CAUSAL) && p->batch <= HEADS_MAX / p->heads &&
           p->seqlen_q <= INT32_MAX && p->seqlen_kv <= INT32_MAX && p->head_dim % STEP == 0 &&
           p->head_dim <= HEAD_DIM_MAX && p->scale > 0 && !has_blind_rows(p);
}

static void lay_out_dense(int64_t stride[4], int64_t heads, int64_t rows, int64_t columns)
{
    stride[0] = heads * rows * columns;
    stride[1] = rows * columns;
    stride[2] = columns;
    stride[3] = 1;
}

static enum kg_status prepare(const struct kg_problem *problem, const struct kg_device *,
                              void **plan)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    struct layout_plan *plans = NULL;
    const struct layout_plan *dense;
    struct attention_strides s;
    lay_out_dense(s.q, p->heads, p->seqlen_q, p->head_dim);
    lay_out_dense(s.k, p->kv_heads, p->seqlen_kv, p->head_dim);
    memcpy(s.v, s.k, sizeof(s.v));
    memcpy(s.o, s.q, sizeof(s.o));
    const enum kg_status status = find_plan(p, &s, &plans, &dense);
    *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *, const struct kg_device *, void *plan)
{
    const struct layout_plan *dense = plan;
    return dense ? (uint64_t)dense->workspace_bytes : 0;
}

/* A dimension of one element may have any stride, which says nothing: it gets that of a dense
 * tensor, so that equal layouts have one plan. */
static enum kg_status take_strides(const struct kg_tensor *t, const struct attention_sizes *p,
                                   int64_t heads, int64_t rows, int64_t stride[4])
{
    const int64_t shape[4] = {p->batch, heads, rows, p->head_dim};
    if (t->rank != 4 || t->dtype != p->dtype || t->stride[3] != 1 ||
        memcmp(t->shape, shape, sizeof(shape)) != 0)
        return KG_BAD_ARGUMENT;
    lay_out_dense(stride, heads, rows, p->head_dim);
    for (int i = 0; i < 3; i++) {
        if (shape[i] == 1)
            continue;
        if (t->stride[i] % STEP != 0)
            return KG_UNSUPPORTED;
        stride[i] = t->stride[i];
    }
    return KG_OK;
}

static enum kg_status take_layout(const struct attention_sizes *p, const struct kg_args *args,
                                  struct attention_strides *s)
{
    enum kg_status status = take_strides(&args->in[0], p, p->heads, p->seqlen_q, s->q);
    if (status == KG_OK)
        status = take_strides(&args->in[1], p, p->kv_heads, p->seqlen_kv, s->k);
    if (status == KG_OK)
        status = take_strides(&args->in[2], p, p->kv_heads, p->seqlen_kv, s->v);
    if (status == KG_OK)
        status = take_strides(&args->out[0], p, p->heads, p->seqlen_q, s->o);
    return status;
}

/* Values are read before this returns, so they may lie on the stack. */
static enum kg_status execute(const struct layout_plan *plan, const struct attention_sizes *p,
                              const struct kg_args *args)
{
    float scale = (float)p->scale, hidden = -INFINITY;
    int32_t seqlen_q = (int32_t)p->seqlen_q, seqlen_kv = (int32_t)p->seqlen_kv;
    static const int64_t uids[] = {UID_Q,     UID_K,      UID_V,        UID_O,
                                   UID_SCALE, UID_HIDDEN, UID_SEQLEN_Q, UID_SEQLEN_KV};
    void *const data[] = {args->in[0].data, args->in[1].data, args->in[2].data, args->out[0].data,
                          &scale,           &hidden,          &seqlen_q,        &seqlen_kv};
    const int64_t n = attention_is_shifted(p) ? 8 : attention_is_masked(p) ? 6 : 5;
    struct descriptors list = {.status = cudnn_api()->cudnnSetStream(handle, args->stream)};
    cudnn_descriptor pack = descriptor_new(&list, KCUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, KCUDNN_TYPE_INT64, n, uids);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, KCUDNN_TYPE_VOID_PTR, n,
                   data);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_WORKSPACE, KCUDNN_TYPE_VOID_PTR, 1,
                   &args->workspace);
    descriptor_finish(&list, pack);
    if (list.status == KCUDNN_STATUS_SUCCESS)
        list.status = cudnn_api()->cudnnBackendExecute(handle, plan->plan, pack);
    descriptors_free(&list);
    return descriptors_status(&list);
}

/* A layout that only the launch knows is planned now; its plan must do with the workspace of the
 * dense one. */
static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    struct layout_plan *plans = args->plan;
    const struct layout_plan *plan;
    struct attention_strides s;
    if (args->n_in != 3 || args->n_out != 1 || !plans)
        return KG_BAD_ARGUMENT;
    enum kg_status status = take_layout(p, args, &s);
    if (status == KG_OK)
        status = find_plan(p, &s, &plans, &plan);
    if (status != KG_OK)
        return status;
    return (uint64_t)plan->workspace_bytes > args->workspace_bytes ? KG_UNSUPPORTED
                                                                   : execute(plan, p, args);
}

static const struct kg_kernel cudnn_attention_fwd = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "attention_fwd",
    .flags = KG_KERNEL_NONDETERMINISTIC, /* seen in decode at batch 8 and 128 */
    .name = "cudnn_sdpa",
    .supports = supports,
    .prepare = prepare,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
    .release = release,
};

/* ---- the library ---- */

static enum kg_status open_handle(const struct kg_device *d, const struct kg_file *)
{
    if (d->kind != KG_DEVICE_CUDA || !cudnn_api())
        return KG_UNSUPPORTED;
    const struct descriptors created = {.status = cudnn_api()->cudnnCreate(&handle)};
    return descriptors_status(&created);
}

static void close_handle(void)
{
    if (handle)
        (void)cudnn_api()->cudnnDestroy(handle);
    handle = NULL;
}

/* The version that was found, since that is what is measured. */
static const char *version(void)
{
    static char text[64];
    if (!cudnn_api())
        return "cuDNN not found";
    const size_t v = cudnn_api()->cudnnGetVersion();
    snprintf(text, sizeof(text), "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return text;
}

KG_EXPORT const struct kg_library *kg_library(void)
{
    static const struct kg_kernel *const kernels[] = {&cudnn_attention_fwd};
    static struct kg_library library = {
        .struct_bytes = sizeof(struct kg_library),
        .abi_version = KG_ABI_VERSION,
        .provider = "cudnn",
        .device_kind = KG_DEVICE_CUDA,
        .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
        .kernels = kernels,
        .open = open_handle,
        .close = close_handle,
    };
    library.version = version();
    return &library;
}
