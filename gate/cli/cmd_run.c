/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c: gate run and gate compare. */

#include <signal.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/process.h"
#include "gate/base/term.h"
#include "gate/baseline/origin.h"
#include "gate/cli/run_request.h"
#include "gate/run/run.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/revision.h"

#define ARGUMENTS struct run_request

static const struct option_def options[] = {
    OPTION(LIST, "provider", "FILE", providers, "a library to compare with, repeatable",
           .key = "providers", .is_path = true,
           .fallback =
               "on a GPU cuBLAS (its default algorithm, its fastest one, layer by layer) and "
               "cuDNN"),
    OPTION(READ, "commit", "HASH", origin.commit, "the measured commit", .form = "40 hex digits",
           .pattern = "^[0-9a-f]{40}$",
           .fallback = "from the CI job's variables, else git; also for the next four"),
    OPTION(TEXT, "branch", "NAME", origin.branch, "its branch"),
    OPTION(TEXT, "base", "NAME", origin.base, "the target branch of a merge request"),
    OPTION(READ, "change", "NUMBER", origin.change, "the pull or merge request",
           .form = "a number such as 17", .pattern = "^[0-9]+$"),
    OPTION(TEXT, "job", "URL", origin.job, "the CI job"),
    OPTION(TEXT, "device", "auto|host|cuda:N|all", target.device,
           "where the kernels run; all: a part of the suite on each GPU",
           .fallback = REQUEST_DEVICE_FALLBACK),
    OPTION(READ, "shard", "I/N", shard,
           "measure only part I of N of the suite; `gate merge` combines the JSON reports of the "
           "parts",
           .form = "I/N, such as 2/4", .read = shard_parse),
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
    DB_OPTION(db),
    BASELINES_OPTION(baselines),
    OPTION(TEXT, "main-branch", "BRANCH", main_branch,
           "base branch for merge-base, if neither the CI job nor --base names one", .key = "main",
           .fallback = "main"),
    FLAG("print-config", print_config,
         "print each option with its value and its origin, then exit"),
    {0},
};

/* Everything that a run needs and lets go of at its end. All that can be refused is refused when it
 * is opened, before the first kernel runs. */
struct run_session {
    struct run_setup setup;
    struct store *store;
    struct baseline *baseline, *read_before;
    char *baseline_path;
    int lock; /* of the folder of the baselines; -1: none */
    struct rebuild_recipe recipe;
    struct origin origin;
    struct revision against, warn_against;
    bool reported;          /* the reports are written, or failed to be */
    struct run_rules rules; /* what differs from the merge base */
    struct run run, warning;
    struct supervisor *supervisor; /* of the warning */
};

static bool is_baseline(const char *against)
{
    return !strcmp(against, "baseline");
}

/* May the stored baselines change by this run? */
static bool keeps_baselines(const struct run_request *r)
{
    return r->policy.accept_new || r->policy.ratchet;
}

/* What would be written at the end must be writable now: the cache, and the folder of the
 * baselines, which is made when it is not there. It stays locked from the reading of the baselines
 * to the writing, so that two runs do not undo each other's. */
static enum gate_status open_for_keeping(const struct run_request *r, struct run_session *s,
                                         struct gate_error *err)
{
    char cache[PATHS_MAX];
    TRY(baseline_lock(r->baselines, &s->lock, err));
    if (access(r->baselines, W_OK))
        return gate_fail(err, GATE_IO, "cannot write to '%s': %s", r->baselines, strerror(errno));
    return artifact_cache_dir(cache, err);
}

static const char *base_branch(const struct run_request *r, const struct origin *origin)
{
    return origin->base[0] ? origin->base : r->main_branch ? r->main_branch : "main";
}

/* The library that is meant; of a merge base, the policy then has its commit. */
static enum gate_status resolve(const struct run_request *r, struct run_session *s,
                                const char **what, struct revision *out, struct gate_error *err)
{
    char commit[41];
    const char *base = base_branch(r, &s->origin);
    if (!*what || is_baseline(*what))
        return GATE_OK;
    if (strcmp(*what, "merge-base") != 0) {
        const enum gate_status status = revision_resolve(*what, &s->recipe, out, err);
        return status == GATE_WRONG ? gate_fail(err, GATE_ENVIRONMENT,
                                                "the library to compare with: %.900s", err->message)
                                    : status;
    }
    TRY(revision_merge_base(base, commit, err));
    if (!strcmp(commit, s->origin.commit) && !s->origin.dirty)
        return gate_fail(err, GATE_USAGE,
                         "HEAD is on '%s', so merge-base would compare it with itself: use "
                         "--against baseline, or name a commit",
                         base);
    TRY(revision_resolve(commit, &s->recipe, out, err));
    *what = out->commit;
    return GATE_OK;
}

static void set_against(struct run *run, const struct run_session *s, const char *what,
                        const struct revision *found)
{
    bool stored = is_baseline(what);
    run->baseline = stored ? s->baseline : NULL;
    run->against_path = stored ? NULL : found->path;
    run->against_sha256 = stored ? NULL : found->sha256;
    if (!run->policy.other)
        run->policy.other = stored                  ? "the baseline"
                            : what == found->commit ? "the merge base"
                                                    : "the other library";
}

/* Of a merge request it is said if this cannot be told; elsewhere there need not be a base. */
static enum gate_status compare_rules(const struct run_request *r, struct run_session *s,
                                      struct gate_error *err)
{
    char commit[41];
    struct gate_error why;
    if (!r->history && !r->shard.count) /* of another command */
        return GATE_OK;
    if (revision_merge_base(base_branch(r, &s->origin), commit, &why)) {
        if (s->origin.base[0])
            fprintf(stderr, "gate run: whether thresholds were changed is not known: %s\n",
                    why.message);
        return GATE_OK;
    }
    return run_rules_compare(commit, s->setup.own_suite ? r->suite : NULL, &s->setup.whole,
                             r->policy.threshold, &s->rules, err);
}

static void start(const struct run_request *r, struct run_session *s)
{
    s->run = (struct run){.suite = &s->setup.suite,
                          .whole = &s->setup.whole,
                          .filter = r->filter,
                          .shard = s->setup.shard.count ? &s->setup.shard : NULL,
                          .no_baselines = access(r->baselines, F_OK) && errno == ENOENT,
                          .library = s->setup.target.library,
                          .recipe = s->recipe,
                          .memory = s->setup.memory,
                          .own_suite = s->setup.own_suite,
                          .policy = r->policy,
                          .seed = r->seed};
    set_against(&s->run, s, r->policy.against, &s->against);
    s->run.reproduce = (struct reproduce){.device = s->setup.target.device,
                                          .suite = r->suite,
                                          .library = r->target.library,
                                          .seed = s->run.seed};
    s->run.policy.changed = s->rules.n ? (const char *const *)s->rules.changed : NULL;
    s->run.policy.n_changed = s->rules.n;
    s->run.origin = s->origin;
    origin_author(s->run.author, sizeof s->run.author);
    if (r->policy.warn_against) {
        s->warning = s->run;
        s->warning.policy.accept_new = s->warning.policy.ratchet = false;
        s->warning.policy.other = NULL;
        set_against(&s->warning, s, r->policy.warn_against, &s->warn_against);
    }
}

/* All that can be refused is refused before the first kernel runs. To be closed whatever it
 * returns. */
static enum gate_status session_open(struct run_request *r, struct run_session *s,
                                     struct gate_error *err)
{
    *s = (struct run_session){.lock = -1};
    r->origin.baselines = r->baselines;
    origin_read(&r->origin, &s->origin);
    TRY(run_reports_open(r, err));
    if (!is_baseline(r->policy.against) && keeps_baselines(r))
        return gate_fail(err, GATE_USAGE, "--accept-new and --ratchet need --against baseline");
    TRY(run_setup_check_library(r, err));
    if (r->history)
        TRY(store_open(r->db, STORE_READ_WRITE, &s->store, err));
    TRY(run_setup_open(r, &s->setup, err));
    const struct document_device *device = &s->setup.supervisor->greeting.m.device;
    const char **against = &r->policy.against, **warn_against = &r->policy.warn_against;
    const bool stored = is_baseline(*against) || (*warn_against && is_baseline(*warn_against));
    s->recipe = r->recipe.library ? r->recipe : run_request_recipe(r, device->kind == DEVICE_HOST);
    TRY(resolve(r, s, against, &s->against, err));
    if (*against == s->against.commit)
        r->policy.base = base_branch(r, &s->origin);
    TRY(resolve(r, s, warn_against, &s->warn_against, err));
    if (stored) {
        s->baseline_path = baseline_path(r->baselines, device->model);
        if (keeps_baselines(r) && !r->shard.count)
            TRY(open_for_keeping(r, s, err));
        TRY(baseline_load(s->baseline_path, device->model, &s->baseline, err));
    }
    TRY(compare_rules(r, s, err));
    start(r, s);
    if (keeps_baselines(r) && s->origin.dirty && !r->policy.allow_dirty)
        return gate_fail(err, GATE_USAGE,
                         "there are uncommitted changes, but a baseline names the commit %.12s: "
                         "commit them, or add --allow-dirty",
                         s->origin.commit);
    if (keeps_baselines(r) && !s->origin.commit[0])
        fprintf(stderr, "gate run: no commit is known here, so a new baseline names none: where "
                        "its library is not in the cache, it cannot be built again. `git init` "
                        "and a commit before the run mend that\n");
    return GATE_OK;
}

/* ---- the run ---- */

static void show_case(const struct run *run, const struct suite_case *c, enum document_stage stage,
                      size_t done, size_t n)
{
    char text[256];
    snprintf(text, sizeof text, "%s process %zu [%zu/%zu] %s",
             stage == STAGE_FIRST ? "measuring," : "confirming,", run->n_processes, done + 1, n,
             c->id);
    progress_show(text);
}

/* Parts of a suite that run beside each other change the baselines of their own cases: each reads
 * them again when it is its turn. */
static enum gate_status keep_baselines(const struct run_request *r, struct run_session *s,
                                       bool *changed, struct gate_error *err)
{
    struct baseline *now = NULL;
    if (!r->shard.count)
        return run_keep_baselines(&s->run, s->baseline, changed, err);
    TRY(open_for_keeping(r, s, err));
    TRY(baseline_load(s->baseline_path, s->run.greeting->device.model, &now, err));
    enum gate_status status = run_keep_baselines(&s->run, now, changed, err);
    s->read_before = s->baseline; /* the run has texts of it */
    s->run.baseline = s->baseline = now;
    return status;
}

/* What was measured is shown, though it could not be kept (`kept`: what came of the baselines). */
static enum gate_status keep_document(const struct run_request *r, struct run_session *s,
                                      enum gate_status kept, struct gate_error *err)
{
    struct document made, document;
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    run_document(&s->run, &made);
    document_write(&made, &text);
    run_document_release(&made);
    struct gate_error unread = {0};
    enum gate_status status =
        run_reports_store(kept ? NULL : s->store, &text, &document, kept ? &unread : err);
    if (kept && !status) {
        document.not_stored = err->message;
        status = kept;
    } else if (kept) {
        *err = unread;
    }
    s->reported = document.schema != NULL;
    return run_reports_finish(r, &document, status, err);
}

static void retire_workers(const struct run_session *s)
{
    supervisor_retire_worker(s->setup.supervisor);
    if (s->supervisor)
        supervisor_retire_worker(s->supervisor);
}

/* Why is it slower? The verdicts stand, and nothing is timed for them any more. */
static enum gate_status diagnose(const struct run_request *r, struct run_session *s,
                                 struct gate_error *err)
{
    retire_workers(s);
    return causes_find(&s->run, s->setup.supervisor, r->counters, progress_show) &&
                   interrupt_signal()
               ? gate_fail(err, interrupt_status(),
                           "interrupted during the search for causes: nothing is stored, and no "
                           "baseline has changed")
               : GATE_OK;
}

static enum gate_status measure_ceilings(struct run_session *s, struct gate_error *err)
{
    bool any_timed = false;
    for (size_t i = 0; i < s->run.suite->n_cases; i++) {
        const struct document_arm *arm = run_arm(&s->run.cases[i], ROLE_CANDIDATE);
        any_timed |= arm && arm->has_timing;
    }
    if (!any_timed || s->run.greeting->device.kind != DEVICE_CUDA)
        return GATE_OK;
    if (run_recall_ceilings(&s->run))
        return GATE_OK;
    retire_workers(s);
    progress_show("measuring the highest rates of the device");
    run_ceilings_measure(&s->setup.target.options, &s->run.greeting->device, &s->run.ceilings);
    return interrupt_signal() ? gate_fail(err, interrupt_status(),
                                          "interrupted while the ceilings were measured: nothing "
                                          "is stored, and no baseline has changed")
                              : GATE_OK;
}

static enum gate_status measure(const struct run_request *r, struct run_session *s,
                                struct gate_error *err)
{
    TRY(run_start(&s->run, s->setup.supervisor, err));
    TRY(interrupt_catch(err));
    TRY(run_measure(&s->run, s->setup.supervisor, show_case, err));
    if (r->policy.warn_against) {
        /* The second comparison has workers of its own, and no other is on the device then. */
        supervisor_retire_worker(s->setup.supervisor);
        TRY(supervisor_start(&s->setup.target.options, &s->supervisor, err));
        TRY(run_start(&s->warning, s->supervisor, err));
        TRY(run_measure(&s->warning, s->supervisor, show_case, err));
        run_add_warning(&s->run, &s->warning);
    }
    TRY(diagnose(r, s, err));
    return r->no_ceilings ? GATE_OK : measure_ceilings(s, err);
}

static enum gate_status measure_and_write(const struct run_request *r, struct run_session *s,
                                          struct gate_error *err)
{
    bool changed = false;
    enum gate_status status = measure(r, s, err);
    progress_show("");
    TRY(status);
    if (keeps_baselines(r))
        status = keep_baselines(r, s, &changed, err);
    if (!status && (r->history || r->shard.count))
        run_keep_candidate(&s->run);
    /* First the baselines: a run that says so must not be stored when they could not be. */
    if (!status && changed)
        status = baseline_save(s->baseline, s->baseline_path, err);
    if (!status && changed)
        fprintf(stderr, "gate run: '%s' has changed%s\n", s->baseline_path,
                origin_ignores(s->baseline_path) ? "" : ": commit it");
    run_remember(&s->run);
    status = keep_document(r, s, status, err);
    s->setup.remember = !status;
    return status;
}

/* `gate run` and `gate compare`: measures, looks for the causes of what is slower, moves the
 * baselines, stores, reports. Returns the exit code. */
static int execute(const struct command *command, struct run_request *r)
{
    struct run_session s;
    struct gate_error err = {0};
    interrupt_announce(command->name,
                       "nothing was measured, nothing is stored, and no baseline has changed");
    enum gate_status status = session_open(r, &s, &err);
    if (!status)
        status = measure_and_write(r, &s, &err);
    if (status && !s.reported)
        run_reports_fail(r, &err);
    int code = status ? command_failed(command, &err) : verdict_exit_code(s.run.counts);
    run_release(&s.run);
    run_release(&s.warning);
    supervisor_stop(s.supervisor);
    run_setup_close(&s.setup);
    run_rules_release(&s.rules);
    baseline_free(s.baseline);
    baseline_free(s.read_before);
    free(s.baseline_path);
    store_close(s.store);
    if (s.lock >= 0)
        close(s.lock);
    if (status > 128)
        raise(interrupt_signal()); /* a shell's loop ends by it, too */
    return code;
}

static int run(struct command_call *call, struct gate_error *err)
{
    struct run_request *r = call->arguments;
    if (r->print_config)
        return options_print(&call->seen);
    bool all = r->target.device && !strcmp(r->target.device, "all"), any_json = false;
    int refused = GATE_OK;
    for (size_t i = 0; i < r->n_reports; i++)
        any_json |= r->reports[i].format == REPORT_JSON;
    if (all && r->shard.count)
        refused = command_usage(&command_run, "--shard and --device all cannot be combined");
    else if (r->shard.count && !any_json)
        refused = command_usage(&command_run, "--shard needs --report json=FILE for `gate merge`");
    if (refused) {
        run_reports_refuse(call, refused);
        return refused;
    }
    if (all)
        return run_on_all(r, &call->seen, err);
    /* What a part found is no run of the suite, and not stored as one. */
    r->history = !r->shard.count;
    return execute(&command_run, r);
}

const struct command command_run = {
    .name = "gate run",
    .summary = "measure a suite, compare it with the stored baselines, pass or fail",
    .about = "Verifies and measures a suite of kernels, compares each kernel with the library of "
             "its stored baseline in the same processes, and stores the run in the history.",
    .groups = {{request_options, 0},
               {request_measure_options, 0},
               {request_pause_options, 0},
               {request_full_options, 0},
               {request_report_options, 0},
               {request_library_options, 0},
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
    DEFAULTS(RUN_REQUEST_DEFAULTS, .history = true, .whole = true),
    .refused = run_reports_refuse,
    .main = run,
};

/* ---- compare ---- */

/* A's library: the host's or the GPU's, by the device that was asked for. */
static enum gate_status resolve_candidate(struct run_request *r, const char *what,
                                          struct target *target, struct revision *out,
                                          struct gate_error *err)
{
    /* Builds take minutes: a mistake in the other side or the cases is known before them. */
    struct run_setup setup = {0};
    TRY(revision_check(r->policy.against, err));
    TRY(target_resolve(&r->target, false, target, err));
    enum gate_status status = run_setup_suite(r, target->device, &setup, err);
    suite_free(&setup.suite);
    suite_free(&setup.whole);
    TRY(status);
    r->target.device = target->device; /* which is not looked for again */
    r->recipe = run_request_recipe(r, !strcmp(target->device, "host"));
    status = revision_resolve(what, &r->recipe, out, err);
    r->target.library = out->path;
    return status;
}

static int compare(struct command_call *call, struct gate_error *err)
{
    struct run_request *r = call->arguments;
    struct target target = {0};
    struct revision candidate = {0};
    r->policy.against = call->operands[1];
    r->policy.other = "the old one";
    enum gate_status status = resolve_candidate(r, call->operands[0], &target, &candidate, err);
    if (status) {
        run_reports_fail(r, err);
        return status;
    }
    r->origin.elsewhere = true;
    if (candidate.commit[0])
        r->origin.commit = candidate.commit;
    return execute(&command_compare, r);
}

const struct command command_compare = {
    .name = "gate compare",
    .operands = "NEW OLD",
    .summary = "compare two libraries or commits",
    .about = "Compares kernel library NEW with OLD, each a file or a commit of this repository "
             "(which is built if necessary), with the rules of 'gate run'. Nothing is stored.",
    .groups = {{request_device_options, 0},
               {request_options, 0},
               {request_measure_options, 0},
               {request_pause_options, 0},
               {request_full_options, 0},
               {request_report_options, 0},
               {request_build_options, 0}},
    .ending = "Exit codes: as 'gate run'; 1 means that NEW is slower than OLD.\n",
    .least = 2,
    .most = 2,
    .missing = "two libraries or commits are needed: NEW OLD",
    DEFAULTS(RUN_REQUEST_DEFAULTS),
    .refused = run_reports_refuse,
    .main = compare,
};
