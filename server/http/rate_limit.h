/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_limit.h: how often somebody may ask: token buckets in a table of fixed size.
 *
 * Who was not seen for longest is forgotten first, and starts with a full bucket when seen again.
 */
#ifndef SERVER_HTTP_RATE_LIMIT_H
#define SERVER_HTTP_RATE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits;

/* `rate` a second, and up to `burst` at once. NULL: out of memory. */
struct limits *limits_open(int64_t rate, int64_t burst);
void limits_close(struct limits *l); /* NULL is fine */

/* Takes one; false: wait for *retry_after seconds. Several threads may call it. */
bool limits_take(struct limits *l, uint64_t key, int64_t now_ms, unsigned *retry_after);

/* A key that outsiders cannot foresee, so that they cannot collide with others by will. */
uint64_t limits_key(const struct limits *l, const void *bytes, size_t n);

#endif
