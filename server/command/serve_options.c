/* SPDX-License-Identifier: Apache-2.0 */
/* serve_options.c: see serve_options.h. */
#include "server/command/serve_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "server/command/options.h"

#define DEFAULT_LISTEN "127.0.0.1:8731"

static enum gate_status read_level(const char *text, void *out, struct gate_error *err)
{
    static const char *const names[] = {"error", "warning", "info", "request"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, names[i])) {
            *(enum log_level *)out = (enum log_level)i;
            return GATE_OK;
        }
    }
    return gate_fail(err, GATE_USAGE, "--log is '%s', and must be error, warning, info or request",
                     text);
}

static bool is_web(const char *text)
{
    return (!strncmp(text, "https://", 8) || !strncmp(text, "http://", 7)) && strlen(text) <= 1000;
}

/* It becomes a link of the page. */
static enum gate_status read_commit_url(const char *text, void *out, struct gate_error *err)
{
    const char *at = strstr(text, "%s");
    *(const char **)out = text;
    if (is_web(text) && at && !strstr(at + 1, "%s"))
        return GATE_OK;
    return gate_fail(
        err, GATE_USAGE,
        "--commit-url is '%.200s', and must be an https:// address with one %%s, where "
        "the commit stands",
        text);
}

static enum gate_status read_public_url(const char *text, void *out, struct gate_error *err)
{
    *(const char **)out = text;
    if (is_web(text) && !strpbrk(text, "?# "))
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "--public-url is '%.200s', and must be an https:// address without ? and #",
                     text);
}

static enum gate_status read_keep_samples(const char *text, void *out, struct gate_error *err)
{
    return options_duration("--keep-samples", text, out, err);
}

enum kind { TEXT, FLAG, NUMBER, READ };

#define AT(member) offsetof(struct serve_options, member)
static const struct {
    const char *name;
    enum kind kind;
    size_t at;
    int64_t most; /* of a number, from 1 */
    enum gate_status (*read)(const char *text, void *out, struct gate_error *err);
} rows[] = {
    {"db", TEXT, AT(http.db), 0, NULL},
    {"listen", TEXT, AT(listen), 0, NULL},
    {"artifacts", TEXT, AT(http.artifacts), 0, NULL},
    {"private", FLAG, AT(http.private_reads), 0, NULL},
    {"allow-host", TEXT, AT(http.allow_hosts), 0, NULL},
    {"tls-cert", TEXT, AT(http.tls_cert), 0, NULL},
    {"tls-key", TEXT, AT(http.tls_key), 0, NULL},
    {"keep-samples", READ, AT(http.keep_samples_ms), 0, read_keep_samples},
    {"main-branch", TEXT, AT(http.main_branch), 0, NULL},
    {"commit-url", READ, AT(http.commit_url), 0, read_commit_url},
    {"public-url", READ, AT(http.public_url), 0, read_public_url},
    {"webhook", TEXT, AT(http.webhook), 0, NULL},
    {"webhook-secret-file", TEXT, AT(http.webhook_secret), 0, NULL},
    {"max-connections", NUMBER, AT(http.max_connections), HTTP_MAX_CONNECTIONS, NULL},
    {"max-per-address", NUMBER, AT(http.max_per_address), HTTP_MAX_CONNECTIONS, NULL},
    {"timeout", NUMBER, AT(http.timeout_s), 3600, NULL},
    {"log", READ, AT(log), 0, read_level},
    {"log-json", FLAG, AT(log_json), 0, NULL},
    {"web-root", TEXT, AT(http.web_root), 0, NULL},
};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))
#define FIRST 1000 /* above all letters */

static enum gate_status read_option(void *context, int letter, const char *value,
                                    struct gate_error *err)
{
    int i = letter - FIRST;
    void *out = (char *)context + rows[i].at;
    char name[40];
    switch (rows[i].kind) {
    case TEXT:
        *(const char **)out = value;
        return GATE_OK;
    case FLAG:
        *(bool *)out = true;
        return GATE_OK;
    case NUMBER:
        snprintf(name, sizeof name, "--%s", rows[i].name);
        return options_number(name, value, 1, rows[i].most, out, err);
    default:
        return rows[i].read(value, out, err);
    }
}

static enum gate_status check(struct serve_options *a, struct gate_error *err)
{
    if (!a->http.db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    if (!a->http.tls_cert != !a->http.tls_key)
        return gate_fail(err, GATE_USAGE, "--tls-cert and --tls-key belong together");
    if (!a->http.webhook != !a->http.webhook_secret)
        return gate_fail(err, GATE_USAGE, "--webhook and --webhook-secret-file belong together");
    if (!a->http.artifacts) {
        size_t n = (size_t)snprintf(a->artifacts, sizeof a->artifacts, "%s-artifacts", a->http.db);
        if (n >= sizeof a->artifacts)
            return gate_fail(err, GATE_USAGE, "the path of --db is too long");
        a->http.artifacts = a->artifacts;
    }
    return GATE_OK;
}

enum gate_status serve_options_parse(int argc, char **argv, const char *usage,
                                     struct serve_options *out, bool *done, struct gate_error *err)
{
    *out = (struct serve_options){
        .listen = DEFAULT_LISTEN,
        .log = LOG_LEVEL_INFO,
        .http = {.listen_fd = -1,
                 .main_branch = "main",
                 .max_connections = HTTP_MAX_CONNECTIONS,
                 .max_per_address = 64,
                 .timeout_s = 15},
    };
    struct option options[N_ROWS + 2] = {{"help", no_argument, NULL, 'h'}};
    for (int i = 0; i < N_ROWS; i++)
        options[i + 1] = (struct option){
            rows[i].name, rows[i].kind == FLAG ? no_argument : required_argument, NULL, FIRST + i};
    enum gate_status status =
        options_parse(argc, argv, options, usage, read_option, out, NULL, 0, done, err);
    return !status && !*done ? check(out, err) : status;
}
