/* SPDX-License-Identifier: Apache-2.0 */
/* store_token.c: see store_token.h. */
#include "gate/store/store_token.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

enum gate_status store_put_token(struct store *s, const struct store_token *token,
                                 struct gate_error *err)
{
    return store_change(s,
                        "INSERT INTO token (id, name, scopes, digest, created_ms, expires_ms) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        CELLS(cell_text(token->id), cell_text(token->name),
                              cell_integer(token->scopes),
                              cell_bytes(token->digest, TOKEN_DIGEST_BYTES),
                              cell_integer(token->created_ms), cell_id(token->expires_ms)),
                        NULL, err);
}

enum gate_status store_revoke_token(struct store *s, const char *id, int64_t now_ms, bool *found,
                                    struct gate_error *err)
{
    int n_changed;
    enum gate_status status =
        store_change(s, "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
                     CELLS(cell_text(id), cell_integer(now_ms)), &n_changed, err);
    *found = n_changed > 0;
    return status;
}

enum gate_status store_touch_token(struct store *s, const char *id, int64_t now_ms,
                                   struct gate_error *err)
{
    return store_change(s, "UPDATE token SET last_used_ms = ?2 WHERE id = ?1",
                        CELLS(cell_text(id), cell_integer(now_ms)), NULL, err);
}

enum gate_status store_expire_tokens(struct store *s, int64_t now_ms, struct gate_error *err)
{
    return store_change(s,
                        "UPDATE token SET revoked_ms = expires_ms "
                        "WHERE expires_ms <= ?1 AND revoked_ms IS NULL",
                        CELLS(cell_integer(now_ms)), NULL, err);
}

/* ---- reading ---- */

#define TOKENS                                                                                     \
    "SELECT id, name, scopes, digest, created_ms, expires_ms, last_used_ms, revoked_ms FROM "      \
    "token "

static void read_token(struct query *q, struct store_token *t)
{
    *t = (struct store_token){.scopes = (unsigned)column_int(q, 2),
                              .created_ms = column_int(q, 4),
                              .expires_ms = column_int(q, 5),
                              .last_used_ms = column_int(q, 6),
                              .revoked_ms = column_int(q, 7)};
    snprintf(t->id, sizeof t->id, "%s", column_text(q, 0));
    snprintf(t->name, sizeof t->name, "%s", column_text(q, 1));
    const void *digest = sqlite3_column_blob(q->stmt, 3);
    if (digest && sqlite3_column_bytes(q->stmt, 3) == TOKEN_DIGEST_BYTES)
        memcpy(t->digest, digest, TOKEN_DIGEST_BYTES);
}

enum gate_status store_find_token(struct store *s, const char *id, struct store_token *out,
                                  bool *found, struct gate_error *err)
{
    struct query q = query_begin(s, TOKENS "WHERE id = ?1", CELLS(cell_text(id)));
    *found = query_row(&q);
    if (*found)
        read_token(&q, out);
    return query_done(s, &q, err);
}

enum gate_status store_tokens(struct store *s, store_token_fn fn, void *context,
                              struct gate_error *err)
{
    struct store_token token;
    struct query q = query_begin(s, TOKENS "ORDER BY created_ms, id", NULL, 0);
    while (query_row(&q)) {
        read_token(&q, &token);
        if (!fn(context, &token))
            break;
    }
    return query_done(s, &q, err);
}
