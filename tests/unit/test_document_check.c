/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_document_check.c: which documents are refused for their times, and that none of the made-up
 * history is refused. What else a document must not claim is in tests/e2e/test_records.py.
 */
#include <stdio.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/document/document.h"
#include "tests/tools/sample_devices.h"
#include "tests/tools/sample_put.h"
#include "tests/tools/sample_runs.h"
#include "tests/unit/quotes.h"
#include "tests/unit/unit.h"

#define HOUR_MS ((int64_t)3600 * 1000)

static void set(cJSON *object, const char *key, int64_t value)
{
    cJSON_SetNumberValue(cJSON_GetObjectItem(object, key), (double)value);
}

static const struct sample_plan plan = {.seed = 3, .n_runs = 8, .n_cases = 4, .n_devices = 2};

static bool check(const cJSON *tree, int64_t now_ms, struct field_fault *fault)
{
    struct document d;
    bool good = sample_read(tree, &d, fault) && document_check(&d, now_ms, fault);
    document_release(&d);
    return good;
}

/* ---- times ---- */

static void assert_refused(const cJSON *document, int64_t now_ms, const char *pointer,
                           const char *message)
{
    struct field_fault fault;
    assert_false(check(document, now_ms, &fault));
    assert_string_equal(fault.pointer, pointer);
    assert_string_equal(fault.message, message);
}

static void assert_accepted(const cJSON *document, int64_t now_ms)
{
    struct field_fault fault;
    if (!check(document, now_ms, &fault))
        fail_msg("%s: %s", fault.pointer, fault.message);
}

TEST(a_run_is_of_no_time_before_2015)
{
    RELEASED_BY(json_delete_at) cJSON *document = sample_run(&plan, 1);
    int64_t now_ms = json_integer(document, "time_ms", 0);
    set(document, "time_ms", 0);
    assert_refused(document, now_ms, "/time_ms",
                   "is 0, before 2015: set the clock of the machine that ran it");
    set(document, "time_ms", DOCUMENT_FIRST_MS - 1);
    assert_refused(document, now_ms, "/time_ms",
                   "is 1420070399999, before 2015: set the clock of the machine that ran it");
    set(document, "time_ms", DOCUMENT_FIRST_MS);
    assert_accepted(document, now_ms);
}

TEST(a_run_is_not_of_the_future)
{
    RELEASED_BY(json_delete_at) cJSON *document = sample_run(&plan, 1);
    int64_t now_ms = json_integer(document, "time_ms", 0);
    assert_accepted(document, now_ms - 24 * HOUR_MS);
    assert_refused(document, now_ms - 48 * HOUR_MS, "/time_ms",
                   "is 2.0 days ahead of this machine's clock");
}

TEST(a_baseline_is_not_of_the_future)
{
    RELEASED_BY(json_delete_at) cJSON *document = sample_run(&plan, 1);
    int64_t now_ms = json_integer(document, "time_ms", 0);
    cJSON *item = cJSON_GetArrayItem(json_member(document, "cases"), 2);
    cJSON *baseline = cJSON_GetObjectItem(item, "baseline");
    set(baseline, "time_ms", now_ms + 24 * HOUR_MS);
    assert_accepted(document, now_ms);
    set(baseline, "time_ms", now_ms + 48 * HOUR_MS);
    assert_refused(document, now_ms, "/cases/2/baseline/time_ms",
                   "is 2.0 days ahead of this machine's clock");
}

/* ---- calibrations ---- */

/* Its cases give the verdict: what does not resolve, and what was not measured as often as wanted.
 */
TEST(a_calibration_says_what_its_cases_give)
{
    static const struct {
        bool resolved;
        const char *lacks; /* NULL: nothing */
        const char *verdict;
        int exit_code;
    } rows[] = {{true, NULL, "pass", 0},
                {false, NULL, "no-verdict", 3},
                {true, "no-verdict", "no-verdict", 3},
                {true, "environment", "environment", 4},
                {false, "wrong", "wrong", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *document = sample_run(&plan, 1);
        int64_t now_ms = json_integer(document, "time_ms", 0);
        cJSON_ReplaceItemInObject(document, "cases", cJSON_CreateArray());
        cJSON *calibration = json_of("{'processes': 5, 'cases': [{'id': 'a', 'mde': 0.01,"
                                     " 'resolved': %s, 'injected': []}]}",
                                     rows[i].resolved ? "true" : "false");
        if (rows[i].lacks)
            cJSON_AddItemToObject(calibration, "incomplete",
                                  json_of("[{'id': 'b', 'processes': 1, 'wanted': 5,"
                                          " 'reason': '', 'verdict': '%s'}]",
                                          rows[i].lacks));
        cJSON_AddItemToObject(document, "calibration", calibration);
        cJSON_ReplaceItemInObject(document, "verdict", cJSON_CreateString(rows[i].verdict));
        set(document, "exit_code", rows[i].exit_code);
        assert_accepted(document, now_ms);
        set(document, "exit_code", 1);
        struct field_fault fault;
        assert_false(check(document, now_ms, &fault));
        assert_string_equal(fault.pointer, "/exit_code");
        cJSON_Delete(document);
    }
}

/* ---- the made-up history ---- */

static void check_history(const struct sample_plan *p)
{
    RELEASED_BY(json_delete_at) cJSON *newest = sample_run(p, p->n_runs - 1);
    int64_t now_ms = json_integer(newest, "time_ms", 0);
    struct field_fault fault;
    for (int i = 0; i < p->n_runs; i++) {
        cJSON *document = sample_run(p, i);
        if (!check(document, now_ms, &fault))
            fail_msg("run %d of %d on %d devices, seed %d: %s: %s", i, p->n_runs, p->n_devices,
                     (int)p->seed, fault.pointer, fault.message);
        cJSON_Delete(document);
    }
}

TEST(a_made_up_history_is_accepted)
{
    for (int seed = 1; seed <= 4; seed++) {
        for (int n_devices = 1; n_devices <= SAMPLE_MAX_DEVICES; n_devices++)
            check_history(&(struct sample_plan){
                .seed = (uint64_t)seed, .n_runs = 40, .n_cases = 14, .n_devices = n_devices});
        check_history(&(struct sample_plan){
            .seed = (uint64_t)seed, .n_runs = 200, .n_cases = 9, .n_devices = 1});
    }
}

/* ---- causes ---- */

TEST(a_cause_is_of_a_kernel_that_is_there)
{
    static const char *const causes[] = {
        "{'instructions': {'kernels': ['k'], 'changed': [{'kernel': 1, 'loop': 0, "
        "'opcode': 'LDS', 'candidate': 2, 'baseline': 1}]}}",
        "{'counters': {'kernels': ['k'], 'moved': [{'kernel': 1, 'counter': 'issue', "
        "'candidate': 2, 'baseline': 1, 'moved': 1}]}}"};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        cJSON *document = sample_run(&plan, 1), *cause = json_of("%s", causes[i]);
        cJSON *one = cJSON_DetachItemFromArray(cause, 0);
        int64_t now_ms = json_integer(document, "time_ms", 0);
        struct field_fault fault;
        cJSON_AddItemToObject(cJSON_GetArrayItem(cJSON_GetObjectItem(document, "cases"), 0),
                              one->string, one);
        assert_false(check(document, now_ms, &fault));
        assert_string_equal(fault.message, "kernel number 1 does not exist");
        set(cJSON_GetArrayItem(cJSON_GetArrayItem(one, 1), 0), "kernel", 0);
        assert_accepted(document, now_ms);
        cJSON_Delete(cause);
        cJSON_Delete(document);
    }
}
