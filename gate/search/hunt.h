/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.h: the state of one search, which the parts of gate-search share.
 *
 * candidates.c makes the candidates, measures them and lets them race, main.c keeps the journal and
 * reports what was seen.
 */
#ifndef GATE_SEARCH_HUNT_H
#define GATE_SEARCH_HUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/json.h"
#include "gate/baseline/revision.h"
#include "gate/cli/run_request.h"
#include "gate/search/race.h"

#define PARAMETERS_MAX OPTION_LIST_MAX
#define PARAMETER_VALUES_MAX 64
#define PARAMETER_CHARACTERS_MAX 40
#define CANDIDATES_MAX 1024

/* A named value that a library is built with; the candidates are all combinations of them. */
struct parameter {
    char name[PARAMETER_CHARACTERS_MAX + 1];
    char value[PARAMETER_VALUES_MAX][PARAMETER_CHARACTERS_MAX + 1];
    size_t n;
};

struct candidate {
    char name[PATHS_MAX]; /* its parameters, "TILE=64 STAGES=3", or its file */
    bool is_file, is_prepared;
    char path[PATHS_MAX]; /* in the cache */
    char sha256[65], code[65], reason[300];
    size_t n_runs, n_confirming; /* of the race, and of its confirmation */
};

struct hunt {
    const struct search_request *request;
    const struct options_seen *given; /* of its call */
    struct parameter parameters[PARAMETERS_MAX];
    size_t n_parameters;
    struct revision against;
    char against_code[65], seen[PATHS_MAX], report[PATHS_MAX], journal_path[PATHS_MAX];
    int journal;  /* -1: not open */
    cJSON *found; /* its lines, an array */
    struct candidate *candidates;
    struct race race;
    size_t n_runs, n_proposals;
    size_t n_earlier; /* of the runs: from the journal */
    double deadline;
};

/* Of a candidate that was measured: in, beaten, wrong or failed. */
extern const char *const hunt_states[RACER_FAILED + 1];

/* The k-th line of the journal that has a member `kind` and is of this candidate; NULL: it is not
 * there yet. */
const cJSON *hunt_find_line(const struct hunt *h, const char *kind, const char *name, size_t k);
cJSON *hunt_new_line(const char *kind, const char *value, const char *name);

/* Adds a line to the journal, which owns it then. */
enum gate_status hunt_keep_line(struct hunt *h, cJSON *line, struct gate_error *err);

/* Lets the candidates race, those that are known before or those that a command proposes, and
 * confirms the fastest. */
enum gate_status hunt_race(struct hunt *h, uint64_t seed, struct race_end *out,
                           struct gate_error *err);

/* What was seen so far; the caller deletes it. */
cJSON *hunt_describe(const struct hunt *h);

#endif
