/*
 * linear_relu_bwd: the gradients of Y = max(0, X W^T + b).
 *
 * G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 *
 * Four kernels in stream order: mask (writes G and partial sums to the workspace), column sums
 * (db), and two GEMMs. G is written once because both GEMMs read it many times, through copies that
 * can not apply a mask.
 *
 * Workspace: G[M,N] in the problem's dtype with lines padded to 16 bytes, so that the GEMMs take
 * their fast path whatever N is; then sums[ceil(M / 64)][N] in fp32.
 *
 * The mask kernel takes 48 registers and at most 8 KB of static shared memory, the column sums 24
 * and 1 KB; the GEMMs are those of gemm/. No spills.
 */
#include "linear_relu.h"
#include "relu_mask.cuh"
#include "../cuda/launch.cuh"
#include "../gemm/gemm_check.h"

static const int64_t WORKSPACE_ALIGN = 256;

struct workspace_plan {
    int64_t g_leading; /* elements */
    int64_t row_blocks;
    uint64_t sums_offset; /* bytes */
    uint64_t bytes;
};

static struct workspace_plan plan_workspace(const struct kg_problem *problem)
{
    const int64_t element = (int64_t)gemm_element_bytes(problem->dtype);
    struct workspace_plan plan;
    plan.g_leading = gemm_blocks(problem->n * element, 16) * 16 / element;
    plan.row_blocks = gemm_blocks(problem->m, relu_mask::ROWS);
    const int64_t g_bytes = problem->m * plan.g_leading * element;
    plan.sums_offset = (uint64_t)(gemm_blocks(g_bytes, WORKSPACE_ALIGN) * WORKSPACE_ALIGN);
    plan.bytes =
        plan.sums_offset + (uint64_t)(plan.row_blocks * problem->n) * (uint64_t)sizeof(float);
    return plan;
}

static int supports(const struct kg_problem *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, KG_OP_LINEAR_RELU_BWD) &&
           (gemm_mma_dtype(problem) || gemm_simt_dtype(problem)) &&
           gemm_serves(device, problem->m, problem->k, problem->n) &&
           gemm_serves(device, problem->n, problem->k, problem->m) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

static enum kg_status prepare(const struct kg_problem *problem, const struct kg_device *)
{
    if (!gemm_mma_dtype(problem))
        return KG_OK;
    const enum kg_status status = gemm_mma_nn_prepare();
    return status == KG_OK ? gemm_mma_tn_prepare() : status;
}

static uint64_t workspace_bytes(const struct kg_problem *problem, const struct kg_device *)
{
    return plan_workspace(problem).bytes;
}

/* The tensors of a call, checked. */
struct gradients {
    struct gemm_matrix dy, x, w, y, dx, dw;
    void *db;
};

static enum kg_status gradients_of(const struct kg_problem *problem, const struct kg_args *args,
                                   struct gradients *t)
{
    enum kg_status status = gemm_check_frame(problem, args, KG_OP_LINEAR_RELU_BWD, 4, 3);
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
    for (const auto &it : matrices) {
        status = gemm_check_matrix(it.tensor, dtype, it.rows, it.columns, it.matrix);
        if (status != KG_OK)
            return status;
    }
    t->db = args->out[2].data;
    return gemm_check_vector(&args->out[2], dtype, n);
}

template <typename T>
static enum kg_status enqueue_mask(const struct kg_problem *problem, const struct gradients &t,
                                   const struct workspace_plan &plan, unsigned char *workspace,
                                   void *stream)
{
    const bool vector = gemm_aligned(&t.dy, problem->dtype) && gemm_aligned(&t.y, problem->dtype);
    const int64_t columns =
        relu_mask::LANES * (vector ? relu_mask::RUN<T, true> : relu_mask::RUN<T, false>);

    relu_mask::mask_arguments p;
    p.dy = t.dy.data;
    p.y = t.y.data;
    p.g = workspace;
    p.sums = (float *)(workspace + plan.sums_offset);
    p.dy_leading = t.dy.leading;
    p.y_leading = t.y.leading;
    p.g_leading = plan.g_leading;
    p.m = (int)problem->m;
    p.n = (int)problem->n;
    p.column_blocks = gemm_blocks(problem->n, columns);
    const int64_t blocks = p.column_blocks * plan.row_blocks;
    if (blocks > INT32_MAX)
        return KG_UNSUPPORTED;

    const dim3 threads(relu_mask::THREADS);
    const enum kg_status status =
        launch_kernel(vector ? relu_mask::mask_kernel<T, true> : relu_mask::mask_kernel<T, false>,
                      dim3((unsigned)blocks), threads, 0, stream, p);
    if (status != KG_OK)
        return status;
    return launch_kernel(relu_mask::column_sum_kernel<T>,
                         dim3((unsigned)gemm_blocks(problem->n, relu_mask::LANES)), threads, 0,
                         stream, (const float *)p.sums, t.db, (int)plan.row_blocks, p.n);
}

static enum kg_status enqueue_mask_dtype(const struct kg_problem *problem,
                                         const struct gradients &t,
                                         const struct workspace_plan &plan,
                                         unsigned char *workspace, void *stream)
{
    switch (problem->dtype) {
    case KG_F16:
        return enqueue_mask<__half>(problem, t, plan, workspace, stream);
    case KG_BF16:
        return enqueue_mask<__nv_bfloat16>(problem, t, plan, workspace, stream);
    case KG_F32:
        return enqueue_mask<float>(problem, t, plan, workspace, stream);
    default:
        return KG_UNSUPPORTED;
    }
}

static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    struct gradients t;
    enum kg_status status = gradients_of(problem, args, &t);
    if (status != KG_OK)
        return status;
    const struct workspace_plan plan = plan_workspace(problem);
    if (args->workspace == NULL || args->workspace_bytes < plan.bytes)
        return KG_BAD_ARGUMENT;

    status = enqueue_mask_dtype(problem, t, plan, (unsigned char *)args->workspace, args->stream);
    if (status != KG_OK)
        return status;
    const bool mma = gemm_mma_dtype(problem);
    const struct gemm_matrix g = {args->workspace, problem->m > 1 ? plan.g_leading : 0};
    const struct gemm_call dx = {problem->dtype, problem->m, problem->k,  problem->n, g, t.w,
                                 t.dx,           NULL,       args->stream};
    status = mma ? gemm_mma_nn(&dx) : gemm_simt_nn(&dx);
    if (status != KG_OK)
        return status;
    const struct gemm_call dw = {problem->dtype, problem->n, problem->k,  problem->m, g, t.x,
                                 t.dw,           NULL,       args->stream};
    return mma ? gemm_mma_tn(&dw) : gemm_simt_tn(&dw);
}

const struct kg_kernel kg_linear_relu_bwd = {
    sizeof(struct kg_kernel),
    KG_OP_LINEAR_RELU_BWD,
    0,
    "linear_relu_bwd",
    supports,
    prepare,
    workspace_bytes,
    launch,
};
