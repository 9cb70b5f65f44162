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
 * The tag of `target` in the present state of the database; it stays valid over a restart. What
 * this process has committed is in it, what another one did within 10 ms may not be. A commit that
 * comes after it makes the tag too old, which costs a second answer and not a wrong one, as long as
 * it is asked for before the rows are. Several threads may call it.
 */
enum gate_status tagger_get(struct tagger *t, const char *target, struct etag *out,
                            struct gate_error *err);

/*
 * The next tag is of the state that the database has then. Call it when rows were read under a tag,
 * and are not as old as those that it was last called for: they may be newer than the tag, and a
 * client that has seen them must not be sent an older answer that is kept under that tag.
 */
void tagger_renew(struct tagger *t);

#endif
