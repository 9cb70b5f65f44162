/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.c: see rate_limit.h. */
#include "server/http/rate_limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gate/base/seed.h"

#define N_SETS 512u
#define N_WAYS 4u
#define WHOLE 1000 /* a token is counted in thousandths: one a ms and unit of rate */

struct bucket {
    uint64_t key; /* 0: free */
    int64_t level;
    int64_t seen_ms;
};

struct bucket_set {
    pthread_mutex_t mutex;
    struct bucket ways[N_WAYS];
};

struct limits {
    int64_t rate, full;
    uint64_t seed;
    struct bucket_set sets[N_SETS];
};

struct limits *limits_open(int64_t rate, int64_t burst)
{
    struct limits *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->rate = rate;
    l->full = burst * WHOLE;
    if (getrandom(&l->seed, sizeof l->seed, 0) != sizeof l->seed) {
        free(l);
        return NULL;
    }
    for (unsigned i = 0; i < N_SETS; i++)
        pthread_mutex_init(&l->sets[i].mutex, NULL);
    return l;
}

void limits_close(struct limits *l)
{
    if (!l)
        return;
    for (unsigned i = 0; i < N_SETS; i++)
        pthread_mutex_destroy(&l->sets[i].mutex);
    free(l);
}

uint64_t limits_key(const struct limits *l, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = seed_mix(l->seed + n);
    for (size_t i = 0; i < n; i++)
        h = seed_mix(h ^ p[i]);
    return h | 1;
}

/* The key's bucket, else the one that was not seen for longest, filled anew. */
static struct bucket *find(const struct limits *l, struct bucket_set *set, uint64_t key,
                           int64_t now_ms)
{
    struct bucket *oldest = &set->ways[0];
    for (unsigned i = 0; i < N_WAYS; i++) {
        struct bucket *b = &set->ways[i];
        if (b->key == key)
            return b;
        if (b->key == 0 || (oldest->key != 0 && b->seen_ms < oldest->seen_ms))
            oldest = b;
    }
    *oldest = (struct bucket){key, l->full, now_ms};
    return oldest;
}

bool limits_take(struct limits *l, uint64_t key, int64_t now_ms, unsigned *retry_after)
{
    struct bucket_set *set = &l->sets[(key >> 32) % N_SETS];
    pthread_mutex_lock(&set->mutex);
    struct bucket *b = find(l, set, key, now_ms);
    int64_t passed = now_ms - b->seen_ms;
    if (passed > 0) {
        /* Full again within full / rate; compared like this, nothing overflows. */
        b->level = passed >= l->full / l->rate + 1 ? l->full : b->level + passed * l->rate;
        if (b->level > l->full)
            b->level = l->full;
        b->seen_ms = now_ms;
    }
    bool good = b->level >= WHOLE;
    if (good)
        b->level -= WHOLE;
    else
        *retry_after = (unsigned)((WHOLE - b->level) / l->rate / 1000 + 1);
    pthread_mutex_unlock(&set->mutex);
    return good;
}
