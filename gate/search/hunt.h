/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.h: the state of one search, which the parts of gate-search share.
 *
 * candidates.c makes the candidates and lets them race, candidate.c builds and measures one,
 * answer.c reports what was seen. All measurements are kept in a journal, so that the same command
 * continues an interrupted search.
 */
#ifndef GATE_SEARCH_HUNT_H
#define GATE_SEARCH_HUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/search/journal.h"
#include "gate/base/json.h"
#include "gate/baseline/revision.h"
#include "gate/search/compare.h"
#include "gate/cli/search_request.h"
#include "gate/search/parameters.h"
#include "gate/search/race.h"

#define CANDIDATES_MAX COMBINATIONS_MAX

struct candidate {
    char name[PATHS_MAX]; /* its parameters, or its file */
    size_t choice[PARAMETERS_MAX];
    bool is_file, is_prepared;
    char path[PATHS_MAX]; /* in the cache */
    char sha256[65], code[65], reason[300];
    size_t n_runs, n_confirming; /* of the race, and of its confirmation */
};

struct hunt {
    const struct search_request *request;
    struct parameters parameters;
    struct revision against;
    char against_code[65], folder[PATHS_MAX], seen[PATHS_MAX];
    struct measure_options how;
    struct journal journal;
    cJSON *found; /* lines of the journal, an array */
    struct candidate *candidates;
    struct racer *racers;
    struct race race;
    size_t n_runs, n_proposals;
    size_t n_earlier; /* of the runs: from the journal */
    double deadline;
};

/* The k-th line of the journal that has a member `kind` and is of this candidate; NULL: it is not
 * there yet. */
const cJSON *hunt_find_line(const struct hunt *h, const char *kind, const char *name, size_t k);

cJSON *hunt_new_line(const char *kind, const char *value, const char *name);

/* Of a candidate that was measured: in, beaten, wrong or failed. */
const char *hunt_state_name(enum racer_state state);

/* For struct race: measures the i-th candidate once, or takes the run from the journal. */
enum gate_status hunt_measure(void *context, size_t i, size_t confirmation, struct race_run *out,
                              struct gate_error *err);

/* Tells the race, which is over, what earlier calls confirmed. */
void hunt_recall_confirmations(struct hunt *h);

/* For struct race: is there time, and are there runs left? */
bool hunt_goes_on(void *context);

/* Lets the candidates race: those that are known before, or those that a command proposes. */
enum gate_status hunt_race_known(struct hunt *h, uint64_t seed, struct gate_error *err);
enum gate_status hunt_race_proposals(struct hunt *h, struct gate_error *err);

/* What was seen so far; the caller deletes it. */
cJSON *hunt_describe(const struct hunt *h);

void hunt_print_json(const struct hunt *h, const struct race_end *end);
void hunt_print_text(const struct hunt *h, const struct race_end *end);

#endif
