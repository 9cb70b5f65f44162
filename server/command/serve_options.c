/* SPDX-License-Identifier: Apache-2.0 */
/* serve_options.c: see serve_options.h. */
#include "server/command/serve_options.h"

#include <stdio.h>
#include <string.h>

#include "server/command/options.h"

#define DEFAULT_LISTEN "127.0.0.1:8731"

static const struct option options[] = {
    {"db", required_argument, NULL, 'd'},
    {"listen", required_argument, NULL, 'l'},
    {"artifacts", required_argument, NULL, 'a'},
    {"private", no_argument, NULL, 'p'},
    {"allow-host", required_argument, NULL, 'x'},
    {"tls-cert", required_argument, NULL, 'c'},
    {"tls-key", required_argument, NULL, 'k'},
    {"keep-samples", required_argument, NULL, 'e'},
    {"main-branch", required_argument, NULL, 'b'},
    {"commit-url", required_argument, NULL, 'f'},
    {"public-url", required_argument, NULL, 'i'},
    {"webhook", required_argument, NULL, 'u'},
    {"webhook-secret-file", required_argument, NULL, 's'},
    {"max-connections", required_argument, NULL, 'm'},
    {"max-per-address", required_argument, NULL, 'n'},
    {"timeout", required_argument, NULL, 't'},
    {"log", required_argument, NULL, 'g'},
    {"log-json", no_argument, NULL, 'j'},
    {"web-root", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static enum gate_status read_level(const char *text, enum log_level *out, struct gate_error *err)
{
    static const char *const names[] = {"error", "warning", "info", "request"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, names[i])) {
            *out = (enum log_level)i;
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
static enum gate_status read_commit_url(const char *text, const char **out, struct gate_error *err)
{
    const char *at = strstr(text, "%s");
    *out = text;
    if (is_web(text) && at && !strstr(at + 1, "%s"))
        return GATE_OK;
    return gate_fail(
        err, GATE_USAGE,
        "--commit-url is '%.200s', and must be an https:// address with one %%s, where "
        "the commit stands",
        text);
}

static enum gate_status read_public_url(const char *text, const char **out, struct gate_error *err)
{
    *out = text;
    if (is_web(text) && !strpbrk(text, "?# "))
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "--public-url is '%.200s', and must be an https:// address without ? and #",
                     text);
}

static enum gate_status read_option(void *context, int letter, const char *value,
                                    struct gate_error *err)
{
    struct serve_options *a = context;
    struct http_options *h = &a->http;
    switch (letter) {
    case 'd':
        h->db = value;
        return GATE_OK;
    case 'l':
        a->listen = value;
        return GATE_OK;
    case 'a':
        h->artifacts = value;
        return GATE_OK;
    case 'p':
        h->private_reads = true;
        return GATE_OK;
    case 'x':
        h->allow_hosts = value;
        return GATE_OK;
    case 'c':
        h->tls_cert = value;
        return GATE_OK;
    case 'k':
        h->tls_key = value;
        return GATE_OK;
    case 'b':
        h->main_branch = value;
        return GATE_OK;
    case 'f':
        return read_commit_url(value, &h->commit_url, err);
    case 'i':
        return read_public_url(value, &h->public_url, err);
    case 'u':
        h->webhook = value;
        return GATE_OK;
    case 's':
        h->webhook_secret = value;
        return GATE_OK;
    case 'm':
        return options_number("--max-connections", value, 1, HTTP_MAX_CONNECTIONS,
                              &h->max_connections, err);
    case 'n':
        return options_number("--max-per-address", value, 1, HTTP_MAX_CONNECTIONS,
                              &h->max_per_address, err);
    case 't':
        return options_number("--timeout", value, 1, 3600, &h->timeout_s, err);
    case 'e':
        return options_duration("--keep-samples", value, &h->keep_samples_ms, err);
    case 'g':
        return read_level(value, &a->log, err);
    case 'j':
        a->log_json = true;
        return GATE_OK;
    default:
        h->web_root = value;
        return GATE_OK;
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
    enum gate_status status =
        options_parse(argc, argv, options, usage, read_option, out, NULL, 0, done, err);
    return !status && !*done ? check(out, err) : status;
}
