/* test_decide_p90.c: two figures, each with a threshold of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decide_made.h"

struct p90_case {
    double time, p90;             /* first sequence, percent */
    double time_again, p90_again; /* confirmation */
};

static struct decision decide_p90(const struct p90_case *c, size_t n_again, double threshold,
                                  double drift)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.p90_threshold = threshold;
    in.control_drift = drift;
    make_sequence(&first, 5, c->time, 0.1);
    in.first = with_p90(&first, c->p90, 0.1);
    in.first = with_cycles(&first, c->time);
    make_sequence(&second, n_again, c->time_again, 0.1);
    in.confirmation = with_p90(&second, c->p90_again, 0.1);
    in.confirmation = with_cycles(&second, c->time_again);
    return decide(&in);
}

static void p90_is_reported_but_gated_only_when_asked(void **state)
{
    static const struct p90_case c = {0, 9, 0, 9};
    (void)state;
    struct decision d = decide_p90(&c, 0, 0, 0);
    assert_decided(&d, VERDICT_PASS);
    assert_near(d.ratio_p90.value, 1.09);
    assert_near(d.ratio_p90.hi, 1.091);
    d = decide_p90(&c, 0, 0.05, 0);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    d = decide_p90(&c, 5, 0.05, 0);
    assert_decided(&d, VERDICT_REGRESSION); /* though cycles of the median are the same */
    d = decide_p90(&c, 5, 0.05, 0.01);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    d = decide_p90(&c, 0, 0.2, 0);
    assert_decided(&d, VERDICT_PASS);
}

static void both_figures_must_pass_and_either_can_fail(void **state)
{
    /* Thresholds: 2 % and 5 %; 5.0 within 0.1 of it is open. */
    static const struct {
        struct p90_case c;
        size_t n_again;
        enum decide_next next;
        size_t next_n;
        enum verdict verdict;
    } rows[] = {
        {{0, 0, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_PASS},
        {{0, 5, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{2, 0, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{3, 5, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{2, 9, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{-3, 5, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{-3, 9, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{-3, 0, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_IMPROVEMENT},
        {{0, -9, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_PASS},
        /* What one suspects the other must suspect as well. */
        {{3, 9, 3, 0}, 5, DECIDE_DONE, 0, VERDICT_REGRESSION},
        {{3, 9, 0, 9}, 5, DECIDE_DONE, 0, VERDICT_REGRESSION},
        {{3, 9, 0, 0}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{3, 0, 0, 9}, 5, DECIDE_CONFIRM, 8, VERDICT_NO_VERDICT},
        {{3, 0, 0, 9}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
        {{3, 5, 0, 9}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
        /* Open twice is open; open once where the other sequence passed is not. */
        {{3, 5, 0, 5}, 5, DECIDE_CONFIRM, 8, VERDICT_NO_VERDICT},
        {{3, 5, 0, 0}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{3, 0, 0, 5}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{0, 9, 0, 5}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_p90(&rows[i].c, rows[i].n_again, 0.05, 0);
        if (d.next != rows[i].next || d.next_n != rows[i].next_n || d.verdict != rows[i].verdict)
            fail_msg("row %zu: next %d to %zu, %s: %s", i, (int)d.next, d.next_n,
                     verdict_name(d.verdict), d.reason);
    }
}

static void reasons_name_p90(void **state)
{
    static const struct {
        struct p90_case c;
        size_t n_again;
        const char *reason;
    } rows[] = {
        {{0, 1, 0, 0},
         0,
         "+0.00 % (-0.10 to +0.10) in 5 processes; threshold 2.00 %; p90 +1.00 % (+0.90 to +1.10), "
         "threshold 5.00 %"},
        {{0, 5, 0, 0},
         0,
         "the p90 interval +4.90 to +5.10 % still holds the threshold of 5.00 % after 5 processes"},
        {{0, 9, 0, 9},
         5,
         "p90 slower by 9.00 % (8.90 to 9.10) in 5 processes and by 9.00 % (8.90 to 9.10) in 5 "
         "fresh "
         "ones; threshold 5.00 %"},
        {{0, 9, 0, 1},
         5,
         "suspected but not confirmed: p90 slower by 9.00 % (8.90 to 9.10) in 5 processes, but p90 "
         "+1.00 % (+0.90 to +1.10) in 5 fresh ones; threshold 5.00 %"},
        {{3, 0, 0, 9},
         20,
         "suspected but not confirmed: slower by 3.00 % (2.90 to 3.10) in 5 processes, then p90 "
         "slower by 9.00 % (8.93 to 9.07) in 20 fresh ones only"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_p90(&rows[i].c, rows[i].n_again, 0.05, 0);
        assert_string_equal(d.reason, rows[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p90_is_reported_but_gated_only_when_asked),
        cmocka_unit_test(both_figures_must_pass_and_either_can_fail),
        cmocka_unit_test(reasons_name_p90),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
