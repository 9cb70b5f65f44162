/* test_store_trend.c: which rows a trend has, and what is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/store/store_private.h"
#include "server/store/store_trend.h"
#include "unit/store_fixture.h"

#define GPU "nvidia-h200"
#define CASE "attention_fwd/fp16/b8-h16-s512-d64/causal"

static void test_what_a_point_does_not_have(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = run_at(1, 100);
    cJSON *timing = timing_of(run, 0, CANDIDATE);
    cJSON_DeleteItemFromObject(timing, "registers");
    cJSON_DeleteItemFromObject(timing, "shared_bytes");
    set_number(timing, "sm_clock_mhz", 0);
    cJSON_DeleteItemFromObject(item_of(run, 0), "processes");
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(arm_of(run, 0, CANDIDATE), "verify"), "rel_fro",
                              cJSON_CreateNull());
    must_put(f, s, run);
    run = run_at(2, 200);
    set_number(timing_of(run, 0, CANDIDATE), "registers", 0);
    set_number(timing_of(run, 0, CANDIDATE), "spill_bytes", 16);
    must_put(f, s, run);
    struct store_trend_query query = {.case_id = CASE,
                                      .device_model = GPU,
                                      .provider = "ours",
                                      .to_ms = INT64_MAX,
                                      .points = 100};
    struct store_trend_result trend;
    assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
    const struct store_trend_details *row = trend.series[0].details;
    assert_true(row[0].registers == -1 && row[0].shared_bytes == -1 && row[0].spill_bytes == 0);
    assert_true(row[0].control_ps == 0 && row[0].sm_clock_khz == 0 && row[0].rel_err == -1);
    assert_true(row[1].registers == 0 && row[1].spill_bytes == 16 && row[1].control_ps > 0);
    assert_true(trend.series[0].is_candidate && trend.threshold == 0.02);
    store_trend_release(&trend);

    cJSON *bad = run_at(3, 300);
    set_number(timing_of(bad, 0, CANDIDATE), "registers", 1.5);
    assert_int_equal(put(f, s, bad, NULL), GATE_IO);
    store_close(s);
}

/* A range ends with its last time, whatever is read of the rows and however. */
static void test_end_of_range(void **state)
{
    static const struct {
        bool levels_only, by_commit, raw;
        const char *branch;
    } ways[] = {
        {true, false, false, NULL},  {true, false, false, "main"}, {true, true, false, NULL},
        {false, false, false, NULL}, {false, false, true, NULL},
    };
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    for (int i = 0; i < 6; i++) {
        cJSON *run = run_at(i, 100 * i + 100);
        set_string(cJSON_GetObjectItem(run, "git"), "branch", "main");
        must_put(f, s, run);
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        for (int64_t points = 3; points <= 100; points += 97) {
            struct store_trend_query query = {.case_id = CASE,
                                              .device_model = GPU,
                                              .provider = "ours",
                                              .branch = ways[i].branch,
                                              .from_ms = 200,
                                              .to_ms = 400,
                                              .by_commit = ways[i].by_commit,
                                              .raw = ways[i].raw,
                                              .levels_only = ways[i].levels_only,
                                              .points = points};
            struct store_trend_result trend;
            assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
            assert_true(trend.total == 3 && trend.series[0].n == 3 && !trend.bucketed);
            assert_int_equal(trend.series[0].rows[0].time_ms, 200);
            assert_int_equal(trend.series[0].rows[2].time_ms, 400);
            store_trend_release(&trend);
        }
    }
    store_close(s);
}

/* A series is drawn as what its newest point is, also where that one is out of the range. */
static void test_role_of_a_series(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store_trend_query query = {
        .case_id = CASE, .device_model = GPU, .to_ms = 150, .points = 100};
    struct store_trend_result trend;
    must_put(f, s, run_at(1, 100));
    assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
    for (size_t i = 0; i < trend.n_series; i++)
        assert_int_equal(trend.series[i].is_candidate,
                         strcmp(trend.series[i].provider, "ours") == 0);
    assert_true(trend.n_series > 1);
    store_trend_release(&trend);

    must_put(f, s, run_at(2, 200));
    execute(f->path, "UPDATE point SET role = 1 - role WHERE time_ms = 200");
    for (unsigned i = 0; i < 2; i++) {
        query.levels_only = i == 1;
        query.points = i == 0 ? 100 : 1; /* rows and buckets */
        assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
        for (size_t k = 0; k < trend.n_series; k++)
            assert_int_equal(trend.series[k].is_candidate,
                             strcmp(trend.series[k].provider, "ours") != 0);
        store_trend_release(&trend);
    }
    store_close(s);
}

/* Runs of one millisecond are apart on pages too, and each comes once. */
static void test_pages_of_one_time(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    for (int i = 0; i < 4; i++)
        must_put(f, s, run_at(i, i < 3 ? 100 : 101));
    struct store_trend_query query = {.case_id = CASE,
                                      .device_model = GPU,
                                      .provider = "ours",
                                      .to_ms = INT64_MAX,
                                      .raw = true,
                                      .points = 1};
    char next[80];
    for (int i = 0; i < 5; i++) {
        struct store_trend_result trend;
        assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
        assert_int_equal(trend.total, 4);
        assert_int_equal(trend.series[0].n, i < 4);
        if (i < 4) {
            cJSON *run = run_at(i, 0);
            assert_string_equal(trend.series[0].details[0].run, json_string(run, "uuid", ""));
            cJSON_Delete(run);
        }
        snprintf(next, sizeof(next), "%s", trend.next);
        query.after = next;
        store_trend_release(&trend);
    }
    assert_string_equal(next, "");
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_point_does_not_have),
        TEST(test_end_of_range),
        TEST(test_role_of_a_series),
        TEST(test_pages_of_one_time),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
