/* test_store_scope.c: what is newest on a branch, on the watched ones, and since when it is so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/store/store_private.h"
#include "server/watch/watch.h"
#include "server/store/watch_branches.h"
#include "unit/store_fixture.h"

static const struct watch_branches usual;
static const struct watch_branches releases = {2, {"main", "release-*"}};
static const struct store_scope all = {.watched = &usual};
static const struct store_scope watched = {.watched = &usual, .watched_only = true};

static struct store_scope of_branch(const char *name)
{
    return (struct store_scope){.watched = &usual, .branch = name};
}

/* A run of one case; its index names its commit and its uuid, its reason is the index too. */
static void put_run(struct store_fixture *f, struct store *s, int index, int64_t time_ms,
                    const char *branch, const char *verdict)
{
    static const struct sample_plan flat = {
        .seed = 5, .n_runs = 1000, .n_cases = 1, .n_devices = 1};
    cJSON *run = sample_run(&flat, index);
    char reason[32];
    snprintf(reason, sizeof(reason), "run %d", index);
    set_number(run, "time_ms", (double)time_ms);
    set_string(cJSON_GetObjectItem(run, "git"), "branch", branch);
    set_string(item_of(run, 0), "verdict", verdict);
    set_string(item_of(run, 0), "reason", reason);
    if (put(f, s, run, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

struct told {
    struct buf text;
};

static bool see_case(void *context, const struct store_case *row)
{
    struct told *t = context;
    char since[32] = "-";
    if (row->since.run_uuid[0] != '\0')
        snprintf(since, sizeof(since), "%lld", (long long)row->since.time_ms);
    buf_printf(&t->text, "%s %lld %s since %s, %d; ", row->reason, (long long)row->time_ms,
               row->branch, since, row->n_spark);
    return true;
}

/* The only case as a scope shows it. */
static void assert_case(struct store_fixture *f, struct store *s, struct store_scope scope,
                        const char *expected)
{
    struct told t;
    struct store_case_page page;
    const struct store_case_query query = {.scope = scope, .limit = 10};
    buf_init(&t.text, 4096);
    assert_int_equal(store_cases(s, &query, see_case, &t, &page, &f->err), GATE_OK);
    assert_string_equal(t.text.data, expected);
    assert_int_equal(page.total, expected[0] != '\0');
    buf_release(&t.text);
}

static void test_newest_of_each_branch(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_case(f, s, watched, "");
    put_run(f, s, 1, 100, "main", "pass");
    assert_case(f, s, watched, "run 1 100 main since -, 1; ");
    put_run(f, s, 2, 200, "mine", "improvement");
    assert_case(f, s, all, "run 2 200 mine since -, 2; ");
    assert_case(f, s, watched, "run 1 100 main since -, 1; ");
    assert_case(f, s, of_branch("mine"), "run 2 200 mine since -, 1; ");
    assert_case(f, s, of_branch("other"), "");
    assert_case(f, s, of_branch("' OR 1=1"), "");
    /* Late ones: newer than what main has, and older. */
    put_run(f, s, 3, 150, "main", "pass");
    assert_case(f, s, watched, "run 3 150 main since -, 2; ");
    put_run(f, s, 4, 50, "main", "pass");
    assert_case(f, s, watched, "run 3 150 main since -, 3; ");
    assert_case(f, s, all, "run 2 200 mine since -, 4; ");
    /* Back on main, then away again: each branch has its newest. */
    put_run(f, s, 5, 300, "main", "pass");
    assert_case(f, s, watched, "run 5 300 main since -, 4; ");
    assert_case(f, s, of_branch("mine"), "run 2 200 mine since -, 1; ");
    put_run(f, s, 6, 400, "mine", "pass");
    assert_case(f, s, watched, "run 5 300 main since -, 4; ");
    assert_case(f, s, of_branch("mine"), "run 6 400 mine since -, 2; ");
    put_run(f, s, 7, 350, "mine", "pass");
    assert_case(f, s, of_branch("mine"), "run 6 400 mine since -, 3; ");
    /* Of several watched branches the newest counts. */
    put_run(f, s, 8, 310, "release-1", "pass");
    const struct store_scope several = {.watched = &releases, .watched_only = true};
    assert_case(f, s, several, "run 8 310 release-1 since -, 5; ");
    assert_case(f, s, watched, "run 5 300 main since -, 4; ");
    store_close(s);
    assert_sound(f->path);
}

#define COLUMNS                                                                                    \
    "track_id, time_ms, run_id, verdict, reason, series_id, threshold, p50_ns, p50_lo_ns,"         \
    " p50_hi_ns, tflops, gbps, ceiling, best_p50_ns, ratio, ratio_lo, ratio_hi, mde, peer,"        \
    " peer_ratio, control_ns, rel_err"

static void test_result_that_is_kept_is_whole(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_run(f, s, 1, 100, "main", "pass");
    execute(f->path, "CREATE TABLE before AS SELECT id AS track_id, * FROM track");
    put_run(f, s, 2, 200, "mine", "pass");
    put_run(f, s, 1001, 100, "late", "pass");
    assert_int_equal(scalar(f->path,
                            "SELECT count(*) FROM (SELECT " COLUMNS " FROM before INTERSECT"
                            " SELECT " COLUMNS " FROM branch_result"
                            " WHERE branch = 'main')"),
                     1);
    /* One that came late has all of it too. */
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM branch_result WHERE branch = 'late'"
                                     " AND ratio_lo > 0 AND mde > 0 AND peer <> ''"
                                     " AND peer_ratio > 0 AND ceiling > 0 AND rel_err > 0"),
                     1);
    store_close(s);
}

static void test_since_when(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_run(f, s, 1, 100, "main", "regression");
    assert_case(f, s, watched, "run 1 100 main since 100, 1; ");
    put_run(f, s, 2, 200, "main", "pass");
    put_run(f, s, 3, 300, "main", "regression");
    put_run(f, s, 4, 400, "mine", "pass");       /* of another branch: ends nothing */
    put_run(f, s, 5, 500, "main", "no-verdict"); /* says nothing */
    put_run(f, s, 6, 600, "main", "regression");
    assert_case(f, s, watched, "run 6 600 main since 300, 5; ");
    assert_case(f, s, all, "run 6 600 main since 300, 6; ");
    /* A merge request that is red says nothing of the watched branches. */
    put_run(f, s, 7, 700, "main", "pass");
    put_run(f, s, 8, 800, "mine", "regression");
    assert_case(f, s, all, "run 8 800 mine since -, 8; ");
    assert_case(f, s, watched, "run 7 700 main since -, 6; ");
    assert_case(f, s, of_branch("mine"), "run 8 800 mine since 800, 2; ");
    /* Wrong ones are not timed: they are since the last one that was. */
    put_run(f, s, 9, 900, "main", "wrong");
    put_run(f, s, 10, 1000, "mine", "wrong");
    put_run(f, s, 11, 1100, "main", "wrong");
    assert_case(f, s, watched, "run 11 1100 main since 900, 6; ");
    store_close(s);
}

static bool see_device(void *context, const struct store_device *row)
{
    struct told *t = context;
    buf_printf(&t->text, "%s %lld of %lld; ", row->newest.branch, (long long)row->newest.time_ms,
               (long long)row->n_runs);
    return true;
}

static void assert_devices(struct store_fixture *f, struct store *s, struct store_scope scope,
                           const char *expected)
{
    struct told t;
    buf_init(&t.text, 4096);
    assert_int_equal(store_devices(s, &scope, see_device, &t, &f->err), GATE_OK);
    assert_string_equal(t.text.data, expected);
    buf_release(&t.text);
}

static bool see_run(void *context, const struct store_run *row)
{
    struct told *t = context;
    buf_printf(&t->text, "%lld ", (long long)row->time_ms);
    return true;
}

static void assert_runs(struct store_fixture *f, struct store *s, struct store_run_filter filter,
                        int64_t before_ms, int64_t limit, const char *expected)
{
    struct told t;
    const struct store_run_key after = {before_ms, ""};
    buf_init(&t.text, 4096);
    assert_int_equal(store_runs(s, &filter, after, limit, see_run, &t, &f->err), GATE_OK);
    assert_string_equal(t.text.data, expected);
    buf_release(&t.text);
}

static bool see_branch(void *context, const struct store_branch *row)
{
    struct told *t = context;
    buf_printf(&t->text, "%s %lld; ", row->name, (long long)row->time_ms);
    return true;
}

static void test_devices_runs_and_branches(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    const struct store_scope several = {.watched = &releases, .watched_only = true};
    const struct store_run_filter runs = {.scope = several};
    const struct store_run_filter on_gpu = {.scope = several, .device_model = "nvidia-h200"};
    const struct store_run_filter on_none = {.scope = several, .device_model = "none"};
    const struct store_run_filter red = {.scope = several, .verdict = "wrong"};
    assert_devices(f, s, all, "");
    assert_devices(f, s, watched, "");
    put_run(f, s, 1, 100, "main", "pass");
    put_run(f, s, 2, 200, "release-1", "pass");
    put_run(f, s, 3, 300, "mine", "pass");
    put_run(f, s, 4, 400, "main", "pass");
    put_run(f, s, 6, 600, "mine", "pass");
    put_run(f, s, 5, 500, "release-2", "pass");
    put_run(f, s, 7, 700, "mine", "pass");
    assert_devices(f, s, all, "mine 700 of 7; ");
    assert_devices(f, s, watched, "main 400 of 7; ");
    assert_devices(f, s, several, "release-2 500 of 7; ");
    assert_devices(f, s, of_branch("release-1"), "release-1 200 of 7; ");
    assert_devices(f, s, of_branch("none"), "");
    assert_runs(f, s, runs, INT64_MAX, 10, "500 400 200 100 ");
    assert_runs(f, s, runs, INT64_MAX, 2, "500 400 ");
    assert_runs(f, s, runs, 400, 10, "200 100 ");
    assert_runs(f, s, on_gpu, INT64_MAX, 3, "500 400 200 ");
    assert_runs(f, s, on_none, INT64_MAX, 3, "");
    assert_runs(f, s, red, INT64_MAX, 3, "");

    struct told t;
    buf_init(&t.text, 4096);
    assert_int_equal(store_newest_branches(s, 3, see_branch, &t, &f->err), GATE_OK);
    assert_string_equal(t.text.data, "mine 700; release-2 500; main 400; ");
    buf_release(&t.text);
    store_close(s);
}

/* Runs of a commit that are not watched do not count towards the page. */
static void test_watched_runs_of_a_commit(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_run(f, s, 1, 100, "main", "pass");
    put_run(f, s, 2, 200, "mine", "pass");
    put_run(f, s, 3, 300, "mine", "pass");
    execute(f->path, "UPDATE run SET revision_id = (SELECT min(id) FROM revision)");
    sqlite3_stmt *stmt = NULL;
    char commit[41];
    assert_int_equal(sqlite3_prepare_v2(s->db, "SELECT commit_id FROM revision ORDER BY id LIMIT 1",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    snprintf(commit, sizeof(commit), "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    const struct store_run_filter filter = {.scope = watched, .commit = commit};
    assert_runs(f, s, filter, INT64_MAX, 1, "100 ");
    assert_runs(f, s, (struct store_run_filter){.commit = commit}, INT64_MAX, 2, "300 200 ");
    store_close(s);
}

static bool see_leader(void *context, const struct store_leader *row)
{
    struct told *t = context;
    if (strcmp(row->provider, "ours") == 0)
        buf_printf(&t->text, "%.0f %s %lld", row->p50_ns, row->branch, (long long)row->time_ms);
    return true;
}

static void assert_leader(struct store_fixture *f, struct store *s, struct store_scope scope,
                          const char *expected)
{
    struct told t;
    const struct store_leader_key start = {0};
    buf_init(&t.text, 4096);
    assert_int_equal(store_leaderboard(s, &scope, NULL, start, 100, see_leader, &t, &f->err),
                     GATE_OK);
    assert_string_equal(t.text.data, expected);
    buf_release(&t.text);
}

static void put_time(struct store_fixture *f, struct store *s, int index, const char *branch,
                     double p50_ns)
{
    static const struct sample_plan flat = {
        .seed = 5, .n_runs = 1000, .n_cases = 1, .n_devices = 1};
    cJSON *run = sample_run(&flat, index);
    set_number(run, "time_ms", 100.0 * index);
    set_string(cJSON_GetObjectItem(run, "git"), "branch", branch);
    set_number(timing_of(run, 0, CANDIDATE), "p50_ns", p50_ns);
    if (put(f, s, run, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

/* The fastest of a branch, whoever else was faster before or after. */
static void test_leaders_of_branches(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    const struct store_scope several = {.watched = &releases, .watched_only = true};
    assert_leader(f, s, watched, "");
    put_time(f, s, 1, "main", 900);
    put_time(f, s, 2, "mine", 500);
    put_time(f, s, 3, "main", 800);
    put_time(f, s, 4, "main", 850);
    put_time(f, s, 5, "mine", 600);
    put_time(f, s, 6, "release-\"1\"", 700);
    assert_leader(f, s, all, "500 mine 200");
    assert_leader(f, s, watched, "800 main 300");
    assert_leader(f, s, several, "700 release-\"1\" 600");
    assert_leader(f, s, of_branch("mine"), "500 mine 200");
    assert_leader(f, s, of_branch("none"), "");
    store_close(s);
}

/* What is kept of branches that nobody watches does not grow for ever. */
static void test_old_branches_are_dropped(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    bool more = true;
    put_run(f, s, 1, 100, "main", "pass");
    for (int i = 2; i < 80; i++) {
        char name[16];
        snprintf(name, sizeof(name), "mr-%d", (i * 31) % 80); /* not in the order of names */
        put_run(f, s, i, 100 * i, name, "pass");
    }
    put_run(f, s, 80, 8000, "", "pass");
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM branch_result"), 79);
    while (more)
        assert_int_equal(watch_pending(s, &usual, 1000, &more, &f->err), GATE_OK);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM branch_result"), 65);
    assert_int_equal(scalar(f->path, "SELECT min(time_ms) FROM branch_result"
                                     " WHERE branch <> 'main'"),
                     1600);
    assert_int_equal(scalar(f->path, "SELECT count(DISTINCT branch) FROM branch_leader"), 66);
    assert_case(f, s, of_branch("main"), "run 1 100 main since -, 1; ");
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_newest_of_each_branch),
        TEST(test_result_that_is_kept_is_whole),
        TEST(test_since_when),
        TEST(test_devices_runs_and_branches),
        TEST(test_watched_runs_of_a_commit),
        TEST(test_leaders_of_branches),
        TEST(test_old_branches_are_dropped),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
