/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_write.h: what the API lets be written, by POST.
 *
 * A topic is a row of http/routes.c and three functions. The body comes whole; then
 *   prepare()  on a thread of its own: takes the body apart and checks it. False: *reply is the
 *              answer, which is a refusal;
 *   run()      on the writer's thread, in a batch. What it says in *reply is sent after the commit.
 *              A refusal (404, 409) is such an answer too: write it, change nothing, return
 *              GATE_OK. Another status means that the database failed: it becomes 503, and the
 *              client will try again;
 *   release()  frees `state`.
 */
#ifndef SERVER_API_API_WRITE_H
#define SERVER_API_API_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/request/auth.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"
#include "server/request/reply.h"
#include "server/request/request.h"
#include "gate/store/store.h"

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
    enum metric counts;  /* of run(): what is counted once it is committed, */
    struct log_line log; /* and what the log says then */
};

struct write_handler {
    bool may_gzip;
    size_t max_body; /* as it comes */
    bool (*prepare)(struct api_write *w);
    enum gate_status (*run)(struct api_write *w, struct store *store, struct gate_error *err);
    void (*release)(struct api_write *w);
};

extern const struct write_handler api_ingest_run;                      /* api_ingest.c */
extern const struct write_handler api_alert_action, api_alerts_action; /* api_alerts.c */

#endif
