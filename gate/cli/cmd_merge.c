/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_merge.c: gate merge. */
#include "gate/cli/commands.h"
#include "gate/cli/run_reports.h"

#define PARTS_MAX SHARDS_MAX

#define ARGUMENTS struct run_request

static const struct option_def options[] = {
    DB_OPTION(struct run_request, db),
    FLAG("json", json, "print a JSON document instead of the table"),
    {0},
};

const struct command command_merge = {
    .name = "merge",
    .operands = "REPORT.json...",
    .summary = "combine the parts that several runners measured into one run",
    .about = "Takes the JSON reports of all parts of a suite (gate run --shard I/N --report "
             "json=FILE), checks that they belong together and that none is missing, and stores "
             "and reports them as one run. The same parts always give the same run.\n",
    .groups = {{request_report_options, 0}, {options, 0}},
    .ending = "Exit codes: as 'gate run', for the whole run; also 3 if a part is missing, and 4 if "
              "the parts were measured under different conditions. If a part ended early, the "
              "exit code of that part.\n",
    .main = cmd_merge,
};

int cmd_merge(int argc, char **argv)
{
    struct run_request r;
    struct gate_error err = {0};
    int code;
    run_request_init(&r);
    if (!options_read(&command_merge, &r, PARTS_MAX, argc, argv, NULL, &code))
        return run_reports_refuse(&r, argc, argv, code);
    if (argc == optind) {
        code = command_usage(&command_merge, "name the JSON reports of the parts");
        return run_reports_refuse(&r, argc, argv, code);
    }
    r.parts = argv + optind;
    r.n_parts = (size_t)(argc - optind);
    if (run_reports_open(&r, &err)) {
        run_reports_fail(&r, &err);
        return command_failed(&command_merge, &err);
    }
    return run_merge(&command_merge, &r, r.n_parts, r.parts);
}
