/* SPDX-License-Identifier: Apache-2.0 */
/* test_alerts.c: the steps of an alert's life, their log, lists and counts; marks of webhooks. */
#include <stdio.h>
#include <string.h>

#include "gate/store/store_alert.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define DEVICE "nvidia-h200"
#define MAX_LOG 2000

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
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    if (store_raise_alert(s, track, &series, &alert, 5000, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    assert_int_equal(store_batch_commit(s, &f->err), GATE_OK);
}

static void raise_alert(struct store_fixture *f, struct store *s, int64_t track,
                        enum alert_kind kind)
{
    raise_between(f, s, track, kind, 1, 2);
}

static enum alert_step act(struct store_fixture *f, struct store *s, const int64_t *ids, size_t n,
                           struct alert_action action, int64_t *refused)
{
    enum alert_step outcome;
    int64_t which;
    if (store_act_on_alerts(s, ids, n, &action, &outcome, &which, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    if (refused)
        *refused = which;
    return outcome;
}

static enum alert_step step(struct store_fixture *f, struct store *s, int64_t id,
                            enum alert_state to, const char *reason)
{
    const struct alert_action action = {
        .has_state = true, .to = to, .who = "ada", .reason = reason, .now_ms = 6000};
    return act(f, s, &id, 1, action, NULL);
}

struct seen {
    size_t n;
    int64_t ids[40];
    enum alert_state state; /* of the last one, and what follows */
    int64_t closed_ms, updated_ms;
    char reason[200], who[64], assignee[64], next[24];
};

static bool see(void *context, const struct store_row *row)
{
    struct seen *seen = context;
    assert_true(seen->n < 40);
    seen->ids[seen->n++] = store_integer_of(row, "id");
    assert_true(alert_state_of(store_text_of(row, "state"), &seen->state));
    seen->closed_ms = store_integer_of(row, "closed_ms");
    seen->updated_ms = store_integer_of(row, "updated_ms");
    snprintf(seen->reason, sizeof(seen->reason), "%s", store_text_of(row, "reason"));
    snprintf(seen->who, sizeof(seen->who), "%s", store_text_of(row, "who"));
    snprintf(seen->assignee, sizeof(seen->assignee), "%s", store_text_of(row, "assignee"));
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

static bool log_row(void *context, const struct store_row *row)
{
    snprintf(context, MAX_LOG, "%s", store_text_of(row, "log"));
    return false;
}

static void assert_log(struct store *s, const char *expected)
{
    static const struct rows_value first[] = {{"ids", "[1]"}, {NULL, NULL}};
    char log[MAX_LOG];
    ask(s, "alert_log.sql", first, log_row, log);
    assert_string_equal(log, expected);
}

#define STEP(ms, who, from, to, reason)                                                            \
    "{\"time_ms\":" #ms ",\"who\":\"" who "\",\"from\":" from ",\"to\":\"" to                      \
    "\",\"reason\":\"" reason "\"}"

TEST_WITHIN(each_step_is_logged, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    raise_alert(f, s, 1, ALERT_REGRESSION);
    step(f, s, 1, ALERT_ACKNOWLEDGED, "");
    step(f, s, 1, ALERT_ACKNOWLEDGED, "refused, so not logged");
    step(f, s, 1, ALERT_IGNORED, "it's \"noise\"; DROP TABLE alert");
    assert_log(s, "[" STEP(5000, "gate-server", "null", "new",
                           "") "," STEP(6000, "ada", "\"new\"", "acknowledged",
                                        "") "," STEP(6000, "ada", "\"acknowledged\"", "ignored",
                                                     "it's \\\"noise\\\"; DROP TABLE alert") "]");
    struct seen seen = find(s, 1);
    assert_string_equal(seen.reason, "it's \"noise\"; DROP TABLE alert");
    assert_string_equal(seen.who, "ada");
    store_close(s);
}

TEST_WITHIN(an_assignee_is_set_cleared_and_logged, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    struct alert_action action = {.assignee = "grace", .who = "ada", .reason = "", .now_ms = 7000};
    int64_t id = 1;
    raise_alert(f, s, 1, ALERT_REGRESSION);
    assert_int_equal(act(f, s, &id, 1, action, NULL), STEP_DONE);
    assert_int_equal(act(f, s, &id, 1, action, NULL), STEP_DONE); /* as it is: no event */
    assert_string_equal(find(s, 1).assignee, "grace");
    assert_int_equal(find(s, 1).state, ALERT_NEW);
    action = (struct alert_action){.has_state = true,
                                   .to = ALERT_IGNORED,
                                   .assignee = "",
                                   .who = "ada",
                                   .reason = "why",
                                   .now_ms = 8000};
    assert_int_equal(act(f, s, &id, 1, action, NULL), STEP_DONE);
    assert_string_equal(find(s, 1).assignee, "");
    assert_int_equal(find(s, 1).updated_ms, 8000);
    assert_log(s, "[" STEP(5000, "gate-server", "null", "new", "") "," STEP(
                      7000, "ada", "\"new\"", "new",
                      "assigned to grace") "," STEP(8000, "ada", "\"new\"", "ignored",
                                                    "why") "," STEP(8000, "ada", "\"ignored\"",
                                                                    "ignored",
                                                                    "assigned to nobody") "]");
    store_close(s);
    assert_sound(f->path);
}

TEST_WITHIN(a_selection_takes_its_step_whole_or_not, store_set_up, store_tear_down)
{
    static const int64_t ids[] = {3, 1, 3}, more[] = {1, 2, 9};
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    struct alert_action action = {.has_state = true,
                                  .to = ALERT_ACKNOWLEDGED,
                                  .assignee = "grace",
                                  .who = "ada",
                                  .reason = "one cause",
                                  .now_ms = 7000};
    int64_t refused;
    for (int i = 0; i < 3; i++)
        raise_alert(f, s, i + 1, ALERT_REGRESSION);
    assert_int_equal(act(f, s, more, 3, action, &refused), STEP_NO_ALERT);
    assert_int_equal(refused, 9);
    assert_int_equal(find(s, 1).state, ALERT_NEW);
    assert_int_equal(act(f, s, ids, 3, action, NULL), STEP_DONE);
    assert_int_equal(find(s, 3).state, ALERT_ACKNOWLEDGED);
    assert_string_equal(find(s, 1).reason, "one cause");
    assert_string_equal(find(s, 1).assignee, "grace");
    /* The second one can take it, the first cannot. */
    assert_int_equal(act(f, s, more, 2, action, &refused), STEP_REFUSED);
    assert_int_equal(refused, 1);
    assert_int_equal(find(s, 2).state, ALERT_NEW);
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

TEST_WITHIN(lists_are_filtered_and_paged, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    for (int i = 0; i < 9; i++)
        raise_alert(f, s, i % 3 + 1, (enum alert_kind)(i % 2));
    step(f, s, 4, ALERT_FIXED, "");
    step(f, s, 5, ALERT_FIXED, "");
    assert_page(s, "state", NULL, "0", "5", NULL, IDS(9, 8, 7, 6), "6");
    assert_page(s, "state", NULL, "0", "101", "6", IDS(5, 4, 3, 2, 1), "0");
    assert_page(s, "state", "fixed", "0", "101", NULL, IDS(5, 4), "0");
    assert_page(s, "kind", "improvement", "0", "101", NULL, IDS(8, 6, 4, 2), "0");
    assert_page(s, "device", "no-such", "0", "101", NULL, NULL, 0, "");
    store_close(s);
}

/* Whoever keeps an answer by its tag has to see that a step was taken. */
TEST_WITHIN(a_step_is_another_state_of_the_store, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    struct store_state before, raised, stepped, refused;
    store_state(s, &before, &f->err);
    raise_alert(f, s, 1, ALERT_REGRESSION);
    store_state(s, &raised, &f->err);
    step(f, s, 1, ALERT_FIXED, "");
    store_state(s, &stepped, &f->err);
    step(f, s, 1, ALERT_FIXED, "");
    store_state(s, &refused, &f->err);
    assert_string_not_equal(before.text, raised.text);
    assert_string_not_equal(raised.text, stepped.text);
    assert_string_equal(stepped.text, refused.text);
    store_close(s);
}

static bool mark_row(void *context, const struct store_row *row)
{
    int64_t *mark = context;
    mark[0] = store_integer_of(row, "event_id");
    mark[1] = store_integer_of(row, "newest_event");
    return false;
}

static void assert_mark(struct store *s, const char *target, int64_t event, int64_t newest)
{
    int64_t mark[2];
    ask(s, "webhook.sql", (const struct rows_value[]){{"target", target}, {NULL, NULL}}, mark_row,
        mark);
    assert_int_equal(mark[0], event);
    assert_int_equal(mark[1], newest);
}

TEST_WITHIN(marks_of_webhooks_are_kept_by_target, store_set_up, store_tear_down)
{
    static const struct {
        const char *target;
        int64_t event;
    } marks[] = {{"a", 7}, {"b", 1}, {"a", 8}};
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    assert_mark(s, "a", -1, 0);
    raise_alert(f, s, 1, ALERT_REGRESSION);
    assert_mark(s, "a", -1, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_put_mark(s, "webhook", marks[i].target,
                                        store_integer("", marks[i].event), &f->err),
                         GATE_OK);
    assert_mark(s, "a", 8, 1);
    assert_mark(s, "b", 1, 1);
    store_close(s);
}

struct badge_facts {
    char verdict[16];
    double p50_ns;
};

static bool badge_row(void *context, const struct store_row *row)
{
    struct badge_facts *facts = context;
    snprintf(facts->verdict, sizeof facts->verdict, "%s", store_text_of(row, "verdict"));
    facts->p50_ns = store_cell_of(row, "p50_ns")->real;
    return false;
}

static struct badge_facts badge(struct store *s, const char *branch, const char *case_id)
{
    struct badge_facts facts = {.p50_ns = 0};
    const struct rows_value values[] = {
        {"main_branch", branch}, {"device", DEVICE}, {"case", case_id}, {NULL, NULL}};
    ask(s, "badge.sql", values, badge_row, &facts);
    return facts;
}

/* A newer run of another branch, of which the machine spoiled all; its first case takes a second.
 */
static void put_spoilt(struct store_fixture *f, struct store *s, const char *branch)
{
    const struct sample_plan longer = {plan.seed, plan.n_runs + 2, plan.n_cases, plan.n_devices};
    cJSON *run = sample_run(&longer, plan.n_runs), *item;
    set_string(cJSON_GetObjectItem(run, "git"), "branch", branch);
    set_string(run, "verdict", "environment");
    cJSON_ArrayForEach (item, cJSON_GetObjectItem(run, "cases")) {
        set_string(item, "verdict", "environment");
    }
    set_number(timing_of(run, 0, CANDIDATE), "p50_ns", 1e9);
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
}

TEST_WITHIN(badges_are_of_one_branch, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state);
    cJSON *run = sample_run(&plan, 0);
    char id[200];
    snprintf(id, sizeof(id), "%s", cJSON_GetObjectItem(item_of(run, 0), "id")->valuestring);
    cJSON_Delete(run);
    struct badge_facts device = badge(s, "main", NULL), one = badge(s, "main", id);
    assert_string_not_equal(device.verdict, "environment");
    assert_string_not_equal(one.verdict, "environment");
    assert_true(one.p50_ns > 0 && one.p50_ns < 1e8);

    put_spoilt(f, s, "mr/1");
    assert_string_equal(badge(s, "main", NULL).verdict, device.verdict);
    assert_string_equal(badge(s, "main", id).verdict, one.verdict);
    assert_true(badge(s, "main", id).p50_ns == one.p50_ns);
    assert_string_equal(badge(s, "mr/1", NULL).verdict, "environment");
    assert_string_equal(badge(s, "mr/1", id).verdict, "environment");
    assert_true(badge(s, "mr/1", id).p50_ns == 1e9);
    assert_string_equal(badge(s, "no-such", NULL).verdict, "");
    assert_string_equal(badge(s, "no-such", id).verdict, "");
    store_close(s);
}
