/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd.c: O = softmax(scale * Q K^T) V as one execution of a cuDNN plan. cuDNN reads and
 * writes the tensors where they lie, in any layout whose rows begin at multiples of 16 bytes. Last
 * the table of the provider "cudnn", opening and closing.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/cudnn/attention.h"

enum {
    STEP = 8,          /* elements of 16 bytes */
    HEADS_MAX = 65535, /* of all batches */
    HEAD_DIM_MAX = 256,
};

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
    return kg_is_op(problem, "attention_fwd") && d->kind == KG_DEVICE_CUDA &&
           (p->dtype == KG_F16 || p->dtype == KG_BF16) && !(p->flags & ~(uint32_t)KG_FLAG_CAUSAL) &&
           p->batch >= 1 && p->kv_heads >= 1 && p->heads >= 1 && p->heads % p->kv_heads == 0 &&
           p->batch <= HEADS_MAX / p->heads && p->seqlen_q >= 1 && p->seqlen_kv >= 1 &&
           p->seqlen_q <= INT32_MAX && p->seqlen_kv <= INT32_MAX && p->head_dim % STEP == 0 &&
           p->head_dim >= STEP && p->head_dim <= HEAD_DIM_MAX && p->scale > 0 && !has_blind_rows(p);
}

static void lay_out_dense(int64_t stride[4], int64_t heads, int64_t rows, int64_t columns)
{
    stride[0] = heads * rows * columns;
    stride[1] = rows * columns;
    stride[2] = columns;
    stride[3] = 1;
}

static enum kg_status prepare(const struct kg_problem *problem, const struct kg_device *d,
                              void **plan)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    struct attention_plan *plans = NULL;
    const struct attention_plan *dense;
    struct attention_strides s;
    (void)d;
    lay_out_dense(s.q, p->heads, p->seqlen_q, p->head_dim);
    lay_out_dense(s.k, p->kv_heads, p->seqlen_kv, p->head_dim);
    memcpy(s.v, s.k, sizeof(s.v));
    memcpy(s.o, s.q, sizeof(s.o));
    const enum kg_status status = attention_plan(p, &s, &plans, &dense);
    *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan)
{
    (void)p;
    (void)d;
    return plan ? attention_workspace_bytes(plan) : 0;
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

/* A layout that only the launch knows is planned now; its plan must do with the workspace of the
 * dense one. */
static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    struct attention_plan *plans = args->plan;
    const struct attention_plan *plan;
    struct attention_strides s;
    if (args->n_in != 3 || args->n_out != 1 || !plans)
        return KG_BAD_ARGUMENT;
    enum kg_status status = take_layout(p, args, &s);
    if (status == KG_OK)
        status = attention_plan(p, &s, &plans, &plan);
    if (status != KG_OK)
        return status;
    if (attention_workspace_bytes(plan) > args->workspace_bytes)
        return KG_UNSUPPORTED;
    return attention_execute(plan, &(struct attention_operands){.q = args->in[0].data,
                                                                .k = args->in[1].data,
                                                                .v = args->in[2].data,
                                                                .o = args->out[0].data,
                                                                .scale = (float)p->scale,
                                                                .workspace = args->workspace,
                                                                .stream = args->stream});
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
    .release = attention_release,
};

/* ---- the library ---- */

static enum kg_status open_handle(const struct kg_device *d, const struct kg_file *files)
{
    (void)files;
    if (d->kind != KG_DEVICE_CUDA || !cudnn_api())
        return KG_UNSUPPORTED;
    return attention_open();
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
        .close = attention_close,
    };
    library.version = version();
    return &library;
}
