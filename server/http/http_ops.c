/* SPDX-License-Identifier: Apache-2.0 */
/* http_ops.c: what those ask who run the server; see http_private.h. */
#include "server/http/http_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "server/text/emit.h"
#include "server/ops/metrics.h"
#include "version.h"

#define SILENT_MS 30000 /* a background thread that is silent for longer hangs */

bool http_is_alive(struct http *h)
{
    return background_silent_ms(h->background) < SILENT_MS;
}

void http_get_ready(struct peer *p)
{
    struct http *h = p->http;
    struct reply *reply = &p->reply;
    struct store_state state;
    struct store *store = http_take_store(p, false);
    bool database = store_state(store, &state, NULL) == GATE_OK;
    http_give_store(p, store);
    bool writer = http_is_alive(h) && !writer_is_failing(h->writer);
    bool stopping = atomic_load(&h->stopping);
    int64_t free_bytes = artifacts_free_bytes(h->artifacts);
    bool ready = database && writer && !stopping && free_bytes >= ARTIFACT_MIN_FREE_BYTES;
    struct emit e = {.out = &reply->body};
    reply->status = ready ? 200 : 503;
    emit_open(&e, '{');
    emit_string_member(&e, "status", ready ? "ready" : "not ready");
    emit_bool_member(&e, "database", database);
    emit_integer_member(&e, "schema_version", STORE_SCHEMA_VERSION);
    emit_bool_member(&e, "writer", writer);
    emit_bool_member(&e, "stopping", stopping);
    emit_integer_member(&e, "disk_free_bytes", free_bytes);
    emit_close(&e, '}');
    buf_putc(&reply->body, '\n');
}

static int64_t size_of(const char *path, const char *ending)
{
    char name[4200];
    struct stat st;
    snprintf(name, sizeof name, "%s%s", path, ending);
    return stat(name, &st) < 0 ? -1 : (int64_t)st.st_size;
}

static bool count_row(void *context, const struct store_row *)
{
    struct metrics_now *now = context;
    now->silences++;
    return true;
}

static bool alerts_row(void *context, const struct store_row *row)
{
    struct metrics_now *now = context;
    now->alerts_new = store_integer_of(row, "new");
    now->alerts_acknowledged = store_integer_of(row, "acknowledged");
    return false;
}

/* -1 where it cannot be read. */
static void count_alerts(struct peer *p, struct metrics_now *now)
{
    const struct rows_value values[] = {
        {"main_branch", p->http->options.main_branch}, {"limit", "1000"}, {NULL, NULL}};
    struct call call = {.store = http_take_store(p, false)};
    now->alerts_new = now->alerts_acknowledged = -1;
    rows_select(&call, "alert_counts.sql", values, alerts_row, now);
    if (rows_select(&call, "silences.sql", values, count_row, now) != GATE_OK)
        now->silences = -1;
    http_give_store(p, call.store);
}

void http_get_metrics(struct peer *p)
{
    struct http *h = p->http;
    struct reply *reply = &p->reply;
    const char *accept = p->headers.accept;
    bool openmetrics = accept && strstr(accept, "application/openmetrics-text") != NULL;
    struct metrics_now now = {
        .version = GATE_VERSION,
        .writes_waiting = writer_waiting(h->writer),
        .database_bytes = size_of(h->options.db, ""),
        .wal_bytes = size_of(h->options.db, "-wal"),
        .disk_free_bytes = artifacts_free_bytes(h->artifacts),
        .writer_alive = http_is_alive(h),
    };
    pthread_mutex_lock(&h->mutex);
    now.connections = h->n_connections;
    pthread_mutex_unlock(&h->mutex);
    count_alerts(p, &now);
    reply->type = openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8";
    metrics_write(&reply->body, &now, openmetrics);
}

void http_get_health(struct peer *p)
{
    static const char healthy[] = "{\"status\":\"ok\"}\n";
    p->reply.constant = healthy;
    p->reply.constant_size = sizeof healthy - 1;
}
