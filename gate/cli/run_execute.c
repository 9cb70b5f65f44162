/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_execute.h"

#include <signal.h>
#include <stdio.h>

#include "gate/base/interrupt.h"
#include "gate/baseline/origin.h"
#include "gate/cli/run_reports.h"
#include "gate/cli/run_session.h"
#include "gate/run/blame.h"
#include "gate/run/instructions.h"
#include "gate/run/profile.h"

static void show_case(void *context, const struct run *run, const struct suite_case *c,
                      enum run_stage stage, size_t done, size_t n)
{
    char text[256];
    (void)context;
    snprintf(text, sizeof text, "%s process %zu [%zu/%zu] %s",
             stage == RUN_FIRST ? "measuring," : "confirming,", run->n_processes, done + 1, n,
             c->id);
    run_progress(text);
}

/* Parts of a suite that run beside each other change the baselines of their own cases: each reads
 * them again when it is its turn. */
static enum gate_status keep_baselines(const struct run_request *r, struct run_session *s,
                                       bool *changed, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (r->shard.count) {
        struct baseline *now = NULL;
        const char *model = s->run.greeting->device.model;
        status = run_session_open_for_keeping(r, s, err);
        if (!status)
            status = baseline_load(s->baseline_path, model, &now, err);
        if (status)
            return status;
        status = run_keep_baselines(&s->run, now, changed, err);
        baseline_free(s->baseline);
        s->run.baseline = s->baseline = now;
        return status;
    }
    return run_keep_baselines(&s->run, s->baseline, changed, err);
}

/* What was measured is shown, though it could not be kept (`kept`: what came of the baselines). */
static enum gate_status keep_document(const struct run_request *r, struct run_session *s,
                                      enum gate_status kept, struct gate_error *err)
{
    struct document made, document;
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    if (run_document(&s->run, &made))
        document_write(&made, &text);
    else
        text.failed = true;
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
    buf_release(&text);
    s->reported = document.schema != NULL;
    return run_reports_finish(r, &document, status, err);
}

/* The second comparison has workers of its own, and no other worker is on the device then. */
static enum gate_status measure_warning(struct run_session *s, struct gate_error *err)
{
    supervisor_retire_worker(s->setup.supervisor);
    enum gate_status status = supervisor_start(&s->setup.target.options, &s->supervisor, err);
    if (!status)
        status = run_start(&s->warning, s->supervisor, err);
    if (!status)
        status = run_measure(&s->warning, s->supervisor, show_case, NULL, err);
    if (!status)
        run_add_warning(&s->run, &s->warning);
    return status;
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
    const struct supervisor_options *how = &s->setup.target.options;
    bool looked = blame_run(&s->run, s->setup.supervisor, how->timeout_s, run_progress);
    looked |= instructions_run(&s->run, how->timeout_s, run_progress);
    if (r->counters)
        profile_run(&s->run, how, run_progress);
    return (looked || r->counters) && interrupt_signal()
               ? gate_fail(err, interrupt_status(),
                           "interrupted during the search for causes: nothing is stored, and no "
                           "baseline has changed")
               : GATE_OK;
}

static bool any_timed(const struct run *run)
{
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        const struct document_arm *arm = run_arm(&run->cases[i], ROLE_CANDIDATE);
        if (arm && arm->has_timing)
            return true;
    }
    return false;
}

static enum gate_status measure_ceilings(struct run_session *s, struct gate_error *err)
{
    if (!any_timed(&s->run) || s->run.greeting->device.kind != DEVICE_CUDA)
        return GATE_OK;
    retire_workers(s);
    run_progress("measuring the highest rates of the device");
    run_ceilings_measure(&s->setup.target.options, &s->run.greeting->device, &s->run.ceilings);
    return interrupt_signal() ? gate_fail(err, interrupt_status(),
                                          "interrupted while the ceilings were measured: nothing "
                                          "is stored, and no baseline has changed")
                              : GATE_OK;
}

static enum gate_status measure_and_write(const struct run_request *r, struct run_session *s,
                                          struct gate_error *err)
{
    bool changed = false;
    struct run *run = &s->run;
    enum gate_status status = run_start(run, s->setup.supervisor, err);
    if (!status)
        status = interrupt_catch(err);
    if (!status)
        status = run_measure(run, s->setup.supervisor, show_case, NULL, err);
    if (!status && r->policy.warn_against)
        status = measure_warning(s, err);
    if (!status)
        status = diagnose(r, s, err);
    if (!status && !r->no_ceilings)
        status = measure_ceilings(s, err);
    run_progress("");
    if (status)
        return status;
    if (run_request_keeps_baselines(r))
        status = keep_baselines(r, s, &changed, err);
    if (!status && (r->history || r->shard.count))
        run_keep_candidate(run);
    /* First the baselines: a run that says so must not be stored when they could not be. */
    if (!status && changed)
        status = baseline_save(s->baseline, s->baseline_path, err);
    if (!status && changed)
        fprintf(stderr, "gate run: '%s' has changed%s\n", s->baseline_path,
                origin_ignores(s->baseline_path) ? "" : ": commit it");
    return keep_document(r, s, status, err);
}

int run_execute(const struct command *command, struct run_request *r)
{
    struct run_session s;
    struct gate_error err = {0};
    interrupt_announce(command->name,
                       "nothing was measured, nothing is stored, and no baseline has changed");
    enum gate_status status = run_session_open(r, &s, &err);
    if (!status)
        status = measure_and_write(r, &s, &err);
    if (status && !s.reported)
        run_reports_fail(r, &err);
    int code = status ? command_failed(command, &err) : verdict_exit_code(s.run.counts);
    run_session_close(&s);
    if (status > 128)
        raise(interrupt_signal()); /* a shell's loop ends by it, too */
    return code;
}
