/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_write.h: what the API lets be written, by POST.
 *
 * A topic is a row of http/routes.c and a function. It is called with the whole body and with the
 * store that writes, whose turn nobody else has meanwhile. It checks the body, writes, commits, and
 * answers in *reply, in this order. A refusal (400, 404, 409) is an answer too: write it, change
 * nothing, return GATE_OK. Another status, with a message in w->err, means that the database
 * failed: it becomes 503, and the client will try again.
 */
#ifndef SERVER_API_API_WRITE_H
#define SERVER_API_API_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/request/auth.h"
#include "server/request/reply.h"
#include "gate/store/store.h"

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
