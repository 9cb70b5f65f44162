/* SPDX-License-Identifier: Apache-2.0 */
/* serve_options.c: the options of a server; see server_commands.h. */
#include "server/command/server_commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_level(void *field, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "request"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(text, names[i])) {
            *(enum log_level *)field = (enum log_level)i;
            return true;
        }
    return false;
}

static bool is_web(const char *text)
{
    return (!strncmp(text, "https://", 8) || !strncmp(text, "http://", 7)) && strlen(text) <= 1000;
}

/* It becomes a link of the page. */
static bool read_commit_url(void *field, const char *text)
{
    const char *at = strstr(text, "%s");
    *(const char **)field = text;
    return is_web(text) && at && !strstr(at + 1, "%s");
}

static bool read_public_url(void *field, const char *text)
{
    *(const char **)field = text;
    return is_web(text) && !strpbrk(text, "?# ");
}

bool read_duration(void *ms, const char *text)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (*text >= '0' && *text <= '9' && errno == 0 && value >= 1 && value <= 1000000 &&
            end[0] == units[i].unit && end[1] == '\0') {
            *(int64_t *)ms = value * units[i].ms;
            return true;
        }
    return false;
}

#define ARGUMENTS struct serve_options

const struct option_def serve_options[] = {
    OPTION(TEXT, "db", "FILE", http.db, "the database"),
    OPTION(TEXT, "listen", "ADDR:PORT", listen, "address to listen on; port 0 picks a free one",
           .fallback = "127.0.0.1:8731"),
    OPTION(TEXT, "artifacts", "DIR", http.artifacts, "folder of the artifacts",
           .fallback = "FILE-artifacts"),
    FLAG("private", http.private_reads,
         "require a token for reading too; writing always needs one"),
    OPTION(TEXT, "allow-host", "NAME,...", http.allow_hosts,
           "accept requests for these host names only",
           .fallback = "all, but on a loopback address only localhost and numeric hosts"),
    OPTION(TEXT, "tls-cert", "FILE", http.tls_cert,
           "serve HTTPS with this certificate (PEM, with its chain)"),
    OPTION(TEXT, "tls-key", "FILE", http.tls_key, "and its key"),
    OPTION(INTEGER, "max-connections", "N", http.max_connections, "connections at a time",
           .least = 1, .most = HTTP_MAX_CONNECTIONS, .fallback = "1024, and no more"),
    OPTION(INTEGER, "max-per-address", "N", http.max_per_address,
           "connections at a time from one address", .least = 1, .most = HTTP_MAX_CONNECTIONS,
           .fallback = "64"),
    OPTION(INTEGER, "timeout", "SECONDS", http.timeout_s,
           "drop a client that is silent for this time, or that takes more than twice as long for "
           "its headers, four times for its body",
           .least = 1, .most = 3600, .fallback = "15"),
    OPTION(READ, "keep-samples", "TIME", http.keep_samples_ms,
           "drop the raw samples of runs that are older, such as 90d", .read = read_duration,
           .form = DURATION_FORM, .fallback = "keep them"),
    OPTION(TEXT, "main-branch", "NAME", http.main_branch,
           "the branch that raises alerts, has badges, and is shown first on the page",
           .fallback = "main"),
    OPTION(READ, "commit-url", "URL", http.commit_url,
           "address of a commit on the forge, with %s for the commit, such as "
           "https://github.com/OWNER/NAME/commit/%s: the page links to it",
           .read = read_commit_url,
           .form = "an https:// address with one %s, where the commit stands"),
    OPTION(READ, "public-url", "URL", http.public_url,
           "address of this server for its readers: links of the feed begin with it",
           .read = read_public_url, .form = "an https:// address without ? and #"),
    OPTION(TEXT, "webhook", "URL", http.webhook,
           "send alerts there, as signed POSTs (server/watch/webhook.h)"),
    OPTION(TEXT, "webhook-secret-file", "FILE", http.webhook_secret,
           "the secret for the signature"),
    OPTION(READ, "log", "error|warning|info|request", log, "what is logged, one line for each",
           .read = read_level, .fallback = "info"),
    FLAG("log-json", log_json, "write the log as JSON"),
    OPTION(TEXT, "web-root", "DIR", http.web_root,
           "take the page's files from DIR instead of the built-in ones"),
    {0},
};

enum gate_status serve_options_check(struct serve_options *a, struct gate_error *err)
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
