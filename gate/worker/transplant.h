/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transplant.h: which node of a launch carries a slowdown?
 *
 * Each node of the baseline is put into the candidate's recorded launches, and each of the
 * candidate's into the baseline's. The outputs of such a hybrid are compared with the reference,
 * and its time with that of the side that it was made of, in rounds as session.h has them. What a
 * node carries is the mean of the two: how much faster the candidate is with the baseline's node,
 * and how much slower the baseline is with the candidate's. The interval holds both.
 */
#ifndef GATE_WORKER_TRANSPLANT_H
#define GATE_WORKER_TRANSPLANT_H

#include "gate/document/document.h"
#include "gate/worker/audit.h"

#define TRANSPLANT_ARMS 3 /* the candidate, the baseline, and a second one of the candidate's */

struct transplant_job {
    struct device *device;
    const struct suite_case *c;
    uint64_t seed;
    double budget_ns; /* for the rounds of a hybrid */
    struct arm *arms; /* TRANSPLANT_ARMS, prepared */
    audit_check_fn check;
    void *look; /* its context */
    void (*notice)(void *context, const char *node);
    void *context;
};

/* What the document points to. */
struct transplant {
    struct document_blame document;
    char message[500];
    struct document_node nodes[DOCUMENT_NODES_MAX];
    char names[DOCUMENT_NODES_MAX][DOCUMENT_KERNEL_NAME_SIZE];
    char messages[DOCUMENT_NODES_MAX][300];
    const char *baseline[DOCUMENT_NODES_MAX];
    char baseline_names[DOCUMENT_NODES_MAX][DOCUMENT_KERNEL_NAME_SIZE];
};

/* Fills in *out, which is all 0. GATE_WRONG: a launch failed, and the device with it. */
enum gate_status transplant_run(const struct transplant_job *job, struct transplant *out,
                                struct gate_error *err);

#endif
