/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_check.h: does a run document agree with itself? The reader says what it may hold, this
 * what it may not claim: a verdict that its own cases do not give, a pass of what was never
 * verified. For documents that come from elsewhere.
 */
#ifndef GATE_DOCUMENT_DOCUMENT_CHECK_H
#define GATE_DOCUMENT_DOCUMENT_CHECK_H

#include "gate/document/document.h"

/* Clocks differ, but not by more than this; one that was never set says 1970. */
#define DOCUMENT_AHEAD_MS ((int64_t)24 * 3600 * 1000)
#define DOCUMENT_FIRST_MS 1420070400000 /* 2015-01-01: no run is older */

/*
 * False, with the first fault, for a document that
 *   - begins before DOCUMENT_FIRST_MS, or more than DOCUMENT_AHEAD_MS after `now_ms` (ms since
 *     1970), or has a baseline that is from so far ahead;
 *   - has neither a case nor a calibration, or a case twice;
 *   - has a verdict or an exit code that its cases (or its calibration) do not give;
 *   - passes or fails for its speed a case whose candidate was not verified to be right and timed;
 *   - has an interval that does not hold its value;
 *   - passes a case whose interval reaches the threshold, though nothing was confirmed, or whose
 *     error jumped, or calls one a regression whose ratio is below it and whose error did not
 *     jump.
 */
bool document_check(const struct document *d, int64_t now_ms, struct field_fault *fault);

#endif
