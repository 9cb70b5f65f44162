/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_idle.h: the audit's look for who works less when it is timed; the rule is in idle.h.
 *
 * Each set is launched once, with the contents of another one and its outputs poisoned, and that
 * takes about as long as in the samples that were timed: most are through with one such replay. Who
 * is not is tried, beside the baseline where there is one: each look has as many replays of the
 * timed recording as there were samples, so that whatever sets in late does so here too, then some
 * of each set once, stale and fresh.
 */
#ifndef GATE_WORKER_AUDIT_IDLE_H
#define GATE_WORKER_AUDIT_IDLE_H

#include "gate/worker/audit.h"

/* Tries a copy of the candidate; session_note_copies() must have been called. The contents of the
 * sets are others afterwards. */
enum gate_status audit_idleness(const struct audit *a, unsigned copy, struct gate_error *err);

#endif
