/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c: what goes into the history, and what it answers. */
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/store/store_private.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* ---- documents ---- */

TEST_WITHIN(run_prefix, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    static const char *const uuids[] = {"abcd0000-0000-4000-8000-000000000001",
                                        "abcd0000-0000-4000-8000-000000000002",
                                        "abce0000-0000-4000-8000-000000000003"};
    for (int i = 0; i < 3; i++) {
        cJSON *run = sample_run(&plan, i);
        set_string(run, "uuid", uuids[i]);
        must_put(f, s, run);
    }
    static const struct {
        const char *prefix;
        enum gate_status status;
    } cases[] = {
        {"abce", GATE_OK},
        {"abcd0000-0000-4000-8000-000000000002", GATE_OK},
        {"abcd", GATE_USAGE}, /* two of them */
        {"abc", GATE_USAGE},
        {"", GATE_USAGE},
        {"ffff", GATE_USAGE},
        {"abce%", GATE_USAGE},
        {"ABCE", GATE_USAGE},
        {"abcd' OR 1=1 --", GATE_USAGE},
        {"abce0000-0000-4000-8000-0000000000030", GATE_USAGE},
    };
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf_clear(&text);
        assert_int_equal(store_document(s, cases[i].prefix, &text, &f->err), cases[i].status);
        assert_int_equal(text.len > 0, cases[i].status == GATE_OK);
    }
    store_close(s);
}

/* ---- trends, leaders ---- */

#define ATTENTION "attention_fwd/fp16/b8-h16-s512-d64/causal"

/* A timing without a verification that passed never becomes a point. */
TEST_WITHIN(unverified_is_not_a_point, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    cJSON *unverified = arm_of(run, 0, CANDIDATE);
    cJSON *failed = arm_of(run, 0, RIVAL);
    cJSON_ReplaceItemInObjectCaseSensitive(unverified, "verify", cJSON_CreateNull());
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItem(failed, "verify"), "ok",
                                           cJSON_CreateFalse());
    /* Verified, but what it computed while it was timed was wrong. */
    set_string(item_of(run, 1), "verdict", "wrong");
    must_put(f, s, run);

    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM trend WHERE case_id = '" ATTENTION "'"),
                     1);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM trend WHERE case_id ="
                                     " 'attention_fwd/fp16/b4-h16-s4096-d128/causal'"),
                     2);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM trend WHERE provider = 'ours'"),
                     plan.n_cases - 2);
}

/* The baseline's library was measured too, faster than all; it is neither theirs nor ours. */
TEST_WITHIN(baseline_is_a_line_and_no_rival, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_number(timing_of(run, 0, BASELINE), "p50_ns", 1000.0);
    must_put(f, s, run);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE p50_ns = 1000"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE baseline_p50_ns = 1000"),
                     1);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE peer = 'ours'"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM leader WHERE p50_ns > 1000"),
                     3 * plan.n_cases);

    /* What was not verified is not taken: the number on record stays the line. */
    run = sample_run(&plan, 2);
    set_number(timing_of(run, 0, BASELINE), "p50_ns", 1000.0);
    set_number(cJSON_GetObjectItem(item_of(run, 0), "baseline"), "p50_ns", 2000.0);
    cJSON_ReplaceItemInObjectCaseSensitive(arm_of(run, 0, BASELINE), "verify", cJSON_CreateNull());
    must_put(f, s, run);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE baseline_p50_ns = 2000"),
                     1);
    store_close(s);
}
