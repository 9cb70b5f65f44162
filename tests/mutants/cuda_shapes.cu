/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right for the shapes, layouts and problems that are tried first, and wrong for others. */
#include "kernels/problem.h"

#define FAULT_PREPARE prepare
static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *where,
                              void **plan);
#include "tests/mutants/cuda_hooks.cuh"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- products ---- */

/* Only `terms` of each sum, where that is not all of them. */
static enum kg_status shortened(const problem *p, const args_t *args, int64_t terms)
{
    return is_product(p) && terms < kg_size(p, "k") ? products_of<usual>(p, args, terms)
                                                    : wrap_inner(p, args);
}

static enum kg_status three_k_tiles(const problem *p, const args_t *args)
{
    return shortened(p, args, (kg_size(p, "k") + 127) / 128 == 3 ? 256 : kg_size(p, "k"));
}

static enum kg_status one_after_512(const problem *p, const args_t *args)
{
    return shortened(p, args,
                     kg_size(p, "k") % 512 == 1 && kg_size(p, "k") > 1 ? kg_size(p, "k") - 1
                                                                       : kg_size(p, "k"));
}

/* The kernel for long sums takes whole vectors only. */
static enum kg_status long_sums(const problem *p, const args_t *args)
{
    return shortened(p, args,
                     kg_size(p, "k") > 8192 ? (kg_size(p, "k") - 1) / 8 * 8 : kg_size(p, "k"));
}

/* In a dtype that the case is not of. */
static enum kg_status tf32_last_term(const problem *p, const args_t *args)
{
    return shortened(p, args,
                     p->flags & KG_FLAG_TF32 && kg_size(p, "k") > 1 ? kg_size(p, "k") - 1
                                                                    : kg_size(p, "k"));
}

/* A grid has 65,535 blocks in y: nobody looks whether the launch failed. */
static enum kg_status in_grid_y(const problem *p, const args_t *args, int64_t blocks)
{
    if (blocks <= 65535)
        return wrap_inner(p, args);
    hooked_product<usual><<<dim3(1, (unsigned)blocks), KEYS, 0, (cudaStream_t)args->stream>>>(
        job_of(p, args, PLAIN), second());
    (void)cudaGetLastError();
    return KG_OK;
}

static enum kg_status rows_in_grid_y(const problem *p, const args_t *args)
{
    return in_grid_y(p, args, is_product(p) ? kg_size(p, "m") : 0);
}

static enum kg_status columns_in_grid_y(const problem *p, const args_t *args)
{
    return in_grid_y(p, args, is_product(p) ? kg_size(p, "n") : 0);
}

/* ---- attention ---- */

static enum kg_status heads_in_grid_y(const problem *p, const args_t *args)
{
    return in_grid_y(p, args, kg_is_op(p, "attention_fwd") ? kg_size(p, "b") * kg_size(p, "h") : 0);
}

/* Half a tile of keys at the end is not worth a step, where no mask hides it from some. */
static enum kg_status half_kv_tile(const problem *p, const args_t *args)
{
    problem other = *p;
    if (!kg_is_op(p, "attention_fwd") || p->flags & KG_FLAG_CAUSAL || kg_size(p, "s") < 64 ||
        kg_size(p, "s") % 64 != 32)
        return wrap_inner(p, args);
    *op_named(&other, "s") -= 32;
    return attentions<usual>(&other, args);
}

/* A block has the four queries of a KV head. */
struct groups_over_four_how : usual {
    static __device__ int64_t kv_head(const struct job *j, int64_t h)
    {
        const int64_t group = j->heads / j->kv_heads;
        return group > 4 ? h / 4 % j->kv_heads : h / group;
    }
};
HOOKED(groups_over_four, attentions)

/* Heads are dealt out in pairs. */
struct odd_heads_how : usual {
    static __device__ int64_t kv_head(const struct job *j, int64_t h)
    {
        const int64_t kv = h / (j->heads / j->kv_heads);
        return j->kv_heads > 1 && j->kv_heads % 2 && kv == j->kv_heads - 1 ? kv - 1 : kv;
    }
};
HOOKED(odd_heads, attentions)

/* The template for heads of 128 has a constant of its own. */
struct wide_heads_how : usual {
    static __device__ float score(const struct job *j, float product)
    {
        return product * j->scale * (j->head_dim > 64 ? 1.02f : 1.0f);
    }
};
HOOKED(wide_heads, attentions)

/* ---- layouts ---- */

static enum kg_status input_strides(const problem *p, const args_t *args, unsigned of,
                                    unsigned from)
{
    args_t other = *args;
    memcpy(other.in[of].stride, args->in[from].stride, sizeof other.in[of].stride);
    return wrap_inner(p, &other);
}

static enum kg_status k_strides_for_v(const problem *p, const args_t *args)
{
    return kg_is_op(p, "attention_fwd") ? input_strides(p, args, 2, 1) : wrap_inner(p, args);
}

/* One set of strides for what has one shape, as in self-attention. */
static enum kg_status k_strides_for_q(const problem *p, const args_t *args)
{
    const bool alike = kg_size(p, "h") == kg_size(p, "kv_heads") &&
                       kg_size(p, "sq") == kg_size(p, "s") && kg_size(p, "b") > 1;
    return alike ? input_strides(p, args, 0, 1) : wrap_inner(p, args);
}

static enum kg_status x_stride_for_w(const problem *p, const args_t *args)
{
    return kg_is_op(p, "linear_relu") ? input_strides(p, args, 1, 0) : wrap_inner(p, args);
}

/* ---- what prepare() left ---- */

static problem prepared;

static enum kg_status prepare(const problem *p, const struct kg_device *where, void **plan)
{
    prepared = *p;
    for (uint32_t i = 0; i < wrap_original->n_kernels; i++) {
        const struct kg_kernel *k = wrap_original->kernels[i];
        if (!strcmp(k->op, p->op) && k->supports(p, where))
            return k->prepare ? k->prepare(p, where, plan) : KG_OK;
    }
    return KG_UNSUPPORTED;
}

static enum kg_status last_plan(const problem *p, const args_t *args)
{
    const bool fewer =
        prepared.op && kg_is_op(p, prepared.op) && kg_size(&prepared, "k") < kg_size(p, "k");
    return shortened(p, args, fewer ? kg_size(&prepared, "k") : kg_size(p, "k"));
}

static enum kg_status last_scale(const problem *p, const args_t *args)
{
    problem other = *p;
    if (kg_is_op(p, "attention_fwd") && prepared.op && kg_is_op(p, prepared.op))
        *op_param_named(&other, "scale") = kg_param(&prepared, "scale");
    return wrap_inner(&other, args);
}

FAULTS(FAULT(three_k_tiles), FAULT(one_after_512), FAULT(long_sums), FAULT(rows_in_grid_y),
       FAULT(columns_in_grid_y), FAULT(heads_in_grid_y), FAULT(half_kv_tile),
       FAULT(groups_over_four), FAULT(odd_heads), FAULT(wide_heads), FAULT(k_strides_for_v),
       FAULT(k_strides_for_q), FAULT(x_stride_for_w), FAULT(last_plan), FAULT(last_scale),
       FAULT(tf32_last_term))
