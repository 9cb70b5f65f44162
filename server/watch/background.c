/* SPDX-License-Identifier: Apache-2.0 */
/* background.c: see background.h. */
#include "server/watch/background.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/base/clock.h"
#include "gate/store/store_token.h"
#include "server/ops/log.h"
#include "server/watch/alerts.h"
#include "server/watch/webhook.h"

#define ROUND_MS 5000 /* between looks for what other processes stored */
#define SLICE_MS 100  /* of a turn to write: requests wait for no more */
#define TURN_MS 15000
#define THIN_RUNS 4     /* in a turn */
#define THIN_MS 3600000 /* between looks for samples that have become old */

struct background {
    struct background_options options;
    struct store *reader;
    struct alerts_log log;
    struct webhook *webhook;
    int64_t thin_next_ms; /* when old samples are dropped next */
    bool failed;          /* the last round did: its error was logged */
    atomic_int_fast64_t beat_ms;
    pthread_t thread;
    bool started;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    bool woken;
    atomic_bool closing;
};

static int64_t now_ms(void)
{
    return (int64_t)clock_ns() / 1000000;
}

int64_t background_silent_ms(const struct background *b)
{
    return now_ms() - atomic_load(&b->beat_ms);
}

/* ---- what others tell it ---- */

void background_wake(struct background *b)
{
    pthread_mutex_lock(&b->mutex);
    b->woken = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}

/* Waits until somebody wakes it; false: it is to end. */
static bool wait_ms(struct background *b, int64_t ms)
{
    struct timespec until = monotonic_in_ms(ms);
    pthread_mutex_lock(&b->mutex);
    while (!b->woken && !b->closing && pthread_cond_timedwait(&b->changed, &b->mutex, &until) == 0)
        ;
    bool goes_on = b->woken || !b->closing; /* what it was woken for is done before the end */
    b->woken = false;
    pthread_mutex_unlock(&b->mutex);
    return goes_on;
}

/* ---- a turn ---- */

/* Not more often than once in an hour, since it walks over the runs that are too young. A document
 * that cannot be thinned holds up nothing else. */
static void thin_samples(struct background *b, struct store *s, bool *more)
{
    struct gate_error err = {0};
    int64_t n_thinned = 0, wall_ms = clock_wall_ms();
    if (b->options.keep_samples_ms == 0 || now_ms() < b->thin_next_ms)
        return;
    enum gate_status status =
        store_thin(s, wall_ms - b->options.keep_samples_ms, wall_ms, THIN_RUNS, &n_thinned, &err);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    *more = !status && n_thinned == THIN_RUNS;
    if (!*more)
        b->thin_next_ms = now_ms() + THIN_MS;
}

/* *more: there is more to do. */
static enum gate_status do_slice(struct background *b, struct store *s, bool *more,
                                 struct gate_error *err)
{
    if (writer_is_failing(b->options.writer))
        TRY(store_probe(s, err));
    TRY(store_expire_tokens(s, clock_wall_ms(), err));
    TRY(alerts_look(s, b->options.main_branch, SLICE_MS, more, err));
    if (!*more)
        thin_samples(b, s, more);
    return GATE_OK;
}

static bool do_turn(struct background *b)
{
    struct gate_error err = {0};
    bool more = false;
    struct store *s = writer_take(b->options.writer, TURN_MS);
    if (!s)
        return false;
    enum gate_status status = do_slice(b, s, &more, &err);
    writer_give(b->options.writer, status);
    if (status && !b->failed)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    b->failed = status != GATE_OK;
    if (!status)
        alerts_log(&b->log, b->reader);
    return more && !status;
}

static void *run(void *context)
{
    struct background *b = context;
    int64_t pause_ms = 0;
    alerts_log(&b->log, b->reader);
    while (wait_ms(b, pause_ms)) {
        atomic_store(&b->beat_ms, now_ms());
        bool more = do_turn(b);
        pause_ms = more ? 0 : ROUND_MS;
        if (b->webhook && !atomic_load(&b->closing)) {
            int64_t next_ms = webhook_deliver(b->webhook);
            if (next_ms < pause_ms)
                pause_ms = next_ms;
        }
        atomic_store(&b->beat_ms, now_ms());
    }
    return NULL;
}

/* ---- life ---- */

enum gate_status background_open(const struct background_options *options, struct background **out,
                                 struct gate_error *err)
{
    struct background *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    b->options = *options;
    atomic_store(&b->beat_ms, now_ms());
    pthread_mutex_init(&b->mutex, NULL);
    monotonic_cond_init(&b->changed);
    enum gate_status status = store_open(options->db, STORE_READ_ONLY, &b->reader, err);
    if (!status && options->webhook)
        status = webhook_open(options, b->reader, &b->webhook, err);
    if (status)
        background_close(b);
    else
        *out = b;
    return status;
}

enum gate_status background_start(struct background *b, struct gate_error *err)
{
    b->started = pthread_create(&b->thread, NULL, run, b) == 0;
    return b->started ? GATE_OK : gate_fail(err, GATE_INTERNAL, "cannot start a thread");
}

void background_close(struct background *b)
{
    if (!b)
        return;
    if (b->started) {
        pthread_mutex_lock(&b->mutex);
        b->closing = true;
        pthread_cond_signal(&b->changed);
        pthread_mutex_unlock(&b->mutex);
        pthread_join(b->thread, NULL);
    }
    webhook_close(b->webhook);
    store_close(b->reader);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}
