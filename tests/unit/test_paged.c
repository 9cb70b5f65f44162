/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_paged.c: attention of pages: its table and lengths, what a case counts as work, and its two
 * references, by hand and against each other.
 */
#include "gate/cases/problem.h"
#include "kernels/ops/rows.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

enum { TABLE = 3, LENGTHS = 4, INPUTS, SEEDS = 64 };

static struct kg_problem paged(uint32_t dtype, int64_t b, int64_t kv_heads, int64_t h, int64_t sq,
                               int64_t t, int64_t blocks, int64_t page, int64_t d)
{
    struct kg_problem p = op_problem(op_by_name("attention_paged"), dtype, 0);
    const struct kg_named_size sizes[] = {
        {"b", b}, {"kv_heads", kv_heads}, {"h", h},       {"sq", sq},
        {"t", t}, {"blocks", blocks},     {"page", page}, {"d", d}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        *op_named(&p, sizes[i].name) = sizes[i].value;
    *op_param_named(&p, "scale") = 1 / sqrt((double)d);
    assert_true(op_is_problem(&p));
    return p;
}

static void inputs_new(const struct kg_problem *p, enum layout layout, struct kg_tensor in[INPUTS])
{
    for (unsigned i = 0; i < INPUTS; i++)
        in[i] = tensor_new(p, i, layout, 0xff);
}

static void inputs_free(struct kg_tensor in[INPUTS])
{
    for (unsigned i = 0; i < INPUTS; i++)
        free(in[i].data);
}

/* Pages of two keys: keys 0 to 2 of the second sequence lie in block 3 and, of block 1, in its
 * first row. With Q = 0 a row is the mean of the values that it sees; of two queries at the end of
 * a key the first one sees none. */
TEST(by_hand)
{
    const float k[8] = {0}, v[] = {1, 2, 3, 900, 5, 900, 7, 9}, q[4] = {0}, table[] = {2, 0, 3, 1},
                lengths[] = {1, 3};
    const double expected[] = {0, 5, 8, 19 / 3.0};
    struct kg_problem p = paged(KG_F16, 2, 1, 1, 2, 2, 4, 2, 1);
    const float *const values[INPUTS] = {q, k, v, table, lengths};
    struct kg_tensor in[INPUTS];
    double o[4];
    inputs_new(&p, LAYOUT_DENSE, in);
    for (unsigned i = 0; i < INPUTS; i++)
        for (int64_t j = 0; j < pattern_elements(&in[i]); j++)
            tensor_set(&in[i], j, values[i][j]);
    assert_int_equal(rows_reference(&p, in, &(double *){o}, 1), KG_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(o[i] - expected[i]) < 1e-14);
        assert_true(fabs(op_of(&p)->element(&p, in, 0, i) - expected[i]) < 1e-14);
    }
    inputs_free(in);
}

/* On what the patterns draw, in every layout; and the threads' split of the first. */
TEST(paths_agree)
{
    const struct kg_problem problems[] = {paged(KG_F16, 3, 2, 4, 1, 3, 11, 16, 8),
                                          paged(KG_BF16, 2, 1, 3, 5, 4, 5, 16, 24),
                                          paged(KG_F32, 2, 2, 2, 70, 1, 2, 64, 40)};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        for (int layout = 0; layout < N_LAYOUTS; layout++) {
            const struct kg_problem *p = &problems[i];
            struct kg_tensor in[INPUTS];
            double *out = doubles_for(p, INPUTS), *again = doubles_for(p, INPUTS);
            const struct kg_shape shape = op_shape_of(p, INPUTS);
            const int64_t n = kg_shape_elements(&shape);
            inputs_new(p, (enum layout)layout, in);
            probe_fill(PROBE_NORMAL, p, in, 7 * i + (unsigned)layout);
            assert_int_equal(rows_reference(p, in, &out, 1), KG_OK);
            assert_int_equal(rows_reference(p, in, &again, 3), KG_OK);
            assert_memory_equal(out, again, (size_t)n * sizeof *out);
            for (int64_t j = 0; j < n; j++)
                assert_true(fabs(out[j] - op_of(p)->element(p, in, 0, j)) < 1e-12);
            free(out);
            free(again);
            inputs_free(in);
        }
}

/* Every block of a table exists; how many of them are named twice. */
static int64_t check_table(const struct kg_problem *p, const struct kg_tensor *table)
{
    const int64_t blocks = kg_size(p, "blocks");
    int64_t twice = 0;
    char used[64] = {0};
    for (int64_t i = 0; i < pattern_elements(table); i++) {
        const int64_t block = (int64_t)tensor_get(table, i);
        assert_true(block >= 0 && block < blocks && blocks <= (int64_t)sizeof used);
        twice += used[block]++ > 0;
    }
    return twice;
}

/* Those of verification: every special length is drawn, blocks are in any order, and often each for
 * one sequence. */
TEST(drawn_tables_and_lengths)
{
    const struct kg_problem p = paged(KG_F16, 3, 1, 1, 1, 4, 13, 16, 8);
    const int64_t special[] = {1, 15, 16, 17, 63, 64};
    int64_t met[6] = {0}, shared = 0, falling = 0;
    struct kg_tensor in[INPUTS];
    inputs_new(&p, LAYOUT_PADDED, in);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        probe_fill(PROBE_NORMAL, &p, in, seed);
        shared += check_table(&p, &in[TABLE]) > 0;
        falling += tensor_get(&in[TABLE], 1) < tensor_get(&in[TABLE], 0);
        for (int64_t i = 0; i < 3; i++) {
            const int64_t length = (int64_t)tensor_get(&in[LENGTHS], i);
            assert_true(length >= 1 && length <= 64);
            for (int k = 0; k < 6; k++)
                met[k] += length == special[k];
        }
    }
    for (int k = 0; k < 6; k++)
        assert_true(met[k] > 0);
    assert_true(shared > 0 && shared < SEEDS / 2);
    assert_true(falling > SEEDS / 4);
    inputs_free(in);
}

/* Those that are timed are the same whatever the seed, and say how much work there is. */
TEST(timed_tables_and_lengths)
{
    const struct kg_problem p = paged(KG_BF16, 3, 2, 4, 2, 4, 13, 16, 8);
    const struct op *op = op_of(&p);
    struct kg_tensor in[INPUTS], other[INPUTS];
    double pairs = 0, keys = 0;
    inputs_new(&p, LAYOUT_DENSE, in);
    inputs_new(&p, LAYOUT_DENSE, other);
    for (unsigned i = 0; i < INPUTS; i++) {
        assert_int_equal(op->fill(&p, i, NULL, 0, NULL, 0), i >= TABLE);
        if (i < TABLE)
            continue;
        const int64_t n = pattern_elements(&in[i]);
        assert_true(op->fill(&p, i, &in[i], n, "id", 1));
        assert_true(op->fill(&p, i, &other[i], n, "id", 2));
        assert_memory_equal(in[i].data, other[i].data, (size_t)n * 4);
    }
    assert_int_equal(check_table(&p, &in[TABLE]), 0);
    for (int64_t i = 0; i < 3; i++) {
        const double length = (double)tensor_get(&in[LENGTHS], i);
        assert_true(length >= 40 && length <= 64);
        keys += length;
        pairs += 2 * length - 1; /* two queries, the first of which does not see the last key */
    }
    assert_true(fabs(problem_flops(&p) - pairs * 4 * 4 * 8) < 0.5);
    /* K and V, Q and O, the table and the lengths. */
    assert_true(
        fabs(problem_moved(&p) - (keys * 2 * 8 * 2 * 2 + 3 * 2 * 4 * 8 * 2 * 2 + 3 * 5 * 4)) < 0.5);
    assert_true(problem_moved(&p) < problem_bytes(&p));
    inputs_free(in);
    inputs_free(other);
}

/* A change is one that shows. */
TEST(changes)
{
    const struct kg_problem p = paged(KG_F32, 2, 1, 2, 3, 3, 7, 16, 8);
    const int64_t n = 2 * 3 * 2 * 8;
    double before[96], after[96];
    struct kg_tensor in[INPUTS];
    inputs_new(&p, LAYOUT_PADDED, in);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        probe_fill(PROBE_NORMAL, &p, in, seed);
        assert_int_equal(rows_reference(&p, in, &(double *){before}, 1), KG_OK);
        probe_change(PROBE_NORMAL, &p, in, seed);
        assert_int_equal(rows_reference(&p, in, &(double *){after}, 1), KG_OK);
        assert_memory_not_equal(before, after, (size_t)n * sizeof *before);
    }
    inputs_free(in);
}

/* Of more queries than keys the first ones see none; blocks that sequences share are moved once. */
TEST(work_of_few_keys_and_shared_blocks)
{
    const struct kg_problem p = paged(KG_F32, 2, 1, 1, 5, 1, 1, 4, 8);
    struct kg_tensor lengths = tensor_new(&p, LENGTHS, LAYOUT_DENSE, 0xff);
    double pairs = 0;
    assert_true(op_of(&p)->fill(&p, LENGTHS, &lengths, 2, "id", 1));
    for (int64_t i = 0; i < 2; i++) {
        const double length = (double)tensor_get(&lengths, i);
        assert_true(length >= 3 && length <= 4);
        pairs += length * (length + 1) / 2;
    }
    assert_true(fabs(problem_flops(&p) - pairs * 4 * 8) < 0.5);
    assert_true(fabs(problem_moved(&p) - ((4 + 2 * 5) * 2 * 4 * 8 + 2 * 2 * 4)) < 0.5);
    free(lengths.data);
}
