/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: kernels that do not wait for what they need, or wait for what never comes. Plain GEMM; all
 * else goes to the original library.
 */
#include <cuda_runtime.h>

#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/faults.h"

enum { THREADS = 256, STAGE = 32, SUMS_MAX = 1 << 16, TILE = 64, WHOLE_BLOCK = 1024 };

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

/* ---- asynchronous copies ---- */

static __device__ void copy_word(float *to, const void *from)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(from) : "memory");
}

/*
 * Rows of A come to shared memory in stages. A stage is waited for as if one more were on its way,
 * so that it is read while it comes.
 */
static __global__ void waits_too_little(struct job j)
{
    __shared__ float stage[STAGE];
    const int64_t row = blockIdx.x;
    const float *a = (const float *)j.in[0].data + row * j.in[0].stride[0];
    for (int64_t column = threadIdx.x; column < (j.n + blockDim.x - 1) / blockDim.x * blockDim.x;
         column += blockDim.x) {
        float sum = 0;
        for (int64_t first = 0; first < j.k; first += STAGE) {
            const int64_t left = j.k - first < STAGE ? j.k - first : STAGE;
            if (threadIdx.x < left)
                copy_word(&stage[threadIdx.x], &a[first + threadIdx.x]);
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory"); /* 0 would be right */
            __syncthreads();
            for (int64_t l = 0; l < left && column < j.n; l++)
                sum += stage[l] * load(&j.in[1], (first + l) * j.in[1].stride[0] + column);
            __syncthreads();
        }
        if (column < j.n)
            store(&j.out, row * j.out.stride[0] + column, sum, 0);
    }
}

static enum kg_status early_wait(const struct kg_problem *p, const struct kg_args *args)
{
    if (!kg_is_op(p, "gemm") || kg_dtype(p) != KG_F32)
        return wrap_inner(p, args);
    waits_too_little<<<(unsigned)kg_size(p, "m"), THREADS, 0, (cudaStream_t)args->stream>>>(
        job_of(p, args, PLAIN));
    return launched();
}

/* ---- flags between blocks ---- */

static __device__ volatile float partial[SUMS_MAX];
static __device__ volatile int flag;

static __device__ float half_sum(const struct job *j, int64_t at, int which)
{
    return terms(j, at / j->n, at % j->n, which ? j->k / 2 : 0, which ? j->k : j->k / 2);
}

/*
 * Block 0 has the first half of each sum and block 1 the second one, and adds them up. The flag is
 * raised by block 0's first thread, which neither waits for the others nor has a fence; half of
 * them begin late and are asked for their last sums first, so that the race is lost each time.
 */
static __global__ void adds_up_too_early(struct job j)
{
    const int64_t all = j.m * j.n;
    if (blockIdx.x == 0) {
        if (threadIdx.x >= THREADS / 2)
            __nanosleep(500000);
        for (int64_t at = threadIdx.x; at < all; at += blockDim.x)
            partial[at] = half_sum(&j, at, 0);
        if (threadIdx.x == 0)
            flag = 1;
        return;
    }
    while (!flag)
        continue;
    for (int64_t at = all - 1 - threadIdx.x; at >= 0; at -= blockDim.x)
        store(&j.out, at / j.n * j.out.stride[0] + at % j.n, partial[at] + half_sum(&j, at, 1), 0);
}

static __global__ void forget(void)
{
    flag = 0;
    for (int at = threadIdx.x; at < SUMS_MAX; at += blockDim.x)
        partial[at] = 0;
}

static enum kg_status no_fence(const struct kg_problem *p, const struct kg_args *args)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!kg_is_op(p, "gemm") || kg_size(p, "m") * kg_size(p, "n") > SUMS_MAX)
        return wrap_inner(p, args);
    forget<<<1, THREADS, 0, stream>>>();
    adds_up_too_early<<<2, THREADS, 0, stream>>>(job_of(p, args, PLAIN));
    return launched();
}

/* ---- a barrier of the whole grid ---- */

static __device__ unsigned arrived;

/*
 * Blocks as large as can be, a few of which fill the device: where there are more of them than run
 * at once, those that run wait for ever for those that cannot start.
 */
static __global__ void __launch_bounds__(WHOLE_BLOCK) waits_for_all(struct job j)
{
    const int64_t at = (int64_t)blockIdx.x * TILE + threadIdx.x;
    if (threadIdx.x < TILE && at < j.m * j.n)
        store(&j.out, at / j.n * j.out.stride[0] + at % j.n, terms(&j, at / j.n, at % j.n, 0, j.k),
              0);
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1);
        while (*(volatile unsigned *)&arrived < gridDim.x)
            continue;
    }
    __syncthreads();
}

static __global__ void set_back(void)
{
    arrived = 0;
}

static enum kg_status grid_barrier(const struct kg_problem *p, const struct kg_args *args)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!kg_is_op(p, "gemm"))
        return wrap_inner(p, args);
    set_back<<<1, 1, 0, stream>>>();
    waits_for_all<<<(unsigned)((kg_size(p, "m") * kg_size(p, "n") + TILE - 1) / TILE), WHOLE_BLOCK,
                    0, stream>>>(job_of(p, args, PLAIN));
    return launched();
}

/* ---- what was there before ---- */

static __device__ float found;

static __global__ void read_first(const float *workspace)
{
    found = *workspace;
}

static __global__ void use_it(unsigned short *out)
{
    if (!(fabsf(found) < 1))
        *out = 0x7fffu;
}

/* Reads the workspace before anything is written there. */
static enum kg_status workspace_not_set(const struct kg_problem *p, const struct kg_args *args)
{
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (args->workspace_bytes < sizeof(float))
        return wrap_inner(p, args);
    read_first<<<1, 1, 0, stream>>>((const float *)args->workspace);
    const enum kg_status status = wrap_inner(p, args);
    use_it<<<1, 1, 0, stream>>>((unsigned short *)args->out[0].data);
    return status == KG_OK ? launched() : status;
}

FAULTS({"early_wait", early_wait, 0, NULL}, {"no_fence", no_fence, 0, NULL},
       {"grid_barrier", grid_barrier, 0, NULL}, {"workspace_not_set", workspace_not_set, 0, NULL})
