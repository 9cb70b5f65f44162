/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_table.h: a table for a terminal, where it is aligned, or in Markdown.
 *
 * When a terminal's width is too small, columns are left out, the one with the highest `drop`
 * first, and a line below the table names them. A column with drop 0 always stays, unless none of
 * its rows has a value.
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
    const char *title; /* any text; copied. NULL: the column is in Markdown alone */
    bool right;        /* aligned to the right */
    int drop;
};

/* Out of memory shows as out->failed of table_write(). */
struct table *table_new(const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);

/* Appends a cell, row by row; the text is made safe for a terminal. */
void table_cell(struct table *t, enum term_colour colour, const char *text);

void table_write(const struct table *t, const struct report_style *style, struct buf *out);

/*
 * How a column is in Markdown, where it is not as on a terminal. `title`, which is not copied: NULL
 * leaves it out; one that begins with a space stands between the value and that of the column
 * before, in one cell. `raw`: the values are Markdown.
 */
void table_markdown(struct table *t, size_t column, const char *title, bool raw);

/* Yellow values are bold, unless they are raw; "-" stands for none. */
void table_write_markdown(const struct table *t, struct buf *out);

/* One line of text in which nothing is markup, neither Markdown's nor HTML's nor a table's, and
 * nothing is a reference. */
void markdown_text(const char *text, struct buf *out);

/* A code span; what would end it, or the cell of a table, is replaced. */
void markdown_code(const char *text, struct buf *out);

#endif
