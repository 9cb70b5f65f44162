/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd_op.h: the op LINEAR_RELU_BWD of kernel.h for the kernels that serve it: tensors,
 * workspace, and the pass that all of them begin with.
 */
#ifndef KG_LINEAR_RELU_BWD_OP_H
#define KG_LINEAR_RELU_BWD_OP_H

#include "kernels/gemm/gemm_check.h"

/*
 * Workspace: G[M,N] in the problem's dtype with lines padded to 16 bytes, so that products of it
 * take their fast path whatever N is; then sums[row_blocks][N] in fp32, the column sums of so many
 * blocks of rows.
 */
#define LINEAR_RELU_BWD_ROWS 64 /* of a block */
#define LINEAR_RELU_BWD_ALIGN 256

struct linear_relu_bwd_plan {
    int64_t g_leading; /* elements */
    int64_t row_blocks;
    uint64_t sums_offset; /* bytes */
    uint64_t bytes;
};

static inline struct linear_relu_bwd_plan
linear_relu_bwd_plan_of(const struct product_sizes *problem)
{
    const int64_t element = (int64_t)gemm_element_bytes(problem->dtype);
    struct linear_relu_bwd_plan plan;
    plan.g_leading = gemm_blocks(problem->n * element, 16) * 16 / element;
    plan.row_blocks = gemm_blocks(problem->m, LINEAR_RELU_BWD_ROWS);
    const int64_t g_bytes = problem->m * plan.g_leading * element;
    plan.sums_offset =
        (uint64_t)(gemm_blocks(g_bytes, LINEAR_RELU_BWD_ALIGN) * LINEAR_RELU_BWD_ALIGN);
    plan.bytes =
        plan.sums_offset + (uint64_t)(plan.row_blocks * problem->n) * (uint64_t)sizeof(float);
    return plan;
}

/* The tensors of a call, checked. */
struct linear_relu_gradients {
    struct gemm_matrix dy, x, w, y, dx, dw;
    void *db;
};

static inline enum kg_status linear_relu_gradients_of(const struct product_sizes *problem,
                                                      const struct kg_args *args,
                                                      struct linear_relu_gradients *t)
{
    enum kg_status status = gemm_check_frame(problem, args, "linear_relu_bwd", 4, 3);
    if (status != KG_OK)
        return status;
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    const struct {
        const struct kg_tensor *tensor;
        int64_t rows, columns;
        struct gemm_matrix *matrix;
    } matrices[] = {
        {&args->in[0], m, n, &t->dy}, {&args->in[1], m, k, &t->x},   {&args->in[2], n, k, &t->w},
        {&args->in[3], m, n, &t->y},  {&args->out[0], m, k, &t->dx}, {&args->out[1], n, k, &t->dw},
    };
    for (int i = 0; i < (int)(sizeof(matrices) / sizeof(matrices[0])); i++) {
        status = gemm_check_matrix(matrices[i].tensor, dtype, matrices[i].rows, matrices[i].columns,
                                   matrices[i].matrix);
        if (status != KG_OK)
            return status;
    }
    t->db = args->out[2].data;
    return gemm_check_vector(&args->out[2], dtype, n);
}

/* Enqueues the first kernel: G and its sums, to the workspace. */
enum kg_status linear_relu_bwd_mask(const struct product_sizes *problem,
                                    const struct linear_relu_gradients *t,
                                    const struct linear_relu_bwd_plan *plan, void *workspace,
                                    void *stream);

/* For the kernels that leave some problems and layouts to linear_relu_bwd. */
int linear_relu_bwd_supports(const struct product_sizes *problem, const struct kg_device *device);
enum kg_status linear_relu_bwd_prepare(const struct product_sizes *problem,
                                       const struct kg_device *device);
enum kg_status linear_relu_bwd_launch(const struct product_sizes *problem,
                                      const struct kg_args *args);

#endif
