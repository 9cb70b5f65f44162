/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_request.h: what `gate run`, `gate compare`, `gate calibrate` and others are asked for, and
 * the tables of options that fill it.
 */
#ifndef GATE_CLI_RUN_REQUEST_H
#define GATE_CLI_RUN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/cli/cmd_common.h"
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
    bool whole, partial; /* in CI a run with a filter is refused: where it gates; but not here */
    bool json, print_config;
    struct origin_choice origin;
    struct shard shard; /* count 0: the whole suite */
    struct command_link link;
    uint64_t seed;
    struct report_request reports[REQUEST_REPORTS_MAX];
    size_t n_reports;
    char *const *parts; /* of `gate merge`: its reports */
    size_t n_parts;
    struct rebuild_recipe recipe; /* its library NULL: it goes by the options */
};

#define REQUEST_DEVICE_FALLBACK "auto: cuda:0 if there is a GPU, else host"

/* Options of struct run_request: where and what is looked at, how it is measured, what is judged,
 * and whose code it is. The device of `gate run` may be several, so it has an option of its own. */
extern const struct option_def request_device_options[], request_options[],
    request_measure_options[], request_report_options[], request_full_options[],
    request_library_options[], request_worker_options[], request_pause_options[],
    request_provider_options[], request_origin_options[], request_build_options[];

/* The defaults of all commands, and a seed from the system's randomness. */
void run_request_init(struct run_request *r);

/* The reports of a command line that was refused: those as well that stand behind what was. */
void run_request_take_reports(struct run_request *r, int argc, char **argv);

/* How the library of a commit is built, for what `host` says of the device. */
struct rebuild_recipe run_request_recipe(const struct run_request *r, bool host);

#endif
