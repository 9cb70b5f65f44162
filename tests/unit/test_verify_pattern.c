/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_pattern.c: layouts of operands, and input patterns with one exact answer. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference/reference.h"
#include "gate/base/seed.h"
#include "gate/verify/verify_layout.h"
#include "gate/verify/verify_pattern.h"
#include "gate/verify/verify_pattern_attention.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

static struct kg_problem heads(void)
{
    struct kg_problem p = attention(KG_F16, 0, 4, 2, 5, 7, 10);
    p.batch = 3;
    return p;
}

/* Each byte that is no element of an output is guarded; each element of an output is free. */
static void test_every_byte_is_guarded(void **state)
{
    (void)state;
    const struct kg_problem p = heads();
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        struct image image;
        char text[300];
        size_t free_bytes = 0;
        assert_int_equal(image_make(&p, &layout, 0xff, &image, NULL), GATE_OK);
        unsigned char *after = malloc(image.size);
        assert_non_null(after);
        memcpy(after, image.bytes, image.size);
        assert_true(image_is_intact(&image, after, text, sizeof text));
        for (size_t at = 0; at < image.size; at += at % 97 ? 1 : 3) {
            after[at] ^= 1;
            free_bytes += image_is_intact(&image, after, text, sizeof text);
            after[at] ^= 1;
        }
        assert_in_range(free_bytes, 1, 2 * 3 * 4 * 5 * 10);
        assert_true(free_bytes > 3 * 4 * 5 * 10);
        free(after);
        image_release(&image);
    }
}

static void test_layouts_are_what_kernels_may_be_given(void **state)
{
    (void)state;
    const struct kg_problem p = heads();
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        struct image image;
        assert_int_equal(image_make(&p, &layout, 0, &image, NULL), GATE_OK);
        for (unsigned i = 0; i < 4; i++) {
            const struct kg_tensor *t = &image.view[i];
            assert_int_equal((uintptr_t)t->data % 16, 0);
            assert_int_equal((uintptr_t)t->data % 32 != 0, kind != TENSOR_DENSE);
            assert_int_equal(t->stride[3], 1);
            assert_int_equal(t->stride[2] == 10, kind == TENSOR_DENSE);
            assert_int_equal(t->stride[1] < t->stride[2], kind == TENSOR_HEADS);
            assert_int_equal(t->stride[0] > t->stride[1] * t->shape[1],
                             kind == TENSOR_APART || kind == TENSOR_HEADS);
            assert_true(kind != TENSOR_ODD || t->stride[2] % 2 == 1);
            assert_true(kind != TENSOR_WIDE || t->stride[2] % 64 == 0);
        }
        image_release(&image);
    }
}

/* All pairs of layouts of two tensors come, and those without odd rows by themselves too. */
static void test_drawn_layouts_are_of_each_tensor_by_itself(void **state)
{
    unsigned pairs[2][TENSOR_LAYOUTS][TENSOR_LAYOUTS] = {0}, odd = 0, none = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const struct image_layout any = image_layout_drawn(seed, false),
                                  aligned = image_layout_drawn(seed, true);
        pairs[0][any.of[1]][any.of[2]]++;
        pairs[1][aligned.of[1]][aligned.of[2]]++;
        for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
            odd += aligned.of[i] == TENSOR_ODD;
    }
    for (int i = 0; i < TENSOR_ODD * TENSOR_ODD; i++)
        none +=
            !pairs[0][i / TENSOR_ODD][i % TENSOR_ODD] + !pairs[1][i / TENSOR_ODD][i % TENSOR_ODD];
    assert_true(none == 0 && odd == 0 && pairs[0][TENSOR_ODD][TENSOR_DENSE]);
}

/* Pairs of layouts that three tensors have in 36 checks, every other one without odd rows. */
static unsigned pairs_met(const struct kg_problem *p, uint64_t seed, bool designed)
{
    struct layout_pairs pairs = {0};
    bool met[3][3][TENSOR_LAYOUTS][TENSOR_LAYOUTS] = {0};
    unsigned n = 0;
    for (unsigned at = 0; at < 36; at++) {
        const uint64_t drawn = seed_at(seed, at);
        const struct image_layout layout = designed
                                               ? image_layout_designed(p, drawn, at % 2, &pairs)
                                               : image_layout_drawn(drawn, at % 2);
        for (unsigned i = 0; i < 3; i++)
            for (unsigned k = i + 1; k < 3; k++) {
                n += !met[i][k][layout.of[i]][layout.of[k]];
                met[i][k][layout.of[i]][layout.of[k]] = true;
            }
    }
    return n;
}

/* Of 108 pairs 60 to 73 meet by chance, and 91 to 97 by design. */
static void test_a_design_brings_layouts_together(void **state)
{
    (void)state;
    const struct kg_problem p = heads();
    for (uint64_t seed = 0; seed < 20; seed++) {
        unsigned by_chance = pairs_met(&p, seed, false), by_design = pairs_met(&p, seed, true);
        if (by_design < 88 || by_design < by_chance + 15)
            fail_msg("%u pairs, and %u by chance", by_design, by_chance);
    }
}

static void test_a_poison_changes_all_but_the_inputs(void **state)
{
    (void)state;
    const struct kg_problem p = heads();
    const struct image_layout odd = image_layout_of(TENSOR_ODD);
    struct image one, other;
    assert_int_equal(image_make(&p, &odd, 0xff, &one, NULL), GATE_OK);
    probe_fill(PROBE_NORMAL, &p, one.view, one.n_in, 7);
    assert_int_equal(image_with_poison(&one, 0x5a, &other, NULL), GATE_OK);
    assert_int_equal(one.size, other.size);
    for (unsigned i = 0; i < 4; i++) {
        size_t bytes = (size_t)problem_tensor_elements(&one.about[i]) * 2;
        unsigned char *a = malloc(bytes), *b = malloc(bytes);
        assert_true(a && b);
        image_gather(&one, one.bytes, i, a);
        image_gather(&other, other.bytes, i, b);
        assert_int_equal(memcmp(a, b, bytes) == 0, i < 3);
        free(a);
        free(b);
    }
    assert_int_equal(other.bytes[0], 0x5a);
    image_release(&one);
    image_release(&other);
}

static struct image_layout dense; /* set by main() */

/* Both ways round, in fp32, as a kernel may sum. */
static void check_exact(const struct kg_problem *p, const struct image *image, enum probe probe,
                        const double *reference)
{
    for (int e = 0; e < 9 * 8; e++) {
        float up = 0, down = 0, largest = 0;
        for (int64_t l = 0; l < p->k; l++) {
            int64_t back = p->k - 1 - l;
            up += kg_load_float(image->view[0].data, p->dtype, e / 8 * p->k + l) *
                  kg_load_float(image->view[1].data, p->dtype, l * 8 + e % 8);
            down += kg_load_float(image->view[0].data, p->dtype, e / 8 * p->k + back) *
                    kg_load_float(image->view[1].data, p->dtype, back * 8 + e % 8);
            largest = fmaxf(largest, fabsf(up));
        }
        bool special = probe == PROBE_SPECIAL || probe == PROBE_SPECIAL_SECOND;
        assert_true(special || !isnan(up));
        assert_true((isnan(up) && isnan(down) && !isfinite(reference[e])) ||
                    (up == down && up == (float)reference[e]));
        assert_true(probe != PROBE_CANCELLATION || largest > 65504);
    }
}

/* Sums that fp32 rounds nowhere give the same bits in any order: up and down must agree, and with
 * the fp64 reference. So they do with an element changed. */
static void test_exact_probes_are_exact(void **state)
{
    (void)state;
    const enum kg_dtype dtypes[] = {KG_F16, KG_BF16, KG_F32};
    for (int i = 0; i < 3 * 4 * PROBES; i++) {
        enum probe probe = (enum probe)(i % PROBES);
        const struct kg_problem p =
            gemm_like(KG_OP_GEMM, dtypes[i / PROBES % 3], 9, 8, i % 2 ? 513 : 3000);
        struct image image;
        double reference[9 * 8];
        double *const out[] = {reference};
        if (!probe_is_exact(probe) || !probe_applies(probe, &p))
            continue;
        assert_int_equal(image_make(&p, &dense, 0xff, &image, NULL), GATE_OK);
        for (int changed = 0; changed < 2; changed++) {
            if (changed)
                probe_change(probe, &p, image.view, image.n_in, (uint64_t)i);
            else
                probe_fill(probe, &p, image.view, image.n_in, (uint64_t)i);
            assert_int_equal(kg_reference_host(&p, image.view, 2, out, 1), KG_OK);
            if (!changed || probe != PROBE_CANCELLATION)
                check_exact(&p, &image, probe, reference);
        }
        image_release(&image);
    }
}

/* Results from the subnormal to the infinite, of each dtype that has them. */
static void test_exponents_fill_the_range(void **state)
{
    (void)state;
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_F32; dtype++) {
        const struct kg_problem p = gemm_like(KG_OP_GEMM, dtype, 100, 90, 70);
        struct image image;
        double *reference = malloc(9000 * sizeof *reference);
        double *const out[] = {reference};
        int small = 0, large = 0, usual = 0;
        assert_non_null(reference);
        assert_int_equal(image_make(&p, &dense, 0xff, &image, NULL), GATE_OK);
        probe_fill(PROBE_EXPONENTS, &p, image.view, image.n_in, 3);
        assert_int_equal(kg_reference_host(&p, image.view, 2, out, 1), KG_OK);
        for (int e = 0; e < 9000; e++) {
            double size = fabs(reference[e]);
            small += size > 0 && size < (dtype == KG_F16 ? 0x1p-14 : 0x1p-80);
            large += size > (dtype == KG_F16 ? 65520 : 0x1p128);
            usual += size > 0.1 && size < 10;
        }
        assert_true(small > 100 && large > 20 && usual > 100);
        image_release(&image);
        free(reference);
    }
}

/* What rounds a bias to TF32 as if it were a factor is seen. */
static void test_a_bias_of_fp32_has_all_bits(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_LINEAR_RELU, KG_F32, 3, 300, 5);
    struct image image;
    int longer = 0;
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(PROBE_EXPONENTS, &p, image.view, 3, 3);
    for (int64_t j = 0; j < p.n; j++)
        longer += (kg_float_bits(kg_load_float(image.view[2].data, KG_F32, j)) & 0x1fffu) != 0;
    assert_in_range(longer, 80, 100);
    image_release(&image);
}

/* Of fp16, whatever the seed: one sum in (65504, 65520). */
static void test_integers_go_to_the_end_of_fp16(void **state)
{
    static const enum kg_op ops[] = {KG_OP_GEMM, KG_OP_GEMV, KG_OP_LINEAR_RELU};
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const bool vector = ops[seed % 3] == KG_OP_GEMV;
        const struct kg_problem p = gemm_like(ops[seed % 3], KG_F16, 9, vector ? 0 : 8, 50);
        struct image image;
        double reference[72];
        double *const out[] = {reference};
        int at_end = 0;
        assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
        probe_fill(PROBE_INTEGERS, &p, image.view, image.n_in, seed);
        assert_int_equal(kg_reference_host(&p, image.view, image.n_in, out, 1), KG_OK);
        for (int e = 0; e < (vector ? 9 : 72); e++)
            at_end += reference[e] > 65504 && reference[e] < 65520;
        assert_in_range(at_end, 1, 2);
        image_release(&image);
    }
}

/* A row's scores are exact, and below what kernel.h promises, whatever the scale. */
static void test_scores_are_as_large_as_promised(void **state)
{
    const double scales[] = {1e-2, 0.125, 1, 7, -0.3};
    (void)state;
    for (int i = 0; i < 15; i++) {
        struct kg_problem p = attention((uint32_t)(KG_F16 + i % 3), 0, 4, 2, 65, 129, 64);
        struct image image;
        double largest = 0, least = 0;
        p.scale = scales[i / 3];
        assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
        probe_fill(PROBE_SHIFTED, &p, image.view, image.n_in, (uint64_t)i);
        for (int64_t q = 0; q < 4 * 65; q++) {
            double score = (double)kg_load_float(image.view[0].data, p.dtype, q * 64 + 32) *
                           (double)kg_load_float(image.view[1].data, p.dtype, 32) * p.scale;
            largest = fmax(largest, score);
            least = fmin(least, score);
        }
        assert_true(largest > 1e4 && largest <= SCORE_MAX);
        assert_true(least < -1e4 && least >= -SCORE_MAX);
        image_release(&image);
    }
}

/* kernel.h promises finite inputs to all ops but GEMM and GEMV. */
static void check_finite(const struct kg_problem *p, enum probe probe)
{
    struct image image;
    assert_int_equal(image_make(p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(probe, p, image.view, image.n_in, 4711);
    int64_t odd = 0;
    for (unsigned i = 0; i < image.n_in; i++)
        for (int64_t e = 0, n = problem_tensor_elements(&image.about[i]); e < n; e++)
            odd += !isfinite(kg_load_float(image.view[i].data, p->dtype, e));
    assert_int_equal(odd > 0, probe == PROBE_SPECIAL || probe == PROBE_SPECIAL_SECOND ||
                                  probe == PROBE_NAN_SECOND);
    image_release(&image);
}

/* Kernels that add the last terms of a sum by other code lose a NaN or an infinity there alone. */
static void test_the_end_of_a_sum_has_a_nan_and_an_infinity(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_F16, 50, 40, 77);
    for (int i = 0; i < 100; i++) {
        struct image image;
        bool second = i % 2;
        int nans = 0, infinities = 0;
        assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
        probe_fill(second ? PROBE_SPECIAL_SECOND : PROBE_SPECIAL, &p, image.view, 2, (uint64_t)i);
        for (int64_t line = 0; line < (second ? p.n : p.m); line++) {
            float x = kg_load_float(image.view[second].data, p.dtype,
                                    second ? 76 * p.n + line : line * p.k + 76);
            nans += isnan(x) != 0;
            infinities += isinf(x) != 0; /* -1 for one below 0 */
        }
        assert_true(nans > 0);
        assert_true(infinities > 0);
        image_release(&image);
    }
}

static void test_inputs_are_as_finite_as_promised(void **state)
{
    const uint32_t dtypes[] = {KG_F16, KG_BF16, KG_F32};
    const double scales[] = {1e-6, 1e-3, 2e-3, 0.01, 0.125, 1, 30, 1000, -0.125};
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int probe = 0; probe < PROBES; probe++) {
            for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
                struct kg_problem p = attention(dtypes[d], KG_FLAG_CAUSAL, 4, 2, 65, 129, 64);
                p.scale = scales[s];
                assert_false(probe_applies(PROBE_SPECIAL, &p));
                if (probe_applies((enum probe)probe, &p))
                    check_finite(&p, (enum probe)probe);
            }
            for (unsigned op = KG_OP_GEMM; op <= KG_OP_LINEAR_RELU_BWD; op++) {
                const struct kg_problem p =
                    gemm_like(op, dtypes[d], 33, op == KG_OP_GEMV ? 0 : 30, 513);
                assert_true(!probe_applies(PROBE_SPECIAL, &p) || op <= KG_OP_GEMV);
                if (probe_applies((enum probe)probe, &p))
                    check_finite(&p, (enum probe)probe);
            }
        }
}

/* No sum may leave what fp32 counts in ones, and hardly any the range of fp16; but they must be
 * large enough for rounding to show. */
static void test_large_integers_stay_exact(void **state)
{
    (void)state;
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_F32; dtype++)
        for (int64_t k = 1; k <= 1 << 20; k *= 4) {
            const struct kg_problem p = gemm_like(KG_OP_GEMM, dtype, 8192, 8192, k);
            const struct kg_problem back = gemm_like(KG_OP_LINEAR_RELU_BWD, dtype, k, 8, 8);
            double a = probe_integers(&p), deviation = a * (a + 1) / 3 * sqrt((double)k);
            assert_true(a >= 1 && a <= 128 && (double)(k + 1) * a * a <= 0x1p24);
            assert_true(dtype != KG_F16 || 8 * deviation <= 65504);
            assert_true(k < 16 || k > 1 << 16 || deviation > 256 * (dtype == KG_F16 ? 8 : 1));
            double b = probe_integers(&back);
            assert_true((double)k * b * b <= 0x1p24);
        }
}

/* So that whoever looks at some elements, wherever, finds one value alone. */
static void test_a_constant_probe_is_constant_until_near_the_end(void **state)
{
    const struct kg_problem p = gemm_like(KG_OP_LINEAR_RELU, KG_F16, 32, 32, 64);
    struct image image;
    (void)state;
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(PROBE_CONSTANT, &p, image.view, image.n_in, 5);
    for (unsigned i = 0; i < image.n_in; i++) {
        int64_t n = problem_tensor_elements(&image.about[i]), others = 0;
        const double constant = i > 0;
        for (int64_t e = 0; e < n; e++) {
            bool other = (double)kg_load_float(image.view[i].data, p.dtype, e) != constant;
            assert_false(other && e < n - n / 16);
            others += other;
        }
        assert_true(others > 0);
    }
    image_release(&image);
}

static void test_a_sum_that_may_cancel_is_not_drawn(void **state)
{
    (void)state;
    const struct kg_problem one = gemm_like(KG_OP_GEMV, KG_F32, 1, 0, 72),
                            many = gemm_like(KG_OP_GEMV, KG_F32, 40, 0, 72),
                            half = gemm_like(KG_OP_GEMV, KG_F16, 1, 0, 72),
                            bias = gemm_like(KG_OP_LINEAR_RELU_BWD, KG_F32, 257, 1, 129);
    assert_false(probe_applies(PROBE_NORMAL, &one));
    assert_true(probe_applies(PROBE_UNIFORM, &one) && probe_applies(PROBE_INTEGERS, &one));
    assert_true(probe_applies(PROBE_NORMAL, &many) && probe_applies(PROBE_NORMAL, &half));
    assert_false(probe_applies(PROBE_NORMAL, &bias)); /* a single db */
}

static void test_a_change_is_of_one_element(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_F32, 20, 20, 20);
    struct image one, other;
    assert_int_equal(image_make(&p, &dense, 0, &one, NULL), GATE_OK);
    assert_int_equal(image_make(&p, &dense, 0, &other, NULL), GATE_OK);
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned differ = 0;
        probe_fill(PROBE_NORMAL, &p, one.view, 2, 5);
        probe_fill(PROBE_NORMAL, &p, other.view, 2, 5);
        probe_change(PROBE_NORMAL, &p, other.view, 2, seed);
        for (unsigned i = 0; i < 800; i++)
            differ += ((float *)one.view[i / 400].data)[i % 400] !=
                      ((float *)other.view[i / 400].data)[i % 400];
        assert_int_equal(differ, 1);
    }
    image_release(&one);
    image_release(&other);
}

/* Each query has one key that takes all the weight, but where the mask hides it. */
static void test_retrieval_finds_keys(void **state)
{
    (void)state;
    const struct kg_problem p = attention(KG_F16, 0, 4, 2, 65, 129, 64);
    struct image image;
    double *o = malloc(4 * 65 * 64 * sizeof *o);
    double *const out[] = {o};
    assert_non_null(o);
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(PROBE_RETRIEVAL, &p, image.view, 3, 3);
    assert_int_equal(kg_reference_host(&p, image.view, 3, out, 1), KG_OK);
    for (int i = 0; i < 4 * 65 * 64; i++)
        assert_true(fabs(o[i] - round(o[i])) < 1e-6);
    image_release(&image);
    free(o);
}

/* So that values that pass through fp16 are seen with any seed. */
static void test_shifted_values_are_none_of_fp16(void **state)
{
    (void)state;
    const struct kg_problem p = attention(KG_BF16, 0, 2, 1, 3, 40, 64);
    struct image image;
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    for (uint64_t seed = 0; seed < 200; seed++) {
        probe_fill(PROBE_SHIFTED, &p, image.view, 3, seed);
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
    for (int64_t j = 0; j < p->seqlen_kv; j++) {
        score[j] = 0;
        for (int64_t d = 0; d < p->head_dim; d++)
            score[j] +=
                p->scale *
                (double)kg_load_float(image->view[0].data, p->dtype, row * p->head_dim + d) *
                (double)kg_load_float(image->view[1].data, p->dtype, j * p->head_dim + d);
        largest = fmax(largest, score[j]);
    }
    memset(out, 0, (size_t)p->head_dim * sizeof *out);
    for (int64_t j = 0; j < p->seqlen_kv; j++) {
        double weight = exp(score[j] - largest + below);
        sum += weight;
        if (rounded)
            weight = rounded_to(p->dtype, weight);
        for (int64_t d = 0; d < p->head_dim; d++)
            out[d] +=
                weight * (double)kg_load_float(image->view[2].data, p->dtype, j * p->head_dim + d);
    }
    for (int64_t d = 0; d < p->head_dim; d++)
        out[d] = rounded ? rounded_to(p->dtype, out[d] / sum) : out[d] / sum;
}

static double error_of_rounded_weights(const struct kg_problem *p, enum probe probe, uint64_t seed)
{
    struct image image;
    double exact[64], rounded[64], error_sq = 0, norm_sq = 0;
    assert_int_equal(image_make(p, &dense, 0, &image, NULL), GATE_OK);
    probe_fill(probe, p, image.view, 3, seed);
    for (int64_t row = 0; row < p->seqlen_q; row++) {
        attend(p, &image, row, 0, false, exact);
        attend(p, &image, row, (double)(seed % 64) / 12, true, rounded);
        for (int64_t d = 0; d < p->head_dim; d++) {
            error_sq += (rounded[d] - exact[d]) * (rounded[d] - exact[d]);
            norm_sq += exact[d] * exact[d];
        }
    }
    image_release(&image);
    return sqrt(error_sq / norm_sq);
}

/* Where few weights count, their rounding does not average out, and a right kernel must pass. */
static void test_rounded_weights_are_right(void **state)
{
    static const enum probe probes[] = {PROBE_CONSTANT, PROBE_RETRIEVAL, PROBE_RAMP,
                                        PROBE_STRETCHED, PROBE_FAINT};
    (void)state;
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
static void test_faint_keys_count(void **state)
{
    (void)state;
    const struct kg_problem p = attention(KG_BF16, 0, 1, 1, 1, 40, 64);
    struct image image;
    double highest = 0;
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    for (uint64_t seed = 0; seed < 64; seed++) {
        double lead = 0, least = INFINITY;
        probe_fill(PROBE_FAINT, &p, image.view, 3, seed);
        for (int64_t j = 0; j < 40; j++) {
            double at = 0, value = (double)kg_load_float(image.view[2].data, KG_BF16, j * 64);
            for (int64_t d = 0; d < 64; d++)
                at += p.scale * (double)kg_load_float(image.view[0].data, KG_BF16, d) *
                      (double)kg_load_float(image.view[1].data, KG_BF16, j * 64 + d);
            lead = fmax(lead, at);
            least = at == 0 ? fmin(least, value) : least;
        }
        assert_true(lead >= 4 && lead <= FAINT_LEAD && least * exp(-lead) > 1);
        highest = fmax(highest, lead);
    }
    assert_true(highest > 40);
    image_release(&image);
}

/* Relative error of sums of `k` products, each of which is added in three parts, as 3xTF32 does. */
static double error_of_long_sums(int64_t k, uint64_t seed)
{
    double error_sq = 0, norm_sq = 0;
    for (int i = 0; i < 16; i++) {
        float sum = 0;
        double exact = 0;
        for (int64_t l = 0; l < k; l++) {
            const float a = (float)next_normal(&seed), b = (float)next_normal(&seed);
            const float high = kg_float_from_bits(kg_float_bits(a) & ~0x1fffu),
                        other = kg_float_from_bits(kg_float_bits(b) & ~0x1fffu);
            sum += high * (b - other);
            sum += (a - high) * other;
            sum += high * other;
            exact += (double)a * (double)b;
        }
        error_sq += ((double)sum - exact) * ((double)sum - exact);
        norm_sq += exact * exact;
    }
    return sqrt(error_sq / norm_sq);
}

static void test_long_sums_in_fp32_are_right(void **state)
{
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_F32, 4, 4, 200000);
    double largest = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        largest = fmax(largest, error_of_long_sums(p.k, seed * 0x9e3779b97f4a7c15u));
    assert_true(largest > 1e-5); /* of short ones */
    assert_true(largest <= problem_error_limit(&p));
}

/* A causal mask hides it from all rows but the last one. */
static void test_of_two_heads_one_finds_the_last_key(void **state)
{
    (void)state;
    const struct kg_problem p = attention(KG_F16, KG_FLAG_CAUSAL, 2, 1, 3, 40, 64);
    struct image image;
    assert_int_equal(image_make(&p, &dense, 0, &image, NULL), GATE_OK);
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned found = 0;
        probe_fill(PROBE_RETRIEVAL, &p, image.view, 3, seed);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_is_guarded),
        cmocka_unit_test(test_layouts_are_what_kernels_may_be_given),
        cmocka_unit_test(test_drawn_layouts_are_of_each_tensor_by_itself),
        cmocka_unit_test(test_a_design_brings_layouts_together),
        cmocka_unit_test(test_a_poison_changes_all_but_the_inputs),
        cmocka_unit_test(test_exact_probes_are_exact),
        cmocka_unit_test(test_exponents_fill_the_range),
        cmocka_unit_test(test_scores_are_as_large_as_promised),
        cmocka_unit_test(test_inputs_are_as_finite_as_promised),
        cmocka_unit_test(test_the_end_of_a_sum_has_a_nan_and_an_infinity),
        cmocka_unit_test(test_large_integers_stay_exact),
        cmocka_unit_test(test_a_constant_probe_is_constant_until_near_the_end),
        cmocka_unit_test(test_a_sum_that_may_cancel_is_not_drawn),
        cmocka_unit_test(test_a_change_is_of_one_element),
        cmocka_unit_test(test_retrieval_finds_keys),
        cmocka_unit_test(test_long_sums_in_fp32_are_right),
        cmocka_unit_test(test_rounded_weights_are_right),
        cmocka_unit_test(test_faint_keys_count),
        cmocka_unit_test(test_integers_go_to_the_end_of_fp16),
        cmocka_unit_test(test_a_bias_of_fp32_has_all_bits),
        cmocka_unit_test(test_shifted_values_are_none_of_fp16),
        cmocka_unit_test(test_of_two_heads_one_finds_the_last_key),
    };
    dense = image_layout_of(TENSOR_DENSE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
