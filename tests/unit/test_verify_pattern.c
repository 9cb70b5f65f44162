/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_pattern.c: input patterns with one exact answer. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/ops/rows.h"
#include "gate/base/seed.h"
#include "tests/unit/filled.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

/* Both ways round, in fp32, as a kernel may sum. */
static void check_exact(const struct kg_problem *p, const struct image *image, enum probe probe,
                        const double *reference)
{
    for (int e = 0; e < 9 * 8; e++) {
        float up = 0, down = 0, largest = 0;
        for (int64_t l = 0; l < kg_size(p, "k"); l++) {
            int64_t back = kg_size(p, "k") - 1 - l;
            up += kg_load_float(image->view[0].data, kg_dtype(p), e / 8 * kg_size(p, "k") + l) *
                  kg_load_float(image->view[1].data, kg_dtype(p), l * 8 + e % 8);
            down +=
                kg_load_float(image->view[0].data, kg_dtype(p), e / 8 * kg_size(p, "k") + back) *
                kg_load_float(image->view[1].data, kg_dtype(p), back * 8 + e % 8);
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
TEST(exact_probes_are_exact)
{
    const enum kg_dtype stored[] = {KG_F16, KG_BF16, KG_F32};
    for (int i = 0; i < 3 * 4 * PROBES; i++) {
        enum probe probe = (enum probe)(i % PROBES);
        const struct kg_problem p =
            gemm_like("gemm", stored[i / PROBES % 3], 9, 8, i % 2 ? 513 : 3000);
        double reference[9 * 8];
        double *const out[] = {reference};
        if (!probe_is_exact(probe) || !probe_applies(probe, &p))
            continue;
        struct image image = image_filled(&p, probe, (uint64_t)i);
        for (int changed = 0; changed < 2; changed++) {
            if (changed)
                probe_change(probe, &p, image.view, (uint64_t)i);
            assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
            if (!changed || probe != PROBE_CANCELLATION)
                check_exact(&p, &image, probe, reference);
        }
        image_release(&image);
    }
}

/* Whatever changes: also where most of B belongs to groups without rows. */
TEST(a_change_of_groups_changes_the_results)
{
    struct kg_problem p = gemm_like("grouped_gemm", KG_F32, 3, 4, 5);
    *op_named(&p, "g") = 20;
    for (uint64_t seed = 0; seed < 40; seed++) {
        double before[3 * 4], after[3 * 4];
        double *out[] = {before};
        struct image image = image_filled(&p, PROBE_INTEGERS, seed);
        assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
        out[0] = after;
        probe_change(PROBE_INTEGERS, &p, image.view, seed);
        assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
        assert_memory_not_equal(before, after, sizeof before);
        image_release(&image);
    }
}

/* A term that is left out shows, whichever it is. */
TEST(no_factor_of_integers_is_0)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct kg_problem p = gemm_like("gemv", KG_F16, 3, 0, 8705);
        struct image image = image_filled(&p, PROBE_INTEGERS, seed);
        for (int64_t i = 0; i < kg_size(&p, "k"); i++)
            assert_true(kg_load_float(image.view[1].data, KG_F16, i) != 0);
        image_release(&image);
    }
}

/* Results from the subnormal to the infinite, of each dtype that has them. */
TEST(exponents_fill_the_range)
{
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_F32; dtype++) {
        const struct kg_problem p = gemm_like("gemm", dtype, 100, 90, 70);
        double *reference = malloc(9000 * sizeof *reference);
        double *const out[] = {reference};
        int small = 0, large = 0, usual = 0;
        assert_non_null(reference);
        struct image image = image_filled(&p, PROBE_EXPONENTS, 3);
        assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
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
TEST(a_bias_of_fp32_has_all_bits)
{
    const struct kg_problem p = gemm_like("linear_relu", KG_F32, 3, 300, 5);
    int longer = 0;
    struct image image = image_filled(&p, PROBE_EXPONENTS, 3);
    for (int64_t j = 0; j < kg_size(&p, "n"); j++)
        longer += (kg_float_bits(kg_load_float(image.view[2].data, KG_F32, j)) & 0x1fffu) != 0;
    assert_in_range(longer, 80, 100);
    image_release(&image);
}

/* Of fp16, whatever the seed: one sum in (65504, 65520). */
TEST(integers_go_to_the_end_of_fp16)
{
    static const char *const ops[] = {"gemm", "gemv", "linear_relu"};
    for (uint64_t seed = 0; seed < 30; seed++) {
        const bool vector = !strcmp(ops[seed % 3], "gemv");
        const struct kg_problem p = gemm_like(ops[seed % 3], KG_F16, 9, vector ? 0 : 8, 50);
        double reference[72];
        double *const out[] = {reference};
        int at_end = 0;
        struct image image = image_filled(&p, PROBE_INTEGERS, seed);
        assert_int_equal(rows_reference(&p, image.view, out, 1), KG_OK);
        for (int e = 0; e < (vector ? 9 : 72); e++)
            at_end += reference[e] > 65504 && reference[e] < 65520;
        assert_in_range(at_end, 1, 2);
        image_release(&image);
    }
}

/* kernel.h promises finite inputs to all ops but GEMM and GEMV. */
static void check_finite(const struct kg_problem *p, enum probe probe)
{
    struct image image = image_filled(p, probe, 4711);
    int64_t odd = 0;
    for (unsigned i = 0; i < image.n_in; i++)
        for (int64_t e = 0, n = problem_tensor_elements(&image.about[i]); e < n; e++)
            odd += !isfinite(kg_load_float(image.view[i].data, kg_dtype(p), e));
    assert_int_equal(odd > 0, probe == PROBE_SPECIAL || probe == PROBE_SPECIAL_SECOND ||
                                  probe == PROBE_NAN_SECOND);
    image_release(&image);
}

/* Kernels that add the last terms of a sum by other code lose a NaN or an infinity there alone. */
TEST(the_end_of_a_sum_has_a_nan_and_an_infinity)
{
    const struct kg_problem p = gemm_like("gemm", KG_F16, 50, 40, 77);
    for (int i = 0; i < 100; i++) {
        bool second = i % 2;
        int nans = 0, infinities = 0;
        struct image image =
            image_filled(&p, second ? PROBE_SPECIAL_SECOND : PROBE_SPECIAL, (uint64_t)i);
        for (int64_t line = 0; line < (second ? kg_size(&p, "n") : kg_size(&p, "m")); line++) {
            float x =
                kg_load_float(image.view[second].data, kg_dtype(&p),
                              second ? 76 * kg_size(&p, "n") + line : line * kg_size(&p, "k") + 76);
            nans += isnan(x) != 0;
            infinities += isinf(x) != 0; /* -1 for one below 0 */
        }
        assert_true(nans > 0);
        assert_true(infinities > 0);
        image_release(&image);
    }
}

TEST(inputs_are_as_finite_as_promised)
{
    const uint32_t stored[] = {KG_F16, KG_BF16, KG_F32};
    const double scales[] = {1e-6, 1e-3, 2e-3, 0.01, 0.125, 1, 30, 1000, -0.125};
    for (int d = 0; d < 3; d++)
        for (int probe = 0; probe < PROBES; probe++) {
            for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
                struct kg_problem p = attention(stored[d], KG_FLAG_CAUSAL, 4, 2, 65, 129, 64);
                *op_param_named(&p, "scale") = scales[s];
                assert_false(probe_applies(PROBE_SPECIAL, &p));
                if (probe_applies((enum probe)probe, &p))
                    check_finite(&p, (enum probe)probe);
            }
            for (unsigned op = 0; op < 4; op++) {
                static const char *const ops[] = {"gemm", "gemv", "linear_relu", "linear_relu_bwd"};
                const struct kg_problem p = gemm_like(ops[op], stored[d], 33, 30, 513);
                assert_true(!probe_applies(PROBE_SPECIAL, &p) || op < 2);
                if (probe_applies((enum probe)probe, &p))
                    check_finite(&p, (enum probe)probe);
            }
        }
}

/* No sum may leave what fp32 counts in ones, and hardly any the range of fp16; but they must be
 * large enough for rounding to show. */
TEST(large_integers_stay_exact)
{
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_F32; dtype++)
        for (int64_t k = 1; k <= 1 << 20; k *= 4) {
            const struct kg_problem p = gemm_like("gemm", dtype, 8192, 8192, k);
            const struct kg_problem back = gemm_like("linear_relu_bwd", dtype, k, 8, 8);
            double a = probe_integers(&p), deviation = a * (a + 1) / 3 * sqrt((double)k);
            assert_true(a >= 1 && a <= 128 && (double)k * a * a <= 0x1p24);
            assert_true(dtype != KG_F16 || 8 * deviation <= 65504);
            assert_true(k < 16 || k > 1 << 16 || deviation > 256 * (dtype == KG_F16 ? 8 : 1));
            double b = probe_integers(&back);
            assert_true((double)k * b * b <= 0x1p24);
        }
}

/* So that whoever looks at some elements, wherever, finds one value alone. */
TEST(a_constant_probe_is_constant_until_near_the_end)
{
    const struct kg_problem p = gemm_like("linear_relu", KG_F16, 32, 32, 64);
    struct image image = image_filled(&p, PROBE_CONSTANT, 5);
    for (unsigned i = 0; i < image.n_in; i++) {
        int64_t n = problem_tensor_elements(&image.about[i]), others = 0;
        const double constant = i > 0;
        for (int64_t e = 0; e < n; e++) {
            bool other = (double)kg_load_float(image.view[i].data, kg_dtype(&p), e) != constant;
            assert_false(other && e < n - n / 16);
            others += other;
        }
        assert_true(others > 0);
    }
    image_release(&image);
}

static bool is_negative(const struct image *image, unsigned i)
{
    bool all = true;
    for (int64_t e = 0, n = problem_tensor_elements(&image->about[i]); e < n; e++)
        all = all && kg_load_float(image->view[i].data, image->about[i].dtype, e) < 0;
    return all;
}

/* What seeks the largest one from zero on finds none; but a bias would leave a ReLU nothing. */
TEST(beside_zeros_factors_are_negative)
{
    const struct kg_problem problems[] = {gemm_like("linear_relu", KG_F16, 9, 10, 20),
                                          attention(KG_BF16, 0, 2, 1, 5, 6, 16)};
    for (unsigned i = 0; i < 2; i++) {
        struct image image = image_filled(&problems[i], PROBE_ZERO_FIRST, 5);
        assert_true(is_negative(&image, 1));
        assert_int_equal(is_negative(&image, 2), i == 1);
        probe_fill(PROBE_ZERO_SECOND, &problems[i], image.view, 5);
        assert_true(is_negative(&image, 0));
        image_release(&image);
    }
}

TEST(of_rows_and_tiles_of_zeros_the_rest_has_two_of_four)
{
    const struct kg_problem p = gemm_like("gemm", KG_F16, 90, 97, 131);
    struct image image = image_filled(&p, PROBE_ZERO_PARTS, 5);
    for (unsigned i = 0; i < 2; i++) {
        const int64_t columns = image.about[i].shape[1];
        int64_t full = 0;
        for (int64_t e = 0, there = 0, n = problem_tensor_elements(&image.about[i]); e < n; e++) {
            there = e % columns % 4 ? there : 0;
            there += kg_load_float(image.view[i].data, kg_dtype(&p), e) != 0;
            assert_true(there <= 2);
            full += there == 2;
        }
        assert_true(full > 100);
    }
    image_release(&image);
}

TEST(a_sum_that_may_cancel_is_not_drawn)
{
    const struct kg_problem one = gemm_like("gemv", KG_F32, 1, 0, 72),
                            many = gemm_like("gemv", KG_F32, 40, 0, 72),
                            half = gemm_like("gemv", KG_F16, 1, 0, 72),
                            bias = gemm_like("linear_relu_bwd", KG_F32, 257, 1, 129);
    assert_false(probe_applies(PROBE_NORMAL, &one));
    assert_true(probe_applies(PROBE_UNIFORM, &one) && probe_applies(PROBE_INTEGERS, &one));
    assert_true(probe_applies(PROBE_NORMAL, &many) && probe_applies(PROBE_NORMAL, &half));
    assert_false(probe_applies(PROBE_NORMAL, &bias)); /* a single db */
}

TEST(a_change_is_of_one_element)
{
    const struct kg_problem p = gemm_like("gemm", KG_F32, 20, 20, 20);
    struct image one = image_filled(&p, PROBE_NORMAL, 0);
    struct image other = image_filled(&p, PROBE_NORMAL, 0);
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned differ = 0;
        probe_fill(PROBE_NORMAL, &p, one.view, 5);
        probe_fill(PROBE_NORMAL, &p, other.view, 5);
        probe_change(PROBE_NORMAL, &p, other.view, seed);
        for (unsigned i = 0; i < 800; i++)
            differ += ((float *)one.view[i / 400].data)[i % 400] !=
                      ((float *)other.view[i / 400].data)[i % 400];
        assert_int_equal(differ, 1);
    }
    image_release(&one);
    image_release(&other);
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

TEST(long_sums_in_fp32_are_right)
{
    const struct kg_problem p = gemm_like("gemm", KG_F32, 4, 4, 200000);
    double largest = 0;
    for (uint64_t seed = 1; seed <= 4; seed++)
        largest = fmax(largest, error_of_long_sums(kg_size(&p, "k"), seed * 0x9e3779b97f4a7c15u));
    assert_true(largest > 1e-5); /* of short ones */
    assert_true(largest <= problem_error_limit(&p));
}
