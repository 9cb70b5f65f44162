/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c: see writer.h. */
#include "server/writer/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gate/base/clock.h"
#include "server/ops/metrics.h"

#define PATIENCE_MS 1000 /* for another process that writes */
#define MAX_TICKETS 4096u
/* Of the database, kept in memory: a look at 54 cases reads the same runs for each of them. */
#define PAGE_BYTES ((size_t)16 << 20)

struct writer {
    struct store *store;
    int64_t start_ns; /* of the turn */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    unsigned next, serving; /* tickets; they wrap around */
    bool left[MAX_TICKETS]; /* of a ticket, by its lowest bits: its holder waits no more */
    atomic_uint n_waiting;
    atomic_bool failing;
};

void monotonic_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct timespec monotonic_in_ms(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){t.tv_sec + ms / 1000 + ns / 1000000000, ns % 1000000000};
}

enum gate_status writer_open(const char *db, struct writer **out, struct gate_error *err)
{
    struct writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = store_open(db, STORE_READ_WRITE, &w->store, err);
    if (status) {
        free(w);
        return status;
    }
    store_set_patience(w->store, PATIENCE_MS);
    store_cache_pages(w->store, PAGE_BYTES);
    pthread_mutex_init(&w->mutex, NULL);
    monotonic_cond_init(&w->changed);
    *out = w;
    return GATE_OK;
}

void writer_close(struct writer *w)
{
    if (!w)
        return;
    store_close(w->store);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

struct store *writer_take(struct writer *w, int64_t wait_ms)
{
    struct timespec until = monotonic_in_ms(wait_ms);
    bool mine = false;
    pthread_mutex_lock(&w->mutex);
    if (w->next - w->serving < MAX_TICKETS) {
        unsigned ticket = w->next++;
        w->n_waiting++;
        while (w->serving != ticket && pthread_cond_timedwait(&w->changed, &w->mutex, &until) == 0)
            ;
        mine = w->serving == ticket;
        if (!mine) {
            w->left[ticket % MAX_TICKETS] = true;
            w->n_waiting--;
        }
    }
    pthread_mutex_unlock(&w->mutex);
    if (mine)
        w->start_ns = (int64_t)clock_ns();
    return mine ? w->store : NULL;
}

void writer_give(struct writer *w, enum gate_status status)
{
    bool failed = status && !store_is_busy(w->store);
    metrics_commit((int64_t)clock_ns() - w->start_ns);
    metrics_add(!status ? METRIC_COMMITS : METRIC_COMMITS_FAILED, 1);
    pthread_mutex_lock(&w->mutex);
    w->failing = failed;
    w->n_waiting--;
    w->serving++; /* the next ticket whose holder still waits */
    for (bool *left; *(left = &w->left[w->serving % MAX_TICKETS]); w->serving++)
        *left = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

unsigned writer_waiting(struct writer *w)
{
    return atomic_load(&w->n_waiting);
}

bool writer_is_failing(struct writer *w)
{
    return atomic_load(&w->failing);
}
