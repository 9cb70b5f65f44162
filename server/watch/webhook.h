/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook.h: tells another server of each step in the life of each alert.
 *
 * One POST a step, in their order: application/json, {"event": {"id", "time_ms", "who", "from",
 * "to", "reason"}, "alert": {...as in the API, as it is now}}, with the headers
 *   X-Gate-Timestamp: seconds since 1970
 *   X-Gate-Signature: sha256=HMAC-SHA256(secret, timestamp + "." + body), in hex
 * so that a receiver can refuse what is not ours (other signature) or is sent again by somebody
 * else (old timestamp). Any answer of 200 to 299 takes it; anything else, redirects too, is tried
 * again, later and later. What was taken is kept in the database, so that each step is delivered at
 * least once, over restarts; a receiver tells a second delivery by event.id. A target that is new
 * starts with the steps that come after.
 *
 * What is measured no longer is told as well, once: {"silence": {...as in the API}}.
 *
 * The background thread calls it; nothing else waits for a receiver.
 */
#ifndef SERVER_WATCH_WEBHOOK_H
#define SERVER_WATCH_WEBHOOK_H

#include "server/watch/background.h"

struct webhook;

/*
 * The address is https://HOST[:PORT][/PATH][?QUERY], or http://; the secret's file has 16 to 4096
 * bytes, and newlines at its end do not count. `reader` outlives it, as the writer does.
 * GATE_USAGE: the address or the secret is none; GATE_ENVIRONMENT: there is no curl; GATE_IO:
 * a file cannot be read.
 */
enum gate_status webhook_open(const struct background_options *options, struct store *reader,
                              struct webhook **out, struct gate_error *err);
void webhook_close(struct webhook *w); /* NULL is fine */

/* Delivers some of the steps that wait; returns after how many ms it is to be called again. */
int64_t webhook_deliver(struct webhook *w);

#endif
