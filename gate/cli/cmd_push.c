/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_push.c: gate push. */
#include "gate/cli/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/term.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/baseline.h"
#include "gate/tracker/tracker.h"
#include "gate/report/report_run.h"

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
    FLAG("all", all, "send every run of the database that was not sent to this server yet"),
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
        "The database keeps what was sent to which server, and what is still to be sent: the next "
        "push to the same server sends what is left. A run that the server refuses for good is "
        "not sent again. A run that is named is always sent.\n"
        "\n"
        "Exit codes: 0 everything was sent, 4 the server is not the intended one,"
        " 64 usage, 70 internal, 74 something was not sent.\n",
    .main = cmd_push,
};

/* ---- into the outbox ---- */

struct enqueue {
    const struct push_arguments *arguments;
    struct store *store;
    struct document document; /* of the run at hand */
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

static enum gate_status put(struct enqueue *q, enum store_outbox_kind kind, const char *id,
                            int64_t time_ms)
{
    return store_outbox_put(q->store, q->arguments->remote.url, kind, id, time_ms, q->err);
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
    return put(q, OUTBOX_LIBRARY, sha256, d->time_ms);
}

static bool take_document(void *context, const char *text, size_t len)
{
    struct enqueue *q = context;
    q->status = document_parse("stored run", 1, text, len, GATE_IO, &q->document, q->err);
    return true;
}

static enum gate_status put_run(struct enqueue *q, const char *run)
{
    q->document = (struct document){0};
    q->status = GATE_OK;
    enum gate_status status = store_document(q->store, run, take_document, q, q->err);
    if (!status)
        status = q->status;
    if (!status)
        status = put(q, OUTBOX_RUN, q->document.uuid, q->document.time_ms);
    if (!status)
        status = put_library(q, &q->document);
    document_release(&q->document);
    return status;
}

static enum gate_status put_wanted(struct enqueue *q)
{
    static char latest[] = "latest", *newest_run[] = {latest};
    const struct push_arguments *a = q->arguments;
    char **runs = a->n_runs ? a->runs : newest_run, newest[64], sha256[65];
    int n = a->n_runs ? a->n_runs : !a->all;
    if (a->all) {
        struct store_outbox_entry *list;
        size_t n_unknown;
        TRY(store_outbox_read(q->store, a->remote.url, OUTBOX_UNKNOWN, &list, &n_unknown, q->err));
        enum gate_status status = GATE_OK;
        for (size_t i = 0; i < n_unknown && !status; i++)
            status = put_run(q, list[i].id);
        free(list);
        TRY(status);
    }
    for (int i = 0; i < n; i++) {
        bool is_latest = !strcmp(runs[i], latest);
        if (is_latest)
            TRY(command_newest_run(q->store, NULL, newest, q->err));
        TRY(put_run(q, is_latest ? newest : runs[i]));
    }
    if (!a->library)
        return GATE_OK;
    TRY(artifact_put(a->library, sha256, q->err));
    return put(q, OUTBOX_LIBRARY, sha256, clock_wall_ms());
}

/* All that was asked for, with one commit. What comes before a failure waits. */
static enum gate_status fill_outbox(struct enqueue *q)
{
    struct gate_error err;
    TRY(store_batch_begin(q->store, q->err));
    enum gate_status status = put_wanted(q), kept = store_batch_commit(q->store, &err);
    return status ? status : kept ? gate_fail(q->err, kept, "%s", err.message) : GATE_OK;
}

/* ---- the command ---- */

/* With the address of the run, for readers of the job's log. */
static int print_counts(const struct push_counts *c, const struct push_arguments *a)
{
    struct buf page;
    buf_init(&page, 4 * REMOTE_URL_MAX);
    if (c->newest[0])
        report_link_run(a->remote.url, c->newest, &page);
    const char *address = page.len ? page.data : "";
    size_t runs = c->left[OUTBOX_RUN], libraries = c->left[OUTBOX_LIBRARY];
    int n =
        a->json
            ? printf("{\"created\": %zu, \"existed\": %zu, \"libraries\": %zu, \"refused\": "
                     "%zu, \"left\": %zu, \"page\": \"%s\"}\n",
                     c->n_created, c->n_existed, c->n_libraries, c->n_refused, runs + libraries,
                     address)
            : printf("runs: %zu sent, %zu already there; libraries there: %zu; refused for good: "
                     "%zu; waiting in '%s': %zu run%s, %zu librar%s\n"
                     "%s%s%s",
                     c->n_created, c->n_existed, c->n_libraries, c->n_refused, a->db, runs,
                     runs == 1 ? "" : "s", libraries, libraries == 1 ? "y" : "ies",
                     address[0] ? "the run: " : "", address, address[0] ? "\n" : "");
    buf_release(&page);
    return n < 0 || fflush(stdout) == EOF ? GATE_IO : GATE_OK;
}

/* What cannot be added does not keep the rest from being sent. */
static int push(const struct push_arguments *a, struct store *store)
{
    struct gate_error filling = {0}, sending = {0}, absence = {0};
    struct enqueue q = {.arguments = a, .store = store, .err = &filling};
    struct push_counts counts;
    char version[32];
    enum gate_status absent =
        a->remote.token[0]
            ? http_client_version(version, &absence)
            : gate_fail(&absence, GATE_USAGE,
                        "no token: use --token-file FILE, or set GATE_TOKEN to the token that "
                        "`gate-server token create` printed");
    enum gate_status filled = fill_outbox(&q);
    enum gate_status sent = push_waiting(absent ? NULL : &a->remote, store, a->remote.url,
                                         (double)a->patience_s, print_line, &counts, &sending);
    int code = print_counts(&counts, a);
    if (filled)
        code = command_failed(&command_push, &filling);
    if (sent)
        command_failed(&command_push, &sending);
    if (absent)
        command_failed(&command_push, &absence);
    return code ? code : absent ? (int)absent : (int)sent;
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
    struct gate_error err;
    struct store *store = NULL;
    enum gate_status status = remote_resolve(&a.choice, &a.remote, &err);
    if (!status)
        status = store_open(a.db, STORE_UPDATE, &store, &err);
    if (status)
        return command_failed(&command_push, &err);
    exit_code = push(&a, store);
    store_close(store);
    return exit_code;
}
