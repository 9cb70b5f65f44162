/* SPDX-License-Identifier: Apache-2.0 */
/* watch_accept.c: what somebody accepted as baseline is no regression; see watch_private.h. */
#include <stdio.h>

#include "gate/report/report_units.h"
#include "server/watch/watch_private.h"

#define ACCEPTED_LEVEL 0.02 /* a baseline this near to a level accepts it */

static enum gate_status accept_alert(const struct watched_case *l, struct alert_row *alert,
                                     double baseline_ns)
{
    char reason[120], baseline[UNITS_MAX];
    snprintf(reason, sizeof reason, "the baseline was raised to %s by an accept",
             units_duration(baseline_ns, baseline));
    return look_step(l, alert, ALERT_ACCEPTED, 0, reason);
}

/*
 * Accepts the alert of a level that somebody accepted as baseline behind a run, if the run of the
 * look is compared with such a baseline: what was accepted in a merge request counts when that is
 * merged. An alert that somebody opened again is not accepted by what was accepted before.
 */
static enum gate_status accept_if_raised(const struct watched_case *l, struct alert_row *alert)
{
    double baseline_ns = 0, least_ns = alert->after / (1 + ACCEPTED_LEVEL);
    if (!alert_is_open(alert) || alert->kind != ALERT_REGRESSION ||
        look_point(l)->baseline_ns < least_ns)
        return GATE_OK;
    enum gate_status status =
        store_raised_baseline(l->store, l->item, alert->before_run_id, alert->reopened_ms, least_ns,
                              &baseline_ns, l->err);
    return !status && baseline_ns > 0 ? accept_alert(l, alert, baseline_ns) : status;
}

enum gate_status watch_apply_accept(struct watched_case *l)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < l->n_alerts && !status; i++)
        status = accept_if_raised(l, &l->alerts[i]);
    return status;
}
