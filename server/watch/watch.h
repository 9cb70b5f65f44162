/*
 * watch.h: looks at what runs brought, finds where a level changed, and opens and closes alerts.
 *
 * Each track of a run of a watched branch is looked at once, in the order in which the runs were
 * stored and as if there were no other branches: the newest values of the candidate's series
 * (changepoint.h), over the control's time where all of them have one. A new contract is another
 * series and a new epoch another stretch: nothing crosses them. A run that comes late takes its
 * place among the newest values; one that is older than those, or than the last change, is history
 * and no longer looked at.
 *
 * Alerts: one for each change point, by its direction; it follows a young one that moves. A
 * regression whose level returns is fixed, and that return is no alert of its own; so is one whose
 * change point vanishes. Each is opened again when the later runs take that back. An error
 * (relative, of the verification) of more than ten times the usual one, the median of
 * the other newest CHANGEPOINT_WINDOW ones, is an alert too, and so is one that is, over the
 * vendor's own error on the same inputs, more than twice the usual: of a case with a few outputs,
 * whose errors scatter, by more than six standard deviations. A track has one open alert of an
 * error at most; what was accepted or ignored of the one kind of error hides none of the other.
 * Somebody's audited accept of a slower best accepts the regressions up to that level.
 */
#ifndef SERVER_WATCH_WATCH_H
#define SERVER_WATCH_WATCH_H

#include "store/store.h"
#include "store/watch_branches.h"

/*
 * Looks at up to `max_tracks` tracks of runs; *more: there are others. What was looked at is marked
 * in the same batch (the one that is open, or one of its own), so that each is looked at exactly
 * once; one that the tables refuse is told in the log and left out, so that the others go on. A
 * look begins with a glance at the newest CHANGEPOINT_WINDOW values and the segment's first ones;
 * the others are read only when these leave something to find. A track takes 40 us of a 2020s x86
 * core, the 2,500 of a run of 5,000 series 0.1 s.
 */
enum gate_status watch_pending(struct store *s, const struct watch_branches *branches,
                               int max_tracks, bool *more, struct gate_error *err);

#endif
