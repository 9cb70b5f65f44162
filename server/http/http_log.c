/* SPDX-License-Identifier: Apache-2.0 */
/* http_log.c: what the log says of requests; see http_private.h. */
#include "server/http/http_private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "server/ops/log.h"

#define MAX_LINES 10  /* of a kind, in a second: nobody fills the disk by knocking */
#define MAX_METHOD 20 /* bytes that are logged: it is any word that the client likes */

static bool has_room(struct log_budget *b, const char *kind)
{
    int64_t second = http_now_ms() / 1000;
    if (atomic_exchange(&b->second, second) != second) {
        unsigned n = atomic_exchange(&b->lines, 0);
        if (n > MAX_LINES)
            log_message(LOG_LEVEL_WARNING, "http: %u %s were left out", n - MAX_LINES, kind);
    }
    return atomic_fetch_add(&b->lines, 1) < MAX_LINES;
}

void http_on_log(void *context, const char *format, va_list args)
{
    struct http *h = context;
    char line[1024];
    if (!has_room(&h->messages, "messages"))
        return;
    vsnprintf(line, sizeof line, format, args);
    log_message(LOG_LEVEL_WARNING, "%s", line);
}

static void put_client(struct log_line *l, const struct peer *p)
{
    char address[INET6_ADDRSTRLEN] = "", method[MAX_METHOD + 1];
    const void *bytes = &((const struct sockaddr_in6 *)(const void *)&p->address)->sin6_addr;
    if (p->address.ss_family == AF_INET)
        bytes = &((const struct sockaddr_in *)(const void *)&p->address)->sin_addr;
    inet_ntop(p->address.ss_family, bytes, address, sizeof address);
    snprintf(method, sizeof method, "%s", p->method);
    log_word(l, "address", address);
    log_text(l, "method", method);
    log_number(l, "status", p->status);
}

static void log_answered(const struct peer *p, int64_t ns)
{
    struct log_line line;
    log_begin(&line, LOG_LEVEL_REQUEST, "request");
    put_client(&line, p);
    log_number(&line, "bytes", (int64_t)p->bytes);
    log_number(&line, "us", ns / 1000);
    log_word(&line, "token", p->who.id);
    log_text(&line, "target", p->request.target);
    log_end(&line);
}

static void log_refusal(const struct peer *p)
{
    struct log_line line;
    log_begin(&line, LOG_LEVEL_INFO, "refused");
    put_client(&line, p);
    log_word(&line, "token", p->who.id);
    log_text(&line, "target", p->request.target);
    log_text(&line, "why", p->reply.why);
    log_end(&line);
}

void http_log_request(const struct peer *p, int64_t ns)
{
    bool is_write = p->route && strcmp(p->route->method, "GET") != 0;
    if (log_wants(LOG_LEVEL_REQUEST))
        log_answered(p, ns);
    /* A token that is not good, or anything that somebody wanted to store. */
    if (p->status >= 400 && (p->token_refused || is_write) && log_wants(LOG_LEVEL_INFO) &&
        has_room(&p->http->refusals, "refusals"))
        log_refusal(p);
}
