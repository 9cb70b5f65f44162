/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_view.h: one look at one sequence.
 */
#ifndef GATE_DECIDE_DECIDE_VIEW_H
#define GATE_DECIDE_DECIDE_VIEW_H

#include "gate/decide/decide.h"

enum decide_look {
    LOOK_PASS,
    LOOK_FASTER, /* a pass as well */
    LOOK_OPEN,
    LOOK_SLOWER, /* a suspicion */
};

/* A sequence as the rule sees it: the bounds of d, which are logarithms, their outcome, and the
 * smallest effect that they can detect. */
struct decide_view {
    size_t n;
    struct estimate d;
    enum decide_look look;
    double mde;
};

struct decide_view decide_view_of(const struct decide_input *in, const struct decide_sequence *s);

/* The time that a change of d, a logarithm, means at the baseline's p50. */
double decide_excess_ns(const struct decide_input *in, double d);

#endif
