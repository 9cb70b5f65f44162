#include "decide_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

const char *decide_figure_prefix(enum decide_figure f)
{
    return f == FIGURE_P90 ? "p90 " : "";
}

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

struct decide_text decide_difference(const struct decide_view *v, enum decide_figure f)
{
    return decide_text("%s%s by %s in %zu processes", decide_figure_prefix(f),
                       v->d[f].value >= 0 ? "slower" : "faster", decide_amount(v->d[f]).s, v->n);
}

struct decide_text decide_open_figure(const struct decide_input *in, const struct decide_view *v,
                                      enum decide_figure f)
{
    double threshold = decide_threshold(in, f);
    if (v->d[f].value > log1p(threshold) && v->d[f].lo > log1p(threshold / 2))
        return decide_text("the excess of %.1f ns, %s, is not over the floor of %.1f ns",
                           decide_excess_ns(in, v->d[f].value), decide_amount(v->d[f]).s,
                           in->floor_ns);
    if (v->d[f].hi < log1p(threshold))
        return decide_text(
            "the %sinterval %+.2f to %+.2f %% is too wide for the threshold of %.2f %%",
            decide_figure_prefix(f), decide_percent(v->d[f].lo), decide_percent(v->d[f].hi),
            threshold * 100);
    return decide_text("the %sinterval %+.2f to %+.2f %% still holds the threshold of %.2f %%",
                       decide_figure_prefix(f), decide_percent(v->d[f].lo),
                       decide_percent(v->d[f].hi), threshold * 100);
}

struct decide_text decide_resolution(const struct decide_input *in, const struct decide_view *v,
                                     enum decide_figure f)
{
    if (decide_look_after(v->n))
        return (struct decide_text){""};
    if (v->mde[f] > decide_threshold(in, f))
        return decide_text(": this machine resolves %.2f %% for this case", v->mde[f] * 100);
    return decide_text(": the ratio is too near to it to tell on which side it lies");
}
