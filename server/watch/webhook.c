/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c: see webhook.h. */
#include "server/watch/webhook.h"

#include <gnutls/crypto.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/tracker/tracker.h"
#include "server/ops/log.h"

#define HMAC_BYTES 32
#define SECRET_MIN 16
#define SECRET_MAX 4096
#define POLL_MS 1000         /* between looks for new steps */
#define TIMEOUT_S 5L         /* of one delivery */
#define LONGEST_WAIT_S 600.0 /* whatever the receiver asks for */
#define MAX_BODY ((size_t)64 << 10)
#define MAX_ANSWER ((size_t)64 << 10)
#define LOG_EVERY 20 /* failures in a row, between two lines of the log */
#define QUERY_MAX 700
#define AT_A_TIME 32 /* deliveries between two writes of the mark */
#define TOLD_MAX ((size_t)1 << 20)
#define NAME_MAX_SIZE 256
#define SAVE_MS 1000 /* for the turn to write it */

struct webhook {
    struct remote remote;
    char query[QUERY_MAX + 2]; /* "?..." of the address, or ""; it may be a secret */
    struct buf secret;
    char target[2 * HMAC_BYTES + 1];
    struct store *store;
    struct writer *writer;
    int64_t taken; /* newest event that was delivered; -1: not known yet */
    int64_t saved; /* the same as on record */
    const char *main_branch;
    struct buf told; /* silences that the receiver knows: a line each, behind an empty one */
    bool told_is_saved;
    int64_t told_run_id;              /* the newest run that all was told of; -1: not known */
    int64_t newest_run;               /* when it looked for silences */
    char next_silence[NAME_MAX_SIZE]; /* that it found; "": nothing */
    unsigned n_failures;
    int64_t next_ms; /* of the monotonic clock: when the failed one is tried again */
};

static int64_t now_ms(void)
{
    return (int64_t)clock_ns() / 1000000;
}

/* What is not saved now is saved later. */
static void save(struct webhook *w)
{
    struct gate_error err = {0};
    bool is_saved = w->saved == w->taken && w->told_is_saved;
    struct store *store = is_saved ? NULL : writer_take(w->writer, SAVE_MS);
    if (!store)
        return;
    enum gate_status status =
        store_put_mark(store, "webhook", w->target, cell_integer(w->taken), &err);
    if (!status)
        status = store_put_mark(store, "silences", w->target, cell_text(w->told.data), &err);
    w->told_is_saved |= !status;
    writer_give(w->writer, status);
    if (status)
        log_message(LOG_LEVEL_ERROR, "webhook: %s", err.message);
    else
        w->saved = w->taken;
}

/*
 * ---- silences ----
 *
 * What is measured no longer follows from the history alone (silences.sql). So that each is told
 * once, the names of those that were told and last are kept, with the receiver; one that ends and
 * begins again is told again. A new receiver is told of those that come.
 */

struct silence_look {
    struct webhook *w;
    struct buf told;   /* the present ones among those that were told */
    struct emit *emit; /* takes the first other one; NULL: all are as if told */
};

static bool silence_row(void *context, const struct store_row *row)
{
    struct silence_look *look = context;
    struct webhook *w = look->w;
    char name[NAME_MAX_SIZE]; /* "\nRUN PLACE\n" */
    snprintf(name, sizeof name, "\n%s %s\n", store_text_of(row, "run"),
             store_text_of(row, "place"));
    if (!look->emit || strstr(w->told.data, name)) {
        buf_puts(&look->told, name + 1);
    } else if (w->next_silence[0] == '\0') {
        memcpy(w->next_silence, name, sizeof name);
        emit_key(look->emit, "silence");
        emit_open(look->emit, '{');
        rows_put_members(look->emit, "silences.sql", row);
        emit_close(look->emit, '}');
    }
    return true;
}

/* Drops those that ended, and finds one that was not told. */
static enum gate_status look_at_silences(struct webhook *w, struct call *c, bool finds)
{
    struct silence_look look = {.w = w, .emit = finds ? &c->emit : NULL};
    const struct rows_value values[] = {
        {"main_branch", w->main_branch}, {"limit", "1000"}, {NULL, NULL}};
    w->next_silence[0] = '\0';
    buf_init(&look.told, TOLD_MAX);
    buf_puts(&look.told, "\n");
    enum gate_status status = rows_select(c, "silences.sql", values, silence_row, &look);
    if (!status && look.told.len != w->told.len) {
        buf_clear(&w->told);
        buf_puts(&w->told, look.told.data);
        w->told_is_saved = false;
    }
    buf_release(&look.told);
    return status;
}

static bool newest_row(void *context, const struct store_row *row)
{
    struct webhook *w = context;
    w->newest_run = store_integer_of(row, "newest_run");
    return false;
}

/* The next silence as a member of the object that is open, if there is one. Without new runs
 * nothing is asked. */
static enum gate_status next_silence(struct webhook *w, struct call *c, bool *found)
{
    static const struct rows_value none[] = {{NULL, NULL}};
    enum gate_status status = rows_select(c, "webhook.sql", none, newest_row, w);
    bool is_new = w->newest_run != w->told_run_id;
    if (!status && is_new)
        status = look_at_silences(w, c, true);
    *found = !status && is_new && w->next_silence[0] != '\0';
    if (!status && !*found)
        w->told_run_id = w->newest_run;
    return status;
}

/* ---- one delivery ---- */

struct next {
    struct call call;
    int64_t id; /* of the event; 0: there is none */
    int64_t alert_id;
    bool is_silence;
};

static bool event_row(void *context, const struct store_row *row)
{
    struct next *n = context;
    n->id = store_integer_of(row, "id");
    n->alert_id = store_integer_of(row, "alert_id");
    emit_key(&n->call.emit, "event");
    emit_json(&n->call.emit, store_text_of(row, "event"));
    return false;
}

/* The body of the next event, else of the next silence; there may be neither. */
static enum gate_status make_body(struct webhook *w, struct next *n, struct gate_error *err)
{
    char after[24], ids[24];
    struct emit *e = &n->call.emit;
    const struct rows_value values[] = {{"after", after}, {"ids", ids}, {NULL, NULL}};
    snprintf(after, sizeof after, "%lld", (long long)w->taken);
    emit_open(e, '{');
    enum gate_status status = rows_select(&n->call, "alert_event.sql", values, event_row, n);
    if (!status && n->id == 0)
        status = next_silence(w, &n->call, &n->is_silence);
    if (!status && n->id != 0) {
        snprintf(ids, sizeof ids, "[%lld]", (long long)n->alert_id);
        emit_key(e, "alert");
        emit_open(e, '{');
        status = rows_put(&n->call, "alerts.sql", values, true, NULL);
        emit_close(e, '}');
    }
    emit_close(e, '}');
    if (status)
        *err = n->call.err;
    else if (e->out->failed)
        status =
            gate_fail(err, GATE_INTERNAL, "the body of event %lld is too long", (long long)n->id);
    return status;
}

/* The HMAC-SHA256 of a text, in hex. */
static enum gate_status sign(const void *key, size_t key_len, const void *text, size_t len,
                             char hex[2 * HMAC_BYTES + 1], struct gate_error *err)
{
    uint8_t mac[HMAC_BYTES];
    int rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_len, text, len, mac);
    if (rc < 0)
        return gate_fail(err, GATE_INTERNAL, "cannot sign: %s", gnutls_strerror(rc));
    for (size_t i = 0; i < sizeof mac; i++)
        snprintf(hex + 2 * i, 3, "%02x", mac[i]);
    return GATE_OK;
}

/* GATE_OK: the receiver has it. *retry_after: what it asked for when it does not want it. */
static enum gate_status post(struct webhook *w, const struct buf *body, long *retry_after,
                             struct gate_error *err)
{
    char seconds[24], timestamp[64], hex[2 * HMAC_BYTES + 1], signature[128];
    const char *headers[] = {timestamp, signature, NULL};
    RELEASED_BY(buf_release) struct buf signed_text = buf_of(MAX_BODY + 64);
    struct http_answer answer = {0};
    snprintf(seconds, sizeof seconds, "%lld", (long long)time(NULL));
    buf_printf(&signed_text, "%s.", seconds);
    buf_append(&signed_text, body->data, body->len);
    TRY(sign(w->secret.data, w->secret.len, signed_text.data, signed_text.len, hex, err));
    snprintf(timestamp, sizeof timestamp, "X-Gate-Timestamp: %s", seconds);
    snprintf(signature, sizeof signature, "X-Gate-Signature: sha256=%s", hex);
    struct http_request request = {
        .method = "POST",
        .path = w->query,
        .type = "application/json",
        .body = body->data,
        .len = body->len,
        .timeout_s = TIMEOUT_S,
        .headers = headers,
    };
    buf_init(&answer.body, MAX_ANSWER);
    enum gate_status status = http_client_ask(&w->remote, &request, &answer, err);
    *retry_after = answer.retry_after;
    if (answer.status >= 200 && answer.status <= 299)
        status = GATE_OK; /* however long what it says is */
    else if (!status)
        status = gate_fail(err, GATE_IO, "%s answers %d%s", w->remote.url, answer.status,
                           answer.status >= 300 && answer.status < 400
                               ? ", and redirects are not followed: name the address itself"
                               : "");
    buf_release(&answer.body);
    return status;
}

static void back_off(struct webhook *w, long retry_after, const struct gate_error *err)
{
    if (w->n_failures++ % LOG_EVERY == 0)
        log_message(LOG_LEVEL_WARNING, "webhook: %s; it will be tried again", err->message);
    double asked_s = (double)retry_after;
    if (asked_s > LONGEST_WAIT_S)
        asked_s = LONGEST_WAIT_S;
    w->next_ms = now_ms() + (int64_t)(1000 * backoff_delay(INFINITY, w->n_failures, asked_s));
}

/* Delivers the next event. False: there is none, or it was not taken. */
static bool deliver_next(struct webhook *w)
{
    struct gate_error err = {0};
    struct buf body;
    struct next n = {.call = {.store = w->store, .emit = {.out = &body}}};
    long retry_after = 0;
    buf_init(&body, MAX_BODY);
    enum gate_status status = make_body(w, &n, &err);
    bool taken = !status && (n.id != 0 || n.is_silence);
    if (taken)
        status = post(w, &body, &retry_after, &err);
    if (status) {
        back_off(w, retry_after, &err);
    } else if (taken) {
        if (n.is_silence) {
            buf_puts(&w->told, w->next_silence + 1);
            w->told_is_saved = false;
        } else {
            w->taken = n.id;
        }
        w->n_failures = 0;
    }
    buf_release(&body);
    return taken && !status;
}

int64_t webhook_deliver(struct webhook *w)
{
    int n = 0;
    int64_t wait_ms = w->next_ms - now_ms();
    if (wait_ms > 0)
        return wait_ms;
    while (n < AT_A_TIME && deliver_next(w))
        n++;
    save(w);
    wait_ms = w->next_ms - now_ms();
    return n == AT_A_TIME ? 0 : wait_ms > 0 ? wait_ms : POLL_MS;
}

/* Where to go on; a new target with what comes from now on. */
static bool mark_row(void *context, const struct store_row *row)
{
    struct webhook *w = context;
    w->saved = store_integer_of(row, "event_id");
    w->taken = w->saved < 0 ? store_integer_of(row, "newest_event") : w->saved;
    buf_puts(&w->told, store_text_of(row, "silences"));
    w->told_is_saved = w->told.len > 0;
    return false;
}

static enum gate_status find_mark(struct webhook *w, struct gate_error *err)
{
    struct call call = {.store = w->store};
    const struct rows_value values[] = {{"target", w->target}, {NULL, NULL}};
    enum gate_status status = rows_select(&call, "webhook.sql", values, mark_row, w);
    if (!status && !w->told_is_saved)
        status = look_at_silences(w, &call, false);
    if (status)
        *err = call.err;
    return status;
}

/* ---- life ---- */

static enum gate_status read_secret(const char *path, struct buf *out, struct gate_error *err)
{
    enum gate_status status = file_read(path, out, err);
    if (status) {
        gate_fail_context(err, "the secret of the webhook");
        return status;
    }
    while (out->len > 0 && (out->data[out->len - 1] == '\n' || out->data[out->len - 1] == '\r'))
        out->len--;
    if (out->len < SECRET_MIN)
        return gate_fail(err, GATE_USAGE,
                         "the secret in '%s' has %zu bytes, and %d are the least: make one by "
                         "`openssl rand -hex 32`",
                         path, out->len, SECRET_MIN);
    return GATE_OK;
}

/* No message has the query: services that take no other sign of who asks have a key in it. */
static enum gate_status read_address(struct webhook *w, const char *text, struct gate_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~%!$&'()*+,;=:@/?";
    char address[2 * REMOTE_URL_MAX];
    size_t n = strcspn(text, "?"), n_query = strlen(text + n);
    bool ends = n > 0 && text[n - 1] == '/'; /* a '/' that remote_take_url() drops */
    snprintf(address, sizeof address, "%.*s", (int)n, text);
    if (n_query > QUERY_MAX || strspn(text + n, allowed) != n_query)
        return gate_fail(err, GATE_USAGE,
                         "the query of the webhook's address has other characters than an address "
                         "may have, or more than %d",
                         QUERY_MAX);
    if (n_query > 0)
        snprintf(w->query, sizeof w->query, "%s%s", ends ? "/" : "", text + n);
    return remote_take_url(address, &w->remote, err);
}

static enum gate_status prepare(struct webhook *w, const struct background_options *o,
                                struct gate_error *err)
{
    char version[32], url[sizeof w->remote.url + sizeof w->query];
    TRY(read_address(w, o->webhook, err));
    TRY(read_secret(o->webhook_secret, &w->secret, err));
    TRY(http_client_version(version, err));
    /* The address may be a secret itself, so that the database has its hash. */
    snprintf(url, sizeof url, "%s%s", w->remote.url, w->query);
    TRY(sign("webhook", 7, url, strlen(url), w->target, err));
    return find_mark(w, err);
}

enum gate_status webhook_open(const struct background_options *options, struct store *reader,
                              struct webhook **out, struct gate_error *err)
{
    struct webhook *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    w->store = reader;
    w->writer = options->writer;
    w->main_branch = options->main_branch;
    w->told_run_id = -1;
    buf_init(&w->told, TOLD_MAX);
    buf_init(&w->secret, SECRET_MAX);
    enum gate_status status = prepare(w, options, err);
    if (status) {
        webhook_close(w);
        return status;
    }
    save(w); /* of a new target: what comes from now on is told, whenever this server dies */
    *out = w;
    return GATE_OK;
}

void webhook_close(struct webhook *w)
{
    if (!w)
        return;
    buf_release(&w->told);
    if (w->secret.data)
        explicit_bzero(w->secret.data, w->secret.len);
    buf_release(&w->secret);
    free(w);
}
