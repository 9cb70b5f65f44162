/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_hunt.h: the state of one 'gate search', which its parts share.
 *
 * search_candidates.c makes the candidates and lets them race, search_measure.c builds and measures
 * one, search_answer.c reports what was seen. All that is measured is kept in a journal, from which
 * the same command goes on.
 */
#ifndef GATE_CLI_SEARCH_HUNT_H
#define GATE_CLI_SEARCH_HUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/journal.h"
#include "gate/base/json.h"
#include "gate/baseline/revision.h"
#include "gate/search/measure.h"
#include "gate/cli/run_request.h"
#include "gate/search/parameters.h"
#include "gate/search/race.h"

#define CANDIDATES_MAX COMBINATIONS_MAX
#define SEARCH_SEEN "SEARCH_SEEN" /* the variable with the file of what was seen */

struct search_request {
    struct run_request run;
    const char *case_id, *against, *from, *propose, *strategy;
    struct option_list parameters;
    double gain, risk, max_time_s, patience_s;
    int64_t max_runs;
    bool restart;
};

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
