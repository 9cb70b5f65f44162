/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_input.c: input that no measurement gives. */
#include <math.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

static void assert_fault(const struct decide_input *in, const char *reason)
{
    struct decision d = decide(in);
    assert_decided(d, VERDICT_NO_VERDICT);
    assert_string_equal(d.reason, reason);
    assert_true(d.ratio.value == 0 && d.mde == 0);
    assert_true(d.confirmed_ratio == 0);
}

TEST(absurd_policies_are_no_verdict)
{
    static const double bad[] = {-1, -INFINITY, INFINITY, NAN};
    struct made m;
    struct decide_input in;
    make_sequence(&m, 5, 0, 0.1);
    struct decide_input good = made_policy;
    good.first = m.s;
    for (size_t i = 0; i < COUNT(bad); i++) {
        in = good;
        in.baseline_p50_ns = bad[i];
        assert_fault(&in, "no comparable baseline was measured");
        in = good;
        in.threshold = bad[i];
        assert_fault(&in, "the threshold is not between 0 and 1000 %");
        in = good;
        in.floor_ns = bad[i];
        assert_fault(&in, "the floor is no time");
        in = good;
        in.control_drift = bad[i];
        if (!isnan(bad[i])) /* which is the control that was not timed: see above */
            assert_fault(&in, "the change of the control kernel is not known");
    }
    in = good;
    in.baseline_p50_ns = 0;
    assert_fault(&in, "no comparable baseline was measured");
    in = good;
    in.threshold = 0;
    assert_fault(&in, "the threshold is not between 0 and 1000 %");
    in.threshold = 10.1;
    assert_fault(&in, "the threshold is not between 0 and 1000 %");
}

TEST(absurd_sequences_are_no_verdict)
{
    struct made m, again;
    struct decide_input in = made_policy;
    assert_fault(&in, "no process measured this case");
    in.first = make_sequence(&m, DECIDE_MAX_PROCESSES + 1, 0, 0.1);
    assert_fault(&in, "there are more than 64 processes in a sequence");
    in.first.n = SIZE_MAX;
    assert_fault(&in, "there are more than 64 processes in a sequence");
    in.first = (struct decide_sequence){.n = 5};
    assert_fault(&in, "the processes gave no ratios");
    in.first = make_sequence(&m, 5, 3, 0.1);
    in.confirmation = make_sequence(&again, DECIDE_MAX_PROCESSES + 1, 3, 0.1);
    assert_fault(&in, "there are more than 64 processes in a sequence");
}

TEST(absurd_figures_are_no_verdict)
{
    static const double bad[] = {INFINITY, -INFINITY, 14, -14, 1e300, NAN};
    struct made m, again;
    struct decide_input in = made_policy;
    in.first = make_sequence(&m, 5, 3, 0.1);
    in.first = with_cycles(&m, 3);
    in.confirmation = make_sequence(&again, 5, 3, 0.1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        double kept = m.d[2];
        m.d[2] = bad[i];
        assert_fault(&in, "process 3 of the first sequence gave a ratio in time that is no "
                          "measurement");
        m.d[2] = kept;
        m.cycles[0] = bad[i];
        if (!isnan(bad[i])) /* which is a process without them */
            assert_fault(&in, "process 1 of the first sequence gave a ratio in cycles that is no "
                              "measurement");
        m.cycles[0] = 0.03;
        kept = again.d[4];
        again.d[4] = bad[i];
        assert_fault(&in, "process 5 of the confirmation gave a ratio in time that is no "
                          "measurement");
        again.d[4] = kept;
    }
    m.d[0] = m.d[1] = m.d[2] = m.d[3] = m.d[4] = 13; /* half a million times slower is slower */
    assert_decided(decide(&in), VERDICT_REGRESSION);
}
