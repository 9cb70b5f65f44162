/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gate/cli/commands.h"
#include "gate/cli/run_reports.h"

#define ARGUMENTS struct run_request

static bool read_shard(void *field, const char *text)
{
    return shard_parse(text, field);
}

static const struct option_def options[] = {
    OPTION(TEXT, "device", "auto|host|cuda:N|all", target.device,
           "where the kernels run; all: a part of the suite on each GPU",
           .fallback = REQUEST_DEVICE_FALLBACK),
    OPTION(READ, "shard", "I/N", shard,
           "measure only part I of N of the suite; `gate merge` combines the JSON reports of the "
           "parts",
           .form = "I/N, such as 2/4", .read = read_shard),
    OPTION(TEXT, "against", "WHAT", policy.against,
           "compare with this: baseline, merge-base (where HEAD left its base branch), a file or "
           "a commit",
           .fallback = "baseline"),
    OPTION(TEXT, "warn-against", "WHAT", policy.warn_against,
           "also compare with this; a slowdown against it is only a warning"),
    FLAG("accept-new", policy.accept_new, "store a baseline for each case that has none"),
    FLAG("ratchet", policy.ratchet, "lower the baselines of cases that are confirmed to be faster"),
    FLAG("partial", partial, "in CI: run although --filter leaves cases out"),
    FLAG("allow-dirty", policy.allow_dirty,
         "store baselines although there are uncommitted changes"),
    DB_OPTION(struct run_request, db),
    BASELINES_OPTION(struct run_request, baselines),
    OPTION(TEXT, "main-branch", "BRANCH", main_branch,
           "base branch for merge-base, if neither the CI job nor --base names one", .key = "main",
           .fallback = "main"),
    FLAG("print-config", print_config,
         "print each option with its value and its origin, then exit"),
    {0},
};

const struct command command_run = {
    .name = "run",
    .summary = "measure a suite, compare it with the stored baselines, pass or fail",
    .about = "Verifies and measures a suite of kernels, compares each kernel with the library of "
             "its stored baseline in the same processes, and stores the run in the history.",
    .groups = {{request_options, 0},
               {request_measure_options, 0},
               {request_pause_options, 0},
               {request_full_options, 0},
               {request_report_options, 0},
               {request_library_options, 0},
               {request_worker_options, 0},
               {request_provider_options, 0},
               {request_origin_options, 0},
               {request_build_options, 0},
               {options, 0}},
    .ending =
        "gate.json in the repository, which `gate init` writes, sets the defaults of options.\n"
        "\n"
        "The library of a baseline comes from the cache, else from the tracking server "
        "$GATE_SERVER, else it is built from its commit. `gate push` sends the run to the "
        "server.\n"
        "\n"
        "Exit codes: 0 pass, 1 regression (of speed or accuracy), 2 wrong result, crash, hang, or "
        "a library that cannot be loaded, 3 no verdict or incomplete, 4 environment refused, 64 "
        "usage, 70 internal, 74 input/output. With several, the first of 2, 1, 4, 3 wins. An "
        "interrupted run stores nothing and ends by the signal: 130 after SIGINT, 143 after "
        "SIGTERM.\n",
    .main = cmd_run,
};

static bool has_json_report(const struct run_request *r)
{
    bool any = false;
    for (size_t i = 0; i < r->n_reports; i++)
        any |= r->reports[i].format == REPORT_JSON;
    return any;
}

int cmd_run(int argc, char **argv)
{
    struct run_request r;
    struct options_seen seen;
    int exit_code;
    run_request_init(&r);
    r.history = r.whole = true;
    if (!options_read(&command_run, &r, 0, argc, argv, &seen, &exit_code))
        return run_reports_refuse(&r, argc, argv, exit_code);
    if (r.print_config)
        return options_print(&seen);
    bool all = r.target.device && !strcmp(r.target.device, "all");
    exit_code =
        all && r.shard.count
            ? command_usage(&command_run, "--shard and --device all cannot be combined")
        : r.shard.count && !has_json_report(&r)
            ? command_usage(&command_run, "--shard needs --report json=FILE for `gate merge`")
            : 0;
    if (exit_code)
        return run_reports_refuse(&r, argc, argv, exit_code);
    if (all)
        return run_on_all(&command_run, &r, &seen);
    /* What a part found is no run of the suite, and not stored as one. */
    r.history = !r.shard.count;
    return run_execute(&command_run, &r);
}
