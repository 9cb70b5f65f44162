/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_baseline.c: gate baseline show, accept, log and fetch. */
#include "gate/cli/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/baseline/artifact.h"
#include "gate/library/machine_code.h"
#include "gate/base/json.h"
#include "gate/cli/baseline_fetch.h"
#include "gate/baseline/baseline_files.h"
#include "gate/cli/cmd_common.h"
#include "gate/decide/decide_bounds.h"
#include "gate/baseline/origin.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"

#define MAX_PROCESSES 64 /* of a case; run.schema.json knows no more */

struct arguments {
    const char *device_model, *baselines, *reason, *db, *run;
    struct remote_choice remote;
    bool json, allow_dirty;
};

#define AT(field) .at = offsetof(struct arguments, field)

static const struct option_def options[] = {
    {.name = "device-model",
     .value = "M",
     .help = "only this device model, such as nvidia-h200; accept needs it when several device "
             "models have measured CASE",
     .type = OPTION_TEXT,
     AT(device_model)},
    BASELINES_OPTION(struct arguments, baselines),
    {.name = "reason",
     .value = "TEXT",
     .help = "of accept: why; goes into the log",
     .type = OPTION_TEXT,
     AT(reason)},
    {.name = "run",
     .value = "UUID",
     .help = "of accept: the run to take it from, by the beginning of its uuid",
     .type = OPTION_TEXT,
     AT(run),
     .fallback = "the newest that has the case"},
    {.name = "allow-dirty",
     .help = "of accept: also of a run with changes that were not committed",
     .type = OPTION_FLAG,
     AT(allow_dirty)},
    DB_OPTION(struct arguments, db),
    JSON_OPTION(struct arguments, json),
    {0},
};

const struct command command_baseline = {
    .name = "baseline",
    .operands = "show\nlog\naccept CASE --reason TEXT\nfetch",
    .summary = "show, accept, log or fetch the stored baselines",
    .about =
        "The stored baselines that runs are compared with, DIR/<device-model>.json.\n"
        "\n"
        "  show    lists them\n"
        "  log     lists their changes, oldest first, with reasons and authors\n"
        "  accept  makes the newest verified measurement of CASE in the database the "
        "baseline, even when it is slower, and logs who did so and why. It refuses when the newest "
        "run of the case does not count, because its verdict is wrong or environment: measure "
        "again, or name a run with --run\n"
        "  fetch   gets the libraries of the baselines that are not in the artifact cache "
        "from the tracking server; each is known by its SHA-256. Exit code 3: not all are "
        "there\n",
    .groups = {{options, 0}, {remote_options, offsetof(struct arguments, remote)}},
    .main = cmd_baseline,
};

/* ---- show and log ---- */

/* Rows or objects of one file after the other. */
struct listing {
    bool json, log;
    size_t n;
    struct buf objects;
    struct table *table;
    const struct baseline *baseline;
    const char *device_model;
};

/* What stands before the next object of a list. */
static struct buf *next_object(struct listing *l)
{
    buf_puts(&l->objects, l->objects.len ? ",\n  " : "[\n  ");
    return &l->objects;
}

static void show_entry(void *context, const char *case_id, const struct baseline_entry *e)
{
    struct listing *l = context;
    char text[UNITS_MAX];
    l->n++;
    if (l->json) {
        baseline_write_entry(l->baseline, l->device_model, case_id, e, next_object(l));
        return;
    }
    table_cell(l->table, TERM_PLAIN, l->device_model);
    table_cell(l->table, TERM_PLAIN, case_id);
    table_cell(l->table, TERM_PLAIN, units_duration(e->p50_ns, text));
    snprintf(text, sizeof(text), "%.2f %%", 50 * (e->p50_hi_ns - e->p50_lo_ns) / e->p50_ns);
    table_cell(l->table, TERM_DIM, text);
    table_cell(l->table, TERM_PLAIN, units_duration(e->p90_ns, text));
    snprintf(text, sizeof(text), "%.2f %%", 100 * e->spread);
    table_cell(l->table, TERM_DIM, text);
    table_cell(l->table, TERM_DIM, e->kernel);
    snprintf(text, sizeof(text), "%.12s%s", e->commit, e->dirty ? "+" : "");
    table_cell(l->table, TERM_PLAIN, text);
    table_cell(l->table, TERM_PLAIN, units_time(e->time_ms, text));
    table_cell(l->table, TERM_DIM, baseline_contract(l->baseline));
    table_cell(l->table, TERM_DIM, e->epoch);
}

static void log_entry(void *context, const struct baseline_change *c)
{
    struct listing *l = context;
    char text[UNITS_MAX];
    l->n++;
    if (l->json) {
        baseline_write_change(l->device_model, c, next_object(l));
        return;
    }
    table_cell(l->table, TERM_PLAIN, units_time(c->time_ms, text));
    table_cell(l->table, TERM_PLAIN, l->device_model);
    table_cell(l->table, TERM_PLAIN, c->case_id);
    table_cell(l->table, TERM_DIM, c->from_ns > 0 ? units_duration(c->from_ns, text) : "none");
    table_cell(l->table, TERM_PLAIN, units_duration(c->to_ns, text));
    table_cell(l->table, TERM_PLAIN,
               c->from_ns > 0 ? units_change(c->to_ns / c->from_ns, text) : "");
    table_cell(l->table, TERM_PLAIN, baseline_action_name(c->action));
    table_cell(l->table, TERM_PLAIN, c->author);
    table_cell(l->table, TERM_PLAIN, c->reason);
}

static enum gate_status list_file(void *context, const char *device_model,
                                  const struct baseline *baseline, struct gate_error *err)
{
    struct listing *l = context;
    (void)err;
    l->baseline = baseline;
    l->device_model = device_model;
    if (l->log)
        baseline_each_change(baseline, log_entry, l);
    else
        baseline_each(baseline, show_entry, l);
    return GATE_OK;
}

static enum gate_status list(const struct arguments *a, bool log, struct gate_error *err)
{
    static const struct table_column show_columns[] = {
        {"device", false, 0},   {"case", false, 0},   {"p50", true, 0},
        {"\xc2\xb1", true, 5},  {"p90", true, 4},     {"spread", true, 3},
        {"kernel", false, 2},   {"commit", false, 0}, {"time (UTC)", false, 1},
        {"contract", false, 6}, {"epoch", false, 7},
    };
    static const struct table_column log_columns[] = {
        {"time (UTC)", false, 3}, {"device", false, 5}, {"case", false, 0},
        {"from", true, 2},        {"to", true, 0},      {"change", true, 0},
        {"action", false, 1},     {"author", false, 4}, {"reason", false, 0},
    };
    const struct report_style style = command_style();
    struct listing l = {.json = a->json, .log = log};
    struct buf text;

    buf_init(&text, COMMAND_MAX_OUTPUT);
    buf_init(&l.objects, COMMAND_MAX_OUTPUT);
    l.table = log ? table_new(log_columns, sizeof(log_columns) / sizeof(log_columns[0]))
                  : table_new(show_columns, sizeof(show_columns) / sizeof(show_columns[0]));
    enum gate_status status =
        baseline_files_each(a->baselines, a->device_model, list_file, &l, err);
    if (status == GATE_OK && a->json) {
        buf_puts(&l.objects, l.objects.len ? "\n]\n" : "[]\n");
        status = command_write(NULL, &l.objects, err);
    } else if (status == GATE_OK) {
        if (l.n)
            table_write(l.table, &style, &text);
        else
            buf_puts(&text, "no baseline is stored; gate run --accept-new makes the first\n");
        status = command_write(NULL, &text, err);
    }
    table_free(l.table);
    buf_release(&l.objects);
    buf_release(&text);
    return status;
}

/* ---- accept ---- */

struct search {
    const char *case_id;
    char model[80];
    struct buf models; /* all that have the case, for a message */
    size_t n_models;
    const char *wanted; /* the beginning of a run's uuid; NULL: the newest */
    char run_uuid[64];
    char contract[80];
    char verdict[20];
};

static bool note_model(void *context, const struct store_case *row)
{
    struct search *s = context;
    if (strcmp(row->id, s->case_id) == 0) {
        buf_printf(&s->models, "%s%s", s->n_models++ ? ", " : "", row->device_model);
        snprintf(s->model, sizeof(s->model), "%s", row->device_model);
    }
    return true;
}

/* A wrong result has no time, and a disturbed machine no good one, whatever was measured. */
static bool is_usable(const char *verdict)
{
    return strcmp(verdict, "wrong") != 0 && strcmp(verdict, "environment") != 0;
}

static bool take_candidate(void *context, const struct store_point *p)
{
    struct search *s = context;
    if (strcmp(p->role, "candidate") != 0 ||
        (s->wanted && strncmp(p->run_uuid, s->wanted, strlen(s->wanted)) != 0))
        return true;
    snprintf(s->verdict, sizeof(s->verdict), "%s", p->verdict);
    snprintf(s->run_uuid, sizeof(s->run_uuid), "%s", p->run_uuid);
    snprintf(s->contract, sizeof(s->contract), "%s", p->contract);
    return false;
}

/* Finds the run of the wanted or newest verified candidate of s->case_id. */
static enum gate_status find_run(struct search *s, struct store *store, const char *device_model,
                                 struct gate_error *err)
{
    const struct store_case_query all = {.device_model = device_model,
                                         .words = {s->case_id},
                                         .n_words = 1,
                                         .sort = STORE_CASES_NAME,
                                         .limit = INT64_MAX};
    struct store_case_page page;
    enum gate_status status = store_cases(store, &all, note_model, s, &page, err);
    if (status != GATE_OK)
        return status;
    if (s->n_models > 1)
        return gate_fail(err, GATE_USAGE,
                         "'%s' was measured on several device models (%s); choose one with "
                         "--device-model",
                         s->case_id, s->models.data);
    if (s->n_models == 1)
        status = store_trend(store, s->case_id, s->model, NULL, INT32_MAX, take_candidate, s, err);
    if (status == GATE_OK && !s->run_uuid[0])
        status =
            gate_fail(err, GATE_USAGE, "the database has no verified measurement of '%s'%s%s%s%s",
                      s->case_id, device_model ? " on " : "", device_model ? device_model : "",
                      s->wanted ? " in a run " : "", s->wanted ? s->wanted : "");
    if (status == GATE_OK && !is_usable(s->verdict))
        status = gate_fail(err, GATE_USAGE,
                           "run %.8s is the newest that measured '%s', and it does not count: its "
                           "verdict is '%s'. Measure again, or name another run with --run UUID",
                           s->run_uuid, s->case_id, s->verdict);
    return status;
}

static const char *library_of(const struct document *d, const struct document_arm *arm)
{
    for (size_t i = 0; i < d->n_libraries; i++)
        if (d->libraries[i].role == ROLE_CANDIDATE &&
            !strcmp(d->libraries[i].provider, arm->provider))
            return d->libraries[i].sha256;
    return "";
}

/* What each process of one stage measured. */
struct measured {
    double p50_ns[MAX_PROCESSES], control_ns[MAX_PROCESSES], half_width[MAX_PROCESSES];
    size_t n;
};

static void read_processes(const struct document_case *c, enum document_stage stage,
                           struct measured *out)
{
    out->n = 0;
    for (size_t i = 0; i < c->n_processes && out->n < MAX_PROCESSES; i++) {
        const struct document_process *p = &c->processes[i];
        if (p->stage != (int)stage)
            continue;
        out->p50_ns[out->n] = p->p50_ns;
        out->control_ns[out->n] = p->control_ns;
        out->half_width[out->n++] = isnan(p->half_width) ? 0 : p->half_width;
    }
}

/* The case in which the candidate was verified, timed and not disturbed; NULL: there is none. */
static const struct document_case *find_measured(const struct document *d, const char *case_id)
{
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_case *c = &d->cases[i];
        const struct document_arm *arm = document_candidate(c);
        if (!strcmp(c->id, case_id) && arm && arm->has_timing && arm->has_verify &&
            arm->verify.ok && is_usable(verdict_name((enum verdict)c->verdict)))
            return c;
    }
    return NULL;
}

/*
 * What `gate run` would keep: the medians of the confirmation's processes, else of the first ones,
 * since p50 and control must be of the same processes. False: no process has both.
 */
static bool read_medians(const struct document_case *c, struct baseline_entry *out)
{
    struct measured m;
    read_processes(c, STAGE_CONFIRMATION, &m);
    if (m.n == 0)
        read_processes(c, STAGE_FIRST, &m);
    if (!baseline_control(out, m.p50_ns, m.control_ns, m.n))
        return false;
    baseline_allow_for(out, m.half_width, m.n);
    struct estimate p50 = decide_bounds(m.p50_ns, m.n);
    out->p50_ns = p50.value;
    out->p50_lo_ns = p50.lo;
    out->p50_hi_ns = p50.hi;
    return true;
}

/* Reads the measurement out of the run's document; the strings of *out stay the document's. */
static enum gate_status read_measurement(const struct document *d, const char *case_id,
                                         struct baseline_entry *out, struct gate_error *err)
{
    const struct document_case *c = find_measured(d, case_id);
    if (!c)
        return gate_fail(err, GATE_IO, "run %s has no verified measurement of '%s'", d->uuid,
                         case_id);
    const struct document_arm *arm = document_candidate(c);
    *out = (struct baseline_entry){
        .p90_ns = arm->timing.p90_ns,
        .time_ms = d->time_ms,
        .kernel = arm->kernel,
        .commit = d->git.commit,
        .run_uuid = d->uuid,
        .library_sha256 = library_of(d, arm),
        .dirty = d->git.dirty,
        .epoch = d->epoch ? d->epoch : "",
        .error = baseline_error_of_document(&arm->verify),
    };
    if (!read_medians(c, out))
        return gate_fail(err, GATE_IO,
                         "run %s has no time of the control beside '%s', and a baseline needs one: "
                         "measure the case again",
                         d->uuid, case_id);
    return GATE_OK;
}

static enum gate_status print_accepted(const struct arguments *a, const struct search *s,
                                       const char *path, double from_ns,
                                       const struct baseline_entry *entry, struct gate_error *err)
{
    struct buf text;
    char from[UNITS_MAX], to[UNITS_MAX], change[UNITS_MAX];
    buf_init(&text, 16 * 1024);
    if (a->json) {
        buf_puts(&text, "{\"case\": \"");
        json_escape(s->case_id, &text);
        buf_puts(&text, "\", \"device_model\": \"");
        json_escape(s->model, &text);
        buf_puts(&text, "\", \"from_ns\": ");
        if (from_ns > 0)
            json_write_number(from_ns, &text);
        else
            buf_puts(&text, "null");
        buf_puts(&text, ", \"to_ns\": ");
        json_write_number(entry->p50_ns, &text);
        buf_printf(&text, ", \"run_uuid\": \"%s\"}\n", entry->run_uuid);
    } else {
        term_puts(s->case_id, &text);
        buf_printf(&text, " on %s: %s -> %s", s->model,
                   from_ns > 0 ? units_duration(from_ns, from) : "none",
                   units_duration(entry->p50_ns, to));
        if (from_ns > 0)
            buf_printf(&text, " (%s)", units_change(entry->p50_ns / from_ns, change));
        buf_printf(&text, ", run %.8s, in ", entry->run_uuid);
        term_puts(path, &text);
        buf_putc(&text, '\n');
    }
    enum gate_status status = command_write(NULL, &text, err);
    buf_release(&text);
    return status;
}

static enum gate_status store_baseline(const struct arguments *a, const struct search *s,
                                       const struct baseline_entry *entry, struct gate_error *err)
{
    char author[400];
    struct baseline *baseline = NULL;
    struct baseline_entry old = {0};
    char *path = baseline_path(a->baselines, s->model);
    if (!path)
        return gate_fail(err, GATE_INTERNAL, "out of memory");

    origin_author(author, sizeof(author));
    const struct baseline_note note = {
        .action = BASELINE_ACCEPT,
        .reason = a->reason,
        .author = author,
        .time_ms = clock_wall_ms(),
    };
    int lock = -1;
    enum gate_status status = baseline_lock(a->baselines, &lock, err);
    if (status == GATE_OK)
        status = baseline_load(path, s->model, &baseline, err);
    double from_ns = 0;
    if (status == GATE_OK) {
        if (baseline_find(baseline, s->case_id, s->contract, &old))
            from_ns = old.p50_ns;
        status = baseline_set(baseline, s->case_id, s->contract, entry, &note, err);
    }
    if (status == GATE_OK)
        status = baseline_save(baseline, path, err);
    if (lock >= 0)
        close(lock);
    if (status == GATE_OK)
        status = print_accepted(a, s, path, from_ns, entry, err);
    baseline_free(baseline);
    free(path);
    return status;
}

/* A case that was wrong has no measurement, so the newest run may be newer than the newest one. */
static enum gate_status check_newest(const struct search *s, struct store *store,
                                     struct gate_error *err)
{
    struct document d = {0};
    enum gate_status status = command_document(store, "latest", &d, err);
    for (size_t i = 0; !status && i < d.n_cases; i++)
        if (!strcmp(d.cases[i].id, s->case_id) && !strcmp(d.device.model, s->model) &&
            d.cases[i].verdict == VERDICT_WRONG)
            status = gate_fail(err, GATE_USAGE,
                               "in the newest run, %.8s, the verdict of '%s' is 'wrong': measure "
                               "again, or name another run with --run UUID",
                               d.uuid, s->case_id);
    document_release(&d);
    return status;
}

/* What its library runs, where that is at hand: without, a rebuild must be the very same file. */
static void find_code(struct baseline_entry *entry, char code[65])
{
    char path[PATHS_MAX];
    if (!artifact_get(entry->library_sha256, path, NULL) && !machine_code_of_file(path, code, NULL))
        entry->code_sha256 = code;
}

static enum gate_status accept(const struct arguments *a, const char *case_id,
                               struct gate_error *err)
{
    struct search s = {.case_id = case_id, .wanted = a->run};
    struct store *store = NULL;
    struct document document = {0};
    struct baseline_entry entry;
    char code[65];

    buf_init(&s.models, 64 * 1024);
    enum gate_status status = store_open(a->db, STORE_READ_ONLY, &store, err);
    if (status == GATE_OK)
        status = find_run(&s, store, a->device_model, err);
    if (status == GATE_OK && !a->run)
        status = check_newest(&s, store, err);
    if (status == GATE_OK)
        status = command_document(store, s.run_uuid, &document, err);
    if (status == GATE_OK)
        status = read_measurement(&document, case_id, &entry, err);
    if (status == GATE_OK && entry.dirty && !a->allow_dirty)
        status = gate_fail(err, GATE_USAGE,
                           "run %.8s was measured with changes that were not committed, and no "
                           "commit makes its library: commit them and measure again, or give "
                           "--allow-dirty",
                           s.run_uuid);
    if (status == GATE_OK)
        find_code(&entry, code);
    if (status == GATE_OK)
        status = store_baseline(a, &s, &entry, err);
    document_release(&document);
    store_close(store);
    buf_release(&s.models);
    return status;
}

/* ---- the command ---- */

static bool is_empty(const char *text)
{
    return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static int run_action(const struct arguments *a, const struct options_seen *seen, int n,
                      char **operands)
{
    const struct command *self = &command_baseline;
    struct gate_error err;
    enum gate_status status;
    if (n == 0)
        return command_usage(self, "which of show, log, accept and fetch?");
    const char *action = operands[0];
    bool accepts = strcmp(action, "accept") == 0, logs = strcmp(action, "log") == 0;
    bool fetches = strcmp(action, "fetch") == 0;
    if (!accepts && !logs && !fetches && strcmp(action, "show") != 0)
        return command_usage(self, "unknown action '%s'", action);
    if (!accepts && n > 1)
        return command_usage(self, "unexpected argument '%s'", operands[1]);
    if (!accepts && (options_given(seen, "reason") || options_given(seen, "db") ||
                     options_given(seen, "run") || options_given(seen, "allow-dirty")))
        return command_usage(self, "--reason, --run, --allow-dirty and --db are for accept");
    if (!fetches && (options_given(seen, "server") || options_given(seen, "token-file") ||
                     options_given(seen, "ca-file")))
        return command_usage(self, "--server, --token-file and --ca-file are for fetch");
    if (accepts && n != 2)
        return command_usage(self, "accept which CASE?");
    if (accepts && is_empty(a->reason))
        return command_usage(self, "accept needs a --reason, which goes into the log");
    if (fetches)
        status = baseline_fetch(&a->remote, a->baselines, a->device_model, a->json, &err);
    else
        status = accepts ? accept(a, operands[1], &err) : list(a, logs, &err);
    return status == GATE_OK ? GATE_OK : command_failed(self, &err);
}

int cmd_baseline(int argc, char **argv)
{
    struct arguments a = {.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES};
    struct options_seen seen;
    int exit_code;
    if (!options_read(&command_baseline, &a, 2, argc, argv, &seen, &exit_code))
        return exit_code;
    return run_action(&a, &seen, argc - optind, argv + optind);
}
