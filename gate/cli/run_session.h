/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_session.h: everything that a run needs and lets go of at its end. All that can be refused is
 * refused when it is opened, before the first kernel runs.
 */
#ifndef GATE_CLI_RUN_SESSION_H
#define GATE_CLI_RUN_SESSION_H

#include "gate/baseline/revision.h"
#include "gate/cli/run_rules.h"
#include "gate/cli/run_setup.h"

struct run_session {
    struct run_setup setup;
    struct store *store;
    struct baseline *baseline;
    char *baseline_path;
    int lock; /* of the folder of the baselines; -1: none */
    struct rebuild_recipe recipe;
    struct origin origin;
    struct revision against, warn_against;
    bool reported;          /* the reports are written, or failed to be */
    struct run_rules rules; /* what differs from the merge base */
    struct run run, warning;
    struct supervisor *supervisor; /* of the warning */
};

/* To be closed whatever it returns. */
enum gate_status run_session_open(struct run_request *r, struct run_session *s,
                                  struct gate_error *err);
void run_session_close(struct run_session *s);

/* May the stored baselines change by this run? */
bool run_request_keeps_baselines(const struct run_request *r);

/* What would be written at the end must be writable now: the cache, and the folder of the
 * baselines, which is made when it is not there. It stays locked from the reading of the baselines
 * to the writing, so that two runs do not undo each other's. */
enum gate_status run_session_open_for_keeping(const struct run_request *r, struct run_session *s,
                                              struct gate_error *err);

#endif
