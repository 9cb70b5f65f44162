/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: what a search has found so far, a file that outlives it, so that it can go on.
 *
 * One JSON object a line: first what is looked for, then a commit with its state each. A line that
 * was cut off by a crash is dropped.
 */
#ifndef GATE_BISECT_JOURNAL_H
#define GATE_BISECT_JOURNAL_H

#include "gate/base/error.h"
#include "gate/base/paths.h"
#include "gate/bisect/commits.h"
#include "gate/bisect/search.h"

/* What is known of a commit. */
struct finding {
    enum search_state state;
    char code[65];    /* of its library's machine code, or of the file; "": not built */
    double log_ratio; /* to the good commit; NaN: not measured */
    char reason[300];
};

struct journal {
    char path[PATHS_MAX];
    int file; /* -1: not open */
};

/*
 * Opens `path` and fills `findings`, one for each commit. A file of another search, or of another
 * `about` (what it is measured with), is GATE_USAGE; `restart` empties it.
 */
enum gate_status journal_open(const char *path, const char *about, bool restart,
                              const struct commits *commits, struct journal *out,
                              struct finding *findings, struct gate_error *err);
enum gate_status journal_put(struct journal *j, const char *commit, const struct finding *f,
                             struct gate_error *err);
void journal_close(struct journal *j);

#endif
