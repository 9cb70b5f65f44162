/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_log.c: lines of the log that anybody can cause: of each kind a few in a second. */
#include <stdlib.h>

#include "server/http/http_private.h"
#include "tests/unit/said.h"
#include "tests/unit/unit.h"

#define MANY 100

struct caller {
    struct http *http;
    struct peer peer;
    int n_messages, n_refusals;
};

__attribute__((format(printf, 2, 3))) static void message(struct http *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    http_on_log(h, format, args);
    va_end(args);
}

static void knock(void *context)
{
    struct caller *c = context;
    for (int i = 0; i < c->n_messages; i++)
        message(c->http, "a message %d", i);
    for (int i = 0; i < c->n_refusals; i++)
        http_log_request(&c->peer, 0);
}

static struct caller caller_of(struct http *h)
{
    struct caller c = {.http = h, .peer = {.http = h}};
    c.peer.method = "GET";
    c.peer.status = 401;
    c.peer.token_refused = true;
    return c;
}

TEST(one_kind_does_not_hide_the_other)
{
    struct http *h = calloc(1, sizeof *h);
    assert_non_null(h);
    struct caller c = caller_of(h);
    c.n_messages = MANY;
    c.n_refusals = 1;
    assert_int_equal(count_said(knock, &c, "refused "), 1);
    c.n_messages = 0;
    c.n_refusals = MANY;
    int n = count_said(knock, &c, "refused ");
    assert_true(n > 0 && n < MANY); /* a second may end meanwhile */
    free(h);
}
