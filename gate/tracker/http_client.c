/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.c: see http_client.h. */
#include "gate/tracker/http_client.h"

/* Without the macros that check arguments: they name functions that are not linked here. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "version.h"

#define CONNECT_TIMEOUT_S 10L
#define SILENCE_S 30L /* no byte in either direction for so long ends a request */

/* X(member, function of libcurl) */
#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init, curl_global_init)                                                               \
    X(version_info, curl_version_info)                                                             \
    X(init, curl_easy_init)                                                                        \
    X(reset, curl_easy_reset)                                                                      \
    X(setopt, curl_easy_setopt)                                                                    \
    X(perform, curl_easy_perform)                                                                  \
    X(getinfo, curl_easy_getinfo)                                                                  \
    X(cleanup, curl_easy_cleanup)                                                                  \
    X(strerror, curl_easy_strerror)                                                                \
    X(append, curl_slist_append)                                                                   \
    X(free_all, curl_slist_free_all)

struct curl_library {
    void *handle;
#define CURL_MEMBER(member, function) __typeof__(function) *(member);
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

struct http_client {
    const struct remote *remote;
    struct curl_library curl;
    CURL *easy;
};

/* ---- the library ---- */

/* POSIX promises that the bytes that dlsym() returns are a pointer to the function. */
static bool load_symbol(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_functions(struct curl_library *l)
{
    bool ok = true;
#define CURL_LOAD(member, function) ok &= load_symbol(l->handle, #function, &l->member);
    CURL_FUNCTIONS(CURL_LOAD)
#undef CURL_LOAD
    return ok;
}

static enum gate_status open_library(struct curl_library *l, struct gate_error *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !l->handle; i++)
        l->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "libcurl.so.4 is missing on this machine, and is needed to reach a "
                         "server: install it (Debian: apt-get install libcurl4; Ubuntu 24.04: "
                         "libcurl4t64)");
    /* 7.85 is the first that can be told its protocols by CURLOPT_PROTOCOLS_STR. */
    if (!load_functions(l) || l->version_info(CURLVERSION_NOW)->version_num < 0x075500)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the libcurl of this machine is too old: 7.85 or later is needed");
    if (l->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return gate_fail(err, GATE_ENVIRONMENT, "libcurl cannot be initialised");
    return GATE_OK;
}

/* Never closed again: the TLS library below it keeps threads' data and handlers of its own. */
enum gate_status http_client_open(const struct remote *remote, struct http_client **out,
                                  struct gate_error *err)
{
    struct http_client *c = calloc(1, sizeof *c);
    if (!c)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    c->remote = remote;
    enum gate_status status = open_library(&c->curl, err);
    if (!status && !(c->easy = c->curl.init()))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status)
        http_client_close(c);
    else
        *out = c;
    return status;
}

void http_client_close(struct http_client *c)
{
    if (c && c->easy)
        c->curl.cleanup(c->easy);
    free(c);
}

const char *http_client_version(char version[32], struct gate_error *err)
{
    struct curl_library l = {0};
    if (open_library(&l, err))
        return NULL;
    snprintf(version, 32, "%s", l.version_info(CURLVERSION_NOW)->version);
    return version;
}

/* ---- one request ---- */

void http_answer_init(struct http_answer *a, size_t max_bytes)
{
    *a = (struct http_answer){.length = -1};
    buf_init(&a->body, max_bytes);
}

void http_answer_release(struct http_answer *a)
{
    buf_release(&a->body);
}

static size_t take_body(char *bytes, size_t size, size_t n, void *context)
{
    struct buf *body = context;
    buf_append(body, bytes, size * n);
    return body->failed ? 0 : size * n;
}

/* A header more; *ok turns false when memory is short. */
static void add_line(const struct http_client *c, struct curl_slist **list, bool *ok,
                     const char *line)
{
    struct curl_slist *longer = c->curl.append(*list, line);
    if (longer)
        *list = longer;
    else
        *ok = false;
}

static void add_header(const struct http_client *c, struct curl_slist **list, bool *ok,
                       const char *name, const char *value)
{
    char line[REMOTE_TOKEN_MAX + 64];
    snprintf(line, sizeof line, "%s: %s", name, value);
    add_line(c, list, ok, line);
}

static struct curl_slist *make_headers(const struct http_client *c, const struct http_request *r,
                                       bool *ok)
{
    struct curl_slist *list = NULL;
    char bearer[REMOTE_TOKEN_MAX + 16];
    if (c->remote->token[0]) {
        snprintf(bearer, sizeof bearer, "Bearer %s", c->remote->token);
        add_header(c, &list, ok, "Authorization", bearer);
    }
    if (r->type)
        add_header(c, &list, ok, "Content-Type", r->type);
    if (r->gzipped)
        add_header(c, &list, ok, "Content-Encoding", "gzip");
    for (size_t i = 0; r->headers && r->headers[i]; i++)
        add_line(c, &list, ok, r->headers[i]);
    return list;
}

/* The first option that fails is the one that is reported: what protects the token must hold. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (!failed && c->curl.setopt(c->easy, CURLOPT_##option, value) != CURLE_OK)               \
            failed = #option;                                                                      \
    } while (0)

static const char *set_safety(struct http_client *c, const struct http_request *r)
{
    const char *failed = NULL;
    bool https = !strncmp(c->remote->url, "https:", 6);
    SET(PROTOCOLS_STR, https ? "https" : "http");
    SET(FOLLOWLOCATION, 0L);
    SET(SSL_VERIFYPEER, 1L);
    SET(SSL_VERIFYHOST, 2L);
    SET(CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    SET(LOW_SPEED_LIMIT, 1L);
    SET(LOW_SPEED_TIME, SILENCE_S);
    SET(TIMEOUT, r->timeout_s);
    if (https)
        SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (https && c->remote->ca_file[0])
        SET(CAINFO, c->remote->ca_file);
    if (c->remote->loopback)
        SET(PROXY, ""); /* whatever $http_proxy says */
    return failed;
}

static const char *set_request(struct http_client *c, const struct http_request *r, const char *url,
                               struct curl_slist *headers, struct buf *body, char *message)
{
    const char *failed = NULL;
    SET(URL, url);
    SET(USERAGENT, "gate/" GATE_VERSION);
    SET(HTTPHEADER, headers);
    SET(ERRORBUFFER, message);
    SET(WRITEFUNCTION, take_body);
    SET(WRITEDATA, body);
    if (r->type) {
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
        SET(POSTFIELDS, r->body); /* also of a PUT: libcurl can send it again by itself */
    }
    if (r->once)
        SET(FRESH_CONNECT, 1L);
    if (!strcmp(r->method, "HEAD"))
        SET(NOBODY, 1L);
    else
        SET(CUSTOMREQUEST, r->method);
    return failed;
}
#undef SET

/* Why there is no answer, and whether asking again may help. */
static enum gate_status explain(const struct http_client *c, const struct http_answer *a,
                                CURLcode code, const char *message, struct gate_error *err)
{
    const char *why = message[0] ? message : c->curl.strerror(code);
    switch (code) {
    case CURLE_WRITE_ERROR:
        return gate_fail(err, GATE_ENVIRONMENT, "the answer of %s is longer than %zu bytes",
                         c->remote->url, a->body.max);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the certificate of %s cannot be verified: %.300s; name the certificate "
                         "of its issuer (--ca-file FILE or GATE_CA_FILE)",
                         c->remote->url, why);
    default:
        return gate_fail(err, GATE_IO, "%s cannot be reached: %.300s", c->remote->url, why);
    }
}

static enum gate_status perform(struct http_client *c, const char *message,
                                struct http_answer *answer, struct gate_error *err)
{
    long status = 0;
    curl_off_t seconds = 0, length = -1;
    CURLcode code = c->curl.perform(c->easy);
    c->curl.getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    answer->status = (int)status; /* also of an answer that is too long */
    if (code != CURLE_OK)
        return explain(c, answer, code, message, err);
    c->curl.getinfo(c->easy, CURLINFO_RETRY_AFTER, &seconds);
    c->curl.getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    answer->retry_after = (long)seconds;
    answer->length = length;
    return GATE_OK;
}

enum gate_status http_client_ask(struct http_client *c, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err)
{
    char url[REMOTE_URL_MAX + 1000], message[CURL_ERROR_SIZE] = "";
    bool ok = true;
    int n = snprintf(url, sizeof url, "%s%s", c->remote->url, request->path);
    if (n < 0 || (size_t)n >= sizeof url)
        return gate_fail(err, GATE_INTERNAL, "the path of a request is too long");
    buf_clear(&answer->body);
    c->curl.reset(c->easy); /* keeps the connection */
    struct curl_slist *headers = make_headers(c, request, &ok);
    const char *failed = ok ? set_safety(c, request) : "HTTPHEADER";
    if (!failed)
        failed = set_request(c, request, url, headers, &answer->body, message);
    enum gate_status status =
        failed ? gate_fail(err, GATE_ENVIRONMENT, "the libcurl of this machine refuses %s", failed)
               : perform(c, message, answer, err);
    c->curl.free_all(headers);
    return status;
}
