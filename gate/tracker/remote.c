/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c: the address of a server and its token; see http_client.h. */
#include "gate/tracker/http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gate/base/buf.h"
#include "gate/base/environment.h"
#include "gate/base/file.h"

#define TOKEN_FILE_MAX 4096
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define TOKEN_CHARACTERS NAME_CHARACTERS "."

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

/* "127.0.0.1", any 127.x.y.z, "[::1]" and "localhost", which curl never asks a resolver for. */
static bool is_loopback(const char *host, size_t n)
{
    if ((n == 9 && !strncmp(host, "localhost", 9)) || (n == 5 && !strncmp(host, "[::1]", 5)))
        return true;
    if (n < 9 || strncmp(host, "127.", 4) != 0)
        return false;
    int dots = 0;
    for (size_t i = 0; i < n; i++) {
        bool dot = host[i] == '.';
        if ((!dot && (host[i] < '0' || host[i] > '9')) || (dot && host[i - 1] == '.'))
            return false;
        dots += dot;
    }
    return dots == 3 && host[n - 1] != '.';
}

/* Length of the host at the start of `s`, in lower case only; 0: there is none. */
static size_t host_length(const char *s)
{
    if (s[0] != '[')
        return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    size_t n = 1 + strspn(s + 1, "0123456789abcdef:.");
    return n > 1 && s[n] == ']' ? n + 1 : 0;
}

/* Checks what is left of the address behind the host, "[:PORT][/PATH]". */
static bool is_rest(const char *s)
{
    if (*s == ':') {
        size_t n = strcspn(++s, "/");
        long port = strtol(s, NULL, 10);
        if (!n || n > 5 || strspn(s, "0123456789") < n || port < 1 || port > 65535)
            return false;
        s += n;
    }
    return !*s || (*s == '/' && strspn(s, "/" NAME_CHARACTERS ".~") == strlen(s) &&
                   !strstr(s, "//") && !strstr(s, ".."));
}

enum gate_status remote_take_url(const char *text, struct remote *out, struct gate_error *err)
{
    *out = (struct remote){0};
    bool https = !strncmp(text, "https://", 8), http = !strncmp(text, "http://", 7);
    const char *host = text + (https ? 8 : 7);
    size_t n = https || http ? host_length(host) : 0, len = strlen(text);
    if (!n || len > REMOTE_URL_MAX || !is_rest(host + n))
        return gate_fail(err, GATE_USAGE,
                         "'%.100s' is not the address of a server: https://HOST[:PORT][/PATH] in "
                         "lower case, at most %d characters",
                         text, REMOTE_URL_MAX);
    while (text[len - 1] == '/')
        len--;
    snprintf(out->url, sizeof out->url, "%.*s", (int)len, text);
    out->loopback = http && is_loopback(host, n);
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

static enum gate_status read_token(const char *path, struct remote *out, struct gate_error *err)
{
    struct buf text;
    struct stat st;
    char from[300];
    buf_init(&text, TOKEN_FILE_MAX);
    snprintf(from, sizeof from, "the token file '%.200s'", path);
    enum gate_status status = file_read(path, &text, err);
    if (status)
        gate_fail_context(err, "the token");
    else
        status = take_token(text.len ? text.data : "", text.len, from, out, err);
    if (!status && !stat(path, &st) && S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH))
        fprintf(stderr,
                "gate: warning: others on this machine can read the token file (mode %03o): "
                "chmod 600 '%s'\n",
                (unsigned)st.st_mode & 0777, path);
    buf_release(&text);
    return status;
}

/* The first of the variables that is set. */
static enum gate_status find_token(const char *const *variables, struct remote *out,
                                   struct gate_error *err)
{
    for (; *variables; variables++) {
        const char *token = getenv(*variables);
        char from[80];
        snprintf(from, sizeof from, "$%s", *variables);
        if (token && token[0])
            return take_token(token, strlen(token), from, out, err);
    }
    return GATE_OK;
}

enum gate_status remote_take(const char *url, const struct remote_choice *choice,
                             const char *const *variables, struct remote *out,
                             struct gate_error *err)
{
    const char *ca_file = choose(choice->ca_file, "GATE_CA_FILE");
    enum gate_status status = remote_take_url(url, out, err);
    if (!status)
        status = choice->token_file ? read_token(choice->token_file, out, err)
                                    : find_token(variables, out, err);
    if (status)
        return status;
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
