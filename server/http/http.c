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

/* Of the request line, the headers and those of the answer; libmicrohttpd clears it each time. */
#define CONNECTION_BYTES ((size_t)16 << 10)
#define STACK_BYTES ((size_t)2 << 20) /* a trend with its steps takes 350 KiB of it */
#define PAGE_BYTES ((size_t)20 << 20) /* of the database, for all stores that are read from */
#define MAX_PEM ((size_t)1 << 20)
#define MIN_STORES 4u
#define STOP_MS 5000
#define STOP_STEP_MS 5
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

int64_t http_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- start ---- */

/* Two a processor that may be used. More would take turns of milliseconds, and each would have less
 * of the page cache. */
static enum gate_status open_stores(struct http *h, struct gate_error *err)
{
    cpu_set_t set;
    unsigned n = 2 * (sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1u);
    h->n_stores = n < MIN_STORES ? MIN_STORES : n > HTTP_MAX_STORES ? HTTP_MAX_STORES : n;
    for (; h->n_free < h->n_stores; h->n_free++) {
        TRY(store_open(h->options.db, STORE_READ_ONLY, &h->stores[h->n_free], err));
        store_cache_pages(h->stores[h->n_free], PAGE_BYTES / h->n_stores);
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
    TRY(read_pem(h->options.tls_cert, &h->tls_cert, err));
    return read_pem(h->options.tls_key, &h->tls_key, err);
}

/* Nobody new while it stops; the socket itself may be systemd's, and stays open. */
static enum MHD_Result accept_client(void *context, const struct sockaddr *, socklen_t)
{
    struct http *h = context;
    return atomic_load(&h->stopping) ? MHD_NO : MHD_YES;
}

static enum gate_status start_daemon(struct http *h, struct gate_error *err)
{
    const struct http_options *o = &h->options;
    static char priorities[] = TLS_PRIORITIES;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, h->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, h->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    if (h->tls_cert)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    h->daemon = MHD_start_daemon(
        flags, 0, accept_client, h, http_on_request, h, MHD_OPTION_EXTERNAL_LOGGER, http_on_log, h,
        MHD_OPTION_LISTEN_SOCKET, o->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)o->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)o->max_per_address, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_THREAD_STACK_SIZE,
        STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, http_on_target,
        h, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, h, MHD_OPTION_NOTIFY_CONNECTION,
        http_on_connection, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (h->daemon)
        return GATE_OK;
    return gate_fail(err, GATE_IO, "cannot start the HTTP server%s",
                     h->tls_cert ? ": are the certificate and its key PEM files that fit?" : "");
}

/* Answers depend on the program, on which branch is the main one, and on where the forge and this
 * server are: another one may say the same things otherwise. */
static enum gate_status make_speaker(struct http *h, struct gate_error *err)
{
    char program[65];
    struct buf text;
    TRY(file_sha256("/proc/self/exe", program, err));
    buf_init(&text, (size_t)4 << 20); /* more than an argument may have */
    buf_printf(&text, "%s\n%s\n%s\n%s\n", program, h->options.main_branch,
               h->options.commit_url ? h->options.commit_url : "",
               h->options.public_url ? h->options.public_url : "");
    h->speaker = buf_detach(&text);
    return h->speaker ? GATE_OK : gate_fail(err, GATE_INTERNAL, "out of memory");
}

/* The writer comes first: it makes the file that the others read. */
static enum gate_status open_parts(struct http *h, struct gate_error *err)
{
    TRY(http_open_assets(h, err));
    TRY(make_speaker(h, err));
    TRY(read_tls(h, err));
    TRY(writer_open(h->options.db, &h->writer, err));
    TRY(open_stores(h, err));
    TRY(artifacts_open(h->options.artifacts, &h->artifacts, err));
    artifacts_clean(h->artifacts);
    const struct background_options background = {
        .db = h->options.db,
        .main_branch = h->options.main_branch,
        .keep_samples_ms = h->options.keep_samples_ms,
        .webhook = h->options.webhook,
        .webhook_secret = h->options.webhook_secret,
        .writer = h->writer,
    };
    return background_open(&background, &h->background, err);
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
    h->is_loopback = listen_is_loopback(options->listen_fd);
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->given, NULL);
    enum gate_status status = open_parts(h, err);
    if (!status)
        status = start_daemon(h, err);
    if (status) {
        http_stop(h);
        return status;
    }
    *out = h;
    return GATE_OK;
}

enum gate_status http_watch(struct http *h, struct gate_error *err)
{
    return background_start(h->background, err);
}

/* ---- deadlines ---- */

/*
 * libmicrohttpd drops who is silent, but not who sends a byte now and then. A socket that is shut
 * down looks to it as if the client had gone. The list's lock keeps the sockets open.
 */
void http_tick(struct http *h)
{
    int64_t now_ms = http_now_ms();
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

/* ---- stop ---- */

void http_stop(struct http *h)
{
    if (!h)
        return;
    if (h->daemon) {
        atomic_store(&h->stopping, true);
        struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000};
        for (int ms = 0; ms < STOP_MS && atomic_load(&h->n_requests) > 0; ms += STOP_STEP_MS)
            nanosleep(&step, NULL);
        if (h->options.listen_is_passed) /* it goes on with whoever passed it */
            MHD_quiesce_daemon(h->daemon);
        MHD_stop_daemon(h->daemon); /* else it closes the socket */
    }
    if (!h->daemon || h->options.listen_is_passed)
        close(h->options.listen_fd);
    background_close(h->background);
    for (unsigned i = 0; i < h->n_free; i++)
        store_close(h->stores[i]);
    writer_close(h->writer); /* the last to close moves the log into the file */
    artifacts_close(h->artifacts);
    http_close_assets(h);
    free(h->tls_cert);
    if (h->tls_key)
        explicit_bzero(h->tls_key, strlen(h->tls_key));
    free(h->tls_key);
    free(h->speaker);
    pthread_cond_destroy(&h->given);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}
