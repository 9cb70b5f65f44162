/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_pattern_attention.c: input patterns of attention. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/rows.h"
#include "kernels/ops/attention_patterns.h"
#include "tests/unit/filled.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

/* A row's scores are exact, and below what kernel.h promises, whatever the scale. */
TEST(scores_are_as_large_as_promised)
{
    const double scales[] = {1e-2, 0.125, 1, 7, -0.3};
    for (int i = 0; i < 15; i++) {
        struct kg_problem p = attention((uint32_t)(KG_F16 + i % 3), 0, 4, 2, 65, 129, 64);
        double largest = 0, least = 0;
        *op_param_named(&p, "scale") = scales[i / 3];
        struct image image = image_filled(&p, PROBE_SHIFTED, (uint64_t)i);
        for (int64_t q = 0; q < 4 * 65; q++) {
            double score = (double)kg_load_float(image.view[0].data, kg_dtype(&p), q * 64 + 32) *
                           (double)kg_load_float(image.view[1].data, kg_dtype(&p), 32) *
                           kg_param(&p, "scale");
            largest = fmax(largest, score);
            least = fmin(least, score);
        }
        assert_true(largest > 1e4 && largest <= SCORE_MAX);
        assert_true(least < -1e4 && least >= -SCORE_MAX);
        image_release(&image);
    }
}

/* A kernel that does not take off a row's maximum, or begins with one of 0, has no weights at all.
 */
TEST(low_scores_have_no_weight_without_their_maximum)
{
    const double scales[] = {1e-2, 0.125, 1, 7, -0.3};
    for (int i = 0; i < 15; i++) {
        struct kg_problem p = attention((uint32_t)(KG_F16 + i % 3), 0, 1, 1, 1, 300, 64);
        *op_param_named(&p, "scale") = scales[i / 3];
        struct image image = image_filled(&p, PROBE_LOW, (uint64_t)i);
        for (int64_t key = 0; key < 300; key++) {
            double score = 0;
            for (int64_t d = 0; d < 64; d++)
                score += (double)kg_load_float(image.view[0].data, kg_dtype(&p), d) *
                         (double)kg_load_float(image.view[1].data, kg_dtype(&p), key * 64 + d);
            const float weight = (float)exp(score * kg_param(&p, "scale"));
            assert_true(weight == 0);
        }
        image_release(&image);
    }
}

/* Each query has one key that takes all the weight, but where the mask hides it. */
TEST(retrieval_finds_keys)
{
    const struct kg_problem p = attention(KG_F16, 0, 4, 2, 65, 129, 64);
    double *o = malloc(4 * 65 * 64 * sizeof *o);
    double *const out[] = {o};
    assert_non_null(o);
    struct image image = image_filled(&p, PROBE_RETRIEVAL, 3);
    assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
    for (int i = 0; i < 4 * 65 * 64; i++)
        assert_true(fabs(o[i] - round(o[i])) < 1e-6);
    image_release(&image);
    free(o);
}

/* A causal mask hides it from all rows but the last one. */
TEST(of_two_heads_one_finds_the_last_key)
{
    const struct kg_problem p = attention(KG_F16, KG_FLAG_CAUSAL, 2, 1, 3, 40, 64);
    struct image image = image_filled(&p, PROBE_NORMAL, 0);
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned found = 0;
        probe_fill(PROBE_RETRIEVAL, &p, image.view, seed);
        const void *q = image.view[0].data, *k = image.view[1].data;
        for (int64_t head = 0; head < 2; head++) {
            double score = 0;
            for (int64_t d = 0; d < 64; d++)
                score += (double)kg_load_float(q, KG_F16, (head * 3 + 2) * 64 + d) *
                         (double)kg_load_float(k, KG_F16, 39 * 64 + d);
            found += score > 64 * 8; /* a query is its key 16 times */
        }
        assert_true(found >= 1);
    }
    image_release(&image);
}

/* So that values that pass through fp16 are seen with any seed. */
TEST(shifted_values_are_none_of_fp16)
{
    const struct kg_problem p = attention(KG_BF16, 0, 2, 1, 3, 40, 64);
    struct image image = image_filled(&p, PROBE_NORMAL, 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        probe_fill(PROBE_SHIFTED, &p, image.view, seed);
        for (int64_t e = 0; e < 40 * 64; e++) {
            double value = fabs((double)kg_load_float(image.view[2].data, KG_BF16, e));
            assert_true(value == 0 || value < 0x1p-24 || value > 65504);
        }
    }
    image_release(&image);
}

static double rounded_to(uint32_t dtype, double value)
{
    uint32_t bits;
    kg_store_float(&bits, dtype, 0, (float)value);
    return (double)kg_load_float(&bits, dtype, 0);
}

/* One row as kernels of 16-bit types have it: weights over a reference that is `below` nats under
 * the largest score, rounded for the second product, over the sum of unrounded ones. */
static void attend(const struct kg_problem *p, const struct image *image, int64_t row, double below,
                   bool rounded, double *out)
{
    double score[64], largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < kg_size(p, "s"); j++) {
        score[j] = 0;
        for (int64_t d = 0; d < kg_size(p, "d"); d++)
            score[j] +=
                kg_param(p, "scale") *
                (double)kg_load_float(image->view[0].data, kg_dtype(p), row * kg_size(p, "d") + d) *
                (double)kg_load_float(image->view[1].data, kg_dtype(p), j * kg_size(p, "d") + d);
        largest = fmax(largest, score[j]);
    }
    memset(out, 0, (size_t)kg_size(p, "d") * sizeof *out);
    for (int64_t j = 0; j < kg_size(p, "s"); j++) {
        double weight = exp(score[j] - largest + below);
        sum += weight;
        if (rounded)
            weight = rounded_to(kg_dtype(p), weight);
        for (int64_t d = 0; d < kg_size(p, "d"); d++)
            out[d] += weight * (double)kg_load_float(image->view[2].data, kg_dtype(p),
                                                     j * kg_size(p, "d") + d);
    }
    for (int64_t d = 0; d < kg_size(p, "d"); d++)
        out[d] = rounded ? rounded_to(kg_dtype(p), out[d] / sum) : out[d] / sum;
}

static double error_of_rounded_weights(const struct kg_problem *p, enum probe probe, uint64_t seed)
{
    double exact[64], rounded[64], error_sq = 0, norm_sq = 0;
    struct image image = image_filled(p, probe, seed);
    for (int64_t row = 0; row < kg_size(p, "sq"); row++) {
        attend(p, &image, row, 0, false, exact);
        attend(p, &image, row, (double)(seed % 64) / 12, true, rounded);
        for (int64_t d = 0; d < kg_size(p, "d"); d++) {
            error_sq += (rounded[d] - exact[d]) * (rounded[d] - exact[d]);
            norm_sq += exact[d] * exact[d];
        }
    }
    image_release(&image);
    return sqrt(error_sq / norm_sq);
}

/* Where few weights count, their rounding does not average out, and a right kernel must pass. */
TEST(rounded_weights_are_right)
{
    static const enum probe probes[] = {PROBE_CONSTANT, PROBE_RETRIEVAL, PROBE_RAMP,
                                        PROBE_STRETCHED, PROBE_FAINT};
    for (unsigned i = 0; i < 4 * sizeof probes / sizeof *probes; i++) {
        const enum probe probe = probes[i / 4];
        const struct kg_problem p =
            attention(i % 2 ? KG_F16 : KG_BF16, 0, 1, 1, 1, i / 2 % 2 ? 3 : 48, 64);
        double largest = 0;
        for (uint64_t seed = 0; seed < 256; seed++)
            largest = fmax(largest, error_of_rounded_weights(&p, probe, seed));
        assert_true(largest <= problem_error_limit(&p) + probe_slack(probe, &p));
        assert_true(largest > 0.5 * problem_error_limit(&p));
    }
}

/* Keys far below the dominant one count in every row, which a kernel that leaves them out shows. */
TEST(faint_keys_count)
{
    const struct kg_problem p = attention(KG_BF16, 0, 1, 1, 1, 40, 64);
    struct image image = image_filled(&p, PROBE_NORMAL, 0);
    double highest = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        double lead = 0, least = INFINITY;
        probe_fill(PROBE_FAINT, &p, image.view, seed);
        for (int64_t j = 0; j < 40; j++) {
            double at = 0, value = (double)kg_load_float(image.view[2].data, KG_BF16, j * 64);
            for (int64_t d = 0; d < 64; d++)
                at += kg_param(&p, "scale") *
                      (double)kg_load_float(image.view[0].data, KG_BF16, d) *
                      (double)kg_load_float(image.view[1].data, KG_BF16, j * 64 + d);
            lead = fmax(lead, at);
            least = at == 0 ? fmin(least, value) : least;
        }
        assert_true(lead >= FAINT_LEAD / 2.0 && lead <= FAINT_LEAD && least * exp(-lead) > 1);
        highest = fmax(highest, lead);
    }
    assert_true(highest > 40);
    image_release(&image);
}
