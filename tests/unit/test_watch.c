/* test_watch.c: runs come in, change points and alerts come up, move, close and open again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/store_alert.h"
#include "server/store_change.h"
#include "server/store_best.h"
#include "server/watch.h"
#include "unit/noise.h"
#include "unit/store_fixture.h"

#define CASE "attention_fwd/fp16/b8-h16-s512-d64/causal"
#define DEVICE "nvidia-h200"
#define MAX_ALERTS 20

static const struct sample_plan long_plan = {
    .seed = 7, .n_runs = 100000, .n_cases = 1, .n_devices = 1};

/* A run to be: what a test changes of it, 0 for what it does not. */
struct spec {
    int index; /* place in time */
    double p50_ns, control_ns, rel_err, best_ns;
    int64_t best_ms;
    const char *epoch, *contract;
};

static void put_run(struct store_fixture *f, struct store *s, const struct spec *spec)
{
    cJSON *document = sample_run(&long_plan, spec->index);
    cJSON *item = item_of(document, 0), *process = NULL;
    cJSON *best = cJSON_GetObjectItemCaseSensitive(item, "best");
    cJSON *verify = cJSON_GetObjectItemCaseSensitive(arm_of(document, 0, CANDIDATE), "verify");
    set_number(timing_of(document, 0, CANDIDATE), "p50_ns", spec->p50_ns);
    cJSON_ArrayForEach (process, cJSON_GetObjectItemCaseSensitive(item, "processes"))
        set_number(process, "control_ns", spec->control_ns);
    if (spec->rel_err > 0)
        set_number(verify, "rel_fro", spec->rel_err);
    if (spec->best_ns > 0)
        set_number(best, "p50_ns", spec->best_ns);
    if (spec->best_ms > 0)
        set_number(best, "time_ms", (double)spec->best_ms);
    if (spec->epoch)
        set_string(document, "epoch", spec->epoch);
    if (spec->contract)
        set_string(document, "contract", spec->contract);
    if (put(f, s, document, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

static void watch(struct store_fixture *f, struct store *s)
{
    bool more = true;
    while (more) {
        if (watch_pending(s, 7, &more, &f->err) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
}

/* A history in the making. */
struct history {
    struct store_fixture *f;
    struct store *s;
    struct rng rng;
    struct spec spec; /* of the next run */
    double sd;
    bool watched; /* after each run */
};

static struct history begin(void **state)
{
    struct history h = {.f = *state, .sd = 0.002, .watched = true};
    h.s = open_store(h.f, STORE_READ_WRITE);
    h.spec = (struct spec){.p50_ns = 20000, .control_ns = 1e6};
    rng_seed(&h.rng, 5);
    return h;
}

/* n runs around a level. */
static void add(struct history *h, int n, double p50_ns)
{
    for (int i = 0; i < n; i++) {
        h->spec.p50_ns = p50_ns * exp(h->sd * rng_normal(&h->rng));
        put_run(h->f, h->s, &h->spec);
        h->spec.index++;
        if (h->watched)
            watch(h->f, h->s);
    }
}

/* What is on record. */
struct seen {
    struct store_alert alert[MAX_ALERTS];
    size_t n;
    char reason[MAX_ALERTS][200];
};

static bool see_alert(void *context, const struct store_alert *row)
{
    struct seen *seen = context;
    assert_true(seen->n < MAX_ALERTS);
    assert_string_equal(row->case_id, CASE);
    assert_string_equal(row->device_model, DEVICE);
    snprintf(seen->reason[seen->n], sizeof(seen->reason[0]), "%s", row->reason);
    seen->alert[seen->n] = *row;
    seen->alert[seen->n].reason = seen->reason[seen->n];
    seen->n++;
    return true;
}

static const struct alert_filter any = {.state = -1, .kind = -1};

/* Newest first. */
static struct seen alerts(const struct history *h)
{
    struct seen seen = {.n = 0};
    if (store_alerts(h->s, &any, INT64_MAX, MAX_ALERTS, see_alert, &seen, &h->f->err) != GATE_OK)
        fail_msg("%s", h->f->err.message);
    return seen;
}

static bool count_change(void *context, const struct store_change *row)
{
    (void)row;
    (*(size_t *)context)++;
    return true;
}

static size_t n_changes(const struct history *h)
{
    size_t n = 0;
    int64_t track;
    assert_int_equal(store_track(h->s, CASE, DEVICE, &track, &h->f->err), GATE_OK);
    if (store_change_points(h->s, track, count_change, &n, &h->f->err) != GATE_OK)
        fail_msg("%s", h->f->err.message);
    return n;
}

/* The place of an alert among the runs. */
static int64_t index_of(const struct store_alert *a)
{
    cJSON *document = sample_run(&long_plan, 0);
    int64_t first = (int64_t)cJSON_GetObjectItem(document, "time_ms")->valuedouble;
    cJSON_Delete(document);
    return (a->time_ms - first) / 21600000;
}

static void assert_state(const struct history *h, size_t n, enum alert_kind kind,
                         enum alert_state state)
{
    struct seen seen = alerts(h);
    if (seen.n != n)
        fail_msg("%zu alerts, not %zu", seen.n, n);
    if (n > 0) {
        assert_int_equal(seen.alert[0].kind, kind);
        assert_int_equal(seen.alert[0].state, state);
    }
}

static void end(struct history *h)
{
    bool more = true;
    assert_int_equal(watch_pending(h->s, 1, &more, &h->f->err), GATE_OK);
    assert_false(more);
    store_close(h->s);
    assert_sound(h->f->path);
}

static void a_regression_is_one_alert(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    assert_state(&h, 0, 0, 0);
    add(&h, 60, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_int_equal(index_of(&seen.alert[0]), 60);
    assert_true(fabs(seen.alert[0].change - 0.05) < 0.003);
    assert_true(fabs(seen.alert[0].before - 20000) < 60);
    assert_true(fabs(seen.alert[0].after - 21000) < 60);
    assert_int_equal(seen.alert[0].closed_ms, 0);
    assert_int_equal(n_changes(&h), 1);
    end(&h);
}

static void an_improvement_is_an_alert_of_its_kind(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 30, 18000);
    assert_state(&h, 1, ALERT_IMPROVEMENT, ALERT_NEW);
    end(&h);
}

/* One chunk, one run at a time, or all at once: the same. */
static void the_size_of_the_chunks_changes_nothing(void **state)
{
    struct history h = begin(state);
    h.watched = false;
    add(&h, 60, 20000);
    add(&h, 12, 21000);
    add(&h, 60, 20000);
    add(&h, 200, 19000);
    watch(h.f, h.s);
    struct seen seen = alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(index_of(&seen.alert[1]), 60);
    assert_int_equal(seen.alert[1].state, ALERT_FIXED);
    assert_int_equal(index_of(&seen.alert[0]), 132);
    assert_int_equal(seen.alert[0].kind, ALERT_IMPROVEMENT);
    assert_int_equal(n_changes(&h), 3);
    end(&h);
}

static void a_level_that_returns_fixes_the_alert(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 40, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    add(&h, 3, 20000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    add(&h, 5, 20000);
    /* The return is no alert of its own. */
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    struct seen seen = alerts(&h);
    assert_string_equal(seen.reason[0], "the level returned");
    assert_true(seen.alert[0].closed_ms > 0);
    assert_int_equal(n_changes(&h), 2);
    end(&h);
}

static void half_a_return_fixes_nothing(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 40, 22000);
    add(&h, 40, 21000);
    struct seen seen = alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.alert[1].state, ALERT_NEW);
    assert_int_equal(seen.alert[0].kind, ALERT_IMPROVEMENT);
    end(&h);
}

/* An improvement that is lost closes its alert, and is a regression to tell of. */
static void a_lost_improvement_is_a_regression(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 40, 18000);
    add(&h, 40, 20000);
    struct seen seen = alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.alert[1].kind, ALERT_IMPROVEMENT);
    assert_int_equal(seen.alert[1].state, ALERT_FIXED);
    assert_int_equal(seen.alert[0].kind, ALERT_REGRESSION);
    assert_int_equal(seen.alert[0].state, ALERT_NEW);
    end(&h);
}

/*
 * The step is raised after a few runs; what makes it look like a second mode takes it back, though
 * not at once, and the runs that follow bring it up again: one alert all the time.
 */
static void a_young_alert_vanishes_and_comes_back(void **state)
{
    struct history h = begin(state);
    h.sd = 0.0005;
    add(&h, 60, 20000);
    add(&h, 6, 20400);
    for (int i = 0; i < 15; i++) {
        assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
        add(&h, 1, i % 2 ? 20400 : 20000);
    }
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    assert_string_equal(alerts(&h).reason[0], "later runs do not bear it out");
    assert_int_equal(n_changes(&h), 0);
    add(&h, 40, 20400);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_int_equal(n_changes(&h), 1);
    assert_in_range(index_of(&seen.alert[0]), 60, 80);
    end(&h);
}

static void what_the_control_does_too_is_no_change(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    h.spec.control_ns = 1.05e6;
    add(&h, 60, 21000);
    assert_state(&h, 0, 0, 0);
    /* The candidate stands still while the control gets faster: slower by what it should be. */
    h.spec.control_ns = 1.0e6;
    add(&h, 60, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    end(&h);
}

static void without_a_control_times_are_compared(void **state)
{
    struct history h = begin(state);
    h.spec.control_ns = 0;
    add(&h, 60, 20000);
    add(&h, 10, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    end(&h);
}

/* Whoever read between a run and the look at it must not keep what he read. */
static void what_a_look_moves_is_another_state(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 12, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct store_state before, after;
    for (int i = 0; i < 5; i++) {
        h.watched = false;
        add(&h, 1, 21000);
        store_state(h.s, &before, &h.f->err);
        double was = alerts(&h).alert[0].after;
        watch(h.f, h.s);
        store_state(h.s, &after, &h.f->err);
        assert_true(alerts(&h).alert[0].after != was);
        assert_string_not_equal(before.text, after.text);
    }
    end(&h);
}

static void epochs_and_contracts_are_borders(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    h.spec.epoch = "581.1/13.0/700 W";
    add(&h, 60, 22000);
    assert_state(&h, 0, 0, 0);
    h.spec.contract = "graph-abba-v2";
    add(&h, 60, 25000);
    assert_state(&h, 0, 0, 0);
    add(&h, 10, 26000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    end(&h);
}

/* Two runners of one model, each with a driver of its own. */
static void epochs_that_take_turns_are_compared_each_with_itself(void **state)
{
    struct history h = begin(state);
    for (int i = 0; i < 160; i++) {
        bool is_old = i % 2 == 0;
        h.spec.epoch = is_old ? "570.1/12.8/700 W" : "581.1/13.0/700 W";
        /* They are 5 % apart; from the 100th run on both are 2 % slower. */
        add(&h, 1, (is_old ? 20000 : 21000) * (i < 100 ? 1 : 1.02));
        if (i == 99)
            assert_state(&h, 0, 0, 0);
    }
    struct seen seen = alerts(&h);
    assert_int_equal(seen.n, 2);
    for (size_t i = 0; i < seen.n; i++) {
        assert_int_equal(seen.alert[i].kind, ALERT_REGRESSION);
        assert_int_equal(seen.alert[i].state, ALERT_NEW);
        assert_true(fabs(seen.alert[i].change - 0.02) < 0.003);
        assert_in_range(index_of(&seen.alert[i]), 100, 101);
    }
    /* The level returns for one of them only. */
    for (int i = 0; i < 40; i++) {
        h.spec.epoch = i % 2 == 0 ? "570.1/12.8/700 W" : "581.1/13.0/700 W";
        add(&h, 1, i % 2 == 0 ? 20000 : 21420);
    }
    seen = alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal((seen.alert[0].state == ALERT_FIXED) + (seen.alert[1].state == ALERT_FIXED),
                     1);
    end(&h);
}

static void a_switch_back_goes_on_with_the_old_epoch(void **state)
{
    struct history h = begin(state);
    h.spec.epoch = "570.1/12.8/700 W";
    add(&h, 40, 20000);
    h.spec.epoch = "581.1/13.0/700 W";
    add(&h, 40, 22000);
    h.spec.epoch = "570.1/12.8/700 W";
    add(&h, 10, 20600);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_int_equal(index_of(&seen.alert[0]), 80);
    assert_true(fabs(seen.alert[0].change - 0.03) < 0.003);
    end(&h);
}

/* What was young when the driver changed stays on record, and its alert open. */
static void a_border_does_not_take_a_young_change_back(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 8, 21000);
    h.spec.epoch = "581.1/13.0/700 W";
    add(&h, 60, 19000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(n_changes(&h), 1);
    end(&h);
}

static void a_late_run_takes_its_place(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    /* Three runs of the new level are too few; the two that come late make them five. */
    h.spec.index = 62;
    add(&h, 3, 21000);
    assert_state(&h, 0, 0, 0);
    h.spec.index = 60;
    add(&h, 2, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_int_equal(index_of(&seen.alert[0]), 60);
    end(&h);
}

/* A young change point that turns out to have been earlier takes its alert along. */
static void an_alert_moves_with_its_change_point(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    h.spec.index = 64;
    add(&h, 6, 21000);
    struct seen seen = alerts(&h);
    assert_int_equal(seen.n, 1);
    assert_int_equal(index_of(&seen.alert[0]), 64);
    for (int i = 63; i >= 60; i--) {
        h.spec.index = i;
        add(&h, 1, 21000);
    }
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    seen = alerts(&h);
    assert_int_equal(index_of(&seen.alert[0]), 60);
    assert_int_equal(n_changes(&h), 1);
    end(&h);
}

/* So slow that no 150 runs show it: the start of the segment is still known. */
static void a_slow_drift_is_an_alert(void **state)
{
    struct history h = begin(state);
    for (int i = 0; i < 400; i++)
        add(&h, 1, 20000 * (1 + 0.02 * i / 400));
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_true(seen.alert[0].change >= 0.01);
    end(&h);
}

/* Numbers at the ends of what a document may hold: whatever is made of them, the watch goes on. */
static void extreme_numbers_do_not_stop_the_watch(void **state)
{
    struct history h = begin(state);
    h.sd = 0;
    h.spec.rel_err = 1e-300;
    add(&h, 30, 8e15);
    h.spec.control_ns = 8e15;
    h.spec.rel_err = 1e305;
    add(&h, 30, 0.001);
    h.spec.control_ns = 0.001;
    add(&h, 30, 8e15);
    h.spec.control_ns = 0;
    add(&h, 30, 0.001);
    assert_true(alerts(&h).n >= 2);
    end(&h);
}

/* A rule of the tables that a look breaks costs that look, and not those at other series. */
static void what_the_tables_refuse_is_left_out(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 60, 21000);
    store_close(h.s);
    execute(h.f->path, "CREATE UNIQUE INDEX one_of_a_kind ON alert (kind)");
    h.s = open_store(h.f, STORE_READ_WRITE);
    add(&h, 60, 22000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(n_changes(&h), 1); /* nor does its change point stay */
    h.spec.contract = "graph-abba-v2";  /* another series */
    h.watched = false;
    add(&h, 60, 20000);
    add(&h, 60, 18000);
    watch(h.f, h.s);
    assert_state(&h, 2, ALERT_IMPROVEMENT, ALERT_NEW);
    end(&h);
}

static void a_run_of_long_ago_changes_nothing(void **state)
{
    struct history h = begin(state);
    h.spec.index = 100;
    add(&h, 200, 20000);
    h.spec.index = 0;
    add(&h, 50, 30000);
    assert_state(&h, 0, 0, 0);
    end(&h);
}

static void an_error_that_jumps_is_an_alert(void **state)
{
    struct history h = begin(state);
    h.spec.rel_err = 3e-5;
    add(&h, 10, 20000);
    h.spec.rel_err = 2.5e-4;
    add(&h, 5, 20000);
    assert_state(&h, 0, 0, 0); /* eight times is not ten */
    h.spec.rel_err = 5e-4;
    add(&h, 3, 20000);
    assert_state(&h, 1, ALERT_ERROR, ALERT_NEW);
    struct seen seen = alerts(&h);
    assert_true(fabs(seen.alert[0].before - 3e-5) < 1e-9);
    assert_true(fabs(seen.alert[0].after - 5e-4) < 1e-9);
    h.spec.rel_err = 3e-5;
    add(&h, 1, 20000);
    assert_state(&h, 1, ALERT_ERROR, ALERT_FIXED);
    end(&h);
}

static void step_to(const struct history *h, int64_t id, enum alert_state to,
                    enum alert_step expected)
{
    enum alert_step step;
    assert_int_equal(store_step_alert(h->s, id, to, "ada", "because", 1000, &step, &h->f->err),
                     GATE_OK);
    assert_int_equal(step, expected);
}

static void an_ignored_error_does_not_come_up_again(void **state)
{
    struct history h = begin(state);
    h.spec.rel_err = 3e-5;
    add(&h, 10, 20000);
    h.spec.rel_err = 5e-4;
    add(&h, 1, 20000);
    step_to(&h, 1, ALERT_IGNORED, STEP_DONE);
    add(&h, 3, 20000);
    assert_state(&h, 1, ALERT_ERROR, ALERT_IGNORED);
    end(&h);
}

static void an_accepted_best_accepts_the_alert(void **state)
{
    struct history h = begin(state);
    h.spec.best_ns = 20000;
    add(&h, 60, 20000);
    add(&h, 10, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    h.spec.best_ns = 21000;
    h.spec.best_ms = 1760000000000;
    add(&h, 1, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    assert_non_null(strstr(alerts(&h).reason[0], "21.00 us"));
    add(&h, 60, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    end(&h);
}

static void accept_after(void **state, bool watched, int n_slow)
{
    struct history h = begin(state);
    h.watched = watched;
    h.spec.best_ns = 20000;
    add(&h, 60, 20000);
    add(&h, n_slow, 21000);
    h.spec.best_ns = 21000;
    h.spec.best_ms = 1760000000000;
    add(&h, 20, 21000);
    watch(h.f, h.s);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    assert_non_null(strstr(alerts(&h).reason[0], "21.00 us"));
    end(&h);
}

static void an_accept_before_the_watch_counts(void **state)
{
    accept_after(state, false, 10);
}

/* Of one slow run nobody knows whether more will follow; an accept may come at once. */
static void an_accept_before_the_alert_counts(void **state)
{
    accept_after(state, true, 1);
}

/* An accept of another level, or of an earlier slowdown, is none of this one. */
static void an_accept_of_another_level_leaves_the_alert(void **state)
{
    struct history h = begin(state);
    h.watched = false;
    h.spec.best_ns = 18000;
    add(&h, 30, 20000);
    h.spec.best_ns = 20000;
    h.spec.best_ms = 1760000000000;
    add(&h, 60, 20000);
    add(&h, 20, 21000);
    watch(h.f, h.s);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    end(&h);
}

/* What people did stays done, wherever the level goes. */
static void an_ignored_alert_stays_ignored(void **state)
{
    struct history h = begin(state);
    add(&h, 60, 20000);
    add(&h, 10, 21000);
    step_to(&h, 1, ALERT_IGNORED, STEP_DONE);
    add(&h, 60, 21000);
    assert_state(&h, 1, ALERT_REGRESSION, ALERT_IGNORED);
    end(&h);
}

/* A long history, with several segments: tails are resumed from what is on record. */
static void a_long_history_is_watched_as_in_one_go(void **state)
{
    static const double levels[] = {20000, 20600, 20000, 20900, 19800};
    struct history h = begin(state);
    for (size_t i = 0; i < 5; i++)
        add(&h, 180, levels[i]);
    struct seen seen = alerts(&h);
    assert_int_equal(n_changes(&h), 4);
    assert_int_equal(seen.n, 2);
    assert_int_equal(index_of(&seen.alert[1]), 180);
    assert_int_equal(index_of(&seen.alert[0]), 540);
    assert_int_equal(seen.alert[0].state, ALERT_FIXED);
    end(&h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_regression_is_one_alert),
        TEST(an_improvement_is_an_alert_of_its_kind),
        TEST(the_size_of_the_chunks_changes_nothing),
        TEST(a_level_that_returns_fixes_the_alert),
        TEST(half_a_return_fixes_nothing),
        TEST(a_lost_improvement_is_a_regression),
        TEST(a_young_alert_vanishes_and_comes_back),
        TEST(what_the_control_does_too_is_no_change),
        TEST(without_a_control_times_are_compared),
        TEST(what_a_look_moves_is_another_state),
        TEST(epochs_and_contracts_are_borders),
        TEST(epochs_that_take_turns_are_compared_each_with_itself),
        TEST(a_switch_back_goes_on_with_the_old_epoch),
        TEST(a_border_does_not_take_a_young_change_back),
        TEST(a_late_run_takes_its_place),
        TEST(an_alert_moves_with_its_change_point),
        TEST(a_slow_drift_is_an_alert),
        TEST(extreme_numbers_do_not_stop_the_watch),
        TEST(what_the_tables_refuse_is_left_out),
        TEST(a_run_of_long_ago_changes_nothing),
        TEST(an_error_that_jumps_is_an_alert),
        TEST(an_ignored_error_does_not_come_up_again),
        TEST(an_accepted_best_accepts_the_alert),
        TEST(an_accept_before_the_watch_counts),
        TEST(an_accept_before_the_alert_counts),
        TEST(an_accept_of_another_level_leaves_the_alert),
        TEST(an_ignored_alert_stays_ignored),
        TEST(a_long_history_is_watched_as_in_one_go),
    };
#undef TEST
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
