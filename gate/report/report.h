/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h: writes a run document as text, for people or for other programs; and tables.
 */
#ifndef GATE_REPORT_REPORT_H
#define GATE_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/term.h"
#include "gate/document/document.h"

enum report_format {
    REPORT_TEXT,     /* aligned table for a terminal */
    REPORT_MARKDOWN, /* summary of a CI job, under REPORT_MARKDOWN_MAX bytes */
    REPORT_JSON,     /* the text that the document was read from, indented */
    REPORT_CSV,      /* RFC 4180, one row an arm; the columns are in report_csv.c */
    REPORT_JUNIT,    /* Jenkins' xUnit-2 subset */
};

/* GitHub refuses a step summary over 1 MiB. */
#define REPORT_MARKDOWN_MAX (1024 * 1024 - 1)

struct report_style {
    bool colour;
    bool markdown;       /* report_write() goes by its format */
    int width;           /* columns of the terminal; 0: no limit */
    size_t markdown_max; /* bytes of a summary; 0: REPORT_MARKDOWN_MAX */
    const char *link; /* of a summary: the dashboard's address; NULL or empty: there are no links */
};

/* "text", "markdown", "json", "csv", "junit". False: no such format. */
bool report_format_parse(void *out, const char *name);

/*
 * Appends the report. The document is not trusted: its texts are escaped for the format, its
 * numbers may be of any size. `style` is for REPORT_TEXT and REPORT_MARKDOWN.
 * Out of memory or of out->max: out->failed.
 */
void report_write(const struct document *document, enum report_format format,
                  const struct report_style *style, struct buf *out);

/* A replacement for the report of a run that ended early, with the reason. */
void report_write_early(enum report_format format, int exit_code, const char *message,
                        struct buf *out);

/* Does a file of which this is the beginning look like a report of either kind, in any format? It
 * takes 64 bytes to tell. */
bool report_is_one(const char *beginning);

/* What is read of such a report in JSON: struct gate_error has no longer message. */
struct report_early {
    int exit_code;
    char message[1024];
};

/* False: the text is no report of a run that ended early. */
bool report_read_early(const char *text, size_t len, struct report_early *out);

/* REPORT_CSV in two parts, for several runs in one table. */
void report_csv_header(struct buf *out);
void report_csv_rows(const struct document *document, struct buf *out);

/* ---- tables ---- */

/*
 * A table for a terminal, where it is aligned, or in Markdown.
 *
 * When a terminal's width is too small, columns are left out, the one with the highest `drop`
 * first, and a line below the table names them. A column with drop 0 always stays, unless none of
 * its rows has a value.
 */
struct table;

struct table_column {
    const char *title; /* any text; copied. NULL: the column is in Markdown alone */
    bool right;        /* aligned to the right */
    int drop;
    const char *markdown; /* its title there, which is not copied; NULL: the same. "" leaves it out;
                             one that begins with a space stands between the value and that of the
                             column before, in one cell. */
    bool raw;             /* the values are Markdown there */
};

struct table *table_new(const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);

/* Appends a cell, row by row; the text is made safe for a terminal. */
void table_cell(struct table *t, enum term_colour colour, const char *text);

/* In Markdown yellow values are bold, unless they are raw, and "-" stands for none. */
void table_write(const struct table *t, const struct report_style *style, struct buf *out);

/* One line of text in which nothing is markup, neither Markdown's nor HTML's nor a table's, and
 * nothing is a reference. */
void markdown_text(const char *text, struct buf *out);

/* A code span; what would end it, or the cell of a table, is replaced. */
void markdown_code(const char *text, struct buf *out);

#endif
