/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_private.h: what the files of the HTTP server share. Not for its users.
 *
 * http.c starts and stops; http_request.c is called by libmicrohttpd; http_check.c refuses what
 * must not be let in; http_answer.c answers GET, and http_assets.c with files of the page;
 * http_share.c divides stores and memory among those who ask; http_write.c takes bodies;
 * http_reply.c sends; http_ops.c answers those who run the server; http_log.c writes the log;
 * routes.c has the table of addresses.
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
#include "server/request/auth.h"
#include "server/http/http.h"
#include "server/request/reply.h"
#include "server/request/request.h"
#include "gate/store/store.h"
#include "server/watch/background.h"
#include "server/writer/writer.h"

#define HTTP_MAX_STORES 16u

struct upload;

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
    PHASE_TARGET, /* the request's first line is there */
    PHASE_READ,   /* its headers too; it has no body */
    PHASE_BODY,   /* its body comes */
};

/* What a peer has of what all share. */
enum share_of_stores { NO_STORE, A_STORE, A_STORE_FOR_LONG };

/* One connection, which has a thread of its own, and the request that it makes. */
struct peer {
    struct http *http;
    struct MHD_Connection *connection;
    int fd;
    struct sockaddr_storage address;
    atomic_int_fast64_t deadline_ms; /* of the monotonic clock; 0: none */

    /* under http->mutex */
    struct peer *next, *before;
    uint64_t share; /* of whom: those of one address, or of one token, have one share */
    enum share_of_stores store;
    size_t long_bytes; /* of its answer, if that is a long one */

    /* of the request */
    struct request request;
    struct headers headers;
    enum phase phase;
    bool active; /* counted in n_requests */
    const char *method;
    const struct route *route; /* NULL: this method is not served there */
    const char *rest;          /* of the path, behind the route's */
    struct identity who;       /* id is "" while nobody is known */
    struct upload *upload;     /* of a write */
    struct reply reply;
    int64_t start_ns;
    bool token_refused;
    unsigned status; /* what was answered, for the log; 0: nothing yet */
    uint64_t bytes;
};

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    char *tls_cert, *tls_key; /* the texts of the files */
    char *speaker;            /* what answers depend on beside the database */
    struct assets *assets;
    struct artifacts *artifacts;
    struct writer *writer;
    struct background *background;
    bool is_loopback; /* where it listens */
    atomic_bool stopping;
    atomic_uint n_requests;     /* under way */
    atomic_size_t body_bytes;   /* held for all uploads together */
    struct log_budget messages; /* of libmicrohttpd; */
    struct log_budget refusals; /* one must not hide the other */

    pthread_mutex_t mutex; /* of what follows, and of the peers' shares */
    pthread_cond_t given;  /* a store was */
    struct peer *peers;
    unsigned n_connections, n_stores, n_free;
    struct store *stores[HTTP_MAX_STORES]; /* those not in use come first */
};

/* ---- http.c ---- */

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

/* For how long the connection may be busy with what it does now; 0: for as long as that takes. */
void http_set_deadline(struct peer *p, int64_t seconds);

/* ---- http_log.c ---- */

/* What libmicrohttpd has to say. */
void http_on_log(void *context, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* The request has had its answer. */
void http_log_request(const struct peer *p, int64_t ns);

/* ---- http_check.c: each is true when the request was refused, with the answer in p->reply ---- */

bool http_refuse_shape(struct peer *p, const char *version);
/* Nothing was refused, but its answer must be the connection's last. */
bool http_ends_in_doubt(const struct peer *p);
bool http_refuse_host(struct peer *p);
bool http_refuse_reader(struct peer *p);
bool http_refuse_writer(struct peer *p);

/* ---- http_share.c ---- */

/* A store to read from; waits while its address has half of them. `is_long`: for an answer that
 * takes long, of which an address makes one at a time, and the server two. */
struct store *http_take_store(struct peer *p, bool is_long);
void http_give_store(struct peer *p, struct store *s);
/* Counts a long answer, of so many bytes, until http_end_long(). True: its address has as many as
 * it may, or all together take the memory that there is for them. */
bool http_refuse_long(struct peer *p, size_t bytes);
void http_end_long(struct peer *p);

/* ---- http_answer.c ---- */

void http_answer(struct peer *p); /* a GET or HEAD */

/* Handlers of routes.c: of what is not out of the database. */
void http_get_whoami(struct peer *p);
void http_get_artifact(struct peer *p);

/* ---- http_assets.c: the files of the page ---- */

/* GATE_IO when --web-root is no folder that can be opened. */
enum gate_status http_open_assets(struct http *h, struct gate_error *err);
void http_close_assets(struct http *h);
void http_get_asset(struct peer *p);

/* ---- http_ops.c: the same, for those who run the server ---- */

void http_get_health(struct peer *p);
void http_get_ready(struct peer *p);
void http_get_metrics(struct peer *p);

/* ---- http_write.c ---- */

/* Looks at the headers of a write: true, it was refused. */
bool http_begin_write(struct peer *p);
void http_read_body(struct peer *p, const char *bytes, size_t n);
/* The body is whole: stores it, and answers. */
void http_end_body(struct peer *p);
void http_free_upload(struct peer *p);

/* ---- http_reply.c ---- */

/* Sends the reply; MHD_NO, which closes the connection, only without memory. */
enum MHD_Result http_send(struct peer *p);

#endif
