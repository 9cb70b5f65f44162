/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/measure_calls.h"

#include <math.h>

#include "gate/base/clock.h"
#include "gate/launch/pairs.h"

#define CALLS_MAX 16
#define CALLS_NS 100e3 /* of the device's work in a sample */
#define ROUNDS_MAX (4 * PAIRS_KINDS)
#define BUDGET_NS 10e6
#define SIDES 2

/* Of each side, per call. */
struct calls {
    unsigned n_sides, n_calls;
    double ns[SIDES][2 * ROUNDS_MAX];
    size_t n[SIDES];
};

static unsigned calls_of_a_sample(const struct session *s, unsigned n_sides)
{
    double longest = 1;
    for (unsigned i = 0; i < n_sides; i++)
        longest = fmax(longest, s->arms[i].measurement.p50_ns.value);
    return (unsigned)fmin(fmax(floor(CALLS_NS / longest), 1), CALLS_MAX);
}

static enum gate_status take_sample(struct session *s, struct calls *c, unsigned side,
                                    struct gate_error *err)
{
    struct series *x = &s->series[side];
    size_t j = c->n[side];
    const struct device_calls calls = {(unsigned)j * c->n_calls, c->n_calls};
    double ns = 0;
    s->at = side;
    enum gate_status status = device_calls_run(
        s->device, arm_launch, &x->launch[pairs_copy(j) % x->n_copies], calls, &ns, err);
    if (!status && !clock_can_be(ns))
        status = gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a call of launch()", ns);
    c->ns[side][j] = ns / c->n_calls;
    c->n[side] += !status;
    return status;
}

/* A B B A, then B A A B, as pairs_kind() has it. */
static enum gate_status take_round(struct session *s, struct calls *c, bool other_first,
                                   struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < 2 * c->n_sides && !status; i++) {
        unsigned slot = i < c->n_sides ? i : 2 * c->n_sides - 1 - i;
        status = take_sample(s, c, other_first && c->n_sides == SIDES ? 1 - slot : slot, err);
    }
    return status;
}

enum gate_status measure_calls(struct session *s, bool swap, struct gate_error *err)
{
    struct calls c = {.n_sides = session_is_paired(s) ? SIDES : 1};
    double start = clock_ns();
    enum gate_status status = GATE_OK;
    c.n_calls = calls_of_a_sample(s, c.n_sides);
    for (unsigned round = 0; round < ROUNDS_MAX && !status; round++) {
        if (round && round % PAIRS_KINDS == 0 && clock_ns() - start > BUDGET_NS)
            break;
        status = take_round(s, &c, swap != (round % 2 == 1), err);
    }
    if (!status && c.n_sides == SIDES)
        status = pairs_ratio(c.ns[0], c.ns[1], c.n[0], &s->arms[1].measurement.ratio_calls, err);
    for (unsigned i = 0; i < c.n_sides && !status; i++)
        s->arms[i].measurement.call_ns = stats_middle(c.ns[i], c.n[i]);
    return status;
}
