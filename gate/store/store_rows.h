/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_rows.h: any statement, row by row: what the API and the alerts are made of.
 */
#ifndef GATE_STORE_STORE_ROWS_H
#define GATE_STORE_STORE_ROWS_H

#include "gate/store/store.h"

#define STORE_MAX_CELLS 64

enum store_cell_kind { STORE_NULL, STORE_INTEGER, STORE_REAL, STORE_TEXT, STORE_BLOB };

struct store_cell {
    const char *name; /* of the column */
    enum store_cell_kind kind;
    int64_t integer; /* 0 for NULL; of a blob, which is bound alone, its length */
    double real;     /* of an integer too */
    const char *text;
};

/* Cells to bind. Texts and bytes are not copied: they must outlive the query. */
static inline struct store_cell cell_integer(int64_t value)
{
    return (struct store_cell){.kind = STORE_INTEGER, .integer = value};
}

static inline struct store_cell cell_text(const char *text) /* NULL: NULL */
{
    return (struct store_cell){.kind = text ? STORE_TEXT : STORE_NULL, .text = text};
}

/* Values of ?1, ?2 and so on. */
#define CELLS(...)                                                                                 \
    (const struct store_cell[]){__VA_ARGS__},                                                      \
        sizeof((const struct store_cell[]){__VA_ARGS__}) / sizeof(struct store_cell)

struct store_row {
    const struct store_cell *cells;
    int n;
};

/* The cell of a name; one that is NULL where there is none. */
const struct store_cell *store_cell_of(const struct store_row *row, const char *name);
const char *store_text_of(const struct store_row *row, const char *name); /* "" for NULL */
int64_t store_integer_of(const struct store_row *row, const char *name);  /* 0 for NULL */

/* The value of the parameter `:name`; one that is left alone is NULL. */
typedef void (*store_value_fn)(void *context, const char *name, struct store_cell *value);
/* False ends the query. */
typedef bool (*store_cells_fn)(void *context, const struct store_row *row);

/* `sql` is one statement, or several of which the first is run, and a constant: it is prepared at
 * its first use, and kept by its address. */
enum gate_status store_select(struct store *s, const char *sql, store_value_fn value,
                              store_cells_fn fn, void *context, struct gate_error *err);

/*
 * Runs a statement that changes something, in a write of its own or as a part of the one that is
 * open. *n_changed, unless NULL: how many rows.
 */
enum gate_status store_change(struct store *s, const char *sql, const struct store_cell *values,
                              size_t n, int *n_changed, struct gate_error *err);
/* What `meta` keeps of a webhook's target: of the kind "webhook" or "silences". */
enum gate_status store_put_mark(struct store *s, const char *kind, const char *target,
                                struct store_cell value, struct gate_error *err);

/* Functions for statements: duration(ns) and percent(share), as report_units.h has them. */
struct sqlite3;
void store_add_functions(struct sqlite3 *db);

#endif
