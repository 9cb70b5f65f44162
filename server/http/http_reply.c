/* SPDX-License-Identifier: Apache-2.0 */
/* http_reply.c: an answer on its way to libmicrohttpd; see http_private.h. */
#include "server/http/http_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/gzip.h"
#include "server/ops/metrics.h"

#define GZIP_FROM 1024                /* bytes: below, the headers cost more than is saved */
#define LONG_BYTES ((size_t)64 << 10) /* short ones are not counted: connections are few */
#define SEND_TIMES 20 /* of the timeout: how long a client may take to read an answer */

/*
 * The page runs its own scripts and nothing else, talks to its own server only, and is not shown
 * within another page.
 */
static const char *const page_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

/* Data may do nothing at all, wherever a browser shows it. */
static const char data_policy[] = "default-src 'none'; frame-ancestors 'none'";

/* Makes a long body short, for a client that takes that. */
static void compress_body(struct peer *p)
{
    struct reply *reply = &p->reply;
    const char *type = reply->type;
    bool is_text =
        !strncmp(type, "text/", 5) || !strcmp(type, "image/svg+xml") ||
        (!strncmp(type, "application/", 12) && strcmp(type, "application/octet-stream") != 0);
    if (reply->constant || reply->file_fd >= 0 || reply->gzipped || reply->status == 304 ||
        reply->body.len < GZIP_FROM || !is_text)
        return;
    reply->varies = true;
    if (!accepts_gzip(p->headers.accept_encoding))
        return;
    struct buf small;
    buf_init(&small, REPLY_MAX_BODY);
    if (gzip_compress(reply->body.data, reply->body.len, &small)) {
        buf_release(&reply->body);
        reply->body = small;
        reply->gzipped = true;
        if (reply->etag.text[0] != '\0')
            reply->etag = etag_gzipped(&reply->etag);
    } else {
        buf_release(&small);
    }
}

static uint64_t size_of(const struct reply *reply)
{
    if (reply->file_fd >= 0)
        return reply->file_size;
    return reply->constant ? reply->constant_size : reply->body.len;
}

/* The body's bytes change hands; NULL: out of memory. */
static struct MHD_Response *response_of(struct peer *p)
{
    struct reply *reply = &p->reply;
    size_t size = (size_t)size_of(reply);
    if (reply->status == 304)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (reply->file_fd >= 0) {
        struct MHD_Response *response = MHD_create_response_from_fd64(size, reply->file_fd);
        if (response)
            reply->file_fd = -1;
        return response;
    }
    if (reply->constant)
        return MHD_create_response_from_buffer(size, (void *)(uintptr_t)reply->constant,
                                               MHD_RESPMEM_PERSISTENT);
    char *bytes = buf_detach(&reply->body);
    struct MHD_Response *response =
        bytes ? MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response)
        free(bytes);
    return response;
}

static void add(struct MHD_Response *response, bool *good, const char *name, const char *value)
{
    *good &= MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_headers(const struct http *h, struct MHD_Response *response,
                        const struct reply *reply)
{
    bool good = true, alone = h->options.private_reads, is_kept = reply->etag.text[0] != '\0';
    const char *type = reply->type;
    if (reply->status != 304) { /* of what that stands for, the client has these already */
        if (!strncmp(type, "application/json", 16) || !strncmp(type, "text/csv", 8) ||
            !strcmp(type, "application/problem+json"))
            add(response, &good, "Content-Security-Policy", data_policy);
        else
            for (size_t i = 0; i < sizeof page_headers / sizeof page_headers[0]; i++)
                add(response, &good, page_headers[i][0], page_headers[i][1]);
        add(response, &good, "X-Content-Type-Options", "nosniff");
        add(response, &good, "Cross-Origin-Resource-Policy",
            reply->embedded ? "cross-origin" : "same-origin");
        add(response, &good, "Content-Type", type);
        if (reply->gzipped)
            add(response, &good, "Content-Encoding", "gzip");
    }
    if (reply->allow)
        add(response, &good, "Allow", reply->allow);
    if (is_kept)
        add(response, &good, "ETag", reply->etag.text);
    if (reply->varies)
        add(response, &good, "Vary", "Accept-Encoding");
    if (alone)
        add(response, &good, "Vary", "Authorization");
    if (reply->login)
        add(response, &good, "WWW-Authenticate", "Bearer realm=\"gate-server\"");
    if (reply->retry_after != 0) {
        char text[16];
        snprintf(text, sizeof text, "%u", reply->retry_after);
        add(response, &good, "Retry-After", text);
    }
    if (reply->close)
        add(response, &good, "Connection", "close");
    /* no-cache: keep it, but ask whether the tag still holds. */
    add(response, &good, "Cache-Control",
        reply->immutable
            ? alone ? "private, max-age=31536000, immutable" : "public, max-age=31536000, immutable"
        : !is_kept ? "no-store"
        : alone    ? "private, no-cache"
                   : "no-cache");
    return good;
}

/* The response with its headers; NULL: out of memory. */
static struct MHD_Response *make_response(struct peer *p)
{
    struct MHD_Response *response = response_of(p);
    if (response && !add_headers(p->http, response, &p->reply)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

/* Of a file of the page it is made once: its headers take longer than the rest of the answer. */
static struct MHD_Response *kept_response(struct peer *p)
{
    _Atomic(void *) *place = p->reply.kept;
    void *kept = atomic_load(place);
    if (kept)
        return kept;
    struct MHD_Response *response = make_response(p);
    if (!response || atomic_compare_exchange_strong(place, &kept, response))
        return response;
    MHD_destroy_response(response); /* another thread was faster */
    return kept;
}

enum MHD_Result http_send(struct peer *p)
{
    struct reply *reply = &p->reply;
    reply->close |= http_ends_in_doubt(p) || atomic_load(&p->http->stopping);
    compress_body(p);
    if (reply->body.len < LONG_BYTES || http_refuse_long(p, reply->body.len))
        http_end_long(p);
    bool keeps = reply->kept && reply->status == 200 && !reply->close;
    p->bytes = reply->status == 304 || !strcmp(p->method, "HEAD") ? 0 : size_of(reply);
    struct MHD_Response *response = keeps ? kept_response(p) : make_response(p);
    if (!response)
        return MHD_NO;
    p->status = reply->status;
    http_set_deadline(p, SEND_TIMES * p->http->options.timeout_s);
    enum MHD_Result result = MHD_queue_response(p->connection, reply->status, response);
    if (!keeps)
        MHD_destroy_response(response);
    return result;
}
