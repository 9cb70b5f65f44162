/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_element.cuh: elements of every dtype, read and rounded.
 */
#ifndef GATE_DEVICE_CUDA_ELEMENT_CUH
#define GATE_DEVICE_CUDA_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
