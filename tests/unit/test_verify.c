/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify.c: the parts of the verification: looks, images, probes, shapes, sanitizer logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference/reference.h"
#include "gate/run/sanitize.h"
#include "gate/verify/verify_layout.h"
#include "gate/verify/verify_large.h"
#include "gate/verify/verify_compare.h"
#include "gate/verify/verify_pattern.h"
#include "gate/verify/verify_shapes.h"
#include "gate/verify/verify_state.h"
#include "tests/unit/problem_tensors.h"

enum { ROWS = 300, COLUMNS = 200 };

/* ---- looks ---- */

struct matrix {
    struct kg_problem problem;
    struct problem_tensor about;
    double reference[ROWS * COLUMNS];
    float got[ROWS * COLUMNS];
};

static struct matrix *ones(void)
{
    struct matrix *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->problem = gemm_like(KG_OP_GEMM, KG_F32, ROWS, COLUMNS, 8);
    m->about = (struct problem_tensor){"c", true, 2, {ROWS, COLUMNS}};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        m->got[i] = (float)(m->reference[i] = i % 3 ? 1 : -1);
    return m;
}

/* What a look says of the matrix, which is freed; "" when it is right. */
static const char *said(struct matrix *m, bool exact)
{
    static char text[600];
    struct look look;
    compare_start(&look, &m->problem, &m->about, exact, 1);
    const struct kg_tensor got = problem_dense(&m->problem, &m->about, m->got);
    assert_int_equal(compare_on_host(&look, &got, m->reference, NULL), GATE_OK);
    assert_int_equal(look.found.elements, ROWS * COLUMNS);
    text[0] = '\0';
    bool right = compare_is_right(&look, text, sizeof text);
    assert_int_equal(right, text[0] == '\0');
    free(m);
    return text;
}

static void test_equal_is_right(void **state)
{
    (void)state;
    assert_string_equal(said(ones(), false), "");
    assert_string_equal(said(ones(), true), "");
}

static void test_one_bit_is_not_exact(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->got[5 * COLUMNS + 7] = nextafterf(m->got[5 * COLUMNS + 7], 2);
    assert_non_null(strstr(said(m, true), "1 of 60000 elements are not exactly"));
    m = ones();
    m->got[5 * COLUMNS + 7] = nextafterf(m->got[5 * COLUMNS + 7], 2);
    assert_string_equal(said(m, false), "");
}

/* Of one element that nearly cancelled, by the size that it has as a rule; as it is when unknown.
 */
static void test_a_sum_that_cancelled(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_F32, 1, 1, 4096);
    const struct problem_tensor about = {"c", true, 2, {1, 1}};
    const double reference = 0.05;
    float value = 0.05f + 2e-6f;
    const struct kg_tensor got = problem_dense(&p, &about, &value);
    for (int known = 0; known < 2; known++) {
        struct look look;
        char text[600];
        compare_start(&look, &p, &about, false, known ? 32 : 0);
        assert_int_equal(compare_on_host(&look, &got, &reference, NULL), GATE_OK);
        assert_int_equal(compare_is_right(&look, text, sizeof text), known);
    }
}

/* The limit for fp32 is 1e-5: these errors are below it as a share of the whole. */
static void test_an_error_in_one_row(void **state)
{
    (void)state;
    struct matrix *m = ones();
    for (int j = 0; j < COLUMNS; j++)
        m->got[299 * COLUMNS + j] *= 1 + 5e-5f;
    assert_non_null(strstr(said(m, false), "of row 299 is over the limit"));
}

static void test_an_error_in_one_tile(void **state)
{
    (void)state;
    struct matrix *m = ones();
    /* 72 of 200 columns and 44 of 300 rows: rows and the whole stay below their limits. */
    for (int i = 256; i < ROWS; i++)
        for (int j = 128; j < COLUMNS; j++)
            m->got[i * COLUMNS + j] *= 1 + 4e-5f;
    assert_non_null(strstr(said(m, false), "of tile (2, 1) is over the limit"));
}

/* A row of 200 hides one element that is off by a 5,000th; as one of an attention it may be. */
static void test_an_error_in_one_element(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->got[200 * COLUMNS + 3] *= 1 + 1.5e-4f;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->got[200 * COLUMNS + 3] *= 1 + 2e-4f;
    assert_non_null(strstr(
        said(m, false), "an element is off by over 8e-05 times its own size and the rms of 1 "
                        "together; 1 of 60000 elements are far off; first bad element [200, 3]"));
    m = ones();
    m->problem.op = KG_OP_ATTENTION_FWD;
    m->got[200 * COLUMNS + 3] *= 1 + 2e-4f;
    assert_string_equal(said(m, false), "");
}

static void test_where_it_is_wrong(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->got[130 * COLUMNS + 150] = 3;
    m->got[131 * COLUMNS] = 3;
    assert_non_null(strstr(said(m, false), "2 of 60000 elements are far off; first bad element "
                                           "[130, 150], in row 130 and tile (1, 1): expected 1, "
                                           "got 3"));
}

static void test_nan_is_never_right(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct matrix *m = ones();
        m->got[17] = NAN;
        assert_non_null(strstr(said(m, exact), "1 of 60000 elements are NaN"));
    }
}

static void test_nan_where_one_is_due(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->reference[17] = NAN;
    m->got[17] = NAN;
    m->reference[18] = INFINITY;
    m->got[18] = INFINITY;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->reference[17] = NAN;
    assert_non_null(strstr(said(m, false), "1 of 60000 elements are not the NaN or infinity"));
}

/* fp64 has an infinity from an input alone, which a kernel may have split into parts. */
static void test_an_infinite_input_may_become_nan(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->reference[18] = -INFINITY;
    m->got[18] = NAN;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->reference[18] = -INFINITY;
    m->got[18] = INFINITY;
    assert_non_null(strstr(said(m, false), "expected -inf, got inf"));
    m = ones();
    m->reference[18] = 1e39; /* finite terms, too large for fp32 */
    m->got[18] = NAN;
    assert_non_null(strstr(said(m, false), "expected inf, got nan"));
}

/* One element that is far off, and by itself within the norms, hides none of those behind it. */
static void test_nothing_hides_a_swallowed_nan(void **state)
{
    (void)state;
    struct matrix *m = ones();
    m->got[5] += 1e-4f;
    m->reference[17] = NAN;
    m->reference[19] = INFINITY;
    assert_non_null(strstr(said(m, false), "2 of 60000 elements are not the NaN or infinity that "
                                           "they must be; first bad element [0, 17]"));
    m = ones();
    m->got[5] += 1e-4f;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->got[5] = 3;
    m->got[30] = INFINITY;
    m->reference[17] = NAN;
    assert_non_null(strstr(said(m, false),
                           "1 of 60000 elements are NaN, Inf or were never written; "
                           "first bad element [0, 30]"));
}

/* ---- images ---- */

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

/* ---- probes ---- */

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

/* ---- what belongs to the device ---- */

static struct verification after_change(size_t at)
{
    struct device_state before = {.memory_free_bytes = 1 << 30}, now = before;
    struct gate_error err;
    struct verification v = {.ok = true};
    now.memory_free_bytes /= 2; /* of which others take as well */
    now.current += at == 1;
    now.malloc_heap_bytes += at == 2;
    now.printf_bytes += at == 3;
    now.persisting_l2_bytes += at == 4;
    now.l2_fetch_bytes += at == 5;
    now.flags += at == 6;
    now.cache_preference += at == 7;
    now.pool_keeps += at == 8;
    assert_int_equal(state_compare_device(&before, &now, &v, &err), GATE_OK);
    return v;
}

static void test_a_device_is_as_it_was(void **state)
{
    static const char *const says[] = {"",           "that is current", "heap",  "printf() buffer",
                                       "the L2",     "a miss fills",    "flags", "preference",
                                       "memory pool"};
    (void)state;
    assert_true(after_change(0).ok);
    for (size_t i = 1; i < sizeof says / sizeof says[0]; i++) {
        struct verification v = after_change(i);
        assert_false(v.ok);
        assert_non_null(strstr(v.message, says[i]));
    }
}

/* 50 launches; `first` and `then` MiB are lost in either half. */
static bool is_leak(size_t first, size_t then)
{
    const size_t all = (size_t)1 << 40, mib = (size_t)1 << 20;
    const struct device_state at[3] = {{.memory_free_bytes = all},
                                       {.memory_free_bytes = all - first * mib},
                                       {.memory_free_bytes = all - first * mib - then * mib}};
    struct verification v = {.ok = true};
    state_find_device_leak(at, 50, &v);
    return !v.ok;
}

/* The same losses, while this process's own memory stays what it was. */
static bool is_leak_of_others(void)
{
    const size_t all = (size_t)1 << 40, half = (size_t)25 << 20;
    const struct device_state at[3] = {
        {.memory_free_bytes = all, .memory_own_bytes = half},
        {.memory_free_bytes = all - half, .memory_own_bytes = half},
        {.memory_free_bytes = all - 2 * half, .memory_own_bytes = half}};
    struct verification v = {.ok = true};
    state_find_device_leak(at, 50, &v);
    return !v.ok;
}

static void test_device_memory_is_not_lost(void **state)
{
    (void)state;
    assert_true(is_leak(25, 25) && is_leak(4, 4));
    assert_false(is_leak(0, 0) || is_leak(2, 2));
    assert_false(is_leak_of_others());
    assert_false(is_leak(500, 0) || is_leak(0, 500)); /* another process */
}

/* ---- shapes ---- */

static void test_neighbours_are_problems(void **state)
{
    (void)state;
    const struct kg_problem problems[] = {
        gemm_like(KG_OP_GEMM, KG_F16, 4096, 8192, 1 << 20),
        gemm_like(KG_OP_GEMV, KG_F32, 1, 0, 1),
        gemm_like(KG_OP_LINEAR_RELU_BWD, KG_BF16, 3, 5, 7),
        attention(KG_F16, KG_FLAG_CAUSAL, 32, 8, 1, 131072, 128),
        attention(KG_BF16, 0, 3, 3, 77, 7, 64),
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        struct kg_problem few[SHAPES_MAX], many[SHAPES_MAX];
        struct kg_signature s;
        struct shapes_cover less, more;
        unsigned n_few = shapes_designed(&problems[i], 5, (struct shapes_plan){9, 0}, few, &less);
        unsigned n_many =
            shapes_designed(&problems[i], 5, (struct shapes_plan){9, 90}, many, &more);
        assert_in_range(n_few, 10, n_many - 20);
        assert_memory_equal(few, many, n_few * sizeof few[0]);
        assert_true(more.of == less.of && more.pairs <= more.of && less.pairs < more.pairs);
        for (unsigned j = 0; j < n_many; j++) {
            assert_true(kg_signature_of(&many[j], &s));
            assert_int_equal(many[j].head_dim, problems[i].head_dim);
            assert_int_equal((many[j].flags ^ problems[i].flags) & ~KG_FLAG_CAUSAL, 0);
            assert_true(image_size(&many[j]) < (size_t)64 << 20);
        }
    }
}

/* Other seeds have other shapes, but for the fixed ones; 100 of them meet most classes. */
static void test_drawn_shapes_follow_the_seed(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_F16, 96, 80, 72);
    struct kg_problem one[SHAPES_MAX], other[SHAPES_MAX];
    struct shapes_cover cover;
    const struct shapes_plan plan = {20, 80};
    unsigned n = shapes_designed(&p, 1, plan, one, &cover), same = 0;
    assert_int_equal(shapes_designed(&p, 2, plan, other, &cover), n);
    while (same < n && !memcmp(&one[same], &other[same], sizeof one[0]))
        same++;
    assert_in_range(same, n - plan.drawn, n - plan.drawn + 1);
    assert_true(cover.pairs > cover.of / 2);
}

/* ---- logs of compute-sanitizer ---- */

static void read_log(const char *text, const char *patterns, struct sanitize_tool *tool)
{
    FILE *log = *text ? fmemopen((char *)text, strlen(text), "r") : fopen("/dev/null", "re");
    assert_non_null(log);
    assert_true(sanitize_read_log(log, patterns, tool));
    fclose(log);
}

static void test_reports_are_counted(void **state)
{
    (void)state;
    static const char log[] = "========= COMPUTE-SANITIZER\n"
                              "kernel output\n"
                              "========= Invalid __shared__ read of size 2 bytes\n"
                              "=========     at one()+0x10\n"
                              "========= \n"
                              "========= Program hit cudaErrorLaunchFailure\n"
                              "=========     Saved host backtrace\n"
                              "=========\n"
                              "========= ERROR SUMMARY: 2 errors\n";
    struct sanitize_tool tool = {0};
    read_log(log, NULL, &tool);
    assert_int_equal(tool.errors, 2);
    assert_string_equal(tool.texts[0].text,
                        "Invalid __shared__ read of size 2 bytes; at one()+0x10");
    read_log(log, "# all of one()\none()+0x?0\n", &tool);
    assert_int_equal(tool.errors, 3);
    assert_int_equal(tool.allowed, 1);
    read_log("", NULL, &tool);
    read_log("=========", NULL, &tool);
    assert_int_equal(tool.errors, 3);
    read_log("========= ERROR SUMMARY: 9 errors\n"
             "========= ERROR SUMMARY: 7 errors were not printed. Use --print-limit\n",
             NULL, &tool);
    assert_int_equal(tool.errors, 4);
}

static void test_a_log_that_cannot_be_read(void **state)
{
    (void)state;
    struct sanitize_tool tool = {0};
    FILE *folder = fopen("/", "re");
    assert_non_null(folder);
    assert_false(sanitize_read_log(folder, NULL, &tool));
    fclose(folder);
}

static void test_a_report_that_comes_again_is_kept_once(void **state)
{
    (void)state;
    static const char log[] = "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x20 [16 hazards]\n"
                              "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x30 [16 hazards]\n"
                              "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x20 [8 hazards]\n";
    static const char writes[] = "========= Invalid __global__ write of size 4 bytes\n"
                                 "=========     at one()+0x40\n"
                                 "=========     by thread (1,0,0) in block (0,0,0)\n"
                                 "=========     Address 0x7f00 is out of bounds\n"
                                 "========= Invalid __global__ write of size 4 bytes\n"
                                 "=========     at one()+0x40\n"
                                 "=========     by thread (2,0,0) in block (9,0,0)\n"
                                 "=========     Address 0x7f04 is out of bounds\n";
    struct sanitize_tool tool = {0};
    read_log(log, NULL, &tool);
    assert_int_equal(tool.errors, 3);
    assert_int_equal(tool.n_texts, 2);
    assert_int_equal(tool.texts[0].times, 2);
    assert_int_equal(tool.texts[1].times, 1);
    assert_non_null(strstr(tool.texts[1].text, "+0x30"));
    read_log(writes, NULL, &tool);
    assert_int_equal(tool.n_texts, 3);
    assert_int_equal(tool.texts[2].times, 2);
}

/* ---- the state of the process ---- */

static void *nothing(void *unused)
{
    return unused;
}

static bool changed_by_now(const struct state *before)
{
    struct state now;
    struct verification v = {.ok = true};
    state_read(false, &now);
    state_compare(before, &now, &v);
    return !v.ok;
}

/* The first one, with which the C library begins to handle signals of its own. */
static void test_a_thread_is_no_change(void **state)
{
    (void)state;
    pthread_t thread;
    struct state before;
    state_read(false, &before);
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(changed_by_now(&before));
}

static void test_a_signal_handler_is_one(void **state)
{
    (void)state;
    struct state before;
    state_read(false, &before);
    void (*previous)(int) = signal(SIGUSR2, SIG_IGN);
    assert_true(changed_by_now(&before));
    signal(SIGUSR2, previous);
    assert_false(changed_by_now(&before));
}

static void test_the_mask_and_the_environment_are_some(void **state)
{
    struct state before;
    sigset_t one, previous;
    (void)state;
    state_read(false, &before);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, &previous);
    assert_true(changed_by_now(&before));
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    assert_false(changed_by_now(&before));
    setenv("GATE_TEST_OF_STATE", "1", 1);
    assert_true(changed_by_now(&before));
    unsetenv("GATE_TEST_OF_STATE");
    assert_false(changed_by_now(&before));
}

/* Of 16 bits: cut off is half a unit towards zero on average, rounded to nearest none. */
static void test_what_is_cut_off_has_a_bias(void **state)
{
    (void)state;
    const struct kg_problem p = gemm_like(KG_OP_GEMM, KG_BF16, 40, 40, 40);
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    uint16_t got[1600];
    double reference[1600];
    problem_tensors(&p, about);
    const struct kg_tensor view = problem_dense(&p, &about[2], got);
    for (int cut = 0; cut < 3; cut++) {
        struct look look;
        char text[500] = "";
        for (int i = 0; i < 1600; i++) {
            float value = (i % 2 ? -1 : 1) * (1 + (float)i * 0.618f);
            reference[i] = (double)value;
            got[i] = cut ? (uint16_t)(kg_float_bits(value) >> 16) : kg_float_to_bf16(value);
        }
        compare_start(&look, &p, &about[2], false, 0);
        look.unbiased = cut != 2;
        assert_int_equal(compare_on_host(&look, &view, reference, NULL), GATE_OK);
        assert_int_equal(compare_is_right(&look, text, sizeof text), cut != 1);
        assert_int_equal(strstr(text, "towards zero") != NULL, cut == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_is_no_change), /* while there was none */
        cmocka_unit_test(test_a_signal_handler_is_one),
        cmocka_unit_test(test_the_mask_and_the_environment_are_some),
        cmocka_unit_test(test_what_is_cut_off_has_a_bias),
        cmocka_unit_test(test_equal_is_right),
        cmocka_unit_test(test_one_bit_is_not_exact),
        cmocka_unit_test(test_a_sum_that_cancelled),
        cmocka_unit_test(test_an_error_in_one_row),
        cmocka_unit_test(test_an_error_in_one_tile),
        cmocka_unit_test(test_an_error_in_one_element),
        cmocka_unit_test(test_where_it_is_wrong),
        cmocka_unit_test(test_nan_is_never_right),
        cmocka_unit_test(test_nan_where_one_is_due),
        cmocka_unit_test(test_an_infinite_input_may_become_nan),
        cmocka_unit_test(test_nothing_hides_a_swallowed_nan),
        cmocka_unit_test(test_every_byte_is_guarded),
        cmocka_unit_test(test_layouts_are_what_kernels_may_be_given),
        cmocka_unit_test(test_drawn_layouts_are_of_each_tensor_by_itself),
        cmocka_unit_test(test_a_poison_changes_all_but_the_inputs),
        cmocka_unit_test(test_exact_probes_are_exact),
        cmocka_unit_test(test_inputs_are_as_finite_as_promised),
        cmocka_unit_test(test_large_integers_stay_exact),
        cmocka_unit_test(test_a_constant_probe_is_constant_until_near_the_end),
        cmocka_unit_test(test_a_sum_that_may_cancel_is_not_drawn),
        cmocka_unit_test(test_a_change_is_of_one_element),
        cmocka_unit_test(test_exponents_fill_the_range),
        cmocka_unit_test(test_scores_are_as_large_as_promised),
        cmocka_unit_test(test_retrieval_finds_keys),
        cmocka_unit_test(test_a_device_is_as_it_was),
        cmocka_unit_test(test_device_memory_is_not_lost),
        cmocka_unit_test(test_neighbours_are_problems),
        cmocka_unit_test(test_drawn_shapes_follow_the_seed),
        cmocka_unit_test(test_reports_are_counted),
        cmocka_unit_test(test_a_log_that_cannot_be_read),
        cmocka_unit_test(test_a_report_that_comes_again_is_kept_once),
    };
    dense = image_layout_of(TENSOR_DENSE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
