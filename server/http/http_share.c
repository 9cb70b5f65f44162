/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_share.c: what all who ask divide among them; see http_private.h.
 *
 * Who asks is an address, or a token. Connections are few enough to be counted one by one.
 */
#include "server/http/http_private.h"
#include "server/ops/metrics.h"

#define MAX_BYTES ((size_t)48 << 20) /* of long answers that are on their way */
#define MAX_BYTES_EACH (MAX_BYTES / 4)
#define MAX_LONG_EACH 4
#define MAX_LONG_MADE 2 /* at a time: each may take several times the memory of its answer */

struct taken {
    unsigned n_stores, n_long, n_long_made;
    size_t bytes;
};

/* By all (`share` is NULL), or by those of one share. The mutex is held. */
static struct taken count(const struct peer *p, const uint64_t *share)
{
    struct taken t = {0};
    for (const struct peer *other = p->http->peers; other; other = other->next) {
        if (share && other->share != *share)
            continue;
        t.n_stores += other->store != NO_STORE;
        t.n_long_made += other->store == A_STORE_FOR_LONG;
        if (other == p)
            continue;
        t.n_long += other->long_bytes > 0;
        t.bytes += other->long_bytes;
    }
    return t;
}

static bool may_take(const struct peer *p, bool is_long)
{
    struct http *h = p->http;
    if (h->n_free == 0)
        return false;
    struct taken own = count(p, &p->share);
    if (own.n_stores >= h->n_stores / 2)
        return false;
    return !is_long || (own.n_long_made == 0 && count(p, NULL).n_long_made < MAX_LONG_MADE);
}

struct store *http_take_store(struct peer *p, bool is_long)
{
    struct http *h = p->http;
    pthread_mutex_lock(&h->mutex);
    while (!may_take(p, is_long))
        pthread_cond_wait(&h->given, &h->mutex);
    struct store *s = h->stores[--h->n_free];
    p->store = is_long ? A_STORE_FOR_LONG : A_STORE;
    pthread_mutex_unlock(&h->mutex);
    return s;
}

void http_give_store(struct peer *p, struct store *s)
{
    struct http *h = p->http;
    pthread_mutex_lock(&h->mutex);
    h->stores[h->n_free++] = s;
    p->store = NO_STORE;
    pthread_cond_broadcast(&h->given);
    pthread_mutex_unlock(&h->mutex);
}

bool http_refuse_long(struct peer *p, size_t bytes)
{
    struct http *h = p->http;
    pthread_mutex_lock(&h->mutex);
    struct taken own = count(p, &p->share);
    bool too_many =
        own.n_long >= MAX_LONG_EACH || (own.n_long > 0 && own.bytes + bytes > MAX_BYTES_EACH);
    bool no_room = count(p, NULL).bytes >= MAX_BYTES;
    if (!too_many && !no_room)
        p->long_bytes = bytes;
    pthread_mutex_unlock(&h->mutex);
    if (!too_many && !no_room)
        return false;
    if (too_many) {
        metrics_add(METRIC_SHARE_REFUSED, 1);
        reply_problem(&p->reply, 429,
                      "As many long answers are on their way to this address as one may have: read "
                      "them to their end, then ask again.");
    } else {
        reply_problem(&p->reply, 503, "Too many long answers are on their way.");
    }
    p->reply.retry_after = 2;
    return true;
}

void http_end_long(struct peer *p)
{
    pthread_mutex_lock(&p->http->mutex);
    p->long_bytes = 0;
    pthread_mutex_unlock(&p->http->mutex);
}
