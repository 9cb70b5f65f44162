/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_calibration.h: the results of `gate calibrate` as the rows of a table.
 */
#ifndef GATE_REPORT_REPORT_CALIBRATION_H
#define GATE_REPORT_REPORT_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/document/document.h"
#include "gate/report/report_units.h"

#define CALIBRATION_MAX_SHARES 16

struct calibration {
    const struct document_calibrated *
        *cases; /* worst first: unresolved, then by false fails, then by MDE */
    size_t n_cases, n_resolved;
    double shares[CALIBRATION_MAX_SHARES]; /* of time that was added, ascending */
    double red[CALIBRATION_MAX_SHARES], decisions[CALIBRATION_MAX_SHARES]; /* of all cases */
    size_t n_shares;
};

/* False: out of memory. */
bool calibration_read(const struct document_calibration *calibration, struct calibration *out);
void calibration_release(struct calibration *c);

/* "unchanged" for 0, else "+2.5 %". */
const char *calibration_share_name(double share, char out[UNITS_MAX]);

/*
 * "99.64 %" of decisions were red; never rounded to 0 or 100 when it is not. "-": none were made
 * at that share.
 */
const char *calibration_rate(double red, double decisions, char out[UNITS_MAX]);
const char *calibration_case_rate(const struct document_calibrated *c, double share,
                                  char out[UNITS_MAX]);

/* One line for each case that lacks processes, with the reason, for at most
 * CALIBRATION_MAX_INCOMPLETE of them; `put` writes the text. Nothing if all are complete. */
#define CALIBRATION_MAX_INCOMPLETE 20
void calibration_incomplete(const struct document_calibration *calibration, const char *bullet,
                            void (*put)(const char *text, struct buf *out), struct buf *out);

/* "38 of 40 cases resolve 2 %; red: unchanged 0 % (0 of 40000 decisions), +2.5 % 99.98 %". */
void calibration_summary(const struct calibration *c, double threshold, struct buf *out);

#endif
