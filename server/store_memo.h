/*
 * store_memo.h: text that was made of the store's rows, kept in memory while nothing is written.
 */
#ifndef SERVER_STORE_MEMO_H
#define SERVER_STORE_MEMO_H

#include "base/buf.h"
#include "store.h"

/* What store_memo_put() kept under the key, of this same state; NULL: nothing. */
const struct buf *store_memo(struct store *s, const char *key);
/* Keeps a copy, if it may and if there is memory; a few at a time. Between store_read_begin() and
 * store_read_end(), after the rows were read. */
void store_memo_put(struct store *s, const char *key, const char *text, size_t n);

#endif
