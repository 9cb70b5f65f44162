#include "commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "calibrate.h"
#include "run_request.h"

#define DEFAULT_PROCESSES 10

static const char help[] =
    "Usage: gate calibrate [OPTION]...\n"
    "\n"
    "Holds the kernels against copies of themselves with known shares of their time added (0, "
    "0.5,\n"
    "1, 2, 2.5, 3 and 5 %), and says for each case how often the gate would fail unchanged code, "
    "how\n"
    "often it would catch each slowdown, and what it can resolve on this machine. The result is\n"
    "stored in the history and printed. The budget is that of a case with one share added.\n"
    "\n" REQUEST_TARGET_HELP
    "  --library FILE          the kernel library; default: the one shipped\n"
    "  --processes N           fresh processes, 5 to 200; default 10\n"
    "  --db FILE               history, default $GATE_DB or ./gate.db\n"
    "\n"
    "Exit codes: 0 all cases resolve the threshold here, 3 some do not; otherwise as 'gate run'.\n";

static const struct option options[] = {
    REQUEST_TARGET_OPTIONS,
    {"library", required_argument, NULL, 'l'},
    {"processes", required_argument, NULL, 'N'},
    {"db", required_argument, NULL, 'D'},
    {0},
};

struct calibration {
    struct run_setup setup;
    struct run run; /* for its document: the cases of a calibration have no verdicts */
    struct calibrated_case *cases;
    char sha256[65];
};

static enum gate_status prepare(const struct run_request *r, struct calibration *c,
                                struct gate_error *err)
{
    enum gate_status status = run_setup_open(r, &c->setup, err);
    if (status)
        return status;
    const char *library = c->setup.target.library;
    const cJSON *libraries =
        cJSON_GetObjectItemCaseSensitive(supervisor_greeting(c->setup.supervisor), "libraries");
    snprintf(c->sha256, sizeof c->sha256, "%s",
             json_string(cJSON_GetArrayItem(libraries, 0), "sha256", ""));
    c->run = (struct run){.suite = &c->setup.suite,
                          .policy = r->policy,
                          .seed = r->seed,
                          .against_path = library,
                          .against_sha256 = c->sha256};
    c->run.policy.against = "itself";
    origin_read(&c->run.origin);
    supervisor_leave_providers(c->setup.supervisor);
    status = run_start(&c->run, c->setup.supervisor, err);
    c->cases = calloc(c->setup.suite.n_cases, sizeof *c->cases);
    if (!status && !c->cases)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    return status;
}

/* d of all shares of one case in this process. */
static enum gate_status calibrate_case(struct calibration *c, size_t i, size_t process,
                                       struct gate_error *err)
{
    const struct suite_case *about = &c->setup.suite.cases[i];
    struct calibrated_case *to = &c->cases[i];
    struct case_task task = {.c = about,
                             .seed = c->run.seed + i,
                             .budget_ms = c->run.policy.budget_ms,
                             .best = c->sha256,
                             .verify = process == 0,
                             .swap = process % 2,
                             .shares = calibrate_shares,
                             .n_shares = CALIBRATE_SHARES};
    struct case_result result;
    enum gate_status status = supervisor_run_case(c->setup.supervisor, &task, &result, err);
    if (!status && result.outcome != CASE_MEASURED)
        status = gate_fail(err, result.outcome == CASE_WRONG ? GATE_WRONG : GATE_ENVIRONMENT,
                           "case '%s' cannot be calibrated: %s", about->id, result.message);
    for (size_t s = 0; s < CALIBRATE_SHARES && !status; s++)
        to->d[s][to->n] = result.d[s];
    to->n += !status;
    cJSON_Delete(result.arms);
    return status;
}

static enum gate_status calibrate(struct calibration *c, size_t processes, struct gate_error *err)
{
    char text[320];
    enum gate_status status = GATE_OK;
    c->run.start_ms = clock_wall_ms();
    for (size_t p = 0; p < processes && !status; p++) {
        if (p)
            supervisor_retire_worker(c->setup.supervisor);
        for (size_t i = 0; i < c->setup.suite.n_cases && !status; i++) {
            snprintf(text, sizeof text, "calibrating, process %zu of %zu [%zu/%zu] %s", p + 1,
                     processes, i + 1, c->setup.suite.n_cases, c->setup.suite.cases[i].id);
            run_request_progress(text);
            status = calibrate_case(c, i, p, err);
        }
    }
    run_request_progress("");
    c->run.n_processes = processes;
    c->run.end_ms = clock_wall_ms();
    return status;
}

/* A run document without cases and with a calibration. */
static cJSON *document_of(struct calibration *c, int *code)
{
    size_t n = c->setup.suite.n_cases, unresolved;
    for (size_t i = 0; i < n; i++) {
        c->cases[i].id = c->setup.suite.cases[i].id;
        double own = c->setup.suite.cases[i].threshold;
        c->cases[i].threshold = own > 0 ? own : c->run.policy.threshold;
    }
    cJSON *calibration = calibrate_document(c->cases, n, &unresolved);
    c->run.counts[VERDICT_NO_VERDICT] = unresolved;
    *code = verdict_exit_code(c->run.counts);
    c->setup.suite.n_cases = 0;
    cJSON *document = run_document(&c->run);
    c->setup.suite.n_cases = n;
    cJSON_AddItemToObject(document, "calibration", calibration);
    return document;
}

static int execute(const struct command *command, const struct run_request *r, size_t processes)
{
    struct calibration c = {0};
    struct gate_error err = {0};
    int code = GATE_OK;
    enum gate_status status = prepare(r, &c, &err);
    if (!status)
        status = calibrate(&c, processes, &err);
    if (!status) {
        cJSON *document = document_of(&c, &code);
        status = run_request_store(r, document, &err);
        if (!status)
            status = run_request_report(r, document, &err);
        cJSON_Delete(document);
    }
    if (status)
        code = command_failed(command, &err);
    run_release(&c.run);
    run_setup_close(&c.setup);
    free(c.cases);
    return code;
}

int cmd_calibrate(int argc, char **argv)
{
    struct command command = {.name = "calibrate", .help = help, .options = options};
    struct run_request r;
    int64_t processes = DEFAULT_PROCESSES;
    run_request_init(&r);
    for (int c; (c = command_option(&command, argc, argv)) != -1;) {
        if (c == '?')
            return GATE_USAGE;
        if (c == 'h')
            return command_help(&command);
        bool fits = c == 'N' ? command_integer(optarg, DECIDE_FIRST_LOOK, CALIBRATE_PROCESSES_MAX,
                                               &processes)
                             : run_request_option(&r, c, optarg);
        if (!fits)
            return command_usage(&command, "'%s' is no value for this option", optarg);
    }
    if (optind < argc)
        return command_usage(&command, "unexpected argument '%s'", argv[optind]);
    return execute(&command, &r, (size_t)processes);
}
