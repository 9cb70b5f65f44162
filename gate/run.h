/*
 * run.h: one run of a suite: measure every case, decide, and write down what was seen.
 */
#ifndef GATE_RUN_H
#define GATE_RUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "best.h"
#include "decide.h"
#include "origin.h"
#include "suite.h"
#include "supervisor.h"

struct run_case {
    const struct suite_case *about;
    struct case_result result; /* of the process that the verdict rests on */
    struct estimate p50_ns[DECIDE_LOOKS];
    size_t n_processes;
    bool has_best;
    struct best_entry best;
    struct decision decision;
    enum verdict verdict;
    char reason[1000];
};

struct run {
    const struct suite *suite;
    const struct best *best;
    struct origin origin;
    double threshold;
    double budget_ms; /* for the samples of one case in one process */
    uint64_t seed;
    int64_t start_ms, end_ms;
    cJSON *greeting; /* of the worker: device, contract, libraries, absent */
    struct run_case *cases;
    size_t counts[VERDICT_COUNT];
};

/* Called before each case is given to a worker; `done` cases of `n` are behind. */
typedef void (*run_progress_fn)(void *context, const struct suite_case *c, size_t done, size_t n,
                                unsigned look);

/*
 * Measures all cases of run->suite in shuffled order, those that are not clear again in fresh
 * processes, and fills cases, counts and times. Fails only when no worker can be had any more.
 */
enum gate_status run_measure(struct run *run, struct supervisor *s, run_progress_fn progress,
                             void *context, struct gate_error *err);

/*
 * Stores the measurement of each case that is right and has no best as its best, and turns its
 * verdict to pass. Returns how many there were in *n.
 */
enum gate_status run_accept_new(struct run *run, struct best *best, size_t *n,
                                struct gate_error *err);

/* The run document (run.schema.json); the caller's. NULL: out of memory. */
cJSON *run_document(const struct run *run);

int run_exit_code(const struct run *run);
void run_release(struct run *run);

#endif
