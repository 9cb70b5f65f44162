/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: what a search has found so far, a file that outlives it, so that it can go on.
 *
 * One JSON object a line: first what is looked for, then what was found. A line that was cut off by
 * a crash is dropped.
 */
#ifndef GATE_BASE_JOURNAL_H
#define GATE_BASE_JOURNAL_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "gate/base/error.h"
#include "gate/base/paths.h"

struct journal {
    char path[PATHS_MAX];
    int file; /* -1: not open */
};

typedef void journal_take(void *context, const cJSON *line);

/*
 * Opens `path` and calls `take` for each line of an earlier search. A file of another search, or of
 * another `about` (what it is measured with), is GATE_USAGE; `restart` empties it.
 */
enum gate_status journal_open(const char *path, const char *about, bool restart, journal_take *take,
                              void *context, struct journal *out, struct gate_error *err);

/* Writes a line, and deletes it. */
enum gate_status journal_append(struct journal *j, cJSON *line, struct gate_error *err);
void journal_close(struct journal *j);

#endif
