/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate/base/environment.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/baseline.h"
#include "gate/cli/cmd_common.h"
#include "gate/cli/commands.h"
#include "gate/document/fields_table.h"
#include "gate/tracker/http_client.h"
#include "gate/run/target.h"

struct doctor_arguments {
    const char *device, *db, *baselines, *library, *suite;
    bool json;
};

static const struct option_def options[] = {
    {.name = "device",
     .value = "auto|host|cuda:N",
     .help = "the device to open",
     .type = OPTION_TEXT,
     .at = offsetof(struct doctor_arguments, device),
     .fallback = "auto"},
    DB_OPTION(struct doctor_arguments, db),
    BASELINES_OPTION(struct doctor_arguments, baselines),
    {.name = "library",
     .value = "FILE",
     .help = "the kernel library to judge",
     .type = OPTION_TEXT,
     .at = offsetof(struct doctor_arguments, library),
     .key = "library",
     .is_path = true,
     .fallback = "only the gate's own is opened"},
    {.name = "suite",
     .value = "NAME|FILE",
     .help = "the cases that it is asked for",
     .type = OPTION_TEXT,
     .at = offsetof(struct doctor_arguments, suite),
     .key = "suite",
     .is_path = true,
     .fallback = "canonical on a GPU, host on the host"},
    {.name = "json",
     .help = "print a JSON document",
     .type = OPTION_FLAG,
     .at = offsetof(struct doctor_arguments, json)},
    {0},
};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "report what this machine has and what the gate can do on it",
    .about = "Opens the device as a run would, and says what is there: device, driver, kernel "
             "libraries, which providers are absent and why, whether there is a libcurl, which "
             "`gate push` needs, whether the library to judge opens and which cases it serves, "
             "which database, baselines and cache hold, and the environment variables of the "
             "gate.",
    .groups = {{options, 0}},
    .ending = "Exit code 4 when the device is missing or busy.\n",
    .main = cmd_doctor,
};

static void print_text(const char *label, const char *text)
{
    printf("  %-14s %s\n", label, text);
}

static void print_count(const char *label, int64_t count)
{
    printf("  %-14s %lld\n", label, (long long)count);
}

static void print_libcurl(void)
{
    char version[32];
    struct gate_error why;
    if (http_client_version(version, &why))
        printf("tracking server\n  %-14s %s\n", "libcurl", version);
    else
        printf("tracking server\n  %-14s absent: %s\n", "libcurl", why.message);
}

static const char *shown(const struct environment_variable *v)
{
    const char *value = environment_get(v->name);
    return value && v->is_secret ? "(set)" : value;
}

static void print_environment(void)
{
    printf("environment\n");
    for (const struct environment_variable *v = environment_variables; v->name; v++) {
        const char *value = shown(v);
        printf("  %-20s%s%s%s\n", v->name, value ? value : "", value ? "; " : "", v->what);
    }
}

static void count_entry(void *context, const char *case_id, const struct baseline_entry *entry)
{
    (void)case_id, (void)entry;
    ++*(size_t *)context;
}

/* What a run here would read and write; which of it is there. */
static void print_files(const struct doctor_arguments *a, const char *model)
{
    char cache[PATHS_MAX], *path = baseline_path(a->baselines, model);
    struct baseline *baseline = NULL;
    struct gate_error err = {0};
    size_t n = 0;
    enum gate_status status = path ? baseline_load(path, model, &baseline, &err)
                                   : gate_fail(&err, GATE_INTERNAL, "out of memory");
    if (!status)
        baseline_each(baseline, count_entry, &n);
    printf("files\n  %-14s %s%s\n", "database", a->db, access(a->db, F_OK) ? ", not there" : "");
    if (status)
        printf("  %-14s %s\n", "baselines", err.message);
    else
        printf("  %-14s %s, %zu cases of this device\n", "baselines", path, n);
    printf("  %-14s %s\n", "cache", artifact_cache_dir(cache, &err) ? err.message : cache);
    baseline_free(baseline);
    free(path);
}

/* ---- the library to judge ---- */

#define NAMED_MAX 3 /* cases that are named */

/* Asks for each case; launches nothing. */
static enum gate_status count_served(struct supervisor *s, const struct suite *suite,
                                     struct gate_error *err)
{
    char names[600] = "";
    size_t n_missing = 0, used = 0;
    for (size_t i = 0; i < suite->n_cases; i++) {
        const struct case_task task = {.c = &suite->cases[i], .verify_only = true};
        struct case_result result;
        enum gate_status status = supervisor_run_case(s, &task, &result, err);
        if (status)
            return status;
        if (result.outcome != CASE_VERIFIED && result.outcome != CASE_UNSUPPORTED)
            status = gate_fail(err, GATE_ENVIRONMENT, "%s: %s", suite->cases[i].id, result.message);
        else if (result.outcome == CASE_UNSUPPORTED && n_missing++ < NAMED_MAX)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     n_missing > 1 ? ", " : "", suite->cases[i].id);
        case_result_release(&result);
        if (status)
            return status;
    }
    printf("%zu cases, %zu not served%s%s%s\n", suite->n_cases, n_missing, n_missing ? ": " : "",
           names, n_missing > NAMED_MAX ? ", ..." : "");
    return GATE_OK;
}

static void print_suite(const struct doctor_arguments *a, struct supervisor *s)
{
    char path[PATHS_MAX];
    struct suite suite = {0};
    struct gate_error err = {0};
    bool host = supervisor_greeting(s)->device.kind == DEVICE_HOST;
    const char *name = a->suite ? a->suite : host ? "host" : "canonical";
    printf("  %-14s %s: ", "suite", name);
    enum gate_status status = paths_suite(name, path, &err);
    if (!status)
        status = suite_load(path, &suite, &err);
    if (!status)
        status = count_served(s, &suite, &err);
    if (status)
        printf("%s\n", err.message);
    suite_free(&suite);
}

/* It is opened by a worker, as a run would. */
static void print_library(const struct doctor_arguments *a, const struct target *target)
{
    struct supervisor_options how = target->options;
    struct supervisor *s = NULL;
    struct gate_error err = {0};
    if (!a->library)
        return;
    how.library = a->library;
    how.n_providers = 0;
    printf("library to judge\n");
    if (supervisor_start(&how, &s, &err)) {
        print_text("library", err.message);
        return;
    }
    const struct document_library *opened = supervisor_greeting(s)->libraries;
    printf("  %-14s %s: opens; provider %s, version %s, ABI %u, sha256 %.16s...\n", "library",
           a->library, opened->provider, opened->version, KG_ABI_VERSION, opened->sha256);
    print_suite(a, s);
    supervisor_stop(s);
}

static void print_greeting(const struct message_greeting *g)
{
    const struct document_device *d = &g->device;
    printf("device\n");
    print_text("name", d->name);
    print_text("model", d->model);
    print_text("uuid", d->uuid);
    print_text("capability", d->capability);
    print_count("SMs or threads", d->sm_count);
    print_count("cache bytes", d->l2_bytes);
    print_count("memory bytes", d->memory_bytes);
    print_text("driver", d->driver);
    print_text("runtime", d->runtime);
    printf("contract\n  %s\n", g->contract);
    if (g->launch_order_checked == NO)
        printf("  the order of launches is not checked: CUDA reports it from 12.3 on\n");
    printf("libraries\n");
    for (size_t i = 0; i < g->n_libraries; i++)
        printf("  %-14s %s, %s, sha256 %.16s...\n", g->libraries[i].provider, g->libraries[i].file,
               g->libraries[i].version, g->libraries[i].sha256);
    for (size_t i = 0; i < g->n_absent; i++)
        printf("  %-14s absent: %s\n", g->absent[i].provider, g->absent[i].reason);
    print_libcurl();
}

struct doctor_variable {
    const char *name, *value;
};

struct doctor_report {
    struct message_greeting greeting;
    const char *libcurl;
    struct doctor_variable *environment;
    size_t n_environment;
};

#define OF doctor_variable
static const struct field variable_fields[] = {TEXT(value, NULLABLE, 0)};
SHAPE(variable);
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
    TEXT(libcurl, NULLABLE, 0),
    MAP(environment, 0, variable),
};
SHAPE(report);
#undef OF

static void print_json(const struct message_greeting *greeting)
{
    enum { VARIABLES_MAX = 64 };
    struct doctor_variable variables[VARIABLES_MAX];
    struct doctor_report all = {.greeting = *greeting, .environment = variables};
    char version[32];
    struct buf text;
    if (http_client_version(version, NULL))
        all.libcurl = version;
    const struct environment_variable *v = environment_variables;
    for (; v->name && all.n_environment < VARIABLES_MAX; v++)
        variables[all.n_environment++] = (struct doctor_variable){v->name, shown(v)};
    buf_init(&text, (size_t)1 << 20);
    fields_write_indented(&report, &all, &text);
    fputs(text.failed ? "" : text.data, stdout);
    buf_release(&text);
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_arguments a = {.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES};
    struct target target = {0};
    struct supervisor *s = NULL;
    struct gate_error err = {0};
    int exit_code;
    if (!options_read(&command_doctor, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    const struct target_choice choice = {.device = a.device};
    enum gate_status status = target_resolve(&choice, &target, &err);
    if (!status)
        status = supervisor_start(&target.options, &s, &err);
    const struct message_greeting *greeting = status ? NULL : supervisor_greeting(s);
    if (!status && a.json) {
        print_json(greeting);
    } else if (!status) {
        print_greeting(greeting);
        supervisor_retire_worker(s); /* one at a time is on the device */
        print_library(&a, &target);
        print_files(&a, greeting->device.model);
    }
    if (!a.json)
        print_environment();
    supervisor_stop(s);
    return status ? command_failed(&command_doctor, &err) : GATE_OK;
}
