/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commits.h: the commits between two revisions of the repository of the current folder.
 */
#ifndef GATE_BISECT_COMMITS_H
#define GATE_BISECT_COMMITS_H

#include <stddef.h>

#include "gate/base/error.h"

struct commits {
    char (*id)[41]; /* oldest first: `good` itself, then what leads from it to `bad` */
    size_t n;
};

/*
 * Along the first parents, so that a merge counts as one commit. The caller's (commits_release).
 * GATE_USAGE: one of them is no revision here, or `good` is no ancestor of `bad`.
 */
enum gate_status commits_between(const char *good, const char *bad, struct commits *out,
                                 struct gate_error *err);
void commits_release(struct commits *c);

/* The subject of a commit, as far as it fits; "": not known. */
void commits_subject(const char *id, char *out, size_t size);

#endif
