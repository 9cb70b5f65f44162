/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: a file with the results of a search so far, so that a later call can continue.
 *
 * One JSON object per line: first the aim of the search, then its results. A line that was cut off
 * by a crash is dropped.
 */
#ifndef GATE_SEARCH_JOURNAL_H
#define GATE_SEARCH_JOURNAL_H

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
 * Opens `path` and calls `take` for each line of an earlier search. GATE_USAGE if the file belongs
 * to another search, or to other conditions of measurement (`about`); `restart` empties it.
 */
enum gate_status journal_open(const char *path, const char *about, bool restart, journal_take *take,
                              void *context, struct journal *out, struct gate_error *err);

/* Writes a line, and deletes it. */
enum gate_status journal_append(struct journal *j, cJSON *line, struct gate_error *err);
void journal_close(struct journal *j);

#endif
