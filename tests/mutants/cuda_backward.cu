/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: wrong backward passes of attention, and some that are right in another way; a block for
 * each query, and for each key. */
#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/faults.h"

#define STEP static __device__
static __device__ float narrowed(uint32_t dtype, float x)
{
    return dtype == KG_F16    ? __half2float(__float2half(x))
           : dtype == KG_BF16 ? __bfloat162float(__float2bfloat16(x))
                              : x;
}
namespace backward_steps
{
#include "tests/mutants/backward_steps.h"
}
using namespace backward_steps;

enum { IN_Q, IN_K, IN_V, IN_O, IN_DO, IN_LSE, THREADS = 128 };

struct tensors {
    struct view in[6], out[3];
};

static __device__ int64_t row_at(const struct view *v, int64_t b, int64_t h, int64_t row)
{
    return b * v->stride[0] + h * v->stride[1] + row * v->stride[2];
}

static __device__ float dot(const struct view *a, int64_t a_at, const struct view *b, int64_t b_at,
                            int64_t n, float factor)
{
    float sum = 0;
    for (int64_t l = 0; l < n; l++)
        sum += load(a, a_at + l) * factor * load(b, b_at + l);
    return sum;
}

/* The weight of a query and a key, and the gradient, as they are used. */
static __device__ void weigh(const struct backward &p, const struct tensors &t, int64_t b,
                             int64_t h, int64_t i, int64_t j, int of_keys, float *used,
                             float *gradient)
{
    const int64_t q = row_at(&t.in[IN_Q], b, h, i), d_o = row_at(&t.in[IN_DO], b, h, i);
    const int64_t k = row_at(&t.in[IN_K], b, kv_head_of(&p, h), j);
    const int64_t v = row_at(&t.in[IN_V], b, kv_head_of(&p, h), j);
    const int64_t o = row_at(&t.in[p.how == AS_strides_of_dout ? (int)IN_DO : (int)IN_O], b, h, i);
    *used = *gradient = 0;
    if (!is_seen(&p, i, j, of_keys))
        return;
    const float lse =
        load(&t.in[IN_LSE], b * t.in[IN_LSE].stride[0] + h * t.in[IN_LSE].stride[1] + i);
    const float weight =
        weight_of(&p, dot(&t.in[IN_Q], q, &t.in[IN_K], k, p.d, query_factor(&p)), lse);
    const float delta =
        delta_as_used(&p, dot(&t.in[IN_O], o, &t.in[IN_DO], d_o, terms_of_delta(&p), 1));
    *used = weight_as_used(&p, weight);
    *gradient =
        gradient_of(&p, weight, dot(&t.in[IN_DO], d_o, &t.in[IN_V], v, p.d, 1), delta, of_keys);
}

static __global__ void query_rows(struct backward p, struct tensors t)
{
    __shared__ float gradient[THREADS];
    const int64_t i = blockIdx.x % p.queries, h = blockIdx.x / p.queries % p.heads;
    const int64_t b = blockIdx.x / p.queries / p.heads, n = keys_of_query(&p);
    for (int64_t d0 = 0; d0 < p.d; d0 += THREADS) {
        const int64_t d = d0 + threadIdx.x;
        float sum = 0, used;
        for (int64_t first = 0; first < n; first += THREADS) {
            const int64_t here = min((int64_t)THREADS, n - first);
            __syncthreads();
            if (threadIdx.x < here)
                weigh(p, t, b, h, i, in_order(&p, first + threadIdx.x, n), 0, &used,
                      &gradient[threadIdx.x]);
            __syncthreads();
            for (int64_t at = 0; at < here && d < p.d; at++)
                sum += gradient[at] * load(&t.in[IN_K], row_at(&t.in[IN_K], b, kv_head_of(&p, h),
                                                               in_order(&p, first + at, n)) +
                                                            d);
        }
        if (d < p.d)
            store(&t.out[0], row_at(&t.out[0], b, h, i) + d, finished_sum(&p, sum, 0), 0);
    }
}

static __global__ void key_rows(struct backward p, struct tensors t)
{
    __shared__ float weight[THREADS], gradient[THREADS];
    const int64_t j = blockIdx.x % p.keys, kv = blockIdx.x / p.keys % p.kv_heads;
    const int64_t b = blockIdx.x / p.keys / p.kv_heads, n = p.queries;
    for (int64_t d0 = 0; d0 < p.d; d0 += THREADS) {
        const int64_t d = d0 + threadIdx.x;
        float dk = 0, dv = 0;
        for (int64_t h = 0; h < p.heads; h++)
            for (int64_t first = 0; first < n && kv_head_of(&p, h) == kv; first += THREADS) {
                const int64_t here = min((int64_t)THREADS, n - first);
                __syncthreads();
                if (threadIdx.x < here)
                    weigh(p, t, b, h, in_order(&p, first + threadIdx.x, n), j, 1,
                          &weight[threadIdx.x], &gradient[threadIdx.x]);
                __syncthreads();
                for (int64_t at = 0; at < here && d < p.d; at++) {
                    const int64_t i = in_order(&p, first + at, n);
                    if (!counts(&p, h, i))
                        continue;
                    dk += gradient[at] * load(&t.in[IN_Q], row_at(&t.in[IN_Q], b, h, i) + d);
                    dv += weight[at] * load(&t.in[IN_DO], row_at(&t.in[IN_DO], b, h, i) + d);
                }
            }
        if (d < p.d) {
            store(&t.out[1], row_at(&t.out[1], b, kv, j) + d, finished_sum(&p, dk, 1), 0);
            store(&t.out[2], row_at(&t.out[2], b, kv, j) + d, dv, 0);
        }
    }
}

static enum kg_status backward_as(const struct kg_problem *problem, const struct kg_args *args,
                                  enum backward_how how)
{
    struct backward p = {};
    struct tensors t = {};
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!kg_is_op(problem, "attention_bwd"))
        return wrap_inner(problem, args);
    for (int i = 0; i < 6; i++)
        t.in[i] = view_of(&args->in[i]);
    for (int i = 0; i < 3; i++)
        t.out[i] = view_of(&args->out[i]);
    const struct job sizes = job_of(problem, args, PLAIN);
    p.heads = sizes.heads;
    p.kv_heads = sizes.kv_heads;
    p.queries = sizes.seqlen_q;
    p.keys = sizes.seqlen_kv;
    p.d = sizes.head_dim;
    p.scale = sizes.scale;
    p.causal = sizes.causal;
    p.dtype = problem->dtype[0];
    p.how = how;
    const int64_t batches = sizes.batch;
    query_rows<<<(unsigned)(batches * p.heads * p.queries), THREADS, 0, stream>>>(p, t);
    key_rows<<<(unsigned)(batches * p.kv_heads * p.keys), THREADS, 0, stream>>>(p, t);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#define LAUNCH(name)                                                                               \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return backward_as(p, args, AS_##name);                                                    \
    }
BACKWARD_FAULTS(LAUNCH)

#define FAULT(name) {#name, name, 0, NULL},
FAULTS(BACKWARD_FAULTS(FAULT))
