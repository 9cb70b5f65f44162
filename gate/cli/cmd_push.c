/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_push.c: gate push.
 *
 * What is asked for is marked in the database (store_outbox_put()), then all that waits for the
 * server is sent, oldest first.
 *
 * What may pass is tried again (http_client_ask()). What the server will never take (400, 409, 413,
 * 415, 422) is marked as refused. Anything else, such as 401 or a redirect, is about the server or
 * the token and not about the entry: it ends the sending, and what is left waits.
 *
 * An entry waits until the answer names it: a 200 of another server that listens there, a login
 * page perhaps, is no receipt.
 */
#include "gate/cli/commands.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/gzip.h"
#include "gate/base/json.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/baseline.h"
#include "gate/report/report_run.h"

#define MAX_ANSWER ((size_t)256 << 10)
#define RUN_TIMEOUT_S 300
#define LIBRARY_TIMEOUT_S 600

struct push_arguments {
    struct remote_choice choice;
    struct remote remote;
    const char *db, *library, *baselines;
    int64_t patience_s;
    bool all, json;
    char **runs;
    int n_runs;
};

#define ARGUMENTS struct push_arguments

static const struct option_def options[] = {
    DB_OPTION(db),
    FLAG("all", all, "send every run of the database that was not sent to this server yet"),
    OPTION(TEXT, "library", "FILE", library, "also send this library"),
    BASELINES_OPTION(baselines),
    OPTION(INTEGER, "retry-for", "SECONDS", patience_s, "keep trying for this time; 0: try once",
           .most = 86400, .fallback = "60"),
    FLAG("json", json, "print the counts and the address of the run as JSON"),
    {0},
};

/* What became of an entry. */
enum outcome {
    SENT,
    REFUSED, /* for good */
    LEFT,    /* the next one may do better */
    AWAY,    /* nothing can be sent now */
};

struct push {
    const struct push_arguments *arguments;
    struct store *store;
    struct http_answer answer;
    char reason[900];            /* of the last entry that was not sent, */
    enum gate_status status;     /* and what that is */
    bool denied[OUTBOX_KINDS];   /* the token may not send these */
    size_t n_created, n_existed; /* runs that are there now, and that were there already */
    size_t n_libraries;          /* that are there now, or were */
    size_t n_refused;            /* of both kinds */
    size_t left[OUTBOX_KINDS];   /* waiting */
    char newest[65];             /* uuid of the last run that is there now, or was; "": of none */
    struct gate_error *err;
};

/* ---- into the outbox ---- */

static enum gate_status put(struct push *p, enum store_outbox_kind kind, const char *id,
                            int64_t time_ms)
{
    return store_outbox_put(p->store, p->arguments->remote.url, kind, id, time_ms, p->err);
}

/* The library of a run, if it is a baseline or may become one: what is slower, faster or new may be
 * accepted. */
static enum gate_status put_library(struct push *p, const struct document *d)
{
    const char *sha256 = d->libraries[0].sha256;
    char path[PATHS_MAX];
    struct baseline *stored = NULL;
    bool baseline = false, acceptable = false;
    struct gate_error why;
    RELEASED_BY(free_at) char *file = baseline_path(p->arguments->baselines, d->device.model);
    TRY(baseline_load(file, d->device.model, &stored, p->err));
    for (size_t i = 0; i < baseline_stored(stored)->n_cases; i++)
        baseline |= !strcmp(baseline_stored(stored)->cases[i].entry.library_sha256, sha256);
    baseline_free(stored);
    for (const struct document_case *c = d->cases; c < d->cases + d->n_cases; c++) {
        const struct document_arm *arm = document_candidate(c);
        acceptable |= arm && arm->has_timing &&
                      (c->verdict == VERDICT_REGRESSION || c->verdict == VERDICT_IMPROVEMENT ||
                       c->verdict == VERDICT_NO_VERDICT);
    }
    if (!baseline && !acceptable)
        return GATE_OK;
    if (!artifact_get(sha256, path, &why))
        return put(p, OUTBOX_LIBRARY, sha256, d->time_ms);
    if (baseline || !p->arguments->all) /* else it is of years ago, perhaps */
        command_note(&command_push,
                     "the library of %s cannot be sent, name it with --library FILE: %s",
                     baseline ? "a baseline" : "a run that may be accepted", why.message);
    return GATE_OK;
}

/* "latest" is the newest run. */
static enum gate_status put_run(struct push *p, const char *run)
{
    RELEASED_BY(document_release) struct document d = {0};
    TRY(command_document(p->store, run, &d, p->err));
    TRY(put(p, OUTBOX_RUN, d.uuid, d.time_ms));
    return put_library(p, &d);
}

static enum gate_status put_wanted(struct push *p)
{
    const struct push_arguments *a = p->arguments;
    char sha256[65];
    if (a->all) {
        RELEASED_BY(free_at) struct store_outbox_entry *list = NULL;
        size_t n_unknown;
        TRY(store_outbox_read(p->store, a->remote.url, OUTBOX_UNKNOWN, &list, &n_unknown, p->err));
        for (size_t i = 0; i < n_unknown; i++)
            TRY(put_run(p, list[i].id));
    } else if (!a->n_runs) {
        TRY(put_run(p, "latest"));
    }
    for (int i = 0; i < a->n_runs; i++)
        TRY(put_run(p, a->runs[i]));
    if (!a->library)
        return GATE_OK;
    TRY(artifact_put(a->library, sha256, p->err));
    return put(p, OUTBOX_LIBRARY, sha256, clock_wall_ms());
}

__attribute__((format(printf, 3, 4))) static enum outcome fail(struct push *p, enum outcome outcome,
                                                               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->reason, sizeof p->reason, format, args);
    va_end(args);
    p->status = GATE_IO;
    return outcome;
}

/* ---- answers ---- */

/* "400: DETAIL; /cases/3/p50_ns: must be over 0" of a problem (RFC 9457), else "400". */
static void read_problem(const struct http_answer *a, char *out, size_t size)
{
    RELEASED_BY(json_delete_at) cJSON *problem = NULL;
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
}

static enum outcome judge(struct push *p, const struct store_outbox_entry *e)
{
    char problem[900];
    int status = p->answer.status;
    bool run = e->kind == OUTBOX_RUN;
    read_problem(&p->answer, problem, sizeof problem);
    if (status == 400 || status == 409 || status == 413 || status == 415 || status == 422)
        return fail(p, REFUSED, "the server refuses it: %s", problem);
    if (http_may_pass(status)) /* 500 may be this document's fault */
        return fail(p, status == 500 ? LEFT : AWAY, "the server answers %s", problem);
    if (status == 401)
        return fail(p, AWAY, "the server does not know the token: %s", problem);
    if (status != 403)
        return fail(p, AWAY, "the server answers %s%s", problem,
                    status < 400 ? "; redirects are not followed, name the address itself"
                                 : ", so it is not a gate-server, or too old");
    /* Said at once: another failure may be the last one, which is the one that is reported. */
    p->denied[e->kind] = true;
    fail(p, LEFT, "the token may not send %s (scope '%s'): %s", run ? "runs" : "libraries",
         run ? "ingest" : "artifact", problem);
    command_note(&command_push, "%s; they wait for a token of that scope", p->reason);
    return LEFT;
}

/* False: there is no answer, and nothing more can be sent. */
static bool ask(struct push *p, struct http_request *r)
{
    struct gate_error err;
    r->patience_s = (double)p->arguments->patience_s;
    enum gate_status status = http_client_ask(&p->arguments->remote, r, &p->answer, &err);
    if (status) {
        fail(p, AWAY, "%s", err.message);
        p->status = status;
    }
    return !status;
}

static bool is_stored(int status)
{
    return status == 200 || status == 201;
}

/* ---- runs ---- */

/* What is not there any more can never be sent. */
static enum outcome send_run(struct push *p, const struct store_outbox_entry *e, struct buf *body)
{
    struct gate_error err;
    RELEASED_BY(json_delete_at) cJSON *receipt = NULL;
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    enum gate_status status = store_document(p->store, e->id, &text, &err);
    if (!status && !gzip_compress(text.data, text.len, body))
        status = gate_fail(&err, GATE_INTERNAL, "out of memory for a run document");
    if (status)
        return fail(p, status == GATE_USAGE ? REFUSED : LEFT, "%s", err.message);
    struct http_request post = {.method = "POST",
                                .path = "/api/v1/runs",
                                .type = "application/json",
                                .gzipped = true,
                                .body = body->data,
                                .len = body->len,
                                .timeout_s = RUN_TIMEOUT_S};
    if (!ask(p, &post))
        return AWAY;
    if (!is_stored(p->answer.status))
        return judge(p, e);
    json_parse("the answer", p->answer.body.len ? p->answer.body.data : "", p->answer.body.len,
               GATE_IO, &receipt, NULL);
    bool created = cJSON_IsTrue(json_member(receipt, "created"));
    if (strcmp(json_string(receipt, "uuid", ""), e->id) != 0)
        return fail(p, AWAY, "the answer %d does not name the run, so it comes from no gate-server",
                    p->answer.status);
    p->n_created += created;
    p->n_existed += !created;
    snprintf(p->newest, sizeof p->newest, "%s", e->id);
    return SENT;
}

/* ---- libraries ---- */

static enum outcome send_library(struct push *p, const struct store_outbox_entry *e,
                                 struct buf *body)
{
    char path[PATHS_MAX], address[128];
    struct gate_error err;
    struct http_request r = {.method = "HEAD", .path = address, .timeout_s = RUN_TIMEOUT_S};
    enum gate_status status = artifact_get(e->id, path, &err);
    if (!status)
        status = file_read(path, body, &err);
    if (status == GATE_NO_VERDICT || status == GATE_ENVIRONMENT)
        return fail(p, REFUSED, "%s; 'gate push --library FILE' sends a copy of it", err.message);
    if (status)
        return fail(p, LEFT, "%s", err.message);
    snprintf(address, sizeof address, "/api/v1/artifacts/%s", e->id);
    if (!ask(p, &r))
        return AWAY;
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
        if (!ask(p, &r))
            return AWAY;
        if (!is_stored(p->answer.status))
            return judge(p, e);
    }
    p->n_libraries++;
    return SENT;
}

/* ---- the list ---- */

/* Marks what became of each entry. */
static enum gate_status send_list(struct push *p, const struct store_outbox_entry *list, size_t n,
                                  struct gate_error *err)
{
    const struct push_arguments *a = p->arguments;
    bool away = !a->remote.token[0]; /* nothing can be sent any more */
    size_t n_not_sent = 0;
    if (away) {
        fail(p, AWAY,
             "no token: use --token-file FILE, or set GATE_TOKEN to the token that "
             "`gate-server token create` printed");
        p->status = GATE_USAGE;
    }
    for (size_t i = 0; i < n; i++) {
        const struct store_outbox_entry *e = &list[i];
        RELEASED_BY(buf_release) struct buf body = buf_of(ARTIFACT_MAX_BYTES);
        enum outcome outcome = away                    ? AWAY
                               : p->denied[e->kind]    ? LEFT
                               : e->kind == OUTBOX_RUN ? send_run(p, e, &body)
                                                       : send_library(p, e, &body);
        if (outcome == SENT || outcome == REFUSED)
            TRY(store_outbox_settle(p->store, a->remote.url, e, outcome == SENT ? NULL : p->reason,
                                    err));
        if (outcome == REFUSED)
            command_note(&command_push, "%s: %s; it waits no longer", e->id, p->reason);
        p->n_refused += outcome == REFUSED;
        p->left[e->kind] += outcome == LEFT || outcome == AWAY;
        n_not_sent += outcome != SENT;
        away = outcome == AWAY;
    }
    return n_not_sent ? gate_fail(err, p->status, "%s", p->reason) : GATE_OK;
}

/* ---- the command ---- */

/* With the address of the run, for readers of the job's log. */
static void print_counts(const struct push *p)
{
    const struct push_arguments *a = p->arguments;
    RELEASED_BY(buf_release) struct buf page = buf_of(4 * REMOTE_URL_MAX);
    if (p->newest[0])
        report_link_run(a->remote.url, p->newest, &page);
    const char *address = page.data;
    size_t runs = p->left[OUTBOX_RUN], libraries = p->left[OUTBOX_LIBRARY];
    if (a->json)
        printf("{\"created\": %zu, \"existed\": %zu, \"libraries\": %zu, \"refused\": %zu, "
               "\"left\": %zu, \"page\": \"%s\"}\n",
               p->n_created, p->n_existed, p->n_libraries, p->n_refused, runs + libraries, address);
    else
        printf("runs: %zu sent, %zu already there; libraries there: %zu; refused for good: %zu; "
               "waiting in '%s': %zu run%s, %zu librar%s\n"
               "%s%s%s",
               p->n_created, p->n_existed, p->n_libraries, p->n_refused, a->db, runs,
               runs == 1 ? "" : "s", libraries, libraries == 1 ? "y" : "ies",
               address[0] ? "the run: " : "", address, address[0] ? "\n" : "");
}

/* What cannot be added does not keep the rest from being sent. */
static int push(struct command_call *call, struct gate_error *err)
{
    struct push_arguments *a = call->arguments;
    struct gate_error filling, keeping, sending;
    RELEASED_BY(command_close_store) struct store *store = NULL;
    RELEASED_BY(free_at) struct store_outbox_entry *list = NULL;
    size_t n = 0;
    a->runs = call->operands;
    a->n_runs = call->n_operands;
    if (a->all && a->n_runs)
        return command_usage(&command_push, "--all and '%s' cannot be combined", a->runs[0]);
    TRY(remote_resolve(&a->choice, &a->remote, err));
    TRY(store_open(a->db, STORE_UPDATE, &store, err));
    struct push p = {.arguments = a, .store = store, .err = &filling};
    /* All that was asked for, with one commit. What comes before a failure waits. */
    enum gate_status filled = store_begin(store, &filling);
    if (!filled) {
        filled = put_wanted(&p);
        if (store_end(store, GATE_OK, &keeping) && !filled)
            filled = gate_fail(&filling, keeping.status, "%s", keeping.message);
    }
    buf_init(&p.answer.body, MAX_ANSWER);
    enum gate_status sent =
        store_outbox_read(store, a->remote.url, OUTBOX_WAITING, &list, &n, &sending);
    if (!sent)
        sent = send_list(&p, list, n, &sending);
    buf_release(&p.answer.body);
    print_counts(&p);
    if (filled)
        command_failed(&command_push, &filling);
    if (sent)
        command_failed(&command_push, &sending);
    return filled ? filled : sent;
}

const struct command command_push = {
    .name = "gate push",
    .operands = "[RUN]...",
    .summary = "send runs to the tracking server",
    .about = "Sends runs to the tracking server. RUN is a uuid, an unambiguous beginning of it, or "
             "'latest' (the default). The library of a run is sent too, from the artifact cache, "
             "if it is a stored baseline or may be accepted as one (a case is slower, faster or "
             "new), so that later runs can be compared with it. For this the token needs the scope "
             "'artifact' in addition to 'ingest'.",
    .groups = {{remote_options, offsetof(struct push_arguments, choice)}, {options, 0}},
    .ending =
        "The database keeps what was sent to which server, and what is still to be sent: the next "
        "push to the same server sends what is left. A run that the server refuses for good is "
        "not sent again. A run that is named is always sent.\n"
        "\n"
        "Exit codes: 0 everything was sent, 4 the server is not the intended one,"
        " 64 usage, 70 internal, 74 something was not sent.\n",
    .most = INT_MAX,
    DEFAULTS(.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES, .patience_s = 60),
    .main = push,
};
