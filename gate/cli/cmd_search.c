/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_search.c: gate search, whose work is done by the program gate-search beside this one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/paths.h"
#include "gate/cli/run_request.h"

#define ARGUMENTS struct search_request

static const struct option_def options[] = {
    OPTION(TEXT, "case", "ID", case_id, "the case"),
    OPTION(TEXT, "against", "FILE|COMMIT", against, "the library to beat",
           .fallback = "the one of --library"),
    OPTION(TEXT, "from", "DIR", from, "the candidates: each *.so and *.kgb in this folder"),
    OPTION(LIST, "parameter", "NAME=A,B,..|NAME=FROM..TO", parameters,
           "an environment variable that the build command reads, and its values; the candidates "
           "are all combinations; repeatable"),
    OPTION(TEXT, "propose", "COMMAND", propose,
           "shell command that prints the next candidate as a line of JSON, {\"library\": "
           "\"FILE\"} or {\"parameters\": {\"NAME\": VALUE}}, or nothing to end; $" SEARCH_SEEN
           " is a file with what was seen"),
    OPTION(PERCENT, "gain", "PERCENT", gain, "the least gain of a winner", .fallback = "1%"),
    OPTION(PERCENT, "risk", "PERCENT", risk,
           "chance that a search of unchanged candidates finds a winner", .fallback = "1%"),
    OPTION(INTEGER, "max-runs", "N", max_runs,
           "limit of runs in the race; the confirmation is extra", .least = 1, .most = 1e6,
           .fallback = "none"),
    OPTION(NUMBER, "max-time", "SECONDS", max_time_s,
           "limit of the race in this call: no run begins after it, but a running one is "
           "finished",
           .least = 0.001, .most = 1e7, .fallback = "none"),
    OPTION(NUMBER, "patience", "SECONDS", patience_s, "limit for a build and for a proposal",
           .least = 0.1, .most = 86400, .fallback = "900"),
    FLAG("restart", restart, "discard the results of earlier calls"),
    {0},
};

static int search(struct command_call *call, struct gate_error *err)
{
    char program[PATHS_MAX];
    TRY(paths_installed("bin", "gate-search", program, err));
    execv(program, call->argv);
    return gate_fail(err, GATE_IO, "cannot run '%s': %s; it is installed with gate", program,
                     strerror(errno));
}

const struct command command_search = {
    .name = "gate search",
    .operands = "--case ID --from DIR\n--case ID --parameter NAME=VALUES... --build COMMAND\n"
                "--case ID --propose COMMAND",
    .summary = "find the fastest of many libraries, or show that none is faster",
    .about = "Verifies each candidate and measures it beside the library to beat, as 'gate run' "
             "does. Candidates that cannot reach the gain are eliminated at once. The fastest is "
             "measured again in fresh processes with fresh seeds, and these alone decide: --risk "
             "limits the chance of a lucky winner over the whole search. No baseline changes; the "
             "answer prints the 'gate run --ratchet' command that stores one.\n"
             "\n"
             "Results are kept in the cache: after an interruption, the same command continues, "
             "and --risk covers all calls together. The build command runs in this folder once for "
             "each candidate. It must rebuild when a parameter changes, and is killed if it "
             "hangs.\n",
    .groups = {{options, 0},
               {request_device_options, offsetof(struct search_request, run)},
               {request_options, offsetof(struct search_request, run)},
               {request_measure_options, offsetof(struct search_request, run)},
               {request_pause_options, offsetof(struct search_request, run)},
               {request_library_options, offsetof(struct search_request, run)},
               {request_build_options, offsetof(struct search_request, run)}},
    .ending = "Exit codes: 0 there is a winner, 3 there is none; otherwise as 'gate run'.\n",
    DEFAULTS(.run = {RUN_REQUEST_DEFAULTS}, .gain = 0.01, .risk = 0.01, .patience_s = 900),
    .main = search,
};
