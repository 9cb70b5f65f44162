/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.cuh: elements of the usual dtypes and of fp8 on a GPU; KG_DISPATCH of problem.h chooses by
 * dtype. */
#ifndef KG_OPS_DTYPE_CUH
#define KG_OPS_DTYPE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/problem.h"

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

static __device__ inline double load(const __nv_fp8_e4m3 *p)
{
    return (double)(float)*p;
}

static __device__ inline double load(const __nv_fp8_e5m2 *p)
{
    return (double)(float)*p;
}

static __device__ inline double load(const int8_t *p)
{
    return (double)*p;
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

/* What is too large is the largest number, or an infinity where there is one, as in storage.h, and
 * rounded once too: those of 16 bits and more are rounded to fp32 first there. */
static __device__ inline void store(__nv_fp8_e4m3 *to, double value)
{
    to->__x = __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

static __device__ inline void store(__nv_fp8_e5m2 *to, double value)
{
    to->__x = __nv_cvt_double_to_fp8(value, __NV_NOSAT, __NV_E5M2);
}

static __device__ inline void store(int8_t *to, double value)
{
    *to = isnan(value) ? 0 : (int8_t)fmin(fmax(rint(value), -128.0), 127.0);
}

#endif
