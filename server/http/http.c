/* SPDX-License-Identifier: Apache-2.0 */
/* http.c: starts and stops; see http.h. */
#include "server/http/http.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "server/http/http_private.h"
#include "server/http/listen.h"
#include "server/ops/log.h"
#include "server/ops/metrics.h"
#include "gate/store/store_care.h"
#include "server/watch/watch.h"

/* Of the request line, the headers and those of the answer; libmicrohttpd clears it each time. */
#define CONNECTION_BYTES ((size_t)16 << 10)
/* A run of 5,000 series takes some 10 MiB beside these, and all is to stay below 64. */
#define CACHE_BYTES ((size_t)4 << 20)
#define PAGE_BYTES ((size_t)20 << 20) /* of the database, for all stores that are read from */
#define MAX_PEM ((size_t)1 << 20)
#define WATCH_TRACKS 256    /* at a time; a job that comes waits for no more, */
#define WATCH_LATE_MS 30000 /* unless there was always more to look at for so long */
#define THIN_RUNS 4
#define THIN_MS 3600000 /* between looks for samples that have become old */
#define WATCH_MS 5000   /* between looks for runs that another process stored */
#define STOP_MS 5000
#define STOP_STEP_MS 5
#define BURST_SECONDS 4 /* of a rate: what may come at once after silence */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* ---- what requests use ---- */

struct store *http_take_store(struct http *h)
{
    pthread_mutex_lock(&h->mutex);
    struct store *s = h->stores[--h->n_free];
    pthread_mutex_unlock(&h->mutex);
    return s;
}

void http_give_store(struct http *h, struct store *s)
{
    pthread_mutex_lock(&h->mutex);
    h->stores[h->n_free++] = s;
    pthread_mutex_unlock(&h->mutex);
}

int64_t http_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- start ---- */

/* One a processor that may be used. Two on one would take turns of milliseconds, in which the
 * connections of the other wait, and halve what the store's page cache holds. */
static unsigned count_threads(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > (int)HTTP_MAX_THREADS ? HTTP_MAX_THREADS : (unsigned)n;
}

static enum gate_status open_stores(struct http *h, struct gate_error *err)
{
    for (; h->n_free < h->n_threads; h->n_free++) {
        enum gate_status status =
            store_open(h->options.db, STORE_READ_ONLY, &h->stores[h->n_free], err);
        if (status)
            return status;
        store_cache_pages(h->stores[h->n_free], PAGE_BYTES / h->n_threads);
    }
    return GATE_OK;
}

static enum gate_status read_pem(const char *path, char **out, struct gate_error *err)
{
    struct buf text;
    buf_init(&text, MAX_PEM);
    enum gate_status status = file_read(path, &text, err);
    if (!status && !(*out = buf_detach(&text)))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    buf_release(&text);
    return status;
}

static enum gate_status read_tls(struct http *h, struct gate_error *err)
{
    if (!h->options.tls_cert)
        return GATE_OK;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return gate_fail(err, GATE_USAGE, "this libmicrohttpd was built without TLS");
    enum gate_status status = read_pem(h->options.tls_cert, &h->tls_cert, err);
    return !status ? read_pem(h->options.tls_key, &h->tls_key, err) : status;
}

/* Nobody new while it stops. MHD_quiesce_daemon() as the first step would do that too, but it and a
 * thread that wakes up at that moment both take the socket out of one epoll set, for which
 * libmicrohttpd 0.9.75 aborts. */
static enum MHD_Result accept_client(void *context, const struct sockaddr *address, socklen_t len)
{
    struct http *h = context;
    (void)address;
    (void)len;
    return atomic_load(&h->stopping) ? MHD_NO : MHD_YES;
}

static enum gate_status start_daemon(struct http *h, struct gate_error *err)
{
    const struct http_options *o = &h->options;
    static char priorities[] = TLS_PRIORITIES;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, h->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, h->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem pool[] = {
        {MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)h->n_threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    if (h->tls_cert)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    if (h->n_threads < 2) /* libmicrohttpd warns of a pool of one */
        pool[0].option = MHD_OPTION_END;
    h->daemon = MHD_start_daemon(
        flags, 0, accept_client, h, http_on_request, h, MHD_OPTION_EXTERNAL_LOGGER, http_on_log, h,
        MHD_OPTION_LISTEN_SOCKET, o->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)o->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)o->max_per_address, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, http_on_target, h, MHD_OPTION_NOTIFY_COMPLETED,
        http_on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h, MHD_OPTION_ARRAY,
        tls, MHD_OPTION_ARRAY, pool, MHD_OPTION_END);
    if (h->daemon)
        return GATE_OK;
    return gate_fail(err, GATE_IO, "cannot start the HTTP server%s",
                     h->tls_cert ? ": are the certificate and its key PEM files that fit?" : "");
}

static enum gate_status watch_runs(struct http *h, struct store *store, enum writer_left *left,
                                   struct gate_error *err)
{
    bool more = false;
    int64_t now_ms = http_now_ms();
    enum gate_status status =
        watch_pending(store, h->options.main_branch, WATCH_TRACKS, &more, err);
    if (status)
        return status;
    if (!more || h->watch_behind_ms == 0)
        h->watch_behind_ms = more ? now_ms : 0;
    if (more)
        *left = now_ms - h->watch_behind_ms < WATCH_LATE_MS ? WRITER_MORE_LEFT : WRITER_LATE;
    return GATE_OK;
}

/* Not more often than once in an hour, since it walks over the runs that are too young. What fails
 * is no reason to take back what else the batch did. */
static enum gate_status thin_samples(struct http *h, struct store *store, enum writer_left *left)
{
    struct gate_error err = {0};
    int64_t n_thinned = 0, now_ms = clock_wall_ms();
    if (http_now_ms() < h->thin_next_ms)
        return GATE_OK;
    enum gate_status status =
        store_thin(store, now_ms - h->options.keep_samples_ms, now_ms, THIN_RUNS, &n_thinned, &err);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    if (!status && n_thinned == THIN_RUNS)
        *left = WRITER_MORE_LEFT;
    else
        h->thin_next_ms = http_now_ms() + THIN_MS;
    return GATE_OK;
}

static enum gate_status do_chores(void *context, struct store *store, enum writer_left *left,
                                  struct gate_error *err)
{
    struct http *h = context;
    enum gate_status status = watch_runs(h, store, left, err);
    if (status || *left != WRITER_NONE_LEFT || h->options.keep_samples_ms == 0)
        return status;
    return thin_samples(h, store, left);
}

static void log_commit(void *context, struct store *store)
{
    struct http *h = context;
    watch_log_groups(&h->watch_log, store);
}

static enum gate_status open_webhook(struct http *h, struct gate_error *err)
{
    struct webhook_options options = {
        .url = h->options.webhook,
        .secret_file = h->options.webhook_secret,
        .db = h->options.db,
        .writer = h->writer,
    };
    return options.url ? webhook_open(&options, &h->webhook, err) : GATE_OK;
}

/* Answers depend on the program, on which branch is the main one, and on where the forge and this
 * server are. */
static enum gate_status open_tagger(struct http *h, struct gate_error *err)
{
    char program[65];
    struct buf speaker;
    enum gate_status status = file_sha256("/proc/self/exe", program, err);
    if (status)
        return status;
    buf_init(&speaker, (size_t)4 << 20); /* more than an argument may have */
    buf_printf(&speaker, "%s\n%s\n%s\n%s", program, h->options.main_branch,
               h->options.commit_url ? h->options.commit_url : "",
               h->options.public_url ? h->options.public_url : "");
    status = speaker.failed ? gate_fail(err, GATE_INTERNAL, "out of memory")
                            : tagger_open(h->options.db, speaker.data, &h->tagger, err);
    buf_release(&speaker);
    return status;
}

/* The writer comes first: it makes the file that the others read. */
static enum gate_status open_parts(struct http *h, struct gate_error *err)
{
    struct writer_options writer = {.db = h->options.db,
                                    .chore = do_chores,
                                    .committed = log_commit,
                                    .context = h,
                                    .period_ms = WATCH_MS};
    enum gate_status status = assets_open(h->options.web_root, &h->assets, err);
    if (!status)
        status = read_tls(h, err);
    if (!status)
        status = writer_open(&writer, &h->writer, err);
    if (!status)
        status = open_stores(h, err);
    if (!status)
        status = artifacts_open(h->options.artifacts, &h->artifacts, err);
    if (!status)
        artifacts_clean(h->artifacts);
    if (!status)
        status = open_tagger(h, err);
    if (!status)
        status = slow_open(h, err);
    if (!status)
        status = open_webhook(h, err);
    return status;
}

static enum gate_status open_tables(struct http *h, struct gate_error *err)
{
    h->cache = cache_open(CACHE_BYTES);
    h->read_limits = limits_open(h->options.read_rate, h->options.read_rate * BURST_SECONDS);
    h->write_limits = limits_open(h->options.write_rate, h->options.write_rate * BURST_SECONDS);
    h->touch_limits = limits_open(1, 1);
    if (!h->cache || !h->read_limits || !h->write_limits || !h->touch_limits)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    return GATE_OK;
}

enum gate_status http_start(const struct http_options *options, struct http **out,
                            struct gate_error *err)
{
    struct http *h = calloc(1, sizeof *h);
    *out = NULL;
    if (!h) {
        close(options->listen_fd);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    h->options = *options;
    h->n_threads = count_threads();
    h->is_loopback = listen_is_loopback(options->listen_fd);
    pthread_mutex_init(&h->mutex, NULL);
    enum gate_status status = open_tables(h, err);
    if (!status)
        status = open_parts(h, err);
    if (!status)
        status = start_daemon(h, err);
    if (status) {
        http_stop(h);
        return status;
    }
    *out = h;
    return GATE_OK;
}

/* ---- deadlines ---- */

/*
 * libmicrohttpd drops who is silent, but not who sends a byte now and then. A socket that is shut
 * down looks to it as if the client had gone. The list's lock keeps the sockets open.
 */
static void shut_late(struct http *h, int64_t now_ms)
{
    pthread_mutex_lock(&h->mutex);
    for (struct peer *p = h->peers; p; p = p->next) {
        int64_t deadline_ms = atomic_load_explicit(&p->deadline_ms, memory_order_relaxed);
        if (deadline_ms == 0 || deadline_ms > now_ms)
            continue;
        atomic_store_explicit(&p->deadline_ms, 0, memory_order_relaxed);
        shutdown(p->fd, SHUT_RDWR);
        metrics_add(METRIC_DEADLINES, 1);
    }
    pthread_mutex_unlock(&h->mutex);
}

void http_tick(struct http *h)
{
    shut_late(h, http_now_ms());
}

/* ---- stop ---- */

/* Waits until no request is under way, or for STOP_MS. */
static void drain(struct http *h)
{
    struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000};
    for (int ms = 0; ms < STOP_MS && atomic_load(&h->n_requests) > 0; ms += STOP_STEP_MS)
        nanosleep(&step, NULL);
}

/* Nothing may be suspended any more when the daemon is stopped, and the writer resumes all. */
void http_stop(struct http *h)
{
    if (!h)
        return;
    webhook_close(h->webhook);
    if (h->daemon) {
        atomic_store(&h->stopping, true);
        drain(h);
        slow_close(h->slow);
        h->slow = NULL;
        writer_drain(h->writer);
        drain(h);
        if (h->options.listen_is_passed) /* it goes on with whoever passed it */
            MHD_quiesce_daemon(h->daemon);
        MHD_stop_daemon(h->daemon); /* else it closes the socket */
    }
    if (!h->daemon || h->options.listen_is_passed)
        close(h->options.listen_fd);
    slow_close(h->slow);
    for (unsigned i = 0; i < h->n_free; i++)
        store_close(h->stores[i]);
    tagger_close(h->tagger);
    writer_close(h->writer); /* the last to close moves the log into the file */
    artifacts_close(h->artifacts);
    assets_close(h->assets);
    cache_close(h->cache);
    limits_close(h->read_limits);
    limits_close(h->write_limits);
    limits_close(h->touch_limits);
    free(h->tls_cert);
    if (h->tls_key)
        explicit_bzero(h->tls_key, strlen(h->tls_key));
    free(h->tls_key);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}
