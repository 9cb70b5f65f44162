/* SPDX-License-Identifier: Apache-2.0 */
/* store_token.c: see store_token.h. */
#include "gate/store/store_token.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

struct write {
    struct store *store;
    struct query *query;
    int n_changed;
};

static enum gate_status step(void *context, struct gate_error *err)
{
    struct write *w = context;
    int rc = query_step(w->query);
    if (rc != SQLITE_DONE)
        return store_fail(w->store, rc, "write a token to", err);
    w->n_changed = sqlite3_changes(w->store->db);
    return GATE_OK;
}

/* Runs a bound statement, in a turn to write of its own or in the batch that has the turn. */
static enum gate_status write_one(struct store *s, struct query *q, int *n_changed,
                                  struct gate_error *err)
{
    struct write w = {.store = s, .query = q};
    enum gate_status status = store_atomically(s, step, &w, err);
    *n_changed = w.n_changed;
    query_end(q);
    return status;
}

static void bind_time_or_null(struct query *q, int64_t time_ms)
{
    bind_int(q, time_ms);
    if (time_ms == 0)
        sqlite3_bind_null(q->stmt, q->next - 1);
}

enum gate_status store_put_token(struct store *s, const struct store_token *token,
                                 struct gate_error *err)
{
    int n_changed;
    struct query q =
        query_begin(s, "INSERT INTO token (id, name, scopes, digest, created_ms, expires_ms) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    bind_text(&q, token->id);
    bind_text(&q, token->name);
    bind_int(&q, token->scopes);
    q.rc =
        q.rc ? q.rc
             : sqlite3_bind_blob(q.stmt, q.next, token->digest, TOKEN_DIGEST_BYTES, SQLITE_STATIC);
    q.next++;
    bind_int(&q, token->created_ms);
    bind_time_or_null(&q, token->expires_ms);
    return write_one(s, &q, &n_changed, err);
}

enum gate_status store_revoke_token(struct store *s, const char *id, int64_t now_ms, bool *found,
                                    struct gate_error *err)
{
    int n_changed;
    struct query q =
        query_begin(s, "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL");
    bind_text(&q, id);
    bind_int(&q, now_ms);
    enum gate_status status = write_one(s, &q, &n_changed, err);
    *found = n_changed > 0;
    return status;
}

enum gate_status store_touch_token(struct store *s, const char *id, int64_t now_ms,
                                   struct gate_error *err)
{
    int n_changed;
    struct query q =
        query_begin(s, "UPDATE token SET last_used_ms = ?2 "
                       "WHERE id = ?1 AND (last_used_ms IS NULL OR last_used_ms < ?2)");
    bind_text(&q, id);
    bind_int(&q, now_ms);
    return write_one(s, &q, &n_changed, err);
}

enum gate_status store_expire_tokens(struct store *s, int64_t now_ms, struct gate_error *err)
{
    int n_changed;
    struct query q = query_begin(s, "UPDATE token SET revoked_ms = expires_ms "
                                    "WHERE expires_ms <= ?1 AND revoked_ms IS NULL");
    bind_int(&q, now_ms);
    return write_one(s, &q, &n_changed, err);
}

static void read_token(struct query *q, struct store_token *t)
{
    *t = (struct store_token){.scopes = (unsigned)sqlite3_column_int(q->stmt, 2),
                              .created_ms = sqlite3_column_int64(q->stmt, 4),
                              .expires_ms = sqlite3_column_int64(q->stmt, 5),
                              .last_used_ms = sqlite3_column_int64(q->stmt, 6),
                              .revoked_ms = sqlite3_column_int64(q->stmt, 7)};
    snprintf(t->id, sizeof t->id, "%s", column_text(q, 0));
    snprintf(t->name, sizeof t->name, "%s", column_text(q, 1));
    const void *digest = sqlite3_column_blob(q->stmt, 3);
    if (digest && sqlite3_column_bytes(q->stmt, 3) == TOKEN_DIGEST_BYTES)
        memcpy(t->digest, digest, TOKEN_DIGEST_BYTES);
}

enum gate_status store_find_token(struct store *s, const char *id, struct store_token *out,
                                  bool *found, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    struct query q = query_begin(
        s, "SELECT id, name, scopes, digest, created_ms, expires_ms, last_used_ms, revoked_ms "
           "FROM token WHERE id = ?1");
    bind_text(&q, id);
    int rc = query_step(&q);
    *found = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW)
        read_token(&q, out);
    else if (rc != SQLITE_DONE)
        status = store_fail(s, rc, "read a token of", err);
    query_end(&q);
    return status;
}

enum gate_status store_tokens(struct store *s, store_token_fn fn, void *context,
                              struct gate_error *err)
{
    int rc;
    struct query q = query_begin(
        s, "SELECT id, name, scopes, digest, created_ms, expires_ms, last_used_ms, revoked_ms "
           "FROM token ORDER BY created_ms, id");
    while ((rc = query_step(&q)) == SQLITE_ROW) {
        struct store_token token;
        read_token(&q, &token);
        if (!fn(context, &token))
            break;
    }
    enum gate_status status = GATE_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = store_fail(s, rc, "read the tokens of", err);
    query_end(&q);
    return status;
}
