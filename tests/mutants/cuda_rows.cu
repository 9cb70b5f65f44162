/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: batched products and RMSNorm that are wrong in one step, and some that are right; a thread
 * for each result of a product, a warp for a row. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/mutants/faults.h"

/* ---- one element of any dtype ---- */

static __device__ float load(const kg_tensor &t, int64_t at)
{
    return t.dtype == KG_F16    ? __half2float(((const __half *)t.data)[at])
           : t.dtype == KG_BF16 ? __bfloat162float(((const __nv_bfloat16 *)t.data)[at])
                                : ((const float *)t.data)[at];
}

static __device__ void store(const kg_tensor &t, int64_t at, float value)
{
    if (t.dtype == KG_F16)
        ((__half *)t.data)[at] = __float2half_rn(value);
    else if (t.dtype == KG_BF16)
        ((__nv_bfloat16 *)t.data)[at] = __float2bfloat16_rn(value);
    else
        ((float *)t.data)[at] = value;
}

static enum kg_status launched()
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

/* ---- batched products ---- */

struct batch_sizes {
    int64_t b, m, n, k;
};

struct right_batch {
    static __device__ int64_t a_of(int64_t z, const batch_sizes &)
    {
        return z;
    }
    static __device__ int64_t b_of(int64_t z, const batch_sizes &)
    {
        return z;
    }
    static __device__ bool skips(int64_t, const batch_sizes &)
    {
        return false;
    }
    static __device__ int64_t terms(int64_t, const batch_sizes &s)
    {
        return s.k;
    }
    static __device__ int64_t step_b(const kg_tensor &b)
    {
        return b.stride[0];
    }
    static constexpr bool BACKWARD = false;
};

struct last_of_batch_how : right_batch {
    static __device__ bool skips(int64_t z, const batch_sizes &s)
    {
        return z > 1 && z == s.b - 1;
    }
};

struct one_b_for_all_how : right_batch {
    static __device__ int64_t b_of(int64_t, const batch_sizes &)
    {
        return 0;
    }
};

struct a_of_the_one_before_how : right_batch {
    static __device__ int64_t a_of(int64_t z, const batch_sizes &s)
    {
        return z > 0 && z == s.b - 1 ? z - 1 : z;
    }
};

struct batch_in_three_bits_how : right_batch {
    static __device__ int64_t b_of(int64_t z, const batch_sizes &)
    {
        return z & 7;
    }
};

struct last_is_short_how : right_batch {
    static __device__ int64_t terms(int64_t z, const batch_sizes &s)
    {
        return z == s.b - 1 && s.k > 8 ? s.k - 1 : s.k;
    }
};

struct dense_batch_how : right_batch {
    static __device__ int64_t step_b(const kg_tensor &b)
    {
        return b.shape[1] * b.stride[1];
    }
};

struct batch_backward_how : right_batch {
    static constexpr bool BACKWARD = true;
};

template <typename How>
static __global__ void multiply(const kg_tensor a, const kg_tensor b, const kg_tensor c,
                                const batch_sizes s)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t z = at / (s.m * s.n), i = at / s.n % s.m, j = at % s.n;
    const int64_t terms = How::terms(z, s);
    float sum = 0;
    if (z >= s.b || How::skips(z, s))
        return;
    for (int64_t x = 0; x < terms; x++) {
        const int64_t l = How::BACKWARD ? terms - 1 - x : x;
        sum += load(a, How::a_of(z, s) * a.stride[0] + i * a.stride[1] + l) *
               load(b, How::b_of(z, s) * How::step_b(b) + l * b.stride[1] + j);
    }
    store(c, z * c.stride[0] + i * c.stride[1] + j, sum);
}

template <typename How>
static enum kg_status batch(const struct kg_problem *p, const struct kg_args *args)
{
    if (!kg_is_op(p, "batched_gemm"))
        return wrap_inner(p, args);
    const batch_sizes s = {kg_size(p, "b"), kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k")};
    multiply<How>
        <<<(unsigned)((s.b * s.m * s.n + 255) / 256), 256, 0, (cudaStream_t)args->stream>>>(
            args->in[0], args->in[1], args->out[0], s);
    return launched();
}

/* ---- RMSNorm ---- */

struct right_norm {
    static __device__ int64_t columns(int64_t n)
    {
        return n;
    }
    static __device__ int64_t divisor(int64_t n)
    {
        return n;
    }
    static __device__ float eps(float given)
    {
        return given;
    }
    static __device__ int64_t row(int64_t i)
    {
        return i;
    }
    static __device__ float kept(float sum)
    {
        return sum;
    }
    static __device__ int64_t weighted(int64_t n)
    {
        return n;
    }
};

struct without_eps_how : right_norm {
    static __device__ float eps(float)
    {
        return 0;
    }
};

struct mean_of_padded_how : right_norm {
    static __device__ int64_t divisor(int64_t n)
    {
        return (n + 63) / 64 * 64;
    }
};

struct squares_without_tail_how : right_norm {
    static __device__ int64_t columns(int64_t n)
    {
        return n < 8 ? n : n / 8 * 8;
    }
};

struct row_pairs_how : right_norm {
    static __device__ int64_t row(int64_t i)
    {
        return i / 2 * 2;
    }
};

struct squares_in_bf16_how : right_norm {
    static __device__ float kept(float sum)
    {
        return __bfloat162float(__float2bfloat16_rn(sum));
    }
};

struct unweighted_tail_how : right_norm {
    static __device__ int64_t weighted(int64_t n)
    {
        return n / 64 * 64;
    }
};

struct squares_in_lanes_how : right_norm {
};

template <typename How>
static __global__ void norm(const kg_tensor x, const kg_tensor w, const kg_tensor y, float eps)
{
    const int64_t i = blockIdx.x, from = How::row(i), n = x.shape[1];
    float sum = 0;
    for (int64_t j = threadIdx.x; j < How::columns(n); j += 32) {
        const float value = load(x, from * x.stride[0] + j);
        sum = How::kept(sum + value * value);
    }
    for (int by = 16; by > 0; by /= 2)
        sum = How::kept(sum + __shfl_xor_sync(~0u, sum, by));
    const float factor = 1 / sqrtf(sum / (float)How::divisor(n) + How::eps(eps));
    for (int64_t j = threadIdx.x; j < n; j += 32)
        store(y, i * y.stride[0] + j,
              load(x, i * x.stride[0] + j) * factor * (j < How::weighted(n) ? load(w, j) : 1));
}

template <typename How>
static enum kg_status rows(const struct kg_problem *p, const struct kg_args *args)
{
    if (!kg_is_op(p, "rmsnorm"))
        return wrap_inner(p, args);
    norm<How><<<(unsigned)kg_size(p, "m"), 32, 0, (cudaStream_t)args->stream>>>(
        args->in[0], args->in[1], args->out[0], (float)kg_param(p, "eps"));
    return launched();
}

/* clang-format off */
#define BATCH(name) {#name, batch<name##_how>, 0, NULL}
#define ROWS(name) {#name, rows<name##_how>, 0, NULL}
/* clang-format on */
FAULTS(BATCH(last_of_batch), BATCH(one_b_for_all), BATCH(a_of_the_one_before),
       BATCH(batch_in_three_bits), BATCH(last_is_short), BATCH(dense_batch), BATCH(batch_backward),
       ROWS(without_eps), ROWS(mean_of_padded), ROWS(squares_without_tail), ROWS(row_pairs),
       ROWS(squares_in_bf16), ROWS(unweighted_tail), ROWS(squares_in_lanes))
