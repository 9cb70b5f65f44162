/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revision.h: which library is meant by `--against FILE`, by `--against COMMIT`, and by a stored
 * baseline.
 */
#ifndef GATE_BASELINE_REVISION_H
#define GATE_BASELINE_REVISION_H

#include "gate/base/error.h"
#include "gate/base/paths.h"
#include "gate/baseline/baseline.h"

/* How a library is built. */
struct rebuild_recipe {
    const char *command; /* for a shell; NULL: make build/lib/kernel-gate/<library> at the top */
    const char *folder;  /* of this repository, in which the command is run: "" or "../" */
    const char *library; /* relative to it, what the command makes; NULL: nothing is known */
};

struct revision {
    char path[PATHS_MAX]; /* of a library, with a slash in it */
    char sha256[65];      /* of that file, as it was read here */
    char commit[41];      /* 40 hex digits; "" for a file */
    bool other_code;      /* a rebuild whose launches are to be compared with the stored ones */
};

/*
 * Resolves a regular file, else a git revision (commit, branch, tag, HEAD~3) of the repository that
 * the current folder is in: then it is the library of that commit, from the artifact cache or, with
 * a line on standard error, rebuilt by the recipe. A file wins over a branch of the
 * same name; "refs/heads/NAME" is the branch. *out is untouched on failure.
 *
 * GATE_USAGE: neither a file nor a revision, or no recipe. GATE_ENVIRONMENT: the commit does not
 * build, or its artifact is damaged. GATE_IO: the cache.
 */
enum gate_status revision_resolve(const char *what, const struct rebuild_recipe *recipe,
                                  struct revision *out, struct gate_error *err);

/* Whether revision_resolve() would know it, without a build. GATE_USAGE: it would not. */
enum gate_status revision_check(const char *what, struct gate_error *err);

/*
 * The commit at which the tree of the current folder left branch `base`, of origin where it is
 * fetched. GATE_USAGE: there is no such branch here, or no commit that both have.
 */
enum gate_status revision_merge_base(const char *base, char commit[41], struct gate_error *err);

/*
 * The library of a stored baseline: its artifact, else a rebuild of its commit, provided that it
 * gives the very same file or, in another file, the same machine code; out->sha256 says which.
 * Where the baseline stores what its launch() runs, the host's code may differ (out->other_code),
 * and whoever runs it compares. GATE_NO_VERDICT: that library cannot be had here (no artifact, and
 * no such commit or another file from it); the message says which. Other statuses as above.
 */
enum gate_status revision_resolve_baseline(const struct baseline_entry *entry,
                                           const struct rebuild_recipe *recipe,
                                           struct revision *out, struct gate_error *err);

/* ---- the build of a commit ---- */

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

/*
 * Do two builds of a commit run the same on the GPU? Else `why` says what differs first: "kernel 2
 * of 3 has grid 66x1x1, the stored one 132x1x1".
 *
 * A text has a part for each kernel of a call of launch(), in the order of their first launch, and
 * one for the launches as a whole, with "; " between them; each is names and values by turns:
 *
 *     launches 1 code <sha256> grid 132x1x1 block 384x1x1 shared 232448; order <16 hex digits>
 *
 * `order` is a hash of the order of the launches, their clusters, attributes and dependencies.
 */
bool launches_are_equal(const char *stored, const char *now, char *why, size_t size);

#endif
