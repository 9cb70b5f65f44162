/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_private.h: what the files of the HTTP server share. Not for its users.
 *
 * http.c starts and stops, http_request.c is called by libmicrohttpd, http_check.c refuses what
 * should not be let in, http_headers.c reads the headers, http_read.c answers GET, http_slow.c
 * what takes long of it, http_write.c takes bodies, http_reply.c sends, http_document.c in pieces,
 * http_log.c tells the log; routes.c has the table of addresses.
 */
#ifndef SERVER_HTTP_HTTP_PRIVATE_H
#define SERVER_HTTP_HTTP_PRIVATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

#include "server/api/artifacts.h"
#include "server/api/route.h"
#include "server/request/assets.h"
#include "server/request/auth.h"
#include "server/http/cache.h"
#include "server/http/http.h"
#include "server/http/rate_limit.h"
#include "server/request/reply.h"
#include "server/request/request.h"
#include "gate/store/store.h"
#include "server/request/tag.h"
#include "server/watch/watch_log.h"
#include "server/watch/webhook.h"
#include "server/writer/writer.h"

#define HTTP_MAX_THREADS 8u

struct upload;
struct slow;

/* Lines of the log that anybody can cause, of one kind. */
struct log_budget {
    _Atomic int64_t second; /* in which the last one was caused, */
    atomic_uint lines;      /* and how many */
};

/* The headers that mean something here; NULL: not there. They live as long as their request. */
struct headers {
    const char *accept, *accept_encoding, *authorization, *content_encoding, *content_length,
        *content_type, *host, *if_none_match, *transfer_encoding;
    bool repeated;  /* one of them, though it may be there once only */
    bool malformed; /* the name or the value of any header */
};

enum phase {
    PHASE_TARGET,  /* the request's first line is there */
    PHASE_READ,    /* its headers too; it has no body */
    PHASE_BODY,    /* its body comes */
    PHASE_WRITING, /* the writer has it, the connection is suspended */
    PHASE_WRITTEN, /* the writer has made the answer */
};

/* One request, from its first line to the end of its answer. */
struct exchange {
    struct request request;
    struct headers headers;
    enum phase phase;
    bool active; /* counted in n_requests */
    const char *method;
    const struct route *route; /* NULL: this method is not served there */
    const char *rest;          /* of the path, behind the route's */
    struct identity who;       /* id is "" while nobody is known */
    struct upload *upload;     /* of a write */
    struct reply reply;        /* of a write, or made by http_slow.c, by another thread: */
    bool has_reply;            /* it is to be released */
    int64_t start_ns;
    unsigned status; /* what was answered, for the log; 0: nothing yet */
    uint64_t bytes;
    bool token_refused;
    char why[REPLY_MAX_WHY]; /* it was refused */
};

/* One connection. Its exchange is used again for each request. */
struct peer {
    struct http *http;
    struct peer *next, *before;
    int fd;
    uint64_t address_key; /* for the limits */
    struct sockaddr_storage address;
    atomic_int_fast64_t deadline_ms; /* of the monotonic clock; 0: none */
    struct MHD_Connection *connection;
    struct exchange exchange;
};

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    char *tls_cert, *tls_key; /* the texts of the files */
    struct assets *assets;
    struct artifacts *artifacts;
    struct tagger *tagger;
    struct cache *cache;
    struct limits *read_limits, *write_limits;
    struct limits *touch_limits; /* how often a token's use is written down */
    struct writer *writer;
    /* of the writer's thread */
    int64_t watch_behind_ms; /* since when runs have been waiting for the watch; 0: none waits */
    struct watch_log watch_log;
    int64_t thin_next_ms; /* when old samples are dropped next */
    struct webhook *webhook;
    struct slow *slow;
    unsigned n_threads;
    bool is_loopback; /* where it listens */
    atomic_bool stopping;
    atomic_uint n_requests; /* under way */
    atomic_uint n_connections;
    atomic_size_t body_bytes;   /* held for all uploads together, */
    atomic_size_t reply_bytes;  /* and for all answers that are on their way */
    struct log_budget messages; /* of libmicrohttpd; */
    struct log_budget refusals; /* one must not hide the other */

    pthread_mutex_t mutex; /* of what follows */
    struct peer *peers;
    struct store *stores[HTTP_MAX_THREADS]; /* those not in use come first */
    unsigned n_free;
};

/* ---- http.c ---- */

/* There are as many stores as threads, so one is always free. */
struct store *http_take_store(struct http *h);
void http_give_store(struct http *h, struct store *s);

int64_t http_now_ms(void); /* monotonic, to a few ms */

/* ---- http_request.c ---- */

enum MHD_Result http_on_request(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **state);
void *http_on_target(void *context, const char *target, struct MHD_Connection *connection);
void http_on_completed(void *context, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode code);
void http_on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);

/* Until when the connection may be busy with what it does now. */
void http_set_deadline(struct peer *peer, int64_t seconds);

/* ---- http_log.c ---- */

/* What libmicrohttpd has to say. */
void http_on_log(void *context, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* The request has had its answer. */
void http_log_exchange(const struct peer *peer, int64_t ns);

/* ---- http_headers.c ---- */

void http_read_headers(struct MHD_Connection *connection, struct headers *out);

/* ---- http_check.c: each is true when the request was refused, with the answer in *reply ---- */

bool http_refuse_shape(const struct exchange *x, const char *version, struct reply *reply);
/* Nothing was refused, but its answer must be the connection's last. */
bool http_ends_in_doubt(const struct exchange *x);
bool http_refuse_host(struct http *h, const struct exchange *x, struct reply *reply);
bool http_refuse_rate(struct http *h, const struct peer *peer, struct reply *reply);
bool http_refuse_reader(struct http *h, struct exchange *x, struct reply *reply);
bool http_refuse_writer(struct http *h, struct peer *peer, struct reply *reply);

/* ---- http_read.c ---- */

/* Answers a GET or HEAD: sends. The reply is empty, and stays the caller's. */
enum MHD_Result http_answer(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                            struct reply *reply);

/* Makes the answer of a route, from a store of the caller's. */
void http_make(struct http *h, struct store *store, struct exchange *x, struct reply *reply);

/* ---- http_slow.c ---- */

enum gate_status slow_open(struct http *h, struct gate_error *err);
void slow_close(struct slow *s); /* NULL is fine */
/* May its answer take so long that others should not wait for it? */
bool http_is_slow(const struct http *h, const struct exchange *x);
/* Has it made by another thread, and sent then; false: too much waits there. */
bool http_answer_later(struct http *h, struct peer *peer);

/* ---- http_document.c ---- */

struct MHD_Response *http_document_response(struct http *h, const struct reply *reply);

/* Handlers of routes.c: of what is not out of the database. */
void http_get_whoami(struct http *h, const struct exchange *x, struct reply *reply);
void http_get_artifact(struct http *h, const struct exchange *x, struct reply *reply);
void http_get_asset(struct http *h, const struct exchange *x, struct reply *reply);

/* ---- http_ops.c: the same, of what those ask who run the server ---- */

void http_get_health(struct http *h, const struct exchange *x, struct reply *reply);
void http_get_ready(struct http *h, const struct exchange *x, struct reply *reply);
void http_get_metrics(struct http *h, const struct exchange *x, struct reply *reply);

/* ---- http_write.c ---- */

/* Looks at the headers of a write: true, it was refused. */
bool http_begin_write(struct http *h, struct peer *peer, struct reply *reply);
void http_read_body(struct http *h, struct exchange *x, const char *bytes, size_t n);
/* The body is whole: hands it to the writer, or sends the refusal. */
enum MHD_Result http_end_body(struct http *h, struct MHD_Connection *connection, struct peer *peer);
void http_free_upload(struct http *h, struct exchange *x);

/* ---- http_reply.c ---- */

/* Makes a long body short, for a client that takes that. */
void http_compress(const struct exchange *x, struct reply *reply);
/* True: answers that their clients do not read take what memory there is for them. */
bool http_refuse_room(struct http *h, struct reply *reply);
/* Sends; MHD_NO, which closes the connection, only without memory. */
enum MHD_Result http_send(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                          struct reply *reply);
/* The same from the cache, if it is there. */
bool http_send_cached(struct http *h, struct MHD_Connection *connection, struct exchange *x,
                      const struct etag *tag, unsigned status, enum MHD_Result *result);

#endif
