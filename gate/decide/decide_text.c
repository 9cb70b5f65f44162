/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

double decide_percent(double d)
{
    return expm1(d) * 100;
}

struct decide_text decide_text(const char *format, ...)
{
    struct decide_text t;
    va_list args;
    va_start(args, format);
    vsnprintf(t.s, sizeof t.s, format, args);
    va_end(args);
    return t;
}

struct decide_text decide_change(struct estimate d)
{
    return decide_text("%+.2f %% (%+.2f to %+.2f)", decide_percent(d.value), decide_percent(d.lo),
                       decide_percent(d.hi));
}

struct decide_text decide_amount(struct estimate d)
{
    if (d.value >= 0)
        return decide_text("%.2f %% (%.2f to %.2f)", decide_percent(d.value), decide_percent(d.lo),
                           decide_percent(d.hi));
    return decide_text("%.2f %% (%.2f to %.2f)", -decide_percent(d.value), -decide_percent(d.hi),
                       -decide_percent(d.lo));
}

struct decide_text decide_difference(const struct decide_view *v)
{
    return decide_text("%s by %s in %zu processes", v->d.value >= 0 ? "slower" : "faster",
                       decide_amount(v->d).s, v->n);
}

struct decide_text decide_open(const struct decide_input *in, const struct decide_view *v)
{
    double threshold = in->threshold;
    if (v->d.value > log1p(threshold) && v->d.lo > log1p(threshold / 2))
        return decide_text("the excess of %.1f ns, %s, is not over the floor of %.1f ns",
                           decide_excess_ns(in, v->d.value), decide_amount(v->d).s, in->floor_ns);
    return decide_text("the interval %+.2f to %+.2f %% %s the threshold of %.2f %%",
                       decide_percent(v->d.lo), decide_percent(v->d.hi),
                       v->d.hi < log1p(threshold) ? "is too wide for" : "still holds",
                       threshold * 100);
}

struct decide_text decide_resolution(const struct decide_input *in, const struct decide_view *v)
{
    if (decide_look_after(v->n))
        return (struct decide_text){""};
    if (v->mde > in->threshold)
        return decide_text(": this machine resolves %.2f %% for this case", v->mde * 100);
    return decide_text(": the ratio is too close to it to decide");
}
