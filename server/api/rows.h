/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h: lists that are a statement: server/queries/NAME.sql.
 *
 * The first line says what the list is called and how many rows a page has, "-- runs: limit 50 500"
 * (usually, at most). Each :name of the statement is a parameter of the address (rows_parameters in
 * rows.c says what it may be), but for :limit, :after1 to :after4, :main_branch and :commit_url.
 * Each column is a member of a row, in its order, and has a comment behind it that documents it:
 *
 *     r.branch AS branch, -- text null: that the run named
 *
 * TYPE is text, integer, number, boolean, verdict, role, or json with the name of a schema in
 * openapi_parts.json; json has no place in CSV. `null`: it may be null. `key1`, `key2`: in this
 * order the place of a row in the list, which the next page begins behind. `hidden`: not a member.
 * `extra`: a column of a trend that is there only where it is asked for.
 * A column "verdicts.pass" is the member `pass` of the object `verdicts`;
 * neighbours share it. A second statement has one
 * row, whose columns are members of the object around the rows.
 */
#ifndef SERVER_API_ROWS_H
#define SERVER_API_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/store/store_rows.h"

#define ROWS_MAX_COLUMNS 48
#define ROWS_MAX_PARAMETERS 16
#define ROWS_MAX_KEYS 4
#define ROWS_MAX_NEST 2

enum rows_type {
    ROWS_TEXT,
    ROWS_INTEGER,
    ROWS_NUMBER,
    ROWS_BOOLEAN,
    ROWS_VERDICT,
    ROWS_ROLE,
    ROWS_JSON,
    ROWS_TYPES,
};

extern const char *const rows_type_names[ROWS_TYPES];

struct rows_column {
    char group[ROWS_MAX_NEST][24]; /* objects that it is in; "": none */
    char name[24];
    enum rows_type type;
    char schema[24]; /* of json */
    bool is_nullable, is_hidden, is_extra;
    int key; /* from 1 on; 0: none */
    const char *doc;
    int doc_len;
};

/* What a file of queries says. */
struct rows_query {
    const char *sql, *more; /* the second statement; NULL: there is none */
    char name[24];
    int usual, most; /* rows of a page; 0: it has no pages */
    int n_keys;
    size_t n_columns, n_members; /* of the one and of the other */
    struct rows_column columns[ROWS_MAX_COLUMNS], members[ROWS_MAX_COLUMNS];
    size_t n_parameters; /* of the address, without limit and after */
    char parameters[ROWS_MAX_PARAMETERS][16];
};

/* False: there is no such file, or it cannot be read as said above. */
bool rows_read(const char *file, struct rows_query *out);

/* A parameter of the address that one of the statements may have. */
struct rows_parameter {
    const char *name;
    const char *more;  /* of a name: what it may have besides a to z and 0 to 9 */
    size_t max;        /* the same: its length */
    const char *words; /* or else these words, with spaces between; the first is the default where
                          `has_default` */
    bool has_default;
    const char *doc;
};
extern const struct rows_parameter rows_parameters[]; /* the last has no name */

/* Does the address of this file take the parameter? */
bool rows_takes(const char *file, const char *parameter);

struct call;
struct emit;
void rows_put_cell(struct emit *e, const struct rows_column *column, const struct store_cell *cell);
/* The parameter `columns`: are its names members of a row, each there once? Else a problem was
 * written. */
bool rows_read_columns(struct call *c, const struct rows_query *query);

enum gate_status rows_get(struct call *c); /* of the route's file; api_call.h */

/* The rows of any file of queries. The values of its parameters end with a name that is NULL; what
 * is not among them, or whose text is NULL, is NULL. */
struct rows_value {
    const char *name, *text;
};
enum gate_status rows_select(struct call *c, const char *file, const struct rows_value *values,
                             store_cells_fn fn, void *context);
/* The text of a file of queries; NULL: there is no such file. */
const char *rows_text(const char *file);
/* The members of the first row of a list's statement, into the object that is open. */
enum gate_status rows_members(struct call *c, const char *file, const struct rows_value *values);

#endif
