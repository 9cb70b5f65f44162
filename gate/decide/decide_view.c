#include "decide_view.h"

#include <math.h>

#include "decide_roles.h"

double decide_threshold(const struct decide_input *in, enum decide_figure f)
{
    return f == FIGURE_TIME ? in->threshold : in->p90_threshold;
}

double decide_excess_ns(const struct decide_input *in, double d)
{
    return fabs(expm1(d)) * in->best_p50_ns;
}

/* `resolved`: the spread is narrow enough for as few processes as these, or there are no more. */
static enum decide_look look_at(const struct decide_input *in, struct estimate d, double threshold,
                                bool resolved)
{
    double limit = log1p(threshold), margin = log1p(threshold / 2);
    bool over_floor = decide_excess_ns(in, d.value) > in->floor_ns;
    if (d.value > limit && d.lo > margin && over_floor)
        return LOOK_SLOWER;
    if (d.value < -limit && d.hi < -margin && over_floor)
        return LOOK_FASTER;
    return d.hi < limit && resolved ? LOOK_PASS : LOOK_OPEN;
}

static void view_figure(struct decide_view *v, const struct decide_input *in, enum decide_figure f,
                        const double *measured, const bool *swapped)
{
    double spread = in->added_spread, threshold = decide_threshold(in, f), d[DECIDE_MAX_PROCESSES];
    decide_balance(measured, swapped, v->n, d);
    struct estimate own = decide_bounds(d, v->n);
    v->d[f] = (struct estimate){own.value, own.lo - spread, own.hi + spread};
    /* The spread takes its half-width from both of the margins that decide_mde() counts. */
    if (v->n > 1)
        v->mde[f] = fmax(decide_mde(d, v->n) + 2 * spread, in->floor_ns / in->best_p50_ns);
    if (threshold > 0)
        v->look[f] = look_at(in, v->d[f], threshold,
                             decide_mde(d, v->n) <= threshold || decide_look_after(v->n) == 0);
}

struct decide_view decide_view_of(const struct decide_input *in, const struct decide_sequence *s)
{
    struct decide_view v = {.n = s->n, .look = {LOOK_PASS, LOOK_PASS}};
    view_figure(&v, in, FIGURE_TIME, s->d, s->swapped);
    if (s->d_p90)
        view_figure(&v, in, FIGURE_P90, s->d_p90, s->swapped);
    return v;
}

enum decide_figure decide_first_with(const struct decide_view *v, enum decide_look look)
{
    enum decide_figure f = FIGURE_TIME;
    while (f < FIGURES && v->look[f] != look)
        f++;
    return f;
}

enum decide_look decide_look_of(const struct decide_view *v)
{
    if (decide_first_with(v, LOOK_SLOWER) != FIGURES)
        return LOOK_SLOWER;
    if (decide_first_with(v, LOOK_OPEN) != FIGURES)
        return LOOK_OPEN;
    return v->look[FIGURE_TIME];
}
