/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_calibrate.c: how often would the gate be wrong on this machine, and what can it see?
 *
 * The candidate is compared with a copy of itself. To its replays a delay is added whose length is
 * a known share of the measured time: 0 (an A/A comparison) and others. Each fresh process gives
 * one d for each case and share; the whole protocol of decide.h is then played many times on
 * processes drawn from these with replacement.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/term.h"
#include "gate/base/seed.h"
#include "gate/base/process.h"
#include "gate/cli/run_request.h"

#define DEFAULT_PROCESSES 10
#define PROCESSES_MAX 200
#define DECISIONS 2000
#define SHARES 7

static const double shares[SHARES] = {0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05};

/* d of n processes for each share; the roles are swapped in the second, fourth, ... */
struct calibrated_case {
    const char *id;
    double threshold;
    double d[SHARES][PROCESSES_MAX];
    size_t n;
    enum verdict lacks; /* why n is less than was wanted; VERDICT_PASS: it is not */
    char reason[1000];  /* of that */
};

struct calibrate_request {
    struct run_request run;
    int64_t processes;
};

#define ARGUMENTS struct calibrate_request

static const struct option_def options[] = {
    OPTION(INTEGER, "processes", "N", processes, "fresh processes", .least = DECIDE_FIRST_LOOK,
           .most = PROCESSES_MAX, .fallback = "10"),
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
             c->setup.supervisor->greeting.m.libraries[0].sha256);
    c->run = (struct run){.suite = &c->setup.suite,
                          .policy = r->policy,
                          .seed = r->seed,
                          .against_path = c->setup.target.library,
                          .against_sha256 = c->sha256};
    c->run.policy.against = "itself";
    c->run.policy.other = "its copy";
    origin_read(&(struct origin_choice){.baselines = r->baselines}, &c->run.origin);
    c->setup.supervisor->without_providers = true;
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
                             .shares = shares,
                             .n_shares = SHARES};
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
                "%s", result.said);
    } else {
        for (size_t s = 0; s < SHARES; s++)
            to->d[s][to->n] = result.log_ratio[s];
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

/* ---- what it says ---- */

/* A sequence of processes; every other one has the roles swapped, here as in what is drawn from. */
struct drawn {
    double d[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
};

/* Draws with replacement, role by role; `state` counts the draws. */
static void draw(const double *d, size_t n, struct drawn *out, size_t wanted,
                 struct decide_sequence *to, uint64_t seed, uint64_t *state)
{
    for (; to->n < wanted && to->n < DECIDE_LAST_LOOK; to->n++) {
        size_t role = to->n % 2, of_role = (n + 1 - role) / 2;
        out->d[to->n] = d[2 * (seed_at(seed, (*state)++) % of_role) + role];
        out->swapped[to->n] = role;
    }
    to->d = out->d;
    to->swapped = out->swapped;
}

/* One whole protocol: looks, confirmation, verdict. */
static enum verdict play_once(const double *d, size_t n, double threshold, uint64_t seed,
                              uint64_t *state)
{
    struct drawn first, confirmation;
    struct decide_input in = {.threshold = threshold};
    struct decision decision;
    draw(d, n, &first, DECIDE_FIRST_LOOK, &in.first, seed, state);
    /* The excess over the absolute floor is the concern of a run, which knows its times. */
    in.baseline_p50_ns = 1e6;
    while ((decision = decide(&in)).next != DECIDE_DONE) {
        if (decision.next == DECIDE_MORE_FIRST)
            draw(d, n, &first, decision.next_n, &in.first, seed, state);
        else
            draw(d, n, &confirmation, decision.next_n, &in.confirmation, seed, state);
    }
    return decision.verdict;
}

/* Enough processes of a kernel that was right in all of them: fewer give no decision. */
static bool has_figures(const struct calibrated_case *c)
{
    return c->n >= DECIDE_FIRST_LOOK && c->lacks != VERDICT_WRONG;
}

static void add_figures(struct calibrated_case *c, struct document_calibrated *out)
{
    const double *d = c->d[0], n = (double)c->n;
    const size_t of_role[2] = {(c->n + 1) / 2, c->n / 2};
    double mean[2] = {0}, squares = 0;
    for (size_t i = 0; i < c->n; i++)
        mean[i % 2] += d[i] / (double)of_role[i % 2];
    for (size_t i = 0; i < c->n; i++)
        squares += (d[i] - mean[i % 2]) * (d[i] - mean[i % 2]);
    /* By d's deviation within the roles, which a whole sequence takes the difference out of. */
    double mde = decide_mde_of(n > 2 ? sqrt(squares / (n - 2)) : 0, DECIDE_LAST_LOOK);
    *out = (struct document_calibrated){
        .id = c->id,
        .mde = mde > 0 ? mde : NAN,
        .resolved = mde > 0 && mde <= c->threshold,
        .injected = xcalloc(SHARES, sizeof *out->injected),
    };
    for (size_t s = 0; s < SHARES; s++) {
        int64_t red = 0, pass = 0;
        uint64_t state = 0;
        for (int i = 0; i < DECISIONS; i++) {
            enum verdict v = play_once(c->d[s], c->n, c->threshold, s + 1, &state);
            red += v == VERDICT_REGRESSION;
            pass += v == VERDICT_PASS || v == VERDICT_IMPROVEMENT;
        }
        out->injected[out->n_injected++] =
            (struct document_injected){.share = shares[s],
                                       .log_ratio = c->d[s],
                                       .n_log_ratio = c->n,
                                       .decisions = DECISIONS,
                                       .red = red,
                                       .pass = pass,
                                       .no_verdict = DECISIONS - red - pass};
    }
}

/*
 * The calibration of a run document, whose lists are to be freed. Figures are of the cases that
 * have them, and of each case that lacks processes of `wanted` it is said why. Adds to `counts`
 * what a run's exit code follows: a no-verdict for each case whose minimum detectable effect is
 * over its threshold, and what each incomplete case lacks.
 */
static void summarise(struct calibrated_case *cases, size_t n_cases, size_t wanted,
                      size_t counts[VERDICT_COUNT], struct document_calibration *out)
{
    *out = (struct document_calibration){.cases = xcalloc(n_cases, sizeof *out->cases)};
    struct document_incomplete *incomplete = xcalloc(n_cases, sizeof *incomplete);
    for (size_t i = 0; i < n_cases; i++) {
        struct calibrated_case *c = &cases[i];
        if ((int64_t)c->n > out->processes)
            out->processes = (int64_t)c->n;
        if (has_figures(c)) {
            struct document_calibrated *figures = &out->cases[out->n_cases++];
            add_figures(c, figures);
            counts[VERDICT_NO_VERDICT] += !figures->resolved;
        }
        if (c->lacks != VERDICT_PASS) {
            incomplete[out->n_incomplete++] =
                (struct document_incomplete){.id = c->id,
                                             .processes = (int64_t)c->n,
                                             .wanted = (int64_t)wanted,
                                             .verdict = (int)c->lacks,
                                             .reason = c->reason};
            counts[c->lacks]++;
        }
    }
    if (out->n_incomplete)
        out->incomplete = incomplete;
    else
        free(incomplete);
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
        n_known += has_figures(&c->cases[i]);
        counts[c->cases[i].lacks]++;
    }
    if (!n_known)
        return gate_fail(err, (enum gate_status)verdict_exit_code(counts),
                         "no case was measured in the %d processes that a calibration takes, and "
                         "nothing is kept; case '%s', after %zu: %.600s",
                         DECIDE_FIRST_LOOK, c->cases[0].id, c->cases[0].n, c->cases[0].reason);
    summarise(c->cases, n, c->wanted, c->run.counts, &calibration);
    c->setup.suite.n_cases = 0;
    run_document(&c->run, &made);
    c->setup.suite.n_cases = n;
    made.has_calibration = true;
    made.calibration = calibration;
    document_write(&made, &text);
    run_document_release(&made);
    for (size_t i = 0; i < calibration.n_cases; i++)
        free(calibration.cases[i].injected);
    free(calibration.cases);
    free(calibration.incomplete);
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
