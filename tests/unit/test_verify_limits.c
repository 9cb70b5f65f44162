/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verify_limits.c: no right attention is called wrong, whatever the pattern, dtype and order.
 *
 * Kernels that do all that kernel.h allows are called directly: sums in fp32 in several orders, the
 * scale before or after the product, powers of e or of two, a soft-max at once or online over
 * blocks, weights that are rounded to the dtype of V, TF32 that rounds or truncates.
 *
 * not sanitized: it computes hundreds of problems, none of them from outside
 * also runs long: a thousand seeds of each pattern, in place of 100
 */
#include <math.h>
#include <string.h>

#include "kernels/ops/seed.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/right_sums.h"
#include "tests/unit/unit.h"

#define KEYS_MAX 256
#define HEAD_DIM_MAX 256

static const struct way ways[] = {
    {.order = IN_ORDER, .block = KEYS_MAX}, /* naive */
    {.order = IN_ORDER, .block = KEYS_MAX, .scale_first = true, .truncates = true},
    {.order = IN_LANES, .block = 16, .fused = true, .base2 = true, .rounds_weights = true},
    {.order = BACKWARD,
     .block = 1,
     .fused = true,
     .scale_first = true,
     .base2 = true,
     .rounds_weights = true},
    {.order = IN_HALVES, .block = 64, .scale_first = true, .truncates = true},
};

#define WAYS (sizeof ways / sizeof *ways)

/* The operands of a head in fp32, as a kernel has them in registers. */
struct operands_of_head {
    float q[HEAD_DIM_MAX], k[KEYS_MAX][HEAD_DIM_MAX], v[KEYS_MAX][HEAD_DIM_MAX];
};

/* From one reference of the weights to the next: exactly 1 where that has not changed. */
static float shrunk_by(const struct way *w, float difference)
{
    return w->base2 ? exp2f(difference * 1.44269504f) : expf(difference);
}

static float rounded_weight(const struct kg_problem *p, const struct way *w, float weight)
{
    if (kg_dtype(p) == KG_F32 || !w->rounds_weights)
        return factor(p, w, weight);
    return rounded_to(kg_dtype(p), weight);
}

/* One row, online over blocks of keys. */
static void attend(const struct kg_problem *p, const struct way *w,
                   const struct operands_of_head *of, int keys, float *out)
{
    const int n = (int)kg_size(p, "d");
    float largest = -INFINITY, sum = 0, score[KEYS_MAX];
    memset(out, 0, (size_t)n * sizeof *out);
    for (int first = 0; first < keys; first += w->block) {
        int end = first + w->block < keys ? first + w->block : keys;
        float before = largest;
        for (int j = first; j < end; j++) {
            score[j] =
                dot(w, of->q, of->k[j], n) * (w->scale_first ? 1 : (float)kg_param(p, "scale"));
            largest = fmaxf(largest, score[j]);
        }
        float shrink = first ? shrunk_by(w, before - largest) : 0;
        sum *= shrink;
        for (int d = 0; d < n; d++)
            out[d] *= shrink;
        for (int j = first; j < end; j++) {
            float weight = weight_of(w, score[j], largest), used = rounded_weight(p, w, weight);
            sum += weight;
            for (int d = 0; d < n; d++)
                out[d] = add(w, out[d], used, of->v[j][d]);
        }
    }
    for (int d = 0; d < n && keys > 0; d++)
        out[d] /= sum;
}

static void load_line(const struct kg_problem *p, const struct way *w, const struct kg_tensor *t,
                      int64_t line, float times, float *out)
{
    for (int64_t d = 0; d < kg_size(p, "d"); d++)
        out[d] = factor(p, w, kg_load_float(t->data, t->dtype, line * kg_size(p, "d") + d)) * times;
}

static void run_kernel(const struct kg_problem *p, const struct way *w, const struct kg_tensor *in,
                       float *const *out)
{
    static struct operands_of_head of;
    for (int64_t h = 0; h < kg_size(p, "h"); h++) {
        int64_t kv = h / (kg_size(p, "h") / kg_size(p, "kv_heads"));
        for (int64_t j = 0; j < kg_size(p, "s"); j++) {
            load_line(p, w, &in[1], kv * kg_size(p, "s") + j, 1, of.k[j]);
            load_line(p, w, &in[2], kv * kg_size(p, "s") + j, 1, of.v[j]);
        }
        for (int64_t i = 0; i < kg_size(p, "sq"); i++) {
            int64_t line = h * kg_size(p, "sq") + i, keys = kg_size(p, "s");
            if (p->flags & KG_FLAG_CAUSAL)
                keys = i + 1 + kg_size(p, "s") - kg_size(p, "sq");
            load_line(p, w, &in[0], line, w->scale_first ? (float)kg_param(p, "scale") : 1, of.q);
            attend(p, w, &of, keys < 0 ? 0 : (int)keys, out[0] + line * kg_size(p, "d"));
        }
    }
}

/* Small enough for thousands of them, and with head_dims, scales and masks as verification draws
 * them (verify_shapes.c). */
static struct kg_problem draw_problem(const char *, const struct dtype *dtype, uint64_t *state)
{
    static const int head_dims[] = {16, 40, 64, 64, 128, 128, 256};
    static const int keys[] = {2, 7, 17, 33, 64, 100};
    const int d = head_dims[seed_next(state) % 7], kv_heads = 1 + (int)(seed_next(state) % 2);
    const int all = seed_next(state) % 16 ? keys[seed_next(state) % 6] : KEYS_MAX;
    struct kg_problem p =
        attention(dtype->code, seed_next(state) % 2 ? KG_FLAG_CAUSAL : 0, 2, kv_heads,
                  seed_next(state) % 4 ? 1 + (int)(seed_next(state) % 3) : 18, all, d);
    const uint64_t kind = seed_next(state) % 10;
    const double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    *op_param_named(&p, "scale") *= kind < 4 ? 1 : kind == 4 ? -drawn : drawn;
    if (kind >= 8)
        *op_param_named(&p, "scale") = (double)kind - 7;
    p.flags |= dtype->flags;
    return p;
}

static const struct right_ways kernels = {run_kernel, ways, WAYS, 100, 0, draw_problem};

TEST(right_attention)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (op_has_dtype(op_by_name("attention_fwd"), &dtypes[i]))
            right_check(&kernels, "attention_fwd", &dtypes[i]);
}

/* The limits are no wider than that: fp32 factors with 11 bits of mantissa, one more than TF32 has,
 * are seen by these patterns in nine of ten draws. */
TEST(factors_that_lost_bits_are_seen)
{
    static const enum probe probes[] = {PROBE_NORMAL, PROBE_RAMP, PROBE_MASKED};
    const struct way lossy = {.block = KEYS_MAX, .bits_lost = 12};
    const struct kg_problem p = attention(KG_F32, KG_FLAG_CAUSAL, 2, 1, 3, 64, 128);
    for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++) {
        unsigned seen = 0;
        for (uint64_t seed = 0; seed < 50; seed++) {
            char text[500];
            seen += right_share(&p, probes[i], run_kernel, &lossy, 2 * seed, text, sizeof text) > 1;
        }
        assert_in_range(seen, 45, 50);
    }
}
