/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c: gate-server check: is the database sound, and is the server set up with care? */
#include "server/command/server_commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/artifacts.h"
#include "server/request/auth.h"
#include "gate/base/clock.h"
#include "gate/store/store.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define UNUSED_DAYS 90
#define MIN_FREE_BYTES ((int64_t)256 << 20)
#define OTHER_FILES 64 /* descriptors that are no connections */

enum finding { FAULT, WARNING, FINDINGS };

struct readiness {
    const struct serve_options *options;
    int64_t now_ms;
    int n[FINDINGS];
    int n_writers; /* tokens that let runs in */
};

__attribute__((format(printf, 3, 4))) static void found(struct readiness *c, enum finding kind,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-8s ", kind == FAULT ? "fault" : "warning");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    c->n[kind]++;
}

/* ---- files ---- */

/* `secret`: that others may read it is a fault. */
static void check_mode(struct readiness *c, const char *path, bool secret)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return;
    if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
        found(c, FAULT, "%s: everybody may write it (mode %04o)", path, st.st_mode & 07777u);
    else if (secret && st.st_mode & (S_IRGRP | S_IROTH))
        found(c, FAULT, "%s: others than its owner may read it (mode %04o)", path,
              st.st_mode & 07777u);
    else if (st.st_mode & S_IROTH && !S_ISDIR(st.st_mode))
        found(c, WARNING, "%s: everybody may read it, with its tokens and runs (mode %04o)", path,
              st.st_mode & 07777u);
}

static void on_artifact_fault(void *context, const char *name, const char *what)
{
    found(context, FAULT, "artifact %s %s", name, what);
}

static enum gate_status check_artifacts(struct readiness *c, struct gate_error *err)
{
    struct artifacts *artifacts;
    uint64_t n_files = 0;
    struct stat st = {0};
    enum gate_status status = artifacts_open(c->options->http.artifacts, &artifacts, err);
    if (status)
        return status;
    stat(c->options->http.db, &st);
    int64_t free_bytes = artifacts_free_bytes(artifacts);
    if (free_bytes < MIN_FREE_BYTES)
        found(c, FAULT, "disk: %lld MiB are free, and below 256 a server is not ready",
              (long long)(free_bytes >> 20));
    else if (free_bytes < (int64_t)st.st_size)
        found(c, WARNING,
              "disk: the free space is smaller than the database, so a backup does not fit");
    status = artifacts_check(artifacts, on_artifact_fault, c, &n_files, err);
    printf("%-8s %llu artifacts read\n", "note", (unsigned long long)n_files);
    artifacts_close(artifacts);
    return status;
}

/* ---- tokens ---- */

static bool check_token(void *context, const struct store_token *t)
{
    struct readiness *c = context;
    bool valid = t->revoked_ms == 0 && (t->expires_ms == 0 || t->expires_ms > c->now_ms);
    if (!valid)
        return true;
    c->n_writers += (t->scopes & (TOKEN_INGEST | TOKEN_ADMIN)) != 0;
    if (t->scopes & TOKEN_ADMIN && t->expires_ms == 0)
        found(c, WARNING, "token %s (%s): may do all, for ever", t->id, t->name);
    int64_t seen_ms = t->last_used_ms > t->created_ms ? t->last_used_ms : t->created_ms;
    if (c->now_ms - seen_ms > UNUSED_DAYS * DAY_MS)
        found(c, WARNING, "token %s (%s): was not used for %lld days: revoke it?", t->id, t->name,
              (long long)((c->now_ms - seen_ms) / DAY_MS));
    return true;
}

/* ---- the database ---- */

static void on_store_fault(void *context, const char *text)
{
    found(context, FAULT, "database: %s", text);
}

static enum gate_status check_store(struct readiness *c, struct gate_error *err)
{
    struct store *store;
    struct store_run newest, of_main;
    int n_faults;
    enum gate_status status = store_open(c->options->http.db, STORE_READ_ONLY, &store, err);
    if (status)
        return status;
    status = store_check(store, on_store_fault, c, &n_faults, err);
    if (!status)
        status = store_tokens(store, check_token, c, err);
    if (!status && c->n_writers == 0)
        found(c, WARNING, "tokens: none has the scope ingest, so no run can arrive");
    if (!status)
        status = store_newest_run(store, NULL, NULL, &newest, err);
    if (!status)
        status = store_newest_run(store, c->options->http.main_branch, NULL, &of_main, err);
    if (!status && newest.uuid[0] && !of_main.uuid[0])
        found(c, WARNING,
              "alerts: no run is of the main branch '%.200s', so none raises an alert: set "
              "--main-branch",
              c->options->http.main_branch);
    store_close(store);
    return status;
}

/* ---- settings ---- */

static void check_settings(struct readiness *c)
{
    const struct http_options *h = &c->options->http;
    struct rlimit files;
    bool loopback =
        !strncmp(c->options->listen, "127.", 4) || !strncmp(c->options->listen, "[::1]:", 6);
    if (!loopback && !h->tls_cert)
        found(c, WARNING,
              "listen: %s without TLS: tokens can be read on the way unless a proxy has it",
              c->options->listen);
    if (!loopback && !h->private_reads)
        found(c, WARNING,
              "listen: %s without --private: everybody who can connect may read the history",
              c->options->listen);
    if (h->tls_key)
        check_mode(c, h->tls_key, true);
    if (h->webhook_secret)
        check_mode(c, h->webhook_secret, true);
    if (h->webhook && strncmp(h->webhook, "https://", 8) != 0)
        found(c, WARNING, "webhook: %.*s is not HTTPS: its messages can be read in transit",
              (int)strcspn(h->webhook, "?"), h->webhook);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY &&
        (int64_t)files.rlim_max < h->max_connections + OTHER_FILES)
        found(c, WARNING, "files: this process may open %llu, too few for %lld connections",
              (unsigned long long)files.rlim_max, (long long)h->max_connections);
}

static int check(struct command_call *call, struct gate_error *err)
{
    struct serve_options *options = call->arguments;
    struct readiness c = {.options = options, .now_ms = clock_wall_ms()};
    char folder[4096] = ".";
    TRY(serve_options_check(options, err));
    const char *slash = strrchr(options->http.db, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - options->http.db) + 1,
                 options->http.db);
    check_mode(&c, options->http.db, false);
    check_mode(&c, folder, false);
    check_settings(&c);
    TRY(check_store(&c, err));
    TRY(check_artifacts(&c, err));
    printf("%d faults, %d warnings\n", c.n[FAULT], c.n[WARNING]);
    return c.n[FAULT] ? gate_fail(err, GATE_IO, "'%s' has faults: see above", options->http.db)
                      : GATE_OK;
}

#define ARGUMENTS struct serve_options

const struct command command_check = {
    .name = "gate-server check",
    .operands = "--db FILE",
    .summary = "look for damage and for careless settings",
    .about = "Reads the database and all artifacts, and checks the settings of a server with these "
             "options. A server may be running. Prints one line for each finding: a 'fault' is "
             "damage or a security hole, a 'warning' something to know.\n",
    .groups = {{serve_options, 0}},
    .ending = "Exit codes: 0 no fault, 64 usage, 70 internal, 74 faults, or a database that cannot "
              "be opened.\n",
    DEFAULTS(SERVE_DEFAULTS),
    .main = check,
};
