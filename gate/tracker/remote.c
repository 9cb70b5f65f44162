/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c: the address of a server and its token; see tracker.h. */
#include "gate/tracker/tracker.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/environment.h"
#include "gate/base/file.h"

#define TOKEN_FILE_MAX 4096
#define TOKEN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

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

/* The places of the whole and of the parts in parentheses; false: it is not of this form. */
static bool match(const char *form, const char *text, regmatch_t *at, size_t n)
{
    regex_t regex;
    if (regcomp(&regex, form, REG_EXTENDED))
        return false;
    bool matches = !regexec(&regex, text, n, at, 0);
    regfree(&regex);
    return matches;
}

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
    bool good = len <= REMOTE_URL_MAX && match(address, text, at, 4);
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
    out->loopback = match(loopback, text, NULL, 0);
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
    RELEASED_BY(buf_release) struct buf text = buf_of(TOKEN_FILE_MAX);
    struct stat st;
    char from[300];
    snprintf(from, sizeof from, "the token file '%.200s'", path);
    if (file_read(path, &text, err))
        return gate_fail_context(err, "the token");
    TRY(take_token(text.data, text.len, from, out, err));
    if (!stat(path, &st) && S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH))
        fprintf(stderr,
                "gate: warning: others on this machine can read the token file (mode %03o): "
                "chmod 600 '%s'\n",
                (unsigned)st.st_mode & 0777, path);
    return GATE_OK;
}

enum gate_status remote_take(const char *url, const struct remote_choice *choice,
                             const char *const *variables, struct remote *out,
                             struct gate_error *err)
{
    const char *ca_file = choose(choice->ca_file, "GATE_CA_FILE");
    TRY(remote_take_url(url, out, err));
    if (choice->token_file)
        TRY(read_token(choice->token_file, out, err));
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
