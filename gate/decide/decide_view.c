/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide_view.h"

#include <math.h>

#include "gate/decide/decide_roles.h"

double decide_excess_ns(const struct decide_input *in, double d)
{
    return fabs(expm1(d)) * in->baseline_p50_ns;
}

/* `resolved`: the spread is narrow enough for as few processes as these, or there are no more. */
static enum decide_look look_at(const struct decide_input *in, struct estimate d, bool resolved)
{
    double limit = log1p(in->threshold), margin = log1p(in->threshold / 2);
    bool over_floor = decide_excess_ns(in, d.value) > in->floor_ns;
    if (d.value > limit && d.lo > margin && over_floor)
        return LOOK_SLOWER;
    if (d.value < -limit && d.hi < -margin && over_floor)
        return LOOK_FASTER;
    return d.hi < limit && resolved ? LOOK_PASS : LOOK_OPEN;
}

struct decide_view decide_view_of(const struct decide_input *in, const struct decide_sequence *s)
{
    double d[DECIDE_MAX_PROCESSES];
    struct decide_view v = {.n = s->n};
    decide_balance(s->d, s->swapped, s->n, d);
    double mde = decide_mde(d, s->n);
    v.d = decide_bounds(d, s->n);
    if (s->n > 1)
        v.mde = fmax(mde, in->floor_ns / in->baseline_p50_ns);
    v.look = look_at(in, v.d, mde <= in->threshold || !decide_look_after(s->n));
    return v;
}
