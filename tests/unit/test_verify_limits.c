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
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/verify/verify_compare.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"
#include "kernels/reference/reference.h"
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

static void run_kernel(const struct kg_problem *p, const struct way *w, const struct image *image,
                       void *out)
{
    static struct operands_of_head of;
    float row[HEAD_DIM_MAX];
    const struct kg_tensor *in = image->view;
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
            attend(p, w, &of, keys < 0 ? 0 : (int)keys, row);
            for (int64_t d = 0; d < kg_size(p, "d"); d++)
                kg_store_float(out, kg_dtype(p), line * kg_size(p, "d") + d, row[d]);
        }
    }
}

/* Small enough for thousands of them, and with head_dims, scales and masks as verification draws
 * them (verify_shapes.c). */
static struct kg_problem draw_problem(unsigned dtype, uint64_t *state)
{
    static const int head_dims[] = {16, 40, 64, 64, 128, 128, 256};
    static const int keys[] = {2, 7, 17, 33, 64, 100};
    const int d = head_dims[seed_next(state) % 7], kv_heads = 1 + (int)(seed_next(state) % 2);
    const int all = seed_next(state) % 16 ? keys[seed_next(state) % 6] : KEYS_MAX;
    struct kg_problem p =
        attention(KG_F32, seed_next(state) % 2 ? KG_FLAG_CAUSAL : 0, 2, kv_heads,
                  seed_next(state) % 4 ? 1 + (int)(seed_next(state) % 3) : 18, all, d);
    const uint64_t kind = seed_next(state) % 10;
    const double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    *op_param_named(&p, "scale") *= kind < 4 ? 1 : kind == 4 ? -drawn : drawn;
    if (kind >= 8)
        *op_param_named(&p, "scale") = (double)kind - 7;
    return problem_in_dtype(&p, dtype);
}

/* Fills the inputs, and with an odd seed changes them. Does verification call right what this
 * kernel makes of them? */
static bool is_right(const struct kg_problem *p, enum probe probe, const struct way *w,
                     uint64_t seed, char *text, size_t size)
{
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    const size_t n = (size_t)(kg_size(p, "h") * kg_size(p, "sq") * kg_size(p, "d"));
    struct image image;
    struct look look;
    double sum = 0, *reference = calloc(n, sizeof *reference), *const references[] = {reference};
    float *out = calloc(n, sizeof *out);
    assert_true(reference && out);
    assert_int_equal(image_make(p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(probe, p, image.view, image.n_in, seed);
    if (seed % 2)
        probe_change(probe, p, image.view, image.n_in, ~seed);
    assert_int_equal(kg_reference_host(p, image.view, image.n_in, references, 1), KG_OK);
    run_kernel(p, w, &image, out);
    for (size_t i = 0; i < n; i++)
        sum += reference[i] * reference[i];
    const struct problem_tensor *about = &image.about[image.n_in];
    const struct kg_tensor got = problem_dense(about, out);
    compare_start(&look, p, about, probe, sqrt(sum / (double)n));
    assert_int_equal(compare_on_host(&look, &got, reference, NULL), GATE_OK);
    const bool right = compare_is_right(&look, text, size);
    image_release(&image);
    free(reference);
    free(out);
    return right;
}

static void check_dtype(uint32_t dtype, uint32_t flags)
{
    const unsigned seeds = getenv("KERNEL_GATE_LONG") ? 1000 : 100;
    const struct kg_problem example = attention(dtype, flags, 1, 1, 1, 1, 1);
    for (int probe = 0; probe < PROBES; probe++) {
        uint64_t state = (uint64_t)probe;
        unsigned checked = 0;
        for (uint64_t seed = 0; checked < seeds && seed < 4 * seeds; seed++) {
            const struct kg_problem p = draw_problem(problem_dtype_index(&example), &state);
            if (!probe_applies((enum probe)probe, &p))
                continue;
            char text[500] = "";
            const unsigned way = checked++ % WAYS;
            if (!is_right(&p, (enum probe)probe, &ways[way], seed, text, sizeof text))
                fail_msg("kernel %u, probe '%s', seed %u: %s", way, probe_name((enum probe)probe),
                         (unsigned)seed, text);
        }
        assert_true(checked == 0 || checked == seeds);
    }
}

TEST(fp16_attention)
{
    check_dtype(KG_F16, 0);
}

TEST(bf16_attention)
{
    check_dtype(KG_BF16, 0);
}

TEST(fp32_attention)
{
    check_dtype(KG_F32, 0);
}

TEST(tf32_attention)
{
    check_dtype(KG_F32, KG_FLAG_TF32);
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
            seen += !is_right(&p, probes[i], &lossy, 2 * seed, text, sizeof text);
        }
        assert_in_range(seen, 45, 50);
    }
}
