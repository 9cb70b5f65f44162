/* SPDX-License-Identifier: Apache-2.0 */
/* test_alerts.c: which steps of an alert's life there are, groups and causes of alerts. What a step
 * logs, lists, badges and webhooks are tested over HTTP. */
#include <stdio.h>
#include <string.h>

#include "gate/store/store_alert.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* A history of a few runs, and alerts that are put there by hand. */
static struct store *begin(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    return s;
}

static void raise_between(struct store_fixture *f, struct store *s, int64_t track,
                          enum alert_kind kind, int64_t before_run_id, int64_t run_id)
{
    static const struct store_series series = {"ours", "graph-abba-v1"};
    struct alert_row alert = {
        .kind = kind,
        .time_ms = 1000,
        .run_id = run_id,
        .before_run_id = before_run_id,
        .before = 100,
        .after = 110,
        .change = 0.1,
    };
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    if (store_raise_alert(s, track, &series, &alert, 5000, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
}

static void raise_alert(struct store_fixture *f, struct store *s, int64_t track,
                        enum alert_kind kind)
{
    raise_between(f, s, track, kind, 1, 2);
}

static enum alert_step step(struct store_fixture *f, struct store *s, int64_t id,
                            enum alert_state to, const char *reason)
{
    const struct alert_action action = {
        .has_state = true, .to = to, .who = "ada", .reason = reason, .now_ms = 6000};
    enum alert_step outcome;
    int64_t refused;
    char ids[24];
    snprintf(ids, sizeof ids, "[%lld]", (long long)id);
    if (store_act_on_alerts(s, ids, &action, &outcome, &refused, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    return outcome;
}

struct seen {
    size_t n;
    int64_t ids[40];
    enum alert_state state; /* of the last one, and what follows */
    int64_t closed_ms;
    char next[24];
};

static bool see(void *context, const struct store_row *row)
{
    struct seen *seen = context;
    assert_true(seen->n < 40);
    seen->ids[seen->n++] = store_integer_of(row, "id");
    assert_true(alert_state_of(store_text_of(row, "state"), &seen->state));
    seen->closed_ms = store_integer_of(row, "closed_ms");
    snprintf(seen->next, sizeof seen->next, "%lld",
             store_integer_of(row, "more") ? (long long)store_integer_of(row, "leader") : 0);
    return true;
}

static void ask(struct store *s, const char *file, const struct rows_value *values,
                store_cells_fn fn, void *context)
{
    struct call call = {.store = s};
    if (rows_select(&call, file, values, fn, context) != GATE_OK)
        fail_msg("%s", call.err.message);
}

static struct seen find(struct store *s, int64_t id)
{
    struct seen seen = {.n = 0};
    char ids[24];
    snprintf(ids, sizeof ids, "[%lld]", (long long)id);
    ask(s, "alerts.sql", (const struct rows_value[]){{"ids", ids}, {NULL, NULL}}, see, &seen);
    assert_int_equal(seen.n, 1);
    return seen;
}

/* From (row) to (column): new, acknowledged, accepted, fixed, ignored. */
static const bool allowed[ALERT_STATES][ALERT_STATES] = {
    {false, true, true, true, true},    {true, false, true, true, true},
    {true, false, false, false, false}, {true, false, false, false, false},
    {true, false, false, false, false},
};

TEST_WITHIN(only_steps_that_there_are_are_taken, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    int64_t id = 0;
    for (int from = 0; from < ALERT_STATES; from++) {
        for (int to = 0; to < ALERT_STATES; to++) {
            raise_alert(f, s, 1, ALERT_REGRESSION);
            id++;
            if (from != ALERT_NEW)
                assert_int_equal(step(f, s, id, (enum alert_state)from, "r"), STEP_DONE);
            assert_int_equal(step(f, s, id, (enum alert_state)to, "why"),
                             allowed[from][to] ? STEP_DONE : STEP_REFUSED);
            struct seen seen = find(s, id);
            assert_int_equal(seen.state, allowed[from][to] ? to : from);
            bool open = seen.state == ALERT_NEW || seen.state == ALERT_ACKNOWLEDGED;
            assert_int_equal(seen.closed_ms, open ? 0 : 6000);
        }
    }
    assert_int_equal(step(f, s, id + 1, ALERT_FIXED, ""), STEP_NO_ALERT);
    store_close(s);
    assert_sound(f->path);
}

/* Of the new ones, or of another filter, a page of groups or not. */
static void assert_page(struct store *s, const char *filter, const char *value, const char *groups,
                        const char *limit, const char *after, const int64_t *ids, size_t n,
                        const char *next)
{
    struct seen seen = {.n = 0};
    const struct rows_value values[] = {
        {filter, value}, {"groups", groups}, {"limit", limit}, {"after1", after}, {NULL, NULL}};
    ask(s, "alerts.sql", values, see, &seen);
    assert_int_equal(seen.n, n);
    assert_memory_equal(seen.ids, ids, n * sizeof *ids);
    assert_string_equal(seen.next, next);
}

#define IDS(...)                                                                                   \
    (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Two ranges of commits that end in one, and one that begins where another ends. The limit is one
 * more than the address has. */
TEST_WITHIN(a_group_is_a_range_of_commits, store_set_up, store_tear_down)
{
    static const int64_t between[][2] = {{1, 3}, {2, 3}, {1, 3}, {3, 4}, {2, 3}, {1, 3}};
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    for (int i = 0; i < 6; i++)
        raise_between(f, s, i % 3 + 1, ALERT_REGRESSION, between[i][0], between[i][1]);
    assert_page(s, "state", "new", "1", "101", NULL, IDS(6, 3, 1, 5, 2, 4), "0");
    assert_page(s, "state", "new", "1", "3", NULL, IDS(6, 3, 1), "6");
    assert_page(s, "state", "new", "1", "2", "6", IDS(5, 2), "5");
    /* The others' newest are on an earlier page. */
    assert_page(s, "state", "new", "1", "101", "5", IDS(4), "0");

    /* One that the filter holds back leads no group. */
    step(f, s, 6, ALERT_FIXED, "");
    assert_page(s, "state", "new", "1", "101", NULL, IDS(5, 2, 4, 3, 1), "0");
    store_close(s);
}

static bool causes_row(void *context, const struct store_row *row)
{
    *(int64_t *)context = store_integer_of(row, "causes");
    return false;
}

static int64_t causes(struct store *s, const char *device_model)
{
    int64_t n = -1;
    ask(s, "alert_counts.sql", (const struct rows_value[]){{"device", device_model}, {NULL, NULL}},
        causes_row, &n);
    return n;
}

/* A cause is a kind and a range of commits, whatever cases it slows; what is faster is none. */
TEST_WITHIN(causes_that_are_open, store_set_up, store_tear_down)
{
    static const struct {
        enum alert_kind kind;
        int64_t before, run, n;
    } raised[] = {
        {ALERT_REGRESSION, 1, 3, 1},  {ALERT_REGRESSION, 1, 3, 1}, {ALERT_REGRESSION, 2, 3, 2},
        {ALERT_WRONG, 1, 3, 3},       {ALERT_ERROR, 1, 3, 4},      {ALERT_REGRESSION, 3, 4, 5},
        {ALERT_IMPROVEMENT, 1, 2, 5},
    };
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    for (int i = 0; i < 7; i++) {
        raise_between(f, s, i % 3 + 1, raised[i].kind, raised[i].before, raised[i].run);
        assert_int_equal(causes(s, NULL), raised[i].n);
    }
    assert_int_equal(causes(s, "no-such"), 0);
    step(f, s, 1, ALERT_ACKNOWLEDGED, ""); /* still open, as is the other one of its cause */
    step(f, s, 2, ALERT_FIXED, "");
    assert_int_equal(causes(s, NULL), 5);
    step(f, s, 1, ALERT_FIXED, "");
    assert_int_equal(causes(s, NULL), 4);
    store_close(s);
}
