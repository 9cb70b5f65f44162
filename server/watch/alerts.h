/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alerts.h: looks at what runs brought, and opens and closes alerts.
 *
 * Each track of a run of the main branch is looked at once, in the order in which the runs were
 * stored and as if there were no other branches. A look reads the newest results of the track's
 * candidate, finds the episodes among them (episodes.h), and compares these with the alerts on
 * record. Nothing else is kept between looks. A run that comes late takes its place among the
 * results; one that is older than all of those is history, and not looked at.
 *
 * Alerts: one for each episode, by its kind. It follows an episode that moves, and is fixed when
 * the level returns. Where later runs do not show it any more it is withdrawn, while it is young,
 * and once; what stood for 20 values, or was opened again, ends with the level itself: with the
 * median of the newest values. So an alert does not flap where times have some autocorrelation. A
 * run that comes late among the values of an alert is another history, which the alert follows at
 * once.
 *
 * An error (relative, of the verification) of more than ten times the usual one, the median of 50
 * others, is an alert too, and so is one that is, over the vendor's own error on the same inputs,
 * more than twice the usual: of a case with a few outputs, whose errors scatter, by more than six
 * standard deviations. A track has one open alert of an error at most; what was accepted or ignored
 * of the one kind of error hides none of the other.
 *
 * What became the baseline is accepted: a regression by somebody's accept, an improvement by the
 * ratchet. The log of baselines says so, and the pairs of the newest run, or else its times.
 */
#ifndef SERVER_WATCH_ALERTS_H
#define SERVER_WATCH_ALERTS_H

#include "gate/store/store.h"

/*
 * Looks at tracks of runs for about `slice_ms`, at one at least; *more: there are others. What was
 * looked at is marked in the same write, so that each is looked at exactly once; one that the
 * tables refuse is told in the log and left out, so that the others go on.
 */
enum gate_status alerts_look(struct store *s, const char *main_branch, int64_t slice_ms, bool *more,
                             struct gate_error *err);

/* What the log says of alerts. */
struct alerts_log {
    bool begun;
    int64_t event_id; /* the newest step that was logged */
};

/*
 * Writes a line for each group of alerts that got its first open alert, or whose last open alert
 * was closed, in what was committed since the last call. The first call writes none.
 */
void alerts_log(struct alerts_log *l, struct store *s);

#endif
