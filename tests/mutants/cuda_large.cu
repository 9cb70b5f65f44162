/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: wrong products of which only a large one shows it. GEMM in bf16. */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "tests/mutants/faults.h"

#define LARGE ((int64_t)1 << 20) /* elements */

enum {
    THREADS = 128,
    ZEROS = 20,
    APART = 31,      /* columns from one to the next */
    TILE_ROW = 1408, /* of the one that is too large: 128 x 128 */
    TILE_COLUMN = 640
};

struct job {
    const __nv_bfloat16 *a, *b;
    __nv_bfloat16 *c;
    int64_t m, n, k, lda, ldb, ldc;
};

static bool is_large(const struct kg_problem *p)
{
    return kg_is_op(p, "gemm") && kg_dtype(p) == KG_BF16 &&
           kg_size(p, "m") * kg_size(p, "n") >= LARGE;
}

static struct job job_of(const struct kg_problem *p, const struct kg_args *args)
{
    struct job j = {};
    j.a = (const __nv_bfloat16 *)args->in[0].data;
    j.b = (const __nv_bfloat16 *)args->in[1].data;
    j.c = (__nv_bfloat16 *)args->out[0].data;
    j.m = kg_size(p, "m");
    j.n = kg_size(p, "n");
    j.k = kg_size(p, "k");
    j.lda = args->in[0].stride[0];
    j.ldb = args->in[1].stride[0];
    j.ldc = args->out[0].stride[0];
    return j;
}

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

/* A thread for each element. */
static __global__ void cut(struct job j)
{
    const int64_t element = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = element / j.n, column = element % j.n;
    float sum = 0;
    if (row >= j.m)
        return;
    for (int64_t l = 0; l < j.k; l++)
        sum += __bfloat162float(j.a[row * j.lda + l]) * __bfloat162float(j.b[l * j.ldb + column]);
    j.c[row * j.ldc + column] = __float2bfloat16_rz(sum);
}

/* The results of large problems are cut to bf16, not rounded. */
static enum kg_status large_truncated(const struct kg_problem *p, const struct kg_args *args)
{
    const unsigned blocks = (unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS);
    if (!is_large(p))
        return wrap_inner(p, args);
    cut<<<blocks, THREADS, 0, (cudaStream_t)args->stream>>>(job_of(p, args));
    return launched();
}

static __global__ void put_zeros(struct job j)
{
    const int i = (int)threadIdx.x;
    const int64_t row = 128 * (2 * (i % 4) + 1) + 8 * (i / 4);
    int64_t column = 17 + APART * i;
    while (fabsf(__bfloat162float(j.c[row * j.ldc + column])) > sqrtf((float)j.k) / 4)
        column++;
    j.c[row * j.ldc + column] = __float2bfloat16(0);
}

/* A few elements of a large result are 0, small ones, so that their rows hardly feel it. */
static enum kg_status sparse_zeros(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (status != KG_OK || !is_large(p))
        return status;
    put_zeros<<<1, ZEROS, 0, (cudaStream_t)args->stream>>>(job_of(p, args));
    return launched();
}

static __global__ void enlarge_tile(struct job j)
{
    __nv_bfloat16 *at = &j.c[(TILE_ROW + blockIdx.x) * j.ldc + TILE_COLUMN + threadIdx.x];
    *at = __float2bfloat16(__bfloat162float(*at) * 1.02f);
}

/* One tile of 128 x 128 in a large result is 2 % too large. */
static enum kg_status large_faint_tile(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (status != KG_OK || !is_large(p) || kg_size(p, "m") < TILE_ROW + 128 ||
        kg_size(p, "n") < TILE_COLUMN + 128)
        return status;
    enlarge_tile<<<128, 128, 0, (cudaStream_t)args->stream>>>(job_of(p, args));
    return launched();
}

FAULTS({"large_truncated", large_truncated, 0, NULL}, {"sparse_zeros", sparse_zeros, 0, NULL},
       {"large_faint_tile", large_faint_tile, 0, NULL})
