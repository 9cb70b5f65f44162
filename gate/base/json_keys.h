/*
 * json_keys.h: the keys of the objects that json_parse.c is in, to find those that come twice.
 */
#ifndef GATE_BASE_JSON_KEYS_H
#define GATE_BASE_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json_key {
    size_t name; /* offset in json_keys.names */
    size_t len;
    size_t at; /* offset in the text */
    uint32_t hash;
};

struct json_keys {
    struct buf names; /* each with its NUL */
    struct json_key *keys;
    size_t n, cap;
};

void json_keys_init(struct json_keys *k, size_t max_bytes);
void json_keys_release(struct json_keys *k);

/* Takes the key whose characters were appended to `names` from `start` on. False: no memory. */
bool json_keys_add(struct json_keys *k, size_t start, size_t at);

/* Ends an object, whose keys are those from `first` on: where the first one stands in the text that
 * the object has already, SIZE_MAX when there is none. */
size_t json_keys_close(struct json_keys *k, size_t first);

/* The one that was added last, for as long as none is added. */
struct json_name {
    const char *text;
    size_t len;
    uint32_t hash;
};

static inline struct json_name json_keys_last(const struct json_keys *k)
{
    const struct json_key *key = &k->keys[k->n - 1];
    return (struct json_name){k->names.data + key->name, key->len, key->hash};
}

#endif
