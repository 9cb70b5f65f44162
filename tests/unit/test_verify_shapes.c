/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_shapes.c: shapes beside the problem's own: those of its size keep its path, and what
 * they cost; drawn ones follow the seed. */
#include <math.h>
#include <string.h>

#include "gate/cases/problem.h"
#include "gate/cases/suite.h"
#include "gate/verify/verify_layout.h"
#include "gate/verify/verify_shapes.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

#define FLOPS 8e10 /* as verify_tier.c lets the commit tier have on a GPU */

/* What the reference of the GPU computes: tiles of 64 queries, and of 128 columns. */
static double reference_flops(const struct kg_problem *p)
{
    if (kg_is_op(p, "attention_fwd")) {
        double queries = kg_size(p, "sq") < 64 ? 64 : (double)kg_size(p, "sq");
        return 4.0 * (double)(kg_size(p, "b") * kg_size(p, "h")) * queries *
               (double)kg_size(p, "s") * (double)kg_size(p, "d");
    }
    double n = kg_is_op(p, "gemv") ? 128 : (double)kg_size(p, "n");
    double products = kg_is_op(p, "linear_relu_bwd") ? 2 : 1;
    return 2 * products * (double)kg_size(p, "m") * n * (double)kg_size(p, "k");
}

static bool is_within(int64_t value, int64_t of, int64_t by)
{
    return value >= of - by && value <= of + by && value >= 1;
}

static void check_attention(const struct kg_problem *own, const struct kg_problem *p)
{
    assert_true(is_within(kg_size(p, "s"), kg_size(own, "s"), 33));
    assert_true(is_within(kg_size(p, "sq"), kg_size(own, "sq"), kg_size(own, "sq") > 1 ? 33 : 0));
    assert_true(kg_size(p, "sq") != kg_size(own, "sq") || kg_size(p, "s") != kg_size(own, "s"));
    assert_int_equal(kg_size(p, "h") * kg_size(own, "kv_heads"),
                     kg_size(own, "h") * kg_size(p, "kv_heads"));
    assert_in_range(kg_size(p, "b"), 1, kg_size(own, "b"));
    assert_in_range(kg_size(p, "kv_heads"), 1, kg_size(own, "kv_heads"));
    assert_true(kg_size(p, "b") == 1 ||
                kg_size(p, "kv_heads") == kg_size(own, "kv_heads")); /* batches go first */
    assert_true(kg_size(p, "d") == kg_size(own, "d") &&
                kg_param(p, "scale") == kg_param(own, "scale"));
    assert_true(reference_flops(p) <= FLOPS ||
                (kg_size(p, "b") == 1 && kg_size(p, "kv_heads") == 1));
}

/* M and N are never cut; K is, where it must be, and keeps its tail. */
static void check_product(const struct kg_problem *own, const struct kg_problem *p)
{
    assert_true(is_within(kg_size(p, "m"), kg_size(own, "m"), 1));
    assert_true(kg_is_op(own, "gemv") ? kg_size(p, "n") == kg_size(own, "n")
                                      : is_within(kg_size(p, "n"), kg_size(own, "n"), 8));
    if (is_within(kg_size(p, "k"), kg_size(own, "k"), 8))
        return;
    int64_t tail = (kg_size(p, "k") - kg_size(own, "k")) % SHAPES_K_LEAST;
    assert_true(kg_size(p, "k") >= SHAPES_K_LEAST && kg_size(p, "k") < kg_size(own, "k"));
    assert_true(is_within(SHAPES_K_LEAST + tail, SHAPES_K_LEAST, 8) ||
                is_within(2 * SHAPES_K_LEAST + tail, SHAPES_K_LEAST, 8));
    struct kg_problem own_k = *p;
    *op_named(&own_k, "k") = kg_size(own, "k") - 8;
    assert_true(reference_flops(&own_k) > FLOPS);
    assert_true(kg_size(p, "k") < 2 * SHAPES_K_LEAST || reference_flops(p) < 1.5 * FLOPS);
}

static void check_neighbours(const struct kg_problem *own)
{
    struct kg_problem near[SHAPES_OWN_SIZE_MAX];
    unsigned n = shapes_of_own_size(own, FLOPS, near);
    assert_in_range(n, 1, SHAPES_OWN_SIZE_MAX);
    for (unsigned i = 0; i < n; i++) {
        assert_true(op_is_problem(&near[i]));
        assert_true(near[i].op == own->op && kg_dtype(&near[i]) == kg_dtype(own) &&
                    near[i].flags == own->flags);
        if (kg_is_op(own, "attention_fwd"))
            check_attention(own, &near[i]);
        else
            check_product(own, &near[i]);
    }
}

static struct suite canonical(void)
{
    struct suite suite;
    assert_int_equal(suite_load("kernels/suites/canonical.json", &suite, NULL), GATE_OK);
    return suite;
}

TEST(they_are_as_large_as_the_problem)
{
    struct suite suite = canonical();
    for (size_t i = 0; i < suite.n_cases; i++)
        check_neighbours(&suite.cases[i].problem);
    suite_free(&suite);
}

TEST(odd_problems_have_some_too)
{
    const struct kg_problem problems[] = {
        gemm_like("gemm", KG_F16, 300, 8192, 1 << 20),
        gemm_like("gemv", KG_F32, 1, 0, 1),
        gemm_like("gemm", KG_F32, 1, 1, 1),
        gemm_like("linear_relu_bwd", KG_BF16, 1 << 18, 5, 1 << 18),
        attention(KG_F16, KG_FLAG_CAUSAL, 32, 8, 1, 131072, 128),
        attention(KG_BF16, 0, 3, 3, 77, 7, 64),
        attention(KG_BF16, 0, 1, 1, 1, 1, 64),
        gemm_like("gemm", KG_F16, OP_SIZE_MAX, 1, 5), /* none may be larger */
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        check_neighbours(&problems[i]);
}

/* What a kernel of large problems forgets shows in the commit tier: a tail in every dimension. */
TEST(the_first_ones_have_tails)
{
    struct suite suite = canonical();
    for (size_t i = 0; i < suite.n_cases; i++) {
        const struct kg_problem *own = &suite.cases[i].problem;
        struct kg_problem near[SHAPES_OWN_SIZE_MAX];
        shapes_of_own_size(own, FLOPS, near);
        bool attention = kg_is_op(own, "attention_fwd");
        for (unsigned j = 0; j < SHAPES_OWN_SIZE_COMMIT; j++)
            assert_int_not_equal((attention ? kg_size(&near[j], "s") : kg_size(&near[j], "k")) % 16,
                                 0);
        assert_true(attention || (kg_size(&near[0], "m") % 8 && kg_size(&near[2], "m") % 8 == 0));
        assert_true(!attention || kg_size(&near[1], "sq") != kg_size(&near[1], "s"));
    }
    suite_free(&suite);
}

/* Kernels that load whole 16 bytes of a row, or hold all keys of a head, find one for them. */
TEST(one_of_the_first_keeps_what_fast_kernels_ask)
{
    struct suite suite = canonical();
    for (size_t i = 0; i < suite.n_cases; i++) {
        const struct kg_problem *own = &suite.cases[i].problem;
        struct kg_problem near[SHAPES_OWN_SIZE_MAX];
        shapes_of_own_size(own, FLOPS, near);
        if (kg_is_op(own, "attention_fwd"))
            assert_true(kg_size(&near[1], "sq") == kg_size(own, "sq") &&
                        kg_size(&near[1], "s") < kg_size(own, "s"));
        else
            assert_true(kg_size(&near[1], "m") > kg_size(own, "m") &&
                        kg_size(&near[1], "n") % 8 == kg_size(own, "n") % 8 &&
                        kg_size(&near[1], "k") % 8 == 0);
    }
    suite_free(&suite);
}

/* Groups share the rows: fewer groups are no less work. */
TEST(groups_that_save_nothing_are_kept)
{
    struct kg_problem near[SHAPES_OWN_SIZE_MAX],
        p = gemm_like("grouped_gemm", KG_F16, 4096, 64, 64);
    *op_named(&p, "g") = 8;
    *op_named(&p, "n") = *op_named(&p, "k") = 4096;
    const unsigned n = shapes_of_own_size(&p, FLOPS, near);
    for (unsigned i = 0; i < n; i++)
        assert_true(kg_size(&near[i], "g") == 8 && kg_size(&near[i], "k") < 4096);
    assert_true(n > 0);
}

/* Under a second at 10 TFLOP/s in fp64. */
TEST(the_canonical_suite_pays_little)
{
    struct suite suite = canonical();
    double flops = 0;
    for (size_t i = 0; i < suite.n_cases; i++) {
        struct kg_problem near[SHAPES_OWN_SIZE_MAX];
        shapes_of_own_size(&suite.cases[i].problem, FLOPS, near);
        for (unsigned j = 0; j < SHAPES_OWN_SIZE_COMMIT; j++)
            flops += reference_flops(&near[j]);
    }
    suite_free(&suite);
    assert_true(flops > 0 && flops < 9e12);
}

TEST(neighbours_are_problems)
{
    const struct kg_problem problems[] = {
        gemm_like("gemm", KG_F16, 4096, 8192, 1 << 20),
        gemm_like("gemv", KG_F32, 1, 0, 1),
        gemm_like("linear_relu_bwd", KG_BF16, 3, 5, 7),
        attention(KG_F16, KG_FLAG_CAUSAL, 32, 8, 1, 131072, 128),
        attention(KG_BF16, 0, 3, 3, 77, 7, 64),
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        struct kg_problem few[SHAPES_MAX], many[SHAPES_MAX];
        unsigned n_few = shapes_designed(&problems[i], 0, 5, (struct shapes_plan){9, 0, 0, 0}, few);
        unsigned n_many =
            shapes_designed(&problems[i], 0, 5, (struct shapes_plan){9, 90, 0, 0}, many);
        const struct shapes_cover less = shapes_cover(&problems[i], 0, few, n_few),
                                  more = shapes_cover(&problems[i], 0, many, n_many);
        assert_in_range(n_few, 10, n_many - 20);
        assert_memory_equal(few, many, n_few * sizeof few[0]);
        assert_true(more.of == less.of && more.pairs <= more.of && less.pairs < more.pairs);
        for (unsigned j = 0; j < n_many; j++) {
            assert_true(op_is_problem(&many[j]));
            assert_int_equal(kg_size(&many[j], "d"), kg_size(&problems[i], "d"));
            assert_int_equal((many[j].flags ^ problems[i].flags) & ~KG_FLAG_CAUSAL, 0);
            assert_true(image_size(&many[j]) < (size_t)64 << 20);
        }
    }
}

/* Other seeds have other shapes, but for the fixed ones; 100 of them meet most classes. */
TEST(drawn_shapes_follow_the_seed)
{
    const struct kg_problem p = gemm_like("gemm", KG_F16, 96, 80, 72);
    struct kg_problem one[SHAPES_MAX], other[SHAPES_MAX];
    const struct shapes_plan plan = {20, 80, 0, 0};
    unsigned n = shapes_designed(&p, 0, 1, plan, one), same = 0;
    assert_int_equal(shapes_designed(&p, 0, 2, plan, other), n);
    while (same < n && !memcmp(&one[same], &other[same], sizeof one[0]))
        same++;
    assert_in_range(same, n - plan.drawn, n - plan.drawn + 1);
    const struct shapes_cover cover = shapes_cover(&p, 0, other, n);
    assert_true(cover.pairs > cover.of / 2);
}

/* Fixed ones in other dtypes change none of the problem's own, nor do they follow the seed. */
TEST(shapes_in_other_dtypes)
{
    const struct kg_problem own = gemm_like("gemm", KG_F16, 96, 80, 72);
    const unsigned others = 1u << 1 | 1u << 3; /* bf16, tf32 */
    const struct shapes_plan plan = {9, 8, 1, 2};
    struct kg_problem without[SHAPES_MAX], one[SHAPES_MAX], other[SHAPES_MAX];
    unsigned n = shapes_designed(&own, 0, 5, plan, without), fixed = n - plan.drawn;
    assert_int_equal(shapes_designed(&own, others, 5, plan, one), n + 6);
    const struct shapes_cover less = shapes_cover(&own, 0, without, n),
                              more = shapes_cover(&own, others, one, n + 6);
    assert_memory_equal(one, without, fixed * sizeof one[0]);
    for (unsigned i = 0; i < n + 6; i++) {
        bool is_other = i >= n + 2 || (i >= fixed && i < fixed + 2);
        assert_int_equal(problem_dtype_index(&one[i]), is_other ? ((i - fixed) % 2 ? 3 : 1) : 0);
    }
    assert_true(more.of > less.of && more.pairs > less.pairs);
    shapes_designed(&own, others, 6, plan, other);
    assert_memory_equal(one, other, (fixed + 2) * sizeof one[0]);
    assert_memory_not_equal(&one[n + 2], &other[n + 2], 4 * sizeof one[0]);
}

/* In every run, whatever the seed: a scale of zero is no scale that is missing. */
TEST(one_attention_has_a_scale_of_zero)
{
    const struct kg_problem own = attention(KG_F16, KG_FLAG_CAUSAL, 4, 2, 65, 129, 64);
    struct kg_problem shapes[SHAPES_MAX];
    unsigned n = shapes_designed(&own, 0, 5, (struct shapes_plan){2, 2, 0, 0}, shapes), zeros = 0;
    for (unsigned i = 0; i < n; i++)
        zeros += kg_param(&shapes[i], "scale") == 0;
    assert_int_equal(zeros, 1);
}

#define ONE_HAS(condition)                                                                         \
    do {                                                                                           \
        unsigned found = 0;                                                                        \
        for (unsigned i = 0; i < n; i++) {                                                         \
            const struct kg_problem *p = &shapes[i];                                               \
            found += (condition);                                                                  \
        }                                                                                          \
        if (!found)                                                                                \
            fail_msg("no shape with %s", #condition);                                              \
    } while (0)

/* In every run: what kernels have paths of their own for. */
TEST(products_have_rare_shapes)
{
    const struct kg_problem own = gemm_like("gemm", KG_F16, 96, 80, 72);
    static const int64_t sums[] = {16,  32,  48,  64,  128, 160, 192,
                                   256, 320, 384, 512, 640, 768, 1024};
    struct kg_problem shapes[SHAPES_MAX];
    unsigned n = shapes_designed(&own, 0, 5, (struct shapes_plan){0, 0, 0, 0}, shapes);
    for (size_t k = 0; k < sizeof sums / sizeof sums[0]; k++)
        ONE_HAS(kg_size(p, "k") == sums[k]);
    ONE_HAS(kg_size(p, "m") > 4096);
    ONE_HAS(kg_size(p, "n") > 4096);
    ONE_HAS(kg_size(p, "n") == 1 && kg_size(p, "m") > 1);
    ONE_HAS(kg_size(p, "m") / 64 == 1 && kg_size(p, "n") / 64 == 1 && kg_size(p, "m") % 64 % 8 &&
            kg_size(p, "n") % 64 % 8);
}

TEST(attention_has_rare_shapes)
{
    const struct kg_problem own = attention(KG_F16, KG_FLAG_CAUSAL, 4, 2, 65, 129, 64);
    struct kg_problem shapes[SHAPES_MAX];
    unsigned n = shapes_designed(&own, 0, 5, (struct shapes_plan){0, 0, 0, 0}, shapes);
    ONE_HAS(kg_size(p, "b") >= 4);
    ONE_HAS(kg_size(p, "b") >= 4 && kg_size(p, "sq") == 1);
    ONE_HAS(kg_size(p, "kv_heads") == 4);
    ONE_HAS(kg_size(p, "kv_heads") == 8);
    ONE_HAS(kg_size(p, "h") / kg_size(p, "kv_heads") == 24);
    ONE_HAS(kg_size(p, "s") > 2048);
    ONE_HAS(kg_size(p, "s") > 128 && kg_size(p, "s") % 128 == 127);
    ONE_HAS(kg_size(p, "sq") > 1024);
    ONE_HAS(kg_size(p, "sq") == kg_size(p, "s") + 1);
    ONE_HAS(kg_size(p, "sq") - kg_size(p, "s") == 64);
    ONE_HAS(kg_size(p, "s") - kg_size(p, "sq") == 63);
    ONE_HAS(kg_param(p, "scale") == 1);
    ONE_HAS(kg_param(p, "scale") == 2);
}

TEST(other_head_dims_are_problems)
{
    const struct kg_problem own = attention(KG_F16, KG_FLAG_CAUSAL, 4, 2, 65, 129, 64);
    int64_t tails = 0;
    for (unsigned i = 0; i < shapes_values(&own); i++) {
        const struct kg_problem one = shapes_value(&own, i, 5), same = shapes_value(&own, i, 5);
        assert_true(op_is_problem(&one) && image_size(&one) < (size_t)4 << 20);
        assert_memory_equal(&one, &same, sizeof one);
        assert_true(kg_size(&one, "s") >= 16); /* else scores hardly matter */
        assert_true(fabs(kg_param(&one, "scale")) * sqrt((double)kg_size(&one, "d")) < 5);
        tails += kg_size(&one, "d") % 16 != 0;
    }
    assert_in_range(tails, 2, shapes_values(&own));
}

TEST(a_wide_one_has_more_tiles_than_processors)
{
    const struct kg_problem own[] = {gemm_like("gemm", KG_F16, 96, 80, 72),
                                     attention(KG_F16, KG_FLAG_CAUSAL, 4, 2, 65, 129, 64)};
    struct kg_problem out[SHAPES_WIDE_MAX];
    for (int64_t processors = 1; processors < 300; processors += 7) {
        assert_int_equal(shapes_wide(&own[0], processors, true, out), 2);
        assert_int_equal(kg_size(&out[1], "m") * kg_size(&out[1], "n"), processors * 128 * 128);
        assert_true(((kg_size(&out[0], "m") + 127) / 128) * ((kg_size(&out[0], "n") + 127) / 128) >
                        processors ||
                    processors == 1);
        assert_true(op_is_problem(&out[0]) && kg_size(&out[0], "k") == 320);
        assert_int_equal(shapes_wide(&own[1], processors, true, out), 4);
        assert_int_equal(kg_size(&out[1], "h"), processors);
        assert_int_equal(shapes_wide(&own[1], processors, false, out), 2);
        assert_true(kg_size(&out[0], "h") > processors || processors == 1);
        assert_true(kg_size(&out[1], "sq") > kg_size(&out[1], "s") && kg_size(&out[1], "s") > 256);
    }
}
