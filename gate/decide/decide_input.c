/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide_input.h"

#include <math.h>

#define THRESHOLD_MAX 10.0 /* 1000 % */
#define D_MAX 13.8         /* a ratio of a million is no measurement */

static bool within(double x, double lo, double hi)
{
    return x >= lo && x <= hi; /* and is a number */
}

bool decide_is_measured(double d)
{
    return within(d, -D_MAX, D_MAX);
}

static const char *fault_of_policy(const struct decide_input *in)
{
    if (!isfinite(in->baseline_p50_ns) || in->baseline_p50_ns <= 0)
        return "no comparable baseline was measured";
    if (in->threshold <= 0 || !within(in->threshold, 0, THRESHOLD_MAX))
        return "the threshold is not between 0 and 1000 %";
    if (!isfinite(in->floor_ns) || in->floor_ns < 0)
        return "the floor is no time";
    if (isinf(in->control_drift) || in->control_drift < 0)
        return "the change of the control kernel is not known";
    return NULL;
}

static const char *fault_of_shape(const struct decide_sequence *s)
{
    if (s->n == 0)
        return NULL;
    if (s->n > DECIDE_MAX_PROCESSES)
        return "there are more than 64 processes in a sequence";
    if (!s->d)
        return "the processes gave no ratios";
    return NULL;
}

/* The place of the first value that is no measurement, from 1; 0: all are. */
static size_t faulty_value(const double *d, size_t n, bool may_lack)
{
    for (size_t i = 0; d && i < n; i++)
        if (!decide_is_measured(d[i]) && !(may_lack && isnan(d[i])))
            return i + 1;
    return 0;
}

static struct decide_text fault_of_values(const struct decide_sequence *s, const char *name)
{
    const struct {
        const double *d;
        const char *unit;
        bool may_lack;
    } columns[] = {{s->d, "time", false}, {s->log_ratio_cycles, "cycles", true}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        size_t at = faulty_value(columns[i].d, s->n, columns[i].may_lack);
        if (at)
            return decide_text("process %zu of the %s gave a ratio in %s that is no measurement",
                               at, name, columns[i].unit);
    }
    return (struct decide_text){""};
}

struct decide_text decide_fault(const struct decide_input *in)
{
    const char *fault = fault_of_policy(in);
    if (!fault && in->first.n == 0)
        fault = "no process measured this case";
    if (!fault)
        fault = fault_of_shape(&in->first);
    if (!fault)
        fault = fault_of_shape(&in->confirmation);
    if (fault)
        return decide_text("%s", fault);
    struct decide_text t = fault_of_values(&in->first, "first sequence");
    return t.s[0] ? t : fault_of_values(&in->confirmation, "confirmation");
}
