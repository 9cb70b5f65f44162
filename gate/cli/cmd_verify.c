/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/commands.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/interrupt.h"
#include "gate/base/json.h"
#include "gate/base/seed.h"
#include "gate/document/covered.h"
#include "gate/document/fields_table.h"
#include "gate/report/report_left_out.h"
#include "gate/report/report_table.h"
#include "gate/run/reproduce.h"
#include "gate/cli/run_reports.h"
#include "gate/cli/run_setup.h"
#include "gate/run/sanitize.h"

struct verify_run {
    struct run_request request;
    enum verify_tier tier;
    bool sanitized, vendors;
    const char *allow;
    struct run_setup setup;
    struct case_result *results; /* of the suite's cases */
    size_t n;                    /* that are done, or were interrupted */
    size_t n_done;
    double seconds;
};

static bool read_tier(void *field, const char *text)
{
    return verify_tier_parse(text, field);
}

#define ARGUMENTS struct verify_run

static const struct option_def options[] = {
    OPTION(READ, "tier", "TIER", tier, "extent of the checks: commit, nightly or small",
           .form = "commit, nightly or small", .read = read_tier, .fallback = "commit"),
    OPTION(LIST, "provider", "FILE", request.providers,
           "a library whose error is shown for comparison, repeatable", .key = "providers",
           .is_path = true, .fallback = "none"),
    FLAG("vendors", vendors,
         "on a GPU also show the error of cuBLAS or cuDNN, which takes seconds to prepare"),
    FLAG("sanitize", sanitized, "run small shapes under compute-sanitizer's four tools instead"),
    OPTION(TEXT, "allow", "FILE", allow,
           "with --sanitize: patterns of reports to ignore, one per line"),
    {0},
};

const struct command command_verify = {
    .name = "verify",
    .summary = "check that kernels are right, without timing them",
    .about = "Checks that the kernels are right, and measures no time. It checks their results on "
             "random inputs and on inputs with one exact answer, on the suite's shapes and on "
             "awkward shapes near them, and in every layout that kernels may get; writes outside "
             "their outputs; and whether repeated launches give the same bits. 'gate run' runs the "
             "commit tier on every kernel before it is timed.",
    .groups = {{request_device_options, 0},
               {request_options, 0},
               {request_library_options, 0},
               {request_worker_options, 0},
               {options, 0}},
    .ending = "Exit codes: 0 all right, 2 a wrong result, crash, hang or a sanitizer's report, 3 a "
              "case of your own suite is not served, or a sanitizer skipped one, 4 environment "
              "refused, 64 usage, 70 internal, 74 input/output. With several, the first of 2, 4, 3 "
              "wins.\n",
    .main = cmd_verify,
};

static const char *const outcome_names[] = {[CASE_VERIFIED] = "right",
                                            [CASE_WRONG] = "wrong",
                                            [CASE_UNSUPPORTED] = "not served",
                                            [CASE_ENVIRONMENT] = "environment"};

/* ---- verifying ---- */

static enum gate_status fail_interrupted(const struct verify_run *v, struct gate_error *err)
{
    size_t n_wrong = 0;
    for (size_t i = 0; i < v->n_done; i++)
        n_wrong += v->results[i].outcome == CASE_WRONG;
    return gate_fail(err, interrupt_status(),
                     "interrupted by signal %d (%s) when %zu of %zu cases were verified, %zu of "
                     "them wrong",
                     interrupt_signal(), strsignal(interrupt_signal()), v->n_done,
                     v->setup.suite.n_cases, n_wrong);
}

static enum gate_status verify_cases(struct verify_run *v, struct gate_error *err)
{
    const struct suite *suite = &v->setup.suite;
    char text[256];
    enum gate_status status = GATE_OK;
    double start = clock_s();
    v->results = calloc(suite->n_cases, sizeof *v->results);
    if (!v->results)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (v->n = 0; v->n < suite->n_cases && !status && !interrupt_signal(); v->n++) {
        const struct suite_case *c = &suite->cases[v->n];
        const struct case_task task = {.c = c,
                                       .seed = seed_of_text(v->request.seed, c->id),
                                       .budget_ms = 1,
                                       .verify = true,
                                       .verify_only = true,
                                       .tier = v->tier,
                                       .providers = true};
        snprintf(text, sizeof text, "verifying [%zu/%zu] %s", v->n + 1, suite->n_cases, c->id);
        run_progress(text);
        status = supervisor_run_case(v->setup.supervisor, &task, &v->results[v->n], err);
        v->n_done += !interrupt_signal();
    }
    run_progress("");
    v->seconds = clock_s() - start;
    return interrupt_signal() ? fail_interrupted(v, err) : status;
}

static int exit_code(const struct verify_run *v)
{
    bool seen[CASE_ENVIRONMENT + 1] = {false};
    for (size_t i = 0; i < v->n; i++)
        seen[v->results[i].outcome] = true;
    return seen[CASE_WRONG]         ? GATE_WRONG
           : seen[CASE_ENVIRONMENT] ? GATE_ENVIRONMENT
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
    struct verify_case *cases;
    size_t n_cases;
};

#define OF verify_case
static const struct field case_fields[] = {
    TEXT(id, 0, 0),
    TEXT(outcome, 0, 0),
    TEXT(message, 0, 0),
    TEXT(reproduce, 0, 0),
    LIST(arms, 0, 0, 0, document_arm_shape),
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
    PART(device, document_device_shape),
    LIST(libraries, 0, 0, 0, document_library_shape),
    YES_NO(launch_order_checked),
    LIST(cases, 0, 0, 0, case_shape),
};
static const struct shape report_shape = SHAPE_OF(report);
#undef OF

static enum gate_status write_json(const struct verify_run *v, struct buf *out,
                                   struct gate_error *err)
{
    static struct document_arm none;
    char seed[17];
    const struct message_greeting *greeting = supervisor_greeting(v->setup.supervisor);
    struct verify_case *cases = calloc(v->n + 1, sizeof *cases);
    if (!cases)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < v->n; i++) {
        const struct case_result *result = &v->results[i];
        struct verify_case *c = &cases[i];
        c->id = v->setup.suite.cases[i].id;
        c->outcome = outcome_names[result->outcome];
        c->message = result->message;
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
                                         .cases = cases,
                                         .n_cases = v->n};
    fields_write_indented(&report_shape, &report, out);
    free(cases);
    return GATE_OK;
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
    const struct case_result *result = &v->results[i];
    const struct document_arm *arm = result->n_arms ? result->arms : NULL;
    const struct document_verify *verify = arm && arm->has_verify ? &arm->verify : NULL;
    bool right = result->outcome == CASE_VERIFIED, wrong = result->outcome == CASE_WRONG;
    table_cell(t, TERM_PLAIN, v->setup.suite.cases[i].id);
    table_cell(t,
               right   ? TERM_GREEN
               : wrong ? TERM_RED
                       : TERM_YELLOW,
               outcome_names[result->outcome]);
    table_cell(t, TERM_PLAIN, arm ? arm->kernel : "");
    number_cell(t, verify ? verify->rel_fro : NAN, 3);
    number_cell(t, verify ? verify->limit : NAN, 1);
    number_cell(t, verify ? verify->vendor_ratio : NAN, 3);
    number_cell(t, verify && verify->checks >= 0 ? (double)verify->checks : NAN, 9);
    number_cell(t, verify && verify->skipped >= 0 ? (double)verify->skipped : NAN, 9);
}

/* Which cases have only their own shape to show for, and what was left out of all. */
static void write_left_out(const struct verify_run *v, struct buf *out)
{
    struct left_out_sums sums = {.most = v->tier == VERIFY_NIGHTLY};
    for (size_t i = 0; i < v->n; i++) {
        const struct document_arm *arm = v->results[i].n_arms ? v->results[i].arms : NULL;
        left_out_add(&sums, v->setup.suite.cases[i].id,
                     arm && arm->has_verify ? &arm->verify : NULL);
    }
    left_out_write_lines(&sums, out);
}

/* The count of each op, of so many where that is known; empty where the op has no cases. */
static void write_counts(struct table *t, const struct covered_sums *sums, const int64_t *count,
                         const int64_t *of)
{
    char text[64];
    for (size_t i = 0; i < COVERED_OPS; i++) {
        int n = snprintf(text, sizeof text, "%" PRId64, count[i]);
        if (of)
            snprintf(text + n, sizeof text - (size_t)n, " of %" PRId64, of[i]);
        table_cell(t, TERM_PLAIN, sums->has[i] ? text : "");
    }
}

/* What was looked at, by class and op. */
static void write_coverage(const struct verify_run *v, const struct report_style *style,
                           struct buf *out)
{
    struct table_column columns[2 + COVERED_OPS] = {{"covered", false, 0}, {"class", false, 0}};
    struct covered_sums sums = {0};
    struct covered_class row;
    size_t at = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct document_arm *arm = v->results[i].n_arms ? v->results[i].arms : NULL;
        covered_add(&sums, problem_op_name(v->setup.suite.cases[i].problem.op),
                    arm && arm->has_verify ? &arm->verify : NULL);
    }
    if (!covered_is_known(&sums))
        return;
    for (size_t i = 0; i < COVERED_OPS; i++)
        columns[2 + i] = (struct table_column){covered_op(i), true, 0};
    struct table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    while (covered_next(&sums, &at, &row)) {
        table_cell(t, TERM_PLAIN, row.what);
        table_cell(t, TERM_PLAIN, row.name);
        write_counts(t, &sums, row.count, NULL);
    }
    table_cell(t, TERM_PLAIN, "shapes");
    table_cell(t, TERM_PLAIN, "pairs of classes");
    write_counts(t, &sums, sums.pairs, sums.pairs_of);
    buf_puts(out, "\n");
    table_write(t, style, out);
    table_free(t);
}

static void write_text(const struct verify_run *v, struct buf *out)
{
    static const struct table_column columns[] = {
        {"case", false, 0}, {"result", false, 0},    {"kernel", false, 1}, {"rel. error", true, 2},
        {"limit", true, 5}, {"/ vendor's", true, 4}, {"checks", true, 3},  {"skipped", true, 6},
    };
    struct report_style style = command_style();
    struct table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    size_t counts[CASE_ENVIRONMENT + 1] = {0};
    char command[600];
    for (size_t i = 0; i < v->n; i++) {
        write_row(t, v, i);
        counts[v->results[i].outcome]++;
    }
    table_write(t, &style, out);
    table_free(t);
    for (size_t i = 0; i < v->n; i++) {
        if (v->results[i].outcome == CASE_VERIFIED)
            continue;
        const char *id = v->setup.suite.cases[i].id;
        reproduce(v, id, command, sizeof command);
        buf_printf(out, "\n%s: %s: %s\n", id, outcome_names[v->results[i].outcome],
                   v->results[i].message);
        if (v->results[i].outcome == CASE_WRONG)
            buf_printf(out, "  again: %s\n", command);
    }
    write_coverage(v, &style, out);
    buf_printf(out,
               "\n%zu right, %zu wrong, %zu not served, %zu not looked at; tier %s, seed "
               "%016" PRIx64 ", %.1f s\n",
               counts[CASE_VERIFIED], counts[CASE_WRONG], counts[CASE_UNSUPPORTED],
               counts[CASE_ENVIRONMENT], verify_tier_name(v->tier), v->request.seed, v->seconds);
    if (supervisor_greeting(v->setup.supervisor)->launch_order_checked == NO)
        buf_puts(out, "the order of launches was not checked: this needs CUDA 12.3 or later\n");
    write_left_out(v, out);
}

static enum gate_status write_result(const struct verify_run *v, struct gate_error *err)
{
    struct buf text;
    enum gate_status status = GATE_OK;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    if (v->request.json)
        status = write_json(v, &text, err);
    else
        write_text(v, &text);
    if (!status)
        status = command_write(NULL, &text, err);
    buf_release(&text);
    return status;
}

/* ---- under sanitizers ---- */

static cJSON *text_object(const struct sanitize_text *text)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "text", text->text);
    cJSON_AddNumberToObject(o, "times", (double)text->times);
    return o;
}

static cJSON *tool_object(const struct sanitize_tool *tool)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "tool", tool->name);
    cJSON_AddNumberToObject(o, "cases", (double)tool->cases);
    cJSON_AddNumberToObject(o, "skipped", (double)tool->skipped);
    cJSON_AddNumberToObject(o, "wrong", (double)tool->wrong);
    cJSON_AddNumberToObject(o, "errors", (double)tool->errors);
    cJSON_AddNumberToObject(o, "allowed", (double)tool->allowed);
    cJSON_AddStringToObject(o, "why_skipped", tool->why_skipped);
    cJSON *texts = cJSON_AddArrayToObject(o, "texts");
    for (unsigned i = 0; i < tool->n_texts; i++)
        cJSON_AddItemToArray(texts, text_object(&tool->texts[i]));
    return o;
}

static void write_tools_json(const struct sanitize *s, struct buf *out)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "schema", "gate-sanitize/1");
    cJSON *tools = cJSON_AddArrayToObject(o, "tools");
    for (unsigned i = 0; i < SANITIZE_TOOLS; i++)
        cJSON_AddItemToArray(tools, tool_object(&s->tools[i]));
    json_write(o, true, out);
    cJSON_Delete(o);
}

static void write_tools_text(const struct sanitize *s, struct buf *out)
{
    buf_printf(out, "%-10s %8s %8s %8s %8s %8s\n", "tool", "cases", "skipped", "wrong", "errors",
               "allowed");
    for (unsigned i = 0; i < SANITIZE_TOOLS; i++) {
        const struct sanitize_tool *t = &s->tools[i];
        buf_printf(out, "%-10s %8zu %8zu %8zu %8zu %8zu\n", t->name, t->cases, t->skipped, t->wrong,
                   t->errors, t->allowed);
    }
    for (unsigned i = 0; i < SANITIZE_TOOLS; i++) {
        const struct sanitize_tool *t = &s->tools[i];
        if (t->skipped)
            buf_printf(out, "\n%s skipped %zu cases: %s\n", t->name, t->skipped, t->why_skipped);
        for (unsigned j = 0; j < t->n_texts; j++)
            buf_printf(out, "\n%s, %zu times: %s\n", t->name, t->texts[j].times, t->texts[j].text);
    }
}

/* What was skipped is not covered, and so no pass. */
static int sanitize_code(const struct sanitize *s)
{
    size_t bad = 0, skipped = 0;
    for (unsigned i = 0; i < SANITIZE_TOOLS; i++) {
        bad += s->tools[i].errors + s->tools[i].wrong;
        skipped += s->tools[i].skipped;
    }
    return bad ? GATE_WRONG : skipped ? GATE_NO_VERDICT : GATE_OK;
}

static enum gate_status sanitize(struct verify_run *v, int *code, struct gate_error *err)
{
    struct buf text;
    struct sanitize s = {.suite = &v->setup.suite,
                         .options = v->setup.target.options,
                         .seed = v->request.seed,
                         .allow = v->allow,
                         .progress = run_progress};
    supervisor_retire_worker(v->setup.supervisor); /* or the device would be busy */
    enum gate_status status = sanitize_run(&s, err);
    run_progress("");
    if (status)
        return status;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    if (v->request.json)
        write_tools_json(&s, &text);
    else
        write_tools_text(&s, &text);
    status = command_write(NULL, &text, err);
    buf_release(&text);
    *code = sanitize_code(&s);
    return status;
}

/* ---- the command ---- */

static enum gate_status verify(struct verify_run *v, int *code, struct gate_error *err)
{
    enum gate_status status = verify_cases(v, err);
    if (!status)
        status = write_result(v, err);
    *code = exit_code(v);
    return status;
}

static int execute(const struct command *command, struct verify_run *v)
{
    struct gate_error err = {0};
    int code = GATE_OK;
    if (!v->request.seed_text)
        v->request.seed = run_request_fresh_seed();
    interrupt_announce(command->name, "it has no result");
    enum gate_status status = run_setup_open(&v->request, &v->setup, &err);
    if (!status && !v->sanitized)
        status = interrupt_catch(&err);
    if (!status)
        status = v->sanitized ? sanitize(v, &code, &err) : verify(v, &code, &err);
    if (status)
        code = command_failed(command, &err);
    for (size_t i = 0; v->results && i < v->n; i++)
        case_result_release(&v->results[i]);
    free(v->results);
    run_setup_close(&v->setup);
    if (status > 128)
        raise(interrupt_signal());
    return code;
}

int cmd_verify(int argc, char **argv)
{
    struct verify_run v = {.tier = VERIFY_COMMIT};
    struct options_seen seen;
    int exit_code;
    run_request_init(&v.request);
    if (!options_read(&command_verify, &v, 0, argc, argv, &seen, &exit_code))
        return exit_code;
    if (v.allow && !v.sanitized)
        return command_usage(&command_verify, "--allow needs --sanitize");
    if (v.sanitized && !options_given(&seen, "suite"))
        v.request.suite = "smoke";
    v.request.target.without_vendors = !v.vendors;
    v.request.providers.none = false; /* --vendors beats gate.json */
    return execute(&command_verify, &v);
}
