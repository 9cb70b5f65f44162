/*
 * store_memo.h: what was made of the store's rows, kept in memory while nothing is written.
 */
#ifndef SERVER_STORE_MEMO_H
#define SERVER_STORE_MEMO_H

#include <stddef.h>

#include "store.h"

/*
 * Between store_read_begin() and store_read_end(). The keys of one kind start with a word of
 * theirs.
 */

/* The n bytes that were kept under the key, of this same state; NULL: nothing. They live until the
 * next call of store_memo_put(). */
const void *store_memo(struct store *s, const char *key, size_t *n);
/* Keeps a copy, unless the state is not known or memory is short, until another key needs the
 * place. */
void store_memo_put(struct store *s, const char *key, const void *bytes, size_t n);

#endif
