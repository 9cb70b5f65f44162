/* SPDX-License-Identifier: Apache-2.0 */
/* compare_judge.c: see compare_judge.h. */
#include "server/api/compare_judge.h"

#include <math.h>
#include <string.h>

#define THRESHOLD 0.02 /* of runs that say none */

static struct estimate over(struct estimate b, struct estimate a)
{
    return (struct estimate){.value = b.value / a.value, .lo = b.lo / a.hi, .hi = b.hi / a.lo};
}

static struct estimate ratio_of(const struct store_result *r)
{
    return (struct estimate){.value = r->ratio, .lo = r->ratio_lo, .hi = r->ratio_hi};
}

static bool is_known(const struct store_result *r)
{
    return r->ratio > 0 && r->ratio_lo > 0 && r->ratio_hi > 0;
}

/* Was `r` paired with what the commit of `other` built? */
static bool has_as_baseline(const struct store_result *r, const struct store_result *other)
{
    return is_known(r) && other->revision != 0 && r->baseline_revision == other->revision;
}

bool compare_needs_link(const struct store_result *a, const struct store_result *b)
{
    return is_known(a) && is_known(b) && a->track != 0 && a->track == b->track &&
           !strcmp(a->provider, b->provider) && a->baseline_ms != 0 && b->baseline_ms != 0 &&
           a->baseline_ms != b->baseline_ms;
}

static struct estimate times(struct estimate a, struct estimate b)
{
    return (struct estimate){.value = a.value * b.value, .lo = a.lo * b.lo, .hi = a.hi * b.hi};
}

static struct estimate paired(const struct store_result *a, const struct store_result *b,
                              struct estimate link)
{
    static const struct estimate one = {.value = 1, .lo = 1, .hi = 1};
    if (is_known(a) && is_known(b) && a->baseline_ms != 0 && a->baseline_ms == b->baseline_ms)
        return over(ratio_of(b), ratio_of(a));
    if (has_as_baseline(b, a))
        return ratio_of(b);
    if (has_as_baseline(a, b))
        return over(one, ratio_of(a));
    return link.value > 0 ? over(times(ratio_of(b), link), ratio_of(a)) : (struct estimate){0};
}

static struct estimate time_of(const struct store_result *r)
{
    double by = r->control_ns;
    return (struct estimate){
        .value = r->p50_ns / by, .lo = r->p50_lo_ns / by, .hi = r->p50_hi_ns / by};
}

/* The rule of a verdict: beyond the threshold, with an interval beyond the half of it. */
static const char *judge(const struct estimate *ratio, double threshold)
{
    if (fabs(log(ratio->value)) <= log1p(threshold))
        return "same";
    if (log(ratio->lo) > log1p(threshold / 2))
        return "slower";
    return log(ratio->hi) < -log1p(threshold / 2) ? "faster" : "unclear";
}

struct case_change compare_results(const struct store_result *a, const struct store_result *b,
                                   struct estimate link)
{
    struct case_change c = {.ratio = b->p50_ns / a->p50_ns, .paired = paired(a, b, link)};
    c.threshold = fmax(a->threshold, b->threshold);
    if (c.threshold <= 0)
        c.threshold = THRESHOLD;
    if (a->control_ns > 0 && b->control_ns > 0)
        c.control = over(time_of(b), time_of(a));
    c.judged = c.paired.value > 0    ? judge(&c.paired, c.threshold)
               : c.control.value > 0 ? judge(&c.control, c.threshold)
                                     : "none";
    return c;
}
