/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_request.h: what `gate run`, `gate compare`, `gate calibrate` and others are asked for, what
 * is needed before anything is measured, and the reports of a run.
 */
#ifndef GATE_CLI_RUN_REQUEST_H
#define GATE_CLI_RUN_REQUEST_H

#include "gate/base/process.h"
#include "gate/cli/commands.h"
#include "gate/device/device_lock.h"
#include "gate/run/run.h"
#include "gate/run/supervisor.h"

#define REQUEST_REPORTS_MAX 8

struct report_request {
    enum report_format format;
    const char *path;
};

struct run_request {
    struct supervisor_options target; /* as target_resolve() takes it */
    bool without_vendors;
    struct option_list providers;
    const char *suite, *filter, *db, *baselines, *main_branch, *build, *built;
    struct run_policy policy; /* policy.against is "baseline", a file or a commit; policy.other may
                                 be NULL: it goes by that */
    double wait_s;            /* for a busy device */
    bool history;             /* the run is stored, and the stored baselines may follow it */
    bool counters;            /* of each regression, by a profiler */
    bool no_ceilings;
    bool whole, partial; /* in CI a run with a filter is refused: where it gates; but not here */
    bool json, print_config;
    struct origin_choice origin;
    struct shard shard; /* count 0: the whole suite */
    struct command_link link;
    uint64_t seed;
    struct report_request reports[REQUEST_REPORTS_MAX];
    size_t n_reports;
    char *const *parts; /* that are merged: their reports */
    size_t n_parts;
    struct rebuild_recipe recipe; /* its library NULL: it goes by the options */
};

#define REQUEST_DEVICE_FALLBACK "auto: cuda:0 if there is a GPU, else host"

/* Options of struct run_request: where and what is looked at, how it is measured, what is judged,
 * and whose code it is. The device of `gate run` may be several, so it has an option of its own. */
extern const struct option_def request_device_options[], request_options[],
    request_measure_options[], request_report_options[], request_full_options[],
    request_library_options[], request_pause_options[], request_build_options[];

#define RUN_REQUEST_DEFAULTS                                                                       \
    .policy = {.threshold = 0.02, .budget_ms = 150, .pause_s = 5, .against = "baseline"},          \
    .target.timeout_s = 60, .db = DEFAULT_DB, .baselines = DEFAULT_BASELINES

/* Takes a value of --report; false: it is none, or one too many. */
bool run_request_add_report(void *request, const char *text);

/* How the library of a commit is built, for what `host` says of the device. */
struct rebuild_recipe run_request_recipe(const struct run_request *r, bool host);

/*
 * What `gate search` is asked for. The table of its options is part of gate, which prints help,
 * manual and completion from it; the program gate-search reads it and does the work.
 */
#define SEARCH_SEEN "SEARCH_SEEN" /* the variable that names the file of what was seen */

struct search_request {
    struct run_request run;
    const char *case_id, *against, *from, *propose;
    struct option_list parameters;
    double gain, risk, max_time_s, patience_s;
    int64_t max_runs;
    bool restart;
};

/* ---- suite, target and a worker with its device, which is waited for while it is busy ---- */

struct run_setup {
    struct suite suite;
    struct suite whole; /* the same without filter and shard */
    bool own_suite;     /* a file, and none of those that come with the gate */
    struct shard shard;
    struct target target;
    struct supervisor *supervisor;
    struct device_lock lock; /* of the device, against other gates */
    struct memory *memory;   /* of earlier runs; NULL: nothing is remembered */
    bool remember;           /* what this run found, once it is at its end */
};

/* The suite that is asked for on this device, by its filter; the shard is not taken yet. */
enum gate_status run_setup_suite(const struct run_request *r, const char *device,
                                 struct run_setup *out, struct gate_error *err);

/* Before it: is a library named, where the gate's own kernels are not meant? */
enum gate_status run_setup_check_library(const struct run_request *r, struct gate_error *err);

enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err);
void run_setup_close(struct run_setup *s);

/*
 * What a change does to the thresholds that it is judged by. Whoever makes a kernel slower could
 * also widen its threshold: then the run passes, and its reports say what was changed.
 */
#define RUN_RULES_MAX 64

struct run_rules {
    char *changed[RUN_RULES_MAX]; /* "gemm/...: threshold 2 % -> 100 %" */
    size_t n;
};

/*
 * Compares the thresholds of the suite's file and of gate.json with those of a commit, and warns of
 * each change on standard error. `suite_path`: NULL, no file of the repository. Files that the
 * commit did not have have changed nothing. To be released in either case.
 */
enum gate_status run_rules_compare(const char *commit, const char *suite_path,
                                   const struct suite *now, double threshold, struct run_rules *out,
                                   struct gate_error *err);
void run_rules_release(struct run_rules *r);

/* ---- reports: in place of old ones before anything is measured, and at the end ---- */

/* May a report be written there? GATE_USAGE: it is the history, or a file that is no report, such
 * as a library, a suite or a source. */
enum gate_status run_reports_check(const char *path, const char *db, struct gate_error *err);

/* Before anything is measured: in place of old reports there is now one that says that the run has
 * not ended, so that none of another run is left, however this one ends. */
enum gate_status run_reports_open(const struct run_request *r, struct gate_error *err);

/* The run ended early: the reports say so. */
void run_reports_fail(const struct run_request *r, const struct gate_error *why);

/* The command line or gate.json of a call whose arguments begin with a struct run_request was
 * refused with this exit code: the reports that were asked for, those as well that stand behind
 * what was refused, say why, as the output does (command_last_error()). */
void run_reports_refuse(const struct command_call *call, int exit_code);

/* Reads a run document as it will be read, before anybody else sees it, and puts it into the
 * history (NULL: there is none). If that fails, *out is the document all the same, and says why it
 * is not stored, as long as *err is there: what was measured is shown. out->schema is NULL where it
 * could not be read; else it is to be released. */
enum gate_status run_reports_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err);

/* Writes the reports that were asked for and prints the table or the document, of what
 * run_reports_store() left, which ended with `stored`, and releases it. Returns the first of both
 * statuses. */
enum gate_status run_reports_finish(const struct run_request *r, struct document *document,
                                    enum gate_status stored, struct gate_error *err);

/* Waits for a run by another process of the gate, and reads its JSON report; one that measured
 * nothing leaves a report that is no run. The error names it `what`, and has its last words. */
enum gate_status run_reports_await(struct process *p, const char *what, const char *report,
                                   struct document *out, struct gate_error *err);

/* ---- work; each returns the exit code ---- */

/* Runs a part of the suite on each GPU, by a `gate run` of its own. */
int run_on_all(struct run_request *r, const struct options_seen *seen, struct gate_error *err);

#endif
