/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h: writes text as a field of CSV (RFC 4180).
 */
#ifndef GATE_BASE_CSV_H
#define GATE_BASE_CSV_H

#include "gate/base/buf.h"

/*
 * Appends a field, in quotes if necessary. Text that a spreadsheet would run as a formula,
 * including one that splits lines at ';', gets an apostrophe in front.
 */
void csv_put(struct buf *out, const char *text);

#endif
