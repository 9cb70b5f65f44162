/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: see cache.h. */
#include "server/http/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#define N_SETS 128u
#define N_WAYS 4u
#define MAX_TARGET 512          /* of addresses that are kept */
#define OVERHEAD ((size_t)2048) /* of an answer beside its body */
#define N_SEEN 1024u
#define LONG_BODY ((size_t)64 << 10)

/*
 * libmicrohttpd has no call that only takes another reference, so an answer is queued, which does,
 * under the lock of its set.
 */
struct entry {
    struct MHD_Response *response; /* NULL: free */
    uint64_t hash;
    unsigned status;
    size_t size;
    uint64_t used; /* when, in uses of the set */
    char tag[24];
    char target[MAX_TARGET];
};

struct cache_set {
    pthread_mutex_t mutex;
    uint64_t clock;
    struct entry *ways[N_WAYS];
};

/*
 * An answer is kept when it is asked for again. Most never are, and to keep each would have them
 * all written to memory that has left the processor's caches. Long ones are kept at once, since
 * they take long to make.
 */
struct cache {
    size_t max_bytes;
    atomic_size_t bytes;
    atomic_uint_fast64_t seen[N_SEEN]; /* hashes of what was asked for, by their low bits */
    struct cache_set sets[N_SETS];
};

struct cache *cache_open(size_t max_bytes)
{
    struct cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->max_bytes = max_bytes;
    for (unsigned i = 0; i < N_SETS; i++)
        pthread_mutex_init(&c->sets[i].mutex, NULL);
    return c;
}

static void drop(struct cache *c, struct entry **slot)
{
    struct entry *e = *slot;
    if (!e)
        return;
    atomic_fetch_sub(&c->bytes, e->size);
    MHD_destroy_response(e->response);
    free(e);
    *slot = NULL;
}

static void drop_all(struct cache *c)
{
    for (unsigned i = 0; i < N_SETS; i++) {
        pthread_mutex_lock(&c->sets[i].mutex);
        for (unsigned k = 0; k < N_WAYS; k++)
            drop(c, &c->sets[i].ways[k]);
        pthread_mutex_unlock(&c->sets[i].mutex);
    }
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    drop_all(c);
    for (unsigned i = 0; i < N_SETS; i++)
        pthread_mutex_destroy(&c->sets[i].mutex);
    free(c);
}

/* The tag is one of the address too, mostly; equality is decided by the strings. */
static uint64_t hash_of(const struct cache_key *key)
{
    uint64_t h = seed_hash(SEED_HASH ^ key->status, key->tag, strlen(key->tag));
    return h ^ h >> 32;
}

static bool was_seen(struct cache *c, uint64_t hash)
{
    return atomic_exchange_explicit(&c->seen[hash % N_SEEN], hash, memory_order_relaxed) == hash;
}

static struct cache_set *set_of(struct cache *c, uint64_t hash)
{
    return &c->sets[(hash >> 40) % N_SETS];
}

static bool is_it(const struct entry *e, const struct cache_key *key, uint64_t hash)
{
    return e && e->hash == hash && e->status == key->status && !strcmp(e->tag, key->tag) &&
           !strcmp(e->target, key->target);
}

bool cache_queue(struct cache *c, const struct cache_key *key, struct MHD_Connection *connection,
                 enum MHD_Result *result, size_t *bytes)
{
    uint64_t hash = hash_of(key);
    struct cache_set *set = set_of(c, hash);
    bool found = false;
    pthread_mutex_lock(&set->mutex);
    for (unsigned i = 0; i < N_WAYS && !found; i++) {
        struct entry *e = set->ways[i];
        if (is_it(e, key, hash)) {
            found = true;
            e->used = ++set->clock;
            *bytes = e->size - OVERHEAD;
            *result = MHD_queue_response(connection, key->status, e->response);
        }
    }
    pthread_mutex_unlock(&set->mutex);
    return found;
}

/* A free way, else the one that was not used for longest. */
static struct entry **choose(struct cache_set *set)
{
    struct entry **oldest = &set->ways[0];
    for (unsigned i = 0; i < N_WAYS; i++) {
        if (!set->ways[i])
            return &set->ways[i];
        if (set->ways[i]->used < (*oldest)->used)
            oldest = &set->ways[i];
    }
    return oldest;
}

bool cache_put(struct cache *c, const struct cache_key *key, struct MHD_Response *response,
               size_t size)
{
    uint64_t hash = hash_of(key);
    if (size < LONG_BODY && !was_seen(c, hash))
        return false;
    size += OVERHEAD;
    if (size > c->max_bytes / 16 || strlen(key->target) >= MAX_TARGET)
        return false;
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        return false;
    e->response = response;
    e->hash = hash;
    e->status = key->status;
    e->size = size;
    snprintf(e->tag, sizeof e->tag, "%s", key->tag);
    snprintf(e->target, sizeof e->target, "%s", key->target);
    /* Most of a full cache is answers of a state that is past. */
    if (atomic_fetch_add(&c->bytes, size) + size > c->max_bytes)
        drop_all(c);
    struct cache_set *set = set_of(c, e->hash);
    pthread_mutex_lock(&set->mutex);
    struct entry **slot = NULL;
    for (unsigned i = 0; i < N_WAYS && !slot; i++) {
        if (is_it(set->ways[i], key, e->hash))
            slot = &set->ways[i];
    }
    if (!slot)
        slot = choose(set);
    drop(c, slot);
    e->used = ++set->clock;
    *slot = e;
    pthread_mutex_unlock(&set->mutex);
    return true;
}
