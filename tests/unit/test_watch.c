/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch.c: runs come in, change points and alerts come up, move, close and open again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

TEST_WITHIN(a_regression_is_one_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    assert_alerts(&h, 0, 0, 0);
    history_add(&h, 60, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 60);
    assert_true(fabs(seen.alert[0].change - 0.05) < 0.003);
    assert_true(fabs(seen.alert[0].before - 20000) < 60);
    assert_true(fabs(seen.alert[0].after - 21000) < 60);
    assert_int_equal(seen.alert[0].closed_ms, 0);
    assert_int_equal(history_n_changes(&h), 1);
    history_end(&h);
}

TEST_WITHIN(an_improvement_is_an_alert_of_its_kind, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 30, 18000);
    assert_alerts(&h, 1, ALERT_IMPROVEMENT, ALERT_NEW);
    history_end(&h);
}

/* One chunk, one run at a time, or all at once: the same. */
TEST_WITHIN(the_size_of_the_chunks_changes_nothing, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.watched = false;
    history_add(&h, 60, 20000);
    history_add(&h, 12, 21000);
    history_add(&h, 60, 20000);
    history_add(&h, 200, 19000);
    history_watch(h.f, h.s);
    struct seen seen = history_alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(history_index_of(&seen.alert[1]), 60);
    assert_int_equal(seen.alert[1].state, ALERT_FIXED);
    assert_int_equal(history_index_of(&seen.alert[0]), 132);
    assert_int_equal(seen.alert[0].kind, ALERT_IMPROVEMENT);
    assert_int_equal(history_n_changes(&h), 3);
    history_end(&h);
}

TEST_WITHIN(a_level_that_returns_fixes_the_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 40, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_add(&h, 2, 20000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_add(&h, 1, 20000);
    /* The return is no alert of its own. */
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    struct seen seen = history_alerts(&h);
    assert_string_equal(seen.reason[0], "the level returned");
    assert_true(seen.alert[0].closed_ms > 0);
    assert_int_equal(history_n_changes(&h), 2);
    history_end(&h);
}

TEST_WITHIN(half_a_return_fixes_nothing, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 40, 22000);
    history_add(&h, 40, 21000);
    struct seen seen = history_alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.alert[1].state, ALERT_NEW);
    assert_int_equal(seen.alert[0].kind, ALERT_IMPROVEMENT);
    history_end(&h);
}

/* An improvement that is lost closes its alert, and is a regression to tell of. */
TEST_WITHIN(a_lost_improvement_is_a_regression, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 40, 18000);
    history_add(&h, 40, 20000);
    struct seen seen = history_alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.alert[1].kind, ALERT_IMPROVEMENT);
    assert_int_equal(seen.alert[1].state, ALERT_FIXED);
    assert_int_equal(seen.alert[0].kind, ALERT_REGRESSION);
    assert_int_equal(seen.alert[0].state, ALERT_NEW);
    history_end(&h);
}

/* Two modes far apart leave nothing to find in the window, and a young change point is missed. */
TEST_WITHIN(a_young_alert_is_missed_where_nothing_is_found, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 80, 20000);
    history_add(&h, 5, 20600);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    for (int i = 0; i < 18; i++)
        history_add(&h, 1, i % 2 ? 18000 : 22000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    assert_string_equal(history_alerts(&h).reason[0], "later runs do not bear it out");
    history_end(&h);
}

TEST_WITHIN(what_the_control_does_too_is_no_change, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    h.spec.control_ns = 1.05e6;
    history_add(&h, 60, 21000);
    assert_alerts(&h, 0, 0, 0);
    /* The candidate stands still while the control gets faster: slower by what it should be. */
    h.spec.control_ns = 1.0e6;
    history_add(&h, 60, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(without_a_control_times_are_compared, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.control_ns = 0;
    history_add(&h, 60, 20000);
    history_add(&h, 10, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* Whoever read between a run and the look at it must not keep what he read. */
TEST_WITHIN(what_a_look_moves_is_another_state, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 12, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct store_state before, after;
    for (int i = 0; i < 5; i++) {
        h.watched = false;
        history_add(&h, 1, 21000);
        store_state(h.s, &before, &h.f->err);
        double was = history_alerts(&h).alert[0].after;
        history_watch(h.f, h.s);
        store_state(h.s, &after, &h.f->err);
        assert_true(history_alerts(&h).alert[0].after != was);
        assert_string_not_equal(before.text, after.text);
    }
    history_end(&h);
}

TEST_WITHIN(epochs_and_contracts_are_borders, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    h.spec.epoch = "581.1/13.0/700 W";
    history_add(&h, 60, 22000);
    assert_alerts(&h, 0, 0, 0);
    h.spec.contract = "graph-abba-v2";
    history_add(&h, 60, 25000);
    assert_alerts(&h, 0, 0, 0);
    history_add(&h, 10, 26000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* Two runners of one model, each with a driver of its own. */
TEST_WITHIN(epochs_that_take_turns_are_compared_each_with_itself, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    for (int i = 0; i < 160; i++) {
        bool is_old = i % 2 == 0;
        h.spec.epoch = is_old ? "570.1/12.8/700 W" : "581.1/13.0/700 W";
        /* They are 5 % apart; from the 100th run on both are 2 % slower. */
        history_add(&h, 1, (is_old ? 20000 : 21000) * (i < 100 ? 1 : 1.02));
        if (i == 99)
            assert_alerts(&h, 0, 0, 0);
    }
    struct seen seen = history_alerts(&h);
    assert_int_equal(seen.n, 2);
    for (size_t i = 0; i < seen.n; i++) {
        assert_int_equal(seen.alert[i].kind, ALERT_REGRESSION);
        assert_int_equal(seen.alert[i].state, ALERT_NEW);
        assert_true(fabs(seen.alert[i].change - 0.02) < 0.003);
        assert_in_range(history_index_of(&seen.alert[i]), 100, 101);
    }
    /* The level returns for one of them only. */
    for (int i = 0; i < 40; i++) {
        h.spec.epoch = i % 2 == 0 ? "570.1/12.8/700 W" : "581.1/13.0/700 W";
        history_add(&h, 1, i % 2 == 0 ? 20000 : 21420);
    }
    seen = history_alerts(&h);
    assert_int_equal(seen.n, 2);
    assert_int_equal((seen.alert[0].state == ALERT_FIXED) + (seen.alert[1].state == ALERT_FIXED),
                     1);
    history_end(&h);
}

TEST_WITHIN(a_switch_back_goes_on_with_the_old_epoch, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.epoch = "570.1/12.8/700 W";
    history_add(&h, 40, 20000);
    h.spec.epoch = "581.1/13.0/700 W";
    history_add(&h, 40, 22000);
    h.spec.epoch = "570.1/12.8/700 W";
    history_add(&h, 10, 20600);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 80);
    assert_true(fabs(seen.alert[0].change - 0.03) < 0.003);
    history_end(&h);
}

/* What was young when the driver changed stays on record, and its alert open. */
TEST_WITHIN(a_border_does_not_take_a_young_change_back, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 8, 21000);
    h.spec.epoch = "581.1/13.0/700 W";
    history_add(&h, 60, 19000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(history_n_changes(&h), 1);
    history_end(&h);
}

TEST_WITHIN(a_late_run_takes_its_place, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    /* Two runs of the new level are too few; the one that comes late makes them three. */
    h.spec.index = 61;
    history_add(&h, 2, 21000);
    assert_alerts(&h, 0, 0, 0);
    h.spec.index = 60;
    history_add(&h, 1, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 60);
    history_end(&h);
}

/* A young change point that turns out to have been earlier takes its alert along. */
TEST_WITHIN(an_alert_moves_with_its_change_point, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    h.spec.index = 64;
    history_add(&h, 6, 21000);
    struct seen seen = history_alerts(&h);
    assert_int_equal(seen.n, 1);
    assert_int_equal(history_index_of(&seen.alert[0]), 64);
    for (int i = 63; i >= 60; i--) {
        h.spec.index = i;
        history_add(&h, 1, 21000);
    }
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 60);
    assert_int_equal(history_n_changes(&h), 1);
    history_end(&h);
}

/* Numbers at the ends of what a document may hold: whatever is made of them, the watch goes on. */
TEST_WITHIN(extreme_numbers_do_not_stop_the_watch, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.sd = 0;
    h.spec.rel_err = 1e-300;
    history_add(&h, 30, 9e14);
    h.spec.control_ns = 9e14;
    h.spec.rel_err = 1e305;
    history_add(&h, 30, 0.001);
    h.spec.control_ns = 0.001;
    history_add(&h, 30, 9e14);
    h.spec.control_ns = 0;
    history_add(&h, 30, 0.001);
    assert_true(history_alerts(&h).n >= 2);
    history_end(&h);
}

/* A rule of the tables that a look breaks costs that look, and not those at other series. */
TEST_WITHIN(what_the_tables_refuse_is_left_out, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 60, 21000);
    store_close(h.s);
    execute(h.f->path, "CREATE UNIQUE INDEX one_of_a_kind ON alert (kind)");
    h.s = open_store(h.f, STORE_READ_WRITE);
    history_add(&h, 60, 22000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(history_n_changes(&h), 1); /* nor does its change point stay */
    h.spec.contract = "graph-abba-v2";          /* another series */
    h.watched = false;
    history_add(&h, 60, 20000);
    history_add(&h, 60, 18000);
    history_watch(h.f, h.s);
    assert_alerts(&h, 2, ALERT_IMPROVEMENT, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(a_run_of_long_ago_changes_nothing, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.index = 100;
    history_add(&h, 200, 20000);
    h.spec.index = 0;
    history_add(&h, 50, 30000);
    assert_alerts(&h, 0, 0, 0);
    history_end(&h);
}

TEST_WITHIN(an_accepted_baseline_accepts_the_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ns = 20000;
    history_add(&h, 60, 20000);
    history_add(&h, 10, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    h.spec.baseline_ns = 21000;
    h.spec.baseline_ms = 1760000000000;
    history_add(&h, 1, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    assert_non_null(strstr(history_alerts(&h).reason[0], "21.00 us"));
    history_add(&h, 60, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    history_step(&h, 1, ALERT_NEW, STEP_DONE); /* somebody does not agree */
    history_add(&h, 5, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

static void accept_after(void **state, bool watched, int n_slow)
{
    struct history h = history_begin(state);
    h.watched = watched;
    h.spec.baseline_ns = 20000;
    history_add(&h, 60, 20000);
    history_add(&h, n_slow, 21000);
    h.spec.baseline_ns = 21000;
    h.spec.baseline_ms = 1760000000000;
    history_add(&h, 20, 21000);
    history_watch(h.f, h.s);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    assert_non_null(strstr(history_alerts(&h).reason[0], "21.00 us"));
    history_end(&h);
}

TEST_WITHIN(an_accept_before_the_watch_counts, store_set_up, store_tear_down)
{
    accept_after(state, false, 10);
}

/* Of one slow run nobody knows whether more will follow; an accept may come at once. */
TEST_WITHIN(an_accept_before_the_alert_counts, store_set_up, store_tear_down)
{
    accept_after(state, true, 1);
}

/* An accept of another level, or of an earlier slowdown, is none of this one. */
TEST_WITHIN(an_accept_of_another_level_leaves_the_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.watched = false;
    h.spec.baseline_ns = 18000;
    history_add(&h, 30, 20000);
    h.spec.baseline_ns = 20000;
    h.spec.baseline_ms = 1760000000000;
    history_add(&h, 60, 20000);
    history_add(&h, 20, 21000);
    history_watch(h.f, h.s);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* What people did stays done, wherever the level goes. */
TEST_WITHIN(an_ignored_alert_stays_ignored, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 10, 21000);
    history_step(&h, 1, ALERT_IGNORED, STEP_DONE);
    history_add(&h, 60, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_IGNORED);
    history_end(&h);
}

/* A long history, with several segments: tails are resumed from what is on record. */
TEST_WITHIN(a_long_history_is_watched_as_in_one_go, store_set_up, store_tear_down)
{
    static const double levels[] = {20000, 20600, 20000, 20900, 19800};
    struct history h = history_begin(state);
    for (size_t i = 0; i < 5; i++)
        history_add(&h, 180, levels[i]);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_n_changes(&h), 4);
    assert_int_equal(seen.n, 2);
    assert_int_equal(history_index_of(&seen.alert[1]), 180);
    assert_int_equal(history_index_of(&seen.alert[0]), 540);
    assert_int_equal(seen.alert[0].state, ALERT_FIXED);
    history_end(&h);
}
