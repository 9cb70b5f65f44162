/*
 * api_write.h: what the API lets be written: POST and PUT under /api/v1/.
 *
 * A topic is a row of the table in api_write.c and three functions. The body comes whole; then
 *   prepare()  on a thread of its own: takes the body apart and checks it. False: *reply is the
 *              answer, which is a refusal;
 *   run()      on the writer's thread, in a batch. What it says in *reply is sent after the commit.
 *              A refusal (404, 409) is such an answer too: write it, change nothing, return
 * GATE_OK. Another status means that the database failed: it becomes 503, and the client will try
 * again; release()  frees `state`.
 */
#ifndef SERVER_API_API_WRITE_H
#define SERVER_API_API_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "request/auth.h"
#include "ops/metrics.h"
#include "request/reply.h"
#include "request/request.h"
#include "store/store.h"

struct api_write {
    const struct request *request;
    const char *rest;           /* of the path, behind the route's */
    const struct identity *who; /* whose token it came with */
    const char *body;           /* for prepare(), which has it last */
    size_t len;
    bool gzipped;        /* Content-Encoding of the body */
    struct reply *reply; /* 200 with an empty body at first */
    void *state;         /* of prepare(), for run() */
    size_t state_bytes;  /* about what it takes, also where prepare() refuses */
    enum metric counts;  /* of run(): what is counted once it is committed */
};

struct api_write_route {
    const char *path; /* behind /api/v1/; one that ends in '/' takes a rest */
    const char *method;
    enum token_scope scope;
    bool may_gzip;
    size_t max_body; /* as it comes */
    bool (*prepare)(struct api_write *w);
    enum gate_status (*run)(struct api_write *w, struct store *store, struct gate_error *err);
    void (*release)(struct api_write *w);
};

/* The route of an address, NULL when nothing can be written there. */
const struct api_write_route *api_write_find(const char *path, const char **rest);

/* api_alerts.c: POST alerts/<id> */
bool api_prepare_step(struct api_write *w);
enum gate_status api_take_step(struct api_write *w, struct store *store, struct gate_error *err);
void api_release_step(struct api_write *w);

/* All of them, which openapi.json must describe. */
const struct api_write_route *api_write_routes(size_t *n);

/* api_ingest.c: POST runs */
bool api_prepare_run(struct api_write *w);
enum gate_status api_store_run(struct api_write *w, struct store *store, struct gate_error *err);
void api_release_run(struct api_write *w);

#endif
