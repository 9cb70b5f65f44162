/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_call.h: one call of the API: what handlers (api_<topic>.c) share, and the handlers
 * themselves.
 *
 * A topic is one file of handlers. Each handler has a row in http/routes.c. It reads its parameters
 * with read_*(). Those functions write the problem and return false for a bad parameter; the
 * handler then returns GATE_OK, because the request has its answer. Any other status means that the
 * store could not be read, and c->err says why. A handler reads everything from one state of the
 * store.
 *
 * With branch=, or main=1 for the main branch, what is newest, or lowest, is so among the runs of
 * that branch. Lists and trends take format=json|rows|csv: rows is the array alone.
 *
 * Times are integers of ms since 1970 UTC (*_ms), durations nanoseconds (*_ns), ratios candidate
 * over other; null is "not known". A parameter that an address does not have is refused, so that a
 * misspelt filter never shows everything.
 */
#ifndef SERVER_API_API_CALL_H
#define SERVER_API_API_CALL_H

#include "server/api/route.h"
#include "server/request/auth.h"
#include "server/text/emit.h"
#include "server/request/reply.h"
#include "server/request/request.h"
#include "gate/store/store.h"

/* What the server was told about the repository, and about itself. */
struct api_site {
    const char *main_branch;
    const char *commit_url; /* or NULL */
    const char *public_url; /* or NULL */
    const char *speaker;    /* names the program and all of these */
};

/* One answer in the making. */
struct call {
    struct store *store;
    struct api_site site;
    const struct request *request;
    const char *query; /* the route's */
    const char *rest;  /* of the path, behind the route's */
    struct reply *reply;
    struct emit emit;
    const char *columns; /* those of a row that are asked for, with commas; NULL: all */
    struct gate_error err;
    enum gate_status status; /* of what a row's callback read */
};

/* ---- parameters: api_parameter.c ---- */

/* Of the names of the run document: what could be stored is what can be asked for. */
bool is_name(const char *s, const char *more, size_t max);

/* A name that may be missing (NULL). False: a problem was written. */
bool read_name(struct call *c, const char *parameter, const char *more, size_t max, bool required,
               const char **out);
/* The same of a name that rows_parameters has (rows.h). */
bool read_parameter(struct call *c, const char *name, bool required, const char **out);
bool read_machine(struct call *c, const char **out);
bool read_commit(struct call *c, const char **out); /* 7 to 40 digits */
bool read_branch(struct call *c, const char **out); /* branch=, or main=1: the main branch */

/* A whole number from `min` to `max`. */
bool read_number(struct call *c, const char *parameter, int64_t otherwise, int64_t min, int64_t max,
                 int64_t *out);
/* One of n words; `otherwise` when the parameter is missing. */
bool read_word(struct call *c, const char *parameter, const char *const *words, int n,
               int otherwise, int *out);

/* The problem of an `after` that was not a `next`. */
void refuse_after(struct call *c);

/* Decimal digits only, from 0 up; -1: anything else. */
int64_t parse_count(const char *s);

/* ---- handlers ---- */

enum gate_status get_document(struct call *c);
enum gate_status get_trends(struct call *c);
enum gate_status get_compare(struct call *c);
enum gate_status get_alert(struct call *c);
enum gate_status get_counters(struct call *c);
enum gate_status get_openapi(struct call *c);
enum gate_status get_badge(struct call *c);
enum gate_status get_feed(struct call *c);

/* ---- what calls them: api.c ---- */

/* True: the request has a parameter that the route has not, and a problem was written. */
bool api_refuse_parameters(const struct route *route, const struct request *request,
                           struct reply *reply);

/*
 * Answers by route->get, from one state of the store, whose tag the answer has; 304 without an
 * answer when `if_none_match` (or NULL) names that tag.
 */
void api_get(const struct route *route, const char *rest, struct store *store,
             const struct api_site *site, const struct request *request, const char *if_none_match,
             struct reply *reply);

/* ---- what is written, by POST ---- */

/*
 * A handler is called with the whole body and with the store that writes, whose turn nobody else
 * has meanwhile. It checks the body, writes, commits, and answers in *reply, in this order. A
 * refusal (400, 404, 409) is an answer too: write it, change nothing, return GATE_OK. Another
 * status, with a message in w->err, means that the database failed: it becomes 503, and the client
 * will try again.
 */
struct api_write {
    struct store *store;
    const char *rest;           /* of the path, behind the route's */
    const struct identity *who; /* whose token it came with */
    const char *body;
    size_t len;
    bool gzipped;        /* Content-Encoding of the body */
    struct reply *reply; /* 200 with an empty body at first */
    struct gate_error err;
};

struct write_handler {
    bool may_gzip;
    size_t max_body; /* as it comes */
    enum gate_status (*write)(struct api_write *w);
};

extern const struct write_handler api_ingest_run;                      /* api_ingest.c */
extern const struct write_handler api_alert_action, api_alerts_action; /* api_alerts.c */

#endif
