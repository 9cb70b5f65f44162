/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_errors.c: errors of the verification that jump, by themselves and over the vendor's.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

static void an_error_that_jumps_is_an_alert(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    history_add(&h, 10, 20000);
    h.spec.rel_err = 2.5e-4;
    history_add(&h, 5, 20000);
    assert_alerts(&h, 0, 0, 0); /* eight times is not ten */
    h.spec.rel_err = 5e-4;
    history_add(&h, 3, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_true(fabs(seen.alert[0].before - 3e-5) < 1e-9);
    assert_true(fabs(seen.alert[0].after - 5e-4) < 1e-9);
    h.spec.rel_err = 3e-5;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_FIXED);
    history_end(&h);
}

static void an_ignored_error_does_not_come_up_again(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    history_add(&h, 10, 20000);
    h.spec.rel_err = 5e-4;
    history_add(&h, 1, 20000);
    history_step(&h, 1, ALERT_IGNORED, STEP_DONE);
    history_add(&h, 3, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_IGNORED);
    history_end(&h);
}

/* The vendor's kernel has the same inputs, so that twice the usual ratio tells. */
static void an_error_over_the_vendors_that_jumps_is_an_alert(void **state)
{
    struct history h = history_begin(state);
    h.spec.vendor_ratio = 1.1;
    history_add(&h, 10, 20000);
    h.spec.vendor_ratio = 2.1;
    history_add(&h, 3, 20000);
    assert_alerts(&h, 0, 0, 0);
    h.spec.vendor_ratio = 2.3;
    history_add(&h, 30, 20000); /* one alert, and it stays when this is the usual ratio */
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    struct seen seen = history_alerts(&h);
    assert_true(seen.alert[0].by_vendor);
    assert_true(fabs(seen.alert[0].before - 1.1) < 1e-9);
    assert_true(fabs(seen.alert[0].after - 2.3) < 1e-9);
    assert_true(fabs(seen.alert[0].change - (2.3 / 1.1 - 1)) < 1e-9);
    h.spec.vendor_ratio = 1.2;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_FIXED);
    history_end(&h);
}

static void both_errors_that_jump_are_one_alert(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    h.spec.vendor_ratio = 1;
    history_add(&h, 10, 20000);
    h.spec.rel_err = 5e-4;
    h.spec.vendor_ratio = 17;
    history_add(&h, 3, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    history_add(&h, 30, 20000); /* until this is the usual one */
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_ACCEPTED);
    history_end(&h);
}

/* What was accepted of the one error hides no jump of the other. */
static void each_error_is_accepted_by_itself(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    h.spec.vendor_ratio = 1;
    history_add(&h, 10, 20000);
    h.spec.vendor_ratio = 17;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    h.spec.vendor_ratio = 1;
    h.spec.rel_err = 5e-4;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    history_step(&h, 2, ALERT_ACCEPTED, STEP_DONE);
    h.spec.vendor_ratio = 40;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 3, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

static void an_accepted_ratio_hides_no_jump_of_the_error(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    h.spec.vendor_ratio = 1;
    history_add(&h, 10, 20000);
    h.spec.vendor_ratio = 17;
    history_add(&h, 1, 20000);
    history_step(&h, 1, ALERT_ACCEPTED, STEP_DONE);
    h.spec.rel_err = 5e-4; /* while the ratio is what was accepted */
    history_add(&h, 1, 20000);
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    assert_false(history_alerts(&h).alert[0].by_vendor);
    history_end(&h);
}

static void a_vendor_that_left_hides_no_jump(void **state)
{
    struct history h = history_begin(state);
    h.spec.rel_err = 3e-5;
    h.spec.vendor_ratio = 1;
    history_add(&h, 10, 20000);
    h.spec.vendor_ratio = 17;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    h.spec.vendor_ratio = -1;
    h.spec.rel_err = 5e-4;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 2, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

/* Of a few outputs both errors are luck; who is better than the vendor may become less so. */
static void an_error_that_scatters_is_no_alert(void **state)
{
    struct history h = history_begin(state);
    for (int i = 0; i < 60; i++) {
        h.spec.vendor_ratio = exp(0.4 * rng_normal(&h.rng));
        history_add(&h, 1, 20000);
    }
    h.spec.vendor_ratio = 3;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 0, 0, 0);
    h.spec.vendor_ratio = 60;
    history_add(&h, 1, 20000);
    assert_alerts(&h, 1, ALERT_ERROR, ALERT_NEW);
    history_end(&h);
}

static void an_error_below_the_vendors_is_no_alert(void **state)
{
    struct history h = history_begin(state);
    h.spec.vendor_ratio = 0.1;
    history_add(&h, 10, 20000);
    h.spec.vendor_ratio = 0.9;
    history_add(&h, 3, 20000);
    assert_alerts(&h, 0, 0, 0);
    history_end(&h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_error_that_jumps_is_an_alert),
        TEST(an_ignored_error_does_not_come_up_again),
        TEST(an_error_over_the_vendors_that_jumps_is_an_alert),
        TEST(both_errors_that_jump_are_one_alert),
        TEST(each_error_is_accepted_by_itself),
        TEST(an_accepted_ratio_hides_no_jump_of_the_error),
        TEST(a_vendor_that_left_hides_no_jump),
        TEST(an_error_that_scatters_is_no_alert),
        TEST(an_error_below_the_vendors_is_no_alert),
    };
#undef TEST
    return cmocka_run_group_tests_name("watch of errors", tests, NULL, NULL);
}
