/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_token.h: the tokens that may write, in the same file as the history.
 *
 * A token is kg_<id>_<secret>. The store keeps the SHA-256 of the secret, which is random and long,
 * so that nobody who reads the file can make a token of it.
 */
#ifndef GATE_STORE_STORE_TOKEN_H
#define GATE_STORE_STORE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/store/store.h"

#define TOKEN_ID_LENGTH 12 /* lower-case hex digits */
#define TOKEN_MAX_NAME 64
#define TOKEN_DIGEST_BYTES 32

/* What a token may do; the bits are stored. Any valid token reads. */
enum token_scope {
    TOKEN_READ = 1,
    TOKEN_INGEST = 2,
    TOKEN_ARTIFACT = 4,
    TOKEN_ADMIN = 8, /* includes all others */
};

struct store_token {
    char id[TOKEN_ID_LENGTH + 1];
    char name[TOKEN_MAX_NAME + 1];
    unsigned scopes; /* of enum token_scope */
    unsigned char digest[TOKEN_DIGEST_BYTES];
    int64_t created_ms;
    int64_t expires_ms;   /* 0: never */
    int64_t last_used_ms; /* 0: never; kept to the minute */
    int64_t revoked_ms;   /* 0: it is valid */
};

typedef bool (*store_token_fn)(void *context, const struct store_token *row);

/* Writes: each takes the turn to write, or is part of the write that is open. */
enum gate_status store_put_token(struct store *s, const struct store_token *token,
                                 struct gate_error *err);
/* *found: there is one of that id that was not revoked before. */
enum gate_status store_revoke_token(struct store *s, const char *id, int64_t now_ms, bool *found,
                                    struct gate_error *err);
enum gate_status store_touch_token(struct store *s, const char *id, int64_t now_ms,
                                   struct gate_error *err);

/* Revokes what has expired, at the time when it did: the clock may go back. */
enum gate_status store_expire_tokens(struct store *s, int64_t now_ms, struct gate_error *err);

enum gate_status store_find_token(struct store *s, const char *id, struct store_token *out,
                                  bool *found, struct gate_error *err);
/* All of them, oldest first. */
enum gate_status store_tokens(struct store *s, store_token_fn fn, void *context,
                              struct gate_error *err);

#endif
