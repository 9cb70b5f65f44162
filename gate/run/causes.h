/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes.h: why is a case slower? Looked for after the verdicts, which nothing here changes. No
 * other worker runs then, and what cannot be had is said.
 */
#ifndef GATE_RUN_CAUSES_H
#define GATE_RUN_CAUSES_H

#include "gate/counters/counters.h"
#include "gate/library/listing.h"
#include "gate/run/run.h"

/* A regression that is compared with a library. */
bool causes_are_wanted(const struct run_case *c);

/* ---- blame.c: which node of a launch carries it ----
 *
 * Of each regression whose launch has several kernels on either side a worker that does nothing
 * else puts nodes of one side into the recorded launches of the other (gate/worker/measure.h).
 */

/* Fills in the `blame` of these regressions; false: there are none. `s` is the run's, and has no
 * worker at work. After limit_s no further one is begun. */
bool blame_run(struct run *run, struct supervisor *s, double limit_s,
               void (*progress)(const char *text));

/* ---- instructions.c: which instructions of its kernels occur more or less often than in the
 * baseline's, by nvdisasm ---- */

#define INSTRUCTIONS_MAX 400

/* What a case's document points to. */
struct instructions {
    char message[500];
    const char *names[DOCUMENT_KERNELS_MAX];
    struct document_instruction changed[INSTRUCTIONS_MAX];
    char opcodes[INSTRUCTIONS_MAX][DOCUMENT_OPCODE_SIZE];
    char sources[INSTRUCTIONS_MAX][LISTING_SOURCE_SIZE];
};

/* Fills in the `instructions` of regressions with a kernel whose code changed; false: there are
 * none. After limit_s no further one is begun. */
bool instructions_run(struct run *run, double limit_s, void (*progress)(const char *text));

/* ---- profile.c: hardware counters of both sides ----
 *
 * Nsight Compute starts a worker for each side, which launches the case a few times and does
 * nothing else.
 */

#define PROFILE_CASES_MAX 16 /* of a run */

/* What a case's document points to. */
struct profile {
    char message[500];
    char kernels[NCU_KERNELS_MAX][NCU_NAME_SIZE];
    const char *names[NCU_KERNELS_MAX];
    struct document_counter moved[NCU_KERNELS_MAX * COUNTERS_N];
};

/* Fills in the `profile` of the run's regressions, all of a library in one process. No worker of
 * the run may be at work. */
void profile_run(struct run *run, const struct supervisor_options *options,
                 void (*progress)(const char *text));

#endif
