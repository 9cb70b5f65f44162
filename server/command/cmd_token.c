/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c: gate-server token create|list|revoke. */
#include "server/command/server_commands.h"

#include <stdio.h>
#include <string.h>

#include "server/request/auth.h"
#include "gate/base/clock.h"
#include "gate/report/report_units.h"

struct token_arguments {
    const char *db;
    const char *name;
    unsigned scopes;
    int64_t valid_ms; /* 0: for ever */
};

static bool read_name(void *field, const char *text)
{
    *(const char **)field = text;
    return text[0] && strlen(text) <= TOKEN_MAX_NAME &&
           !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.+-")];
}

static bool read_scopes(void *field, const char *text)
{
    return (*(unsigned *)field = auth_parse_scopes(text)) != 0;
}

static enum gate_status create(const struct token_arguments *a, struct store *store,
                               struct gate_error *err)
{
    struct store_token token = {.scopes = a->scopes, .created_ms = clock_wall_ms()};
    char text[AUTH_TOKEN_LENGTH + 1];
    if (a->valid_ms != 0)
        token.expires_ms = token.created_ms + a->valid_ms;
    snprintf(token.name, sizeof token.name, "%s", a->name);
    enum gate_status status = auth_new_token(&token, text, err);
    if (!status)
        status = store_put_token(store, &token, err);
    if (!status)
        puts(text);
    explicit_bzero(text, sizeof text);
    return status;
}

static void put_time(const char *what, int64_t time_ms)
{
    char text[UNITS_MAX];
    printf("  %s %s", what, time_ms != 0 ? units_time_iso(time_ms, text) : "never");
}

static bool put_token(void *context, const struct store_token *t)
{
    int64_t now_ms = *(const int64_t *)context;
    char scopes[AUTH_MAX_SCOPES];
    auth_scope_text(t->scopes, scopes);
    const char *state = "valid";
    if (t->revoked_ms != 0 && t->revoked_ms != t->expires_ms)
        state = "revoked";
    else if (t->expires_ms != 0 && (t->expires_ms <= now_ms || t->revoked_ms != 0))
        state = "expired";
    printf("%s  %-7s  %-20s  %s", t->id, state, t->name, scopes);
    put_time("created", t->created_ms);
    put_time("expires", t->expires_ms);
    put_time("used", t->last_used_ms);
    putchar('\n');
    return true;
}

static int token(struct command_call *call, struct gate_error *err)
{
    const struct token_arguments *a = call->arguments;
    const char *verb = call->operands[0], *id = call->operands[1];
    bool creates = !strcmp(verb, "create"), revokes = !strcmp(verb, "revoke");
    struct store *store = NULL;
    if (!creates && !revokes && strcmp(verb, "list") != 0)
        return gate_fail(err, GATE_USAGE, "'token %s' is nothing to do; see --help", verb);
    if (!a->db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    if (creates && !(a->name && a->scopes))
        return gate_fail(err, GATE_USAGE, "'token create' needs --%s; see --help",
                         a->name ? "scope" : "name");
    if (!creates && (a->name || a->scopes || a->valid_ms))
        return gate_fail(err, GATE_USAGE, "--%s belongs to 'token create', not to 'token %s'",
                         a->name     ? "name"
                         : a->scopes ? "scope"
                                     : "expires",
                         verb);
    if (revokes && !id)
        return gate_fail(err, GATE_USAGE,
                         "'token revoke' needs the ID of a token; see "
                         "'gate-server token list'");
    if (!revokes && id)
        return gate_fail(err, GATE_USAGE, "'token %s' takes nothing more, and got '%.100s'", verb,
                         id);
    TRY(store_open(a->db, creates ? STORE_READ_WRITE : STORE_UPDATE, &store, err));
    int64_t now_ms = clock_wall_ms();
    bool found = true;
    enum gate_status status = creates   ? create(a, store, err)
                              : revokes ? store_revoke_token(store, id, now_ms, &found, err)
                                        : store_tokens(store, put_token, &now_ms, err);
    if (!status && !found)
        status = gate_fail(err, GATE_USAGE,
                           "no valid token has the id '%s'; see `gate-server token list`", id);
    store_close(store);
    return status;
}

#define ARGUMENTS struct token_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "db", "FILE", db, "the database of the server, created if necessary"),
    OPTION(READ, "name", "NAME", name, "its holder", .read = read_name,
           .form = "1 to 64 of a-z, 0-9 and _.+-"),
    OPTION(READ, "scope", "LIST", scopes,
           "its rights, separated by commas: read, ingest (runs), artifact, admin (all of them, "
           "and the state of alerts)",
           .read = read_scopes, .form = "scopes: read, ingest, artifact, admin"),
    OPTION(READ, "expires", "TIME", valid_ms, "how long it is valid, such as 12h or 90d",
           .read = read_duration, .form = DURATION_FORM, .fallback = "for ever"),
    {0},
};

const struct command command_token = {
    .name = "gate-server token",
    .operands = "create --db FILE --name NAME --scope LIST [--expires TIME]\nlist --db FILE\n"
                "revoke --db FILE ID",
    .least = 1,
    .most = 2,
    .missing = "an action is missing: create, list or revoke",
    .summary = "create, list and revoke tokens",
    .about = "With a token, programs may write to the server, and read from a server with "
             "--private. A running server on FILE uses the change at once.\n",
    .groups = {{options, 0}},
    .ending = "'create' prints the token once; the database keeps only its SHA-256.\n"
              "\n"
              "Exit codes: 0 done, 64 usage or no such token, 70 internal, 74 database.\n",
    .bytes = sizeof(struct token_arguments),
    .main = token,
};
