/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gate/baseline/revision.h"
#include "gate/cli/run_request.h"

const struct command command_compare = {
    .name = "compare",
    .operands = "NEW OLD",
    .summary = "compare two libraries or commits",
    .about = "Compares kernel library NEW with OLD, each a file or a commit of this repository "
             "(which is built if necessary), with the rules of 'gate run'. Nothing is stored.",
    .groups = {{request_device_options, 0},
               {request_options, 0},
               {request_measure_options, 0},
               {request_pause_options, 0},
               {request_full_options, 0},
               {request_worker_options, 0},
               {request_report_options, 0},
               {request_build_options, 0}},
    .ending = "Exit codes: as 'gate run'; 1 means that NEW is slower than OLD.\n",
    .main = cmd_compare,
};

/* A's library: the host's or the GPU's, by the device that was asked for. */
static enum gate_status resolve_candidate(struct run_request *r, const char *what,
                                          struct target *target, struct revision *out,
                                          struct gate_error *err)
{
    /* Builds take minutes: a mistake in the other side or the cases is known before them. */
    struct run_setup setup = {0};
    enum gate_status status = revision_check(r->policy.against, err);
    if (!status)
        status = target_resolve(&r->target, target, err);
    if (!status)
        status = run_setup_suite(r, target->device, &setup, err);
    suite_free(&setup.suite);
    if (status)
        return status;
    r->target.device = target->device; /* which is not looked for again */
    r->recipe = run_request_recipe(r, !strcmp(target->device, "host"));
    status = revision_resolve(what, &r->recipe, out, err);
    r->target.library = out->path;
    return status;
}

int cmd_compare(int argc, char **argv)
{
    struct run_request r;
    struct target target = {0};
    struct revision candidate = {0};
    struct gate_error err = {0};
    int exit_code;
    run_request_init(&r);
    if (!options_read(&command_compare, &r, 2, argc, argv, NULL, &exit_code))
        return run_reports_refuse(&r, argc, argv, exit_code);
    if (argc - optind != 2) {
        exit_code = command_usage(&command_compare, "two libraries or commits are needed: NEW OLD");
        return run_reports_refuse(&r, argc, argv, exit_code);
    }
    r.policy.against = argv[optind + 1];
    r.policy.other = "the old one";
    if (resolve_candidate(&r, argv[optind], &target, &candidate, &err)) {
        run_reports_fail(&r, &err);
        return command_failed(&command_compare, &err);
    }
    r.origin.elsewhere = true;
    if (candidate.commit[0])
        r.origin.commit = candidate.commit;
    return run_execute(&command_compare, &r);
}
