/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.h: what the files of the providers share: kernels, common checks, products, and our own
 * kernels beside them.
 */
#ifndef KG_CUBLAS_PROVIDER_H
#define KG_CUBLAS_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns from the calling function when `call` fails. */
#define KG_TRY(call)                                                                               \
    do {                                                                                           \
        const enum kg_status kg_try_status_ = (call);                                              \
        if (kg_try_status_ != KG_OK)                                                               \
            return kg_try_status_;                                                                 \
    } while (0)

extern const struct kg_kernel cublas_gemm, cublas_linear_relu;        /* products.c */
extern const struct kg_kernel cublas_batched_gemm;                    /* products.c */
extern const struct kg_kernel eager_linear_relu;                      /* products.c */
extern const struct kg_kernel cublas_linear_relu_bwd;                 /* linear_relu_bwd.c */
extern const struct kg_kernel cublas_gemv;                            /* gemv.c */
extern const struct kg_kernel cublas_gemm_fp8, cublas_gemm_fp8_block; /* gemm_fp8.c */

enum kg_status gemv_open(void);
void gemv_close(void);

/* Has the problem a dtype, flags and sizes that cuBLAS takes? */
int is_served(const struct kg_problem *p, const struct kg_device *d);

/* MATMUL_WORKSPACE_BYTES, which are what a kernel needs that has nothing else there. */
uint64_t usual_workspace_bytes(const struct kg_problem *p, const struct kg_device *d, void *plan);

/* A kernel that cuBLASLt computes, by the functions prepare() and launch() of its file. */
#define CUBLASLT_KERNEL(its_op, its_supports, its_workspace_bytes)                                 \
    const struct kg_kernel cublas_##its_op = {                                                     \
        .struct_bytes = sizeof(struct kg_kernel),                                                  \
        .op = #its_op,                                                                             \
        .name = "cublaslt_" #its_op,                                                               \
        .supports = its_supports,                                                                  \
        .prepare = prepare,                                                                        \
        .workspace_bytes = its_workspace_bytes,                                                    \
        .launch = launch,                                                                          \
        .release = matmul_release,                                                                 \
    }

/* The next multiple of 256: what is put in one piece of memory is aligned so. */
static inline uint64_t round_up(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The one stride that cuBLAS cannot express is a last one other than 1. */
bool have_unit_columns(const struct kg_tensor *t, uint32_t count);

/* From one row of a matrix to the next. The stride of a single row may be anything, and cuBLAS
 * checks it. */
int64_t leading_of(const struct kg_tensor *t);

/* ---- one cuBLASLt product of row-major matrices, planned once and launched many times ---- */

#define MATMUL_WORKSPACE_BYTES ((uint64_t)32 << 20) /* what cuBLAS recommends for Hopper */
/* From one row to the next, at most: kernels of cuBLAS 13 with an epilogue, and those that it has
 * for one column of 16-bit types, read elsewhere when these bytes do not fit an int. */
#define MATMUL_ROW_BYTES INT32_MAX

/* What is done to the fp32 sums before they are rounded and stored. */
enum matmul_epilogue {
    MATMUL_PLAIN,
    MATMUL_BIAS,      /* + bias[n] */
    MATMUL_RELU_BIAS, /* max(0, + bias[n]) */
};

/* What factors of e4m3 are multiplied with. Of blocks: 1 x 128 of A', stored as [k / 128, m], and
 * 128 x 128 of B', stored as [n / 128, k / 128] with rows of a multiple of four. */
enum matmul_scales {
    MATMUL_NO_SCALES,
    MATMUL_WHOLE_SCALES,
    MATMUL_BLOCK_SCALES,
};

/* D[m, n] = epilogue(A' B') with A' [m, k] and B' [k, n], row-major; a transposed one is stored as
 * [k, m] or [n, k]. Leading dimensions are elements from one stored row to the next. */
struct matmul {
    uint32_t dtype; /* enum kg_dtype, of all matrices and the bias; with e4m3 D is bf16 */
    bool tf32, transpose_a, transpose_b;
    enum matmul_epilogue epilogue;
    enum matmul_scales scales;
    int64_t m, n, k;
    int64_t lda, ldb, ldd;
    int64_t batches;                      /* so many products; 0: one, which is no batch */
    int64_t stride_a, stride_b, stride_d; /* elements from one batch to the next */
};

/* That of a problem: A B, or A B^T with an epilogue or scales, since weights are stored as [n, k].
 * Of dense tensors in the second one. */
struct matmul matmul_of(const struct kg_problem *p, enum matmul_epilogue epilogue,
                        enum matmul_scales scales, int64_t lda, int64_t ldb, int64_t ldd);
struct matmul matmul_of_dense(const struct kg_problem *p, enum matmul_epilogue epilogue,
                              enum matmul_scales scales);

struct matmul_operands {
    const void *a, *b, *bias;      /* bias: NULL with MATMUL_PLAIN */
    const void *scale_a, *scale_b; /* NULL with MATMUL_NO_SCALES */
    void *d;
    void *workspace; /* MATMUL_WORKSPACE_BYTES */
    void *stream;
};

/* Of D. */
static inline uint32_t matmul_result(const struct matmul *m)
{
    return m->dtype == KG_E4M3 ? KG_BF16 : m->dtype;
}

/* Bytes of the scales of A' and of B'. */
static inline uint64_t matmul_scale_a_bytes(const struct matmul *m)
{
    return m->scales == MATMUL_BLOCK_SCALES ? (uint64_t)((m->k + 127) / 128 * m->m) * 4 : 4;
}

static inline uint64_t matmul_scale_b_bytes(const struct matmul *m)
{
    return m->scales == MATMUL_BLOCK_SCALES
               ? (uint64_t)((m->k + 511) / 512 * 4 * ((m->n + 127) / 128)) * 4
               : 4;
}

/* `timed`: matmul_prepare() takes the fastest of the algorithms that cuBLASLt's heuristics name, by
 * trying them (matmul_tune); else the one that they name first. */
enum kg_status matmul_open(bool timed);
void matmul_close(void);

/* Whether its result is rounded once, as kernel.h asks. With a bias cuBLASLt rounds the sum and
 * then the sum with its bias where rows of 16-bit types are no multiples of 16 bytes. */
bool matmul_rounds_once(const struct matmul *m);

/* Products that are planned: the list that a kernel's plan is. NULL: none. */
struct matmul_plan;

/* Chooses an algorithm and puts it at the end of the list at *plans, unless it is there.
 * KG_UNSUPPORTED: there is none that rounds once. */
enum kg_status matmul_prepare(const struct matmul *m, struct matmul_plan **plans);

/* The same for the list that becomes a kernel's plan: of the problem's dense tensors. */
enum kg_status matmul_prepare_dense(const struct kg_problem *p, enum matmul_epilogue epilogue,
                                    enum matmul_scales scales, void **plan);

/* Frees a list of plans. */
void matmul_release(void *plans);

/* Enqueues the product. One that was not prepared, such as one of a layout that only the launch
 * knows, takes the algorithm that is named first, and joins `plans`. KG_UNSUPPORTED: rows are too
 * far apart, or it would not round once. */
enum kg_status matmul_launch(const struct matmul *m, void *plans, const struct matmul_operands *o);

/* ---- which of several algorithms for one product is the fastest here ---- */

enum { MATMUL_CANDIDATES_MAX = 16 };

/* Enqueues candidate i. */
typedef enum kg_status (*matmul_candidate)(void *context, unsigned i,
                                           const struct matmul_operands *o);

/*
 * Times n candidates on memory of its own, which is freed again, and says which takes the least.
 * As the gate times: recorded in CUDA graphs, on operands that rotate over more than the caches, in
 * turns and with rests. Candidates that fail are passed over; the status is theirs when all do.
 * Where the device has no memory for one set of operands nothing is timed, and the first one
 * stands.
 */
enum kg_status matmul_tune(const struct matmul *m, matmul_candidate run, void *context, unsigned n,
                           unsigned *fastest);

/* ---- kernels of relu.cu and scales.cu ---- */

/* Enqueues the scales of blocks of a product, as kernel.h has them, in the order that struct matmul
 * asks for: SA to `a`, SB to `b`. */
enum kg_status arrange_scales(const struct kg_tensor *sa, const struct kg_tensor *sb, float *a,
                              float *b, void *stream);

/* Enqueues Y = max(0, T); T is dense, of Y's shape and dtype, and aligned to 256 bytes. */
enum kg_status relu(const void *t, const struct kg_tensor *y, void *stream);

/* Bytes of scratch for an [m, n] gradient. */
uint64_t relu_gradient_scratch_bytes(int64_t m, int64_t n);

/*
 * Enqueues G = dY where Y > 0, else 0, into the dense [m, n] matrix `g` of the same dtype, and the
 * column sums of G into db[n], which are summed in fp32 in an order that the sizes fix. `g` and
 * `scratch` are device memory aligned to 256 bytes.
 */
enum kg_status relu_gradient(const struct kg_tensor *dy, const struct kg_tensor *y, void *g,
                             void *scratch, const struct kg_tensor *db, void *stream);

#ifdef __cplusplus
}
#endif

#endif
