/* http.c: see http.h. */
#include "http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "assets.h"
#include "base/file.h"
#include "plain.h"
#include "reply.h"
#include "request.h"
#include "store.h"

#define N_THREADS 4u
#define MAX_CONNECTIONS 256u /* libmicrohttpd divides them among the threads */
#define IDLE_SECONDS 15u
#define CONNECTION_BYTES ((size_t)32 << 10) /* request line and headers */
#define STOP_SECONDS 5

struct http {
    struct MHD_Daemon *daemon;
    int listen_fd;
    struct assets *assets;
    char build[65]; /* SHA-256 of this program's file */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t idle;   /* n_requests became 0 */
    unsigned n_requests;
    struct store *stores[N_THREADS]; /* those not in use come first */
    unsigned n_free;
};

/* One request, from its first line to the end of its answer. */
struct exchange {
    struct request request;
    bool headers_seen;
};

/* ---- stores ---- */

/* There are as many as threads, so one is always free. */
static struct store *take_store(struct http *h)
{
    pthread_mutex_lock(&h->mutex);
    struct store *s = h->stores[--h->n_free];
    pthread_mutex_unlock(&h->mutex);
    return s;
}

static void give_store(struct http *h, struct store *s)
{
    pthread_mutex_lock(&h->mutex);
    h->stores[h->n_free++] = s;
    pthread_mutex_unlock(&h->mutex);
}

/* ---- answers ---- */

/*
 * The page runs its own scripts and nothing else, talks to its own server only, and is not shown
 * within another page.
 */
static const char *const security_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

/* The body's bytes change hands; NULL: out of memory. */
static struct MHD_Response *response_of(struct reply *reply)
{
    if (reply->status == 304)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (reply->constant)
        return MHD_create_response_from_buffer(
            reply->constant_size, (void *)(uintptr_t)reply->constant, MHD_RESPMEM_PERSISTENT);
    size_t len = reply->body.len;
    char *bytes = buf_detach(&reply->body);
    if (!bytes)
        return NULL;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(bytes);
    return response;
}

static bool add_headers(struct MHD_Response *response, const struct reply *reply)
{
    bool good = true;
    size_t n = sizeof(security_headers) / sizeof(security_headers[0]);
    for (size_t i = 0; i < n; i++)
        good &= MHD_add_response_header(response, security_headers[i][0], security_headers[i][1]) ==
                MHD_YES;
    if (reply->status != 304)
        good &= MHD_add_response_header(response, "Content-Type", reply->type) == MHD_YES;
    if (reply->allow)
        good &= MHD_add_response_header(response, "Allow", reply->allow) == MHD_YES;
    if (reply->etag.text[0] != '\0')
        good &= MHD_add_response_header(response, "ETag", reply->etag.text) == MHD_YES;
    if (reply->varies)
        good &= MHD_add_response_header(response, "Vary", "Accept-Encoding") == MHD_YES;
    if (reply->gzipped && reply->status != 304)
        good &= MHD_add_response_header(response, "Content-Encoding", "gzip") == MHD_YES;
    /* no-cache: keep it, but ask whether the tag still holds. */
    const char *keep = reply->immutable              ? "public, max-age=31536000, immutable"
                       : reply->etag.text[0] != '\0' ? "no-cache"
                                                     : "no-store";
    good &= MHD_add_response_header(response, "Cache-Control", keep) == MHD_YES;
    return good;
}

/* Queues the answer; MHD_NO, which closes the connection, only without memory. */
static enum MHD_Result send_reply(struct MHD_Connection *connection, struct reply *reply)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response = response_of(reply);
    if (response && add_headers(response, reply))
        result = MHD_queue_response(connection, reply->status, response);
    if (response)
        MHD_destroy_response(response);
    return result;
}

/* ---- requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/*
 * A body has no meaning for a GET, and libmicrohttpd 0.9.75 does not agree with proxies on where
 * one with odd headers ends, so none is let in. "Content-Length: 0" is what some clients send.
 */
static bool has_body(struct MHD_Connection *connection)
{
    const char *length = header(connection, "Content-Length");
    return header(connection, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

/* What can be said from the first line and the headers: true, the request was refused. */
static bool refuse(struct MHD_Connection *connection, const struct exchange *x, const char *method,
                   struct reply *reply)
{
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        reply_problem(reply, 405, "Only GET and HEAD are served.");
        reply->allow = "GET, HEAD";
        return true;
    }
    if (has_body(connection)) {
        reply_problem(reply, 400, "A request with a body is not served.");
        return true;
    }
    if (x->request.fault_status != 0) {
        reply_problem(reply, x->request.fault_status, "%s", x->request.fault);
        return true;
    }
    return false;
}

static void answer_health(struct http *h, struct reply *reply)
{
    struct store_state state;
    struct store *store = take_store(h);
    enum gate_status status = store_state(store, &state, NULL);
    give_store(h, store);
    if (status == GATE_OK)
        buf_puts(&reply->body, "{\"status\":\"ok\"}\n");
    else
        reply_problem(reply, 503, "The database cannot be read.");
}

static void answer_plain(struct http *h, struct reply *reply)
{
    struct store *store = take_store(h);
    plain_get(store, h->assets, reply);
    give_store(h, store);
}

static void answer(struct http *h, const struct exchange *x, struct MHD_Connection *connection,
                   struct reply *reply)
{
    const char *path = x->request.path;
    const char *if_none_match = header(connection, "If-None-Match");
    bool root = strcmp(path, "/") == 0;
    if (api_owns(path)) {
        struct store *store = take_store(h);
        api_get(store, &x->request, h->build, if_none_match, reply);
        give_store(h, store);
    } else if (strcmp(path, "/healthz") == 0) {
        answer_health(h, reply);
    } else {
        if (strcmp(path, "/plain") == 0 || (root && !assets_has_page(h->assets)))
            answer_plain(h, reply);
        else
            assets_get(h->assets, path, accepts_gzip(header(connection, "Accept-Encoding")), reply);
        if (etag_matches(&reply->etag, if_none_match))
            reply->status = 304;
    }
}

/* libmicrohttpd calls it when the headers are there and again when the request is whole. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    struct http *h = context;
    struct exchange *x = *state;
    (void)url;
    (void)version;
    (void)upload;
    if (!x)
        return MHD_NO;
    if (x->headers_seen && *upload_size > 0) {
        *upload_size = 0; /* only a method with a body that was refused gets here */
        return MHD_YES;
    }
    struct reply reply;
    reply_init(&reply);
    bool refused = refuse(connection, x, method, &reply);
    enum MHD_Result result = MHD_YES;
    if (refused || x->headers_seen) {
        if (!refused)
            answer(h, x, connection, &reply);
        result = send_reply(connection, &reply);
    }
    x->headers_seen = true;
    reply_release(&reply);
    return result;
}

/* The one place where the target is whole and raw; what it returns becomes the request's state. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http *h = context;
    (void)connection;
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    request_parse(&x->request, target);
    pthread_mutex_lock(&h->mutex);
    h->n_requests++;
    pthread_mutex_unlock(&h->mutex);
    return x;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct http *h = context;
    (void)connection;
    (void)code;
    if (!*state)
        return;
    free(*state);
    *state = NULL;
    pthread_mutex_lock(&h->mutex);
    if (--h->n_requests == 0)
        pthread_cond_signal(&h->idle);
    pthread_mutex_unlock(&h->mutex);
}

static void on_log(void *context, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void on_log(void *context, const char *format, va_list args)
{
    char line[1024];
    (void)context;
    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "gate-server: %s", line); /* it ends in a newline */
}

/* ---- life ---- */

static enum gate_status open_stores(struct http *h, const char *path, struct gate_error *err)
{
    for (; h->n_free < N_THREADS; h->n_free++) {
        enum gate_status status = store_open(path, STORE_READ_ONLY, &h->stores[h->n_free], err);
        if (status != GATE_OK)
            return status;
    }
    return GATE_OK;
}

static enum gate_status start_daemon(struct http *h, struct gate_error *err)
{
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
        h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
        MHD_OPTION_THREAD_POOL_SIZE, N_THREADS, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_END);
    return h->daemon ? GATE_OK : gate_fail(err, GATE_IO, "cannot start the HTTP server");
}

enum gate_status http_start(const struct http_options *options, struct http **out,
                            struct gate_error *err)
{
    struct http *h = calloc(1, sizeof(*h));
    *out = NULL;
    if (!h) {
        close(options->listen_fd);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    h->listen_fd = options->listen_fd;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->idle, NULL);
    enum gate_status status = open_stores(h, options->db, err);
    if (status == GATE_OK)
        status = assets_open(options->web_root, &h->assets, err);
    if (status == GATE_OK)
        status = file_sha256("/proc/self/exe", h->build, err);
    if (status == GATE_OK)
        status = start_daemon(h, err);
    if (status != GATE_OK) {
        http_stop(h);
        return status;
    }
    *out = h;
    return GATE_OK;
}

/* Waits until no request is under way, or for STOP_SECONDS. */
static void drain(struct http *h)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_SECONDS;
    pthread_mutex_lock(&h->mutex);
    while (h->n_requests > 0 && pthread_cond_timedwait(&h->idle, &h->mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&h->mutex);
}

void http_stop(struct http *h)
{
    if (!h)
        return;
    if (h->daemon) {
        MHD_quiesce_daemon(h->daemon);
        drain(h);
        MHD_stop_daemon(h->daemon);
    }
    close(h->listen_fd);
    for (unsigned i = 0; i < h->n_free; i++)
        store_close(h->stores[i]);
    assets_close(h->assets);
    pthread_cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}
