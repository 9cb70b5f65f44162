/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c: gate-server token create|list|revoke. */
#include "server/command/server_commands.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/request/auth.h"
#include "gate/base/clock.h"
#include "server/command/options.h"

static const char usage[] =
    "Usage: gate-server token create --db FILE --name NAME --scope LIST [--expires TIME]\n"
    "       gate-server token list --db FILE\n"
    "       gate-server token revoke --db FILE ID\n"
    "\n"
    "With a token, programs may write to the server, and read from a server with --private.\n"
    "A running server on FILE uses the change at once.\n"
    "\n"
    "  --db FILE       the database of the server, created if necessary\n"
    "  --name NAME     its holder, 1 to 64 of a-z, 0-9 and _.+-\n"
    "  --scope LIST    its rights, separated by commas: read, ingest (runs), artifact,\n"
    "                  admin (all of them, and the state of alerts)\n"
    "  --expires TIME  how long it is valid, such as 12h or 90d; for ever without it\n"
    "  --help          print this text\n"
    "\n"
    "'create' prints the token once; the database keeps only its SHA-256.\n"
    "Exit status: 0 done, 64 usage or no such token, 70 internal, 74 database.\n";

struct token_arguments {
    const char *db;
    const char *name;
    unsigned scopes;
    int64_t valid_ms; /* 0: for ever */
    const char *operands[2];
};

static enum gate_status read_option(void *context, int letter, const char *value,
                                    struct gate_error *err)
{
    struct token_arguments *a = context;
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_.+-";
    switch (letter) {
    case 'd':
        a->db = value;
        return GATE_OK;
    case 'n':
        a->name = value;
        if (value[0] == '\0' || strlen(value) > TOKEN_MAX_NAME ||
            strspn(value, good) != strlen(value))
            return gate_fail(err, GATE_USAGE,
                             "'%s' is not a valid name for a token: use 1 to 64 of a-z, 0-9 and "
                             "_.+-",
                             value);
        return GATE_OK;
    case 's':
        a->scopes = auth_parse_scopes(value);
        if (a->scopes == 0)
            return gate_fail(err, GATE_USAGE,
                             "'%s' is not a list of scopes: read, ingest, artifact, admin", value);
        return GATE_OK;
    default:
        return options_duration("--expires", value, &a->valid_ms, err);
    }
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
    char text[32] = "never";
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    if (time_ms != 0 && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    printf("  %s %s", what, text);
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

static enum gate_status revoke(struct store *store, const char *id, struct gate_error *err)
{
    bool found;
    enum gate_status status = store_revoke_token(store, id, clock_wall_ms(), &found, err);
    if (!status && !found)
        status = gate_fail(err, GATE_USAGE,
                           "no valid token has the id '%s'; see `gate-server token list`", id);
    return status;
}

static enum gate_status check(const struct token_arguments *a, struct gate_error *err)
{
    const char *verb = a->operands[0];
    bool creates = !strcmp(verb, "create");
    bool revokes = !strcmp(verb, "revoke");
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
    if (revokes && !a->operands[1])
        return gate_fail(err, GATE_USAGE,
                         "'token revoke' needs the ID of a token; see "
                         "'gate-server token list'");
    if (!revokes && a->operands[1])
        return gate_fail(err, GATE_USAGE, "'token %s' takes nothing more, and got '%.100s'", verb,
                         a->operands[1]);
    return GATE_OK;
}

enum gate_status server_token(int argc, char **argv, struct gate_error *err)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},    {"name", required_argument, NULL, 'n'},
        {"scope", required_argument, NULL, 's'}, {"expires", required_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},        {0},
    };
    struct token_arguments a = {0};
    struct store *store = NULL;
    bool done;
    enum gate_status status =
        options_parse(argc, argv, options, usage, read_option, &a, a.operands, 2, &done, err);
    if (status || done)
        return status;
    if (!a.operands[0])
        return gate_fail(err, GATE_USAGE,
                         "an action is missing: create, list or revoke; see "
                         "--help");
    bool creates = !strcmp(a.operands[0], "create");
    status = check(&a, err);
    if (!status)
        status = store_open(a.db, creates ? STORE_READ_WRITE : STORE_UPDATE, &store, err);
    if (status)
        return status;
    int64_t now_ms = clock_wall_ms();
    if (creates)
        status = create(&a, store, err);
    else if (!strcmp(a.operands[0], "list"))
        status = store_tokens(store, put_token, &now_ms, err);
    else
        status = revoke(store, a.operands[1], err);
    store_close(store);
    return status;
}
