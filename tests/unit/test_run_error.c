/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_error.c: a candidate that is less accurate than the baseline, beside it or by its
 * record. */
#include <math.h>
#include <string.h>

#include "gate/run/run.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

/* A case that was measured, and what it is compared with. */
struct scene {
    struct run run;
    struct document_library library;
    struct message_greeting greeting;
    struct document_arm arms[2];
    struct suite_case about;
    struct run_case c;
};

#define ERROR(x) ((struct document_verify){.seeds = 3, .rel_fro = (x), .vendor_ratio = NAN})
#define ERROR_AND_VENDOR(x, name, ratio)                                                           \
    ((struct document_verify){                                                                     \
        .seeds = 3, .rel_fro = (x), .vendor = (name), .vendor_ratio = (ratio)})
#define UNKNOWN_ERROR ERROR(NAN)

/* A candidate that was measured, beside a baseline or none (NULL). */
static void begin(struct scene *s, enum document_mode mode, struct kg_problem problem,
                  struct document_verify candidate, const struct document_verify *baseline)
{
    *s =
        (struct scene){.about.problem = problem,
                       .library.sha256 = "new",
                       .arms = {{.role = ROLE_CANDIDATE, .has_verify = true, .verify = candidate}}};
    if (baseline)
        s->arms[1] =
            (struct document_arm){.role = ROLE_BASELINE, .has_verify = true, .verify = *baseline};
    s->run.policy.other = "the baseline";
    s->greeting = (struct message_greeting){.libraries = &s->library, .n_libraries = 1};
    s->run.greeting = &s->greeting;
    s->c = (struct run_case){
        .about = &s->about,
        .record = {.mode = mode, .verdict = VERDICT_PASS},
        .baseline = {.library_sha256 = "old", .rel_fro = NAN},
        .reason = "as fast",
        .result = {.outcome = CASE_MEASURED, .arms = s->arms, .n_arms = baseline ? 2 : 1}};
}

static struct kg_problem gemm_of(uint32_t m)
{
    return gemm_like("gemm", KG_F16, m, m, 64);
}

/* Holds a candidate of 512 x 512 outputs against a record. */
static double by_record(struct document_verify candidate, struct baseline_entry record)
{
    struct scene s;
    begin(&s, MODE_NUMBER, gemm_of(512), candidate, NULL);
    s.c.baseline = record;
    double ratio = run_error_ratio(&s.run, &s.c);
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, ratio > 2 ? VERDICT_REGRESSION : VERDICT_PASS);
    assert_int_equal(strstr(s.c.reason, "what the baseline has by its record") != NULL, ratio > 2);
    return ratio;
}

TEST(a_jump_over_the_record_is_a_regression)
{
    const struct baseline_entry record = {.rel_fro = 3e-4};
    double same = by_record(ERROR(3e-4), record);
    assert_true(same > 0.98 && same < 1); /* what other inputs may do to a quarter million */
    assert_true(by_record(ERROR(5.9e-4), record) < 2);
    assert_true(by_record(ERROR(6.2e-4), record) > 2);
}

/* The inputs of this run made both twice as wrong, or half. */
TEST(the_vendors_error_cancels_the_inputs)
{
    struct baseline_entry record = {.rel_fro = 3e-4, .vendor_ratio = 1, .vendor = "cublas"};
    double same = by_record(ERROR_AND_VENDOR(9e-4, "cublas", 1), record);
    assert_true(same > 0.98 && same < 1);
    assert_true(by_record(ERROR_AND_VENDOR(5e-4, "cublas", 2.2), record) > 2);
    /* Another vendor's says nothing. */
    assert_true(by_record(ERROR_AND_VENDOR(9e-4, "torch", 1), record) > 2.9);
    record.vendor_ratio = 0;
    assert_true(by_record(ERROR_AND_VENDOR(9e-4, "cublas", 1), record) > 2.9);
}

TEST(rounding_alone_is_no_jump)
{
    const struct baseline_entry exact = {.rel_fro = 0};
    assert_true(by_record(ERROR(2e-4), exact) < 1.1);
    assert_true(by_record(ERROR(0), exact) == 0);
    assert_true(by_record(ERROR(5e-4), exact) > 2);
}

/* Nothing is said where there is nothing to say it by. */
TEST(what_is_not_known_is_no_jump)
{
    const struct baseline_entry record = {.rel_fro = 3e-4};
    assert_true(by_record(ERROR(9e-4), (struct baseline_entry){.rel_fro = NAN}) == 0);
    assert_true(by_record(UNKNOWN_ERROR, record) == 0);
    struct scene s;
    begin(&s, MODE_NONE, gemm_of(512), ERROR(9e-4), NULL);
    s.c.baseline = record;
    assert_true(run_error_ratio(&s.run, &s.c) == 0);
    s.c.record.mode = MODE_PAIRED; /* and the baseline's library was not verified */
    assert_true(run_error_ratio(&s.run, &s.c) == 0);
    s.c.record.mode = MODE_NUMBER;
    s.c.result.outcome = CASE_WRONG;
    assert_true(run_error_ratio(&s.run, &s.c) == 0);
}

/* With 16 outputs other inputs alone may do it. */
TEST(few_outputs_are_luck)
{
    struct scene s;
    begin(&s, MODE_NUMBER, gemm_of(4), ERROR(2e-3), NULL);
    s.c.baseline = (struct baseline_entry){.rel_fro = 3e-4};
    assert_false(run_error_jumped(&s.run, &s.c));
    s.c.baseline.rel_fro = 1e-4;
    assert_true(run_error_jumped(&s.run, &s.c));
}

TEST(beside_the_library_its_own_error_counts)
{
    struct scene s;
    begin(&s, MODE_PAIRED, gemm_of(4), ERROR(3e-3), &ERROR(1e-3));
    s.c.baseline = (struct baseline_entry){.rel_fro = 3e-3};
    double ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 2.99 && ratio < 3.01);
    run_judge_error(&s.run, &s.c);
    assert_non_null(strstr(s.c.reason, "3 times what the baseline has on the same inputs"));
    assert_non_null(strstr(s.c.reason, "gate baseline accept"));
    s.run.against_sha256 = "old"; /* as gate compare has it */
    s.run.policy.other = "B";
    run_judge_error(&s.run, &s.c);
    assert_non_null(strstr(s.c.reason, "3 times what B has on the same inputs, over the 2 times "
                                       "that pass. Its speed: "));
    assert_ptr_equal(strstr(s.c.reason, "gate baseline accept"),
                     strstr(strstr(s.c.reason, "Its speed: "), "gate baseline accept"));
}

/* The errors of dx, dw and db. */
#define OUTPUTS(all, one, two, three)                                                              \
    ((struct document_verify){                                                                     \
        .seeds = 3,                                                                                \
        .rel_fro = (all),                                                                          \
        .vendor_ratio = NAN,                                                                       \
        .outputs = (struct document_output[3]){{"dx", (one)}, {"dw", (two)}, {"db", (three)}},     \
        .n_outputs = 3})

static struct kg_problem backward_of(uint32_t n)
{
    return gemm_like("linear_relu_bwd", KG_F32, 4096, n, 64);
}

/* db is five times as wrong as the baseline's, and still less wrong than dx. */
#define JUMPED OUTPUTS(2e-5, 2e-5, 2e-5, 1e-5)
#define BEFORE OUTPUTS(2e-5, 2e-5, 2e-5, 2e-6)

TEST(one_of_several_outputs_is_held_against_itself)
{
    struct scene s;
    begin(&s, MODE_PAIRED, backward_of(4096), JUMPED, &BEFORE);
    assert_true(run_error_jumped(&s.run, &s.c));
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, VERDICT_REGRESSION);
    assert_non_null(strstr(s.c.reason, "the relative error of output 'db' is 1e-05, 4.5"));
    begin(&s, MODE_PAIRED, backward_of(8), JUMPED, &BEFORE); /* eight elements: luck */
    double ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 0.99 && ratio < 1.01);
    begin(&s, MODE_NUMBER, backward_of(4096), JUMPED, &BEFORE);
    s.c.baseline.rel_fro = s.arms[1].verify.rel_fro;
    s.c.baseline.outputs = s.arms[1].verify.outputs;
    s.c.baseline.n_outputs = 3;
    assert_true(run_error_jumped(&s.run, &s.c));
    s.c.baseline.n_outputs = 0; /* a record from before they were kept */
    ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 0.9 && ratio < 1.01);
}

/* Whatever the op, whose outputs have names of their own. */
TEST(an_output_of_any_op_is_held_against_itself)
{
    const struct kg_problem forward = attention(KG_F32, 0, 4, 4, 512, 512, 64);
    struct document_verify now = JUMPED, before = BEFORE;
    struct scene s;
    for (int i = 0; i < 3; i++)
        now.outputs[i].name = before.outputs[i].name = (const char *[]){"dq", "dk", "dv"}[i];
    begin(&s, MODE_PAIRED, attention_backward(&forward), now, &before);
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, VERDICT_REGRESSION);
    assert_non_null(strstr(s.c.reason, "the relative error of output 'dv' is 1e-05, 4."));
}

/* What rounding to fp16 comes to is no error of dw, and one of dx, which is of fp32. */
TEST(rounding_of_an_output_goes_by_its_own_dtype)
{
    const struct document_verify now[] = {OUTPUTS(8e-5, 1e-7, 8e-5, 1e-7),
                                          OUTPUTS(8e-5, 1e-6, 8e-5, 1e-7)},
                                 before[] = {OUTPUTS(1e-5, 1e-7, 1e-5, 1e-7),
                                             OUTPUTS(8e-5, 1e-7, 8e-5, 1e-7)};
    struct kg_problem p = backward_of(4096);
    p.dtype[p.n_in + 1] = KG_F16;
    for (int i = 0; i < 2; i++) {
        struct scene s;
        begin(&s, MODE_PAIRED, p, now[i], &before[i]);
        assert_int_equal(run_error_jumped(&s.run, &s.c), i);
    }
}

TEST(the_worst_of_all_counts_where_one_side_has_no_outputs)
{
    struct scene s;
    begin(&s, MODE_PAIRED, backward_of(4096), OUTPUTS(6e-5, 6e-5, 2e-5, 1e-5), &ERROR(2e-5));
    double ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 2.99 && ratio < 3.01);
    run_judge_error(&s.run, &s.c);
    assert_non_null(strstr(s.c.reason, "the relative error is 6e-05, 3 times"));
}

TEST(what_is_not_compared_is_said)
{
    const struct document_verify exact = ERROR(0);
    const struct {
        enum document_mode mode;
        struct document_verify candidate;
        const struct document_verify *baseline;
        const char *note;
    } rows[] = {
        {MODE_NUMBER, ERROR(9e-4), NULL,
         "accuracy is not compared: the baseline has no error on record"},
        {MODE_PAIRED, ERROR(9e-4), NULL, "accuracy is not compared: the baseline was not verified"},
        {MODE_PAIRED, UNKNOWN_ERROR, NULL,
         "accuracy is not compared: the candidate was not verified"},
        {MODE_NONE, ERROR(9e-4), NULL, ""},
        {MODE_PAIRED, exact, &exact, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        begin(&s, rows[i].mode, gemm_of(512), rows[i].candidate, rows[i].baseline);
        run_judge_error(&s.run, &s.c);
        assert_int_equal(s.c.record.verdict, VERDICT_PASS);
        assert_string_equal(s.c.note, rows[i].note);
    }
}
