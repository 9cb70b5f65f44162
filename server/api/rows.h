/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h: lists that are a statement: server/queries/NAME.sql.
 *
 * The first line says what the list is called and how many rows a page has, "-- runs: limit 50 500"
 * (usually, at most). Each :name of the statement that rows_parameters has is a parameter of the
 * address; the others are :limit, :after1 to :after4, :main_branch, :commit_url, and what a handler
 * gives. Each column is a member of a row, in its order, and has a comment behind it that documents
 * it:
 *
 *     r.branch AS branch, -- text null: that the run named
 *
 * TYPE is text, integer, number, boolean, verdict, role, or json with the name of a schema in
 * openapi_parts.json; json has no place in CSV. `null`: it may be null. `key1`, `key2`: in this
 * order the place of a row in the list, which the next page begins behind. `hidden`: not a member.
 * `extra`: a column of a trend that is there only where it is asked for. `more`: whether another
 * page follows; without such a column, the row behind the last one of a page tells. A column
 * "verdicts.pass" is the member `pass` of the object `verdicts`; neighbours share it. `whole`:
 * where it is null, that object is null. A second statement has one row, whose columns are members
 * of the object around the rows.
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
    bool is_nullable, is_hidden, is_extra, is_more, is_whole;
    int key; /* from 1 on; 0: none */
    const char *doc;
    int doc_len;
};

struct call;
struct emit;

/* A parameter of the address that one of the statements may have. */
struct rows_parameter {
    const char *name;
    const char *more;  /* of a name: what it may have besides a to z and 0 to 9 */
    size_t max;        /* the same: its length */
    const char *words; /* or else one of these, with spaces between */
    bool (*read)(struct call *c, const char **out); /* or else this reads it ... */
    const char *schema;    /* ... and this describes it to OpenAPI, with its type: a string */
    const char *otherwise; /* its default, or NULL */
    const char *doc;
};
extern const struct rows_parameter rows_parameters[]; /* the last has no name */

/* What a file of queries says. */
struct rows_query {
    const char *sql, *more; /* the second statement; NULL: there is none */
    char name[24];
    int usual, most; /* rows of a page; 0: it has no pages */
    int n_keys;
    size_t n_columns, n_members; /* of the one and of the other */
    struct rows_column columns[ROWS_MAX_COLUMNS], members[ROWS_MAX_COLUMNS];
    size_t n_parameters; /* of the address, without limit and after */
    const struct rows_parameter *parameters[ROWS_MAX_PARAMETERS];
};

/* NULL: there is no such file. */
const char *rows_text(const char *file);
/* NULL: there is no such file, or it cannot be read as said above. */
const struct rows_query *rows_query(const char *file);
/* Does the address of this file take the parameter? */
bool rows_takes(const char *file, const char *parameter);

/* What a handler gives a statement: the last has no name. What is not among these, or whose text is
 * NULL, is NULL, but for parameters of the address. */
struct rows_value {
    const char *name, *text;
};

enum gate_status rows_get(struct call *c); /* the list of the route's file; api_call.h */
/* The same of any file; `more` writes members of the object around the rows. */
typedef enum gate_status (*rows_more_fn)(struct call *c, void *context);
enum gate_status rows_list(struct call *c, const char *file, const struct rows_value *values,
                           rows_more_fn more, void *context);

/* The rows of any statement of `file`, for `fn`. */
enum gate_status rows_select(struct call *c, const char *file, const struct rows_value *values,
                             store_cells_fn fn, void *context);
/* The rows of a list's statement as objects: all of them, or the members of the first one into the
 * object that is open; *n, unless NULL: how many there were. */
enum gate_status rows_put(struct call *c, const char *file, const struct rows_value *values,
                          bool are_members, int *n);

/* A row of a list's statement as members of the object that is open. */
void rows_put_members(struct emit *e, const char *file, const struct store_row *row);

/* A callback: each cell as a member of the emit's object, as it is. */
bool rows_put_json(void *emit, const struct store_row *row);

void rows_put_cell(struct emit *e, const struct rows_column *column, const struct store_cell *cell);
/* Is it one of the words, with spaces or commas between? */
bool rows_is_one_of(const char *text, const char *words);
/* The parameter `columns`, for call->columns: are its names members of a row, each there once? Else
 * a problem was written. */
bool rows_read_columns(struct call *c, const struct rows_query *query);

/* ---- a list by hand ---- */

/* format=json|rows|csv, before anything is written. */
bool rows_read_format(struct call *c);
/*
 * A list is rows_begin(), the header of CSV, then rows between emit_row_begin() and
 * emit_row_end(), rows_end(), and rows_close(). Where rows_end() says true the form has room for
 * more than rows: members of the object around them.
 */
void rows_begin(struct call *c, const char *name);
/* The names of the columns that are shown, behind those before them; nothing in JSON. Members of an
 * object within a row have its name before theirs: "verdicts_pass". Arrays have no place. */
void rows_put_header(struct call *c, const struct rows_query *query, const char *before);
/* Is a column part of this answer? */
bool rows_shows(const struct call *c, const struct rows_column *column);
bool rows_end(struct call *c);
void rows_close(struct call *c);

#endif
