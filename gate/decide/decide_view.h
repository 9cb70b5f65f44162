/*
 * decide_view.h: what one look at one sequence tells of each figure.
 */
#ifndef GATE_DECIDE_DECIDE_VIEW_H
#define GATE_DECIDE_DECIDE_VIEW_H

#include "decide.h"

enum decide_look {
    LOOK_PASS,
    LOOK_FASTER, /* a pass as well */
    LOOK_OPEN,
    LOOK_SLOWER, /* a suspicion */
};

/* The figures that are judged, each with a threshold of its own. */
enum decide_figure { FIGURE_TIME, FIGURE_P90, FIGURES };

/* A sequence as the rule sees it: of each figure the bounds, as logarithms, what they tell, and the
 * smallest effect that they could have told. A figure that is not gated passes. */
struct decide_view {
    size_t n;
    struct estimate d[FIGURES];
    enum decide_look look[FIGURES];
    double mde[FIGURES];
};

struct decide_view decide_view_of(const struct decide_input *in, const struct decide_sequence *s);

/* The first figure that a look found so; FIGURES: none. */
enum decide_figure decide_first_with(const struct decide_view *v, enum decide_look look);

/* Of all figures: a suspicion of any counts, then any that is open. */
enum decide_look decide_look_of(const struct decide_view *v);

/* Of the policy, as a ratio: 0.02 is 2 %. */
double decide_threshold(const struct decide_input *in, enum decide_figure f);

/* What a change of d, a logarithm, is in time at the best's p50. */
double decide_excess_ns(const struct decide_input *in, double d);

#endif
