/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate.h: how often would the gate be wrong on this machine, and what can it see?
 *
 * The candidate is compared with a copy of itself. To its replays a delay is added whose length is
 * a known share of the measured time: 0 (an A/A comparison) and the shares of calibrate_shares.
 * Each fresh process gives one d for each case and share; the whole protocol of decide.h is then
 * played many times on processes drawn from these with replacement.
 */
#ifndef GATE_RUN_CALIBRATE_H
#define GATE_RUN_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/document/document.h"

#define CALIBRATE_SHARES 7
#define CALIBRATE_PROCESSES_MAX 200

extern const double calibrate_shares[CALIBRATE_SHARES]; /* 0, 0.5 %, 1, 2, 2.5, 3 and 5 % */

/* d of n processes for each share; the roles are swapped in the second, fourth, ... */
struct calibrated_case {
    const char *id;
    double threshold;
    double d[CALIBRATE_SHARES][CALIBRATE_PROCESSES_MAX];
    size_t n;
    enum verdict lacks; /* why n is less than was wanted; VERDICT_PASS: it is not */
    char reason[1000];  /* of that */
};

/* Enough processes of a kernel that was right in all of them: fewer give no decision. */
bool calibrate_has_figures(const struct calibrated_case *c);

/*
 * The calibration of a run document, to be released. Figures are of the cases that have them, and
 * of each case that lacks processes of `wanted` it is said why. Adds to `counts` what a run's exit
 * code follows: a no-verdict for each case whose minimum detectable effect is over its threshold,
 * and what each incomplete case lacks.
 */
void calibrate_document(struct calibrated_case *cases, size_t n_cases, size_t wanted,
                        size_t counts[VERDICT_COUNT], struct document_calibration *out);
void calibrate_release(struct document_calibration *c);

#endif
