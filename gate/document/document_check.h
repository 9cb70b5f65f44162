/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_check.h: checks that a run document from elsewhere is consistent. The reader checks the
 * form. This checks the claims: a verdict must follow from the cases, and a case that was never
 * verified must not pass.
 */
#ifndef GATE_DOCUMENT_DOCUMENT_CHECK_H
#define GATE_DOCUMENT_DOCUMENT_CHECK_H

#include "gate/document/document.h"

/* Limits of a plausible clock: one that was never set shows 1970. */
#define DOCUMENT_AHEAD_MS ((int64_t)24 * 3600 * 1000)
#define DOCUMENT_FIRST_MS 1420070400000 /* 2015-01-01: no run is older */

/*
 * False, with the first fault, for a document that
 *   - begins before DOCUMENT_FIRST_MS, or more than DOCUMENT_AHEAD_MS after `now_ms` (ms since
 *     1970), or has a baseline that is from so far ahead;
 *   - has neither a case nor a calibration, or a duplicate case;
 *   - has a verdict or an exit code that does not follow from its cases (or its calibration);
 *   - judges the speed of a case whose candidate was not verified and timed;
 *   - has an interval that does not contain its value, or lacks one, and no other tool measured it;
 *   - mixes cases of another tool with those of the gate, or judges them;
 *   - passes a case whose interval reaches the threshold without a confirmation, or whose error
 *     jumped; or calls a case a regression although its ratio is below the threshold and its error
 *     did not jump.
 */
bool document_check(const struct document *d, int64_t now_ms, struct field_fault *fault);

#endif
