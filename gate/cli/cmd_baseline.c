/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_baseline.c: gate baseline show, accept, retire, log and fetch. */
#include "gate/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/cli/baseline_accept.h"
#include "gate/cli/baseline_retire.h"
#include "gate/baseline/baseline.h"
#include "gate/cli/cmd_common.h"
#include "gate/document/fields_table.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"
#include "gate/base/alloc.h"
#include "gate/baseline/artifact.h"
#include "gate/tracker/fetch.h"

#define LOG_INDENT "    "

struct baseline_arguments {
    const char *device_model, *baselines, *reason, *db, *run;
    struct remote_choice remote;
    bool json, allow_dirty;
};

#define ARGUMENTS struct baseline_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "device-model", "M", device_model,
           "only this device model, such as nvidia-h200; accept needs it when several device "
           "models have measured CASE"),
    BASELINES_OPTION(struct baseline_arguments, baselines),
    OPTION(TEXT, "reason", "TEXT", reason, "for accept and retire: the reason, which is logged"),
    OPTION(TEXT, "run", "UUID", run,
           "for accept: the run to take it from, by the beginning of its uuid",
           .fallback = "the newest run with the case"),
    FLAG("allow-dirty", allow_dirty, "for accept: also from a run with uncommitted changes"),
    DB_OPTION(struct baseline_arguments, db),
    JSON_OPTION(struct baseline_arguments, json),
    {0},
};

const struct command command_baseline = {
    .name = "baseline",
    .operands = "show\nlog\naccept CASE --reason TEXT\nretire CASE --reason TEXT\nfetch",
    .summary = "show, accept, retire, log or fetch the stored baselines",
    .about =
        "The stored baselines that runs are compared with, DIR/<device-model>.json.\n"
        "\n"
        "  show    lists them\n"
        "  log     lists their changes, oldest first, with reasons and authors\n"
        "  accept  makes the newest verified measurement of CASE in the database the baseline, "
        "even if it is slower, and logs author and reason. It refuses if the verdict of the newest "
        "run with the case is wrong or environment: measure again, or name a run with --run. CASE "
        "may be a pattern, such as 'gemm/*': then all matching cases of the newest run, or of that "
        "named by --run, are accepted, or none if one does not count\n"
        "  retire  removes the baseline of CASE, and logs author and reason. A run of a suite in "
        "which the baseline was taken, and which lacks the case, is incomplete until then\n"
        "  fetch   downloads the libraries of baselines that are missing in the artifact cache "
        "from the tracking server, each by its SHA-256. Exit code 3: some are not there\n",
    .groups = {{options, 0}, {remote_options, offsetof(struct baseline_arguments, remote)}},
    .main = cmd_baseline,
};

/* ---- show and log ---- */

/* Rows or objects of one file after the other. */
struct baseline_listing {
    bool json, log;
    size_t n;
    struct report_style style;
    struct buf objects, text;
    struct table *table; /* of show */
    const char *device_model;
};

/* What stands before the next object of a list. */
static struct buf *next_object(struct baseline_listing *l)
{
    buf_puts(&l->objects, l->objects.len ? ",\n  " : "[\n  ");
    return &l->objects;
}

static void show_entry(struct baseline_listing *l, const char *case_id, const char *contract,
                       const struct baseline_entry *e)
{
    char text[UNITS_MAX];
    if (l->json) {
        struct baseline_entry listed = *e;
        listed.device_model = l->device_model;
        listed.contract = contract;
        listed.case_id = case_id;
        fields_write_spaced(&baseline_listed_entry_shape, &listed, next_object(l));
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
    snprintf(text, sizeof(text), "%.12s%s", e->commit, e->dirty == YES ? "+" : "");
    table_cell(l->table, TERM_PLAIN, text);
    table_cell(l->table, TERM_PLAIN, units_time(e->time_ms, text));
    table_cell(l->table, TERM_DIM, contract);
    table_cell(l->table, TERM_DIM, e->epoch);
}

static void put_wrapped(const struct baseline_listing *l, const struct buf *words, struct buf *out)
{
    int indent = (int)strlen(LOG_INDENT);
    if (words->len == 0)
        return;
    buf_puts(out, LOG_INDENT);
    term_wrap(words->data, words->len, indent, indent, l->style.width, out);
    buf_putc(out, '\n');
}

/* A few lines, as wide as the terminal: a reason is of any length. */
static void put_change(const struct baseline_listing *l, const struct baseline_change *c,
                       struct buf *out)
{
    char time[UNITS_MAX], from[UNITS_MAX], to[UNITS_MAX], change[UNITS_MAX];
    struct buf what, reason;
    buf_init(&what, 64 * 1024);
    buf_init(&reason, 64 * 1024);
    buf_printf(&what, "%s: %s -> %s", field_actions[c->action],
               c->from_ns > 0 ? units_duration(c->from_ns, from) : "none",
               c->to_ns > 0 ? units_duration(c->to_ns, to) : "none");
    if (c->from_ns > 0 && c->to_ns > 0)
        buf_printf(&what, " (%s)", units_change(c->to_ns / c->from_ns, change));
    buf_puts(&what, ", by ");
    term_puts(c->author, &what);
    term_puts(c->reason, &reason);
    buf_printf(out, "%s  ", units_time(c->time_ms, time));
    term_colour_begin(l->style.colour, TERM_BOLD, out);
    term_puts(c->case_id, out);
    term_colour_end(l->style.colour, TERM_BOLD, out);
    buf_puts(out, " on ");
    term_puts(l->device_model, out);
    buf_putc(out, '\n');
    put_wrapped(l, &what, out);
    put_wrapped(l, &reason, out);
    buf_release(&what);
    buf_release(&reason);
}

static enum gate_status list_file(void *context, const char *device_model,
                                  const struct baseline *baseline, struct gate_error *err)
{
    struct baseline_listing *l = context;
    const struct baseline_file *f = baseline_stored(baseline);
    (void)err;
    l->device_model = device_model;
    l->n += l->log ? f->n_log : f->n_cases;
    for (size_t i = 0; i < f->n_cases && !l->log; i++)
        show_entry(l, f->cases[i].id, f->contract, &f->cases[i].entry);
    for (size_t i = 0; i < f->n_log && l->log; i++) {
        struct baseline_change listed = f->log[i];
        listed.device_model = device_model;
        if (l->json)
            fields_write_spaced(&baseline_listed_change_shape, &listed, next_object(l));
        else
            put_change(l, &listed, &l->text);
    }
    return GATE_OK;
}

static enum gate_status list(const struct baseline_arguments *a, bool log, struct gate_error *err)
{
    static const struct table_column show_columns[] = {
        {"device", false, 0},   {"case", false, 0},   {"p50", true, 0},
        {"\xc2\xb1", true, 5},  {"p90", true, 4},     {"spread", true, 3},
        {"kernel", false, 2},   {"commit", false, 0}, {"time (UTC)", false, 1},
        {"contract", false, 6}, {"epoch", false, 7},
    };
    struct baseline_listing l = {.json = a->json, .log = log, .style = command_style()};
    buf_init(&l.text, COMMAND_MAX_OUTPUT);
    buf_init(&l.objects, COMMAND_MAX_OUTPUT);
    l.table = table_new(show_columns, sizeof(show_columns) / sizeof(show_columns[0]));
    enum gate_status status =
        baseline_files_each(a->baselines, a->device_model, list_file, &l, err);
    if (status == GATE_OK && a->json) {
        buf_puts(&l.objects, l.objects.len ? "\n]\n" : "[]\n");
        status = command_write(NULL, &l.objects, err);
    } else if (status == GATE_OK) {
        if (!l.n)
            buf_printf(
                &l.text, "no baseline%s%s is stored; gate run --accept-new stores the first\n",
                a->device_model ? " of device model " : "", a->device_model ? a->device_model : "");
        else if (!log)
            table_write(l.table, &l.style, &l.text);
        status = command_write(NULL, &l.text, err);
    }
    table_free(l.table);
    buf_release(&l.objects);
    buf_release(&l.text);
    return status;
}

/* ---- fetch ---- */

/* A library that baselines of a device model come from. */
struct wanted_library {
    char device_model[80], sha256[65];
    size_t n_cases;
    const char *state; /* "cached", "fetched" or "absent" */
};

struct wanted_libraries {
    struct wanted_library *list;
    size_t n;
};

static void note_library(struct wanted_libraries *l, const char *device_model, const char *sha256)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->list[i].sha256, sha256) && !strcmp(l->list[i].device_model, device_model)) {
            l->list[i].n_cases++;
            return;
        }
    l->list = xrealloc(l->list, l->n + 1, sizeof *l->list);
    struct wanted_library *added = &l->list[l->n++];
    *added = (struct wanted_library){.n_cases = 1, .state = "absent"};
    snprintf(added->device_model, sizeof added->device_model, "%s", device_model);
    snprintf(added->sha256, sizeof added->sha256, "%s", sha256);
}

static enum gate_status note_file(void *context, const char *device_model,
                                  const struct baseline *baseline, struct gate_error *err)
{
    const struct baseline_file *stored = baseline_stored(baseline);
    (void)err;
    for (size_t i = 0; i < stored->n_cases; i++)
        note_library(context, device_model, stored->cases[i].entry.library_sha256);
    return GATE_OK;
}

/* A failure of one does not keep the others; the last one is reported. */
static enum gate_status fetch_all(struct wanted_libraries *l, struct fetch *fetch,
                                  struct gate_error *err)
{
    char path[PATHS_MAX];
    enum gate_status worst = GATE_OK;
    for (size_t i = 0; i < l->n; i++) {
        struct wanted_library *one = &l->list[i];
        enum gate_status status = artifact_get(one->sha256, path, NULL);
        one->state = status ? "absent" : "cached";
        if (!status)
            continue;
        status = fetch_library(fetch, one->sha256, path, err);
        if (!status)
            one->state = "fetched";
        worst = status && (!worst || worst == GATE_NO_VERDICT) ? status : worst;
    }
    return worst ? gate_fail(err, worst, "%s", err->message) : GATE_OK;
}

static void write_json(const struct wanted_libraries *l, struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < l->n; i++) {
        buf_printf(out, "%s\n  {\"device_model\": \"", i ? "," : "");
        json_escape(l->list[i].device_model, out);
        buf_printf(out, "\", \"library_sha256\": \"%s\", \"cases\": %zu, \"state\": \"%s\"}",
                   l->list[i].sha256, l->list[i].n_cases, l->list[i].state);
    }
    buf_puts(out, l->n ? "\n]\n" : "]\n");
}

static void write_table(const struct wanted_libraries *l, struct buf *out)
{
    static const struct table_column columns[] = {
        {"device", false, 0}, {"library", false, 0}, {"cases", true, 1}, {"state", false, 0}};
    const struct report_style style = command_style();
    struct table *table = table_new(columns, sizeof columns / sizeof columns[0]);
    char text[32];
    for (size_t i = 0; i < l->n; i++) {
        const struct wanted_library *one = &l->list[i];
        table_cell(table, TERM_PLAIN, one->device_model);
        table_cell(table, TERM_PLAIN, one->sha256);
        snprintf(text, sizeof text, "%zu", one->n_cases);
        table_cell(table, TERM_PLAIN, text);
        table_cell(table, strcmp(one->state, "absent") ? TERM_PLAIN : TERM_RED, one->state);
    }
    table_write(table, &style, out);
    table_free(table);
}

/*
 * Fetches what is not in the cache, and prints one row a library. `device_model` NULL: all files of
 * the folder. GATE_NO_VERDICT: the server does not have all; else the worst failure of
 * fetch_library(). A file of baselines that cannot be read is GATE_IO.
 */
static enum gate_status baseline_fetch(const struct remote_choice *choice, const char *folder,
                                       const char *device_model, bool json, struct gate_error *err)
{
    struct wanted_libraries l = {0};
    struct fetch fetch = {.choice = *choice};
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    enum gate_status status = baseline_files_each(folder, device_model, note_file, &l, err);
    if (!status) {
        status = fetch_all(&l, &fetch, err);
        if (json)
            write_json(&l, &text);
        else
            write_table(&l, &text);
        enum gate_status written = command_write(NULL, &text, status ? NULL : err);
        status = status ? status : written;
    }
    fetch_release(&fetch);
    free(l.list);
    buf_release(&text);
    return status;
}

/* ---- the command ---- */

static enum gate_status accept(const struct baseline_arguments *a, const char *cases,
                               struct gate_error *err)
{
    const struct accept_request request = {
        .cases = cases,
        .device_model = a->device_model,
        .run = a->run,
        .db = a->db,
        .baselines = a->baselines,
        .reason = a->reason,
        .json = a->json,
        .allow_dirty = a->allow_dirty,
    };
    return baseline_accept(&request, err);
}

static bool is_empty(const char *text)
{
    return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static int run_action(const struct baseline_arguments *a, const struct options_seen *seen, int n,
                      char **operands)
{
    const struct command *self = &command_baseline;
    struct gate_error err;
    enum gate_status status;
    if (n == 0)
        return command_usage(self, "an action is missing: show, log, accept, retire or fetch");
    const char *action = operands[0];
    bool accepts = strcmp(action, "accept") == 0, logs = strcmp(action, "log") == 0;
    bool fetches = strcmp(action, "fetch") == 0, retires = strcmp(action, "retire") == 0;
    if (!accepts && !logs && !fetches && !retires && strcmp(action, "show") != 0)
        return command_usage(self, "unknown action '%s'", action);
    if (!accepts && !retires && n > 1)
        return command_usage(self, "unexpected argument '%s'", operands[1]);
    if (!accepts && (options_given(seen, "db") || options_given(seen, "run") ||
                     options_given(seen, "allow-dirty")))
        return command_usage(self, "--run, --allow-dirty and --db need accept");
    if (!accepts && !retires && options_given(seen, "reason"))
        return command_usage(self, "--reason needs accept or retire");
    if (retires && options_given(seen, "json"))
        return command_usage(self, "retire takes no --json");
    if (!fetches && (options_given(seen, "server") || options_given(seen, "token-file") ||
                     options_given(seen, "ca-file")))
        return command_usage(self, "--server, --token-file and --ca-file need fetch");
    if ((accepts || retires) && n != 2)
        return command_usage(self, "%s needs a CASE", action);
    if ((accepts || retires) && is_empty(a->reason))
        return command_usage(self, "%s needs --reason, which is logged", action);
    if (retires)
        status = baseline_retire_case(
            &(struct retire_request){operands[1], a->device_model, a->baselines, a->reason}, &err);
    else if (fetches)
        status = baseline_fetch(&a->remote, a->baselines, a->device_model, a->json, &err);
    else
        status = accepts ? accept(a, operands[1], &err) : list(a, logs, &err);
    return status == GATE_OK ? GATE_OK : command_failed(self, &err);
}

int cmd_baseline(int argc, char **argv)
{
    struct baseline_arguments a = {.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES};
    struct options_seen seen;
    int exit_code;
    if (!options_read(&command_baseline, &a, 2, argc, argv, &seen, &exit_code))
        return exit_code;
    return run_action(&a, &seen, argc - optind, argv + optind);
}
