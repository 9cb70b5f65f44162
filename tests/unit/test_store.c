/* test_store.c: the history, what it answers, and what it does with files that are not its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/schema.h"
#include "server/store_private.h"
#include "unit/store_fixture.h"

static const struct store_run_filter any;
static const struct store_leader_key first_leader;
static const struct store_run_key start = {INT64_MAX, ""};

/* ---- the sample itself ---- */

static void test_sample_fits_the_schema(void **state)
{
    (void)state;
    struct schema *schema = schema_open("run.schema.json");
    struct schema_fault fault;
    assert_non_null(schema);
    for (int i = 0; i < plan.n_runs; i++) {
        cJSON *run = sample_run(&plan, i);
        if (!schema_check(schema, run, &fault))
            fail_msg("run %d: %s: %s", i, fault.pointer, fault.message);
        cJSON_Delete(run);
    }
    schema_free(schema);
}

/* ---- put and get ---- */

struct seen {
    int n;
    int stop_at; /* 0: never */
    char last[64];
    int64_t last_ms;
    char text[1 << 16];
};

static bool more(struct seen *seen)
{
    seen->n++;
    return seen->n != seen->stop_at;
}

static bool see_run(void *context, const struct store_run *row)
{
    struct seen *seen = context;
    if (seen->n > 0)
        assert_true(row->time_ms < seen->last_ms ||
                    (row->time_ms == seen->last_ms && strcmp(row->uuid, seen->last) < 0));
    seen->last_ms = row->time_ms;
    snprintf(seen->last, sizeof(seen->last), "%s", row->uuid);
    assert_int_equal(row->n_cases, row->n_pass + row->n_regression + row->n_improvement +
                                       row->n_wrong + row->n_no_verdict + row->n_environment);
    return more(seen);
}

static bool see_text(void *context, const char *text, size_t len)
{
    struct seen *seen = context;
    assert_int_equal(strlen(text), len);
    assert_true(len < sizeof(seen->text));
    memcpy(seen->text, text, len + 1);
    return more(seen);
}

static void test_round_trip(void **state)
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
    assert_int_equal(store_put_run(s, run, text.data, text.len, &existed, &f->err), GATE_OK);
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

static void test_same_run_twice(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store_state before, after;
    bool existed = true;
    assert_int_equal(put(f, s, sample_run(&plan, 0), &existed), GATE_OK);
    assert_false(existed);
    assert_int_equal(store_state(s, &before, &f->err), GATE_OK);

    /* The same uuid with other numbers changes nothing either. */
    cJSON *again = sample_run(&plan, 0);
    set_number(again, "time_ms", 5);
    assert_int_equal(put(f, s, again, &existed), GATE_OK);
    assert_true(existed);
    assert_int_equal(store_state(s, &after, &f->err), GATE_OK);
    assert_string_equal(before.text, after.text);
    struct seen *seen = calloc(1, sizeof(*seen));
    assert_int_equal(store_runs(s, &any, start, 10, see_run, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 1);
    assert_int_not_equal(seen->last_ms, 5);

    assert_int_equal(put(f, s, sample_run(&plan, 1), &existed), GATE_OK);
    assert_int_equal(store_state(s, &after, &f->err), GATE_OK);
    assert_string_not_equal(before.text, after.text);
    store_close(s);
    free(seen);
}

static void test_run_paging(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    /* All at one time, so that the order is that of the uuids. */
    for (int i = 0; i < plan.n_runs; i++) {
        cJSON *run = sample_run(&plan, i);
        set_number(run, "time_ms", i < 4 ? 1000 : 2000);
        assert_int_equal(put(f, s, run, NULL), GATE_OK);
    }
    struct seen *seen = calloc(1, sizeof(*seen));
    struct store_run_key after = start;
    for (int page = 0; page < plan.n_runs; page += 5) {
        assert_int_equal(store_runs(s, &any, after, 5, see_run, seen, &f->err), GATE_OK);
        after = (struct store_run_key){seen->last_ms, seen->last};
        assert_int_equal(seen->n, page + 5 < plan.n_runs ? page + 5 : plan.n_runs);
    }
    assert_int_equal(store_runs(s, &any, after, 5, see_run, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, plan.n_runs);

    memset(seen, 0, sizeof(*seen));
    seen->stop_at = 3;
    assert_int_equal(store_runs(s, &any, start, 10, see_run, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 3);
    assert_int_equal(store_runs(s, &any, start, 0, see_run, seen, &f->err), GATE_USAGE);
    assert_int_equal(store_runs(s, &any, start, -1, see_run, seen, &f->err), GATE_USAGE);
    assert_int_equal(seen->n, 3);
    store_close(s);
    free(seen);
}

static void test_run_prefix(void **state)
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

/* ---- cases, trends, leaders ---- */

struct case_tally {
    int n;
    int n_wrong;
    int n_regression;
    const char *only_device;
};

static bool see_case(void *context, const struct store_case *row)
{
    struct case_tally *t = context;
    t->n++;
    assert_int_equal(row->n_runs, plan.n_runs / 2);
    if (t->only_device)
        assert_string_equal(row->device_model, t->only_device);
    if (strcmp(row->verdict, "wrong") == 0) {
        t->n_wrong++;
        assert_true(row->p50_ns == 0 && row->ratio == 0 && row->peer_ratio == 0 && row->mde == 0);
        assert_string_equal(row->peer, "");
    } else {
        assert_true(row->p50_ns > 0 && row->p50_lo_ns < row->p50_ns &&
                    row->p50_ns < row->p50_hi_ns);
        assert_true(row->mde == 0.031 || (row->mde > 0.002 && row->mde < 0.012));
        assert_true((row->mde == 0.031) == (strcmp(row->verdict, "no-verdict") == 0));
    }
    t->n_regression += strcmp(row->verdict, "regression") == 0;
    if (strcmp(row->id, "gemm/fp16/m4096-n4096-k4096") == 0 &&
        strcmp(row->device_model, "nvidia-h200") == 0) {
        /* torch is further away than cublas in the sample */
        assert_string_equal(row->peer, "cublas");
        assert_true(row->peer_ratio > 0.98 && row->peer_ratio < 1.06);
    }
    return true;
}

static enum gate_status list_cases(struct store_fixture *f, struct store *s, const char *device,
                                   struct case_tally *tally)
{
    const struct store_case_query query = {
        .device_model = device, .sort = STORE_CASES_NAME, .limit = 1000};
    struct store_case_page page;
    return store_cases(s, &query, see_case, tally, &page, &f->err);
}

static void test_cases(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    struct case_tally all = {0};
    assert_int_equal(list_cases(f, s, NULL, &all), GATE_OK);
    assert_int_equal(all.n, 2 * plan.n_cases);
    assert_int_equal(all.n_wrong, 2);
    assert_int_equal(all.n_regression, 2);
    struct case_tally gpu = {.only_device = "nvidia-h200"};
    assert_int_equal(list_cases(f, s, "nvidia-h200", &gpu), GATE_OK);
    assert_int_equal(gpu.n, plan.n_cases);
    struct case_tally none = {0};
    assert_int_equal(list_cases(f, s, "' OR 1=1", &none), GATE_OK);
    assert_int_equal(none.n, 0);
    store_close(s);
}

struct trend_tally {
    int n;
    int n_ours;
    int64_t last_ms;
    double lowest;
    const char *only_provider;
};

static bool see_point(void *context, const struct store_point *row)
{
    struct trend_tally *t = context;
    if (t->n > 0)
        assert_true(row->time_ms <= t->last_ms);
    if (t->only_provider)
        assert_string_equal(row->provider, t->only_provider);
    t->last_ms = row->time_ms;
    t->n++;
    t->n_ours += strcmp(row->provider, "ours") == 0;
    if (t->lowest == 0 || row->p50_ns < t->lowest)
        t->lowest = row->p50_ns;
    assert_true(row->p50_ns > 0 && row->p90_ns >= row->p50_ns);
    assert_true((row->best_p50_ns > 0) == (strcmp(row->role, "candidate") == 0));
    assert_string_equal(row->contract, "graph-abba-v1");
    return true;
}

#define ATTENTION "attention_fwd/fp16/b8-h16-s512-d64/causal"
#define WRONG_LAST "attention_fwd/bf16/b4-h32-s2048-d128"

static void test_trend(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    int runs = plan.n_runs / 2; /* of the GPU */

    struct trend_tally all = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", NULL, 1000, see_point, &all, &f->err),
                     GATE_OK);
    assert_int_equal(all.n, 3 * runs);
    assert_int_equal(all.n_ours, runs);

    struct trend_tally one = {.only_provider = "cudnn"};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", "cudnn", 4, see_point, &one, &f->err),
                     GATE_OK);
    assert_int_equal(one.n, 4);

    /* A limit takes the newest of all providers. */
    struct trend_tally some = {0};
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", NULL, 6, see_point, &some, &f->err),
                     GATE_OK);
    assert_int_equal(some.n, 6);
    assert_int_equal(some.n_ours, 2);

    /* The newest run's candidate is wrong: it is not in the trend, and its rivals are. */
    struct trend_tally wrong = {0};
    assert_int_equal(
        store_trend(s, WRONG_LAST, "nvidia-h200", NULL, 1000, see_point, &wrong, &f->err), GATE_OK);
    assert_int_equal(wrong.n_ours, runs - 1);
    assert_int_equal(wrong.n, 3 * runs - 1);

    struct trend_tally none = {0};
    assert_int_equal(store_trend(s, ATTENTION, "no-such", NULL, 9, see_point, &none, &f->err),
                     GATE_OK);
    assert_int_equal(store_trend(s, "x", "nvidia-h200", NULL, 9, see_point, &none, &f->err),
                     GATE_OK);
    assert_int_equal(none.n, 0);
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", NULL, 0, see_point, &none, &f->err),
                     GATE_USAGE);
    store_close(s);
}

/* A timing without a verification that passed never becomes a point. */
static void test_unverified_is_not_a_point(void **state)
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
    assert_int_equal(store_trend(s, ATTENTION, "nvidia-h200", NULL, 9, see_point, &t, &f->err),
                     GATE_OK);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.n_ours, 0);
    struct trend_tally w = {0};
    assert_int_equal(store_trend(s, "attention_fwd/fp16/b4-h16-s4096-d128/causal", "nvidia-h200",
                                 NULL, 9, see_point, &w, &f->err),
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

static bool see_leader(void *context, const struct store_leader *row)
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

static void test_leaderboard(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    struct trend_tally trend = {.only_provider = "ours"};
    assert_int_equal(
        store_trend(s, ATTENTION, "nvidia-h200", "ours", 1000, see_point, &trend, &f->err),
        GATE_OK);

    struct leader_tally t = {0};
    assert_int_equal(store_leaderboard(s, NULL, NULL, first_leader, 1000, see_leader, &t, &f->err),
                     GATE_OK);
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
    assert_int_equal(
        store_leaderboard(s, NULL, "nvidia-h200", first_leader, 1000, see_leader, &t, &f->err),
        GATE_OK);
    assert_true(t.attention_ours == 99999999.0);
    assert_string_equal(t.contract, "graph-abba-v2");
    store_close(s);
}

/* The best's library was measured too, faster than all; it is neither theirs nor ours. */
static void test_best_is_a_line_and_no_rival(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_number(timing_of(run, 0, BEST), "p50_ns", 1000.0);
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point WHERE p50_ps = 1000000"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point WHERE best_p50_ps = 1000000"), 1);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM track WHERE peer = 'ours'"), 0);
    struct leader_tally t = {0};
    assert_int_equal(store_leaderboard(s, NULL, NULL, first_leader, 1000, see_leader, &t, &f->err),
                     GATE_OK);
    assert_int_equal(t.n, 3 * plan.n_cases);
    assert_true(t.attention_ours > 1000);

    /* What was not verified is not taken: the number on record stays the line. */
    run = sample_run(&plan, 2);
    set_number(timing_of(run, 0, BEST), "p50_ns", 1000.0);
    set_number(cJSON_GetObjectItem(item_of(run, 0), "best"), "p50_ns", 2000.0);
    cJSON_ReplaceItemInObjectCaseSensitive(arm_of(run, 0, BEST), "verify", cJSON_CreateNull());
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point WHERE best_p50_ps = 2000000"), 1);
    store_close(s);
}

static bool see_device(void *context, const struct store_device *row)
{
    struct seen *seen = context;
    assert_int_equal(row->n_runs, plan.n_runs / 2);
    assert_string_equal(row->newest.device_model, row->model);
    if (seen->n > 0)
        assert_true(row->newest.time_ms < seen->last_ms);
    seen->last_ms = row->newest.time_ms;
    return more(seen);
}

static void test_devices(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct seen *seen = calloc(1, sizeof(*seen));
    assert_int_equal(store_devices(s, &any.scope, see_device, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 0);
    fill(f, s, &plan);
    assert_int_equal(store_devices(s, &any.scope, see_device, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 2);
    store_close(s);
    free(seen);
}

/* ---- all or nothing ---- */

static void assert_nothing_stored(struct store_fixture *f)
{
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM device"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM test_case"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point"), 0);
}

static void test_case_twice_stores_nothing(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_string(item_of(run, 4), "id", ATTENTION);
    assert_int_equal(put(f, s, run, NULL), GATE_IO);
    assert_non_null(strstr(f->err.message, ATTENTION));
    assert_non_null(strstr(f->err.message, "twice"));
    assert_nothing_stored(f);
    /* And the store is good for the next one. */
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
}

static void test_hostile_numbers(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    static const double bad_times[] = {-1, 1e300, 9.1e18, 0.5, -9007199254740992.0};
    static const double bad_p50s[] = {-1,  0,      -1e308, INFINITY, -INFINITY,
                                      NAN, 5e-324, 1e-4,   9e15,     1.7976931348623157e308};
    for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
        cJSON *run = sample_run(&plan, 0);
        set_number(run, "time_ms", bad_times[i]);
        assert_int_equal(put(f, s, run, NULL), GATE_IO);
    }
    for (size_t i = 0; i < sizeof(bad_p50s) / sizeof(bad_p50s[0]); i++) {
        cJSON *run = sample_run(&plan, 0);
        set_number(timing_of(run, 2, RIVAL), "p50_ns", bad_p50s[i]);
        assert_int_equal(put(f, s, run, NULL), GATE_IO);
    }
    cJSON *best = sample_run(&plan, 0);
    set_number(timing_of(best, 2, BEST), "p50_ns", -1);
    assert_int_equal(put(f, s, best, NULL), GATE_IO);
    cJSON *mde = sample_run(&plan, 0);
    set_number(item_of(mde, 2), "mde", -0.001);
    assert_int_equal(put(f, s, mde, NULL), GATE_IO);
    cJSON *odd = sample_run(&plan, 0);
    set_string(odd, "verdict", "splendid");
    assert_int_equal(put(f, s, odd, NULL), GATE_IO);
    odd = sample_run(&plan, 0);
    set_string(odd, "uuid", "short");
    assert_int_equal(put(f, s, odd, NULL), GATE_IO);
    assert_int_equal(put(f, s, cJSON_CreateObject(), NULL), GATE_IO);
    assert_nothing_stored(f);

    static const double good_p50s[] = {0.001, 18612.345678901, 8e15};
    for (size_t i = 0; i < sizeof(good_p50s) / sizeof(good_p50s[0]); i++) {
        cJSON *run = sample_run(&plan, (int)i);
        set_number(timing_of(run, 2, CANDIDATE), "p50_ns", good_p50s[i]);
        if (put(f, s, run, NULL) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
    cJSON *late = sample_run(&plan, 4);
    set_number(late, "time_ms", JSON_MAX_SAFE_INTEGER);
    assert_int_equal(put(f, s, late, NULL), GATE_OK);
    store_close(s);
    assert_sound(f->path);
}

static void test_strings_are_data(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_string(cJSON_GetObjectItem(run, "git"), "subject", "'); DROP TABLE run; --");
    set_string(item_of(run, 0), "reason", "\" ' ; -- %s %n \x01 \xe2\x82\xac");
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT subject = '''); DROP TABLE run; --' FROM run"), 1);
}

static void test_disk_full(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    assert_int_equal(put(f, s, sample_run(&big, 0), NULL), GATE_IO);
    assert_non_null(strstr(f->err.message, "full"));
    assert_non_null(strstr(f->err.message, "free some space"));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(put(f, s, sample_run(&big, 0), NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 2);
}

/* Runs in a child, whose limits and rights are its own; true if `body` returned true. */
static bool in_child(struct store_fixture *f, bool (*body)(struct store_fixture *f))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body(f) ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool put_under_file_limit(struct store_fixture *f)
{
    struct store *s = NULL;
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    struct rlimit limit = {1 << 18, 1 << 18};
    bool existed;
    signal(SIGXFSZ, SIG_IGN);
    if (store_open(f->path, STORE_READ_WRITE, &s, &f->err) != GATE_OK ||
        setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return false;
    struct buf text;
    buf_init(&text, STORE_MAX_DOCUMENT);
    cJSON *run = sample_run(&big, 0);
    json_write(run, false, &text);
    bool refused = store_put_run(s, run, text.data, text.len, &existed, &f->err) == GATE_IO;
    cJSON_Delete(run);
    buf_release(&text);
    store_close(s);
    return refused;
}

static void test_write_that_fails_half_way(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
    assert_true(in_child(f, put_under_file_limit));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    store_close(s);
}

static bool die_in_a_transaction(struct store_fixture *f)
{
    struct store *s = NULL;
    bool ready = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_OK &&
                 sqlite3_exec(s->db,
                              "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                              " WHERE i < 20000)"
                              "INSERT INTO device (model, n_runs) SELECT 'model ' || i, 1 FROM n",
                              NULL, NULL, NULL) == SQLITE_OK;
    if (ready)
        kill(getpid(), SIGKILL);
    return true;
}

static void test_writer_that_is_killed(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
    assert_false(in_child(f, die_in_a_transaction));
    s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM device"), 2);
    assert_sound(f->path);
}

/* ---- several at a time ---- */

struct beside {
    struct store_fixture *f;
    struct store *writer;
    int n;
};

static bool write_beside(void *context, const struct store_run *row)
{
    (void)row;
    struct beside *b = context;
    if (b->n == 0)
        assert_int_equal(put(b->f, b->writer, sample_run(&plan, 5), NULL), GATE_OK);
    b->n++;
    return true;
}

static void test_reader_beside_writer(void **state)
{
    struct store_fixture *f = *state;
    struct beside b = {.f = f, .writer = open_store(f, STORE_READ_WRITE)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(f, b.writer, sample_run(&plan, i), NULL), GATE_OK);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    assert_int_equal(store_runs(reader, &any, start, 100, write_beside, &b, &f->err), GATE_OK);
    assert_int_equal(b.n, 3); /* a query sees the state it began with */
    struct seen *seen = calloc(1, sizeof(*seen));
    assert_int_equal(store_runs(reader, &any, start, 100, see_run, seen, &f->err), GATE_OK);
    assert_int_equal(seen->n, 4);

    assert_int_not_equal(sqlite3_exec(reader->db, "DELETE FROM run", NULL, NULL, NULL), SQLITE_OK);
    bool existed;
    cJSON *run = sample_run(&plan, 9);
    assert_int_equal(store_put_run(reader, run, "{}", 2, &existed, &f->err), GATE_INTERNAL);
    cJSON_Delete(run);
    store_close(reader);
    store_close(b.writer);
    free(seen);
}

#define N_WRITERS 4

/* All of them make the file, if they come first. */
static void test_writers_take_turns(void **state)
{
    struct store_fixture *f = *state;
    pid_t children[N_WRITERS];
    fflush(NULL);
    for (int w = 0; w < N_WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] > 0)
            continue;
        struct store *s = NULL;
        struct sample_plan mine = plan;
        mine.seed = 100 + (uint64_t)w;
        bool good = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_OK;
        for (int i = 0; i < 6 && good; i++)
            good = put(f, s, sample_run(&mine, i), NULL) == GATE_OK;
        store_close(s);
        if (!good)
            fprintf(stderr, "# writer %d: %s\n", w, f->err.message);
        _exit(good ? 0 : 1);
    }
    for (int w = 0; w < N_WRITERS; w++) {
        int status = 0;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 6 * N_WRITERS);
    assert_sound(f->path);
}

/* ---- files that are not ours ---- */

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void read_all(const char *path, struct buf *bytes)
{
    char chunk[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    buf_init(bytes, 1 << 26);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_append(bytes, chunk, n);
    fclose(file);
    assert_false(bytes->failed);
}

static int files_in(const char *folder)
{
    char command[400];
    int n = -1;
    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &n), 1);
    pclose(pipe);
    return n;
}

/* Neither mode opens the file, both say something with `words` in it, and it stays as it is. */
static void assert_refused(struct store_fixture *f, const char *words)
{
    struct buf before, after;
    int files = files_in(f->folder);
    read_all(f->path, &before);
    for (int mode = STORE_READ_ONLY; mode <= STORE_READ_WRITE; mode++) {
        struct store *s = NULL;
        assert_int_equal(store_open(f->path, (enum store_mode)mode, &s, &f->err), GATE_IO);
        assert_null(s);
        if (!strstr(f->err.message, words))
            fail_msg("no '%s' in: %s", words, f->err.message);
        assert_non_null(strstr(f->err.message, f->path));
    }
    read_all(f->path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_int_equal(files_in(f->folder), files);
    buf_release(&before);
    buf_release(&after);
}

static void test_newer_schema(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    store_close(s);
    execute(f->path, "PRAGMA user_version = 99");
    assert_refused(f, "schema version 99");
}

static void test_foreign_database(void **state)
{
    struct store_fixture *f = *state;
    execute(f->path, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    assert_refused(f, "another program");
    execute(f->path, "PRAGMA application_id = 252006674; PRAGMA journal_mode = WAL");
    assert_refused(f, "another program");
}

static void test_not_a_database(void **state)
{
    struct store_fixture *f = *state;
    char long_text[8192];
    memset(long_text, 'x', sizeof(long_text));
    write_file(f->path, "{}\n", 3);
    assert_refused(f, "not a database");
    write_file(f->path, long_text, sizeof(long_text));
    assert_refused(f, "not a database");
    memset(long_text, 0, sizeof(long_text));
    write_file(f->path, long_text, sizeof(long_text));
    assert_refused(f, "not a database");
}

static void test_truncated_file(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    struct buf whole;
    read_all(f->path, &whole);
    const size_t lengths[] = {50, 100, 4096, whole.len / 2, whole.len - 4096, whole.len - 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        write_file(f->path, whole.data, lengths[i]);
        assert_refused(f, "damaged");
    }
    write_file(f->path, whole.data, whole.len);
    s = open_store(f, STORE_READ_ONLY);
    store_close(s);
    buf_release(&whole);
}

/* A page of noise in the middle is an error, not a crash and not an answer. */
static void test_damaged_page(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    struct buf whole;
    read_all(f->path, &whole);
    memset(whole.data + 4096, 0x5a, whole.len - 4096);
    write_file(f->path, whole.data, whole.len);
    struct seen *seen = calloc(1, sizeof(*seen));
    enum gate_status status = store_open(f->path, STORE_READ_ONLY, &s, &f->err);
    if (status == GATE_OK) {
        status = store_runs(s, &any, start, 10, see_run, seen, &f->err);
        assert_int_equal(seen->n, 0);
        store_close(s);
    }
    assert_int_equal(status, GATE_IO);
    buf_release(&whole);
    free(seen);
}

static void test_missing_and_empty(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = NULL;
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "make run"));
    assert_int_equal(access(f->path, F_OK), -1);
    write_file(f->path, "", 0);
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "empty"));
    store_close(open_store(f, STORE_READ_WRITE));
    assert_int_equal(store_open("", STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_int_equal(store_open(f->folder, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "not a regular file"));
    assert_int_equal(store_open("/dev/null", STORE_READ_WRITE, &s, &f->err), GATE_IO);
    char long_path[9000];
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(store_open(long_path, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_null(s);
}

/* Names that mean something to SQLite are names of files to us. */
static void test_odd_names(void **state)
{
    struct store_fixture *f = *state;
    static const char *const names[] = {":memory:", "file:x.db?mode=memory", "a b%20c?#&.db",
                                        "file::memory:"};
    assert_int_equal(chdir(f->folder), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(f->path, sizeof(f->path), "%s", names[i]);
        store_close(open_store(f, STORE_READ_WRITE));
        assert_int_equal(access(names[i], F_OK), 0);
        store_close(open_store(f, STORE_READ_ONLY));
    }
    assert_int_equal(chdir("/"), 0);
}

/* ---- rights ---- */

/* The superuser gives up what lets it through, and then the modes hold for it too. */
static bool drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return geteuid() != 0 || syscall(SYS_capset, &header, none) == 0;
}

static bool refused_for_writing(struct store_fixture *f)
{
    struct store *s = NULL;
    if (!drop_rights())
        return false;
    bool refused = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_IO &&
                   strstr(f->err.message, f->path) != NULL;
    store_close(s);
    return refused;
}

static bool refused_for_reading(struct store_fixture *f)
{
    struct store *s = NULL;
    if (!drop_rights())
        return false;
    bool refused = store_open(f->path, STORE_READ_ONLY, &s, &f->err) == GATE_IO &&
                   strstr(f->err.message, "must be readable and writable") != NULL;
    store_close(s);
    return refused;
}

static void test_read_only_folder(void **state)
{
    struct store_fixture *f = *state;
    assert_int_equal(chmod(f->folder, 0555), 0);
    assert_true(in_child(f, refused_for_writing));
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(access(f->path, F_OK), -1);

    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->folder, 0555), 0);
    assert_true(in_child(f, refused_for_writing));
    assert_true(in_child(f, refused_for_reading));
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_sound(f->path);
}

/* ---- plans ---- */

/*
 * What may be walked from end to end: tables of the size of the list of cases, or of devices, and
 * the list of runs for an export.
 */
static bool may_scan(enum store_sql id, const char *detail)
{
    if (strncmp(detail, "SCAN i", 6) == 0) /* identity, one row */
        return id == SQL_STATE || id == SQL_NAME_COPY;
    if (strncmp(detail, "SCAN d", 6) == 0) /* device */
        return id == SQL_DEVICES;
    if (strcmp(detail, "SCAN token") == 0) /* few */
        return id == SQL_TOKENS;
    if (strcmp(detail, "SCAN t") == 0 || strncmp(detail, "SCAN t USING", 12) == 0) /* track */
        return id == SQL_TRACKS || id == SQL_LEADERBOARD || id == SQL_LEADERBOARD_OF_BRANCHES ||
               id == SQL_BESTS;
    if (strncmp(detail, "SCAN n VIRTUAL TABLE", 20) == 0 ||
        strcmp(detail, "SCAN (subquery-1)") == 0)
        return id == SQL_LEADERBOARD_OF_BRANCHES || id == SQL_NEXT_KEPT_BRANCH; /* few */
    if (strcmp(detail, "SCAN r") == 0 || strncmp(detail, "SCAN r ", 7) == 0)    /* run */
        return id == SQL_DOCUMENTS || id == SQL_CHECK_DOCUMENTS;
    if (strncmp(detail, "SCAN b USING INDEX calibration_by_time", 38) == 0)
        return id == SQL_CALIBRATIONS; /* as many as the limit */
    return false;
}

/* Those that may sort: what they sort is as many rows as there are cases, or one trend. */
static bool may_sort(enum store_sql id)
{
    return id == SQL_DEVICES || id == SQL_TREND || id == SQL_LEADERBOARD ||
           id == SQL_LEADERBOARD_OF_BRANCHES || id == SQL_BESTS || id == SQL_TOKENS;
}

static void test_query_plans(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    int n_steps = 0;
    for (int id = 0; id < STORE_SQL_COUNT; id++) {
        sqlite3_stmt *stmt = NULL;
        char sql[4096];
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", store_sql[id]);
        assert_int_equal(sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(stmt, 3);
            n_steps++;
            if (strstr(detail, "SCAN") && !may_scan((enum store_sql)id, detail))
                fail_msg("statement %d: %s", id, detail);
            if ((id == SQL_TRACKS || id == SQL_TRACKS_OF_DEVICE) && strstr(detail, "SEARCH a"))
                assert_non_null(
                    strstr(detail, "alert_open")); /* for each row: the open ones only */
            /* The wall is read from results; of points only the newest of the rows that it shows.
             */
            if (id >= SQL_TRACKS && id <= SQL_CASE_OF_BRANCH)
                assert_null(strstr(detail, "point"));
            if (id == SQL_NEWEST_POINTS)
                assert_string_equal(detail, "SEARCH point USING PRIMARY KEY (series_id=?)");
            assert_null(strstr(detail, "AUTOMATIC"));
            if (strstr(detail, "TEMP B-TREE") && !may_sort((enum store_sql)id))
                fail_msg("statement %d: %s", id, detail);
        }
        sqlite3_finalize(stmt);
    }
    assert_true(n_steps > 20);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample_fits_the_schema),
        TEST(test_round_trip),
        TEST(test_same_run_twice),
        TEST(test_run_paging),
        TEST(test_run_prefix),
        TEST(test_cases),
        TEST(test_trend),
        TEST(test_unverified_is_not_a_point),
        TEST(test_leaderboard),
        TEST(test_best_is_a_line_and_no_rival),
        TEST(test_devices),
        TEST(test_case_twice_stores_nothing),
        TEST(test_hostile_numbers),
        TEST(test_strings_are_data),
        TEST(test_disk_full),
        TEST(test_write_that_fails_half_way),
        TEST(test_writer_that_is_killed),
        TEST(test_reader_beside_writer),
        TEST(test_writers_take_turns),
        TEST(test_newer_schema),
        TEST(test_foreign_database),
        TEST(test_not_a_database),
        TEST(test_truncated_file),
        TEST(test_damaged_page),
        TEST(test_missing_and_empty),
        TEST(test_odd_names),
        TEST(test_read_only_folder),
        TEST(test_query_plans),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
