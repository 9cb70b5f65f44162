/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c: see provider.h.
 *
 * cuBLASLt's own order is column-major. A row-major matrix is its transpose in column-major order,
 * so D' = B' A' is computed with the operands swapped and nothing is moved.
 *
 * kernel.h asks for sums in fp32 that are rounded once. cuBLASLt may by default reduce partial sums
 * of a split K in the output's type; for 16-bit outputs such algorithms are left out.
 */
#include "kernels/cublas/provider.h"

#include <stddef.h>
#include <stdlib.h>

#include "kernels/cublas/cublas_api.h"

/* What a launch needs, filled in by prepare. The descriptors are plain memory. */
struct matmul_plan {
    struct matmul_plan *next;
    struct matmul matmul;
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, d; /* in cuBLASLt's order */
    cublasLtMatmulAlgo_t algorithm;
};

struct matmul matmul_of(const struct kg_problem *p, enum matmul_epilogue epilogue,
                        enum matmul_scales scales, int64_t lda, int64_t ldb, int64_t ldd)
{
    return (struct matmul){
        .dtype = p->dtype[0],
        .tf32 = (p->flags & KG_FLAG_TF32) != 0,
        .transpose_b = epilogue != MATMUL_PLAIN || scales != MATMUL_NO_SCALES,
        .epilogue = epilogue,
        .scales = scales,
        .m = kg_size(p, "m"),
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .lda = lda,
        .ldb = ldb,
        .ldd = ldd,
        .batches = kg_size(p, "b"),
    };
}

struct matmul matmul_of_dense(const struct kg_problem *p, enum matmul_epilogue epilogue,
                              enum matmul_scales scales)
{
    struct matmul m = matmul_of(p, epilogue, scales, 0, 0, 0);
    m.lda = m.k;
    m.ldb = m.transpose_b ? m.k : m.n;
    m.ldd = m.n;
    m.stride_a = m.batches > 1 ? m.m * m.k : 0;
    m.stride_b = m.batches > 1 ? m.k * m.n : 0;
    m.stride_d = m.batches > 1 ? m.m * m.n : 0;
    return m;
}

static cublasLtHandle_t handle;
static bool is_timed;

enum kg_status matmul_open(bool timed)
{
    is_timed = timed;
    CUBLAS_TRY(cublas_api()->cublasLtCreate(&handle));
    return KG_OK;
}

void matmul_close(void)
{
    if (handle)
        (void)cublas_api()->cublasLtDestroy(handle);
    handle = NULL;
}

static bool same_matmul(const struct matmul *x, const struct matmul *y)
{
    return x->dtype == y->dtype && x->tf32 == y->tf32 && x->transpose_a == y->transpose_a &&
           x->transpose_b == y->transpose_b && x->epilogue == y->epilogue &&
           x->scales == y->scales && x->m == y->m && x->n == y->n && x->k == y->k &&
           x->lda == y->lda && x->ldb == y->ldb && x->ldd == y->ldd && x->batches == y->batches &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->stride_d == y->stride_d;
}

static cudaDataType_t data_type(uint32_t dtype)
{
    switch (dtype) {
    case KG_F16:
        return CUDA_R_16F;
    case KG_BF16:
        return CUDA_R_16BF;
    case KG_E4M3:
        return CUDA_R_8F_E4M3;
    default:
        return CUDA_R_32F;
    }
}

/* Matrices that are stored as [rows, columns], row-major. */
static enum kg_status describe_matrix(cublasLtMatrixLayoutOpaque_t *layout, uint32_t dtype,
                                      int64_t rows, int64_t columns, int64_t leading,
                                      int64_t batches, int64_t stride)
{
    const struct cublas_api *api = cublas_api();
    const int32_t count = (int32_t)batches;
    CUBLAS_TRY(api->cublasLtMatrixLayoutInit_internal(layout, sizeof(*layout), data_type(dtype),
                                                      (uint64_t)columns, (uint64_t)rows, leading));
    if (batches == 0)
        return KG_OK;
    CUBLAS_TRY(api->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &count, sizeof(count)));
    CUBLAS_TRY(api->cublasLtMatrixLayoutSetAttribute(
        layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
    return KG_OK;
}

static enum kg_status set_operation(struct matmul_plan *plan,
                                    cublasLtMatmulDescAttributes_t attribute, const void *value,
                                    size_t bytes)
{
    CUBLAS_TRY(
        cublas_api()->cublasLtMatmulDescSetAttribute(&plan->operation, attribute, value, bytes));
    return KG_OK;
}

/* The heuristics learn the bias's alignment from its address, which is not known yet: any address
 * that is aligned as kernel.h promises stands for it. */
static enum kg_status describe_bias(struct matmul_plan *plan)
{
    static const _Alignas(16) char aligned[16];
    const void *bias = aligned;
    const uint32_t epilogue =
        plan->matmul.epilogue == MATMUL_BIAS ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_RELU_BIAS;
    KG_TRY(set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    return set_operation(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

/* Operands are swapped: cuBLASLt's A is B'. */
static enum kg_status point_to_scales(struct matmul_plan *plan, const void *a, const void *b)
{
    KG_TRY(set_operation(plan, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &b, sizeof(b)));
    return set_operation(plan, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &a, sizeof(a));
}

/* Of cublasLtMatmulDescAttributes_t and cublasLtMatmulMatrixScale_t, as headers have them from CUDA
 * 12.9 on. */
enum { A_SCALE_MODE = 31, B_SCALE_MODE = 32, SCALE_VEC128_32F = 4, SCALE_BLK128x128_32F = 5 };

/* The fp8 products of tensor cores are added up in fp32 now and then, as kernel.h asks, unless fast
 * accumulation is asked for; that is off by default. */
static enum kg_status describe_scales(struct matmul_plan *plan)
{
    static const _Alignas(16) char aligned[16];
    if (plan->matmul.scales == MATMUL_BLOCK_SCALES) {
        const int32_t a = SCALE_BLK128x128_32F, b = SCALE_VEC128_32F;
        KG_TRY(set_operation(plan, (cublasLtMatmulDescAttributes_t)A_SCALE_MODE, &a, sizeof(a)));
        KG_TRY(set_operation(plan, (cublasLtMatmulDescAttributes_t)B_SCALE_MODE, &b, sizeof(b)));
    }
    return point_to_scales(plan, aligned, aligned);
}

static enum kg_status describe_operation(struct matmul_plan *plan)
{
    const struct matmul *m = &plan->matmul;
    const cublasComputeType_t compute = m->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int32_t a = m->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t b = m->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_TRY(cublas_api()->cublasLtMatmulDescInit_internal(
        &plan->operation, sizeof(plan->operation), compute, CUDA_R_32F));
    KG_TRY(set_operation(plan, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof(a)));
    KG_TRY(set_operation(plan, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof(b)));
    if (m->epilogue != MATMUL_PLAIN)
        KG_TRY(describe_bias(plan));
    if (m->scales != MATMUL_NO_SCALES)
        KG_TRY(describe_scales(plan));
    KG_TRY(describe_matrix(&plan->a, m->dtype, m->transpose_b ? m->n : m->k,
                           m->transpose_b ? m->k : m->n, m->ldb, m->batches, m->stride_b));
    KG_TRY(describe_matrix(&plan->b, m->dtype, m->transpose_a ? m->k : m->m,
                           m->transpose_a ? m->m : m->k, m->lda, m->batches, m->stride_a));
    return describe_matrix(&plan->d, matmul_result(m), m->m, m->n, m->ldd, m->batches, m->stride_d);
}

static enum kg_status prefer(cublasLtMatmulPreferenceOpaque_t *preference, const struct matmul *m)
{
    const struct cublas_api *api = cublas_api();
    const uint64_t workspace = MATMUL_WORKSPACE_BYTES;
    const uint32_t alignment = 16; /* what kernel.h promises; the default is 256 */
    const uint32_t reduction = m->dtype == KG_F32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                  : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    };
    CUBLAS_TRY(api->cublasLtMatmulPreferenceInit_internal(preference, sizeof(*preference)));
    CUBLAS_TRY(api->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
    CUBLAS_TRY(api->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof(reduction)));
    for (size_t i = 0; i < sizeof(aligned) / sizeof(aligned[0]); i++)
        CUBLAS_TRY(api->cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &alignment,
                                                             sizeof(alignment)));
    return KG_OK;
}

static enum kg_status run(const struct matmul_plan *prepared, const cublasLtMatmulAlgo_t *algorithm,
                          const struct matmul_operands *o)
{
    static const float one = 1.0f, zero = 0.0f;
    struct matmul_plan plan = *prepared; /* a copy: it gets this launch's bias and scales */
    if (plan.matmul.epilogue != MATMUL_PLAIN)
        KG_TRY(set_operation(&plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o->bias, sizeof(o->bias)));
    if (plan.matmul.scales != MATMUL_NO_SCALES)
        KG_TRY(point_to_scales(&plan, o->scale_a, o->scale_b));
    CUBLAS_TRY(cublas_api()->cublasLtMatmul(handle, &plan.operation, &one, o->b, &plan.a, o->a,
                                            &plan.b, &zero, o->d, &plan.d, o->d, &plan.d, algorithm,
                                            o->workspace, MATMUL_WORKSPACE_BYTES, o->stream));
    return KG_OK;
}

/* What cuBLASLt's heuristics name, the one that they expect to be the fastest first. */
struct candidates {
    const struct matmul_plan *plan;
    cublasLtMatmulHeuristicResult_t all[MATMUL_CANDIDATES_MAX];
    int n;
};

static enum kg_status run_candidate(void *context, unsigned i, const struct matmul_operands *o)
{
    const struct candidates *c = context;
    return run(c->plan, &c->all[i].algo, o);
}

static enum kg_status choose_algorithm(struct matmul_plan *plan, bool timed)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    struct candidates c = {.plan = plan};
    unsigned fastest = 0;
    KG_TRY(prefer(&preference, &plan->matmul));
    CUBLAS_TRY(cublas_api()->cublasLtMatmulAlgoGetHeuristic(
        handle, &plan->operation, &plan->a, &plan->b, &plan->d, &plan->d, &preference,
        timed ? MATMUL_CANDIDATES_MAX : 1, c.all, &c.n));
    if (c.n < 1)
        return KG_UNSUPPORTED;
    if (c.n > MATMUL_CANDIDATES_MAX)
        c.n = MATMUL_CANDIDATES_MAX;
    CUBLAS_TRY(c.all[0].state);
    if (timed)
        KG_TRY(matmul_tune(&plan->matmul, run_candidate, &c, (unsigned)c.n, &fastest));
    plan->algorithm = c.all[fastest].algo;
    return KG_OK;
}

bool matmul_rounds_once(const struct matmul *m)
{
    const int64_t step = 8; /* elements of 16 bytes */
    return m->epilogue == MATMUL_PLAIN || m->dtype == KG_F32 ||
           (m->lda % step == 0 && m->ldb % step == 0 && m->ldd % step == 0);
}

static enum kg_status make_plan(struct matmul_plan *plan, const struct matmul *m, bool timed)
{
    plan->matmul = *m;
    KG_TRY(describe_operation(plan));
    return choose_algorithm(plan, timed);
}

/* The plan of the product in the list, or a new one at its end. */
static enum kg_status find_plan(const struct matmul *m, bool timed, struct matmul_plan **plans,
                                const struct matmul_plan **found)
{
    if (!matmul_rounds_once(m))
        return KG_UNSUPPORTED;
    for (; *plans; plans = &(*plans)->next)
        if (same_matmul(&(*plans)->matmul, m)) {
            *found = *plans;
            return KG_OK;
        }
    struct matmul_plan *plan = calloc(1, sizeof(*plan));
    enum kg_status status = plan ? make_plan(plan, m, timed) : KG_LAUNCH_FAILED;
    if (status != KG_OK)
        free(plan);
    else
        *found = *plans = plan;
    return status;
}

enum kg_status matmul_prepare(const struct matmul *m, struct matmul_plan **plans)
{
    const struct matmul_plan *found;
    return find_plan(m, is_timed, plans, &found);
}

enum kg_status matmul_prepare_dense(const struct kg_problem *p, enum matmul_epilogue epilogue,
                                    enum matmul_scales scales, void **plan)
{
    struct matmul_plan *plans = NULL;
    const struct matmul m = matmul_of_dense(p, epilogue, scales);
    const enum kg_status status = matmul_prepare(&m, &plans);
    *plan = plans;
    return status;
}

void matmul_release(void *plans)
{
    for (struct matmul_plan *plan = plans, *next; plan; plan = next) {
        next = plan->next;
        free(plan);
    }
}

static bool are_rows_near(const struct matmul *m)
{
    const int64_t most = MATMUL_ROW_BYTES / (int64_t)kg_dtype_bytes(matmul_result(m));
    return m->lda <= most && m->ldb <= most && m->ldd <= most;
}

enum kg_status matmul_launch(const struct matmul *m, void *plans, const struct matmul_operands *o)
{
    struct matmul_plan *list = plans;
    const struct matmul_plan *plan;
    if (!list)
        return KG_BAD_ARGUMENT;
    if (!are_rows_near(m))
        return KG_UNSUPPORTED;
    KG_TRY(find_plan(m, false, &list, &plan));
    return run(plan, &plan->algorithm, o);
}
