/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu.cu: the ReLU of a matrix, and its gradient with the column sums of that, see provider.h.
 *
 * Both are bound by memory: 16 bytes a thread at a time where the layout allows it, one element
 * else. In the ReLU a thread's index runs over rows and the packs of a row. In the gradient a block
 * of LANES x WARPS threads takes ROWS rows of LANES packs of columns and leaves one partial sum a
 * column; a second, small kernel adds these.
 */
#include "kernels/cublas/provider.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"

enum { LANES = 32, WARPS = 8, THREADS = LANES * WARPS, ROWS = 64 };

template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) pack {
    T at[WIDTH];
};

/* A NaN stays one, as in frameworks. */
template <typename T> static __device__ T relu_of(T x)
{
    return x <= T(0.0f) ? T(0.0f) : x;
}

template <typename T, int WIDTH>
static __global__ void __launch_bounds__(THREADS)
    relu_kernel(const T *t, T *y, int64_t leading, int64_t packs, int64_t all)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= all)
        return;
    using values = struct pack<T, WIDTH>;
    values v = ((const values *)t)[i];
    for (int j = 0; j < WIDTH; j++)
        v.at[j] = relu_of(v.at[j]);
    *(values *)(y + i / packs * leading + i % packs * WIDTH) = v;
}

template <typename T, int WIDTH>
static enum kg_status enqueue(const void *t, const struct kg_tensor *y, void *stream)
{
    const int64_t packs = y->shape[1] / WIDTH, all = y->shape[0] * packs;
    const int64_t blocks = (all + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX)
        return KG_UNSUPPORTED;
    return launch_kernel(relu_kernel<T, WIDTH>, dim3((unsigned)blocks), dim3(THREADS), 0, stream,
                         (const T *)t, (T *)y->data, y->stride[0], packs, all);
}

template <typename T>
static enum kg_status enqueue_widest(const void *t, const struct kg_tensor *y, void *stream)
{
    enum { WIDTH = 16 / sizeof(T) };
    return y->shape[1] % WIDTH == 0 && y->stride[0] % WIDTH == 0 ? enqueue<T, WIDTH>(t, y, stream)
                                                                 : enqueue<T, 1>(t, y, stream);
}

enum kg_status relu(const void *t, const struct kg_tensor *y, void *stream)
{
    switch (y->dtype) {
    case KG_F16:
        return enqueue_widest<__half>(t, y, stream);
    case KG_BF16:
        return enqueue_widest<__nv_bfloat16>(t, y, stream);
    case KG_F32:
        return enqueue_widest<float>(t, y, stream);
    }
    return KG_BAD_ARGUMENT;
}

template <typename T> struct matrix {
    T *data;
    int64_t leading;
};

static __device__ float to_float(float x)
{
    return x;
}

static __device__ float to_float(__half x)
{
    return __half2float(x);
}

static __device__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ void store(float *to, float x)
{
    *to = x;
}

static __device__ void store(__half *to, float x)
{
    *to = __float2half_rn(x);
}

static __device__ void store(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

template <typename T, int WIDTH>
static __global__ void __launch_bounds__(THREADS)
    mask_and_sum(struct matrix<const T> dy, struct matrix<const T> y, T *g, float *sums, int64_t m,
                 int64_t n)
{
    using columns = struct pack<T, WIDTH>;
    __shared__ float sum[WARPS][LANES * WIDTH];
    const int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    const int64_t blocks_across = (n + LANES * WIDTH - 1) / (LANES * WIDTH);
    const int64_t row_block = blockIdx.x / blocks_across;
    const int64_t first_column = blockIdx.x % blocks_across * LANES * WIDTH;
    const int64_t column = first_column + lane * WIDTH;
    const int64_t end = min((row_block + 1) * ROWS, m);
    float mine[WIDTH] = {};

    for (int64_t row = row_block * ROWS + warp; row < end && column < n; row += WARPS) {
        columns gradient = *(const columns *)(dy.data + row * dy.leading + column);
        const columns output = *(const columns *)(y.data + row * y.leading + column);
        for (int i = 0; i < WIDTH; i++) {
            if (!(to_float(output.at[i]) > 0.0f))
                store(&gradient.at[i], 0.0f);
            mine[i] += to_float(gradient.at[i]);
        }
        *(columns *)(g + row * n + column) = gradient;
    }
    for (int i = 0; i < WIDTH; i++)
        sum[warp][lane * WIDTH + i] = mine[i];
    __syncthreads();
    const int c = (int)threadIdx.x;
    if (c >= LANES * WIDTH || first_column + c >= n)
        return;
    float total = 0.0f;
    for (int w = 0; w < WARPS; w++)
        total += sum[w][c];
    sums[row_block * n + first_column + c] = total;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_sums(const float *sums, T *db, int64_t row_blocks, int64_t n)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= n)
        return;
    float total = 0.0f;
#pragma unroll 8
    for (int64_t block = 0; block < row_blocks; block++)
        total += sums[block * n + column];
    store(db + column, total);
}

static int64_t blocks_of(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

uint64_t relu_gradient_scratch_bytes(int64_t m, int64_t n)
{
    return (uint64_t)blocks_of(m, ROWS) * (uint64_t)n * sizeof(float);
}

template <typename T, int WIDTH>
static enum kg_status enqueue_gradient(const struct kg_tensor *dy, const struct kg_tensor *y, T *g,
                                       float *sums, T *db, void *stream)
{
    const int64_t m = dy->shape[0], n = dy->shape[1], row_blocks = blocks_of(m, ROWS);
    const struct matrix<const T> gradient = {
        (const T *)dy->data, dy->stride[0]
    };
    const struct matrix<const T> output = {
        (const T *)y->data, y->stride[0]
    };
    const int64_t blocks = row_blocks * blocks_of(n, LANES * WIDTH);
    if (blocks > INT32_MAX)
        return KG_UNSUPPORTED;
    const enum kg_status status =
        launch_kernel(mask_and_sum<T, WIDTH>, dim3((unsigned)blocks), dim3(THREADS), 0, stream,
                      gradient, output, g, sums, m, n);
    if (status != KG_OK)
        return status;
    return launch_kernel(add_sums<T>, dim3((unsigned)blocks_of(n, THREADS)), dim3(THREADS), 0,
                         stream, sums, db, row_blocks, n);
}

template <typename T>
static enum kg_status enqueue_gradient_widest(const struct kg_tensor *dy, const struct kg_tensor *y,
                                              void *g, void *scratch, const struct kg_tensor *db,
                                              void *stream)
{
    enum { WIDTH = 16 / sizeof(T) };
    const bool in_packs =
        dy->shape[1] % WIDTH == 0 && dy->stride[0] % WIDTH == 0 && y->stride[0] % WIDTH == 0;
    return in_packs
               ? enqueue_gradient<T, WIDTH>(dy, y, (T *)g, (float *)scratch, (T *)db->data, stream)
               : enqueue_gradient<T, 1>(dy, y, (T *)g, (float *)scratch, (T *)db->data, stream);
}

enum kg_status relu_gradient(const struct kg_tensor *dy, const struct kg_tensor *y, void *g,
                             void *scratch, const struct kg_tensor *db, void *stream)
{
    switch (dy->dtype) {
    case KG_F16:
        return enqueue_gradient_widest<__half>(dy, y, g, scratch, db, stream);
    case KG_BF16:
        return enqueue_gradient_widest<__nv_bfloat16>(dy, y, g, scratch, db, stream);
    case KG_F32:
        return enqueue_gradient_widest<float>(dy, y, g, scratch, db, stream);
    }
    return KG_BAD_ARGUMENT;
}
