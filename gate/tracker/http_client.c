/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.c: see tracker.h. */
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
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "version.h"

#define CONNECT_TIMEOUT_S 10
#define SILENCE_S 30 /* no byte in either direction for so long ends a request */
#define POLL_S 0.25  /* between two looks at the size of the answer */
#define GRACE_S 5.0  /* beyond its own time limit */
#define CONFIG_MAX ((size_t)64 << 10)
#define LINES_MAX ((size_t)64 << 10)

/* Exit codes of curl(1). */
enum { CURL_PEER_FAILED = 60, CURL_FILE_SIZE = 63, CURL_BAD_CA = 77, CURL_BAD_CERT = 58 };

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

enum gate_status http_client_ask(const struct remote *remote, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err)
{
    char *argv[] = {(char *)"curl", (char *)"--disable", (char *)"--config", (char *)"-", NULL};
    struct process p = {0};
    long lines[3] = {0, -1, -1}; /* status, Retry-After, Content-Length */
    size_t max = answer->body.max;
    int body = memfd_create("request", MFD_CLOEXEC), file = memfd_create("answer", MFD_CLOEXEC);
    enum gate_status status = GATE_OK;
    buf_clear(&answer->body);
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
