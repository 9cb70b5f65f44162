/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_memory.h: the audit's look for who writes where it must not once it is timed.
 *
 * A kernel may keep to its outputs as long as it is looked at. Right after the timing the inputs
 * and the gaps behind all tensors must be what they were before the first launch. All arms worked
 * there, so each is tried again by itself to find whose deed it was; where none does it again it is
 * put down to the candidate, which alone is on trial.
 */
#ifndef GATE_WORKER_AUDIT_MEMORY_H
#define GATE_WORKER_AUDIT_MEMORY_H

#include "gate/launch/session.h"

/* To be called before the sets are loaded anew. GATE_WRONG: the session's `at` is the guilty one.
 */
enum gate_status audit_memory(struct session *s, struct gate_error *err);

#endif
