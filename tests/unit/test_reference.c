/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reference.c: the fp64 reference against answers worked out by hand, and its two paths
 * (whole outputs, single elements) against each other.
 */
#include "kernels/ops/rows.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

enum { MAX_OUT = 129 };

/* Runs `p` on inputs given as lists of values and compares every output, by both paths. */
static void check(const struct kg_problem *p, const float *const *values,
                  const double *const *expected)
{
    struct kg_tensor in[KG_MAX_TENSORS];
    double memory[KG_MAX_TENSORS][MAX_OUT];
    double *out[KG_MAX_TENSORS];
    int64_t n[KG_MAX_TENSORS];

    assert_true(op_is_problem(p));
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = tensor_new(p, i, LAYOUT_DENSE, 0);
        tensor_fill(&in[i], values[i]);
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        const struct kg_shape shape = op_shape_of(p, p->n_in + i);
        n[i] = kg_shape_elements(&shape);
        assert_true(n[i] <= MAX_OUT);
        memset(memory[i], 0xff, sizeof(memory[i]));
        out[i] = memory[i];
    }
    assert_int_equal(rows_reference(p, in, out, 1), KG_OK);
    for (uint32_t i = 0; i < p->n_out; i++)
        for (int64_t j = 0; j < n[i]; j++) {
            assert_true(fabs(out[i][j] - expected[i][j]) < 1e-14);
            assert_true(fabs(op_of(p)->element(p, in, i, j) - expected[i][j]) < 1e-14);
        }
    for (uint32_t i = 0; i < p->n_in; i++)
        free(in[i].data);
}

#define VALUES(...) ((const float[]){__VA_ARGS__})
#define EXPECTED(...) ((const double[]){__VA_ARGS__})
#define LIST(type, ...) ((const type *const[]){__VA_ARGS__})

static const enum kg_dtype dtypes[] = {KG_F16, KG_BF16, KG_F32};

TEST(smoke_matmul)
{
    const float *a = VALUES(1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1);
    for (size_t i = 0; i < 3; i++) {
        struct kg_problem gemm = gemm_like("gemm", dtypes[i], 4, 1, 3);
        struct kg_problem gemv = gemm_like("gemv", dtypes[i], 4, 0, 3);
        check(&gemm, LIST(float, a, VALUES(1, 2, 3)), LIST(double, EXPECTED(1, 2, 3, 6)));
        check(&gemv, LIST(float, a, VALUES(1, 2, 3)), LIST(double, EXPECTED(1, 2, 3, 6)));
    }
}

TEST(batched_gemm)
{
    for (size_t i = 0; i < 3; i++) {
        struct kg_problem p = gemm_like("batched_gemm", dtypes[i], 1, 2, 2);
        *op_named(&p, "b") = 2;
        check(&p, LIST(float, VALUES(1, 2, 3, 4), VALUES(1, 0, 0, 1, 1, 1, 1, -1)),
              LIST(double, EXPECTED(1, 2, 7, -1)));
    }
}

/* The group in the middle has no row. */
TEST(grouped_gemm)
{
    for (size_t i = 0; i < 3; i++) {
        struct kg_problem p = gemm_like("grouped_gemm", dtypes[i], 3, 2, 2);
        *op_named(&p, "g") = 3;
        check(&p,
              LIST(float, VALUES(1, 2, 3, 4, 5, 6),
                   VALUES(1, 0, 0, 1, NAN, NAN, NAN, NAN, 1, 1, 1, -1), VALUES(0, 1, 1, 3)),
              LIST(double, EXPECTED(1, 2, 7, -1, 11, -1)));
    }
}

TEST(gemm_fp8)
{
    struct kg_problem p = gemm_like("gemm_fp8", KG_E4M3, 2, 1, 3);
    check(&p,
          LIST(float, VALUES(0, 0, 0x1p-9f, 448, 1, -0.0f), VALUES(1, 2, -1), VALUES(3),
               VALUES(0x1p40f)),
          LIST(double, EXPECTED(-0x1.8p32, 0x1.518p50)));
}

/* Ones but for the ends: a sum of 128 and one of 2, with the scales of their blocks. */
TEST(gemm_fp8_block)
{
    enum { K_SIZE = 130, N_SIZE = 129 };
    struct kg_problem p = gemm_like("gemm_fp8_block", KG_E4M3, 1, N_SIZE, K_SIZE);
    float ones[N_SIZE * K_SIZE];
    double expected[N_SIZE];
    for (int i = 0; i < N_SIZE * K_SIZE; i++)
        ones[i] = 1;
    for (int j = 0; j < N_SIZE; j++)
        expected[j] = j < 128 ? 128 * 3 * 5 + 2 * 0.25 * 7 : 128 * 3 * 11 + 2 * 0.25 * 13;
    check(&p, LIST(float, ones, ones, VALUES(3, 0.25f), VALUES(5, 7, 11, 13)),
          LIST(double, expected));
}

/* The mean of the squares of 3 and 4 is 12.5, of which eps makes 16. */
TEST(rmsnorm)
{
    for (size_t i = 0; i < 3; i++) {
        struct kg_problem p = gemm_like("rmsnorm", dtypes[i], 2, 2, 0);
        *op_param_named(&p, "eps") = 3.5;
        check(&p, LIST(float, VALUES(3, 4, -4, 3), VALUES(1, 2)),
              LIST(double, EXPECTED(0.75, 2, -1, 1.5)));
    }
}

/* Both keys have a score of 2, which is L: weights of 1. The gradients of the scores are 2 (1 -
 * 1/2) and 2 (2 - 1/2), less by 1 than those of V; the second query sees both keys, the first one
 * the first. */
TEST(attention_bwd)
{
    for (size_t i = 0; i < 3; i++) {
        struct kg_problem p = attention(dtypes[i], KG_FLAG_CAUSAL, 1, 1, 2, 2, 1);
        p = attention_backward(&p);
        *op_param_named(&p, "scale") = 2;
        check(&p,
              LIST(float, VALUES(1, 1), VALUES(1, 1), VALUES(1, 2), VALUES(0.5f, 0.5f),
                   VALUES(2, 2), VALUES(2, 2)),
              LIST(double, EXPECTED(2, 8), EXPECTED(4, 6), EXPECTED(4, 2)));
    }
}

TEST(gemm)
{
    struct kg_problem p = gemm_like("gemm", KG_F16, 2, 3, 2);
    check(&p, LIST(float, VALUES(1, 2, 3, 4), VALUES(5, 6, 7, 8, 9, 10)),
          LIST(double, EXPECTED(21, 24, 27, 47, 54, 61)));
}

/* TF32 changes how a kernel may round its inputs, not what the answer is. */
TEST(tf32_is_exact)
{
    struct kg_problem p = gemm_like("gemm", KG_F32, 1, 1, 1);
    p.flags = KG_FLAG_TF32;
    check(&p, LIST(float, VALUES(0x1.000002p0f), VALUES(1)), LIST(double, EXPECTED(0x1.000002p0)));
}

TEST(linear_relu)
{
    struct kg_problem p = gemm_like("linear_relu", KG_BF16, 2, 3, 2);
    check(&p, LIST(float, VALUES(1, 2, -1, 0.5f), VALUES(1, 1, -3, 1, 0, -2), VALUES(0.5f, 0, 4)),
          LIST(double, EXPECTED(3.5, 0, 0, 0, 3.5, 3)));
}

TEST(linear_relu_keeps_nan)
{
    struct kg_problem p = gemm_like("linear_relu", KG_F32, 1, 1, 1);
    struct kg_tensor in[3];
    double y = 0.0;

    assert_true(op_is_problem(&p));
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = tensor_new(&p, i, LAYOUT_DENSE, 0);
        tensor_set(&in[i], 0, NAN);
    }
    assert_int_equal(rows_reference(&p, in, &(double *){&y}, 1), KG_OK);
    assert_true(isnan(y));
    for (uint32_t i = 0; i < 3; i++)
        free(in[i].data);
}

TEST(linear_relu_bwd)
{
    struct kg_problem p = gemm_like("linear_relu_bwd", KG_F32, 2, 2, 3);
    /* Y is 0 and positive in the first row, so G = [0 2; 3 4]. */
    check(&p,
          LIST(float, VALUES(1, 2, 3, 4), VALUES(1, 2, 3, 4, 5, 6), VALUES(1, 0, -1, 2, 1, 0),
               VALUES(0, 1, 5, 0.25f)),
          LIST(double, EXPECTED(4, 2, 0, 11, 4, -3), EXPECTED(12, 15, 18, 18, 24, 30),
               EXPECTED(3, 6)));
}

/* Scores 0 and ln 3 weigh 1/4 and 3/4. */
TEST(attention_softmax)
{
    struct kg_problem p = attention(KG_F16, 0, 1, 1, 1, 2, 1);
    *op_param_named(&p, "scale") = log(3.0);
    check(&p, LIST(float, VALUES(1), VALUES(0, 1), VALUES(4, 8)), LIST(double, EXPECTED(7)));
}

TEST(attention_large_scores)
{
    struct kg_problem p = attention(KG_F32, 0, 1, 1, 1, 2, 1);
    *op_param_named(&p, "scale") = 1.0;
    check(&p, LIST(float, VALUES(1000), VALUES(100, 1), VALUES(5, 8)), LIST(double, EXPECTED(5)));
}

/* With Q = 0 a row is the mean of the V rows that it sees. */
TEST(causal_more_keys)
{
    struct kg_problem p = attention(KG_F32, KG_FLAG_CAUSAL, 1, 1, 2, 4, 1);
    check(&p, LIST(float, VALUES(0, 0), VALUES(1, 2, 3, 4), VALUES(3, 6, 9, 30)),
          LIST(double, EXPECTED(6, 12)));
}

/* Four queries on two keys: the first two see none and are zero. */
TEST(causal_more_queries)
{
    struct kg_problem p = attention(KG_F32, KG_FLAG_CAUSAL, 1, 1, 4, 2, 1);
    check(&p, LIST(float, VALUES(0, 0, 0, 0), VALUES(1, 2), VALUES(3, 5)),
          LIST(double, EXPECTED(0, 0, 3, 4)));
}

TEST(full_sees_all_keys)
{
    struct kg_problem p = attention(KG_F32, 0, 1, 1, 4, 2, 1);
    check(&p, LIST(float, VALUES(0, 0, 0, 0), VALUES(1, 2), VALUES(3, 5)),
          LIST(double, EXPECTED(4, 4, 4, 4)));
}

/* Query heads 0 and 1 read KV head 0, heads 2 and 3 read KV head 1. */
TEST(grouped_heads)
{
    struct kg_problem p = attention(KG_F16, 0, 4, 2, 1, 1, 2);
    check(&p,
          LIST(float, VALUES(1, 2, 3, 4, 5, 6, 7, 8), VALUES(1, 1, 2, 2), VALUES(10, 11, 20, 21)),
          LIST(double, EXPECTED(10, 11, 10, 11, 20, 21, 20, 21)));
}

TEST(batches)
{
    struct kg_problem p = attention(KG_F16, 0, 2, 2, 1, 1, 1);
    *op_named(&p, "b") = 2;
    check(&p, LIST(float, VALUES(1, 1, 1, 1), VALUES(1, 1, 1, 1), VALUES(1, 2, 3, 4)),
          LIST(double, EXPECTED(1, 2, 3, 4)));
}

/* Both paths on random inputs in every layout, and the threads' split of the first. */
static void check_paths_agree(const struct kg_problem *p, enum layout layout)
{
    struct kg_tensor in[KG_MAX_TENSORS];
    double *out[KG_MAX_TENSORS], *again[KG_MAX_TENSORS];
    uint64_t random = 42;

    assert_true(op_is_problem(p));
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = tensor_new(p, i, layout, 0xff);
        tensor_fill_normal(&in[i], &random);
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        out[i] = doubles_for(p, p->n_in + i);
        again[i] = doubles_for(p, p->n_in + i);
    }
    assert_int_equal(rows_reference(p, in, out, 1), KG_OK);
    assert_int_equal(rows_reference(p, in, again, 3), KG_OK);
    for (uint32_t i = 0; i < p->n_out; i++) {
        const struct kg_shape shape = op_shape_of(p, p->n_in + i);
        int64_t n = kg_shape_elements(&shape);
        assert_memory_equal(out[i], again[i], (size_t)n * sizeof(double));
        for (int64_t j = 0; j < n; j++)
            assert_true(fabs(out[i][j] - op_of(p)->element(p, in, i, j)) < 1e-12);
        free(out[i]);
        free(again[i]);
    }
    for (uint32_t i = 0; i < p->n_in; i++)
        free(in[i].data);
}

TEST(paths_agree)
{
    struct kg_problem problems[] = {
        gemm_like("gemm", KG_F16, 5, 7, 11),
        gemm_like("gemv", KG_BF16, 9, 0, 17),
        gemm_like("linear_relu", KG_F32, 6, 5, 13),
        gemm_like("linear_relu_bwd", KG_F16, 7, 3, 5),
        attention(KG_BF16, KG_FLAG_CAUSAL, 4, 2, 9, 6, 5),
        attention(KG_F16, KG_FLAG_CAUSAL, 3, 3, 4, 11, 8),
        attention(KG_F32, 0, 2, 1, 5, 7, 3),
        attention(KG_BF16, KG_FLAG_CAUSAL, 4, 2, 9, 6, 5),
        attention(KG_F32, 0, 2, 1, 5, 7, 3),
    };
    for (size_t i = 7; i < 9; i++)
        problems[i] = attention_backward(&problems[i]);
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
        for (int layout = 0; layout < N_LAYOUTS; layout++) {
            if (kg_param(&problems[i], "scale") != 0)
                *op_named(&problems[i], "b") = 2;
            check_paths_agree(&problems[i], (enum layout)layout);
        }
}

TEST(what_is_no_problem)
{
    struct kg_problem p;
#define BROKEN(problem, change)                                                                    \
    do {                                                                                           \
        p = (problem);                                                                             \
        assert_true(op_is_problem(&p));                                                            \
        change;                                                                                    \
        assert_false(op_is_problem(&p));                                                           \
    } while (0)
    const struct kg_problem product = gemm_like("gemm", KG_F32, 2, 2, 2);
    BROKEN(product, p.struct_bytes = 8);
    BROKEN(product, p.op = NULL);
    BROKEN(product, p.op = "gem");
    BROKEN(product, p.op = "gemv");
    BROKEN(product, p.n_sizes = 2);
    BROKEN(product, p.n_params = 1);
    BROKEN(product, p.n_in = 3);
    BROKEN(product, p.n_out = 2);
    BROKEN(product, p.dtype[0] = 99);
    BROKEN(product, p.dtype[2] = KG_F16);
    BROKEN(product, p.flags = KG_FLAG_CAUSAL);
    BROKEN(product, p.flags = 1u << 31);
    BROKEN(product, p.size[0].value = 0);
    BROKEN(product, p.size[2].value = -1);
    BROKEN(product, p.size[1].value = INT64_MAX);
    const struct kg_problem halves = attention(KG_F16, 0, 8, 2, 4, 4, 64);
    BROKEN(halves, *op_named(&p, "kv_heads") = 3);
    BROKEN(halves, *op_named(&p, "kv_heads") = 0);
    BROKEN(halves, p.flags = KG_FLAG_TF32);
    const struct kg_problem tf32 = attention(KG_F32, KG_FLAG_TF32 | KG_FLAG_CAUSAL, 8, 8, 4, 4, 64);
    BROKEN(tf32, *op_param_named(&p, "scale") = INFINITY);
    BROKEN(tf32, p = attention(KG_F32, 0, OP_SIZE_MAX, 1, OP_SIZE_MAX, 1, OP_SIZE_MAX));
}
