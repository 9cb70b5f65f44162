#include "gate/cli/commands.h"
#include "gate/cli/run_request.h"

static const char help[] =
    "Usage: gate run [OPTION]...\n"
    "\n"
    "Verifies and measures a suite of kernels, compares each with the library of its stored "
    "baseline "
    "in\n"
    "the same processes, and keeps the run in the history.\n"
    "\n" REQUEST_TARGET_HELP
    "  --library FILE          the kernel library to judge; default: the one shipped\n"
    "  --provider FILE         a library to compare with, up to 7 times; default on a GPU: "
    "cuBLAS\n"
    "                          (its default, the best of its timed, layer by layer) and cuDNN\n"
    "  --against baseline|FILE|COMMIT  what to compare it with, default baseline\n"
    "  --accept-new            take what has no baseline yet as the baseline\n"
    "  --ratchet               lower the baselines to what is confirmed to be faster\n"
    "  --pause SECONDS         before a suspicion is confirmed, default 5\n"
    "  --db FILE               history, default $GATE_DB or ./gate.db\n"
    "  --baselines DIR         stored baselines, default $GATE_BASELINES or ./baselines\n"
    "  --worker PROGRAM        another worker (see gate/worker/PROTOCOL.md)\n"
    "\n"
    "The library of a baseline comes from the cache, else from the tracking server $GATE_SERVER, "
    "else\n"
    "it is built from its commit. `gate push` sends the run there.\n"
    "\n"
    "Exit codes: 0 pass, 1 regression (of speed or accuracy), 2 wrong result, crash or hang,\n"
    "3 no verdict or incomplete, 4 environment refused, 64 usage, 70 internal, 74 input/output.\n"
    "With several, the first of 2, 1, 4, 3 wins.\n";

static const struct option options[] = {
    REQUEST_TARGET_OPTIONS,
    {"library", required_argument, NULL, 'l'},
    {"provider", required_argument, NULL, 'p'},
    {"against", required_argument, NULL, 'a'},
    {"accept-new", no_argument, NULL, 'n'},
    {"ratchet", no_argument, NULL, 'R'},
    {"pause", required_argument, NULL, 'z'},
    {"db", required_argument, NULL, 'D'},
    {"baselines", required_argument, NULL, 'B'},
    {"worker", required_argument, NULL, 'w'},
    {0},
};

int cmd_run(int argc, char **argv)
{
    struct command command = {.name = "run", .help = help, .options = options};
    struct run_request r;
    run_request_init(&r);
    r.history = true;
    for (int c; (c = command_option(&command, argc, argv)) != -1;) {
        if (c == '?')
            return GATE_USAGE;
        if (c == 'h')
            return command_help(&command);
        if (!run_request_option(&r, c, optarg))
            return command_usage(&command, "'%s' is no value for this option", optarg);
    }
    if (optind < argc)
        return command_usage(&command, "unexpected argument '%s'", argv[optind]);
    return run_request_execute(&command, &r);
}
