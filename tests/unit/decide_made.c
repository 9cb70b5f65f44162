/* SPDX-License-Identifier: Apache-2.0 */
/* decide_made.c: see decide_made.h. */
#include <math.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

const struct decide_input made_policy = {
    .threshold = 0.02, .baseline_p50_ns = 1e5, .other = "the baseline"};

void fill_changes(double *d, size_t n, double centre, double half)
{
    for (size_t i = 0; i < n; i++) {
        double place = n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1 : 0;
        d[i % 2 ? i / 2 : n - 1 - i / 2] = log1p((centre + half * place) / 100);
    }
}

struct decide_sequence make_sequence(struct made *m, size_t n, double centre, double half)
{
    fill_changes(m->d, n, centre, half);
    m->s = (struct decide_sequence){.d = m->d, .n = n};
    return m->s;
}

struct decide_sequence with_cycles(struct made *m, double percent)
{
    fill_changes(m->cycles, m->s.n, percent, 0);
    m->s.log_ratio_cycles = m->cycles;
    return m->s;
}

void assert_decided(struct decision d, enum verdict verdict)
{
    if (d.next != DECIDE_DONE || d.verdict != verdict)
        fail_msg("next %d, %s instead of %s: %s", (int)d.next, verdict_name(d.verdict),
                 verdict_name(verdict), d.reason);
    assert_int_equal(d.next_n, 0);
}

void assert_asks(struct decision d, enum decide_next next, size_t n)
{
    if (d.next != next || d.next_n != n)
        fail_msg("next %d to %zu instead of %d to %zu: %s", (int)d.next, d.next_n, (int)next, n,
                 d.reason);
}

void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * (1 + fabs(expected))))
        fail_msg("%.12g instead of %.12g", got, expected);
}
