/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h: answers that were given before, kept ready to be sent again.
 *
 * A tag and an address together name one answer, which never changes. So no answer in the cache is
 * out of date. When the cache needs room, it drops the answers that nobody requests any more.
 */
#ifndef SERVER_HTTP_CACHE_H
#define SERVER_HTTP_CACHE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct cache;

struct cache_key {
    const char *tag; /* with "-gz" when these are gzip's bytes */
    const char *target;
    unsigned status;
};

struct cache *cache_open(size_t max_bytes); /* NULL: out of memory */
void cache_close(struct cache *c);          /* NULL is fine */

/* Sends the answer if it is there: queues it and sets *result and *bytes. */
bool cache_queue(struct cache *c, const struct cache_key *key, struct MHD_Connection *connection,
                 enum MHD_Result *result, size_t *bytes);

/* Keeps an answer, whose body has `size` bytes, and takes over the caller's reference. Returns
 * false, and leaves the reference to the caller, when the answer is short and was not requested
 * before, when it is too large, or when memory is short. */
bool cache_put(struct cache *c, const struct cache_key *key, struct MHD_Response *response,
               size_t size);

#endif
