/*
 * revision.h: which library is meant by `--against FILE`, by `--against COMMIT`, and by a stored
 * baseline.
 */
#ifndef GATE_BASELINE_REVISION_H
#define GATE_BASELINE_REVISION_H

#include "gate/base/error.h"
#include "gate/base/paths.h"

struct revision {
    char path[PATHS_MAX]; /* of a library, with a slash in it */
    char sha256[65];      /* of that file, as it was read here */
    char commit[41];      /* 40 hex digits; "" for a file */
};

/*
 * Resolves a regular file, else a git revision (commit, branch, tag, HEAD~3) of the repository that
 * the current folder is in: then it is the library `file_name` ("libours.so") of that commit, from
 * the artifact cache or, with a line on standard error, rebuilt (rebuild.h). A file wins over a
 * branch of the same name; "refs/heads/NAME" is the branch. *out is untouched on failure.
 *
 * GATE_USAGE: neither a file nor a revision. GATE_ENVIRONMENT: the commit does not build, or its
 * artifact is damaged. GATE_IO: the cache.
 */
enum gate_status revision_resolve(const char *what, const char *file_name, struct revision *out,
                                  struct gate_error *err);

/*
 * The library of a stored baseline: the artifact `sha256`, else a rebuild of `commit` ("" if
 * unknown), provided that it gives the very same file. GATE_NO_VERDICT: that library cannot be had
 * here (no artifact, and no such commit or another file from it); the message says which. Other
 * statuses as above.
 */
enum gate_status revision_resolve_baseline(const char *sha256, const char *commit,
                                           const char *file_name, struct revision *out,
                                           struct gate_error *err);

#endif
