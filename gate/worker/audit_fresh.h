/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_fresh.h: is what is faster as much faster on fresh inputs and destroyed outputs?
 *
 * audit_idle.h calls a kernel wrong that leaves out much of its work where its result is there. A
 * tenth would pass there, and look like an improvement. So a candidate that was faster than the
 * baseline is timed in pairs: each set once with the inputs of another one and its outputs
 * destroyed, whose results are then checked as a whole; and, when the timed recording has run, each
 * set once more on what it holds. The baseline does the same in turn: what caches make of it is in
 * both. It is compared at the resolution of the gate, over processes, by run_ask_more().
 */
#ifndef GATE_WORKER_AUDIT_FRESH_H
#define GATE_WORKER_AUDIT_FRESH_H

#include "gate/worker/audit.h"

/* Fills ratio_fresh of the baseline, where the candidate was faster in this process and its
 * verified outputs are known. GATE_WRONG: what it wrote is not right. */
enum gate_status audit_fresh(const struct audit *a, struct gate_error *err);

#endif
