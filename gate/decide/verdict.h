/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h: what is said of a case and of a run.
 */
#ifndef GATE_DECIDE_VERDICT_H
#define GATE_DECIDE_VERDICT_H

#include <stddef.h>

/* The history stores these numbers. */
enum verdict {
    VERDICT_PASS,
    VERDICT_REGRESSION,
    VERDICT_IMPROVEMENT,
    VERDICT_WRONG,
    VERDICT_NO_VERDICT,
    VERDICT_ENVIRONMENT,
    VERDICT_COUNT
};

extern const char *const verdict_names[VERDICT_COUNT + 1]; /* NULL ends them */

/* "" where there is none of that number. */
const char *verdict_name(enum verdict v);

/* Exit code of a run from the number of cases with each verdict: the first of wrong (2), regression
 * (1), environment (4), no-verdict (3) that occurs, else 0. */
int verdict_exit_code(const size_t counts[VERDICT_COUNT]);

/* The verdict of a run with that exit code: the verdict that led to it; pass for 0. */
enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT]);

#endif
