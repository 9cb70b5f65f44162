/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_error.c: a candidate that is less accurate than the baseline, beside it or by its
 * record. */
#include <math.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/run/run.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

/* A case that was measured, and what it is compared with. */
struct scene {
    struct run run;
    struct document_library library;
    struct message_greeting greeting;
    struct document_arm arms[2];
    struct document_output outputs[2][3];
    struct suite_case about;
    struct run_case c;
};

static cJSON *parse(const char *text)
{
    cJSON *document = NULL;
    struct gate_error err = {0};
    if (json_parse("the test", text, strlen(text), GATE_IO, &document, &err) != GATE_OK)
        fail_msg("%s", err.message);
    return document;
}

/* Arms of which nothing is known but their roles and errors. */
static size_t read_arms(const cJSON *list, struct scene *s)
{
    const struct op_tensor *tensors = op_of(&s->about.problem)->tensors + s->about.problem.n_in;
    struct document_arm *arms = s->arms;
    const cJSON *item;
    size_t n = 0;
    cJSON_ArrayForEach (item, list) {
        const cJSON *verify = json_member(item, "verify"), *output;
        size_t n_outputs = 0;
        cJSON_ArrayForEach (output, json_member(verify, "outputs")) {
            s->outputs[n][n_outputs] =
                (struct document_output){tensors[n_outputs].name, output->valuedouble};
            n_outputs++;
        }
        const char *vendor = json_string(verify, "vendor", NULL);
        arms[n] = (struct document_arm){
            .role =
                strcmp(json_string(item, "role", ""), "baseline") ? ROLE_CANDIDATE : ROLE_BASELINE,
            .has_verify = true,
            .verify = {.seeds = json_integer(verify, "seeds", 0),
                       .rel_fro = json_number(verify, "rel_fro", NAN),
                       .outputs = s->outputs[n],
                       .n_outputs = n_outputs,
                       .vendor = !vendor                    ? NULL
                                 : strcmp(vendor, "cublas") ? "torch"
                                                            : "cublas",
                       .vendor_ratio = json_number(verify, "vendor_ratio", NAN)}};
        n++;
    }
    return n;
}

static void begin_with(struct scene *s, enum document_mode mode, struct kg_problem problem,
                       const char *arms)
{
    *s = (struct scene){.about.problem = problem};
    s->run.policy.other = "the baseline";
    s->library.sha256 = "new";
    s->greeting = (struct message_greeting){.libraries = &s->library, .n_libraries = 1};
    s->run.greeting = &s->greeting;
    s->c = (struct run_case){.about = &s->about,
                             .record = {.mode = mode, .verdict = VERDICT_PASS},
                             .baseline = {.library_sha256 = "old", .rel_fro = NAN},
                             .reason = "as fast"};
    cJSON *list = parse(arms);
    s->c.result = (struct case_result){
        .outcome = CASE_MEASURED, .arms = s->arms, .n_arms = read_arms(list, s)};
    cJSON_Delete(list);
}

static void begin(struct scene *s, enum document_mode mode, uint32_t m, const char *arms)
{
    begin_with(s, mode, gemm_like("gemm", KG_F16, m, m, 64), arms);
}

#define CANDIDATE "[{\"role\": \"candidate\", \"verify\": {\"seeds\": 3, \"rel_fro\": "
#define OF_CUBLAS ", \"vendor\": \"cublas\", \"vendor_ratio\": "
#define END "}}]"

/* Holds a candidate of 512 x 512 outputs against a record. */
static double by_record(const char *arms, struct baseline_entry record)
{
    struct scene s;
    begin(&s, MODE_NUMBER, 512, arms);
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
    double same = by_record(CANDIDATE "3e-4" END, record);
    assert_true(same > 0.98 && same < 1); /* what other inputs may do to a quarter million */
    assert_true(by_record(CANDIDATE "5.9e-4" END, record) < 2);
    assert_true(by_record(CANDIDATE "6.2e-4" END, record) > 2);
}

/* The inputs of this run made both twice as wrong, or half. */
TEST(the_vendors_error_cancels_the_inputs)
{
    struct baseline_entry record = {.rel_fro = 3e-4, .vendor_ratio = 1, .vendor = "cublas"};
    double same = by_record(CANDIDATE "9e-4" OF_CUBLAS "1" END, record);
    assert_true(same > 0.98 && same < 1);
    assert_true(by_record(CANDIDATE "5e-4" OF_CUBLAS "2.2" END, record) > 2);
    /* Another vendor's says nothing. */
    assert_true(
        by_record(CANDIDATE "9e-4, \"vendor\": \"torch\", \"vendor_ratio\": 1" END, record) > 2.9);
    record.vendor_ratio = 0;
    assert_true(by_record(CANDIDATE "9e-4" OF_CUBLAS "1" END, record) > 2.9);
}

TEST(rounding_alone_is_no_jump)
{
    const struct baseline_entry exact = {.rel_fro = 0};
    assert_true(by_record(CANDIDATE "2e-4" END, exact) < 1.1);
    assert_true(by_record(CANDIDATE "0" END, exact) == 0);
    assert_true(by_record(CANDIDATE "5e-4" END, exact) > 2);
}

/* Nothing is said where there is nothing to say it by. */
TEST(what_is_not_known_is_no_jump)
{
    const struct baseline_entry record = {.rel_fro = 3e-4};
    assert_true(by_record(CANDIDATE "9e-4" END, (struct baseline_entry){.rel_fro = NAN}) == 0);
    assert_true(by_record(CANDIDATE "null" END, record) == 0);
    struct scene s;
    begin(&s, MODE_NONE, 512, CANDIDATE "9e-4" END);
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
    begin(&s, MODE_NUMBER, 4, CANDIDATE "2e-3" END);
    s.c.baseline = (struct baseline_entry){.rel_fro = 3e-4};
    assert_false(run_error_jumped(&s.run, &s.c));
    s.c.baseline.rel_fro = 1e-4;
    assert_true(run_error_jumped(&s.run, &s.c));
}

TEST(beside_the_library_its_own_error_counts)
{
    struct scene s;
    begin(&s, MODE_PAIRED, 4,
          "[{\"role\": \"candidate\", \"verify\": {\"seeds\": 3, \"rel_fro\": 3e-3}},"
          " {\"role\": \"baseline\", \"verify\": {\"seeds\": 3, \"rel_fro\": 1e-3}}]");
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

#define OUTPUTS(dx, dw, db)                                                                        \
    "\"seeds\": 3, \"rel_fro\": " dx ", \"outputs\": {\"dx\": " dx ", \"dw\": " dw ", \"db\": " db \
    "}"

static void begin_backward(struct scene *s, enum document_mode mode, uint32_t n, const char *arms)
{
    begin_with(s, mode, gemm_like("linear_relu_bwd", KG_F32, 4096, n, 64), arms);
}

/* db is five times as wrong as the baseline's, and still less wrong than dx. */
static const char small_jump[] = "[{\"role\": \"candidate\", \"verify\": {" OUTPUTS(
    "2e-5", "2e-5", "1e-5") "}},"
                            " {\"role\": \"baseline\", \"verify\": {" OUTPUTS("2e-5", "2e-5",
                                                                              "2e-6") "}}]";

TEST(one_of_several_outputs_is_held_against_itself)
{
    struct scene s;
    begin_backward(&s, MODE_PAIRED, 4096, small_jump);
    assert_true(run_error_jumped(&s.run, &s.c));
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, VERDICT_REGRESSION);
    assert_non_null(strstr(s.c.reason, "the relative error of output 'db' is 1e-05, 4.5"));
    begin_backward(&s, MODE_PAIRED, 8, small_jump); /* eight elements: luck */
    double ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 0.99 && ratio < 1.01);
    begin_backward(&s, MODE_NUMBER, 4096, small_jump);
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
    struct scene s;
    begin_with(&s, MODE_PAIRED, attention_backward(&forward), small_jump);
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, VERDICT_REGRESSION);
    assert_non_null(strstr(s.c.reason, "the relative error of output 'dv' is 1e-05, 4."));
}

/* What rounding to fp16 comes to is no error of dw, and one of dx, which is of fp32. */
TEST(rounding_of_an_output_goes_by_its_own_dtype)
{
    static const char *const arms[] = {
        "[{\"role\": \"candidate\", \"verify\": {\"seeds\": 3, \"rel_fro\": 8e-5, "
        "\"outputs\": {\"dx\": 1e-7, \"dw\": 8e-5, \"db\": 1e-7}}},"
        " {\"role\": \"baseline\", \"verify\": {\"seeds\": 3, \"rel_fro\": 1e-5, "
        "\"outputs\": {\"dx\": 1e-7, \"dw\": 1e-5, \"db\": 1e-7}}}]",
        "[{\"role\": \"candidate\", \"verify\": {\"seeds\": 3, \"rel_fro\": 8e-5, "
        "\"outputs\": {\"dx\": 1e-6, \"dw\": 8e-5, \"db\": 1e-7}}},"
        " {\"role\": \"baseline\", \"verify\": {\"seeds\": 3, \"rel_fro\": 8e-5, "
        "\"outputs\": {\"dx\": 1e-7, \"dw\": 8e-5, \"db\": 1e-7}}}]"};
    struct kg_problem p = gemm_like("linear_relu_bwd", KG_F32, 4096, 4096, 64);
    p.dtype[p.n_in + 1] = KG_F16;
    for (int i = 0; i < 2; i++) {
        struct scene s;
        begin_with(&s, MODE_PAIRED, p, arms[i]);
        assert_int_equal(run_error_jumped(&s.run, &s.c), i);
    }
}

TEST(the_worst_of_all_counts_where_one_side_has_no_outputs)
{
    struct scene s;
    begin_backward(
        &s, MODE_PAIRED, 4096,
        "[{\"role\": \"candidate\", \"verify\": {" OUTPUTS(
            "6e-5", "2e-5",
            "1e-5") "}},"
                    " {\"role\": \"baseline\", \"verify\": {\"seeds\": 3, \"rel_fro\": 2e-5}}]");
    double ratio = run_error_ratio(&s.run, &s.c);
    assert_true(ratio > 2.99 && ratio < 3.01);
    run_judge_error(&s.run, &s.c);
    assert_non_null(strstr(s.c.reason, "the relative error is 6e-05, 3 times"));
}

static void judge_and_note(enum document_mode mode, const char *arms, const char *note)
{
    struct scene s;
    begin(&s, mode, 512, arms);
    run_judge_error(&s.run, &s.c);
    assert_int_equal(s.c.record.verdict, VERDICT_PASS);
    assert_string_equal(s.c.note, note);
}

TEST(what_is_not_compared_is_said)
{
    judge_and_note(MODE_NUMBER, CANDIDATE "9e-4" END,
                   "accuracy is not compared: the baseline has no error on record");
    judge_and_note(MODE_PAIRED, CANDIDATE "9e-4" END,
                   "accuracy is not compared: the baseline was not verified");
    judge_and_note(MODE_PAIRED, CANDIDATE "null" END,
                   "accuracy is not compared: the candidate was not verified");
    judge_and_note(MODE_NONE, CANDIDATE "9e-4" END, "");
    judge_and_note(MODE_PAIRED,
                   "[{\"role\": \"candidate\", \"verify\": {\"seeds\": 3, \"rel_fro\": 0}},"
                   " {\"role\": \"baseline\", \"verify\": {\"seeds\": 3, \"rel_fro\": 0}}]",
                   "");
}
