/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c: attention forward and backward, each as one execution of a cuDNN plan. cuDNN reads
 * and writes the tensors where they lie, in any layout whose rows begin at multiples of 16 bytes.
 * Last the table of the provider "cudnn", opening and closing.
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
    HEAD_DIM_MAX_BACKWARD = 128,
    CONFIGURATIONS_MAX = 8
};

static cudnn_handle handle;

/* ---- plans ---- */

/* Of one layout; the plan of a kernel is a list of these, all of one problem. */
struct layout_plan {
    struct layout_plan *next;
    struct attention_layout layout;
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
    const int64_t n = ask_heuristics(list, attention_graph(list, handle, p, &a->layout), found);
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
static enum kg_status find_plan(const struct attention_sizes *p, const struct attention_layout *l,
                                struct layout_plan **plans, struct layout_plan **out)
{
    for (; *plans; plans = &(*plans)->next)
        if (!memcmp(&(*plans)->layout, l, sizeof(*l))) {
            *out = *plans;
            return KG_OK;
        }
    struct layout_plan *made = calloc(1, sizeof(*made));
    if (!made)
        return KG_LAUNCH_FAILED;
    made->layout = *l;
    const enum kg_status status = build(p, made);
    if (status != KG_OK)
        release(made);
    else
        *out = *plans = made;
    return status;
}

/* ---- the kernels ---- */

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

/* By the rules of cudnn-frontend: before 9.16 cuDNN needs a mask of its own for keys that are no
 * multiple of 128, and it does not serve one query of one key. */
static int supports_backward(const struct kg_problem *problem, const struct kg_device *d)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    return supports(problem, d) && p->head_dim <= HEAD_DIM_MAX_BACKWARD &&
           (p->seqlen_q > 1 || p->seqlen_kv > 1) &&
           (p->seqlen_kv % 128 == 0 || !cudnn_api() || cudnn_api()->cudnnGetVersion() >= 91600);
}

static int64_t last_uid(const struct kg_problem *problem)
{
    return kg_is_op(problem, "attention_bwd") ? UID_DV : UID_O;
}

/* What the backward pass has in the workspace before that of the plan: the sums of O dO, of so many
 * bytes, and then dQ in fp32. */
static uint64_t delta_bytes(const struct kg_problem *problem)
{
    const struct attention_sizes p = attention_sizes_of(problem);
    const uint64_t bytes = (uint64_t)(p.batch * p.heads * p.seqlen_q) * sizeof(float);
    return last_uid(problem) == UID_DV ? (bytes + 255) / 256 * 256 : 0;
}

static uint64_t sums_bytes(const struct kg_problem *problem)
{
    return delta_bytes(problem) * (uint64_t)kg_size(problem, "d");
}

static enum kg_status prepare(const struct kg_problem *problem, const struct kg_device *,
                              void **plan)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    struct attention_layout l = {.last = last_uid(problem)};
    struct layout_plan *plans = NULL;
    struct layout_plan *dense;
    for (int64_t uid = UID_Q; uid <= l.last; uid++) {
        int64_t size[4];
        attention_size(p, uid, size);
        attention_dense(size, l.stride[uid]);
    }
    const enum kg_status status = find_plan(p, &l, &plans, &dense);
    *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *problem, const struct kg_device *,
                                void *plan)
{
    const struct layout_plan *dense = plan;
    return dense ? delta_bytes(problem) + sums_bytes(problem) + (uint64_t)dense->workspace_bytes
                 : 0;
}

static const struct kg_tensor *tensor_of(const struct kg_args *args, int64_t uid)
{
    const int64_t i = uid - UID_Q;
    return i < args->n_in ? &args->in[i] : &args->out[i - args->n_in];
}

/* Elements from the first to the last. */
static int64_t span(const struct kg_tensor *t)
{
    int64_t elements = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        elements += (t->shape[i] - 1) * t->stride[i];
    return elements;
}

/*
 * A dimension of one element may have any stride, which says nothing: it gets that of a dense
 * tensor, so that equal layouts have one plan.
 *
 * The log-sum-exp must be dense: cuDNN before 9.26 has kernels that read it as if it were, whatever
 * its strides say (seen with one query; cudnn-frontend refuses all). Later versions are not tried.
 * Backward is wrong from 2^31 elements on (seen with rows 2^30 elements apart).
 */
static enum kg_status take_strides(const struct kg_tensor *t, const struct attention_sizes *p,
                                   int64_t uid, bool backward, int64_t stride[4])
{
    const bool is_lse = uid == UID_LSE;
    const uint32_t rank = is_lse ? 3 : 4;
    int64_t size[4];
    attention_size(p, uid, size);
    if (!kg_is_tensor(t, is_lse ? (uint32_t)KG_F32 : p->dtype, rank) ||
        memcmp(t->shape, size, rank * sizeof(size[0])) != 0)
        return KG_BAD_ARGUMENT;
    if (is_lse ? !kg_is_dense(t) : !kg_is_aligned(t, STEP * 2))
        return KG_UNSUPPORTED;
    if (backward && span(t) >= (int64_t)1 << 31)
        return KG_UNSUPPORTED;
    attention_dense(size, stride);
    for (int i = 0; i < 3; i++)
        if (!is_lse && size[i] > 1)
            stride[i] = t->stride[i];
    return KG_OK;
}

/* What a launch gives to the graph. */
struct operands {
    int64_t n, uid[UID_SEQLEN_KV];
    void *data[UID_SEQLEN_KV];
};

static void give(struct operands *o, int64_t uid, void *data)
{
    o->uid[o->n] = uid;
    o->data[o->n++] = data;
}

/* Values are read before this returns, so they may lie on the stack. */
static enum kg_status execute(const struct layout_plan *plan, const struct kg_problem *problem,
                              const struct kg_args *args)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    float scale = (float)p->scale, one = 1, hidden = -INFINITY;
    int32_t seqlen_q = (int32_t)p->seqlen_q, seqlen_kv = (int32_t)p->seqlen_kv;
    char *const delta = args->workspace, *const sums = delta + delta_bytes(problem);
    void *rest = sums + sums_bytes(problem);
    struct operands o = {.n = 0};
    for (int64_t uid = UID_Q; uid <= plan->layout.last; uid++)
        give(&o, uid, tensor_of(args, uid)->data);
    give(&o, UID_SCALE, &scale);
    if (attention_is_masked(p))
        give(&o, UID_HIDDEN, &hidden);
    if (attention_is_shifted(p)) {
        give(&o, UID_SEQLEN_Q, &seqlen_q);
        give(&o, UID_SEQLEN_KV, &seqlen_kv);
    }
    if (plan->layout.last == UID_DV) {
        give(&o, UID_DELTA, delta);
        give(&o, UID_DQ_SUMS, sums);
        give(&o, UID_ONE, &one);
    }
    struct descriptors list = {.status = cudnn_api()->cudnnSetStream(handle, args->stream)};
    cudnn_descriptor pack = descriptor_new(&list, KCUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, KCUDNN_TYPE_INT64, o.n, o.uid);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, KCUDNN_TYPE_VOID_PTR, o.n,
                   o.data);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_WORKSPACE, KCUDNN_TYPE_VOID_PTR, 1, &rest);
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
    struct attention_layout l = {.last = last_uid(problem)};
    struct layout_plan *plans = args->plan;
    struct layout_plan *plan;
    enum kg_status status = KG_OK;
    if (args->n_in != problem->n_in || args->n_out != problem->n_out || !plans)
        return KG_BAD_ARGUMENT;
    for (int64_t uid = UID_Q; uid <= l.last && status == KG_OK; uid++)
        status = take_strides(tensor_of(args, uid), p, uid, l.last == UID_DV, l.stride[uid]);
    if (status == KG_OK)
        status = find_plan(p, &l, &plans, &plan);
    if (status != KG_OK)
        return status;
    return workspace_bytes(problem, NULL, plan) > args->workspace_bytes
               ? KG_UNSUPPORTED
               : execute(plan, problem, args);
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

static const struct kg_kernel cudnn_attention_bwd = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "attention_bwd",
    .flags = KG_KERNEL_NONDETERMINISTIC, /* dQ is added up by atomics */
    .name = "cudnn_sdpa_bwd",
    .supports = supports_backward,
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
    static const struct kg_kernel *const kernels[] = {&cudnn_attention_fwd, &cudnn_attention_bwd};
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
