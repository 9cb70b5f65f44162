/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.h: the ETags of what is read from the database, cheap enough to be asked for each request.
 */
#ifndef SERVER_REQUEST_TAG_H
#define SERVER_REQUEST_TAG_H

#include "gate/base/error.h"
#include "server/request/reply.h"

struct tagger;

/* `speaker` names this program and its settings: another one may say the same things otherwise. */
enum gate_status tagger_open(const char *db, const char *speaker, struct tagger **out,
                             struct gate_error *err);
void tagger_close(struct tagger *t); /* NULL is fine */

/*
 * Makes the tag of `target` for the present state of the database. The tag is the same after a
 * restart. It includes every commit of this process; a commit of another process within the last 10
 * ms may be missing. Call this before reading the rows: a commit in between makes the tag too old,
 * so the client asks a second time, but never gets a wrong answer. Several threads may call it.
 */
enum gate_status tagger_get(struct tagger *t, const char *target, struct etag *out,
                            struct gate_error *err);

/*
 * Makes the next tagger_get() read the state again. Call it after an answer whose rows were newer
 * than those that its connection had read before. Such rows may be newer than their tag, and a
 * client that has seen them must not get an older answer that is cached under that tag.
 */
void tagger_renew(struct tagger *t);

#endif
