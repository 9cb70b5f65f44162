/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h: answers that were given before, kept ready to be sent again.
 *
 * What a tag and an address name never changes, so nothing in here can be out of date; what no
 * longer is asked for is dropped when the room is needed.
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

/* Keeps an answer, whose body has `size` bytes, and with it the caller's reference. False: it is
 * short and was not asked for before, it is too large, or memory is short; the reference stays the
 * caller's. */
bool cache_put(struct cache *c, const struct cache_key *key, struct MHD_Response *response,
               size_t size);

#endif
