/* How the time of a process is shared out among its cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate/run/effort.h"

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(1, fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

/* Eight rounds of 1 ms are 32 samples; with a fifth for rests 38.4 ms. */
static void only_what_is_wide_wants_more(void **state)
{
    static const struct {
        double half_width, samples, wanted_ms;
    } rows[] = {
        {0.0005, 16, 0},
        {0.001, 16, 0},
        {0, 0, 0},                  /* not known */
        {0.0012, 16, 3.52 * 4.8},   /* 1.44 times as many rounds */
        {0.0006, 76, 5.68 * 4.8},   /* narrow, but only after 38 rounds: 13.68 of them would do */
        {0.01, 16, EFFORT_CASE_MS}, /* it would take 800 rounds */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct effort e = {rows[i].half_width, rows[i].samples, 1e6};
        assert_near(effort_wanted_ms(&e), rows[i].wanted_ms);
    }
    const struct effort one = {0, 16, 1e6}, slow = {0.0012, 16, 3e6};
    assert_near(effort_rounds_ms(&one), 38.4);
    assert_near(effort_wanted_ms(&slow), 3.52 * 14.4);
}

static void the_pot_is_never_exceeded(void **state)
{
    (void)state;
    assert_near(effort_share(0), 1);
    assert_near(effort_share(EFFORT_POT_MS), 1);
    assert_near(effort_share(54 * EFFORT_CASE_MS) * 54 * EFFORT_CASE_MS, EFFORT_POT_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_wide_wants_more),
        cmocka_unit_test(the_pot_is_never_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
