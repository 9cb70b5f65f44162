/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_problem.h: GEMM, the linear layer and its gradients as their kernels see them: from the
 * tensors of a call to matrices, with every check between, and who computes a product.
 *
 * The gate's own tensors are always right; a launch is still the border of the library, and a wrong
 * shape that reaches a kernel is an illegal address.
 */
#ifndef KG_GEMM_PROBLEM_H
#define KG_GEMM_PROBLEM_H

#include "kernels/ops/product_sizes.h"

#include <stdbool.h>

/* One operand or the result: `data` is aligned to its element, `leading` is the distance between
 * lines in elements, 0 if there is one line only, and `apart` that between batches. */
struct gemm_matrix {
    void *data;
    int64_t leading, apart;
};

struct gemm_call {
    uint32_t dtype; /* enum kg_dtype of A, B, C and bias */
    int64_t m, n, k;
    struct gemm_matrix a, b, c;
    const void *bias; /* n elements for a kernel that adds it, else NULL */
    void *stream;
    void *workspace; /* of the call, or NULL */
    uint64_t workspace_bytes;
    int64_t batches; /* products, 1 for 0 */
};

/* Larger extents would overflow the kernels' 32-bit tile coordinates; offsets are 64-bit. */
#define GEMM_MAX_EXTENT (INT32_MAX - 65535)
#define GEMM_MIN_TILE 64
/* What copies of the operands may take: no kernel gets more. */
#define GEMM_MAX_WORKSPACE ((uint64_t)1 << 30)

static inline int64_t gemm_blocks(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

static inline size_t gemm_element_bytes(uint32_t dtype)
{
    return dtype == KG_F32 ? 4 : 2;
}

/* Whether every line of a matrix can be read 16 bytes at a time. */
static inline int gemm_aligned(const struct gemm_matrix *matrix, uint32_t dtype)
{
    const int64_t element = (int64_t)gemm_element_bytes(dtype);
    return (uintptr_t)matrix->data % 16 == 0 && matrix->leading * element % 16 == 0 &&
           matrix->apart * element % 16 == 0;
}

/* Whether m x n x k is a product that the kernels here can index on this device. */
static inline int gemm_serves(const struct kg_device *device, int64_t m, int64_t n, int64_t k)
{
    if (device->kind != KG_DEVICE_CUDA || device->cc_major < 8)
        return 0;
    if (m < 1 || n < 1 || k < 1 || m > GEMM_MAX_EXTENT || n > GEMM_MAX_EXTENT ||
        k > GEMM_MAX_EXTENT)
        return 0;
    return gemm_blocks(m, GEMM_MIN_TILE) * gemm_blocks(n, GEMM_MIN_TILE) <= INT32_MAX;
}

/* Dtypes of the tensor-core kernels: fp32 only where the problem lets products round to TF32. */
static inline int gemm_mma_dtype(const struct product_sizes *problem)
{
    return problem->dtype == KG_F16 || problem->dtype == KG_BF16 ||
           (problem->dtype == KG_F32 && (problem->flags & KG_FLAG_TF32) != 0);
}

static inline int gemm_simt_dtype(const struct product_sizes *problem)
{
    return problem->dtype == KG_F32;
}

static inline bool read_sizes(const struct kg_problem *p, struct product_sizes *s)
{
    *s = product_sizes_of(p);
    return p->struct_bytes >= sizeof(*p);
}

/* An op of this family whose flags are all known. */
static inline int gemm_is_op(const struct product_sizes *problem, const char *op)
{
    return !strcmp(problem->op, op) && (problem->flags & ~(uint32_t)KG_FLAG_TF32) == 0;
}

/* The call's frame: sizes of the structs, the op, counts of tensors. */
static inline enum kg_status gemm_check_frame(const struct product_sizes *problem,
                                              const struct kg_args *args, const char *op,
                                              uint32_t n_in, uint32_t n_out)
{
    if (args->struct_bytes < sizeof *args || strcmp(problem->op, op) != 0 || args->n_in != n_in ||
        args->n_out != n_out)
        return KG_BAD_ARGUMENT;
    return KG_OK;
}

static inline int gemm_tensor_ok(const struct kg_tensor *tensor, uint32_t dtype, uint32_t rank)
{
    return kg_is_tensor(tensor, dtype, rank) &&
           (uintptr_t)tensor->data % gemm_element_bytes(dtype) == 0;
}

/* A row-major matrix whose rows may be apart but do not overlap. */
static inline enum kg_status gemm_check_matrix(const struct kg_tensor *tensor, uint32_t dtype,
                                               int64_t rows, int64_t columns,
                                               struct gemm_matrix *matrix)
{
    if (!gemm_tensor_ok(tensor, dtype, 2) || tensor->shape[0] != rows ||
        tensor->shape[1] != columns)
        return KG_BAD_ARGUMENT;
    if (rows > 1 && tensor->stride[0] < columns)
        return KG_UNSUPPORTED;
    matrix->data = tensor->data;
    matrix->leading = rows > 1 ? tensor->stride[0] : 0;
    matrix->apart = 0;
    return KG_OK;
}

static inline enum kg_status gemm_check_vector(const struct kg_tensor *tensor, uint32_t dtype,
                                               int64_t length)
{
    if (!gemm_tensor_ok(tensor, dtype, 1) || tensor->shape[0] != length)
        return KG_BAD_ARGUMENT;
    return KG_OK;
}

/* GEMM, or with `linear` LINEAR_RELU, whose B is stored as [N,K]. */
static inline enum kg_status gemm_call_of(const struct product_sizes *problem,
                                          const struct kg_args *args, bool linear,
                                          struct gemm_call *call)
{
    enum kg_status status = linear ? gemm_check_frame(problem, args, "linear_relu", 3, 1)
                                   : gemm_check_frame(problem, args, "gemm", 2, 1);
    if (status != KG_OK)
        return status;
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    call->dtype = dtype;
    call->m = m;
    call->n = n;
    call->k = k;
    call->bias = linear ? args->in[2].data : NULL;
    call->stream = args->stream;
    call->workspace = args->workspace;
    call->workspace_bytes = args->workspace_bytes;
    call->batches = 1;
    status = gemm_check_matrix(&args->in[0], dtype, m, k, &call->a);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->in[1], dtype, linear ? n : k, linear ? k : n, &call->b);
    if (status == KG_OK && linear)
        status = gemm_check_vector(&args->in[2], dtype, n);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->out[0], dtype, m, n, &call->c);
    return status;
}

/* ---- the gradients of a linear layer ---- */

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

/* ---- who computes ----
 *
 * For kernels that leave some problems and layouts to others. A prepare function raises
 * shared-memory limits and is called once before the first launch; the others enqueue and return.
 * The suffix names the storage of A and B: n, the row-major matrix as it stands in the formula
 * (A[M,K], B[K,N]); t, its transpose (A stored as [K,M], B as [N,K]).
 */

/* Tensor cores: F16, BF16, and F32 by TF32 products. */
enum kg_status gemm_mma_nn_prepare(void);
enum kg_status gemm_mma_nn(const struct gemm_call *call);
enum kg_status gemm_mma_tn_prepare(void);
enum kg_status gemm_mma_tn(const struct gemm_call *call);

/* FMA units: F32 in full precision. */
enum kg_status gemm_simt_nn(const struct gemm_call *call);
enum kg_status gemm_simt_tn(const struct gemm_call *call);

enum kg_status linear_relu_mma_prepare(const struct product_sizes *problem,
                                       const struct kg_device *device);
enum kg_status linear_relu_mma_launch(const struct product_sizes *problem,
                                      const struct kg_args *args);
enum kg_status linear_relu_simt_launch(const struct product_sizes *problem,
                                       const struct kg_args *args);

/* The first kernel of the gradients: G and its sums, to the workspace. */
enum kg_status linear_relu_bwd_mask(const struct product_sizes *problem,
                                    const struct linear_relu_gradients *t,
                                    const struct linear_relu_bwd_plan *plan, void *workspace,
                                    void *stream);

int linear_relu_bwd_supports(const struct product_sizes *problem, const struct kg_device *device);
enum kg_status linear_relu_bwd_prepare(const struct product_sizes *problem,
                                       const struct kg_device *device);
enum kg_status linear_relu_bwd_launch(const struct product_sizes *problem,
                                      const struct kg_args *args);

#endif
