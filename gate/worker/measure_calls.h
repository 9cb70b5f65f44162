/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure_calls.h: what a caller pays on the host for a launch.
 *
 * The times of session.h are the device's, of launches that were recorded once and replayed: what
 * launch() itself does on the host is not in them. Here the calls are timed, some in a row, then
 * the device is waited for. The candidate and the baseline take turns as in session.h, with both
 * copies of their libraries. On the host device a call does the work, and its time is the work's.
 */
#ifndef GATE_WORKER_MEASURE_CALLS_H
#define GATE_WORKER_MEASURE_CALLS_H

#include "gate/launch/session.h"

/* Fills call_ns of the candidate and of the baseline, and the latter's ratio_calls; `swap`: the
 * baseline comes first. The arms' p50 must be known: it says how many calls a sample has. */
enum gate_status measure_calls(struct session *s, bool swap, struct gate_error *err);

#endif
