/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward_steps.h: the steps of a backward pass of attention, and what a fault does to them; of
 * the host and of CUDA alike.
 *
 * The including file defines STEP, what stands before a function, and float narrowed(dtype, x), x
 * rounded to the dtype.
 */
#ifndef TESTS_MUTANTS_BACKWARD_STEPS_H
#define TESTS_MUTANTS_BACKWARD_STEPS_H

#include <math.h>
#include <stdint.h>

/* Wrong, and at the end right. */
#define BACKWARD_FAULTS(ROW)                                                                       \
    ROW(no_delta)                                                                                  \
    ROW(delta_added)                                                                               \
    ROW(delta_in_dtype)                                                                            \
    ROW(delta_without_last)                                                                        \
    ROW(dk_not_scaled)                                                                             \
    ROW(dq_scaled_twice)                                                                           \
    ROW(mask_one_more)                                                                             \
    ROW(mask_top_left)                                                                             \
    ROW(keys_not_masked)                                                                           \
    ROW(kv_head_modulo)                                                                            \
    ROW(head_of_group_lost)                                                                        \
    ROW(lse_in_base_2)                                                                             \
    ROW(query_tail)                                                                                \
    ROW(last_key)                                                                                  \
    ROW(weights_in_fp8)                                                                            \
    ROW(dq_delta_off)                                                                              \
    ROW(strides_of_dout)                                                                           \
    ROW(both_rounded)                                                                              \
    ROW(powers_of_two)                                                                             \
    ROW(from_the_end)                                                                              \
    ROW(scale_first)

#define BACKWARD_NUMBER(name) AS_##name,
enum backward_how { BACKWARD_FAULTS(BACKWARD_NUMBER) };

struct backward {
    int64_t heads, kv_heads, queries, keys, d;
    float scale;
    uint32_t dtype;
    int causal, how;
};

/* Does query i see key j, where the sums are those of queries or of keys? */
STEP int is_seen(const struct backward *p, int64_t i, int64_t j, int of_keys)
{
    int64_t last = i + (p->how == AS_mask_top_left ? 0 : p->keys - p->queries);
    if (!p->causal || (p->how == AS_keys_not_masked && of_keys))
        return 1;
    return j <= last + (p->how == AS_mask_one_more);
}

STEP int64_t kv_head_of(const struct backward *p, int64_t head)
{
    return p->how == AS_kv_head_modulo ? head % p->kv_heads : head / (p->heads / p->kv_heads);
}

/* Does it take part in dK and dV? */
STEP int counts(const struct backward *p, int64_t head, int64_t query)
{
    const int64_t group = p->heads / p->kv_heads;
    if (p->how == AS_head_of_group_lost && group > 1 && head % group == group - 1)
        return 0;
    return !(p->how == AS_query_tail && p->queries > 64 && query >= p->queries / 64 * 64);
}

STEP int64_t keys_of_query(const struct backward *p)
{
    return p->how == AS_last_key && p->keys > 1 ? p->keys - 1 : p->keys;
}

/* Place number `at` of n in the order of the sums. */
STEP int64_t in_order(const struct backward *p, int64_t at, int64_t n)
{
    return p->how == AS_from_the_end ? n - 1 - at : at;
}

STEP int64_t terms_of_delta(const struct backward *p)
{
    return p->how == AS_delta_without_last ? p->d - 1 : p->d;
}

STEP float delta_as_used(const struct backward *p, float delta)
{
    return p->how == AS_no_delta         ? 0
           : p->how == AS_delta_added    ? -delta
           : p->how == AS_delta_in_dtype ? narrowed(p->dtype, delta)
                                         : delta;
}

/* Of an element of Q in a score, and then of the score. */
STEP float query_factor(const struct backward *p)
{
    return p->how == AS_scale_first ? p->scale : 1;
}

STEP float weight_of(const struct backward *p, float score, float lse)
{
    const float log2e = 1.44269504f;
    score *= p->how == AS_scale_first ? 1 : p->scale;
    return p->how == AS_lse_in_base_2   ? exp2f(score * log2e - lse)
           : p->how == AS_powers_of_two ? exp2f(fmaf(score, log2e, -lse * log2e))
                                        : expf(score - lse);
}

/* As a factor of dV. */
STEP float weight_as_used(const struct backward *p, float weight)
{
    if (p->how == AS_weights_in_fp8 && weight > 0)
        return ldexpf(rintf(ldexpf(weight, 3 - ilogbf(weight))), ilogbf(weight) - 3);
    return p->how == AS_both_rounded ? narrowed(p->dtype, weight) : weight;
}

/* As a factor of dQ and dK. */
STEP float gradient_of(const struct backward *p, float weight, float dp, float delta, int of_keys)
{
    if (p->how == AS_dq_delta_off && !of_keys)
        return weight * dp - weight * delta * 0.98f;
    if (p->how == AS_both_rounded)
        return narrowed(p->dtype, narrowed(p->dtype, weight) * (dp - delta));
    return weight * (dp - delta);
}

STEP float finished_sum(const struct backward *p, float sum, int of_keys)
{
    if (p->how == AS_dk_not_scaled && of_keys)
        return sum;
    return sum * p->scale * (p->how == AS_dq_scaled_twice && !of_keys ? p->scale : 1);
}

#endif
