/* SPDX-License-Identifier: Apache-2.0 */
/* test_fp8.c: products of e4m3 as tensor cores of 14 bits sum them: exact inputs are exact with
 * them and random ones within the limit, but not without sums in fp32. */
#include <math.h>
#include <stdbool.h>

#include "kernels/ops/rows.h"
#include "gate/cases/problem.h"
#include "tests/unit/filled.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

static const char *const ops[] = {"gemm_fp8", "gemm_fp8_block"};

enum { A, B, SA, SB };

static double *referred(const struct kg_problem *p, const struct image *image)
{
    double *reference = malloc((size_t)(kg_size(p, "m") * kg_size(p, "n")) * sizeof *reference);
    double *const out[] = {reference};
    assert_int_equal(rows_reference(p, image->view, out, 1), KG_OK);
    return reference;
}

/* ---- a tensor core ---- */

#define MMA_TERMS 32
#define SUM_BITS 13 /* of a sum, behind the first one */

/* *sum += products, all cut off at 2^-13 of the power of two of the largest. */
static void multiply_add(float *sum, const float *products, int n)
{
    float largest = fabsf(*sum);
    double all = 0;
    int exponent;
    for (int i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(products[i]));
    frexpf(largest, &exponent);
    const double unit = ldexp(1, exponent - 1 - SUM_BITS);
    for (int i = 0; i < n; i++)
        all += isnan(products[i]) ? NAN : trunc((double)products[i] / unit);
    *sum = (float)((all + trunc((double)*sum / unit)) * unit);
}

enum order { SCALES_FIRST, SCALES_LAST, SCALES_IN_TURN, FAST };

/* An element of C. SCALES_FIRST: without a tensor core. FAST: nothing is summed in fp32. */
static float element(const struct kg_problem *p, const struct kg_tensor *in, int64_t i, int64_t j,
                     enum order order)
{
    const bool blocks = in[SA].rank > 1;
    const int64_t k = kg_size(p, "k");
    float total = 0, sum = 0, products[MMA_TERMS];
    for (int64_t l = 0; l < k;) {
        const int64_t block = blocks ? l / OP_BLOCK : 0;
        const float sa = tensor_get(&in[SA], blocks ? i * in[SA].shape[1] + block : 0);
        const float sb = tensor_get(&in[SB], blocks ? j / OP_BLOCK * in[SB].shape[1] + block : 0);
        int n = 0;
        for (; n < MMA_TERMS && l < k; n++, l++) {
            const float a = tensor_get(&in[A], i * k + l), b = tensor_get(&in[B], j * k + l);
            products[n] = a * b;
            total += order == SCALES_FIRST ? a * sa * (b * sb) : 0;
        }
        if (order == SCALES_FIRST)
            continue;
        multiply_add(&sum, products, n);
        if (l < k && (order == FAST || l % OP_BLOCK))
            continue;
        total += order == SCALES_IN_TURN ? sum * sa * sb : sum * (sa * sb);
        sum = 0;
    }
    return total;
}

/* ---- exact inputs ---- */

static void check_exact(const struct kg_problem *p, const struct image *image)
{
    double *reference = referred(p, image);
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t j = 0; j < kg_size(p, "n"); j++)
            for (enum order order = SCALES_FIRST; order < FAST; order++) {
                const float value = element(p, image->view, i, j, order);
                const double wanted = reference[i * kg_size(p, "n") + j];
                assert_true(isnan(value) ? isnan(wanted) : (double)value == wanted);
            }
    free(reference);
}

/* Whatever the order in which scales come in, and with an element changed. */
TEST(exact_probes_are_exact)
{
    static const int64_t lengths[] = {300, 1100};
    for (unsigned i = 0; i < 2 * 2 * PROBES; i++) {
        const enum probe probe = (enum probe)(i / 4);
        const struct kg_problem p = gemm_like(ops[i % 2], KG_E4M3, 3, 131, lengths[i / 2 % 2]);
        if (!probe_is_exact(probe) || !probe_applies(probe, &p))
            continue;
        struct image image = image_filled(&p, probe, i);
        check_exact(&p, &image);
        for (uint64_t seed = 0; seed < 4 && probe != PROBE_CANCELLATION; seed++) {
            probe_change(probe, &p, image.view, seed);
            check_exact(&p, &image);
        }
        image_release(&image);
    }
}

/* ---- random inputs ---- */

static double error_of(const struct kg_problem *p, const struct image *image, enum order order)
{
    double *reference = referred(p, image), error = 0, norm = 0;
    for (int64_t at = 0; at < kg_size(p, "m") * kg_size(p, "n"); at++) {
        uint16_t rounded;
        const float value =
            element(p, image->view, at / kg_size(p, "n"), at % kg_size(p, "n"), order);
        kg_store_float(&rounded, KG_BF16, 0, value);
        error += pow((double)kg_load_float(&rounded, KG_BF16, 0) - reference[at], 2);
        norm += pow(reference[at], 2);
    }
    free(reference);
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

TEST(random_inputs_are_within_the_limit)
{
    static const int64_t lengths[] = {128, 1100, 8192};
    for (unsigned i = 0; i < 2 * 3 * PROBES; i++) {
        const enum probe probe = (enum probe)(i / 6);
        const struct kg_problem p = gemm_like(ops[i % 2], KG_E4M3, 8, 40, lengths[i / 2 % 3]);
        if (probe_is_exact(probe) || !probe_applies(probe, &p))
            continue;
        struct image image = image_filled(&p, probe, i);
        assert_true(error_of(&p, &image, SCALES_LAST) < problem_error_limit(&p));
        image_release(&image);
    }
}

TEST(fast_accumulation_is_over_the_limit)
{
    const struct kg_problem p = gemm_like("gemm_fp8", KG_E4M3, 8, 40, 2048);
    struct image image = image_filled(&p, PROBE_UNIFORM, 1);
    assert_true(error_of(&p, &image, FAST) > problem_error_limit(&p));
    image_release(&image);
}

/* ---- what kernel.h promises ---- */

TEST(scales_are_positive_and_far_apart)
{
    const struct kg_problem p = gemm_like("gemm_fp8_block", KG_E4M3, 40, 600, 2000);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        if (!probe_applies((enum probe)probe, &p))
            continue;
        struct image image = image_filled(&p, (enum probe)probe, probe);
        double least = HUGE_VAL, most = 0;
        for (unsigned i = SA; i <= SB; i++)
            for (int64_t at = 0; at < pattern_elements(&image.view[i]); at++) {
                least = fmin(least, (double)tensor_get(&image.view[i], at));
                most = fmax(most, (double)tensor_get(&image.view[i], at));
            }
        assert_true(least >= 0x1p-40 && 2 * most <= 0x1p40); /* one may be doubled */
        assert_true(!probe_is_exact((enum probe)probe) || most / least > 0x1p20);
        image_release(&image);
    }
}
