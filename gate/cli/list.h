/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h: what a command lists, as tables for a terminal or as one list of JSON objects. A kind of
 * list names its columns and the fields of its rows; a command only adds the rows.
 */
#ifndef GATE_CLI_LIST_H
#define GATE_CLI_LIST_H

#include "gate/base/term.h"
#include "gate/cli/commands.h"
#include "gate/document/fields_table.h"
#include "gate/report/report_units.h"

struct list_cell {
    char text[UNITS_MAX];
    const char *shown; /* `text`, unless a column shows a text of the row itself */
    enum term_colour colour;
};

struct list_column {
    const char *title;
    bool right;
    int drop; /* as of struct table_column */
    enum term_colour colour;
    void (*show)(const void *at, struct list_cell *out);
    size_t offset; /* of `at` in the row */
};

struct list_kind {
    const struct list_column *columns; /* NULL: the command writes a row's text itself */
    size_t n_columns;
    const struct shape *shape; /* of a row in JSON */
};

struct list {
    const struct list_kind *kind;
    bool json;
    size_t n; /* rows so far */
    struct report_style style;
    struct table *table; /* of the rows since the last list_table() */
    struct buf text;
};

void list_open(struct list *l, const struct list_kind *kind, bool json);

/* Adds a row, of which nothing is kept. */
void list_row(struct list *l, const void *row);

/* Ends a table, for a list of several, which stand under headings; nothing without rows. */
void list_table(struct list *l, const char *case_id, const char *device_model);

/* Prints the list; `none`: what is said in place of a table without rows, NULL: its titles. */
enum gate_status list_print(struct list *l, const char *none, struct gate_error *err);
void list_release(struct list *l);

/* Columns of members of these types. */
void list_text(const void *at, struct list_cell *out);     /* const char * */
void list_count(const void *at, struct list_cell *out);    /* int64_t */
void list_duration(const void *at, struct list_cell *out); /* double, ns */
void list_percent(const void *at, struct list_cell *out);  /* double, a share */
void list_flops(const void *at, struct list_cell *out);    /* double, TFLOP/s */
void list_gbps(const void *at, struct list_cell *out);     /* double, GB/s */
void list_time(const void *at, struct list_cell *out);     /* int64_t, ms since 1970 */

/* "5c3f01a2b9d4+": a '+' says that there were uncommitted changes. */
void list_commit(const char *commit, bool dirty, struct list_cell *out);
/* Half of an interval, as a share of the value. */
void list_half_width(double value, double lo, double hi, struct list_cell *out);

#endif
