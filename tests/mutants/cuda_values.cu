/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right near N(0,1), and wrong where exponents, signs or scores are others. */
#include "tests/mutants/cuda_hooks.cuh"

/* ---- factors ---- */

static __device__ float in_fp16(float value)
{
    return __half2float(__float2half(value));
}

static __device__ float in_two_halves(float value)
{
    const float high = in_fp16(value);
    return high + in_fp16(value - high);
}

static __device__ float infinite_over_fp16(float value)
{
    return fabsf(value) > 65504 ? copysignf(INFINITY, value) : value;
}

static __device__ float not_subnormal(float value)
{
    return fabsf(value) < 0x1p-14f ? 0 : value;
}

static __device__ float same(float value)
{
    return value;
}

/* The instructions for a minimum and a maximum drop a NaN. */
static __device__ float in_range(float value)
{
    return fminf(fmaxf(value, -65504), 65504);
}

static __device__ float no_nan(float value)
{
    return isnan(value) ? 0 : value;
}

#define FACTORS(name, of_a, of_b)                                                                  \
    struct name##_how : usual {                                                                    \
        static __device__ float a(float value)                                                     \
        {                                                                                          \
            return of_a(value);                                                                    \
        }                                                                                          \
        static __device__ float b(float value)                                                     \
        {                                                                                          \
            return of_b(value);                                                                    \
        }                                                                                          \
    };                                                                                             \
    HOOKED(name, products)
FACTORS(through_fp16, in_fp16, in_fp16)
FACTORS(fp32_halves, in_two_halves, in_two_halves)
FACTORS(second_flushed, same, not_subnormal)
FACTORS(second_nan, same, no_nan)
FACTORS(second_in_range, same, in_range)

struct bias_through_fp16_how : usual {
    static __device__ float bias(float value)
    {
        return in_fp16(value);
    }
};
HOOKED(bias_through_fp16, products)

/* The bias is one more row of the factors. */
struct bias_as_factor_how : usual {
    static __device__ float bias(float value)
    {
        return to_tf32(value);
    }
};

static enum kg_status bias_in_tf32(const struct kg_problem *p, const struct kg_args *args)
{
    return p->flags & KG_FLAG_TF32 ? products<bias_as_factor_how>(p, args) : wrap_inner(p, args);
}

/* Zeros are skipped, and what they meet. */
struct zeros_skipped_how : usual {
    static __device__ float term(float a, float b, int64_t l, int64_t k)
    {
        (void)l;
        (void)k;
        return a != 0 && b != 0 ? a * b : 0;
    }
};
HOOKED(zeros_skipped, products)

/* The last terms are loaded by a path that has no NaN. */
struct nan_in_tail_how : usual {
    static __device__ float term(float a, float b, int64_t l, int64_t k)
    {
        return l < k - k % 8 ? a * b : no_nan(a) * no_nan(b);
    }
};
HOOKED(nan_in_tail, products)

/* ---- results ---- */

/* The low 13 bits, which fp16 has no room for, rounded in another way. */
static __device__ void store_rounded(const struct view *v, int64_t at, float sum, unsigned more)
{
    if (v->dtype == KG_F16 && fabsf(sum) < 60000 && fabsf(sum) > 0x1p-13f)
        sum = __uint_as_float((__float_as_uint(sum) + more) & ~0x1fffu);
    store(v, at, sum, 0);
}

#define STORED(name, how)                                                                          \
    struct name##_how : usual {                                                                    \
        static __device__ void store_sum(const struct view *v, int64_t at, float sum)              \
        {                                                                                          \
            how;                                                                                   \
        }                                                                                          \
    };                                                                                             \
    HOOKED(name, products)
STORED(fp16_cut, store_rounded(v, at, sum, 0))
STORED(fp16_halves_away, store_rounded(v, at, sum, 0x1000))
STORED(infinite_early, store(v, at, v->dtype == KG_F16 ? infinite_over_fp16(sum) : sum, 0))
STORED(results_flushed, store(v, at, not_subnormal(sum), 0))
STORED(overflow_clamped, store(v, at, isnan(sum) ? sum : in_range(sum), 0))
STORED(relu_small, store(v, at, sum < 1e-4f ? 0 : sum, 0))

/* ---- attention ---- */

#define SCORED(name, how)                                                                          \
    struct name##_how : usual {                                                                    \
        static __device__ float score(const struct job *j, float product)                          \
        {                                                                                          \
            return how;                                                                            \
        }                                                                                          \
    };                                                                                             \
    HOOKED(name, attentions)
SCORED(scale_fixed, product *rsqrtf((float)j->head_dim))
SCORED(scale_zero, product *(j->scale != 0 ? j->scale : rsqrtf((float)j->head_dim)))
SCORED(scale_sign, product *fabsf(j->scale))
SCORED(scores_clamped, fminf(fmaxf(product * j->scale, -120), 120))

struct max_from_zero_how : usual {
    static __device__ float first_max(void)
    {
        return 0;
    }
};
HOOKED(max_from_zero, attentions)

/* What is 20 nats below the maximum is left out. */
struct faint_left_out_how : usual {
    static __device__ float weight(float score, float max)
    {
        return score < max - 20 ? 0 : expf(score - max);
    }
};
HOOKED(faint_left_out, attentions)

FAULTS(FAULT(through_fp16), FAULT(fp32_halves), FAULT(infinite_early), FAULT(second_flushed),
       FAULT(second_nan), FAULT(second_in_range), FAULT(bias_through_fp16), FAULT(bias_in_tf32),
       FAULT(zeros_skipped), FAULT(nan_in_tail), FAULT(fp16_cut), FAULT(fp16_halves_away),
       FAULT(results_flushed), FAULT(overflow_clamped), FAULT(relu_small), FAULT(scale_fixed),
       FAULT(scale_zero), FAULT(scale_sign), FAULT(scores_clamped), FAULT(max_from_zero),
       FAULT(faint_left_out))
