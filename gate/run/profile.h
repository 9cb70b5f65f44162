/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h: hardware counters of both sides of each regression, read after the verdicts.
 *
 * Nsight Compute starts a worker for each side, which launches the case a few times and does
 * nothing else; no other worker runs then. What cannot be had is said, and changes no verdict.
 */
#ifndef GATE_RUN_PROFILE_H
#define GATE_RUN_PROFILE_H

#include "gate/counters/counters.h"
#include "gate/run/run.h"

#define PROFILE_CASES_MAX 16 /* of a run */

/* What a case's document points to. */
struct profile {
    struct document_counters document;
    char message[500];
    char kernels[NCU_KERNELS_MAX][NCU_NAME_SIZE];
    const char *names[NCU_KERNELS_MAX];
    struct document_counter moved[NCU_KERNELS_MAX * COUNTERS_N];
};

/* Fills in the `profile` of the run's regressions, all of a library in one process. No worker of
 * the run may be at work. */
void profile_run(struct run *run, const struct supervisor_options *options,
                 void (*progress)(const char *text));

/* The kernels that both sides launch, and their counters by how much they moved. */
void profile_compare(const struct ncu_table *new, const struct ncu_table *old, struct profile *out);

#endif
