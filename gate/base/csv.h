/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h: text as a field of CSV (RFC 4180).
 */
#ifndef GATE_BASE_CSV_H
#define GATE_BASE_CSV_H

#include "gate/base/buf.h"

/*
 * Appends a field, in quotes where it needs them. What a spreadsheet would run as a formula, also
 * one that splits lines at ';', gets an apostrophe before it.
 */
void csv_put(struct buf *out, const char *text);

#endif
