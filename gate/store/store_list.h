/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_list.h: lists whose rows are written as they are read.
 *
 * A row is an array of cells, one for each column of the statement. The statement (store_sql.c)
 * gives each cell its name and its form, so a new column needs no other code.
 */
#ifndef GATE_STORE_STORE_LIST_H
#define GATE_STORE_STORE_LIST_H

#include "gate/store/store.h"

enum store_list {
    STORE_BASELINES,    /* what the newest run of each case was compared with, by case and device */
    STORE_BASELINE_LOG, /* runs that were compared with a newer baseline than before, newest first
                         */
    STORE_CALIBRATIONS, /* results of `gate calibrate`, newest first */
    STORE_CASE,         /* one case with its newest result: only for store_list_names() */
    STORE_COVERAGE,     /* what the verification of candidates covered, by device and op */
};

#define STORE_LIST_KEYS 2

/* NULL: any. A filter that the statement does not have is ignored. */
struct store_list_filter {
    const char *device_model, *case_id, *machine;
    const char *after[STORE_LIST_KEYS]; /* the key cells of the row before the first one */
    int64_t limit;
};

enum store_cell_kind { STORE_NULL, STORE_INTEGER, STORE_REAL, STORE_TEXT };

struct store_cell {
    const char *name;
    enum store_cell_kind kind;
    bool is_key;     /* a part of the key that `after` takes */
    bool is_hidden;  /* not for whoever reads the list */
    bool is_json;    /* the text is an array, as JSON */
    int64_t integer; /* 0 for NULL */
    double real;     /* of an integer too */
    const char *text;
};

/* The cell of a name; one that is NULL where there is none. */
const struct store_cell *store_cell_of(const struct store_cell *cells, int n, const char *name);

/* As long as the call lasts. */
typedef bool (*store_list_fn)(void *context, const struct store_cell *cells, int n);

enum gate_status store_list(struct store *s, enum store_list list,
                            const struct store_list_filter *filter, store_list_fn fn, void *context,
                            struct gate_error *err);
/* Calls `fn` with a row of NULLs, for the names of its cells. */
void store_list_names(struct store *s, enum store_list list, store_list_fn fn, void *context);

#endif
