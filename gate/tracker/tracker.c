/* SPDX-License-Identifier: Apache-2.0 */
/* tracker.c: the address of a server, its token, and requests by curl; see tracker.h. */
#include "gate/tracker/tracker.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/paths.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"
#include "version.h"

#define TRIES_OF_A_500 3
#define CONNECT_TIMEOUT_S 10
#define SILENCE_S 30 /* no byte in either direction for so long ends a request */
#define POLL_S 0.25  /* between two looks at the size of the answer */
#define GRACE_S 5.0  /* beyond its own time limit */
#define CONFIG_MAX ((size_t)64 << 10)
#define LINES_MAX ((size_t)64 << 10)

#define TOKEN_FILE_MAX 4096
#define TOKEN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

/* Exit codes of curl(1). */
enum { CURL_PEER_FAILED = 60, CURL_FILE_SIZE = 63, CURL_BAD_CA = 77, CURL_BAD_CERT = 58 };

/* `option`, else what the variable says, else NULL. */
static const char *choose(const char *option, const char *variable)
{
    return option ? option : environment_get(variable);
}

bool remote_is_named(const struct remote_choice *choice)
{
    return choose(choice->server, "GATE_SERVER") != NULL;
}

/* ---- the address ---- */

enum gate_status remote_take_url(const char *text, struct remote *out, struct gate_error *err)
{
    static const char address[] =
        "^https?://([a-z0-9.-]+|\\[[0-9a-f:.]+])(:[0-9]{1,5})?(/[a-zA-Z0-9_.~/-]*)?$";
    /* What curl never asks a resolver for. */
    static const char loopback[] =
        "^http://(localhost|\\[::1]|127[.][0-9]+[.][0-9]+[.][0-9]+)([:/]|$)";
    regmatch_t at[4];
    size_t len = strlen(text);
    *out = (struct remote){0};
    bool good = len <= REMOTE_URL_MAX && text_matches(address, text, at, 4);
    long port = good && at[2].rm_so >= 0 ? strtol(text + at[2].rm_so + 1, NULL, 10) : 1;
    const char *path = good && at[3].rm_so >= 0 ? text + at[3].rm_so : "";
    if (!good || port < 1 || port > 65535 || strstr(path, "//") || strstr(path, ".."))
        return gate_fail(err, GATE_USAGE,
                         "'%.100s' is not the address of a server: https://HOST[:PORT][/PATH] in "
                         "lower case, at most %d characters",
                         text, REMOTE_URL_MAX);
    while (text[len - 1] == '/')
        len--;
    snprintf(out->url, sizeof out->url, "%.*s", (int)len, text);
    out->loopback = text_matches(loopback, text, NULL, 0);
    return GATE_OK;
}

/* ---- the token ---- */

/* What the token is, no message says: logs of CI are read by many. */
static enum gate_status take_token(const char *text, size_t len, const char *from,
                                   struct remote *out, struct gate_error *err)
{
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    if (!len || len > REMOTE_TOKEN_MAX || strspn(text, TOKEN_CHARACTERS) < len)
        return gate_fail(err, GATE_USAGE,
                         "%s holds no token, which is one word of letters, digits, _, - and .",
                         from);
    memcpy(out->token, text, len);
    out->token[len] = '\0';
    return GATE_OK;
}

enum gate_status remote_take(const char *url, const struct remote_choice *choice,
                             const char *const *variables, struct remote *out,
                             struct gate_error *err)
{
    const char *ca_file = choose(choice->ca_file, "GATE_CA_FILE");
    TRY(remote_take_url(url, out, err));
    if (choice->token_file) {
        RELEASED_BY(buf_release) struct buf text = buf_of(TOKEN_FILE_MAX);
        struct stat st;
        char from[300];
        snprintf(from, sizeof from, "the token file '%.200s'", choice->token_file);
        if (file_read(choice->token_file, &text, err))
            return gate_fail_context(err, "the token");
        TRY(take_token(text.data, text.len, from, out, err));
        if (!stat(choice->token_file, &st) && S_ISREG(st.st_mode) &&
            st.st_mode & (S_IRGRP | S_IROTH))
            fprintf(stderr,
                    "gate: warning: others on this machine can read the token file (mode %03o): "
                    "chmod 600 '%s'\n",
                    (unsigned)st.st_mode & 0777, choice->token_file);
    }
    for (; !choice->token_file && !out->token[0] && *variables; variables++) {
        const char *token = getenv(*variables);
        char from[80];
        snprintf(from, sizeof from, "$%s", *variables);
        if (token && token[0])
            TRY(take_token(token, strlen(token), from, out, err));
    }
    if (out->token[0] && !out->loopback && strncmp(out->url, "https:", 6) != 0)
        return gate_fail(err, GATE_USAGE,
                         "the token would go to %s in the clear: use https, or a tunnel "
                         "(ssh -L 8731:127.0.0.1:8731 HOST) and http://127.0.0.1:8731",
                         out->url);
    if (ca_file && strpbrk(ca_file, "\r\n"))
        return gate_fail(err, GATE_USAGE,
                         "the path of the file of certificates has a line break: give the file "
                         "another name, and say it with --ca-file or $GATE_CA_FILE");
    if (ca_file && snprintf(out->ca_file, sizeof out->ca_file, "%s", ca_file) >= PATHS_MAX)
        return gate_fail(err, GATE_USAGE, "the path of the certificates is too long");
    return GATE_OK;
}

enum gate_status remote_resolve(const struct remote_choice *choice, struct remote *out,
                                struct gate_error *err)
{
    static const char *const variables[] = {"GATE_TOKEN", NULL};
    struct remote_choice c = *choice;
    const char *server = choose(choice->server, "GATE_SERVER");
    if (!server)
        return gate_fail(err, GATE_USAGE,
                         "no server is named: give --server URL or set GATE_SERVER");
    if (!c.token_file && !environment_get("GATE_TOKEN"))
        c.token_file = environment_get("GATE_TOKEN_FILE");
    return remote_take(server, &c, variables, out, err);
}

/* ---- the program ---- */

enum gate_status http_client_version(char version[32], struct gate_error *err)
{
    char *argv[] = {(char *)"curl", (char *)"--version", NULL};
    struct process p = {0};
    int major = 0, minor = 0;
    version[0] = '\0';
    if (!process_start(&p, argv, NULL)) {
        RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
        if (process_read_line(&p, CONNECT_TIMEOUT_S, &line) == PROCESS_LINE && line.len)
            sscanf(line.data, "curl %31[0-9.]", version);
        process_kill(&p, NULL, 0);
    }
    if (!version[0])
        return gate_fail(
            err, GATE_IO,
            "the program 'curl' is missing on this machine, and is needed to reach a server: "
            "install it (apt-get install curl), or carry the JSON report of the run to a "
            "machine that has it, 'gate import' it there and push");
    if (sscanf(version, "%d.%d", &major, &minor) != 2 || major < 7 ||
        (major == 7 && minor < 84)) /* which brought %header{} in --write-out */
        return gate_fail(err, GATE_IO,
                         "the curl of this machine is version %s: 7.84 or later is needed",
                         version);
    return GATE_OK;
}

/* ---- one request ---- */

/* NAME = "VALUE" in the file of options that curl reads from its standard input: there no other
 * user of the machine sees the token. */
static void put_option(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s = \"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *value);
    }
    buf_puts(out, "\"\n");
}

static void put_options(const struct remote *remote, const struct http_request *r, int body,
                        int answer, size_t answer_max, struct buf *out)
{
    char text[REMOTE_URL_MAX + REMOTE_TOKEN_MAX + 1100];
    bool https = !strncmp(remote->url, "https:", 6);
    snprintf(text, sizeof text, "%s%s", remote->url, r->path);
    put_option(out, "url", text);
    put_option(out, "proto", https ? "=https" : "=http");
    put_option(out, "user-agent", "gate/" GATE_VERSION);
    put_option(out, "header", "Expect:");
    if (remote->token[0]) {
        snprintf(text, sizeof text, "Authorization: Bearer %s", remote->token);
        put_option(out, "header", text);
    }
    if (r->gzipped)
        put_option(out, "header", "Content-Encoding: gzip");
    for (size_t i = 0; r->headers && r->headers[i]; i++)
        put_option(out, "header", r->headers[i]);
    if (r->type) {
        snprintf(text, sizeof text, "Content-Type: %s", r->type);
        put_option(out, "header", text);
        snprintf(text, sizeof text, "@/proc/%d/fd/%d", (int)getpid(), body);
        put_option(out, "data-binary", text);
    }
    if (!strcmp(r->method, "HEAD"))
        buf_puts(out, "head\n");
    else
        put_option(out, "request", r->method);
    buf_printf(out,
               "silent\nshow-error\ngloboff\npath-as-is\ntlsv1.2\nconnect-timeout = %d\n"
               "speed-limit = 1\nspeed-time = %d\nmax-time = %ld\nmax-filesize = %zu\n",
               CONNECT_TIMEOUT_S, SILENCE_S, r->timeout_s, answer_max);
    if (https && remote->ca_file[0])
        put_option(out, "cacert", remote->ca_file);
    if (remote->loopback)
        put_option(out, "noproxy", "*"); /* whatever $http_proxy says */
    snprintf(text, sizeof text, "/proc/%d/fd/%d", (int)getpid(), answer);
    put_option(out, "output", text);
    buf_puts(out,
             "write-out = \"%{http_code}\\n%header{retry-after}\\n%header{content-length}\\n\"\n");
}

/* The size of the answer so far; a server that sends without end is not waited for. */
static bool is_too_long(int answer, size_t max)
{
    struct stat st;
    return !fstat(answer, &st) && (uintmax_t)st.st_size > max;
}

/* The three lines of write-out. curl's exit code, -1 if it was ended here or by a signal. */
static int run_curl(struct process *p, const struct buf *options, int answer, size_t answer_max,
                    long lines[3])
{
    enum process_event event = PROCESS_SILENCE;
    size_t n = 0;
    bool fed = process_write(p, options->data, options->len);
    close(p->to);
    p->to = -1;
    RELEASED_BY(buf_release) struct buf line = buf_of(LINES_MAX);
    while (fed && (event == PROCESS_SILENCE || event == PROCESS_LINE) &&
           !is_too_long(answer, answer_max)) {
        buf_clear(&line);
        event = process_read_line(p, POLL_S, &line);
        if (event == PROCESS_LINE && n < 3)
            lines[n++] =
                line.len && isdigit((unsigned char)line.data[0]) ? strtol(line.data, NULL, 10) : -1;
    }
    return event == PROCESS_END ? process_finish(p, GRACE_S) : process_kill(p, NULL, 0);
}

static bool write_all(int file, const char *bytes, size_t n)
{
    for (ssize_t written; n; bytes += written, n -= (size_t)written)
        if ((written = write(file, bytes, n)) <= 0)
            return false;
    return true;
}

static enum gate_status ask_once(const struct remote *remote, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err)
{
    char *argv[] = {(char *)"curl", (char *)"--disable", (char *)"--config", (char *)"-", NULL};
    struct process p = {0};
    long lines[3] = {0, -1, -1}; /* status, Retry-After, Content-Length */
    size_t max = answer->body.max;
    int body = memfd_create("request", MFD_CLOEXEC), file = memfd_create("answer", MFD_CLOEXEC);
    enum gate_status status = GATE_OK;
    buf_clear(&answer->body);
    answer->status = 0;
    answer->retry_after = 0;
    RELEASED_BY(buf_release) struct buf options = buf_of(CONFIG_MAX);
    if (body < 0 || file < 0 || !write_all(body, request->body, request->len))
        status = gate_fail(err, GATE_IO, "cannot keep a request in memory: %s", strerror(errno));
    else
        put_options(remote, request, body, file, max, &options);
    if (!status)
        status = process_start(&p, argv, err);
    if (!status) {
        int code = run_curl(&p, &options, file, max, lines);
        const char *words = process_last_words(&p);
        answer->status = (int)lines[0]; /* also of an answer that is too long */
        answer->retry_after = lines[1] > 0 ? lines[1] : 0;
        answer->length = lines[2];
        if (code == CURL_FILE_SIZE || is_too_long(file, max))
            status = gate_fail(err, GATE_ENVIRONMENT, "the answer of %s is longer than %zu bytes",
                               remote->url, max);
        else if (code == CURL_PEER_FAILED || code == CURL_BAD_CA || code == CURL_BAD_CERT)
            status = gate_fail(err, GATE_ENVIRONMENT,
                               "the certificate of %s cannot be verified: %.300s; name the "
                               "certificate of its issuer (--ca-file FILE or GATE_CA_FILE)",
                               remote->url, words);
        else if (code)
            status = gate_fail(err, GATE_IO, "%s cannot be reached: %.300s", remote->url,
                               words[0] ? words : "curl was ended");
        else if (lseek(file, 0, SEEK_SET) || file_read_fd(file, "the answer", &answer->body, NULL))
            status = gate_fail(err, GATE_IO, "cannot read the answer of %s", remote->url);
    }
    close(body);
    close(file);
    return status;
}

bool http_may_pass(int status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 ||
           (status >= 502 && status <= 504);
}

enum gate_status http_client_ask(const struct remote *remote, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err)
{
    static _Atomic bool has_curl;
    const double deadline_s = clock_s() + request->patience_s;
    char version[32];
    if (!has_curl)
        TRY(http_client_version(version, err));
    has_curl = true;
    for (unsigned n = 1, n_500 = 0;; n++) {
        struct gate_error failure;
        enum gate_status status = ask_once(remote, request, answer, &failure);
        bool may_pass = status ? status == GATE_IO : http_may_pass(answer->status);
        n_500 += answer->status == 500;
        may_pass = may_pass && n_500 < TRIES_OF_A_500;
        double delay = may_pass ? backoff_delay(deadline_s, n, (double)answer->retry_after) : -1;
        if (delay < 0)
            return status ? gate_fail(err, status, "%s", failure.message) : GATE_OK;
        if (!status)
            gate_fail(&failure, GATE_IO, "%s answers %d", remote->url, answer->status);
        fprintf(stderr, "gate: %s; trying again in %.1f s\n", failure.message, delay);
        backoff_sleep(delay);
    }
}
