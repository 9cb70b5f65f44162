/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_slow.c: answers that may take long, made beside the threads that serve; see http_private.h.
 *
 * Their connection is suspended meanwhile. They are made one at a time, so that whoever asks for
 * many waits for his own, and takes the memory of one.
 */
#include "server/http/http_private.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"

#define MAX_WAITING 64u
#define FEW_POINTS 2000 /* of a trend: made in some ms */
#define FEW_ROWS 1000   /* of another list */
#define FEW_CASES 200   /* each has a curve */

struct slow {
    struct http *http;
    struct store *store;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct peer *waiting[MAX_WAITING]; /* the first is next */
    unsigned n;
    bool closing;
};

static bool is_more(const struct exchange *x, const char *parameter, long few)
{
    const char *value = request_parameter(&x->request, parameter);
    return value && strtol(value, NULL, 10) > few;
}

bool http_is_slow(const struct http *h, const struct exchange *x)
{
    if (!x->route->get)
        return x->route->answer == http_get_artifact && !artifacts_is_known(h->artifacts, x->rest);
    if (x->route->get == get_document)
        return x->request.n_parameters > 0;
    return x->route->get == get_compare || is_more(x, "points", FEW_POINTS) ||
           is_more(x, "limit", x->route->get == get_cases ? FEW_CASES : FEW_ROWS);
}

static struct peer *next_peer(struct slow *s, bool *closing)
{
    struct peer *peer = NULL;
    pthread_mutex_lock(&s->mutex);
    while (s->n == 0 && !s->closing)
        pthread_cond_wait(&s->changed, &s->mutex);
    *closing = s->closing;
    if (s->n > 0) {
        peer = s->waiting[0];
        memmove(s->waiting, s->waiting + 1, --s->n * sizeof s->waiting[0]);
    }
    pthread_mutex_unlock(&s->mutex);
    return peer;
}

static void *run(void *context)
{
    struct slow *s = context;
    struct peer *peer;
    bool closing;
    while ((peer = next_peer(s, &closing)) != NULL) {
        struct exchange *x = &peer->exchange;
        if (closing)
            reply_problem(&x->reply, 503, "The server is about to stop.");
        else if (!http_refuse_room(s->http, &x->reply))
            http_make(s->http, s->store, x, &x->reply);
        http_compress(x, &x->reply);
        x->phase = PHASE_WRITTEN;
        MHD_resume_connection(peer->connection);
        malloc_trim(0);
    }
    return NULL;
}

bool http_answer_later(struct http *h, struct peer *peer)
{
    struct slow *s = h->slow;
    struct exchange *x = &peer->exchange;
    pthread_mutex_lock(&s->mutex);
    bool room = s->n < MAX_WAITING && !s->closing;
    if (room) {
        reply_init(&x->reply);
        x->has_reply = true;
        x->phase = PHASE_WRITING;
        http_set_deadline(peer, 0);
        MHD_suspend_connection(peer->connection);
        s->waiting[s->n++] = peer;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return room;
}

enum gate_status slow_open(struct http *h, struct gate_error *err)
{
    struct slow *s = calloc(1, sizeof *s);
    if (!s)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    s->http = h;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    enum gate_status status = store_open(h->options.db, STORE_READ_ONLY, &s->store, err);
    if (!status && pthread_create(&s->thread, NULL, run, s) != 0)
        status = gate_fail(err, GATE_INTERNAL, "cannot start a thread");
    if (status) {
        store_close(s->store);
        free(s);
        return status;
    }
    h->slow = s;
    return GATE_OK;
}

/* What waits is refused, and nothing is suspended any more. */
void slow_close(struct slow *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->closing = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    store_close(s->store);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}
