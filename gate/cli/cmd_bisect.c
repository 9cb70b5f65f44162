/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bisect.c: gate bisect. `git bisect` chooses the commits and keeps what is known of them;
 * `gate compare` judges each against the good one.
 */
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/cli/run_request.h"

struct bisect_request {
    struct run_request run;
    const char *case_id, *good, *bad;
};

#define ARGUMENTS struct bisect_request

static const struct option_def options[] = {
    OPTION(TEXT, "case", "ID", case_id, "the case"),
    OPTION(TEXT, "good", "COMMIT", good, "a commit that was fast and right"),
    OPTION(TEXT, "bad", "COMMIT", bad, "a later commit that is not", .fallback = "HEAD"),
    {0},
};

#define WORDS_MAX 96

/* Run by `git bisect run` at each commit, in the top folder. Its arguments are the folder where the
 * command was given, what a wrong result means (1: it is bad, 125: skip it), and the comparison,
 * whose "@" stands for the commit. */
static const char step[] = "here=$0 wrong=$1 commit=$(git rev-parse BISECT_HEAD); shift\n"
                           "for word; do shift; [ \"$word\" = @ ] && word=$commit\n"
                           "set -- \"$@\" \"$word\"; done; cd \"$here\" && \"$@\"\n"
                           "case $? in 0) exit 0;; 1) exit 1;; 2) exit $wrong;;\n"
                           "3|4) exit 125;; *) exit 255;; esac";

/* Runs a program on this one's standard streams; its exit code, 127 if a signal ended it. */
static int run_program(const char *const *argv)
{
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ))
        return 127;
    while (waitpid(pid, &status, 0) < 0)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

#define RUN(...) run_program((const char *const[]){__VA_ARGS__, NULL})

/* `gate compare NEW OLD` in this case, with the options of this call that compare has as well. */
struct comparison_call {
    char program[PATHS_MAX], threshold[32], names[OPTIONS_MAX][OPTION_WORD_MAX];
    const char *argv[WORDS_MAX];
    size_t n;
};

static const char *const own[] = {"case", "good", "bad", "threshold", NULL};

static int compare(struct comparison_call *c, const char *new, const char *old, double threshold)
{
    snprintf(c->threshold, sizeof c->threshold, "%.6g%%", 100 * threshold);
    c->argv[2] = new;
    c->argv[3] = old;
    return run_program(c->argv);
}

/* The bad commit against the good one: *threshold becomes half of its slowdown, or stays if it is
 * wrong or only less accurate, and *wrong the exit code of a wrong result. GATE_NO_VERDICT: it is
 * not worse. */
static enum gate_status look_at_ends(struct comparison_call *c, const struct bisect_request *r,
                                     double *threshold, const char **wrong, struct gate_error *err)
{
    char report[PATHS_MAX], option[PATHS_MAX + 8];
    struct document d = {0};
    enum gate_status status = GATE_OK;
    size_t n = c->n;
    snprintf(report, sizeof report, "%.4000s/gate-bisect.XXXXXX", file_temporary_folder());
    int file = mkstemp(report);
    if (file < 0)
        return gate_fail(err, GATE_IO, "cannot make the temporary file '%s'", report);
    close(file);
    snprintf(option, sizeof option, "json=%s", report);
    c->argv[c->n++] = "--report";
    c->argv[c->n++] = option;
    int code = compare(c, r->bad, r->good, r->run.policy.threshold);
    c->argv[c->n = n] = c->argv[n + 1] = NULL;
    *wrong = code == GATE_WRONG ? "1" : "125";
    if (code == GATE_OK)
        status = gate_fail(err, GATE_NO_VERDICT,
                           "'%.100s' is not worse than '%.100s' on this "
                           "machine, so there is nothing to find",
                           r->bad, r->good);
    else if (code != GATE_REGRESSION && code != GATE_WRONG)
        status = gate_fail(err, (enum gate_status)code,
                           "the comparison of '%.100s' with '%.100s' "
                           "ended with %d, see above",
                           r->bad, r->good, code);
    else if (code == GATE_REGRESSION && !(status = document_load(report, &d, err)) &&
             d.n_cases == 1 && d.cases[0].has_ratio && d.cases[0].ratio.value > 1 + *threshold)
        *threshold = fmin(sqrt(d.cases[0].ratio.value) - 1, 1); /* half, as a logarithm */
    document_release(&d);
    unlink(report);
    return status;
}

/* Lets git choose; "BAD^" against BAD is the evidence. */
static enum gate_status search(struct comparison_call *c, const struct bisect_request *r,
                               struct gate_error *err)
{
    const char *wrong, *argv[WORDS_MAX + 8] = {"git", "bisect", "run", "sh", "-c", step};
    char here[PATHS_MAX];
    double threshold = r->run.policy.threshold;
    enum gate_status status = GATE_OK;
    TRY(look_at_ends(c, r, &threshold, &wrong, err));
    if (!getcwd(here, sizeof here))
        return gate_fail(err, GATE_IO, "the name of the current folder is not known");
    if (RUN("git", "bisect", "start", "--no-checkout", "--first-parent", r->bad, r->good))
        return gate_fail(err, GATE_USAGE, "git cannot bisect from '%.100s' to '%.100s', see above",
                         r->good, r->bad);
    snprintf(c->threshold, sizeof c->threshold, "%.6g%%", 100 * threshold);
    c->argv[2] = "@";
    c->argv[3] = r->good;
    argv[6] = here;
    argv[7] = wrong;
    memcpy(argv + 8, c->argv, sizeof c->argv);
    int code = run_program(argv);
    if (code == 0) {
        puts("\n"); /* git ends without one */
        fflush(stdout);
        code = compare(c, "refs/bisect/bad", "refs/bisect/bad^", threshold);
        if (code != GATE_REGRESSION && code != GATE_WRONG)
            status = gate_fail(err, GATE_NO_VERDICT,
                               "the commit that was found was not worse than "
                               "the one before it when both were measured once more");
    } else {
        status = gate_fail(err, code == 2 ? GATE_NO_VERDICT : GATE_ENVIRONMENT,
                           code == 2 ? "the commits that are left could not be judged"
                                     : "'git bisect run' ended with %d, see above",
                           code);
    }
    RUN("git", "bisect", "reset");
    return status;
}

static int bisect(struct command_call *call, struct gate_error *err)
{
    const struct bisect_request *r = call->arguments;
    struct comparison_call c = {0};
    if (!r->case_id || !r->good)
        return command_usage(&command_bisect, "--case and --good are needed");
    if (r->run.filter)
        return command_usage(&command_bisect, "the case is given with --case, not with --filter");
    if (RUN("sh", "-c", "! test -e \"$(git rev-parse --git-path BISECT_START)\""))
        return command_usage(&command_bisect, "a bisection is under way in this repository: 'git "
                                              "bisect reset' ends it");
    ssize_t length = readlink("/proc/self/exe", c.program, sizeof c.program - 1);
    const char *const head[] = {c.program,      "compare",      "@",           "@",
                                "--filter",     r->case_id,     "--threshold", c.threshold,
                                "--no-vendors", "--no-ceilings"};
    c.program[length > 0 ? length : 0] = '\0';
    memcpy(c.argv, head, sizeof head);
    c.n = sizeof head / sizeof *head;
    c.n += options_repeat(&call->seen, own, true, c.names, c.argv + c.n, WORDS_MAX - c.n - 3);
    return search(&c, r, err);
}

const struct command command_bisect = {
    .name = "gate bisect",
    .operands = "--case ID --good COMMIT [--bad COMMIT] [OPTION OF compare]...",
    .summary = "find the commit that made a case slower or wrong",
    .about =
        "Runs 'git bisect' with 'gate compare COMMIT GOOD' as its test. It looks for the first "
        "commit that has over half of the slowdown of the bad one, or that is wrong or less "
        "accurate. Commits that do not build or get no verdict are skipped. First parents are "
        "followed, so a merge counts as one commit. The working tree is not touched; 'git bisect "
        "log' shows the steps.\n",
    .groups = {{request_device_options, offsetof(struct bisect_request, run)},
               {request_options, offsetof(struct bisect_request, run)},
               {request_measure_options, offsetof(struct bisect_request, run)},
               {request_pause_options, offsetof(struct bisect_request, run)},
               {request_build_options, offsetof(struct bisect_request, run)},
               {options, 0}},
    .ending = "Exit codes: 0 one commit was found and confirmed, 3 several are left, or the bad "
              "commit is not worse than the good one on this machine; otherwise as 'gate run'.\n",
    DEFAULTS(.run = {RUN_REQUEST_DEFAULTS}, .bad = "HEAD"),
    .main = bisect,
};
