/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c: see auth.h. */
#include "server/request/auth.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static const char hex_digits[] = "0123456789abcdef";

static const char *const scope_names[] = {"read", "ingest", "artifact", "admin"};
#define N_SCOPES (sizeof scope_names / sizeof scope_names[0])

const char *auth_scope_name(unsigned bit)
{
    return bit < N_SCOPES ? scope_names[bit] : NULL;
}

unsigned auth_parse_scopes(const char *text)
{
    unsigned scopes = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        unsigned bit = 0;
        while (bit < N_SCOPES &&
               (strlen(scope_names[bit]) != len || strncmp(scope_names[bit], text, len) != 0))
            bit++;
        if (bit == N_SCOPES)
            return 0;
        scopes |= 1u << bit;
        if (text[len] == '\0')
            return scopes;
        text += len + 1;
    }
}

void auth_scope_text(unsigned scopes, char out[AUTH_MAX_SCOPES])
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned bit = 0; bit < N_SCOPES; bit++) {
        if (scopes & (1u << bit))
            len += (size_t)snprintf(out + len, AUTH_MAX_SCOPES - len, "%s%s", len ? "," : "",
                                    scope_names[bit]);
    }
}

static void digest_of(const char *secret, unsigned char digest[TOKEN_DIGEST_BYTES])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)secret, AUTH_SECRET_LENGTH);
    SHA256Final(digest, &context);
}

bool auth_is_bearer(const char *authorization)
{
    return authorization && !strncasecmp(authorization, "Bearer", 6) &&
           (authorization[6] == ' ' || authorization[6] == '\0');
}

/* Takes "Bearer kg_<id>_<secret>" apart; *secret points into the text. */
static bool parse(const char *authorization, char id[TOKEN_ID_LENGTH + 1], const char **secret)
{
    if (strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    const char *token = authorization + 7;
    if (strlen(token) != AUTH_TOKEN_LENGTH || strncmp(token, "kg_", 3) != 0 ||
        strspn(token + 3, hex_digits) != TOKEN_ID_LENGTH || token[3 + TOKEN_ID_LENGTH] != '_')
        return false;
    memcpy(id, token + 3, TOKEN_ID_LENGTH);
    id[TOKEN_ID_LENGTH] = '\0';
    *secret = token + 3 + TOKEN_ID_LENGTH + 1;
    return strspn(*secret, hex_digits) == AUTH_SECRET_LENGTH;
}

enum auth_result auth_check(struct store *store, const char *authorization, int64_t now_ms,
                            struct identity *who, struct gate_error *err)
{
    struct store_token token = {0};
    unsigned char digest[TOKEN_DIGEST_BYTES];
    const char *secret;
    bool found;
    char id[TOKEN_ID_LENGTH + 1];
    if (!authorization)
        return AUTH_NONE;
    if (!parse(authorization, id, &secret))
        return AUTH_REFUSED;
    if (store_find_token(store, id, &token, &found, err) != GATE_OK)
        return AUTH_FAILED;
    /* An id that is not there costs the same work as one that is. */
    digest_of(secret, digest);
    bool same = gnutls_memcmp(digest, token.digest, sizeof digest) == 0;
    if (!found || !same || token.revoked_ms != 0 ||
        (token.expires_ms != 0 && token.expires_ms <= now_ms))
        return AUTH_REFUSED;
    memcpy(who->id, token.id, sizeof who->id);
    memcpy(who->name, token.name, sizeof who->name);
    who->scopes = token.scopes;
    who->touch = now_ms - token.last_used_ms >= AUTH_TOUCH_MS;
    return AUTH_GOOD;
}

bool identity_may(const struct identity *who, enum token_scope scope)
{
    return scope == TOKEN_READ || (who->scopes & ((unsigned)scope | TOKEN_ADMIN)) != 0;
}

static bool random_hex(char *out, size_t n_digits)
{
    unsigned char bytes[AUTH_SECRET_LENGTH / 2];
    if (getrandom(bytes, n_digits / 2, 0) != (ssize_t)(n_digits / 2))
        return false;
    for (size_t i = 0; i < n_digits / 2; i++) {
        out[2 * i] = hex_digits[bytes[i] >> 4];
        out[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
    out[n_digits] = '\0';
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

enum gate_status auth_new_token(struct store_token *out, char text[AUTH_TOKEN_LENGTH + 1],
                                struct gate_error *err)
{
    char secret[AUTH_SECRET_LENGTH + 1];
    if (!random_hex(out->id, TOKEN_ID_LENGTH) || !random_hex(secret, AUTH_SECRET_LENGTH))
        return gate_fail(err, GATE_INTERNAL, "cannot get random bytes: %s", strerror(errno));
    digest_of(secret, out->digest);
    snprintf(text, AUTH_TOKEN_LENGTH + 1, "kg_%s_%s", out->id, secret);
    explicit_bzero(secret, sizeof secret);
    return GATE_OK;
}
