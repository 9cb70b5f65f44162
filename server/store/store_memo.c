/*
 * store_memo.c: see store_memo.h.
 *
 * The tables of a trend's track, its series and its best are large, and those of a page of curves
 * far from each other; between two runs the same ones are asked for again and again.
 */
#include "store_memo.h"

#include <stdlib.h>
#include <string.h>

#include "store_private.h"

#define N_MEMOS 1024u
#define N_WAYS 4u /* places for a key */
#define MAX_BYTES ((size_t)2 << 10)

struct memo {
    struct store_mark mark;
    size_t key_len;
    size_t n;
    char *bytes; /* the key, then what is kept; NULL: nothing is here */
};

static uint32_t hash_of(const char *key, size_t len)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x01000193u;
    return hash ^ hash >> 16;
}

static bool is_of_state(const struct memo *m, const struct store *s)
{
    return m->bytes && memcmp(&m->mark, &s->mark, sizeof(m->mark)) == 0;
}

static bool is_it(const struct memo *m, const char *key, size_t len)
{
    return m->key_len == len && memcmp(m->bytes, key, len) == 0;
}

/* Where to put a key: over what is past, else over one of the others. */
static struct memo *choose(const struct store *s, uint32_t hash)
{
    for (uint32_t i = 0; i < N_WAYS; i++) {
        struct memo *m = &s->memos[(hash + i) % N_MEMOS];
        if (!is_of_state(m, s))
            return m;
    }
    return &s->memos[(hash + hash / N_MEMOS % N_WAYS) % N_MEMOS];
}

/* A name has no control characters, so each has one before it that says whether there is one. */
bool store_memo_key(char key[STORE_MEMO_KEY], const char *kind, const char *const names[], size_t n)
{
    size_t at = strlen(kind);
    memcpy(key, kind, at);
    for (size_t i = 0; i < n; i++) {
        size_t len = names[i] ? strlen(names[i]) : 0;
        if (len + 3 > STORE_MEMO_KEY - at)
            return false;
        key[at++] = names[i] ? '\n' : '\t';
        memcpy(key + at, names[i] ? names[i] : "", len);
        at += len;
    }
    key[at] = '\0';
    return true;
}

const void *store_memo(struct store *s, const char *key, size_t *n)
{
    if (!s->at_mark || !s->memos)
        return NULL;
    size_t len = strlen(key);
    uint32_t hash = hash_of(key, len);
    for (uint32_t i = 0; i < N_WAYS; i++) {
        const struct memo *m = &s->memos[(hash + i) % N_MEMOS];
        if (is_of_state(m, s) && is_it(m, key, len)) {
            *n = m->n;
            return m->bytes + len;
        }
    }
    return NULL;
}

void store_memo_put(struct store *s, const char *key, const void *bytes, size_t n)
{
    size_t len = strlen(key);
    if (!s->at_mark || len + n > MAX_BYTES ||
        (!s->memos && !(s->memos = calloc(N_MEMOS, sizeof(*s->memos)))))
        return;
    struct memo *m = choose(s, hash_of(key, len));
    free(m->bytes);
    m->bytes = malloc(len + n);
    if (!m->bytes)
        return;
    m->mark = s->mark;
    m->key_len = len;
    m->n = n;
    memcpy(m->bytes, key, len);
    memcpy(m->bytes + len, bytes, n);
}

void store_memo_release(struct store *s)
{
    for (size_t i = 0; s->memos && i < N_MEMOS; i++)
        free(s->memos[i].bytes);
    free(s->memos);
    s->memos = NULL;
}
