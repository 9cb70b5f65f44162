/* SPDX-License-Identifier: Apache-2.0 */
/* tag.c: see tag.h. */
#include "server/request/tag.h"

#include <pthread.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/store/store.h"

#define LOOK_NS 1e7 /* after which another process may have written */

struct tagger {
    char *speaker;
    pthread_mutex_t mutex; /* of what follows */
    struct store *store;
    bool known;
    struct store_state seen;
    uint64_t state;     /* a hash of that */
    uint64_t n_commits; /* of this process, when it was read */
    double read_ns;
};

enum gate_status tagger_open(const char *db, const char *speaker, struct tagger **out,
                             struct gate_error *err)
{
    struct tagger *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    pthread_mutex_init(&t->mutex, NULL);
    t->speaker = strdup(speaker);
    enum gate_status status = t->speaker ? store_open(db, STORE_READ_ONLY, &t->store, err)
                                         : gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status) {
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
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

/* Reads the state unless nothing can have been written since it was read. */
static enum gate_status refresh(struct tagger *t, struct gate_error *err)
{
    struct store_state state;
    uint64_t n_commits = store_n_commits();
    double now_ns = clock_ns();
    if (t->known && n_commits == t->n_commits && now_ns - t->read_ns < LOOK_NS)
        return GATE_OK;
    enum gate_status status = store_state(t->store, &state, err);
    if (status)
        return status;
    if (strcmp(state.text, t->seen.text) != 0) {
        t->state = hash_state(t->speaker, state.text);
        t->seen = state;
    }
    t->n_commits = n_commits;
    t->read_ns = now_ns;
    t->known = true;
    return GATE_OK;
}

/* Tags are compared with those of the same address only: an even spread is all that is asked. */
static uint64_t hash_target(uint64_t h, const char *target)
{
    size_t len = strlen(target);
    for (; len >= 8; len -= 8, target += 8) {
        uint64_t word;
        memcpy(&word, target, 8);
        h = seed_mix(h ^ word) + SEED_STEP;
    }
    uint64_t last = len;
    memcpy((char *)&last + 1, target, len);
    return seed_mix(h ^ last);
}

enum gate_status tagger_get(struct tagger *t, const char *target, struct etag *out,
                            struct gate_error *err)
{
    static const char digits[] = "0123456789abcdef";
    pthread_mutex_lock(&t->mutex);
    enum gate_status status = refresh(t, err);
    uint64_t hash = t->state;
    pthread_mutex_unlock(&t->mutex);
    if (status)
        return status;
    hash = hash_target(hash, target);
    out->text[0] = '"';
    for (int i = 0; i < 16; i++, hash >>= 4)
        out->text[1 + i] = digits[hash & 15];
    out->text[17] = '"';
    out->text[18] = '\0';
    return GATE_OK;
}

void tagger_renew(struct tagger *t)
{
    pthread_mutex_lock(&t->mutex);
    t->known = false;
    pthread_mutex_unlock(&t->mutex);
}
