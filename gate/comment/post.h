/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post.h: one comment on a pull or merge request, written once and then kept up to date.
 *
 * It is known by a marker in its first line and by its author: a comment that somebody else began
 * with the marker is left alone.
 */
#ifndef GATE_COMMENT_POST_H
#define GATE_COMMENT_POST_H

#include "gate/comment/target.h"

#define COMMENT_NAME_MAX 60

/* Bytes that a comment may have: GitHub takes 65,536 characters, GitLab 1,000,000. */
size_t comment_max(enum comment_service service);

/* Puts the line by which the comment of this name is known. False: no such name, which is of
 * letters, digits, '.', '_' and '-'. */
bool comment_marker(const char *name, char *out, size_t size);

/*
 * Writes or updates; `body` begins with the marker. What may pass is tried again for `patience_s`.
 * *created: it was not there; `url` of GitHub's, else "". GATE_IO: it could not be written.
 * GATE_NO_VERDICT: the change has a newer commit. The target's number is found on the way where
 * need be.
 */
enum gate_status comment_post(struct comment_target *t, const char *marker, const char *body,
                              double patience_s, bool *created, char url[300],
                              struct gate_error *err);

#endif
