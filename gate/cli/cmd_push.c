/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_push.c: gate push. */
#include "gate/cli/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/baseline/artifact.h"
#include "gate/base/gzip.h"
#include "gate/base/json.h"
#include "gate/baseline/baseline.h"
#include "gate/cli/cmd_common.h"
#include "gate/tracker/push.h"
#include "gate/tracker/remote.h"
#include "gate/report/report_run.h"
#include "gate/tracker/spool.h"
#include "gate/base/term.h"

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
    DB_OPTION(struct push_arguments, db),
    FLAG("all", all, "send every run of the database that the server lacks"),
    OPTION(TEXT, "library", "FILE", library, "also send this library"),
    BASELINES_OPTION(struct push_arguments, baselines),
    OPTION(INTEGER, "retry-for", "SECONDS", patience_s, "keep trying for this time; 0: try once",
           .most = 86400, .fallback = "60"),
    FLAG("json", json, "print the counts and the address of the run as JSON"),
    {0},
};

const struct command command_push = {
    .name = "push",
    .operands = "[RUN]...",
    .summary = "send runs to the tracking server",
    .about = "Sends runs to the tracking server. RUN is a uuid, an unambiguous beginning of it, or "
             "'latest' (the default). The library of a run is sent too, from the artifact cache, "
             "if it is a stored baseline or may be accepted as one (a case is slower, faster or "
             "new), so that later runs can be compared with it. For this the token needs the scope "
             "'artifact' in addition to 'ingest'.",
    .groups = {{remote_options, offsetof(struct push_arguments, choice)}, {options, 0}},
    .ending =
        "Everything is first written to the spool ($GATE_SPOOL, else "
        "$XDG_STATE_HOME/kernel-gate/spool, else ~/.local/state/kernel-gate/spool), and removed "
        "when the server has it. The next push sends what is left. Runs that the server refuses "
        "for good are moved to refused/ in the spool, with the reason.\n"
        "\n"
        "Exit codes: 0 everything was sent, 4 the server is not the intended one,"
        " 64 usage, 70 internal, 74 something was not sent. A run that stays in the spool is "
        "not lost.\n",
    .main = cmd_push,
};

/* ---- into the spool ---- */

/* From the database into the spool; a full one is sent and goes on. */
struct enqueue {
    const struct push_arguments *arguments;
    const struct spool *spool;
    struct http_client *client; /* NULL: there is no curl, or no token */
    struct push_counts counts;  /* of what was sent to make room */
    enum gate_status status;
    struct gate_error *err;
};

static void print_line(const char *line)
{
    struct buf safe;
    buf_init(&safe, 16 * 1024);
    term_puts(line, &safe);
    fprintf(stderr, "gate push: %s\n", safe.data);
    buf_release(&safe);
}

static void add_counts(struct push_counts *sum, const struct push_counts *more)
{
    sum->n_created += more->n_created;
    sum->n_existed += more->n_existed;
    sum->n_libraries += more->n_libraries;
    sum->n_refused += more->n_refused;
    memcpy(sum->left, more->left, sizeof sum->left);
    if (more->newest[0])
        memcpy(sum->newest, more->newest, sizeof sum->newest);
}

static enum gate_status send_spool(struct enqueue *q, struct gate_error *err)
{
    struct push_counts counts;
    enum gate_status status =
        push_spool(q->client, q->spool, (double)q->arguments->patience_s, print_line, &counts, err);
    add_counts(&q->counts, &counts);
    return status;
}

static enum gate_status put(struct enqueue *q, enum spool_kind kind, int64_t time_ms,
                            const char *id, const struct buf *bytes)
{
    const char *data = bytes ? bytes->data : "";
    size_t n = bytes ? bytes->len : 0;
    enum gate_status status = spool_put(q->spool, kind, time_ms, id, data, n, q->err);
    if (status == GATE_NO_VERDICT && q->client && !send_spool(q, NULL))
        status = spool_put(q->spool, kind, time_ms, id, data, n, q->err);
    return status == GATE_NO_VERDICT ? gate_fail(q->err, GATE_IO, "%s", q->err->message) : status;
}

static enum gate_status is_baseline(const char *folder, const char *model, const char *sha256,
                                    bool *out, struct gate_error *err)
{
    struct baseline *baseline = NULL;
    char *path = baseline_path(folder, model);
    enum gate_status status = baseline_load(path, model, &baseline, err);
    *out = false;
    for (size_t i = 0; !status && i < baseline_stored(baseline)->n_cases; i++)
        *out |= !strcmp(baseline_stored(baseline)->cases[i].entry.library_sha256, sha256);
    baseline_free(baseline);
    free(path);
    return status;
}

/* What is slower, faster or new may be accepted, and then its library is that of a baseline. */
static bool may_be_accepted(const struct document *d)
{
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_arm *arm = document_candidate(&d->cases[i]);
        int verdict = d->cases[i].verdict;
        if (arm && arm->has_timing &&
            (verdict == VERDICT_REGRESSION || verdict == VERDICT_IMPROVEMENT ||
             verdict == VERDICT_NO_VERDICT))
            return true;
    }
    return false;
}

/* The library of a run, if it is a baseline or may become one. */
static enum gate_status put_library(struct enqueue *q, const struct document *d)
{
    char path[PATHS_MAX], line[1200];
    bool baseline = false;
    struct gate_error why;
    const char *sha256 = d->libraries[0].sha256;
    enum gate_status status =
        is_baseline(q->arguments->baselines, d->device.model, sha256, &baseline, q->err);
    if (status || (!baseline && !may_be_accepted(d)))
        return status;
    status = artifact_get(sha256, path, &why);
    if (status && !baseline && q->arguments->all) /* of years, perhaps */
        return GATE_OK;
    if (status) {
        snprintf(line, sizeof line,
                 "the library of %s cannot be sent, name it with --library FILE: %s",
                 baseline ? "a baseline" : "a run that may be accepted", why.message);
        print_line(line);
        return GATE_OK;
    }
    return put(q, SPOOL_LIBRARY, d->time_ms, sha256, NULL);
}

static enum gate_status put_run(struct enqueue *q, const char *text, size_t len)
{
    struct document d = {0};
    struct buf packed;
    buf_init(&packed, SPOOL_MAX_ENTRY);
    enum gate_status status = document_parse("stored run", 1, text, len, GATE_IO, &d, q->err);
    if (!status && !gzip_compress(text, len, &packed))
        status = gate_fail(q->err, GATE_INTERNAL, "out of memory for a run document");
    if (!status)
        status = put(q, SPOOL_RUN, d.time_ms, d.uuid, &packed);
    if (!status)
        status = put_library(q, &d);
    document_release(&d);
    buf_release(&packed);
    return status;
}

static bool take_document(void *context, const char *text, size_t len)
{
    struct enqueue *q = context;
    q->status = put_run(q, text, len);
    return q->status == GATE_OK;
}

static enum gate_status put_named(struct enqueue *q, struct store *store, const char *run)
{
    char newest[64];
    enum gate_status status = GATE_OK;
    if (!strcmp(run, "latest")) {
        status = command_newest_run(store, newest, q->err);
        run = newest;
    }
    if (!status)
        status = store_document(store, run, take_document, q, q->err);
    return status ? status : q->status;
}

static enum gate_status put_runs(struct enqueue *q, struct store *store)
{
    const struct push_arguments *a = q->arguments;
    enum gate_status status = GATE_OK;
    if (a->all) {
        status = store_documents(store, take_document, q, q->err);
        return status ? status : q->status;
    }
    if (!a->n_runs)
        return put_named(q, store, "latest");
    for (int i = 0; i < a->n_runs && !status; i++)
        status = put_named(q, store, a->runs[i]);
    return status;
}

static enum gate_status put_file(struct enqueue *q)
{
    char sha256[65];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    enum gate_status status = artifact_put(q->arguments->library, sha256, q->err);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return status ? status : put(q, SPOOL_LIBRARY, now_ms, sha256, NULL);
}

/* All that was asked for. */
static enum gate_status fill_spool(struct enqueue *q)
{
    struct store *store = NULL;
    enum gate_status status = store_open(q->arguments->db, STORE_READ_ONLY, &store, q->err);
    if (!status)
        status = put_runs(q, store);
    if (!status && q->arguments->library)
        status = put_file(q);
    store_close(store);
    return status;
}

/* ---- the command ---- */

/* With the address of the run, for who reads the job's log; `server`: the tracking server's. */
static int print_counts(const struct push_counts *c, const struct spool *spool, const char *server,
                        bool json)
{
    struct buf page;
    buf_init(&page, 4 * REMOTE_URL_MAX);
    if (c->newest[0])
        report_link_run(server, c->newest, &page);
    const char *address = page.len ? page.data : "";
    size_t runs = c->left[SPOOL_RUN], libraries = c->left[SPOOL_LIBRARY];
    int n =
        json ? printf("{\"created\": %zu, \"existed\": %zu, \"libraries\": %zu, \"refused\": "
                      "%zu, \"left\": %zu, \"page\": \"%s\"}\n",
                      c->n_created, c->n_existed, c->n_libraries, c->n_refused, runs + libraries,
                      address)
             : printf("runs: %zu sent, %zu already there; libraries there: %zu; refused for good: "
                      "%zu; left in '%s': %zu run%s, %zu librar%s\n"
                      "%s%s%s",
                      c->n_created, c->n_existed, c->n_libraries, c->n_refused, spool->path, runs,
                      runs == 1 ? "" : "s", libraries, libraries == 1 ? "y" : "ies",
                      address[0] ? "the run: " : "", address, address[0] ? "\n" : "");
    buf_release(&page);
    return n < 0 || fflush(stdout) == EOF ? GATE_IO : GATE_OK;
}

static enum gate_status open_client(const struct push_arguments *a, struct http_client **out,
                                    struct gate_error *err)
{
    if (!a->remote.token[0])
        return gate_fail(err, GATE_USAGE,
                         "no token: use --token-file FILE, or set GATE_TOKEN to the token that "
                         "`gate-server token create` printed");
    return http_client_open(&a->remote, out, err);
}

/* What cannot be added does not keep the rest from being sent. */
static int push(const struct command *self, const struct push_arguments *a,
                const struct spool *spool)
{
    struct gate_error filling, sending;
    struct enqueue q = {.arguments = a, .spool = spool, .err = &filling};
    size_t n_left = 0;
    struct spool_entry *left = NULL;
    enum gate_status absent = open_client(a, &q.client, &sending);
    enum gate_status filled = fill_spool(&q);
    enum gate_status sent = absent ? absent : send_spool(&q, &sending);
    if (absent)
        spool_list(spool, &left, &n_left, NULL);
    for (size_t i = 0; i < n_left; i++)
        q.counts.left[left[i].kind]++;
    free(left);
    http_client_close(q.client);
    int code = print_counts(&q.counts, spool, a->remote.url, a->json);
    if (filled)
        code = command_failed(self, &filling);
    if (sent)
        command_failed(self, &sending);
    return code ? code : (int)sent;
}

static int prepare_and_push(const struct command *self, struct push_arguments *a)
{
    struct gate_error err;
    struct spool spool;
    enum gate_status status = remote_resolve(&a->choice, &a->remote, &err);
    if (!status)
        status = spool_open(a->remote.url, &spool, &err);
    return status ? command_failed(self, &err) : push(self, a, &spool);
}

int cmd_push(int argc, char **argv)
{
    struct push_arguments a = {.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES, .patience_s = 60};
    int exit_code;
    if (!options_read(&command_push, &a, INT_MAX, argc, argv, NULL, &exit_code))
        return exit_code;
    a.runs = argv + optind;
    a.n_runs = argc - optind;
    if (a.all && a.n_runs)
        return command_usage(&command_push, "--all and '%s' cannot be combined", a.runs[0]);
    return prepare_and_push(&command_push, &a);
}
