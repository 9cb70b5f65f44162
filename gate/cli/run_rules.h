/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_rules.h: what a change does to the thresholds that it is judged by. Whoever makes a kernel
 * slower could also widen its threshold: then the run passes, and its reports say what was changed.
 */
#ifndef GATE_CLI_RUN_RULES_H
#define GATE_CLI_RUN_RULES_H

#include "gate/cases/suite.h"

#define RUN_RULES_MAX 64

struct run_rules {
    char *changed[RUN_RULES_MAX]; /* "gemm/...: threshold 2 % -> 100 %" */
    size_t n;
};

/*
 * Compares the thresholds of the suite's file and of gate.json with those of a commit, and warns of
 * each change on standard error. `suite_path`: NULL, no file of the repository. Files that the
 * commit did not have have changed nothing. To be released in either case.
 */
enum gate_status run_rules_compare(const char *commit, const char *suite_path,
                                   const struct suite *now, double threshold, struct run_rules *out,
                                   struct gate_error *err);
void run_rules_release(struct run_rules *r);

#endif
