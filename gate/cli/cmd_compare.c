#include <string.h>

#include "gate/cli/commands.h"
#include "gate/baseline/revision.h"
#include "gate/cli/run_request.h"

static const char help[] =
    "Usage: gate compare A B [OPTION]...\n"
    "\n"
    "Holds kernel library A against B, each a file or a commit of this repository (which is built\n"
    "if need be), with the rules of 'gate run'. Nothing is stored.\n"
    "\n" REQUEST_TARGET_HELP "\n"
    "Exit codes: as 'gate run'; 1 says that A is slower than B.\n";

static const struct option options[] = {REQUEST_TARGET_OPTIONS, {0}};

/* A's library: the host's or the GPU's, by the device that was asked for. */
static enum gate_status resolve_candidate(struct run_request *r, const char *what,
                                          struct revision *out, struct gate_error *err)
{
    struct target target = {0};
    enum gate_status status = target_resolve(&r->target, &target, err);
    if (status)
        return status;
    bool host = !strcmp(target.device, "host");
    status = revision_resolve(what, host ? "libhost.so" : "libours.so", out, err);
    r->target.library = out->path;
    return status;
}

int cmd_compare(int argc, char **argv)
{
    struct command command = {.name = "compare", .help = help, .options = options};
    struct run_request r;
    struct revision candidate = {0};
    struct gate_error err = {0};
    run_request_init(&r);
    for (int c; (c = command_option(&command, argc, argv)) != -1;) {
        if (c == '?')
            return GATE_USAGE;
        if (c == 'h')
            return command_help(&command);
        if (!run_request_option(&r, c, optarg))
            return command_usage(&command, "'%s' is no value for this option", optarg);
    }
    if (argc - optind != 2)
        return command_usage(&command, "two libraries or commits are needed");
    r.policy.against = argv[optind + 1];
    r.policy.other = "B";
    if (resolve_candidate(&r, argv[optind], &candidate, &err))
        return command_failed(&command, &err);
    return run_request_execute(&command, &r);
}
