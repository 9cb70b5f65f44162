/* store_memo.c: see store_memo.h. */
#include "store_memo.h"

#include <stdlib.h>
#include <string.h>

#include "store_private.h"

#define MAX_TEXT ((size_t)64 << 10)

bool store_is_at_mark(struct store *s)
{
    struct store_mark now;
    return s->marked && sqlite3_txn_state(s->db, "main") != SQLITE_TXN_NONE &&
           store_mark(s, &now) && memcmp(&now, &s->mark, sizeof(now)) == 0;
}

const struct buf *store_memo(struct store *s, const char *key)
{
    if (!store_is_at_mark(s))
        return NULL;
    for (size_t i = 0; i < STORE_N_MEMOS; i++) {
        const struct memo *m = &s->memos[i];
        if (m->key && memcmp(&m->mark, &s->mark, sizeof(m->mark)) == 0 && strcmp(m->key, key) == 0)
            return &m->text;
    }
    return NULL;
}

static void forget(struct memo *m)
{
    if (m->key)
        buf_release(&m->text);
    free(m->key);
    m->key = NULL;
}

void store_memo_put(struct store *s, const char *key, const char *text, size_t n)
{
    if (n > MAX_TEXT || !store_is_at_mark(s))
        return;
    struct memo *m = &s->memos[s->next_memo++ % STORE_N_MEMOS];
    forget(m);
    m->key = strdup(key);
    if (!m->key)
        return;
    m->mark = s->mark;
    buf_init(&m->text, MAX_TEXT);
    buf_append(&m->text, text, n);
    if (m->text.failed)
        forget(m);
}

void store_memo_release(struct store *s)
{
    for (size_t i = 0; i < STORE_N_MEMOS; i++)
        forget(&s->memos[i]);
}
