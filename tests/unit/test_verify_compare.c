/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_compare.c: outputs beside their reference: elements, tiles, rows, NaN, bias. */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate/device/device.h"
#include "gate/verify/verify_compare.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

enum { ROWS = 300, COLUMNS = 200 };

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
    m->problem = gemm_like("gemm", KG_F32, ROWS, COLUMNS, 8);
    m->about = (struct problem_tensor){
        .name = "c", .is_output = true, .dtype = KG_F32, .rank = 2, .shape = {ROWS, COLUMNS}};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        m->got[i] = (float)(m->reference[i] = i % 3 ? 1 : -1);
    return m;
}

/* What a look says of the matrix, which is freed; "" when it is right. */
static const char *said(struct matrix *m, bool exact)
{
    static char text[600];
    struct look look;
    compare_start(&look, &m->problem, &m->about, exact ? PROBE_INTEGERS : PROBE_NORMAL, 1);
    const struct kg_tensor got = problem_dense(&m->about, m->got);
    host_parts(&got, m->reference, &look.rule, &look.found);
    assert_int_equal(look.found.elements, ROWS * COLUMNS);
    text[0] = '\0';
    bool right = compare_is_right(&look, text, sizeof text);
    assert_int_equal(right, text[0] == '\0');
    free(m);
    return text;
}

TEST(equal_is_right)
{
    assert_string_equal(said(ones(), false), "");
    assert_string_equal(said(ones(), true), "");
}

TEST(one_bit_is_not_exact)
{
    struct matrix *m = ones();
    m->got[5 * COLUMNS + 7] = nextafterf(m->got[5 * COLUMNS + 7], 2);
    assert_non_null(strstr(said(m, true), "1 of 60000 elements differ from the exact result"));
    m = ones();
    m->got[5 * COLUMNS + 7] = nextafterf(m->got[5 * COLUMNS + 7], 2);
    assert_string_equal(said(m, false), "");
}

/* Of one element that nearly cancelled, by the size that it has as a rule; as it is when unknown.
 */
TEST(a_sum_that_cancelled)
{
    const struct kg_problem p = gemm_like("gemm", KG_F32, 1, 1, 4096);
    const struct problem_tensor about = {
        .name = "c", .is_output = true, .dtype = KG_F32, .rank = 2, .shape = {1, 1}};
    const double reference = 0.05;
    float value = 0.05f + 2e-6f;
    const struct kg_tensor got = problem_dense(&about, &value);
    for (int known = 0; known < 2; known++) {
        struct look look;
        char text[600];
        compare_start(&look, &p, &about, PROBE_NORMAL, known ? 32 : 0);
        host_parts(&got, &reference, &look.rule, &look.found);
        assert_int_equal(compare_is_right(&look, text, sizeof text), known);
    }
}

/* One large element in another row: what rounding to whole units of 2^-24 adds to a row of a few
 * units is right, and three units more are not. */
TEST(a_row_of_subnormal_numbers)
{
    enum { WIDTH = 64 };
    const struct kg_problem p = attention(KG_F16, 0, 2, 0, 0, 0, WIDTH);
    const struct problem_tensor about = {
        .name = "o", .is_output = true, .dtype = KG_F16, .rank = 2, .shape = {2, WIDTH}};
    for (int off = 0; off < 2; off++) {
        double reference[2 * WIDTH];
        uint16_t bits[2 * WIDTH];
        struct look look;
        char text[600] = "";
        for (int i = 0; i < 2 * WIDTH; i++) {
            bits[i] = (uint16_t)(i % 7 + 3 * off * (i >= WIDTH));
            reference[i] = (i % 7 + 0.4) * 0x1p-24;
        }
        bits[40] = 0x2000;
        reference[40] = 0x1p-7;
        const struct kg_tensor got = problem_dense(&about, bits);
        compare_start(&look, &p, &about, PROBE_NORMAL, 1e-3);
        host_parts(&got, reference, &look.rule, &look.found);
        assert_int_equal(compare_is_right(&look, text, sizeof text), !off);
        assert_true(!off || strstr(text, "of row 1 is over the limit"));
    }
}

/* The limit for fp32 is 1e-5: these errors are below it as a share of the whole. */
TEST(an_error_in_one_row)
{
    struct matrix *m = ones();
    for (int j = 0; j < COLUMNS; j++)
        m->got[299 * COLUMNS + j] *= 1 + 5e-5f;
    assert_non_null(strstr(said(m, false), "of row 299 is over the limit"));
}

TEST(an_error_in_one_tile)
{
    struct matrix *m = ones();
    /* 72 of 200 columns and 44 of 300 rows: rows and the whole stay below their limits. */
    for (int i = 256; i < ROWS; i++)
        for (int j = 128; j < COLUMNS; j++)
            m->got[i * COLUMNS + j] *= 1 + 4e-5f;
    assert_non_null(strstr(said(m, false), "of tile (2, 1) is over the limit"));
}

/* A row of 200 hides one element that is off by a 5,000th; as one of an attention it may be. */
TEST(an_error_in_one_element)
{
    struct matrix *m = ones();
    m->got[200 * COLUMNS + 3] *= 1 + 1.5e-4f;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->got[200 * COLUMNS + 3] *= 1 + 2e-4f;
    assert_non_null(strstr(
        said(m, false), "the error of an element is over 8e-05 times the sum of its size and the "
                        "rms of 1; 1 of 60000 elements are far off; first bad element [200, 3]"));
    m = ones();
    m->problem = attention(KG_F32, 0, 2, 1, 1, 1, 64);
    m->got[200 * COLUMNS + 3] *= 1 + 2e-4f;
    assert_string_equal(said(m, false), "");
}

TEST(where_it_is_wrong)
{
    struct matrix *m = ones();
    m->got[130 * COLUMNS + 150] = 3;
    m->got[131 * COLUMNS] = 3;
    assert_non_null(strstr(said(m, false), "2 of 60000 elements are far off, all in rows 130 to "
                                           "131, all in columns 0 to 150; first bad element "
                                           "[130, 150], in row 130 and tile (1, 1): expected 1, "
                                           "got 3"));
    m = ones();
    for (int i = 0; i < ROWS; i++)
        m->got[i * COLUMNS + 196] = 3;
    assert_non_null(strstr(said(m, false), "300 of 60000 elements are far off, all in column 196; "
                                           "first bad element [0, 196]"));
}

/* What bands of rows found is taken together in their order, by one thread or by many. */
TEST(threads_find_the_same)
{
    struct device_comparison found[2];
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    for (int single = 0; single < 2; single++) {
        struct matrix *m = ones();
        for (int i = 70; i < ROWS; i += 60)
            m->got[i * COLUMNS + i % 7] += (float)i * 1e-3f;
        m->got[100 * COLUMNS + 3] = NAN;
        sched_setaffinity(0, sizeof one, single ? &one : &all);
        struct look look;
        compare_start(&look, &m->problem, &m->about, PROBE_NORMAL, 1);
        const struct kg_tensor got = problem_dense(&m->about, m->got);
        host_parts(&got, m->reference, &look.rule, &look.found);
        found[single] = look.found;
        free(m);
    }
    sched_setaffinity(0, sizeof all, &all);
    assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    assert_int_equal(found[0].bad, 5);
    assert_int_equal(found[0].bad_rows[0], 70);
    assert_int_equal(found[0].bad_rows[1], 250);
    assert_int_equal(found[0].worst_row_at, 250);
    assert_int_equal(found[0].worst_tile_row, 1);
    assert_int_equal(found[0].first_nonfinite.at, 100 * COLUMNS + 3);
}

TEST(nan_is_never_right)
{
    for (int exact = 0; exact < 2; exact++) {
        struct matrix *m = ones();
        m->got[17] = NAN;
        assert_non_null(strstr(said(m, exact), "1 of 60000 elements are NaN"));
    }
}

TEST(nan_where_one_is_due)
{
    struct matrix *m = ones();
    m->reference[17] = NAN;
    m->got[17] = NAN;
    m->reference[18] = INFINITY;
    m->got[18] = INFINITY;
    assert_string_equal(said(m, false), "");
    m = ones();
    m->reference[17] = NAN;
    assert_non_null(
        strstr(said(m, false), "1 of 60000 elements must be NaN or infinity and are not"));
}

/* fp64 has an infinity from an input alone, which a kernel may have split into parts. */
TEST(an_infinite_input_may_become_nan)
{
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
TEST(nothing_hides_a_swallowed_nan)
{
    struct matrix *m = ones();
    m->got[5] += 1e-4f;
    m->reference[17] = NAN;
    m->reference[19] = INFINITY;
    assert_non_null(strstr(said(m, false), "2 of 60000 elements must be NaN or infinity and are "
                                           "not; first bad element [0, 17]"));
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

/* Is an output of 40 by 40 numbers of bf16 right? */
static bool is_right(int64_t k, uint16_t *got, const double *reference, bool unbiased, char *text,
                     size_t size)
{
    const struct kg_problem p = gemm_like("gemm", KG_BF16, 40, 40, k);
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    struct look look;
    problem_tensors(&p, about);
    const struct kg_tensor view = problem_dense(&about[2], got);
    compare_start(&look, &p, &about[2], PROBE_NORMAL, 0);
    look.unbiased = unbiased;
    host_parts(&view, reference, &look.rule, &look.found);
    return compare_is_right(&look, text, size);
}

/* Of 16 bits: cut off is half a unit towards zero on average, rounded to nearest none. */
TEST(what_is_cut_off_has_a_bias)
{
    uint16_t got[1600];
    double reference[1600];
    for (int cut = 0; cut < 3; cut++) {
        char text[500] = "";
        for (int i = 0; i < 1600; i++) {
            float value = (i % 2 ? -1 : 1) * (1 + (float)i * 0.618f);
            reference[i] = (double)value;
            got[i] = cut ? (uint16_t)(kg_float_bits(value) >> 16) : kg_float_to_bf16(value);
        }
        assert_int_equal(is_right(40, got, reference, cut != 2, text, sizeof text), cut != 1);
        assert_int_equal(strstr(text, "towards zero") != NULL, cut == 1);
    }
}

/* Where K is 1, a GEMV is one number times each of a column: of 255/128 nearly all products round
 * towards zero. */
TEST(products_with_one_factor_are_right_whichever_way_they_round)
{
    uint16_t got[1600];
    double reference[1600];
    for (int factor = 128; factor < 256; factor++) {
        char text[500] = "";
        for (int i = 0; i < 1600; i++) {
            float value = (float)(factor * (128 + i % 128) * (i % 3 ? 1 : -1));
            reference[i] = (double)value;
            got[i] = kg_float_to_bf16(value);
        }
        assert_true(is_right(1, got, reference, true, text, sizeof text));
    }
}
