/* SPDX-License-Identifier: Apache-2.0 */
/* http_request.c: what libmicrohttpd calls; see http_private.h. */
#include "server/http/http_private.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "server/ops/metrics.h"
#include "server/http/routes.h"

#define IDLE_TIMES 2 /* of the timeout: from the end of a request to the headers of the next */
#define BODY_TIMES 4

void http_set_deadline(struct peer *peer, int64_t seconds)
{
    int64_t until = seconds == 0 ? 0 : http_now_ms() + seconds * 1000;
    atomic_store_explicit(&peer->deadline_ms, until, memory_order_relaxed);
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* ---- connections ---- */

/* An IPv6 customer has a whole /64. */
static uint64_t address_key(const struct http *h, const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        return limits_key(h->read_limits, &in->sin_addr, sizeof in->sin_addr);
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
    return limits_key(h->read_limits, &in6->sin6_addr, mapped ? 16 : 8);
}

static struct peer *open_peer(struct http *h, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket_fd = fd ? fd->connect_fd : -1;
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct peer *p = calloc(1, sizeof *p);
    if (!p || socket_fd < 0 || !address) {
        free(p);
        return NULL;
    }
    p->http = h;
    p->fd = socket_fd;
    p->connection = connection;
    p->address_key = address_key(h, address->client_addr);
    memcpy(&p->address, address->client_addr,
           address->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                       : sizeof(struct sockaddr_in));
    http_set_deadline(p, IDLE_TIMES * h->options.timeout_s);
    pthread_mutex_lock(&h->mutex);
    p->next = h->peers;
    if (p->next)
        p->next->before = p;
    h->peers = p;
    pthread_mutex_unlock(&h->mutex);
    atomic_fetch_add(&h->n_connections, 1);
    metrics_add(METRIC_CONNECTIONS, 1);
    return p;
}

static void close_peer(struct http *h, struct peer *p)
{
    pthread_mutex_lock(&h->mutex);
    if (p->before)
        p->before->next = p->next;
    else
        h->peers = p->next;
    if (p->next)
        p->next->before = p->before;
    pthread_mutex_unlock(&h->mutex);
    atomic_fetch_sub(&h->n_connections, 1);
    free(p);
}

/* At its end the socket is still open, so that nobody shuts another one down for it. */
void http_on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct http *h = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = open_peer(h, connection);
    } else if (*socket_context) {
        close_peer(h, *socket_context);
        *socket_context = NULL;
    }
}

/* ---- requests ---- */

/* The one place where the target is whole and raw; what it returns becomes the request's state. */
void *http_on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http *h = context;
    struct peer *peer = peer_of(connection);
    if (!peer)
        return NULL;
    struct exchange *x = &peer->exchange;
    request_parse(&x->request, target);
    x->phase = PHASE_TARGET;
    x->active = true;
    x->method = "";
    x->route = NULL;
    x->who.id[0] = '\0';
    x->who.scopes = 0;
    x->token_refused = false;
    x->why[0] = '\0';
    x->status = 0;
    x->bytes = 0;
    x->start_ns = (int64_t)clock_ns();
    atomic_fetch_add(&h->n_requests, 1);
    return peer;
}

static enum MHD_Result send_and_release(struct http *h, struct peer *peer, struct reply *reply)
{
    enum MHD_Result result = http_send(h, peer->connection, &peer->exchange, reply);
    reply_release(reply);
    return result;
}

/* The headers are there. What has no body is answered when the request is whole: an answer from
 * here would end the connection. */
static enum MHD_Result on_headers(struct http *h, struct peer *peer, const char *method,
                                  const char *version)
{
    struct exchange *x = &peer->exchange;
    struct reply reply;
    x->method = method;
    x->route = route_find(method, x->request.path, &x->rest);
    http_read_headers(peer->connection, &x->headers);
    reply_init(&reply);
    if (http_refuse_shape(x, version, &reply) || http_refuse_host(h, x, &reply))
        return send_and_release(h, peer, &reply);
    if (!strcmp(x->route->method, "GET")) {
        x->phase = PHASE_READ;
        return MHD_YES;
    }
    if (http_refuse_rate(h, peer, &reply) || http_begin_write(h, peer, &reply)) {
        reply.close = true; /* of the body nobody wants to know */
        return send_and_release(h, peer, &reply);
    }
    x->phase = PHASE_BODY;
    http_set_deadline(peer, BODY_TIMES * h->options.timeout_s);
    return MHD_YES;
}

static enum MHD_Result on_read(struct http *h, struct peer *peer)
{
    struct exchange *x = &peer->exchange;
    struct reply reply;
    reply_init(&reply);
    if (http_refuse_rate(h, peer, &reply) || http_refuse_reader(h, x, &reply))
        return send_and_release(h, peer, &reply);
    enum MHD_Result result = http_answer(h, peer->connection, x, &reply);
    reply_release(&reply);
    return result;
}

/* libmicrohttpd calls it when the headers are there, for each piece of a body, when the request is
 * whole, and after the connection was resumed. */
enum MHD_Result http_on_request(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **state)
{
    struct http *h = context;
    struct peer *peer = *state;
    (void)url;
    if (!peer)
        return MHD_NO;
    switch (peer->exchange.phase) {
    case PHASE_TARGET:
        return on_headers(h, peer, method, version);
    case PHASE_READ:
        return on_read(h, peer);
    case PHASE_BODY:
        if (*upload_size == 0)
            return http_end_body(h, connection, peer);
        http_read_body(h, &peer->exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    case PHASE_WRITTEN:
        return http_send(h, connection, &peer->exchange, &peer->exchange.reply);
    default:
        return MHD_YES;
    }
}

void http_on_completed(void *context, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode code)
{
    struct http *h = context;
    struct peer *peer = *state;
    (void)connection;
    (void)code;
    if (!peer || !peer->exchange.active)
        return;
    *state = NULL;
    struct exchange *x = &peer->exchange;
    int64_t ns = (int64_t)clock_ns() - x->start_ns;
    metrics_request(x->status, ns);
    metrics_add(METRIC_BYTES_SENT, x->bytes);
    http_log_exchange(peer, ns);
    if (x->upload)
        http_free_upload(h, x);
    if (x->has_reply)
        reply_release(&x->reply);
    x->has_reply = false;
    x->active = false;
    http_set_deadline(peer, IDLE_TIMES * h->options.timeout_s);
    atomic_fetch_sub(&h->n_requests, 1);
}
