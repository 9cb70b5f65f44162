/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_verdicts.c: confirmed verdicts raise alerts at once; ratios to baselines are one
 * series. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

#define COMMIT_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define OTHER_MS 1760000000000

/* n runs of a ratio to the baseline; p50s scatter ten times as much, as those of machines do. */
static void add_ratio(struct history *h, int n, double ratio, const char *verdict)
{
    double sd = h->sd;
    h->spec.verdict = verdict;
    for (int i = 0; i < n; i++) {
        h->spec.ratio = ratio * exp(0.0005 * rng_normal(&h->rng));
        h->sd = 0.007;
        history_add(h, 1, 20000 * ratio);
    }
    h->sd = sd;
}

TEST_WITHIN(a_confirmed_regression_is_an_alert_at_once, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    add_ratio(&h, 2, 1.01, "no-verdict");
    add_ratio(&h, 1, 1.04, "regression");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_true(seen.alert[0].confirmed);
    assert_true(seen.alert[0].evidence[0] != '\0');
    assert_int_equal(history_index_of(&seen.alert[0]), 5);
    assert_true(fabs(seen.alert[0].change - 0.04) < 0.003);
    /* The change of level that the next runs show is the same. */
    add_ratio(&h, 9, 1.04, "regression");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    add_ratio(&h, 1, 1, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    assert_string_equal(history_alerts(&h).reason[0], "the level returned");
    add_ratio(&h, 9, 1, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    history_end(&h);
}

/* The gate has divided by the control, and so the p50s alone would say something else. */
TEST_WITHIN(a_regression_without_pairs_is_as_large_as_its_verdict_says, store_set_up,
            store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.by_number = true;
    add_ratio(&h, 3, 1, "pass");
    h.spec.baseline_ns = 20000;
    h.spec.ratio = 1.04;
    h.spec.verdict = "regression";
    history_add(&h, 1, 21400);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_true(fabs(history_alerts(&h).alert[0].change - 0.04) < 1e-9);
    history_end(&h);
}

/* The verdict may be about the error: the time is what it was, and has nowhere to return to. */
TEST_WITHIN(a_regression_of_accuracy_ends_with_the_next_pass, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    add_ratio(&h, 2, 0.999, "regression");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    add_ratio(&h, 3, 1.002, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    history_end(&h);
}

/* The commit range begins with the last run that was good, whatever came between. */
TEST_WITHIN(a_range_begins_with_the_last_good_run, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    h.spec.commit = COMMIT_B;
    add_ratio(&h, 1, 1, "pass");
    h.spec.commit = NULL;
    add_ratio(&h, 1, 1.02, "no-verdict");
    add_ratio(&h, 1, 1.04, "regression");
    assert_string_equal(history_alerts(&h).before_commit[0], COMMIT_B);
    history_end(&h);
}

TEST_WITHIN(a_first_run_may_be_red, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 1, 1.04, "regression");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_string_equal(history_alerts(&h).before_commit[0], "");
    history_end(&h);
}

TEST_WITHIN(a_wrong_result_is_an_alert_at_once, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    add_ratio(&h, 1, 1, "wrong");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    assert_true(history_alerts(&h).alert[0].confirmed);
    add_ratio(&h, 2, 1, "wrong");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    add_ratio(&h, 1, 1, "pass");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_FIXED);
    add_ratio(&h, 1, 1, "wrong");
    assert_alerts(&h, 2, ALERT_WRONG, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(a_case_that_never_was_right_is_an_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 2, 1, "wrong");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    add_ratio(&h, 1, 1, "pass");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_FIXED);
    history_end(&h);
}

/* A case at the threshold is a regression in one run and passes in the next: one alert. */
TEST_WITHIN(a_pass_at_the_threshold_is_no_return, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 5, 1, "pass");
    for (int i = 0; i < 4; i++) {
        add_ratio(&h, 1, 1.021, "regression");
        add_ratio(&h, 1, 1.019, "pass");
    }
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* 0.8 % below the threshold, among p50s that scatter by 0.7 %: found by the ratios. */
TEST_WITHIN(ratios_show_what_times_do_not, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 20, 1, "pass");
    add_ratio(&h, 8, 1.008, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 20);
    assert_true(fabs(seen.alert[0].change - 0.008) < 0.001);
    assert_false(seen.alert[0].confirmed);
    history_end(&h);
}

/* The run that was 6 % faster becomes the baseline, and the ratio to it is 1: no change of level.
 */
static void change_baseline(struct history *h, const char *of_commit)
{
    h->spec.baseline_ms = OTHER_MS - 1;
    add_ratio(h, 20, 1, "pass");
    h->spec.commit = COMMIT_B;
    add_ratio(h, 1, 0.94, "improvement");
    h->spec.commit = NULL;
    h->spec.baseline_ms = OTHER_MS;
    h->spec.baseline_commit = of_commit;
    add_ratio(h, 20, 1, "pass");
}

TEST_WITHIN(a_baseline_that_is_linked_continues_the_series, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    change_baseline(&h, COMMIT_B);
    assert_alerts(&h, 1, ALERT_IMPROVEMENT, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 20);
    assert_true(fabs(seen.alert[0].change + 0.06) < 0.002);
    history_end(&h);
}

TEST_WITHIN(a_baseline_that_is_not_linked_begins_a_series, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    change_baseline(&h, NULL);
    assert_alerts(&h, 0, 0, 0);
    history_end(&h);
}

/* The accept was made in a merge request: no run of the main branch is known to be the baseline. */
TEST_WITHIN(an_accepted_regression_is_accepted_and_not_back, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ns = 20000;
    h.spec.baseline_ms = OTHER_MS - 1;
    add_ratio(&h, 10, 1, "pass");
    add_ratio(&h, 2, 1.05, "regression");
    h.spec.baseline_ns = 21000;
    h.spec.baseline_ms = OTHER_MS;
    for (int i = 0; i < 5; i++) {
        h.spec.verdict = "pass";
        h.spec.ratio = 1;
        history_add(&h, 1, 21000);
    }
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    history_end(&h);
}

/* A driver changes times, and not the ratio of two times that were taken beside each other. */
TEST_WITHIN(ratios_cross_epochs, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 10, 1, "pass");
    h.spec.epoch = "581.1/13.0/700 W";
    add_ratio(&h, 5, 1.012, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* One run that lies far out does not delay an alert, nor is it where that begins. */
TEST_WITHIN(an_outlier_before_a_step_changes_nothing, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 50, 20000);
    history_add(&h, 1, 24000);
    history_add(&h, 9, 20000);
    history_add(&h, 4, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 60);
    history_end(&h);
}

TEST_WITHIN(a_young_history_raises_alerts, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 3, 20000);
    history_add(&h, 2, 39000);
    assert_alerts(&h, 0, 0, 0);
    history_add(&h, 1, 39000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 3);
    history_end(&h);
}

/* An alert whose beginning is not read any more ends when its level returns. */
TEST_WITHIN(an_old_alert_ends_when_its_level_returns, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 10, 20000);
    history_add(&h, 170, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_add(&h, 10, 20000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    history_end(&h);
}

/* What a vendor's kernel does is timed, and is not what was wrong. */
TEST_WITHIN(a_case_that_never_was_right_has_no_provider, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 2, 1, "wrong");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    assert_string_equal(history_alerts(&h).provider[0], "");
    history_end(&h);
}

/* The pairs with another baseline say nothing of a step that those with the old one showed. */
TEST_WITHIN(an_unlinked_baseline_closes_no_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ms = OTHER_MS - 1;
    add_ratio(&h, 20, 1, "pass");
    add_ratio(&h, 10, 1.015, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    h.spec.baseline_ms = OTHER_MS;
    for (int i = 0; i < 6; i++) {
        h.spec.ratio = 1;
        history_add(&h, 1, 20300);
    }
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(a_first_red_run_is_accepted, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ns = 20000;
    h.spec.baseline_ms = OTHER_MS - 1;
    add_ratio(&h, 2, 1.05, "regression");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    h.spec.baseline_ns = 21000;
    h.spec.baseline_ms = OTHER_MS;
    h.spec.verdict = "pass";
    h.spec.ratio = 1;
    history_add(&h, 1, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    history_end(&h);
}

/* Longer than what is read of it. */
TEST_WITHIN(a_long_wrong_case_began_where_it_did, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    h.watched = false;
    add_ratio(&h, 140, 1, "wrong");
    h.watched = true;
    add_ratio(&h, 20, 1, "wrong");
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 3);
    history_end(&h);
}

/* Without baselines only the newest epoch is compared, but right is right with any driver. */
TEST_WITHIN(a_wrong_result_of_a_past_epoch_ends, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 3, 20000);
    h.spec.verdict = "wrong";
    history_add(&h, 2, 20000);
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_NEW);
    h.spec.epoch = "581.1/13.0/700 W";
    h.spec.verdict = "pass";
    history_add(&h, 3, 20000);
    assert_alerts(&h, 1, ALERT_WRONG, ALERT_FIXED);
    history_end(&h);
}

TEST_WITHIN(what_somebody_opened_again_stays_open, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 3, 1, "pass");
    add_ratio(&h, 2, 1.05, "regression");
    add_ratio(&h, 2, 1, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_FIXED);
    history_step(&h, 1, ALERT_NEW, STEP_DONE);
    add_ratio(&h, 4, 1, "pass");
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(a_gain_behind_a_regression_is_an_improvement, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_ratio(&h, 20, 1, "pass");
    add_ratio(&h, 5, 1.05, "regression");
    add_ratio(&h, 6, 0.9, "improvement");
    assert_alerts(&h, 2, ALERT_IMPROVEMENT, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), 25);
    assert_true(fabs(seen.alert[0].change + 0.1) < 0.005);
    assert_int_equal(seen.alert[1].state, ALERT_FIXED);
    history_end(&h);
}
