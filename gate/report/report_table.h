/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_table.h: an aligned table for a terminal.
 *
 * When the style's width is too small, columns are left out, the one with the highest `drop` first,
 * and a line below the table names them. A column with drop 0 always stays, unless none of its rows
 * has a value.
 */
#ifndef GATE_REPORT_REPORT_TABLE_H
#define GATE_REPORT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/report/report.h"
#include "gate/base/term.h"

struct table;

struct table_column {
    const char *title; /* any text; copied */
    bool right;        /* aligned to the right */
    int drop;
};

/* Out of memory shows as out->failed of table_write(). */
struct table *table_new(const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);

/* Appends a cell, row by row; the text is made safe for a terminal. */
void table_cell(struct table *t, enum term_colour colour, const char *text);

void table_write(const struct table *t, const struct report_style *style, struct buf *out);

#endif
