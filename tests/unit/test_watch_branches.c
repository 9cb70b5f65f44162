/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_branches.c: runs of merge requests come in between those that are watched. */
#include <math.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

/* Each time n runs of merge requests, whose levels are anything, then one of the main branch. */
static void add_among_others(struct history *h, int times, int n, double p50_ns)
{
    for (int i = 0; i < times; i++) {
        h->spec.branch = i % 2 ? "tune-tiles" : "faster-softmax";
        history_add(h, n, 20000 * (0.6 + 0.2 * (i % 5)));
        h->spec.branch = NULL;
        history_add(h, 1, p50_ns);
    }
}

TEST_WITHIN(runs_of_merge_requests_raise_nothing, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    history_add(&h, 60, 20000);
    h.spec.branch = "tune-tiles";
    h.spec.rel_err = 5e-4;
    history_add(&h, 60, 21000);
    assert_alerts(&h, 0, 0, 0);
    assert_int_equal(history_n_changes(&h), 0);
    history_end(&h);
}

TEST_WITHIN(the_main_branch_is_compared_with_itself, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add_among_others(&h, 40, 4, 20000);
    assert_alerts(&h, 0, 0, 0);
    int first = h.spec.index + 4;
    add_among_others(&h, 15, 4, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_int_equal(history_index_of(&seen.alert[0]), first);
    assert_true(fabs(seen.alert[0].change - 0.05) < 0.003);
    assert_int_equal(history_n_changes(&h), 1);
    history_end(&h);
}

/* The baseline is raised where the slower code is made; then that is merged. */
TEST_WITHIN(an_accept_in_a_merge_request_counts, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ns = 20000;
    history_add(&h, 60, 20000);
    h.spec.branch = "tune-tiles";
    h.spec.baseline_ns = 21000;
    h.spec.baseline_ms = 1760000000000;
    history_add(&h, 1, 21000);
    assert_alerts(&h, 0, 0, 0);
    h.spec.branch = NULL;
    history_add(&h, 20, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_ACCEPTED);
    history_end(&h);
}

/* What is accepted in a merge request counts for the trend when that is merged. */
TEST_WITHIN(an_accept_that_is_not_merged_leaves_the_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    h.spec.baseline_ns = 20000;
    history_add(&h, 60, 20000);
    history_add(&h, 10, 21000);
    for (int i = 0; i < 2; i++) {
        h.spec.branch = "tune-tiles";
        h.spec.baseline_ns = 21000;
        h.spec.baseline_ms = 1760000000000;
        history_add(&h, 2, 21000);
        assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
        h.spec.branch = NULL;
        h.spec.baseline_ns = i == 0 ? 20000 : 21000;
        h.spec.baseline_ms = i == 0 ? 0 : 1760000000000;
        history_add(&h, 2, 21000);
        assert_alerts(&h, 1, ALERT_REGRESSION, i == 0 ? ALERT_NEW : ALERT_ACCEPTED);
    }
    history_end(&h);
}

/* So many runs of merge requests that those of the main branch are few among the newest. */
TEST_WITHIN(a_main_branch_that_is_rare_is_watched, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    add_among_others(&h, 6, 150, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}
