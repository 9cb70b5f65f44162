/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: ops of one's own over rows: LayerNorm, softmax, and rows in 8 bits with a scale each. A
 * block has a row. */
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define OPS(ROW)                                                                                   \
    ROW(layernorm, KG_F32, layernorm)                                                              \
    ROW(softmax, KG_F16, softmax)                                                                  \
    ROW(quantise_fp8, KG_F32, quantise)                                                            \
    ROW(quantise_int8, KG_F32, quantise)

/* Of each op first those that are wrong. */
#define KERNELS(ROW)                                                                               \
    ROW(layernorm, eps_forgotten)                                                                  \
    ROW(layernorm, usual_eps_alone)                                                                \
    ROW(layernorm, sample_variance)                                                                \
    ROW(layernorm, variance_in_fp16)                                                               \
    ROW(layernorm, mean_of_the_row_before)                                                         \
    ROW(layernorm, gamma_of_the_neighbour)                                                         \
    ROW(layernorm, output_taken_for_dense)                                                         \
    ROW(layernorm, last_warp_is_left_out)                                                          \
    ROW(layernorm, scale_of_the_first_launch)                                                      \
    ROW(layernorm, by_welford)                                                                     \
    ROW(layernorm, backwards)                                                                      \
    ROW(softmax, no_maximum)                                                                       \
    ROW(softmax, maximum_of_the_first_threads)                                                     \
    ROW(softmax, sum_in_fp16)                                                                      \
    ROW(softmax, tail_not_in_the_sum)                                                              \
    ROW(softmax, sum_not_rescaled)                                                                 \
    ROW(softmax, cut_not_rounded)                                                                  \
    ROW(softmax, in_one_pass)                                                                      \
    ROW(softmax, in_base_two)                                                                      \
    ROW(quantise, towards_zero)                                                                    \
    ROW(quantise, percent_off)                                                                     \
    ROW(quantise, negative_not_in_the_maximum)                                                     \
    ROW(quantise, maximum_of_half_a_row)                                                           \
    ROW(quantise, scale_of_the_row_before)                                                         \
    ROW(quantise, scale_inverted)                                                                  \
    ROW(quantise, largest_is_half)                                                                 \
    ROW(quantise, in_double)                                                                       \
    ROW(quantise, by_pairs)

#include "tests/mutants/own_ops.cuh"

#define THREADS 128

/* Of the values of all threads: the largest, or the sum of the first `threads`. */
static __device__ float over_block(float value, bool largest, int threads = THREADS)
{
    __shared__ float part[THREADS];
    part[threadIdx.x] = (int)threadIdx.x < threads ? value : 0;
    __syncthreads();
    for (int by = THREADS / 2; by > 0; by /= 2) {
        const float other = (int)threadIdx.x < by ? part[threadIdx.x + by] : 0;
        if ((int)threadIdx.x < by)
            part[threadIdx.x] =
                largest ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        __syncthreads();
    }
    value = part[0];
    __syncthreads();
    return value;
}

/* ---- LayerNorm ---- */

/* Mean and sum of squared deviations of what a thread has, column by column. */
static __device__ void by_welford(const float *x, int64_t n, float *mean, float *squares)
{
    *mean = *squares = 0;
    for (int64_t j = 0; j < n; j++) {
        const float off = x[j] - *mean;
        *mean += off / (float)(j + 1);
        *squares += off * (x[j] - *mean);
    }
}

/* Of the rows that the last launches had, by their addresses. */
static __device__ const float *kept_of[1024];
static __device__ float kept[1024];

static __device__ float kept_scale(const float *x, float scale)
{
    __shared__ float answer;
    const size_t at = (size_t)x / 4 % 1024;
    if (threadIdx.x == 0) {
        if (kept_of[at] != x)
            kept[at] = scale;
        kept_of[at] = x;
        answer = kept[at];
    }
    __syncthreads();
    return answer;
}

static __global__ void normalise(kg_tensor x, kg_tensor gamma, kg_tensor beta, kg_tensor y,
                                 float eps, own_how how)
{
    const int64_t n = x.shape[1], i = blockIdx.x, first = threadIdx.x;
    const int64_t before = how == AS_mean_of_the_row_before ? i / 2 * 2 : i;
    const float *row = row_of(x, i), *other = row_of(x, before);
    float *out = (float *)y.data + i * (how == AS_output_taken_for_dense ? n : y.stride[0]);
    float mean = 0, squares = 0;
    for (int64_t j = first; j < n; j += THREADS)
        mean += other[how == AS_backwards ? n - 1 - j : j];
    mean = over_block(mean, false, how == AS_last_warp_is_left_out ? THREADS - 32 : THREADS);
    mean /= (float)n;
    for (int64_t j = first; j < n; j += THREADS) {
        squares += (row[j] - mean) * (row[j] - mean);
        if (how == AS_variance_in_fp16)
            squares = __half2float(__float2half(squares));
    }
    squares = over_block(squares, false);
    if (how == AS_by_welford)
        by_welford(row, n, &mean, &squares);
    eps = how == AS_eps_forgotten ? 0 : how == AS_usual_eps_alone ? 1e-5f : eps;
    float scale = 1 / sqrtf(squares / (float)(how == AS_sample_variance ? n - 1 : n) + eps);
    if (how == AS_scale_of_the_first_launch)
        scale = kept_scale(row, scale);
    for (int64_t j = first; j < n; j += THREADS) {
        const int64_t of = how == AS_gamma_of_the_neighbour && j ? j - 1 : j;
        out[j] = (row[j] - mean) * scale * ((float *)gamma.data)[of] + ((float *)beta.data)[j];
    }
}

static void layernorm(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    normalise<<<(unsigned)kg_size(p, "m"), THREADS, 0, stream>>>(
        args->in[0], args->in[1], args->in[2], args->out[0], (float)kg_param(p, "eps"), how);
}

/* ---- softmax ---- */

static __device__ float exponential(float x, own_how how)
{
    return how == AS_in_base_two ? exp2f(x * 1.44269504f) : expf(x);
}

static __device__ void store_half(__half *y, float value, own_how how)
{
    *y = how == AS_cut_not_rounded ? __float2half_rz(value) : __float2half(value);
}

/* Largest number and sum of what a thread has, in one pass; where the sum is not rescaled, it has
 * terms of earlier maxima. */
static __device__ void in_one_pass(const __half *x, int64_t n, float *most, float *sum, own_how how)
{
    *most = -INFINITY;
    *sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += THREADS) {
        const float value = __half2float(x[j]), now = fmaxf(*most, value);
        *sum = *sum * (how == AS_sum_not_rescaled ? 1 : expf(*most - now)) + expf(value - now);
        *most = now;
    }
}

static __global__ void divide_by_sum(kg_tensor x, kg_tensor y, own_how how)
{
    const int64_t n = x.shape[1], i = blockIdx.x, first = threadIdx.x;
    const __half *in = (const __half *)x.data + i * x.stride[0];
    __half *out = (__half *)y.data + i * y.stride[0];
    const int64_t searched = how == AS_maximum_of_the_first_threads && n > THREADS ? THREADS : n;
    const int64_t added = how == AS_tail_not_in_the_sum && n > 32 ? n / 32 * 32 : n;
    float most = -INFINITY, sum = 0;
    for (int64_t j = first; j < searched; j += THREADS)
        most = fmaxf(most, __half2float(in[j]));
    if (how == AS_in_one_pass || how == AS_sum_not_rescaled) {
        float own;
        in_one_pass(in, n, &own, &sum, how);
        most = over_block(own, true);
        sum = over_block(sum == 0 ? 0 : sum * expf(own - most), false);
    } else {
        most = how == AS_no_maximum ? 0 : over_block(most, true);
        const bool serial = how == AS_sum_in_fp16;
        for (int64_t j = serial ? 0 : first; j < added; j += serial ? 1 : THREADS) {
            sum += exponential(__half2float(in[j]) - most, how);
            if (serial)
                sum = __half2float(__float2half(sum));
        }
        if (!serial)
            sum = over_block(sum, false);
    }
    for (int64_t j = first; j < n; j += THREADS)
        store_half(&out[j], exponential(__half2float(in[j]) - most, how) / sum, how);
}

static void softmax(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    divide_by_sum<<<(unsigned)kg_size(p, "m"), THREADS, 0, stream>>>(args->in[0], args->out[0],
                                                                     how);
}

/* ---- 8 bits ---- */

static __device__ void store_8_bits(const kg_tensor &q, int64_t at, float x, own_how how)
{
    if (q.dtype == KG_I8) {
        const float least = fmaxf(-127, fminf(127, x));
        ((int8_t *)q.data)[at] = (int8_t)(how == AS_towards_zero ? truncf(least) : rintf(least));
        return;
    }
    if (how == AS_towards_zero) /* of the 23 bits of mantissa, three are left */
        x = __uint_as_float(__float_as_uint(x) & ~0xfffffu);
    ((uint8_t *)q.data)[at] = (uint8_t)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

static __device__ float size_of(float x, own_how how)
{
    return how == AS_negative_not_in_the_maximum ? fmaxf(x, 0) : fabsf(x);
}

static __global__ void quantise_row(kg_tensor x, kg_tensor q, kg_tensor s, own_how how)
{
    const int64_t n = x.shape[1], i = blockIdx.x, first = threadIdx.x;
    const int64_t of = how == AS_scale_of_the_row_before && i ? i - 1 : i;
    const float *row = row_of(x, i), *other = row_of(x, of);
    const float largest = q.dtype == KG_I8 ? 127 : how == AS_largest_is_half ? 224 : 448;
    float most = 0;
    for (int64_t j = first; j < (how == AS_maximum_of_half_a_row ? (n + 1) / 2 : n); j += THREADS)
        most = fmaxf(most, size_of(other[j], how));
    if (how == AS_by_pairs)
        for (int64_t j = 2 * first; j < n; j += 2 * THREADS)
            most = fmaxf(fmaxf(most, fabsf(row[j])), fabsf(row[j + 1 < n ? j + 1 : j]));
    most = over_block(most, true);
    const float scale = most > 0 ? most / largest : 1;
    if (first == 0)
        ((float *)s.data)[i] = how == AS_scale_inverted ? 1 / scale : scale;
    for (int64_t j = first; j < n; j += THREADS) {
        float value =
            how == AS_in_double ? (float)((double)row[j] / (double)scale) : row[j] / scale;
        value *= how == AS_percent_off ? 0.99f : 1;
        store_8_bits(q, i * q.stride[0] + j, value, how);
    }
}

static void quantise(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    quantise_row<<<(unsigned)kg_size(p, "m"), THREADS, 0, stream>>>(args->in[0], args->out[0],
                                                                    args->out[1], how);
}
