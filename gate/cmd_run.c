#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cmd_common.h"
#include "commands.h"
#include "run.h"
#include "target.h"

#define REPORTS_MAX 8

static const char help[] =
    "Usage: gate run [OPTION]...\n"
    "\n"
    "Verifies and measures a suite of kernels, holds each p50 against the stored best, and keeps\n"
    "the run in the history.\n"
    "\n"
    "  --suite NAME|FILE       canonical, host, smoke, or a file; default: canonical on a GPU,\n"
    "                          host on the host\n"
    "  --device auto|host|cuda:N  default: auto (cuda:0 where there is a GPU, else host)\n"
    "  --library FILE          the kernel library to judge; default: the one shipped\n"
    "  --provider FILE         a library to compare with, up to 7 times; default: cuBLAS on a GPU\n"
    "  --filter GLOB           only the cases whose id matches, e.g. 'gemm/fp16/*'\n"
    "  --threshold PERCENT     slowdown that fails, default 2%\n"
    "  --accept-new            take what has no best yet as the best\n"
    "  --db FILE               history, default $GATE_DB or ./gate.db\n"
    "  --baselines DIR         stored bests, default $GATE_BASELINES or ./baselines\n"
    "  --report FORMAT=FILE    text, markdown, json, csv or junit; repeatable\n"
    "  --json                  print the run document instead of the table\n"
    "  --seed HEX              seed of all inputs, default: a fresh one\n"
    "  --budget MS             time for the samples of one case in one process, default 1000\n"
    "  --timeout SECONDS       longest silence of a worker before it is killed, default 60\n"
    "  --worker PROGRAM        another worker (see gate/PROTOCOL.md)\n"
    "\n"
    "Exit codes: 0 pass, 1 regression, 2 wrong result, crash or hang, 3 no verdict or incomplete,\n"
    "4 environment refused, 64 usage, 70 internal, 74 input/output. With several, the first of\n"
    "2, 1, 4, 3 wins.\n";

struct report_request {
    enum report_format format;
    const char *path;
};

struct options {
    struct target_choice target;
    const char *suite, *filter, *db, *baselines;
    double threshold, budget_ms;
    bool accept_new, json, has_seed;
    uint64_t seed;
    struct report_request reports[REPORTS_MAX];
    size_t n_reports;
};

/* "2%", "2.5 %" or "0.02". */
static bool parse_threshold(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text)
        return false;
    end += strspn(end, " ");
    if (*end == '%') {
        value /= 100;
        end++;
    }
    *out = value;
    return !*end && value > 0 && value <= 10;
}

static bool parse_number(const char *text, double least, double most, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= least && *out <= most;
}

static bool parse_seed(const char *text, struct options *o)
{
    char *end;
    errno = 0;
    o->seed = strtoull(text, &end, 16);
    o->has_seed = true;
    return end != text && !*end && !errno && *text != '-' && strlen(text) <= 16;
}

static bool parse_report(const char *text, struct options *o)
{
    char name[16];
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || (size_t)(equals - text) >= sizeof name ||
        o->n_reports == REPORTS_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    o->reports[o->n_reports].path = equals + 1;
    return report_format_parse(name, &o->reports[o->n_reports++].format);
}

static const struct option long_options[] = {
    {"suite", required_argument, NULL, 's'},
    {"device", required_argument, NULL, 'd'},
    {"library", required_argument, NULL, 'l'},
    {"provider", required_argument, NULL, 'p'},
    {"filter", required_argument, NULL, 'f'},
    {"threshold", required_argument, NULL, 't'},
    {"accept-new", no_argument, NULL, 'n'},
    {"db", required_argument, NULL, 'D'},
    {"baselines", required_argument, NULL, 'B'},
    {"report", required_argument, NULL, 'r'},
    {"json", no_argument, NULL, 'j'},
    {"seed", required_argument, NULL, 'S'},
    {"budget", required_argument, NULL, 'b'},
    {"timeout", required_argument, NULL, 'T'},
    {"worker", required_argument, NULL, 'w'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* False: the argument does not fit its option. */
static bool take_option(int option, const char *argument, struct options *o)
{
    struct target_choice *t = &o->target;
    switch (option) {
    case 's':
        o->suite = argument;
        return true;
    case 'd':
        t->device = argument;
        return true;
    case 'l':
        t->library = argument;
        return true;
    case 'p':
        if (t->n_providers == sizeof t->providers / sizeof t->providers[0])
            return false;
        t->providers[t->n_providers++] = argument;
        return true;
    case 'f':
        o->filter = argument;
        return true;
    case 't':
        return parse_threshold(argument, &o->threshold);
    case 'n':
        return o->accept_new = true;
    case 'D':
        o->db = argument;
        return true;
    case 'B':
        o->baselines = argument;
        return true;
    case 'r':
        return parse_report(argument, o);
    case 'j':
        return o->json = true;
    case 'S':
        return parse_seed(argument, o);
    case 'T':
        return parse_number(argument, 0.1, 86400, &t->timeout_s);
    case 'b':
        return parse_number(argument, 1, 1e6, &o->budget_ms);
    case 'w':
        t->worker = argument;
        return true;
    default:
        return false;
    }
}

static enum gate_status parse(struct command *command, int argc, char **argv, struct options *o,
                              bool *help_wanted)
{
    const char *baselines = getenv("GATE_BASELINES");
    *o = (struct options){.threshold = 0.02,
                          .budget_ms = 1000,
                          .baselines = baselines && *baselines ? baselines : "./baselines"};
    for (int c; (c = command_option(command, argc, argv)) != -1;) {
        if (c == '?')
            return GATE_USAGE;
        if (c == 'h') {
            *help_wanted = true;
            return GATE_OK;
        }
        if (!take_option(c, optarg, o))
            return command_usage(command, "'%s' is no value for this option", optarg);
    }
    if (optind < argc)
        return command_usage(command, "unexpected argument '%s'", argv[optind]);
    return GATE_OK;
}

/* A line that is written over and over, on a terminal only. */
static void show_progress(void *context, const struct suite_case *c, size_t done, size_t n,
                          unsigned look)
{
    const bool *on_terminal = context;
    if (*on_terminal)
        fprintf(stderr, "\r\033[K[%zu/%zu] %s%s", done + 1, n, c->id,
                look ? " (again, in a fresh process)" : "");
}

static void clear_progress(bool on_terminal)
{
    if (on_terminal)
        fprintf(stderr, "\r\033[K");
}

static enum gate_status write_report(const cJSON *document, const struct report_request *r,
                                     struct gate_error *err)
{
    struct report_style plain = {.colour = false, .width = 0};
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, r->format, &plain, &text);
    enum gate_status status = command_write(r->path, &text, err);
    buf_release(&text);
    return status;
}

static enum gate_status print_report(const cJSON *document, bool json, struct gate_error *err)
{
    struct report_style style = command_style();
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, json ? REPORT_JSON : REPORT_TEXT, &style, &text);
    enum gate_status status = command_write(NULL, &text, err);
    buf_release(&text);
    return status;
}

/* Checks the document by its own schema before anybody else sees it, and stores it. */
static enum gate_status store_run(struct store *store, const cJSON *document,
                                  struct gate_error *err)
{
    struct schema *schema;
    struct schema_fault fault;
    struct buf text;
    bool existed;
    enum gate_status status = command_run_schema(&schema, err);
    if (status)
        return status;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    json_write(document, false, &text);
    if (!schema_check(schema, document, &fault))
        status = gate_fail(err, GATE_INTERNAL, "the run document breaks its schema at '%s': %s",
                           fault.pointer, fault.message);
    else if (text.failed)
        status = gate_fail(err, GATE_INTERNAL, "out of memory for the run document");
    else
        status = store_put_run(store, document, text.data, text.len, &existed, err);
    buf_release(&text);
    schema_free(schema);
    return status;
}

/* Everything that a run needs and lets go of at its end. */
struct session {
    struct suite suite;
    struct store *store;
    struct supervisor *supervisor;
    struct best *best;
    char *best_path;
    struct run run;
};

static enum gate_status load_suite(const struct options *o, const char *device, struct suite *suite,
                                   struct gate_error *err)
{
    char path[PATHS_MAX];
    const char *name = o->suite ? o->suite : strcmp(device, "host") != 0 ? "canonical" : "host";
    enum gate_status status = paths_suite(name, path, err);
    if (!status)
        status = suite_load(path, suite, err);
    if (!status && o->filter && !suite_filter(suite, o->filter))
        status = gate_fail(err, GATE_USAGE, "no case of suite '%s' matches '%s'", name, o->filter);
    return status;
}

/* All that can be refused is refused before the first kernel runs. */
static enum gate_status prepare(const struct options *o, struct target *target, struct session *s,
                                struct gate_error *err)
{
    enum gate_status status = target_resolve(&o->target, target, err);
    if (!status)
        status = load_suite(o, target->device, &s->suite, err);
    if (!status)
        status = store_open(command_db(o->db), STORE_READ_WRITE, &s->store, err);
    if (!status)
        status = supervisor_start(&target->options, &s->supervisor, err);
    if (status)
        return status;
    const cJSON *device =
        cJSON_GetObjectItemCaseSensitive(supervisor_greeting(s->supervisor), "device");
    const char *model = json_string(device, "model", "");
    s->best_path = best_path(o->baselines, model);
    if (!s->best_path)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    return best_load(s->best_path, model, &s->best, err);
}

/* A folder that is not there yet is made, so that the first run on a machine needs no set-up. */
static enum gate_status save_best(const struct options *o, const struct session *s,
                                  struct gate_error *err)
{
    if (mkdir(o->baselines, 0777) && errno != EEXIST)
        return gate_fail(err, GATE_IO, "cannot create '%s': %s", o->baselines, strerror(errno));
    return best_save(s->best, s->best_path, err);
}

static enum gate_status measure_and_write(const struct options *o, struct session *s,
                                          struct gate_error *err)
{
    bool on_terminal = isatty(STDERR_FILENO);
    size_t n_new = 0;
    struct run *run = &s->run;
    enum gate_status status = run_measure(run, s->supervisor, show_progress, &on_terminal, err);
    clear_progress(on_terminal);
    if (!status && o->accept_new)
        status = run_accept_new(run, s->best, &n_new, err);
    if (status)
        return status;
    cJSON *document = run_document(run);
    if (!document)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    status = store_run(s->store, document, err);
    if (!status && n_new)
        status = save_best(o, s, err);
    for (size_t i = 0; i < o->n_reports && !status; i++)
        status = write_report(document, &o->reports[i], err);
    if (!status)
        status = print_report(document, o->json, err);
    cJSON_Delete(document);
    return status;
}

static uint64_t fresh_seed(void)
{
    uint64_t seed;
    while (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        continue;
    return seed;
}

static void release(struct session *s)
{
    run_release(&s->run);
    supervisor_stop(s->supervisor);
    best_free(s->best);
    free(s->best_path);
    store_close(s->store);
    suite_free(&s->suite);
}

int cmd_run(int argc, char **argv)
{
    struct command command = {.name = "run", .help = help, .options = long_options};
    struct options o;
    struct session s = {0};
    struct target target = {0};
    struct gate_error err = {0};
    bool help_wanted = false;
    enum gate_status status = parse(&command, argc, argv, &o, &help_wanted);
    if (status)
        return status;
    if (help_wanted)
        return command_help(&command);
    status = prepare(&o, &target, &s, &err);
    if (!status) {
        s.run = (struct run){.suite = &s.suite,
                             .best = s.best,
                             .threshold = o.threshold,
                             .budget_ms = o.budget_ms,
                             .seed = o.has_seed ? o.seed : fresh_seed()};
        origin_read(&s.run.origin);
        status = measure_and_write(&o, &s, &err);
    }
    int code = status ? command_failed(&command, &err) : run_exit_code(&s.run);
    release(&s);
    return code;
}
