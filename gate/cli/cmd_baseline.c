/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_baseline.c: gate baseline show, log and fetch. */
#include "gate/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/baseline.h"
#include "gate/cli/list.h"
#include "gate/base/alloc.h"
#include "gate/baseline/artifact.h"
#include "gate/tracker/tracker.h"

#define LOG_INDENT "    "

#define ARGUMENTS struct baseline_request

static const struct option_def options[] = {
    OPTION(TEXT, "device-model", "M", device_model,
           "only this device model, such as nvidia-h200; accept needs it when several device "
           "models have measured CASE"),
    BASELINES_OPTION(baselines),
    OPTION(TEXT, "reason", "TEXT", reason, "for accept and retire: the reason, which is logged"),
    OPTION(TEXT, "run", "UUID", run,
           "for accept: the run to take it from, by the beginning of its uuid",
           .fallback = "the newest run with the case"),
    FLAG("allow-dirty", allow_dirty, "for accept: also from a run with uncommitted changes"),
    DB_OPTION(db),
    JSON_OPTION(json),
    {0},
};

/* ---- show and log ---- */

static void show_half_width(const void *at, struct list_cell *out)
{
    const struct baseline_entry *e = at;
    list_half_width(e->p50_ns, e->p50_lo_ns, e->p50_hi_ns, out);
}

static void show_commit(const void *at, struct list_cell *out)
{
    const struct baseline_entry *e = at;
    list_commit(e->commit, e->dirty == YES, out);
}

#define ENTRY_AT(member) offsetof(struct baseline_entry, member)
static const struct list_column entry_columns[] = {
    {"device", false, 0, TERM_PLAIN, list_text, ENTRY_AT(device_model)},
    {"case", false, 0, TERM_PLAIN, list_text, ENTRY_AT(case_id)},
    {"p50", true, 0, TERM_PLAIN, list_duration, ENTRY_AT(p50_ns)},
    {"\xc2\xb1", true, 5, TERM_DIM, show_half_width, 0},
    {"p90", true, 4, TERM_PLAIN, list_duration, ENTRY_AT(p90_ns)},
    {"spread", true, 3, TERM_DIM, list_percent, ENTRY_AT(spread)},
    {"kernel", false, 2, TERM_DIM, list_text, ENTRY_AT(kernel)},
    {"commit", false, 0, TERM_PLAIN, show_commit, 0},
    {"time (UTC)", false, 1, TERM_PLAIN, list_time, ENTRY_AT(time_ms)},
    {"contract", false, 6, TERM_DIM, list_text, ENTRY_AT(contract)},
    {"epoch", false, 7, TERM_DIM, list_text, ENTRY_AT(epoch)},
};
static const struct list_kind entry_list = {
    entry_columns, sizeof entry_columns / sizeof entry_columns[0], &baseline_listed_entry_shape};
static const struct list_kind change_list = {.shape = &baseline_listed_change_shape};

/* A few lines, as wide as the terminal: a reason is of any length. */
static void put_change(const struct baseline_change *c, const struct report_style *style,
                       struct buf *out)
{
    char time[UNITS_MAX], from[UNITS_MAX], to[UNITS_MAX], change[UNITS_MAX];
    RELEASED_BY(buf_release) struct buf words = buf_of(64 * 1024);
    buf_printf(out, "%s  ", units_time(c->time_ms, time));
    term_colour_begin(style->colour, TERM_BOLD, out);
    term_puts(c->case_id, out);
    term_colour_end(style->colour, TERM_BOLD, out);
    buf_puts(out, " on ");
    term_puts(c->device_model, out);
    buf_printf(&words, "%s: %s -> %s", field_actions[c->action],
               c->from_ns > 0 ? units_duration(c->from_ns, from) : "none",
               c->to_ns > 0 ? units_duration(c->to_ns, to) : "none");
    if (c->from_ns > 0 && c->to_ns > 0)
        buf_printf(&words, " (%s)", units_change(c->to_ns / c->from_ns, change));
    buf_puts(&words, ", by ");
    term_puts(c->author, &words);
    for (int i = 0; i < 2; i++) {
        buf_puts(out, "\n" LOG_INDENT);
        term_wrap(words.data, words.len, strlen(LOG_INDENT), strlen(LOG_INDENT), style->width, out);
        buf_clear(&words);
        term_puts(c->reason, &words);
    }
    buf_putc(out, '\n');
}

static enum gate_status list_entries(void *context, const char *device_model,
                                     const struct baseline *baseline, struct gate_error *)
{
    const struct baseline_file *f = baseline_stored(baseline);
    for (size_t i = 0; i < f->n_cases; i++) {
        struct baseline_entry listed = f->cases[i].entry;
        listed.device_model = device_model;
        listed.contract = f->contract;
        listed.case_id = f->cases[i].id;
        list_row(context, &listed);
    }
    return GATE_OK;
}

static enum gate_status list_changes(void *context, const char *device_model,
                                     const struct baseline *baseline, struct gate_error *)
{
    struct list *l = context;
    const struct baseline_file *f = baseline_stored(baseline);
    for (size_t i = 0; i < f->n_log; i++) {
        struct baseline_change listed = f->log[i];
        listed.device_model = device_model;
        if (!l->json)
            put_change(&listed, &l->style, &l->text);
        list_row(l, &listed);
    }
    return GATE_OK;
}

static enum gate_status print_list(const struct baseline_request *a, bool log,
                                   struct gate_error *err)
{
    RELEASED_BY(list_release) struct list l;
    char none[200];
    snprintf(none, sizeof none,
             "no baseline%s%.80s is stored; gate run --accept-new stores the first\n",
             a->device_model ? " of device model " : "", a->device_model ? a->device_model : "");
    list_open(&l, log ? &change_list : &entry_list, a->json);
    TRY(baseline_files_each(a->baselines, a->device_model, log ? list_changes : list_entries, &l,
                            err));
    return list_print(&l, none, err);
}

/* ---- fetch ---- */

/* A library that baselines of a device model come from. */
struct wanted_library {
    char *device_model, *library_sha256;
    int64_t cases;
    const char *state; /* "cached", "fetched" or "absent" */
};

struct wanted_libraries {
    struct wanted_library *list;
    size_t n;
};

static enum gate_status note_file(void *context, const char *device_model,
                                  const struct baseline *baseline, struct gate_error *)
{
    struct wanted_libraries *l = context;
    const struct baseline_file *stored = baseline_stored(baseline);
    for (size_t i = 0; i < stored->n_cases; i++) {
        const char *sha256 = stored->cases[i].entry.library_sha256;
        size_t k = 0;
        while (k < l->n && (strcmp(l->list[k].library_sha256, sha256) != 0 ||
                            strcmp(l->list[k].device_model, device_model) != 0))
            k++;
        if (k == l->n) {
            l->list = xrealloc(l->list, l->n + 1, sizeof *l->list);
            l->list[l->n++] =
                (struct wanted_library){xstrdup(device_model), xstrdup(sha256), 0, "absent"};
        }
        l->list[k].cases++;
    }
    return GATE_OK;
}

#define OF wanted_library
static const struct field library_fields[] = {
    TEXT(device_model, 0, 0),
    TEXT(library_sha256, 0, 0),
    SIZE(cases, 0),
    TEXT(state, 0, 0),
};
static const struct shape library_shape = SHAPE_OF(library);
#undef OF

static void show_state(const void *at, struct list_cell *out)
{
    list_text(at, out);
    if (!strcmp(out->shown, "absent"))
        out->colour = TERM_RED;
}

#define LIBRARY_AT(member) offsetof(struct wanted_library, member)
static const struct list_column library_columns[] = {
    {"device", false, 0, TERM_PLAIN, list_text, LIBRARY_AT(device_model)},
    {"library", false, 0, TERM_PLAIN, list_text, LIBRARY_AT(library_sha256)},
    {"cases", true, 1, TERM_PLAIN, list_count, LIBRARY_AT(cases)},
    {"state", false, 0, TERM_PLAIN, show_state, LIBRARY_AT(state)},
};
static const struct list_kind library_list = {
    library_columns, sizeof library_columns / sizeof library_columns[0], &library_shape};

static void release_libraries(struct wanted_libraries *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->list[i].device_model);
        free(l->list[i].library_sha256);
    }
    free(l->list);
}

/* Prints one row a library; a failure of one does not keep the others. GATE_NO_VERDICT: the server
 * does not have all; else the last failure of fetch_library(). */
static enum gate_status fetch_libraries(const struct baseline_request *r, struct gate_error *err)
{
    char path[PATHS_MAX];
    RELEASED_BY(release_libraries) struct wanted_libraries l = {0};
    struct fetch fetch = {.choice = r->remote};
    RELEASED_BY(list_release) struct list list;
    enum gate_status status = GATE_OK;
    list_open(&list, &library_list, r->json);
    TRY(baseline_files_each(r->baselines, r->device_model, note_file, &l, err));
    for (size_t i = 0; i < l.n; i++) {
        struct wanted_library *one = &l.list[i];
        bool cached = !artifact_get(one->library_sha256, path, NULL);
        enum gate_status failed =
            cached ? GATE_OK : fetch_library(&fetch, one->library_sha256, path, err);
        one->state = cached ? "cached" : failed ? "absent" : "fetched";
        if (failed && (!status || status == GATE_NO_VERDICT))
            status = failed;
        list_row(&list, one);
    }
    if (status) /* with the last message */
        gate_fail(err, status, "%s", err->message);
    enum gate_status written = list_print(&list, NULL, status ? NULL : err);
    return status ? status : written;
}

/* ---- the command ---- */

static int baseline(struct command_call *call, struct gate_error *err)
{
    const struct command *self = call->command;
    const struct options_seen *seen = &call->seen;
    struct baseline_request *r = call->arguments;
    const char *action = call->operands[0];
    r->cases = call->operands[1];
    bool accepts = !strcmp(action, "accept"), retires = !strcmp(action, "retire");
    bool fetches = !strcmp(action, "fetch"), logs = !strcmp(action, "log");
    if (!accepts && !logs && !fetches && !retires && strcmp(action, "show") != 0)
        return command_usage(self, "unknown action '%s'", action);
    if (!accepts && !retires && r->cases)
        return command_usage(self, "unexpected argument '%s'", r->cases);
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
    if ((accepts || retires) && !r->cases)
        return command_usage(self, "%s needs a CASE", action);
    if ((accepts || retires) && (!r->reason || !r->reason[strspn(r->reason, " \t\r\n")]))
        return command_usage(self, "%s needs --reason, which is logged", action);
    return accepts   ? baseline_accept(r, err)
           : retires ? baseline_retire_case(r, err)
           : fetches ? fetch_libraries(r, err)
                     : print_list(r, logs, err);
}

const struct command command_baseline = {
    .name = "gate baseline",
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
    .groups = {{options, 0}, {remote_options, offsetof(struct baseline_request, remote)}},
    .least = 1,
    .most = 2,
    .missing = "an action is missing: show, log, accept, retire or fetch",
    DEFAULTS(.db = DEFAULT_DB, .baselines = DEFAULT_BASELINES),
    .main = baseline,
};
