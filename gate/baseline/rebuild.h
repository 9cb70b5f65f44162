/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.h: a commit's kernel library, built from its sources once more.
 *
 * The commit is checked out in a worktree of its own below the artifact cache, built there by
 * its own Makefile, stored as an artifact, noted as that commit's library, and the worktree is
 * removed, also after a failure. What a killed process left behind goes with the next rebuild of
 * the same commit; two at a time of one commit wait for each other.
 *
 *     <cache>/worktrees/<commit>.XXXXXX   the checkout, <commit>.lock the lock
 *     <cache>/logs/<commit>-<file>.log    what git and make wrote, kept
 */
#ifndef GATE_BASELINE_REBUILD_H
#define GATE_BASELINE_REBUILD_H

#include "gate/base/error.h"
#include "gate/base/paths.h"

/* How a library is built. */
struct rebuild_recipe {
    const char *command; /* for a shell; NULL: make build/lib/kernel-gate/<library> at the top */
    const char *folder;  /* of this repository, in which the command is run: "" or "../" */
    const char *library; /* relative to it, what the command makes; NULL: nothing is known */
};

#define REBUILD_TIMEOUT_S 900 /* unless $GATE_BUILD_TIMEOUT, in whole seconds, says otherwise */

/*
 * The library of `commit` (40 hex digits): its artifact where there is one, else what the recipe
 * makes of that commit of the repository that the current folder is in; a line on standard error
 * says so first, since it takes minutes.
 *
 * GATE_USAGE: a recipe without a library or with one outside of the checkout, a bad
 * $GATE_BUILD_TIMEOUT. GATE_ENVIRONMENT: the commit cannot
 * be checked out or built, or not in time (the message has the log's path and last lines), or its
 * artifact is damaged. GATE_IO: the cache.
 */
enum gate_status rebuild_commit(const char *commit, const struct rebuild_recipe *recipe,
                                char path[PATHS_MAX], char sha256[65], struct gate_error *err);

#endif
