/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h: what recorded launches write, compared with what was verified.
 *
 * A kernel may be right when it is looked at, and wrong or idle when it is timed: it counts its
 * launches, sees that it is recorded, remembers results by their pointers, or finds its own result
 * still there. So when all samples are taken, each arm's own recording is replayed with every set
 * holding the content of another one and the outputs poisoned, so that nothing that was remembered
 * is of use: each output of each set must have the fingerprint of the verified output of the same
 * inputs.
 *
 * Of the candidate the time is looked at as well: a launch for each set, fresh in the same way,
 * must take about as long as the samples did (audit_idle.h). A thorough audit also records as many
 * launches with the outputs poisoned before the last rotation over the sets, for a kernel that
 * works in the first one alone, and looks at a single launch. Where the library is there twice a
 * thorough audit is of both copies, any other of the one whose samples beside the baseline were
 * faster: a copy that does less than the other is.
 */
#ifndef GATE_WORKER_AUDIT_H
#define GATE_WORKER_AUDIT_H

#include "gate/launch/session.h"

/*
 * Outputs that `arm` wrote in timed launches, of inputs of content `content`, have other bits than
 * the verified ones, or the arm is declared non-deterministic: are they right? GATE_WRONG with a
 * message when they are not.
 */
typedef enum gate_status (*audit_check_fn)(void *context, struct arm *arm, const struct operands *o,
                                           unsigned content, struct gate_error *err);

struct audit {
    struct session *session;
    bool thorough;
    audit_check_fn check;
    void *context;
};

/* Are the outputs of all sets right, which the arm at work has just written on what the sets hold?
 */
enum gate_status audit_outputs(const struct audit *a, struct gate_error *err);

/* Audits all arms that have fingerprints. GATE_WRONG: the session's `at` is the guilty one. The
 * session can take no samples afterwards. */
enum gate_status audit_arms(const struct audit *a, struct gate_error *err);

/*
 * A kernel may keep to its outputs as long as its results are checked. Right after the timing the
 * inputs and the gaps behind all tensors must be what they were before the first launch. All arms
 * worked there, so each is tried again by itself to find which one writes there; if none does it
 * again, the candidate is blamed, since it alone is on trial. To be called before the sets are
 * loaded anew. GATE_WRONG: the session's `at` is the guilty one.
 */
enum gate_status audit_memory(struct session *s, struct gate_error *err);

#endif
