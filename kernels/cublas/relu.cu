/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu.cu: see relu.h.
 *
 * Bound by memory: 16 bytes a thread where the layout allows it, one element else. A thread's index
 * runs over rows and the packs of a row.
 */
#include "kernels/cublas/relu.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"

enum { THREADS = 256 };

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
