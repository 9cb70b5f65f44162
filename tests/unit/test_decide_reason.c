/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_reason.c: every verdict is a sentence with its figures. */
#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

/* One case: what was measured, and the sentence about it. */
struct sentence {
    struct {
        size_t n;
        double centre, half;
    } first, second;
    double cycles, drift, floor_ns;
    bool same, confirm_faster;
    const char *reason;
};

static const struct sentence sentences[] = {
    {{5, 0.03, 0.05}, .reason = "+0.03 % (-0.02 to +0.08) in 5 processes; threshold 2.00 %"},
    {{3, 0, 0.1}, .reason = "only 3 of at least 5 processes measured this case"},
    {{5, 2, 0.8},
     .reason = "the interval +1.20 to +2.80 % still holds the threshold of 2.00 % after 5 "
               "processes"},
    {{20, 2, 1.9},
     .reason = "the interval +0.70 to +3.30 % still holds the threshold of 2.00 % after 20 "
               "processes: this machine resolves 4.73 % for this case"},
    {{20, 2, 0.19},
     .reason = "the interval +1.87 to +2.13 % still holds the threshold of 2.00 % after 20 "
               "processes: the ratio is too close to it to decide"},
    {{20, 2.5, 0.19},
     .floor_ns = 3200,
     .reason = "the excess of 2500.0 ns, 2.50 % (2.37 to 2.63), is not over the floor of 3200.0 ns "
               "after 20 processes: this machine resolves 3.20 % for this case"},
    {{5, 3.1, 0.15},
     .reason = "suspected: slower by 3.10 % (2.95 to 3.25) in 5 processes, not confirmed by fresh "
               "ones yet; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .reason =
         "slower by 3.10 % (2.95 to 3.25) in 5 processes and by 3.05 % (2.90 to 3.20) in 5 fresh "
         "ones; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {5, 0.05, 0.1},
     .reason = "suspected but not confirmed: slower by 3.10 % (2.95 to 3.25) in 5 processes, but "
               "+0.05 % (-0.05 to +0.15) in 5 fresh ones; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {20, 2, 1.9},
     .reason =
         "suspected but not confirmed: slower by 3.10 % (2.95 to 3.25) in 5 processes, then the "
         "interval +0.70 to +3.30 % still holds the threshold of 2.00 % after 20 fresh ones: "
         "this machine resolves 4.73 % for this case"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 0.1,
     .reason =
         "slower by 3.10 % (2.95 to 3.25) in 5 processes and by 3.05 % (2.90 to 3.20) in 5 fresh "
         "ones, but cycles are the same (+0.10 %): the clock changed, not the code"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .drift = 0.018,
     .reason =
         "slower by 3.10 % (2.95 to 3.25) in 5 processes and by 3.05 % (2.90 to 3.20) in 5 fresh "
         "ones, but the control kernel moved by 1.80 %: without as much, the lower end of the "
         "interval, 2.90 %, is not over the threshold of 2.00 %"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .drift = 0.008,
     .same = true,
     .reason =
         "slower by 3.10 % (2.95 to 3.25) in 5 processes and by 3.05 % (2.90 to 3.20) in 5 fresh "
         "ones, but candidate and the baseline are the same file"},
    {{5, -3.1, 0.15},
     .cycles = -3,
     .reason = "faster by 3.10 % (2.95 to 3.25) in 5 processes; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason = "faster by 3.10 % (2.95 to 3.25) in 5 processes, not confirmed by fresh ones yet; "
               "threshold 2.00 %"},
    {{5, -3.1, 0.15},
     {5, -3, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason =
         "faster by 3.10 % (2.95 to 3.25) in 5 processes and by 3.00 % (2.85 to 3.15) in 5 fresh "
         "ones; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     {5, -0.5, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason =
         "faster by 3.10 % (2.95 to 3.25) in 5 processes, but not confirmed: -0.50 % (-0.65 to "
         "-0.35) in 5 fresh ones; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     .cycles = 0.1,
     .reason = "faster by 3.10 % (2.95 to 3.25) in 5 processes, but cycles are the same (+0.10 %): "
               "the clock changed, not the code"},
};

TEST(every_reason_is_a_sentence_with_its_figures)
{
    for (size_t i = 0; i < COUNT(sentences); i++) {
        const struct sentence *s = &sentences[i];
        struct made first, second;
        struct decide_input in = made_policy;
        make_sequence(&first, s->first.n, s->first.centre, s->first.half);
        make_sequence(&second, s->second.n, s->second.centre, s->second.half);
        in.first = with_cycles(&first, s->cycles);
        in.confirmation = with_cycles(&second, s->cycles);
        in.control_drift = s->drift;
        in.floor_ns = s->floor_ns;
        in.same = s->same ? "are the same file" : NULL;
        in.confirm_faster = s->confirm_faster;
        struct decision d = decide(&in);
        assert_string_equal(d.reason, s->reason);
    }
}
