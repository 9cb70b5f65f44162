/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c: what goes into the history, and what it answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/json.h"
#include "gate/store/store_private.h"
#include "tests/tools/sample_put.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* ---- put and get ---- */

struct seen {
    int n;
    char text[1 << 16];
};

static bool see_text(void *context, const char *text, size_t len)
{
    struct seen *seen = context;
    assert_int_equal(strlen(text), len);
    assert_true(len < sizeof(seen->text));
    memcpy(seen->text, text, len + 1);
    seen->n++;
    return true;
}

TEST_WITHIN(round_trip, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 3);
    const char *uuid = json_string(run, "uuid", "");
    /* Bytes that a rewritten document would not have. */
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_puts(&text, "  ");
    json_write(run, true, &text);
    buf_puts(&text, "\n\n\t");

    bool existed = true;
    assert_int_equal(sample_put_text(s, run, text.data, text.len, &existed, &f->err), GATE_OK);
    assert_false(existed);
    struct seen *seen = calloc(1, sizeof(*seen));
    assert_int_equal(store_document(s, uuid, see_text, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 1);
    assert_string_equal(seen->text, text.data);
    assert_int_equal(store_documents(s, see_text, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 2);
    store_close(s);

    assert_int_equal(scalar(f->path, "PRAGMA application_id"), STORE_APPLICATION_ID);
    assert_int_equal(scalar(f->path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    assert_sound(f->path);
    cJSON_Delete(run);
    buf_release(&text);
    free(seen);
}

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
        assert_int_equal(put(f, s, run, NULL), GATE_OK);
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
    struct seen *seen = calloc(1, sizeof(*seen));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        seen->n = 0;
        assert_int_equal(store_document(s, cases[i].prefix, see_text, seen, &f->err),
                         cases[i].status);
        assert_int_equal(seen->n, cases[i].status == GATE_OK);
    }
    store_close(s);
    free(seen);
}

/* ---- trends, leaders ---- */

struct trend_tally {
    int n;
    int n_ours;
    int64_t last_ms;
    double lowest; /* of ours */
};

static bool see_point(void *context, const struct store_point *row)
{
    struct trend_tally *t = context;
    if (t->n > 0)
        assert_true(row->time_ms <= t->last_ms);
    t->last_ms = row->time_ms;
    t->n++;
    bool is_ours = strcmp(row->provider, "ours") == 0;
    t->n_ours += is_ours;
    if (is_ours && (t->lowest == 0 || row->p50_ns < t->lowest))
        t->lowest = row->p50_ns;
    assert_true(row->p50_ns > 0 && row->p90_ns >= row->p50_ns);
    assert_true((row->baseline_p50_ns > 0) == (strcmp(row->role, "candidate") == 0));
    assert_string_equal(row->contract, "graph-abba-v1");
    return true;
}

#define ATTENTION "attention_fwd/fp16/b8-h16-s512-d64/causal"
#define WRONG_LAST "attention_fwd/bf16/b4-h32-s2048-d128"

TEST_WITHIN(trend, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    int runs = plan.n_runs / 2; /* of the GPU */

    struct trend_tally all = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", 1000, see_point, &all, &f->err),
                     GATE_OK);
    assert_int_equal(all.n, 3 * runs);
    assert_int_equal(all.n_ours, runs);

    /* A limit takes the newest of all providers. */
    struct trend_tally some = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", 6, see_point, &some, &f->err),
                     GATE_OK);
    assert_int_equal(some.n, 6);
    assert_int_equal(some.n_ours, 2);

    /* The newest run's candidate is wrong: it is not in the trend, and its rivals are. */
    struct trend_tally wrong = {0};
    assert_int_equal(store_trend(s, WRONG_LAST, "nvidia-h200", 1000, see_point, &wrong, &f->err),
                     GATE_OK);
    assert_int_equal(wrong.n_ours, runs - 1);
    assert_int_equal(wrong.n, 3 * runs - 1);

    struct trend_tally none = {0};
    assert_int_equal(store_trend(s, ATTENTION, "no-such", 9, see_point, &none, &f->err), GATE_OK);
    assert_int_equal(store_trend(s, "x", "nvidia-h200", 9, see_point, &none, &f->err), GATE_OK);
    assert_int_equal(none.n, 0);
    store_close(s);
}

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
    assert_int_equal(put(f, s, run, NULL), GATE_OK);

    struct trend_tally t = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", 9, see_point, &t, &f->err), GATE_OK);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.n_ours, 0);
    struct trend_tally w = {0};
    assert_int_equal(store_trend(s, "attention_fwd/fp16/b4-h16-s4096-d128/causal", "nvidia-h200", 9,
                                 see_point, &w, &f->err),
                     GATE_OK);
    assert_int_equal(w.n, 2);
    assert_int_equal(w.n_ours, 0);
    store_close(s);
}

struct leader_tally {
    int n;
    double attention_ours;
    char contract[64];
};

static bool see_leader(void *context, const struct store_point *row)
{
    struct leader_tally *t = context;
    t->n++;
    if (strcmp(row->case_id, ATTENTION) == 0 && strcmp(row->provider, "ours") == 0 &&
        strcmp(row->device_model, "nvidia-h200") == 0) {
        t->attention_ours = row->p50_ns;
        snprintf(t->contract, sizeof(t->contract), "%s", row->contract);
    }
    return true;
}

TEST_WITHIN(leaderboard, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    struct trend_tally trend = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", 1000, see_point, &trend, &f->err),
                     GATE_OK);

    struct leader_tally t = {0};
    assert_int_equal(store_leaderboard(s, NULL, see_leader, &t, &f->err), GATE_OK);
    assert_int_equal(t.n, plan.n_cases * (3 + 1));
    assert_true(t.attention_ours == trend.lowest);
    assert_string_equal(t.contract, "graph-abba-v1");

    /* A newer contract stands alone, though its number is worse. */
    cJSON *run = sample_run(&plan, 0);
    set_string(run, "uuid", "00000000-0000-4000-8000-000000000001");
    set_string(run, "contract", "graph-abba-v2");
    set_number(run, "time_ms", 1900000000000.0);
    set_number(timing_of(run, 0, CANDIDATE), "p50_ns", 99999999.0);
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    assert_int_equal(store_leaderboard(s, "nvidia-h200", see_leader, &t, &f->err), GATE_OK);
    assert_true(t.attention_ours == 99999999.0);
    assert_string_equal(t.contract, "graph-abba-v2");
    store_close(s);
}

/* The baseline's library was measured too, faster than all; it is neither theirs nor ours. */
TEST_WITHIN(baseline_is_a_line_and_no_rival, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_number(timing_of(run, 0, BASELINE), "p50_ns", 1000.0);
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE p50_ns = 1000"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE baseline_p50_ns = 1000"),
                     1);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE peer = 'ours'"), 0);
    struct leader_tally t = {0};
    assert_int_equal(store_leaderboard(s, NULL, see_leader, &t, &f->err), GATE_OK);
    assert_int_equal(t.n, 3 * plan.n_cases);
    assert_true(t.attention_ours > 1000);

    /* What was not verified is not taken: the number on record stays the line. */
    run = sample_run(&plan, 2);
    set_number(timing_of(run, 0, BASELINE), "p50_ns", 1000.0);
    set_number(cJSON_GetObjectItem(item_of(run, 0), "baseline"), "p50_ns", 2000.0);
    cJSON_ReplaceItemInObjectCaseSensitive(arm_of(run, 0, BASELINE), "verify", cJSON_CreateNull());
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result WHERE baseline_p50_ns = 2000"),
                     1);
    store_close(s);
}
