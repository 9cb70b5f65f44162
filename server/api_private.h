/*
 * api_private.h: what api.c and the files of its topics (api_<topic>.c) share. Not for its users.
 *
 * A topic is a file of handlers and one line each in the table of api.c. A handler reads its
 * parameters by take_*(), which write the problem themselves and return false; then the handler
 * returns GATE_OK, because the request was answered. Any other status means that the store could
 * not be read, and c->err says why.
 */
#ifndef SERVER_API_PRIVATE_H
#define SERVER_API_PRIVATE_H

#include "emit.h"
#include "reply.h"
#include "request.h"
#include "store.h"

#define API_MAX_NAMES 10 /* parameters of one address */

/* One answer in the making. */
struct call {
    struct store *store;
    const struct request *request;
    const char *rest; /* of the path, behind the route's */
    struct reply *reply;
    struct emit emit;
    struct gate_error err;
};

struct route {
    const char *path; /* behind /api/v1/; one that ends in '/' takes a rest */
    const char *parameters[API_MAX_NAMES];
    enum gate_status (*get)(struct call *c);
};

/* All of them, which openapi.json must describe. */
const struct route *api_routes(size_t *n);

/* ---- parameters: api_parameter.c ---- */

/* Of the names of the run document: what could be stored is what can be asked for. */
bool is_name(const char *s, const char *more, size_t max);

/* A name that may be missing (NULL). False: a problem was written. */
bool take_name(struct call *c, const char *parameter, const char *more, size_t max, bool required,
               const char **out);
bool take_device(struct call *c, bool required, const char **out);
bool take_case(struct call *c, bool required, const char **out);
bool take_provider(struct call *c, const char **out);
bool take_contract(struct call *c, const char **out);
bool take_verdict(struct call *c, const char **out);
bool take_commit(struct call *c, const char **out); /* all 40 digits */
bool take_branch(struct call *c, const char **out); /* any text that a document may have */

/* A whole number from `min` to `max`. */
bool take_number(struct call *c, const char *parameter, int64_t otherwise, int64_t min, int64_t max,
                 int64_t *out);

/* Decimal digits only, from 0 up, then `end`; -1: anything else. `rest`: NULL, or where to put the
 * address of `end`. */
int64_t parse_count(const char *s, char end, const char **rest);

/* ---- parts of answers ---- */

void open_list(struct call *c, const char *name);        /* {"name":[ */
void close_list(struct call *c);                         /* ]} */
void end_text(struct call *c);                           /* the newline behind an answer */
void put_run(struct emit *e, const struct store_run *r); /* api_runs.c */

/* ---- handlers ---- */

enum gate_status get_runs(struct call *c);
enum gate_status get_document(struct call *c);
enum gate_status get_cases(struct call *c);
enum gate_status get_trends(struct call *c);
enum gate_status get_leaderboard(struct call *c);
enum gate_status get_devices(struct call *c);
enum gate_status get_openapi(struct call *c);

#endif
