/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blame.h: which node of a launch carries a regression, looked for after the verdicts.
 *
 * Of each regression whose launch has several kernels on either side a worker that does nothing
 * else puts nodes of one side into the recorded launches of the other (gate/worker/measure.h).
 * No other worker runs then; what cannot be had is said, and changes no verdict.
 */
#ifndef GATE_RUN_BLAME_H
#define GATE_RUN_BLAME_H

#include "gate/run/run.h"

/* What a case's document points to. */
struct blame {
    struct document_blame document;
    struct case_result result; /* that its texts are of */
    struct document_node none; /* a list that is not there would be none at all */
    char message[500];
};

/* Fills in the `blame` of these regressions; false: there are none. `s` is the run's, and has no
 * worker at work. After limit_s no further one is begun. */
bool blame_run(struct run *run, struct supervisor *s, double limit_s,
               void (*progress)(const char *text));
void blame_free(struct blame *b); /* NULL is fine */

#endif
