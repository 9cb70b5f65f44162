/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.cuh: elements of every dtype on a GPU, and a choice of code by dtype:
 *
 *     #define FILL(T) return fill<T>(d, (T *)to, count, err)
 *         DTYPE_SWITCH(dtype, FILL)
 */
#ifndef KG_OPS_DTYPE_CUH
#define KG_OPS_DTYPE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/kernel.h"

/* One line for each dtype that is stored in its own way. */
#define DTYPE_SWITCH(dtype, USE)                                                                   \
    switch (dtype) {                                                                               \
    case KG_F16:                                                                                   \
        USE(__half);                                                                               \
        break;                                                                                     \
    case KG_BF16:                                                                                  \
        USE(__nv_bfloat16);                                                                        \
        break;                                                                                     \
    case KG_F32:                                                                                   \
        USE(float);                                                                                \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

static __device__ inline double load(const float *p)
{
    return (double)*p;
}

static __device__ inline double load(const __half *p)
{
    return (double)__half2float(*p);
}

static __device__ inline double load(const __nv_bfloat16 *p)
{
    return (double)__bfloat162float(*p);
}

static __device__ inline void store(float *to, float value)
{
    *to = value;
}

static __device__ inline void store(__half *to, float value)
{
    *to = __float2half_rn(value);
}

static __device__ inline void store(__nv_bfloat16 *to, float value)
{
    *to = __float2bfloat16_rn(value);
}

#endif
