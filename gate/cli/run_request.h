/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_request.h: what `gate run`, `gate compare` and `gate calibrate` are asked for, and the work
 * that they share: everything from the command line to the exit code.
 */
#ifndef GATE_CLI_RUN_REQUEST_H
#define GATE_CLI_RUN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/cli/cmd_common.h"
#include "gate/device/device_lock.h"
#include "gate/run/run.h"
#include "gate/run/target.h"

#define REQUEST_REPORTS_MAX 8

struct report_request {
    enum report_format format;
    const char *path;
};

struct run_request {
    struct target_choice target;
    struct option_list providers;
    const char *suite, *filter, *db, *baselines, *main_branch, *build, *built;
    struct run_policy policy; /* policy.against is "baseline", a file or a commit; policy.other may
                                 be NULL: it goes by that */
    double wait_s;            /* for a busy device */
    bool history;             /* the run is stored, and the stored baselines may follow it */
    bool counters;            /* of each regression, by a profiler */
    bool no_ceilings;
    bool json, print_config;
    struct origin_choice origin;
    struct shard shard; /* count 0: the whole suite */
    struct command_link link;
    const char *seed_text; /* NULL: a fresh one is taken */
    uint64_t seed;
    struct report_request reports[REQUEST_REPORTS_MAX];
    size_t n_reports;
    struct rebuild_recipe recipe; /* its library NULL: it goes by the options */
};

/* Options of struct run_request: what is looked at, how it is measured, what is judged,
 * and whose code it is. */
extern const struct option_def request_options[], request_measure_options[],
    request_report_options[], request_full_options[], request_library_options[],
    request_provider_options[], request_origin_options[], request_build_options[];

/* The defaults of all commands. */
void run_request_init(struct run_request *r);

/* How the library of a commit is built, for what `host` says of the device. */
struct rebuild_recipe run_request_recipe(const struct run_request *r, bool host);

/* Checks, measures, stores, reports. Returns the exit code. */
int run_request_execute(const struct command *command, struct run_request *r);

/* What is needed before anything is measured: suite, target and a worker with its device. */
struct run_setup {
    struct suite suite;
    bool own_suite; /* a file, and none of those that come with the gate */
    struct shard shard;
    struct target target;
    struct supervisor *supervisor;
    struct device_lock lock; /* of the device, against other gates */
};
enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err);
void run_setup_close(struct run_setup *s);

/* Reads a run document as it will be read, before anybody else sees it, and puts it into the
 * history (NULL: there is none). *out is to be released where it is GATE_OK. */
enum gate_status run_request_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err);

/* Stores nothing: writes the reports that were asked for and prints the table or the document. */
enum gate_status run_request_report(const struct run_request *r, const struct document *document,
                                    struct gate_error *err);

/* Before anything is measured: in place of old reports there is now one that says that the run has
 * not ended, so that none of another run is left, however this one ends. */
enum gate_status run_request_open_reports(const struct run_request *r, struct gate_error *err);

/* The run ended early: the reports say so. */
void run_request_fail_reports(const struct run_request *r, const struct gate_error *why);

/* From the system's randomness. */
uint64_t run_request_fresh_seed(void);

/* A line on standard error that is written over and over; nothing unless that is a terminal. */
void run_request_progress(const char *text);

#endif
