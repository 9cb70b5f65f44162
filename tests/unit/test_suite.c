/* SPDX-License-Identifier: Apache-2.0 */
/* test_suite.c: suites and their problems: ids, work, and every way to get a file wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/cases/suite.h"
#include "tests/unit/quotes.h"
#include "tests/unit/unit.h"

static char path[4096];

static int make_path(void **)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/suite.json", folder ? folder : "/tmp");
    return 0;
}

/* Loads a suite with these cases; lines 1 and 2 of the file come before them. */
static enum gate_status load(const char *cases, struct suite *out, struct gate_error *err)
{
    char text[8192];
    int n = snprintf(text, sizeof text,
                     "{'schema': 'gate-suite/1', 'name': 't',\n 'cases': [\n%s]}\n", cases);
    assert_true(n > 0 && (size_t)n < sizeof text);
    write_text(path, double_quoted(text));
    return suite_load(path, out, err);
}

static void refuses(const char *cases, const char *where, const char *what)
{
    struct suite s = {0};
    struct gate_error err = {0};
    char expected[4200];
    assert_int_equal(load(cases, &s, &err), GATE_USAGE);
    snprintf(expected, sizeof expected, "%s:%s: ", path, where);
    if (strncmp(err.message, expected, strlen(expected)) != 0 || !strstr(err.message, what))
        fail_msg("expected '%s...%s', got '%s'", expected, what, err.message);
    assert_null(s.cases);
}

static void has_id(const char *one_case, const char *id, double flops, double bytes)
{
    struct suite s;
    struct gate_error err = {0};
    if (load(one_case, &s, &err))
        fail_msg("%s", err.message);
    assert_int_equal(s.n_cases, 1);
    assert_string_equal(s.cases[0].id, id);
    assert_true(problem_flops(&s.cases[0].problem) == flops);
    assert_true(problem_bytes(&s.cases[0].problem) == bytes);
    suite_free(&s);
}

TEST(ids_flops_and_bytes)
{
    has_id("{'op': 'gemm', 'dtype': 'fp16', 'm': 4, 'n': 5, 'k': 6}", "gemm/fp16/m4-n5-k6",
           2.0 * 4 * 5 * 6, 2.0 * (24 + 30 + 20));
    has_id("{'op': 'gemv', 'dtype': 'fp32', 'm': 4, 'k': 6}", "gemv/fp32/m4-k6", 2.0 * 24,
           4.0 * (24 + 6 + 4));
    has_id("{'op': 'linear_relu', 'dtype': 'tf32', 'm': 2, 'k': 3, 'n': 4}",
           "linear_relu/tf32/m2-k3-n4", 2.0 * 24, 4.0 * (6 + 12 + 4 + 8));
    has_id("{'op': 'linear_relu_bwd', 'dtype': 'bf16', 'm': 2, 'k': 3, 'n': 4}",
           "linear_relu_bwd/bf16/m2-k3-n4", 4.0 * 24, 2.0 * (8 + 6 + 12 + 8 + 6 + 12 + 4));
    has_id("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 2, 'h': 4, 's': 8, 'd': 16}",
           "attention_fwd/fp16/b2-h4-s8-d16/full", 4.0 * 2 * 4 * 16 * 64, 2.0 * 4 * 2 * 4 * 8 * 16);
}

/* Blocks are whole for the scales, and a scale of a tensor is one. */
TEST(fp8_has_bytes_of_scales)
{
    has_id("{'op': 'gemm_fp8', 'dtype': 'e4m3', 'm': 4, 'n': 5, 'k': 6}", "gemm_fp8/e4m3/m4-n5-k6",
           2.0 * 4 * 5 * 6, 24 + 30 + 2 * 4 + 2 * 20);
    has_id("{'op': 'gemm_fp8_block', 'dtype': 'e4m3', 'm': 3, 'n': 129, 'k': 257}",
           "gemm_fp8_block/e4m3/m3-n129-k257", 2.0 * 3 * 129 * 257,
           3 * 257 + 129 * 257 + 4 * (3 * 3 + 2 * 3) + 2 * 3 * 129);
}

/* Visible pairs: 8 * 9 / 2 with Sq = Skv; 3 queries of 5 keys see 3 + 4 + 5; 5 queries of 3 keys
 * see 0 + 0 + 1 + 2 + 3. */
TEST(causal_attention_counts_the_visible_pairs)
{
    has_id("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 1, 's': 8, 'd': 1, "
           "'causal': true}",
           "attention_fwd/fp16/b1-h1-s8-d1/causal", 4.0 * 36, 2.0 * 32);
    has_id("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 2, 'kv_heads': 1, "
           "'sq': 3, 's': 5, 'd': 1, 'causal': true}",
           "attention_fwd/fp16/b1-h2-kv1-sq3-s5-d1/causal", 4.0 * 2 * 12, 2.0 * (6 + 5 + 5 + 6));
    has_id("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 1, 'sq': 5, 's': 3, "
           "'d': 1, 'causal': true}",
           "attention_fwd/fp16/b1-h1-sq5-s3-d1/causal", 4.0 * 6, 2.0 * (5 + 3 + 3 + 5));
}

TEST(scale_follows_the_head_dimension)
{
    struct suite s;
    struct gate_error err = {0};
    assert_int_equal(load("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 1, "
                          "'s': 4, 'd': 64}",
                          &s, &err),
                     GATE_OK);
    assert_true(kg_param(&s.cases[0].problem, "scale") == 0.125);
    suite_free(&s);
}

#define GEMM(rest) "{'op': 'gemm', 'dtype': 'fp16', 'm': 2, 'n': 2, 'k': 1" rest "}"

TEST(faults_name_file_line_and_column)
{
    refuses(GEMM(", 'mm': 3"), "3:63", "'gemm' takes no 'mm'; it takes m, n, k");
    refuses(GEMM(", 'mm': '3'"), "3:57", "key 'mm' is unknown, or has a wrong value: ");
    refuses(GEMM(", 'm': 3"), "3:57", "key 'm' comes twice");
    refuses(GEMM(", 'inputs': {'a': [1], 'b': [1], 'a': [2]}"), "3:88",
            "/cases/0/inputs/a: key 'a' comes twice");
    refuses(GEMM(", 'causal': true"), "3:67", "takes no 'causal'");
    refuses(GEMM("") ",\n" GEMM(""), "4:1", "is there already");
    refuses("{'op': 'gemm', 'dtype': 'e4m3', 'm': 1, 'n': 2, 'k': 1}", "3:25",
            "unknown dtype 'e4m3'; there are fp16, bf16, fp32, tf32");
    refuses("{'op': 'gemm_fp8', 'dtype': 'bf16', 'm': 1, 'n': 2, 'k': 1}", "3:29",
            "unknown dtype 'bf16'; there are e4m3");
    refuses("{'op': 'gemm', 'dtype': 'fp16', 'm': 0, 'n': 2, 'k': 1}", "3:38", "at least 1");
    refuses("{'op': 'gemm', 'dtype': 'fp16', 'm': 1.5, 'n': 2, 'k': 1}", "3:38", "integer");
    refuses("{'op': 'gemm', 'dtype': 'fp16', 'm': 2, 'k': 1}", "3:1", "needs 'n'");
    refuses("{'op': 'gemv', 'dtype': 'fp16', 'm': 2, 'k': 1,\n 'n': 3}", "4:7", "takes no 'n'");
    refuses("{'op': 'conv', 'dtype': 'fp16', 'm': 2, 'k': 1}", "3:8", "conv");
    refuses("{'op': 'gemm', 'dtype': 'fp8', 'm': 2, 'n': 2, 'k': 1}", "3:25", "fp8");
    refuses(GEMM(", 'threshold': '5%'"), "3:70", "a fraction of up to 1, such as 0.05 for 5 %");
    refuses(GEMM(", 'threshold': 5"), "3:70", "such as 0.05 for 5 %, is 5");
    refuses(GEMM(", 'threshold': 0"), "3:70", "a fraction of up to 1");
    refuses("{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 3, 'kv_heads': 2, "
            "'s': 4, 'd': 8}",
            "3:70", "evenly");
#define ATTENTION(rest)                                                                            \
    "{'op': 'attention_fwd', 'dtype': 'fp16', 'b': 1, 'h': 3, 's': 4, 'd': 8" rest "}"
    refuses(ATTENTION(", 'causal': 1"), "3:84", "must be true or false");
    refuses(ATTENTION(", 'scale': true"), "3:83", "must be a number");
    refuses(ATTENTION(", 'scale': 1001"), "3:83", "between -1000 and 1000");
    refuses(ATTENTION(", 'sq': true"), "3:80", "must be an integer");
    refuses("{'op': 'gemm', 'dtype': 'fp16', 'm': 2097152, 'n': 2097152, 'k': 1}", "3:8", "2^40");
}

TEST(any_text_may_be_a_key)
{
#define LONG "%0800d"
    char text[1200];
    refuses(GEMM(", 'a: b': 3"), "3:65", "'gemm' takes no 'a: b'; it takes m, n, k");
    refuses(GEMM(", 'expect': {'a: b': [1]}"), "3:76", "no output 'a: b'; it has c");
    snprintf(text, sizeof text, GEMM(", '" LONG "': 3"), 0);
    refuses(text, "1:1", "'gemm' takes no '0000");
    snprintf(text, sizeof text, GEMM(", 'expect': {'" LONG "': [1]}"), 0);
    refuses(text, "1:1", "no output '0000");
}

TEST(literals_must_fit_their_tensor)
{
    struct suite s;
    struct gate_error err = {0};
    refuses(GEMM(", 'inputs': {'a': [1]}"), "3:73", "has 2 elements");
    refuses(GEMM(", 'inputs': {'c': [1]}"), "3:73", "no input 'c'; it has a, b");
    refuses(GEMM(", 'expect': {'a': [1]}"), "3:73", "no output 'a'; it has c");
    refuses(GEMM(", 'inputs': {'a': [1, 1e6]}"), "3:77", "at most");
    assert_int_equal(load(GEMM(", 'inputs': {'a': [1, 2]}"), &s, &err), GATE_OK);
    const struct case_values *values = suite_case_values(&s.cases[0], false, "a");
    assert_int_equal(values->n_values, 2);
    assert_true(values->values[0] == 1 && values->values[1] == 2);
    assert_null(suite_case_values(&s.cases[0], false, "b"));
    assert_null(suite_case_values(&s.cases[0], true, "a"));
    suite_free(&s);
}

TEST(a_file_that_is_not_there_is_input_output)
{
    struct suite s;
    struct gate_error err = {0};
    assert_int_equal(suite_load("/nonexistent/suite.json", &s, &err), GATE_IO);
    assert_non_null(strstr(err.message, "/nonexistent/suite.json"));
}

TEST(an_empty_or_truncated_file_is_usage)
{
    struct suite s;
    struct gate_error err = {0};
    assert_int_equal(file_write_atomic(path, "", 0, &err), GATE_OK);
    assert_int_equal(suite_load(path, &s, &err), GATE_USAGE);
    assert_int_equal(file_write_atomic(path, "{\"schema\"", 9, &err), GATE_OK);
    assert_int_equal(suite_load(path, &s, &err), GATE_USAGE);
    refuses("", "2:11", "must have 1 to 10000 items");
}

TEST(a_filter_keeps_what_matches)
{
    struct suite s;
    struct gate_error err = {0};
    assert_int_equal(load(GEMM("") ", {'op': 'gemv', 'dtype': 'fp16', 'm': 2, 'k': 1}", &s, &err),
                     GATE_OK);
    assert_int_equal(suite_filter(&s, "gemv/*"), 1);
    assert_string_equal(s.cases[0].id, "gemv/fp16/m2-k1");
    assert_int_equal(suite_filter(&s, "nothing"), 0);
    suite_free(&s);
}

static void shipped_suites_load(const char *name, size_t at_least)
{
    const char *root = getenv("KERNEL_GATE_ROOT");
    char file[4096];
    struct suite s;
    struct gate_error err = {0};
    snprintf(file, sizeof file, "%s/kernels/suites/%s.json", root ? root : ".", name);
    if (suite_load(file, &s, &err))
        fail_msg("%s", err.message);
    assert_true(s.n_cases >= at_least);
    assert_string_equal(s.file.name, name);
    suite_free(&s);
}

TEST(the_shipped_suites_are_valid)
{
    shipped_suites_load("canonical", 54);
    shipped_suites_load("host", 15);
    shipped_suites_load("smoke", 20);
    shipped_suites_load("ops", 6);
}

TESTS_WITHIN(make_path, NULL)
