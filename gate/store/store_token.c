/* SPDX-License-Identifier: Apache-2.0 */
/* store_token.c: see store_token.h. */
#include "gate/store/store_token.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"
#include "gate/store/store_rows.h"

enum gate_status store_put_token(struct store *s, const struct store_token *token,
                                 struct gate_error *err)
{
    struct store_cell values[] = {
        store_text("id", token->id),
        store_text("name", token->name),
        store_integer("scopes", token->scopes),
        store_integer("created", token->created_ms),
        store_integer("expires", token->expires_ms),
        {.name = "digest",
         .kind = STORE_BLOB,
         .integer = TOKEN_DIGEST_BYTES,
         .text = (const char *)token->digest},
    };
    return store_change(s,
                        "INSERT INTO token (id, name, scopes, digest, created_ms, expires_ms) "
                        "VALUES (:id, :name, :scopes, :digest, :created, nullif(:expires, 0))",
                        values, 6, NULL, err);
}

enum gate_status store_revoke_token(struct store *s, const char *id, int64_t now_ms, bool *found,
                                    struct gate_error *err)
{
    int n_changed;
    const struct store_cell values[] = {store_text("id", id), store_integer("now", now_ms)};
    enum gate_status status =
        store_change(s, "UPDATE token SET revoked_ms = :now WHERE id = :id AND revoked_ms IS NULL",
                     values, 2, &n_changed, err);
    *found = n_changed > 0;
    return status;
}

enum gate_status store_touch_token(struct store *s, const char *id, int64_t now_ms,
                                   struct gate_error *err)
{
    const struct store_cell values[] = {store_text("id", id), store_integer("now", now_ms)};
    return store_change(s,
                        "UPDATE token SET last_used_ms = :now "
                        "WHERE id = :id AND (last_used_ms IS NULL OR last_used_ms < :now)",
                        values, 2, NULL, err);
}

enum gate_status store_expire_tokens(struct store *s, int64_t now_ms, struct gate_error *err)
{
    const struct store_cell values[] = {store_integer("now", now_ms)};
    return store_change(s,
                        "UPDATE token SET revoked_ms = expires_ms "
                        "WHERE expires_ms <= :now AND revoked_ms IS NULL",
                        values, 1, NULL, err);
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
    struct query q = query_begin(s, TOKENS "WHERE id = ?1");
    bind_text(&q, id);
    *found = query_row(&q);
    if (*found)
        read_token(&q, out);
    return query_done(s, &q, err);
}

enum gate_status store_tokens(struct store *s, store_token_fn fn, void *context,
                              struct gate_error *err)
{
    struct store_token token;
    struct query q = query_begin(s, TOKENS "ORDER BY created_ms, id");
    while (query_row(&q)) {
        read_token(&q, &token);
        if (!fn(context, &token))
            break;
    }
    return query_done(s, &q, err);
}
