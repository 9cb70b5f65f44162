/* SPDX-License-Identifier: Apache-2.0 */
/* http_request.c: what libmicrohttpd calls; see http_private.h. */
#include "server/http/http_private.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gate/base/clock.h"
#include "server/ops/metrics.h"

#define IDLE_TIMES 2 /* of the timeout: from the end of a request to the headers of the next */
#define BODY_TIMES 4
#define SOCKET_BYTES (256 << 10) /* of an answer in the kernel, where its memory is not counted */

void http_set_deadline(struct peer *p, int64_t seconds)
{
    int64_t until_ms = seconds == 0 ? 0 : http_now_ms() + seconds * 1000;
    atomic_store_explicit(&p->deadline_ms, until_ms, memory_order_relaxed);
}

/* ---- connections ---- */

/* Whose share an address has. An IPv6 customer has a whole /64. */
static uint64_t share_of_address(const struct sockaddr_storage *address)
{
    uint64_t key = 0;
    if (address->ss_family == AF_INET) {
        memcpy(&key, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return key;
    }
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(in6))
        memcpy(&key, in6->s6_addr + 12, 4);
    else
        memcpy(&key, in6->s6_addr, 8);
    return key;
}

static struct peer *open_peer(struct http *h, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket_fd = fd ? fd->connect_fd : -1, socket_bytes = SOCKET_BYTES;
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct peer *p = calloc(1, sizeof *p);
    if (!p || socket_fd < 0 || !address) {
        free(p);
        return NULL;
    }
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof socket_bytes);
    p->http = h;
    p->fd = socket_fd;
    p->connection = connection;
    memcpy(&p->address, address->client_addr,
           address->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                       : sizeof(struct sockaddr_in));
    p->share = share_of_address(&p->address);
    http_set_deadline(p, IDLE_TIMES * h->options.timeout_s);
    pthread_mutex_lock(&h->mutex);
    p->next = h->peers;
    if (p->next)
        p->next->before = p;
    h->peers = p;
    h->n_connections++;
    pthread_mutex_unlock(&h->mutex);
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
    h->n_connections--;
    pthread_mutex_unlock(&h->mutex);
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

/* ---- headers ---- */

static const struct known {
    const char *name;
    size_t offset; /* in struct headers */
    bool once;     /* two of them are refused */
} known[] = {
    {"Accept", offsetof(struct headers, accept), false},
    {"Accept-Encoding", offsetof(struct headers, accept_encoding), false},
    {"Authorization", offsetof(struct headers, authorization), true},
    {"Content-Encoding", offsetof(struct headers, content_encoding), true},
    {"Content-Length", offsetof(struct headers, content_length), true},
    {"Content-Type", offsetof(struct headers, content_type), true},
    {"Host", offsetof(struct headers, host), true},
    {"If-None-Match", offsetof(struct headers, if_none_match), false},
    {"Transfer-Encoding", offsetof(struct headers, transfer_encoding), true},
};

static enum MHD_Result on_header(void *context, enum MHD_ValueKind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct headers *h = context;
    if (!name || !value || name_len == 0 || bytes_span(name, BYTE_OF_NAME) != name_len ||
        bytes_span(value, BYTE_OF_VALUE) != value_len) {
        h->malformed = true;
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(name, known[i].name) != 0)
            continue;
        const char **place = (const char **)(void *)((char *)h + known[i].offset);
        h->repeated |= *place && known[i].once;
        if (!*place)
            *place = value;
    }
    return MHD_YES;
}

/* ---- requests ---- */

/* The one place where the target is whole and raw; what it returns becomes the request's state. */
void *http_on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http *h = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct peer *p = info ? info->socket_context : NULL;
    if (!p)
        return NULL;
    request_parse(&p->request, target);
    reply_init(&p->reply);
    p->phase = PHASE_TARGET;
    p->active = true;
    p->method = "";
    p->route = NULL;
    p->who.id[0] = '\0';
    p->who.scopes = 0;
    p->token_refused = false;
    p->status = 0;
    p->bytes = 0;
    p->start_ns = (int64_t)clock_ns();
    atomic_fetch_add(&h->n_requests, 1);
    return p;
}

/* The headers are there. What has no body is answered when the request is whole: an answer from
 * here would end the connection. */
static enum MHD_Result on_headers(struct peer *p, const char *method, const char *version)
{
    p->method = method;
    p->route = route_find(method, p->request.path, &p->rest);
    p->headers = (struct headers){0};
    MHD_get_connection_values_n(p->connection, MHD_HEADER_KIND, on_header, &p->headers);
    if (http_refuse_shape(p, version) || http_refuse_host(p))
        return http_send(p);
    if (!strcmp(p->route->method, "GET")) {
        p->phase = PHASE_READ;
        return MHD_YES;
    }
    if (http_begin_write(p)) {
        p->reply.close = true; /* of the body nobody wants to know */
        return http_send(p);
    }
    p->phase = PHASE_BODY;
    http_set_deadline(p, BODY_TIMES * p->http->options.timeout_s);
    return MHD_YES;
}

/* libmicrohttpd calls it when the headers are there, for each piece of a body, and when the request
 * is whole: then it is answered from here, however long that takes. */
enum MHD_Result http_on_request(void *, struct MHD_Connection *, const char *, const char *method,
                                const char *version, const char *upload, size_t *upload_size,
                                void **state)
{
    struct peer *p = *state;
    if (!p)
        return MHD_NO;
    if (p->phase == PHASE_TARGET)
        return on_headers(p, method, version);
    if (p->phase == PHASE_BODY && *upload_size > 0) {
        http_read_body(p, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    http_set_deadline(p, 0);
    if (p->phase == PHASE_BODY)
        http_end_body(p);
    else if (!http_refuse_reader(p))
        http_answer(p);
    return http_send(p);
}

void http_on_completed(void *context, struct MHD_Connection *, void **state,
                       enum MHD_RequestTerminationCode)
{
    struct http *h = context;
    struct peer *p = *state;
    if (!p || !p->active)
        return;
    *state = NULL;
    int64_t ns = (int64_t)clock_ns() - p->start_ns;
    metrics_request(p->status, ns);
    metrics_add(METRIC_BYTES_SENT, p->bytes);
    http_log_request(p, ns);
    if (p->upload)
        http_free_upload(p);
    reply_release(&p->reply);
    pthread_mutex_lock(&h->mutex);
    p->long_bytes = 0;
    p->share = share_of_address(&p->address);
    pthread_mutex_unlock(&h->mutex);
    p->active = false;
    http_set_deadline(p, IDLE_TIMES * h->options.timeout_s);
    atomic_fetch_sub(&h->n_requests, 1);
}
