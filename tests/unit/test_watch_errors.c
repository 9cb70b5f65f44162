/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_errors.c: errors of the verification that jump, by themselves and over the vendor's.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

/* n runs with these errors; 0: those of the sample, below 0: there is none. */
static void add(struct history *h, int n, double rel_err, double vendor_ratio)
{
    h->spec.rel_err = rel_err;
    h->spec.vendor_ratio = vendor_ratio;
    history_add(h, n, 20000);
}

TEST_WITHIN(an_error_that_jumps_is_an_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 0);
    add(&h, 5, 2.5e-4, 0);
    assert_alerts(&h, 0, 0, 0); /* eight times is not ten */
    add(&h, 3, 5e-4, 0);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_true(fabs(seen.alert[0].before - 3e-5) < 1e-9);
    assert_true(fabs(seen.alert[0].after - 5e-4) < 1e-9);
    add(&h, 1, 3e-5, 0);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_FIXED);
    history_end(&h);
}

TEST_WITHIN(an_ignored_error_does_not_come_up_again, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 0);
    add(&h, 1, 5e-4, 0);
    history_step(&h, 1, ALERT_IGNORED, STEP_DONE);
    add(&h, 3, 5e-4, 0);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_IGNORED);
    history_end(&h);
}

/* The vendor's kernel has the same inputs, so that twice the usual ratio tells. */
TEST_WITHIN(an_error_over_the_vendors_that_jumps_is_an_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 0, 1.1);
    add(&h, 3, 0, 2.1);
    assert_alerts(&h, 0, 0, 0);
    add(&h, 30, 0, 2.3); /* one alert, and it stays when this is the usual ratio */
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_true(seen.alert[0].by_vendor);
    assert_true(fabs(seen.alert[0].before - 1.1) < 1e-9);
    assert_true(fabs(seen.alert[0].after - 2.3) < 1e-9);
    assert_true(fabs(seen.alert[0].change - (2.3 / 1.1 - 1)) < 1e-9);
    add(&h, 1, 0, 1.2);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_FIXED);
    history_end(&h);
}

TEST_WITHIN(both_errors_that_jump_are_one_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 1);
    add(&h, 3, 5e-4, 17);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    add(&h, 30, 5e-4, 17); /* until this is the usual one */
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_ACCEPTED);
    history_end(&h);
}

/* What was accepted of the one error hides no jump of the other. */
TEST_WITHIN(each_error_is_accepted_by_itself, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 1);
    add(&h, 1, 3e-5, 17);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    add(&h, 1, 5e-4, 1);
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 2, ALERT_ACCEPTED, STEP_DONE);
    add(&h, 1, 5e-4, 40);
    assert_alerts(&h, 3, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(an_accepted_ratio_hides_no_jump_of_the_error, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 1);
    add(&h, 1, 3e-5, 17);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    add(&h, 1, 5e-4, 17); /* while the ratio is what was accepted */
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    assert_false(history_alerts(&h).alert[0].by_vendor);
    history_end(&h);
}

TEST_WITHIN(a_vendor_that_left_hides_no_jump, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 3e-5, 1);
    add(&h, 1, 3e-5, 17);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    add(&h, 1, 5e-4, -1);
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

/* Of a few outputs both errors are luck; who is better than the vendor may become less so. */
TEST_WITHIN(an_error_that_scatters_is_no_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    for (int i = 0; i < 60; i++) {
        h.spec.vendor_ratio = exp(0.4 * rng_normal(&h.rng));
        history_add(&h, 1, 20000);
    }
    add(&h, 1, 0, 3);
    assert_alerts(&h, 0, 0, 0);
    add(&h, 1, 0, 60);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

TEST_WITHIN(an_error_below_the_vendors_is_no_alert, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    add(&h, 10, 0, 0.1);
    add(&h, 3, 0, 0.9);
    assert_alerts(&h, 0, 0, 0);
    history_end(&h);
}
