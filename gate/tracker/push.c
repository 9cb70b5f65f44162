/* SPDX-License-Identifier: Apache-2.0 */
/* push.c: see tracker.h. */
#include "gate/tracker/tracker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/gzip.h"
#include "gate/base/json.h"

#define TRIES_OF_A_500 3 /* it may be the document's fault, and the others wait */
#define MAX_ANSWER ((size_t)256 << 10)
#define RUN_TIMEOUT_S 300
#define LIBRARY_TIMEOUT_S 600

/* What became of an entry. */
enum outcome {
    SENT,
    REFUSED, /* for good */
    LEFT,    /* the next one may do better */
    AWAY,    /* nothing can be sent now */
    RETRY,   /* only between two tries */
};

struct pushing {
    const struct remote *remote;
    struct store *store;
    const char *server;
    double patience_s;
    struct backoff backoff; /* begins anew with each entry that was sent */
    push_say_fn say;
    struct push_counts *counts;
    struct http_answer answer;
    char reason[900];        /* of the last try that failed, */
    enum gate_status status; /* and what that is */
    char why[900];           /* of the last entry that was not sent, and what that is */
    enum gate_status worst;
    bool denied[OUTBOX_KINDS]; /* the token may not send these */
};

static enum outcome fail(struct pushing *p, enum outcome outcome, enum gate_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
static enum outcome fail(struct pushing *p, enum outcome outcome, enum gate_status status,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->reason, sizeof p->reason, format, args);
    va_end(args);
    p->status = status;
    return outcome;
}

/* ---- answers ---- */

/* "400: DETAIL; /cases/3/p50_ns: must be over 0" of a problem (RFC 9457), else "400". */
static void read_problem(const struct http_answer *a, char *out, size_t size)
{
    cJSON *problem = NULL;
    size_t used = (size_t)snprintf(out, size, "%d", a->status);
    if (json_parse("the answer", a->body.len ? a->body.data : "", a->body.len, GATE_IO, &problem,
                   NULL))
        return;
    const cJSON *errors = cJSON_GetObjectItemCaseSensitive(problem, "errors");
    const cJSON *first = cJSON_GetArrayItem(errors, 0);
    const char *detail = json_string(problem, "detail", json_string(problem, "title", ""));
    if (*detail)
        utf8_print(out + used, size - used, ": %.400s", detail);
    used = strlen(out);
    if (first && !strstr(detail, json_string(first, "message", "")))
        utf8_print(out + used, size - used, "; %.200s: %.200s", json_string(first, "path", ""),
                   json_string(first, "message", ""));
    cJSON_Delete(problem);
}

static enum outcome judge(struct pushing *p, const struct store_outbox_entry *e)
{
    char problem[900], line[1000];
    int status = p->answer.status;
    bool run = e->kind == OUTBOX_RUN;
    read_problem(&p->answer, problem, sizeof problem);
    switch (status) {
    case 400:
    case 409:
    case 413:
    case 415:
    case 422:
        return fail(p, REFUSED, GATE_IO, "the server refuses it: %s", problem);
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return fail(p, RETRY, GATE_IO, "the server answers %s", problem);
    case 401:
        return fail(p, AWAY, GATE_IO, "the server does not know the token: %s", problem);
    case 403:
        /* Said at once: another failure may be the last one, which is the one that is reported. */
        p->denied[e->kind] = true;
        fail(p, LEFT, GATE_IO, "the token may not send %s (scope '%s'): %s",
             run ? "runs" : "libraries", run ? "ingest" : "artifact", problem);
        snprintf(line, sizeof line, "%s; they wait for a token of that scope", p->reason);
        p->say(line);
        return LEFT;
    default:
        return fail(p, AWAY, GATE_IO, "the server answers %s%s", problem,
                    status < 400 ? "; redirects are not followed, name the address itself"
                                 : ", so it is not a gate-server, or too old");
    }
}

/* Asks once. False: there is no answer, and *outcome says what follows from that. */
static bool ask(struct pushing *p, const struct http_request *r, enum outcome *outcome)
{
    struct gate_error err;
    enum gate_status status = http_client_ask(p->remote, r, &p->answer, &err);
    if (!status)
        return true;
    p->answer.retry_after = 0;
    p->answer.status = 0;
    *outcome = fail(p, status == GATE_IO ? RETRY : AWAY, status, "%s", err.message);
    return false;
}

static bool is_stored(int status)
{
    return status == 200 || status == 201;
}

/* ---- runs ---- */

static enum outcome send_run(struct pushing *p, const struct store_outbox_entry *e,
                             const struct buf *body)
{
    const struct http_request post = {.method = "POST",
                                      .path = "/api/v1/runs",
                                      .type = "application/json",
                                      .gzipped = true,
                                      .body = body->data,
                                      .len = body->len,
                                      .timeout_s = RUN_TIMEOUT_S};
    enum outcome outcome = AWAY;
    cJSON *receipt = NULL;
    if (!ask(p, &post, &outcome))
        return outcome;
    if (!is_stored(p->answer.status))
        return judge(p, e);
    json_parse("the answer", p->answer.body.len ? p->answer.body.data : "", p->answer.body.len,
               GATE_IO, &receipt, NULL);
    bool is_named = !strcmp(json_string(receipt, "uuid", ""), e->id);
    bool created = json_bool(receipt, "created", false);
    cJSON_Delete(receipt);
    if (!is_named)
        return fail(p, AWAY, GATE_IO,
                    "the answer %d does not name the run, so it comes from no gate-server",
                    p->answer.status);
    p->counts->n_created += created;
    p->counts->n_existed += !created;
    snprintf(p->counts->newest, sizeof p->counts->newest, "%s", e->id);
    return SENT;
}

/* ---- libraries ---- */

static enum outcome send_library(struct pushing *p, const struct store_outbox_entry *e,
                                 const struct buf *body)
{
    char path[128];
    struct http_request r = {.method = "HEAD", .path = path, .timeout_s = RUN_TIMEOUT_S};
    enum outcome outcome = AWAY;
    snprintf(path, sizeof path, "/api/v1/artifacts/%s", e->id);
    if (!ask(p, &r, &outcome))
        return outcome;
    /* One of another length is damaged, and is mended by the whole one. */
    bool there = p->answer.status == 200 && p->answer.length == (long long)body->len;
    if (p->answer.status != 200 && p->answer.status != 404)
        return judge(p, e);
    if (!there) {
        r.method = "PUT";
        r.type = "application/octet-stream";
        r.body = body->data;
        r.len = body->len;
        r.timeout_s = LIBRARY_TIMEOUT_S;
        if (!ask(p, &r, &outcome))
            return outcome;
        if (!is_stored(p->answer.status))
            return judge(p, e);
    }
    p->counts->n_libraries++;
    return SENT;
}

/* ---- the loop ---- */

struct packing {
    struct buf *out;
    bool failed;
};

static bool pack(void *context, const char *text, size_t len)
{
    struct packing *p = context;
    p->failed = !gzip_compress(text, len, p->out);
    return true;
}

/* The bytes of an entry. What is not there any more can never be sent. */
static enum outcome read_entry(struct pushing *p, const struct store_outbox_entry *e,
                               struct buf *out)
{
    char path[PATHS_MAX];
    struct gate_error err;
    struct packing packing = {out, false};
    enum gate_status status;
    if (e->kind == OUTBOX_RUN) {
        status = store_document(p->store, e->id, pack, &packing, &err);
        if (!status && packing.failed)
            status = gate_fail(&err, GATE_INTERNAL, "out of memory for a run document");
        return status == GATE_OK
                   ? RETRY
                   : fail(p, status == GATE_USAGE ? REFUSED : LEFT, status, "%s", err.message);
    }
    status = artifact_get(e->id, path, &err);
    if (!status && !(status = file_read(path, out, &err)))
        return RETRY;
    bool gone = status == GATE_NO_VERDICT || status == GATE_ENVIRONMENT;
    return fail(p, gone ? REFUSED : LEFT, status, "%s%s", err.message,
                gone ? "; 'gate push --library FILE' sends a copy of it" : "");
}

static enum outcome send_entry(struct pushing *p, const struct store_outbox_entry *e)
{
    char line[1000];
    struct buf body;
    buf_init(&body, ARTIFACT_MAX_BYTES);
    enum outcome outcome = read_entry(p, e, &body);
    for (unsigned n = 1; outcome == RETRY; n++) {
        outcome = e->kind == OUTBOX_RUN ? send_run(p, e, &body) : send_library(p, e, &body);
        if (outcome == RETRY && p->answer.status == 500 && n == TRIES_OF_A_500)
            outcome = LEFT;
        if (outcome != RETRY)
            break;
        double delay = backoff_delay(&p->backoff, n, (double)p->answer.retry_after);
        if (delay < 0) {
            outcome = AWAY;
            break;
        }
        snprintf(line, sizeof line, "%s; trying again in %.1f s", p->reason, delay);
        p->say(line);
        backoff_sleep(delay);
    }
    buf_release(&body);
    return outcome;
}

/* Marks what became of each entry. */
static enum gate_status push_list(struct pushing *p, const struct store_outbox_entry *list,
                                  size_t n, struct gate_error *err)
{
    char line[1100];
    bool away = false; /* nothing can be sent any more */
    for (size_t i = 0; i < n; i++) {
        const struct store_outbox_entry *e = &list[i];
        enum outcome outcome = away ? AWAY : p->denied[e->kind] ? LEFT : send_entry(p, e);
        if (outcome == SENT) {
            TRY(store_outbox_settle(p->store, p->server, e, NULL, err));
            p->backoff = backoff_start(p->patience_s);
            continue;
        }
        away = outcome == AWAY;
        snprintf(p->why, sizeof p->why, "%s", p->reason);
        p->worst = p->status == GATE_ENVIRONMENT ? GATE_ENVIRONMENT : GATE_IO;
        if (outcome == REFUSED) {
            p->counts->n_refused++;
            snprintf(line, sizeof line, "%s: %s; it waits no longer", e->id, p->reason);
            p->say(line);
            TRY(store_outbox_settle(p->store, p->server, e, p->reason, err));
        } else {
            p->counts->left[e->kind]++;
        }
    }
    return GATE_OK;
}

enum gate_status push_waiting(const struct remote *remote, struct store *store, const char *server,
                              double patience_s, push_say_fn say, struct push_counts *counts,
                              struct gate_error *err)
{
    struct pushing p = {.remote = remote,
                        .store = store,
                        .server = server,
                        .patience_s = patience_s,
                        .backoff = backoff_start(patience_s),
                        .say = say,
                        .counts = counts};
    struct store_outbox_entry *list = NULL;
    size_t n = 0;
    *counts = (struct push_counts){0};
    http_answer_init(&p.answer, MAX_ANSWER);
    enum gate_status status = store_outbox_read(store, server, OUTBOX_WAITING, &list, &n, err);
    for (size_t i = 0; !remote && i < n; i++)
        counts->left[list[i].kind]++;
    if (!status && remote)
        status = push_list(&p, list, n, err);
    if (!status && p.worst)
        status = gate_fail(err, p.worst, "%s", p.why);
    http_answer_release(&p.answer);
    free(list);
    return status;
}
