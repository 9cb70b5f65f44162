/*
 * store_memo.h: what was made of the store's rows, kept in memory while nothing is written.
 */
#ifndef SERVER_STORE_STORE_MEMO_H
#define SERVER_STORE_STORE_MEMO_H

#include <stdbool.h>
#include <stddef.h>

#include "store.h"

#define STORE_MEMO_KEY 512

/* Between store_read_begin() and store_read_end(). */

/* The key of a kind of things and its n names, of which some may be NULL. False: it is too long. */
bool store_memo_key(char key[STORE_MEMO_KEY], const char *kind, const char *const names[],
                    size_t n);
/* The n bytes that were kept under the key, of this same state; NULL: nothing. They live until the
 * next call of store_memo_put(). */
const void *store_memo(struct store *s, const char *key, size_t *n);
/* Keeps a copy, unless the state is not known or memory is short, until another key needs the
 * place. */
void store_memo_put(struct store *s, const char *key, const void *bytes, size_t n);

#endif
