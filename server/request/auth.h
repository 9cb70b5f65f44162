/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h: who sends a request: tokens of the form kg_<id>_<secret>.
 */
#ifndef SERVER_REQUEST_AUTH_H
#define SERVER_REQUEST_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/store/store_token.h"

#define AUTH_SECRET_LENGTH 64 /* hex digits of 32 random bytes */
#define AUTH_TOKEN_LENGTH (3 + TOKEN_ID_LENGTH + 1 + AUTH_SECRET_LENGTH)
#define AUTH_TOUCH_MS 60000 /* `last used` is written no more often than this */
#define AUTH_MAX_SCOPES 32  /* characters of "read,ingest,artifact,admin" and the NUL */

enum auth_result {
    AUTH_GOOD,
    AUTH_NONE,    /* no Authorization header */
    AUTH_REFUSED, /* none that is known, or expired, or revoked: the caller learns no more */
    AUTH_FAILED,  /* the database could not be asked */
};

struct identity {
    char id[TOKEN_ID_LENGTH + 1];
    char name[TOKEN_MAX_NAME + 1];
    unsigned scopes;
    bool touch; /* its last use should be written down */
};

/* Looks at an Authorization header (may be NULL); *who is filled when the token is good. */
enum auth_result auth_check(struct store *store, const char *authorization, int64_t now_ms,
                            struct identity *who, struct gate_error *err);

bool identity_may(const struct identity *who, enum token_scope scope);

/* Makes a new token: id and digest of *out, and the text that is shown once. */
enum gate_status auth_new_token(struct store_token *out, char text[AUTH_TOKEN_LENGTH + 1],
                                struct gate_error *err);

/* Is it of the scheme Bearer, good or bad? NULL is not. */
bool auth_is_bearer(const char *authorization);

/* "ingest,artifact" to bits, 0 when it is no such list; and back. */
unsigned auth_parse_scopes(const char *text);
void auth_scope_text(unsigned scopes, char out[AUTH_MAX_SCOPES]);

/* The name of one scope, or NULL; scopes are the bits from 0 up. */
const char *auth_scope_name(unsigned bit);

#endif
