/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate/base/paths.h"
#include "gate/base/alloc.h"
#include "gate/base/term.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/baseline.h"
#include "gate/cli/commands.h"
#include "gate/document/fields_table.h"
#include "gate/tracker/tracker.h"
#include "gate/run/supervisor.h"

struct doctor_arguments {
    const char *device, *db, *baselines, *library, *suite;
    struct option_list providers;
    bool json;
};

#define ARGUMENTS struct doctor_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "device", "auto|host|cuda:N", device, "the device to open", .fallback = "auto"),
    DB_OPTION(db),
    BASELINES_OPTION(baselines),
    OPTION(TEXT, "library", "FILE", library, "the kernel library to test", .key = "library",
           .is_path = true, .fallback = "only the gate's own"),
    OPTION(LIST, "provider", "FILE", providers, "a library to compare with, repeatable",
           .key = "providers", .is_path = true, .fallback = "on a GPU cuBLAS and cuDNN"),
    OPTION(TEXT, "suite", "NAME|FILE", suite, "the cases to test it with", .key = "suite",
           .is_path = true, .fallback = "canonical on a GPU, host on the host"),
    FLAG("json", json, "print a JSON document"),
    {0},
};

#define LINE "  %-14s " /* of text, with its label */

/* Prints a line that is safe for a terminal: a library says itself what it is called. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[4096];
    RELEASED_BY(buf_release) struct buf safe = buf_of(4 * sizeof line);
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    term_puts(line, &safe);
    puts(safe.data);
}

static const char *shown(const struct environment_variable *v)
{
    const char *value = getenv(v->name);
    return value && *value && v->is_secret ? "(set)" : value;
}

/* What a run here would read and write; which of it is there. */
static void print_files(const struct doctor_arguments *a, const char *model)
{
    char cache[PATHS_MAX], *path = baseline_path(a->baselines, model);
    struct baseline *baseline = NULL;
    struct gate_error err = {0};
    enum gate_status status = baseline_load(path, model, &baseline, &err);
    size_t n = status ? 0 : baseline_stored(baseline)->n_cases;
    printf("files\n" LINE "%s%s\n", "database", a->db, access(a->db, F_OK) ? ", not there" : "");
    if (status)
        printf(LINE "%s\n", "baselines", err.message);
    else
        printf(LINE "%s, %zu case%s of this device\n", "baselines", path, n, n == 1 ? "" : "s");
    printf(LINE "%s\n", "cache", artifact_cache_dir(cache, &err) ? err.message : cache);
    baseline_free(baseline);
    free(path);
}

/* ---- the library to judge ---- */

#define NAMED_MAX 3 /* cases that are named in text */

/* What was found of it. It owns the suite, the list and the worker, of which its texts are. */
struct doctor_library {
    const char *file, *provider, *version, *sha256;
    const char *message; /* why it does not open; NULL: it does */
    const char *suite, *suite_message;
    int64_t cases; /* -1: not known */
    const char **not_served;
    size_t n_not_served;
    struct supervisor_options how; /* the worker keeps a pointer to it */
    struct supervisor *worker;
    struct suite loaded;
    struct gate_error why, suite_why;
};

/* Asks for each case; launches nothing. */
static enum gate_status count_served(struct doctor_library *l)
{
    struct gate_error *err = &l->suite_why;
    l->not_served = xcalloc(l->loaded.n_cases, sizeof *l->not_served);
    for (size_t i = 0; i < l->loaded.n_cases; i++) {
        const struct suite_case *c = &l->loaded.cases[i];
        const struct case_task task = {.c = c, .kind = TASK_SERVE};
        struct case_result result;
        enum gate_status status = GATE_OK;
        TRY(supervisor_run_case(l->worker, &task, &result, err));
        if (result.outcome == CASE_UNSUPPORTED)
            l->not_served[l->n_not_served++] = c->id;
        else if (result.outcome != CASE_VERIFIED)
            status = gate_fail(err, GATE_ENVIRONMENT, "%s: %s", c->id, result.said);
        case_result_release(&result);
        TRY(status);
    }
    l->cases = (int64_t)l->loaded.n_cases;
    return GATE_OK;
}

/* It is opened by a worker, as a run would; the worker is told of the suite's ops. */
static void look_at_library(const struct doctor_arguments *a, const struct target *target,
                            struct doctor_library *l)
{
    char path[PATHS_MAX];
    l->how = target->options;
    l->file = l->how.library = a->library;
    l->cases = -1;
    l->how.n_providers = 0;
    l->suite = a->suite ? a->suite : !strcmp(target->device, "host") ? "host" : "canonical";
    enum gate_status suite = paths_suite(l->suite, path, &l->suite_why);
    if (!suite)
        suite = suite_load(path, &l->loaded, &l->suite_why);
    if (supervisor_start(&l->how, &l->worker, &l->why)) {
        l->message = l->why.message;
        return;
    }
    const struct document_library *opened = l->worker->greeting.m.libraries;
    l->provider = opened->provider;
    l->version = opened->version;
    l->sha256 = opened->sha256;
    if (!suite)
        suite = count_served(l);
    l->suite_message = suite ? l->suite_why.message : NULL;
}

static void print_library(const struct doctor_library *l)
{
    RELEASED_BY(buf_release) struct buf cases = buf_of(4096);
    printf("library to test\n");
    if (l->message) {
        say(LINE "%s", "library", l->message);
        return;
    }
    say(LINE "%s: opens; provider %s, version %s, ABI %u, sha256 %.16s...", "library", l->file,
        l->provider, l->version, KG_ABI_VERSION, l->sha256);
    buf_printf(&cases, "%" PRId64 " cases, %zu not served", l->cases, l->n_not_served);
    for (size_t i = 0; i < l->n_not_served && i < NAMED_MAX; i++)
        buf_printf(&cases, "%s%s", i > 0 ? ", " : ": ", l->not_served[i]);
    buf_puts(&cases, l->n_not_served > NAMED_MAX ? ", ..." : "");
    say(LINE "%s: %s", "suite", l->suite, l->suite_message ? l->suite_message : cases.data);
}

static void print_greeting(const struct message_greeting *g)
{
    const struct document_device *d = &g->device;
    char version[32];
    struct gate_error why;
    printf("device\n" LINE "%s\n" LINE "%s\n" LINE "%s\n" LINE "%s\n", "name", d->name, "model",
           d->model, "uuid", d->uuid, "capability", d->capability);
    printf(LINE "%" PRId64 "\n" LINE "%" PRId64 "\n" LINE "%" PRId64 "\n", "SMs or threads",
           d->sm_count, "cache bytes", d->l2_bytes, "memory bytes", d->memory_bytes);
    printf(LINE "%s\n" LINE "%s\n", "driver", d->driver, "runtime", d->runtime);
    printf("contract\n  %s\n", g->contract);
    if (g->launch_order_checked == NO)
        printf("  the order of launches is not checked: this needs CUDA 12.3 or later\n");
    printf("libraries\n");
    for (size_t i = 0; i < g->n_libraries; i++)
        say(LINE "%s, %s, sha256 %.16s...", g->libraries[i].provider, g->libraries[i].file,
            g->libraries[i].version, g->libraries[i].sha256);
    for (size_t i = 0; i < g->n_absent; i++)
        say(LINE "absent: %s", g->absent[i].provider, g->absent[i].reason);
    bool curl = !http_client_version(version, &why);
    printf("tracking server\n" LINE "%s%s\n", "curl",
           curl ? "" : "absent: ", curl ? version : why.message);
}

struct doctor_variable {
    const char *name, *value;
};

struct doctor_report {
    struct message_greeting greeting;
    const char *curl;
    bool has_library;
    struct doctor_library library;
    struct doctor_variable *environment;
    size_t n_environment;
};

#define OF doctor_variable
static const struct field variable_fields[] = {TEXT(value, NULLABLE, 0)};
SHAPE(variable);
#undef OF

#define OF doctor_library
static const struct field judged_fields[] = {
    TEXT(file, 0, 0),
    TEXT(message, NULLABLE, 0),
    TEXT(provider, NULLABLE, 0),
    TEXT(version, NULLABLE, 0),
    TEXT(sha256, NULLABLE, 0),
    TEXT(suite, NULLABLE, 0),
    TEXT(suite_message, NULLABLE, 0),
    SIZE(cases, NULLABLE),
    TEXTS(not_served, 0, 0, 0),
};
SHAPE(judged);
#undef OF

#define OF doctor_report
#define GREETING(member) .key = #member, .offset = offsetof(struct OF, greeting.member)
static const struct field report_fields[] = {
    {GREETING(hello), .kind = FIELD_TEXT},
    {GREETING(device), .kind = FIELD_OBJECT, .beside = FIELD_NOWHERE,
     .shape = &document_device_shape},
    {GREETING(contract), .kind = FIELD_TEXT},
    {GREETING(control_ns), .kind = FIELD_NUMBER, .flags = NULLABLE},
    {GREETING(users_checked), .kind = FIELD_YES_NO},
    {GREETING(launch_order_checked), .kind = FIELD_YES_NO},
    {GREETING(libraries), .kind = FIELD_LIST, .beside = offsetof(struct OF, greeting.n_libraries),
     .shape = &document_library_shape},
    {GREETING(absent), .kind = FIELD_LIST, .beside = offsetof(struct OF, greeting.n_absent),
     .shape = &document_absent_shape},
    TEXT(curl, NULLABLE, 0),
    MAYBE(library, NULLABLE, judged),
    MAP(environment, 0, variable),
};
SHAPE(report);
#undef OF

static void print_json(const struct message_greeting *greeting,
                       const struct doctor_library *library)
{
    enum { VARIABLES_MAX = 64 };
    struct doctor_variable variables[VARIABLES_MAX];
    struct doctor_report all = {.greeting = *greeting,
                                .has_library = library->file != NULL,
                                .library = *library,
                                .environment = variables};
    char version[32];
    RELEASED_BY(buf_release) struct buf text = buf_of((size_t)1 << 20);
    if (!http_client_version(version, NULL))
        all.curl = version;
    const struct environment_variable *v = environment_variables;
    for (; v->name && all.n_environment < VARIABLES_MAX; v++)
        variables[all.n_environment++] = (struct doctor_variable){v->name, shown(v)};
    fields_write_indented(&report_shape, &all, &text);
    fputs(text.failed ? "" : text.data, stdout);
}

static int doctor(struct command_call *call, struct gate_error *err)
{
    const struct doctor_arguments *a = call->arguments;
    struct target target = {0};
    struct supervisor *s = NULL;
    struct doctor_library library = {0};
    const struct supervisor_options choice = {.device = a->device,
                                              .providers = a->providers.text,
                                              .n_providers = (unsigned)a->providers.n};
    enum gate_status status = target_resolve(&choice, !a->providers.none, &target, err);
    if (!status)
        status = supervisor_start(&target.options, &s, err);
    if (!status && !a->json)
        print_greeting(&s->greeting.m);
    if (!status && a->library) {
        supervisor_retire_worker(s); /* one at a time is on the device */
        look_at_library(a, &target, &library);
    }
    if (!status && a->json)
        print_json(&s->greeting.m, &library);
    if (!a->json) {
        if (library.file)
            print_library(&library);
        if (!status)
            print_files(a, s->greeting.m.device.model);
        printf("environment\n");
        for (const struct environment_variable *v = environment_variables; v->name; v++) {
            const char *value = shown(v);
            printf("  %-22s%s%s%s\n", v->name,
                   value && !*value ? "(empty)"
                   : value          ? value
                                    : "",
                   value ? "; " : "", v->what);
        }
    }
    suite_free(&library.loaded);
    free(library.not_served);
    supervisor_stop(library.worker);
    supervisor_stop(s);
    return status;
}

const struct command command_doctor = {
    .name = "gate doctor",
    .summary = "report the abilities of this machine, and the settings of the gate",
    .about = "Opens the device as a run would, and reports device, driver, kernel libraries, "
             "absent providers with the reason, curl (which `gate push` needs), whether the "
             "library to test opens and which cases it serves, the database, baselines and cache "
             "in use, and the environment variables of the gate.",
    .groups = {{options, 0}},
    .ending = "Exit code 4: the device is missing or busy.\n",
    DEFAULTS(.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES),
    .main = doctor,
};
