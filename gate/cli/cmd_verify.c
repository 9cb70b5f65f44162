/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/term.h"
#include "gate/base/seed.h"
#include "gate/document/fields_table.h"
#include "gate/report/report_run.h"
#include "gate/cli/run_request.h"

struct verify_run {
    struct run_request request;
    enum verify_tier tier;
    bool vendors;
    const char *wrapper;
    char wrapper_text[PATHS_MAX];
    const char *wrapper_words[SUPERVISOR_WRAPPER_MAX];
    unsigned findings; /* of the wrapper */
    struct run_setup setup;
    struct case_result *results; /* of the suite's cases */
    size_t n;                    /* that are done, or were interrupted */
    size_t n_done;
    double seconds;
};

#define ARGUMENTS struct verify_run

static const struct option_def options[] = {
    OPTION(READ, "tier", "TIER", tier, "extent of the checks: commit, nightly or small",
           .form = "commit, nightly or small", .read = verify_tier_parse, .fallback = "commit"),
    OPTION(LIST, "provider", "FILE", request.providers,
           "a library whose error is shown for comparison, repeatable", .key = "providers",
           .is_path = true, .fallback = "none"),
    FLAG("vendors", vendors,
         "on a GPU also show the error of cuBLAS or cuDNN, which takes seconds to prepare"),
    OPTION(TEXT, "wrapper", "COMMAND", wrapper,
           "start the worker under this command, such as 'compute-sanitizer --error-exitcode 99 "
           "--log-file san.%p'; a worker that does not end with 0 is an error. The tier is then "
           "small, the suite smoke, and a worker may be silent for 20 times the time-out"),
    {0},
};

static const char *const outcome_names[] = {[CASE_VERIFIED] = "right",
                                            [CASE_WRONG] = "wrong",
                                            [CASE_UNSUPPORTED] = "not served",
                                            [CASE_ENVIRONMENT] = "environment"};

/* ---- verifying ---- */

static enum gate_status verify_cases(struct verify_run *v, struct gate_error *err)
{
    const struct suite *suite = &v->setup.suite;
    char text[256];
    enum gate_status status = GATE_OK;
    double start = clock_s();
    size_t n_wrong = 0;
    v->results = xcalloc(suite->n_cases, sizeof *v->results);
    for (v->n = 0; v->n < suite->n_cases && !status && !interrupt_signal(); v->n++) {
        const struct suite_case *c = &suite->cases[v->n];
        const struct case_task task = {.c = c,
                                       .seed = seed_of_text(v->request.seed, c->id),
                                       .budget_ms = 1,
                                       .verify = true,
                                       .kind = TASK_VERIFY,
                                       .tier = v->tier,
                                       .providers = true};
        snprintf(text, sizeof text, "verifying [%zu/%zu] %s", v->n + 1, suite->n_cases, c->id);
        progress_show(text);
        status = supervisor_run_case(v->setup.supervisor, &task, &v->results[v->n], err);
        v->n_done += !interrupt_signal();
    }
    progress_show("");
    v->seconds = clock_s() - start;
    if (!interrupt_signal())
        return status;
    for (size_t i = 0; i < v->n_done; i++)
        n_wrong += v->results[i].outcome == CASE_WRONG;
    return gate_fail(err, interrupt_status(),
                     "interrupted by signal %d (%s) when %zu of %zu cases were verified, %zu of "
                     "them wrong",
                     interrupt_signal(), strsignal(interrupt_signal()), v->n_done, suite->n_cases,
                     n_wrong);
}

/* The candidate's record of case i; NULL: it has none. */
static const struct document_arm *arm_of(const struct verify_run *v, size_t i)
{
    return v->results[i].n_arms ? v->results[i].arms : NULL;
}

static int exit_code(const struct verify_run *v)
{
    bool seen[CASE_ENVIRONMENT + 1] = {false}, unseen = false;
    for (size_t i = 0; i < v->n; i++) {
        const struct document_verify *verify = report_verify(arm_of(v, i));
        enum case_outcome outcome = v->results[i].outcome;
        seen[outcome] = true;
        /* The tier `small` leaves out the case's own shape, and a kernel may take no other. */
        unseen |= v->tier == VERIFY_SMALL && outcome == CASE_VERIFIED && verify &&
                  verify->own_shape_only == YES;
    }
    return seen[CASE_WRONG] || v->findings ? GATE_WRONG
           : seen[CASE_ENVIRONMENT]        ? GATE_ENVIRONMENT
           : unseen                        ? GATE_NO_VERDICT
           : seen[CASE_UNSUPPORTED] && (v->setup.own_suite || !seen[CASE_VERIFIED])
               ? GATE_NO_VERDICT
               : GATE_OK;
}

static void reproduce(const struct verify_run *v, const char *id, char *text, size_t size)
{
    const struct reproduce how = {.device = v->setup.target.device,
                                  .suite = v->request.suite,
                                  .library = v->request.target.library,
                                  .seed = v->request.seed,
                                  .tier = v->tier};
    reproduce_command(&how, id, false, text, size);
}

/* ---- output ---- */

struct verify_case {
    const char *id, *outcome, *message, *reproduce;
    struct document_arm *arms;
    size_t n_arms;
    char command[600];
};

struct verify_report {
    const char *schema, *suite, *tier, *seed;
    double seconds;
    struct document_device device;
    struct document_library *libraries;
    size_t n_libraries;
    enum yes_no launch_order_checked;
    int64_t wrapper_findings;
    struct verify_case *cases;
    size_t n_cases;
};

#define OF verify_case
static const struct field case_fields[] = {
    TEXT(id, 0, 0),
    TEXT(outcome, 0, 0),
    TEXT(message, 0, 0),
    TEXT(reproduce, 0, 0),
    LIST(arms, 0, 0, 0, document_arm),
};
static const struct shape case_shape = SHAPE_OF(case);
#undef OF

#define OF verify_report
static const struct field report_fields[] = {
    TEXT(schema, 0, 0),
    TEXT(suite, 0, 0),
    TEXT(tier, 0, 0),
    TEXT(seed, 0, 0),
    ANY(seconds, 0),
    PART(device, document_device),
    LIST(libraries, 0, 0, 0, document_library),
    YES_NO(launch_order_checked),
    COUNT(wrapper_findings, 0, 1e9),
    LIST(cases, 0, 0, 0, case),
};
static const struct shape report_shape = SHAPE_OF(report);
#undef OF

static void write_json(const struct verify_run *v, struct buf *out)
{
    static struct document_arm none;
    char seed[17];
    const struct message_greeting *greeting = &v->setup.supervisor->greeting.m;
    struct verify_case *cases = xcalloc(v->n, sizeof *cases);
    for (size_t i = 0; i < v->n; i++) {
        const struct case_result *result = &v->results[i];
        struct verify_case *c = &cases[i];
        c->id = v->setup.suite.cases[i].id;
        c->outcome = outcome_names[result->outcome];
        c->message = result->said;
        c->reproduce = c->command;
        reproduce(v, c->id, c->command, sizeof c->command);
        c->arms = result->n_arms ? result->arms : &none;
        c->n_arms = result->n_arms;
    }
    snprintf(seed, sizeof seed, "%016" PRIx64, v->request.seed);
    const struct verify_report report = {.schema = "gate-verify/1",
                                         .suite = v->setup.suite.file.name,
                                         .tier = verify_tier_name(v->tier),
                                         .seed = seed,
                                         .seconds = v->seconds,
                                         .device = greeting->device,
                                         .libraries = greeting->libraries,
                                         .n_libraries = greeting->n_libraries,
                                         .launch_order_checked = greeting->launch_order_checked,
                                         .wrapper_findings = v->findings,
                                         .cases = cases,
                                         .n_cases = v->n};
    fields_write_indented(&report_shape, &report, out);
    free(cases);
}

/* A number with so many significant digits; nothing where it is not known. */
static void number_cell(struct table *t, double value, int digits)
{
    char text[32] = "";
    if (!isnan(value))
        snprintf(text, sizeof text, "%.*g", digits, value);
    table_cell(t, TERM_PLAIN, text);
}

static void write_row(struct table *t, const struct verify_run *v, size_t i)
{
    const struct document_arm *arm = arm_of(v, i);
    const struct document_verify *verify = report_verify(arm);
    enum case_outcome outcome = v->results[i].outcome;
    table_cell(t, TERM_PLAIN, v->setup.suite.cases[i].id);
    table_cell(t,
               outcome == CASE_VERIFIED ? TERM_GREEN
               : outcome == CASE_WRONG  ? TERM_RED
                                        : TERM_YELLOW,
               outcome_names[outcome]);
    table_cell(t, TERM_PLAIN, arm ? arm->kernel : "");
    number_cell(t, verify ? verify->rel_fro : NAN, 3);
    number_cell(t, verify ? verify->limit : NAN, 1);
    number_cell(t, verify ? verify->vendor_ratio : NAN, 3);
    number_cell(t, verify && verify->checks >= 0 ? (double)verify->checks : NAN, 9);
    number_cell(t, verify && verify->skipped >= 0 ? (double)verify->skipped : NAN, 9);
}

static void write_text(const struct verify_run *v, struct buf *out)
{
    static const struct table_column columns[] = {
        {.title = "case"},
        {.title = "result"},
        {.title = "kernel", .drop = 1},
        {.title = "rel. error", .right = true, .drop = 2},
        {.title = "limit", .right = true, .drop = 5},
        {.title = "/ vendor's", .right = true, .drop = 4},
        {.title = "checks", .right = true, .drop = 3},
        {.title = "skipped", .right = true, .drop = 6},
    };
    struct report_style style = command_style();
    struct table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    struct left_out_sums left_out = {.most = v->tier == VERIFY_NIGHTLY};
    struct covered_sums sums = {0};
    size_t counts[CASE_ENVIRONMENT + 1] = {0};
    char command[600];
    for (size_t i = 0; i < v->n; i++) {
        const struct suite_case *c = &v->setup.suite.cases[i];
        const struct document_verify *verify = report_verify(arm_of(v, i));
        write_row(t, v, i);
        counts[v->results[i].outcome]++;
        left_out_add(&left_out, c->id, verify);
        covered_add(&sums, c->problem.op, verify);
    }
    table_write(t, &style, out);
    table_free(t);
    for (size_t i = 0; i < v->n; i++) {
        if (v->results[i].outcome == CASE_VERIFIED)
            continue;
        const char *id = v->setup.suite.cases[i].id;
        reproduce(v, id, command, sizeof command);
        buf_printf(out, "\n%s: %s: ", id, outcome_names[v->results[i].outcome]);
        term_puts(v->results[i].said, out);
        buf_putc(out, '\n');
        if (v->results[i].outcome == CASE_WRONG)
            buf_printf(out, "  again: %s\n", command);
    }
    if (v->findings)
        buf_printf(out,
                   "\n%u worker%s under '%s' did not end with 0: it found something, see its "
                   "output\n",
                   v->findings, v->findings == 1 ? "" : "s", v->wrapper);
    struct table *covered = covered_table(&sums);
    if (covered) {
        buf_putc(out, '\n');
        table_write(covered, &style, out);
        table_free(covered);
    }
    buf_printf(out,
               "\n%zu right, %zu wrong, %zu not served, %zu not looked at; tier %s, seed "
               "%016" PRIx64 ", %.1f s\n",
               counts[CASE_VERIFIED], counts[CASE_WRONG], counts[CASE_UNSUPPORTED],
               counts[CASE_ENVIRONMENT], verify_tier_name(v->tier), v->request.seed, v->seconds);
    if (v->setup.supervisor->greeting.m.launch_order_checked == NO)
        buf_puts(out, "the order of launches was not checked: this needs CUDA 12.3 or later\n");
    left_out_write_lines(&left_out, out);
}

/* ---- the command ---- */

#define WRAPPER_SLOWNESS 20.0 /* how much slower a kernel may be under it */

/* Splits the command at its blanks. */
static bool take_wrapper(struct verify_run *v, const struct options_seen *seen)
{
    struct supervisor_options *to = &v->request.target;
    char *at = v->wrapper_text;
    snprintf(at, sizeof v->wrapper_text, "%s", v->wrapper);
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        if (to->n_wrapper == SUPERVISOR_WRAPPER_MAX)
            return false;
        v->wrapper_words[to->n_wrapper++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    to->wrapper = v->wrapper_words;
    to->timeout_s *= WRAPPER_SLOWNESS;
    if (!options_given(seen, "suite"))
        v->request.suite = "smoke";
    if (!options_given(seen, "tier"))
        v->tier = VERIFY_SMALL;
    return to->n_wrapper > 0;
}

static enum gate_status look(struct verify_run *v, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    TRY(run_setup_check_library(&v->request, err));
    TRY(run_setup_open(&v->request, &v->setup, err));
    TRY(interrupt_catch(err));
    TRY(verify_cases(v, err));
    if (v->wrapper) {
        supervisor_retire_worker(v->setup.supervisor);
        v->findings = v->setup.supervisor->findings;
    }
    if (v->request.json)
        write_json(v, &text);
    else
        write_text(v, &text);
    return command_write(NULL, &text, err);
}

static int verify(struct command_call *call, struct gate_error *err)
{
    struct verify_run *v = call->arguments;
    if (v->wrapper && !take_wrapper(v, &call->seen))
        return command_usage(&command_verify, "--wrapper has no word, or over %d",
                             SUPERVISOR_WRAPPER_MAX);
    v->request.without_vendors = !v->vendors;
    v->request.target.untimed = true;
    v->request.providers.none = false; /* --vendors beats gate.json */
    interrupt_announce(command_verify.name, "it has no result");
    enum gate_status status = look(v, err);
    int code = status ? (int)status : exit_code(v);
    for (size_t i = 0; v->results && i < v->n; i++)
        case_result_release(&v->results[i]);
    free(v->results);
    run_setup_close(&v->setup);
    if (status > 128) {
        command_failed(&command_verify, err);
        raise(interrupt_signal());
    }
    return code;
}

const struct command command_verify = {
    .name = "gate verify",
    .summary = "check that kernels are right, without timing them",
    .about = "Checks that the kernels are right, and measures no time. It checks their results on "
             "random inputs and on inputs with one exact answer, on the suite's shapes and on "
             "awkward shapes near them, and in every layout that kernels may get; writes outside "
             "their outputs; and whether repeated launches give the same bits. 'gate run' runs the "
             "commit tier on every kernel before it is timed.",
    .groups = {{request_device_options, 0},
               {request_options, 0},
               {request_library_options, 0},
               {options, 0}},
    .ending = "Exit codes: 0 all right, 2 a wrong result, crash, hang or what a wrapper found, 3 a "
              "case of your own suite is not served or was not looked at, 4 environment refused, "
              "64 usage, 70 internal, 74 input/output. With several, the first of 2, 4, 3 "
              "wins.\n",
    DEFAULTS(.request = {RUN_REQUEST_DEFAULTS}, .tier = VERIFY_COMMIT),
    .main = verify,
};
