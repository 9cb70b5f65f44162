/* tag.c: see tag.h. */
#include "tag.h"

#include <pthread.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "store/store_mark.h"

struct tagger {
    char *speaker;
    pthread_mutex_t mutex; /* of what follows */
    struct store *store;
    bool known; /* the state at `mark` */
    struct store_mark mark;
    uint64_t state;
};

enum gate_status tagger_open(const char *db, const char *speaker, struct tagger **out,
                             struct gate_error *err)
{
    struct tagger *t = calloc(1, sizeof(*t));
    *out = NULL;
    if (!t)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    pthread_mutex_init(&t->mutex, NULL);
    t->speaker = strdup(speaker);
    enum gate_status status = t->speaker ? store_open(db, STORE_READ_ONLY, &t->store, err)
                                         : gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status != GATE_OK) {
        tagger_close(t);
        return status;
    }
    *out = t;
    return GATE_OK;
}

void tagger_close(struct tagger *t)
{
    if (!t)
        return;
    store_close(t->store);
    pthread_mutex_destroy(&t->mutex);
    free(t->speaker);
    free(t);
}

static uint64_t hash_state(const char *speaker, const char *state)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    uint64_t hash;
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)speaker, strlen(speaker) + 1);
    SHA256Update(&context, (const uint8_t *)state, strlen(state));
    SHA256Final(digest, &context);
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

/* Reads the state unless nothing was written since it was read. */
static enum gate_status refresh(struct tagger *t, struct gate_error *err)
{
    struct store_state state;
    struct store_mark mark;
    bool marked = store_mark(t->store, &mark);
    if (t->known && marked && memcmp(&mark, &t->mark, sizeof(mark)) == 0)
        return GATE_OK;
    enum gate_status status = store_state(t->store, &state, err);
    if (status != GATE_OK)
        return status;
    t->state = hash_state(t->speaker, state.text);
    t->mark = mark;
    t->known = marked;
    return GATE_OK;
}

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Tags are compared with those of the same address only: an even spread is all that is asked. */
static uint64_t hash_target(uint64_t h, const char *target)
{
    size_t len = strlen(target);
    for (; len >= 8; len -= 8, target += 8) {
        uint64_t word;
        memcpy(&word, target, 8);
        h = mix(h ^ word) + 0x9e3779b97f4a7c15u;
    }
    uint64_t last = len;
    memcpy((char *)&last + 1, target, len);
    return mix(h ^ last);
}

enum gate_status tagger_get(struct tagger *t, const char *target, struct etag *out,
                            struct gate_error *err)
{
    static const char digits[] = "0123456789abcdef";
    pthread_mutex_lock(&t->mutex);
    enum gate_status status = refresh(t, err);
    uint64_t hash = t->state;
    pthread_mutex_unlock(&t->mutex);
    if (status != GATE_OK)
        return status;
    hash = hash_target(hash, target);
    out->text[0] = '"';
    for (int i = 0; i < 16; i++, hash >>= 4)
        out->text[1 + i] = digits[hash & 15];
    out->text[17] = '"';
    out->text[18] = '\0';
    return GATE_OK;
}
