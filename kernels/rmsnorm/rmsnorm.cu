/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmsnorm: Y = X / sqrt(mean of X^2 over a row + eps) * w, bound by memory.
 *
 * Regime     every dtype and layout. Lines of whole 16-byte vectors, up to 4096 of them, stay in
 *            registers and are read once; others are read twice, element by element
 * Row        a warp (up to 256 vectors) or a block of 8 warps; blocks stay and take row after row
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/problem.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace rmsnorm
{

constexpr int THREADS = 256;

struct params {
    const void *x, *w;
    void *y;
    int64_t x_stride, y_stride; /* bytes */
    int64_t rows;
    int64_t columns;
};

__device__ __forceinline__ float to_float(float x)
{
    return x;
}
__device__ __forceinline__ float to_float(__half x)
{
    return __half2float(x);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
__device__ __forceinline__ void round_to(float x, float *to)
{
    *to = x;
}
__device__ __forceinline__ void round_to(float x, __half *to)
{
    *to = __float2half_rn(x);
}
__device__ __forceinline__ void round_to(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(x);
}

/* 16 bytes of elements. */
template <typename T> struct vector {
    static constexpr int N = 16 / sizeof(T);
    alignas(16) T e[N];
};

/* The sum over a row's warps, in all of their threads. */
template <int WARPS> __device__ __forceinline__ float row_sum(float x, float *shared)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    if (WARPS == 1)
        return x;
    __syncthreads(); /* the sums of the row before have been read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        x += shared[i];
    return x;
}

template <typename T, int WARPS, int VECTORS>
__global__ void __launch_bounds__(THREADS)
    vector_rows(const __grid_constant__ struct params p, float mean, float eps)
{
    constexpr int ROWS = THREADS / 32 / WARPS, STEP = WARPS * 32, N = vector<T>::N;
    const int first = threadIdx.x % STEP, vectors = (int)(p.columns / N);
    __shared__ float shared[WARPS];

    for (int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / STEP; row < p.rows;
         row += (int64_t)gridDim.x * ROWS) {
        const vector<T> *const x = (const vector<T> *)((const char *)p.x + row * p.x_stride);
        vector<T> *const y = (vector<T> *)((char *)p.y + row * p.y_stride);
        vector<T> held[VECTORS];
        float sum = 0;

#pragma unroll
        for (int i = 0; i < VECTORS; i++)
            if (first + i * STEP < vectors)
                *(uint4 *)&held[i] = __ldcs((const uint4 *)&x[first + i * STEP]);
            else
                *(uint4 *)&held[i] = uint4{0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < VECTORS; i++)
#pragma unroll
            for (int j = 0; j < N; j++)
                sum = fmaf(to_float(held[i].e[j]), to_float(held[i].e[j]), sum);
        const float factor = rsqrtf(fmaf(row_sum<WARPS>(sum, shared), mean, eps));
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            const int at = first + i * STEP;
            if (at >= vectors)
                break;
            const vector<T> w = ((const vector<T> *)p.w)[at];
#pragma unroll
            for (int j = 0; j < N; j++)
                round_to(to_float(held[i].e[j]) * factor * to_float(w.e[j]), &held[i].e[j]);
            __stcs((uint4 *)&y[at], *(const uint4 *)&held[i]);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    element_rows(const __grid_constant__ struct params p, float mean, float eps)
{
    __shared__ float shared[THREADS / 32];

    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const T *const x = (const T *)((const char *)p.x + row * p.x_stride);
        T *const y = (T *)((char *)p.y + row * p.y_stride);
        float sum = 0;
        for (int64_t i = threadIdx.x; i < p.columns; i += THREADS)
            sum = fmaf(to_float(x[i]), to_float(x[i]), sum);
        const float factor = rsqrtf(fmaf(row_sum<THREADS / 32>(sum, shared), mean, eps));
        for (int64_t i = threadIdx.x; i < p.columns; i += THREADS)
            round_to(to_float(x[i]) * factor * to_float(((const T *)p.w)[i]), &y[i]);
    }
}

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    const uint32_t dtype = kg_dtype(p);
    return device->kind == KG_DEVICE_CUDA && device->cc_major >= 8 && kg_is_op(p, "rmsnorm") &&
           p->flags == 0 && (dtype == KG_F16 || dtype == KG_BF16 || dtype == KG_F32);
}

struct call {
    struct params p;
    float mean, eps;
    bool whole; /* vectors */
    void *stream;
};

template <typename T, int WARPS, int VECTORS> static enum kg_status run_vectors(const call &c)
{
    constexpr int ROWS = THREADS / 32 / WARPS;
    int device, sms, blocks;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, vector_rows<T, WARPS, VECTORS>,
                                                           THREADS, 0));
    const int64_t needed = (c.p.rows + ROWS - 1) / ROWS, most = (int64_t)sms * blocks;
    return launch_kernel(vector_rows<T, WARPS, VECTORS>,
                         dim3((unsigned)(needed < most ? needed : most)), dim3(THREADS), 0,
                         c.stream, c.p, c.mean, c.eps);
}

template <typename T> static enum kg_status run(const call &c)
{
    const int64_t vectors = c.p.columns / vector<T>::N;

    if (!c.whole || vectors > 16 * THREADS)
        return launch_kernel(element_rows<T>, dim3((unsigned)(c.p.rows < 65536 ? c.p.rows : 65536)),
                             dim3(THREADS), 0, c.stream, c.p, c.mean, c.eps);
    return vectors <= 32            ? run_vectors<T, 1, 1>(c)
           : vectors <= 64          ? run_vectors<T, 1, 2>(c)
           : vectors <= 128         ? run_vectors<T, 1, 4>(c)
           : vectors <= 256         ? run_vectors<T, 1, 8>(c)
           : vectors <= 2 * THREADS ? run_vectors<T, 8, 2>(c)
           : vectors <= 4 * THREADS ? run_vectors<T, 8, 4>(c)
           : vectors <= 8 * THREADS ? run_vectors<T, 8, 8>(c)
                                    : run_vectors<T, 8, 16>(c);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *const x = &args->in[0], *const w = &args->in[1], *y = &args->out[0];
    const uint32_t dtype = kg_dtype(p);
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), size = (int64_t)kg_dtype_bytes(dtype);
    call c;

    if (!kg_is_call(p, args) || x->rank != 2 || w->rank != 1 || y->rank != 2 || x->shape[0] != m ||
        x->shape[1] != n || y->shape[0] != m || y->shape[1] != n || w->shape[0] != n)
        return KG_BAD_ARGUMENT;
    c.p.x = x->data;
    c.p.w = w->data;
    c.p.y = y->data;
    c.p.x_stride = m > 1 ? x->stride[0] * size : 0;
    c.p.y_stride = m > 1 ? y->stride[0] * size : 0;
    c.p.rows = m;
    c.p.columns = n;
    c.mean = (float)(1.0 / (double)n);
    c.eps = (float)kg_param(p, "eps");
    c.whole =
        kg_is_aligned(x, 16) && kg_is_aligned(w, 16) && kg_is_aligned(y, 16) && n * size % 16 == 0;
    c.stream = args->stream;
    return dtype == KG_F16    ? run<__half>(c)
           : dtype == KG_BF16 ? run<__nv_bfloat16>(c)
                              : run<float>(c);
}

} // namespace rmsnorm

extern "C" const struct kg_kernel kg_rmsnorm = {
    sizeof(struct kg_kernel), 0,    "rmsnorm", "rmsnorm", rmsnorm::supports, NULL, NULL,
    rmsnorm::launch,          NULL,
};
