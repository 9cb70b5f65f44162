/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/run/calibrate.h"
#include "gate/base/interrupt.h"
#include "gate/cli/run_request.h"

#define DEFAULT_PROCESSES 10

struct calibrate_request {
    struct run_request run;
    int64_t processes;
};

#define ARGUMENTS struct calibrate_request

static const struct option_def options[] = {
    OPTION(INTEGER, "processes", "N", processes, "fresh processes", .least = DECIDE_FIRST_LOOK,
           .most = CALIBRATE_PROCESSES_MAX, .fallback = "10"),
    DB_OPTION(run.db),
    BASELINES_OPTION(run.baselines),
    {0},
};

struct calibrate_run {
    struct run_setup setup;
    struct store *store;
    struct run run; /* for its document: the cases of a calibration have no verdicts */
    struct calibrated_case *cases;
    size_t wanted; /* processes of each */
    char sha256[65];
};

static enum gate_status prepare(const struct run_request *r, struct calibrate_run *c,
                                struct gate_error *err)
{
    TRY(run_reports_open(r, err));
    TRY(run_setup_check_library(r, err));
    /* A history that cannot be written is known before anything is measured. */
    TRY(store_open(r->db, STORE_READ_WRITE, &c->store, err));
    TRY(run_setup_open(r, &c->setup, err));
    snprintf(c->sha256, sizeof c->sha256, "%s",
             supervisor_greeting(c->setup.supervisor)->libraries[0].sha256);
    c->run = (struct run){.suite = &c->setup.suite,
                          .policy = r->policy,
                          .seed = r->seed,
                          .against_path = c->setup.target.library,
                          .against_sha256 = c->sha256};
    c->run.policy.against = "itself";
    c->run.policy.other = "its copy";
    origin_read(&(struct origin_choice){.baselines = r->baselines}, &c->run.origin);
    supervisor_leave_providers(c->setup.supervisor);
    TRY(run_start(&c->run, c->setup.supervisor, err));
    size_t n = c->setup.suite.n_cases;
    c->cases = xcalloc(n, sizeof *c->cases);
    for (size_t i = 0; i < n; i++) {
        double own = c->setup.suite.cases[i].threshold;
        c->cases[i].id = c->setup.suite.cases[i].id;
        c->cases[i].threshold = own > 0 ? own : c->run.policy.threshold;
        c->cases[i].lacks = VERDICT_PASS;
    }
    return interrupt_catch(err);
}

/* A case that no further process measures, and why. */
__attribute__((format(printf, 3, 4))) static void give_up(struct calibrated_case *to,
                                                          enum verdict why, const char *format, ...)
{
    va_list args;
    to->lacks = why;
    va_start(args, format);
    vsnprintf(to->reason, sizeof to->reason, format, args);
    va_end(args);
}

/* d of all shares of one case in this process; false: no case can be measured any more. */
static bool calibrate_case(struct calibrate_run *c, size_t i, size_t process)
{
    struct calibrated_case *to = &c->cases[i];
    struct case_task task = {.c = &c->setup.suite.cases[i],
                             .kind = TASK_CALIBRATE,
                             .seed = c->run.seed + i,
                             .budget_ms = c->run.policy.budget_ms,
                             .baseline = c->sha256,
                             .verify = process == 0,
                             .swap = process % 2,
                             .shares = calibrate_shares,
                             .n_shares = CALIBRATE_SHARES};
    struct case_result result;
    struct gate_error err = {0};
    if (to->lacks != VERDICT_PASS)
        return true;
    enum gate_status status = supervisor_run_case(c->setup.supervisor, &task, &result, &err);
    if (interrupt_signal()) {
        give_up(to, VERDICT_NO_VERDICT, "interrupted by signal %d (%s)", interrupt_signal(),
                strsignal(interrupt_signal()));
    } else if (status) {
        give_up(to, VERDICT_ENVIRONMENT, "no worker could be started: %.900s", err.message);
    } else if (result.outcome != CASE_MEASURED) {
        give_up(to,
                result.outcome == CASE_WRONG         ? VERDICT_WRONG
                : result.outcome == CASE_ENVIRONMENT ? VERDICT_ENVIRONMENT
                                                     : VERDICT_NO_VERDICT,
                "%s", result.message);
    } else {
        for (size_t s = 0; s < CALIBRATE_SHARES; s++)
            to->d[s][to->n] = result.d[s];
        to->n++;
    }
    case_result_release(&result);
    return !status && !interrupt_signal();
}

static void measure(struct calibrate_run *c)
{
    char text[320];
    size_t n = c->setup.suite.n_cases;
    const struct calibrated_case *why = NULL; /* nothing goes on any more */
    c->run.start_ms = clock_wall_ms();
    for (; c->run.n_processes < c->wanted && !why; c->run.n_processes++) {
        if (c->run.n_processes)
            supervisor_retire_worker(c->setup.supervisor);
        for (size_t i = 0; i < n && !why; i++) {
            snprintf(text, sizeof text, "calibrating, process %zu of %zu [%zu/%zu] %s",
                     c->run.n_processes + 1, c->wanted, i + 1, n, c->setup.suite.cases[i].id);
            progress_show(text);
            if (!calibrate_case(c, i, c->run.n_processes))
                why = &c->cases[i];
        }
    }
    /* The cases that were to be measured still lack their processes for the same reason. */
    for (size_t i = 0; i < n && why; i++)
        if (c->cases[i].lacks == VERDICT_PASS && c->cases[i].n < c->wanted)
            give_up(&c->cases[i], why->lacks, "%s", why->reason);
    c->run.end_ms = clock_wall_ms();
    if (!why && !interrupt_signal()) {
        supervisor_retire_worker(c->setup.supervisor);
        progress_show("measuring the highest rates of the device");
        run_ceilings_measure(&c->setup.target.options, &c->run.greeting->device, &c->run.ceilings);
    }
    progress_show("");
}

/* Keeps a run document without cases and with a calibration. Without the figures of any case there
 * is nothing to keep. */
static enum gate_status keep(const struct run_request *r, struct calibrate_run *c,
                             struct gate_error *err)
{
    size_t n = c->setup.suite.n_cases, counts[VERDICT_COUNT] = {0}, n_known = 0;
    struct document made, document;
    struct document_calibration calibration;
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    for (size_t i = 0; i < n; i++) {
        n_known += calibrate_has_figures(&c->cases[i]);
        counts[c->cases[i].lacks]++;
    }
    if (!n_known)
        return gate_fail(err, (enum gate_status)verdict_exit_code(counts),
                         "no case was measured in the %d processes that a calibration takes, and "
                         "nothing is kept; case '%s', after %zu: %.600s",
                         DECIDE_FIRST_LOOK, c->cases[0].id, c->cases[0].n, c->cases[0].reason);
    calibrate_document(c->cases, n, c->wanted, c->run.counts, &calibration);
    c->setup.suite.n_cases = 0;
    run_document(&c->run, &made);
    c->setup.suite.n_cases = n;
    made.has_calibration = true;
    made.calibration = calibration;
    document_write(&made, &text);
    run_document_release(&made);
    calibrate_release(&calibration);
    enum gate_status status = run_reports_store(c->store, &text, &document, err);
    return run_reports_finish(r, &document, status, err);
}

static int calibrate(struct command_call *call, struct gate_error *err)
{
    const struct calibrate_request *r = call->arguments;
    struct calibrate_run c = {.wanted = (size_t)r->processes};
    enum gate_status status = prepare(&r->run, &c, err);
    if (!status) {
        measure(&c);
        status = keep(&r->run, &c, err);
    }
    if (status)
        run_reports_fail(&r->run, err);
    int code = status ? (int)status : verdict_exit_code(c.run.counts);
    run_release(&c.run);
    run_setup_close(&c.setup);
    store_close(c.store);
    free(c.cases);
    return code;
}

const struct command command_calibrate = {
    .name = "gate calibrate",
    .summary = "estimate how often the gate would be wrong on this machine",
    .about =
        "Compares the kernels with copies of themselves that are slower by known shares (0, 0.5, "
        "1, 2, 2.5, 3 and 5 %). For each case it reports how often the gate would fail unchanged "
        "code, how often it would catch each slowdown, and the smallest slowdown that 20 processes "
        "detect on this machine (the minimum detectable effect). The result is stored in the "
        "history and printed. --budget is per case and share.\n"
        "After an error in a case, or SIGINT, SIGTERM or SIGHUP, cases that have five processes or "
        "more are kept, and the missing ones are reported.\n",
    .groups = {{request_device_options, 0},
               {request_options, 0},
               {request_measure_options, 0},
               {request_report_options, 0},
               {request_library_options, 0},
               {options, 0}},
    .ending = "Exit codes: 0 every case detects the threshold on this machine, 3 some do not, or "
              "lack processes; otherwise as 'gate run'.\n",
    DEFAULTS(.run = {RUN_REQUEST_DEFAULTS}, .processes = DEFAULT_PROCESSES),
    .refused = run_reports_refuse,
    .main = calibrate,
};
