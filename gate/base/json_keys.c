/* json_keys.c: see json_keys.h. */
#include "base/json_keys.h"

#include <stdlib.h>
#include <string.h>

#define FEW_KEYS 32 /* of an object: each pair of them is compared */

void json_keys_init(struct json_keys *k, size_t max_bytes)
{
    *k = (struct json_keys){0};
    buf_init(&k->names, max_bytes);
}

void json_keys_release(struct json_keys *k)
{
    buf_release(&k->names);
    free(k->keys);
}

/* FNV-1a: keys are short. Who makes keys of one hash pays no more than for comparing them all. */
static uint32_t hash_of(const char *s, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)s[i]) * 16777619u;
    return hash;
}

static bool has_room(struct json_keys *k)
{
    if (k->n < k->cap)
        return true;
    size_t cap = k->cap ? 2 * k->cap : 32;
    struct json_key *keys = realloc(k->keys, cap * sizeof(*keys));
    if (!keys)
        return false;
    k->keys = keys;
    k->cap = cap;
    return true;
}

bool json_keys_add(struct json_keys *k, size_t start, size_t at)
{
    size_t len = k->names.len - start;
    buf_append(&k->names, "", 1);
    if (k->names.failed || !has_room(k))
        return false;
    uint32_t hash = hash_of(k->names.data + start, len);
    k->keys[k->n++] = (struct json_key){.name = start, .len = len, .at = at, .hash = hash};
    return true;
}

static bool are_equal(const struct json_keys *k, const struct json_key *a, const struct json_key *b)
{
    return a->hash == b->hash && a->len == b->len &&
           memcmp(k->names.data + a->name, k->names.data + b->name, a->len) == 0;
}

static size_t find_among_few(const struct json_keys *k, const struct json_key *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t before = 0; before < i; before++) {
            if (are_equal(k, &keys[before], &keys[i]))
                return keys[i].at;
        }
    }
    return SIZE_MAX;
}

static int compare_keys(const void *a, const void *b, void *names)
{
    const struct json_key *x = a, *y = b;
    int order = strcmp((const char *)names + x->name, (const char *)names + y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Changes their order. */
static size_t find_among_many(const struct json_keys *k, struct json_key *keys, size_t n)
{
    size_t duplicate = SIZE_MAX;
    qsort_r(keys, n, sizeof(*keys), compare_keys, k->names.data);
    for (size_t i = 1; i < n; i++) {
        if (keys[i].at < duplicate && are_equal(k, &keys[i - 1], &keys[i]))
            duplicate = keys[i].at;
    }
    return duplicate;
}

size_t json_keys_close(struct json_keys *k, size_t first)
{
    size_t n = k->n - first;
    if (n == 0)
        return SIZE_MAX;
    struct json_key *keys = k->keys + first;
    k->names.len = keys[0].name;
    k->n = first;
    return n <= FEW_KEYS ? find_among_few(k, keys, n) : find_among_many(k, keys, n);
}
