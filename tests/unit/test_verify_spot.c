/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_spot.c: a device whose reference is not the CPU's is found out, on every op. */
#include <stdlib.h>
#include <string.h>

#include "gate/verify/verify_reference.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

/* A problem with its inputs and reference, on the host device. */
struct referred {
    struct device *device;
    struct suite_case c;
    struct device_memory memory;
    struct operands o;
    struct reference r;
};

static struct referred refer(const struct kg_problem *p)
{
    struct referred x = {.c = {.problem = *p}};
    assert_int_equal(device_open("host", &x.device, NULL), GATE_OK);
    assert_int_equal(device_alloc(x.device, operands_bytes(p, operands_gaps), &x.memory, NULL),
                     GATE_OK);
    x.o = operands_at(x.device, p, x.memory.data, operands_gaps);
    assert_int_equal(operands_fill(x.device, &x.c, &x.o, 1, NULL), GATE_OK);
    assert_int_equal(reference_reserve(x.device, x.o.out, x.o.args.n_out, &x.r, NULL), GATE_OK);
    assert_int_equal(reference_compute(x.device, p, x.o.args.in, &x.r, NULL), GATE_OK);
    return x;
}

static void release(struct referred *x)
{
    device_free(x->device, &x->r.memory);
    device_free(x->device, &x->memory);
    device_close(x->device);
}

static enum gate_status check(struct referred *x, uint64_t seed, struct gate_error *err)
{
    return spot_check(x->device, &x->c.problem, &x->o, &x->r, seed, err);
}

static void assert_agrees(const struct kg_problem *p)
{
    struct gate_error err = {0};
    struct referred x = refer(p);
    for (uint64_t seed = 0; seed < 20; seed++)
        if (check(&x, seed, &err))
            fail_msg("%s", err.message);
    release(&x);
}

/* One element of output `out` is off by a millionth. */
static void assert_is_found(const struct kg_problem *p, uint32_t out, int64_t at)
{
    struct gate_error err = {0};
    struct referred x = refer(p);
    double *value = x.r.out[out] + at;
    *value += 1e-6 * (1 + (*value > 0 ? *value : -*value));
    assert_int_equal(check(&x, 3, &err), GATE_INTERNAL);
    assert_non_null(strstr(err.message, "this device cannot verify"));
    assert_non_null(strstr(err.message, x.o.out[out].name));
    release(&x);
}

static const char *const products[] = {"gemm", "gemv", "linear_relu", "linear_relu_bwd",
                                       "grouped_gemm"};
#define PRODUCTS (sizeof products / sizeof products[0])

TEST(products_agree)
{
    static const int64_t sizes[][3] = {{37, 29, 23}, {5, 3, 7}, {1, 1, 1}, {3, 64, 2}, {70, 1, 9}};
    for (size_t i = 0; i < PRODUCTS; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            struct kg_problem p =
                gemm_like(products[i], KG_F16, sizes[j][0], sizes[j][1], sizes[j][2]);
            assert_agrees(&p);
        }
}

/* Bands lie in one block each, whose scales come with them. */
TEST(blocks_agree)
{
    static const char *const ops[] = {"gemm_fp8", "gemm_fp8_block"};
    static const int64_t sizes[][3] = {{130, 258, 300}, {3, 129, 127}, {1, 1, 1}};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            struct kg_problem p = gemm_like(ops[i], KG_E4M3, sizes[j][0], sizes[j][1], sizes[j][2]);
            assert_agrees(&p);
            assert_is_found(&p, 0, 0);
            assert_is_found(&p, 0, sizes[j][0] * sizes[j][1] - 1);
        }
}

/* Whatever the seed is; a wrong tail is what a reference would have first. */
TEST(the_ends_of_a_product_are_looked_at)
{
    for (size_t i = 0; i < PRODUCTS; i++) {
        struct kg_problem p = gemm_like(products[i], KG_F32, 37, 29, 23);
        struct problem_tensor t[PROBLEM_MAX_TENSORS];
        unsigned n = problem_tensors(&p, t), out = 0;
        for (unsigned j = 0; j < n; j++)
            if (t[j].is_output) {
                assert_is_found(&p, out, 0);
                assert_is_found(&p, out++, problem_tensor_elements(&t[j]) - 1);
            }
    }
}

/* Two batches of six heads, which share two KV heads. */
static struct kg_problem heads(uint32_t flags, int64_t seqlen_q)
{
    struct kg_problem p = attention(KG_F16, flags, 6, 2, seqlen_q, 33, 16);
    *op_named(&p, "b") = 2;
    return p;
}

TEST(heads_agree)
{
    struct kg_problem full = heads(0, 19), causal = heads(KG_FLAG_CAUSAL, 33);
    assert_agrees(&full);
    assert_agrees(&causal);
}

/* The heads of each batch have inputs of their own, and queries share those of their keys. */
static unsigned seeds_that_find(int64_t head)
{
    struct kg_problem p = heads(0, 1);
    struct gate_error err = {0};
    struct referred x = refer(&p);
    unsigned found = 0;
    double *out = x.r.out[0];
    for (int64_t i = 0; i < kg_size(&p, "d"); i++)
        out[head * kg_size(&p, "d") + i] += 1;
    for (uint64_t seed = 0; seed < 200; seed++)
        found += check(&x, seed, &err) == GATE_INTERNAL;
    release(&x);
    return found;
}

/* The pages of a head, dense and behind each other, come in one piece. */
TEST(pages_agree)
{
    static const char *const names[] = {"b", "kv_heads", "h", "sq", "t", "blocks", "page", "d"};
    static const int64_t sizes[][8] = {
        {3, 2, 4, 1, 4, 13, 16, 8}, {2, 1, 3, 5, 2, 7, 4, 24}, {1, 1, 1, 1, 1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct kg_problem p = op_problem(op_by_name("attention_paged"), KG_F16, 0);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            *op_named(&p, names[k]) = sizes[i][k];
        *op_param_named(&p, "scale") = 0.5;
        assert_agrees(&p);
        assert_is_found(&p, 0, 0);
    }
}

/* Whatever the seed is. */
TEST(a_wrong_head_at_an_end_is_always_found)
{
    assert_int_equal(seeds_that_find(0), 200);
    assert_int_equal(seeds_that_find(11), 200);
}

/* In turn, by the seed: one head of twelve. */
TEST(a_wrong_head_between_is_found)
{
    for (int64_t head = 1; head < 11; head++)
        assert_in_range(seeds_that_find(head), 5, 40);
}

TEST(the_ends_of_the_end_heads_are_looked_at)
{
    struct kg_problem p = heads(KG_FLAG_CAUSAL, 33);
    int64_t elements = kg_size(&p, "sq") * kg_size(&p, "d"),
            all = kg_size(&p, "b") * kg_size(&p, "h") * elements;
    assert_is_found(&p, 0, 0);
    assert_is_found(&p, 0, elements - 1);
    assert_is_found(&p, 0, all - elements);
    assert_is_found(&p, 0, all - 1);
}

static size_t brought; /* bytes */

static enum gate_status bring(struct device *, void *to, const void *from, size_t row_bytes,
                              size_t stride_bytes, size_t rows, struct gate_error *)
{
    for (size_t r = 0; r < rows; r++)
        memcpy((char *)to + r * row_bytes, (const char *)from + r * stride_bytes, row_bytes);
    brought += row_bytes * rows;
    return GATE_OK;
}

/* Nor is an axis brought whole that an output has nothing to do with. */
TEST(all_places_together_take_less_than_one_input)
{
    struct kg_problem p = gemm_like("linear_relu_bwd", KG_F32, 512, 512, 512);
    struct gate_error err = {0};
    struct referred x = refer(&p);
    struct device_backend counting = *x.device->backend;
    counting.download_rows = bring;
    x.device->backend = &counting;
    brought = 0;
    assert_int_equal(check(&x, 1, &err), GATE_OK);
    assert_in_range(brought, 1, problem_tensor_bytes(&x.o.in[0]) - 1);
    release(&x);
}
