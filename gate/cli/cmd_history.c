/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c: gate history. */
#include "gate/cli/commands.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/cli/cmd_common.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"

struct history_arguments {
    const char *device_model, *db;
    int64_t limit;
    bool json;
};

#define ARGUMENTS struct history_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "device-model", "MODEL", device_model,
           "only this device model, such as nvidia-h200"),
    OPTION(INTEGER, "limit", "N", limit, "at most N measurements of a case and device model",
           .least = 1, .most = 1000000, .fallback = "20"),
    JSON_OPTION(struct history_arguments, json),
    DB_OPTION(struct history_arguments, db),
    {0},
};

const struct command command_history = {
    .name = "history",
    .operands = "CASE",
    .summary = "the measurements of a case, newest first",
    .about = "Lists the verified measurements of a case, newest first, by device model. CASE may "
             "be a pattern, such as 'gemm/*'. A '+' after a commit means uncommitted changes.",
    .groups = {{options, 0}},
    .main = cmd_history,
};

struct history {
    const char *pattern;
    int64_t limit;
    bool json;
    struct report_style style;
    struct store *store;
    struct buf text;     /* the result */
    cJSON *points;       /* for --json */
    const char *case_id; /* the case and device model at hand */
    const char *model;
    struct table *table;
    size_t n_points;
    bool no_memory;
    cJSON *tracks; /* [[case, device model], ...] */
};

static void add_object(struct history *h, const struct store_point *p)
{
    cJSON *o = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(h->points, o)) {
        h->no_memory = true;
        return;
    }
    bool good = cJSON_AddStringToObject(o, "case", h->case_id) &&
                cJSON_AddNumberToObject(o, "time_ms", (double)p->time_ms) &&
                cJSON_AddStringToObject(o, "device_model", h->model) &&
                cJSON_AddStringToObject(o, "run_uuid", p->run_uuid) &&
                cJSON_AddStringToObject(o, "commit", p->commit) &&
                cJSON_AddBoolToObject(o, "dirty", p->dirty) &&
                cJSON_AddStringToObject(o, "provider", p->provider) &&
                cJSON_AddStringToObject(o, "role", p->role) &&
                cJSON_AddStringToObject(o, "kernel", p->kernel) &&
                cJSON_AddStringToObject(o, "contract", p->contract) &&
                cJSON_AddStringToObject(o, "verdict", p->verdict) &&
                cJSON_AddNumberToObject(o, "p50_ns", p->p50_ns) &&
                cJSON_AddNumberToObject(o, "p50_lo_ns", p->p50_lo_ns) &&
                cJSON_AddNumberToObject(o, "p50_hi_ns", p->p50_hi_ns) &&
                cJSON_AddNumberToObject(o, "p90_ns", p->p90_ns) &&
                cJSON_AddNumberToObject(o, "tflops", p->tflops) &&
                cJSON_AddNumberToObject(o, "gbps", p->gbps);
    if (good && p->baseline_p50_ns > 0)
        good = cJSON_AddNumberToObject(o, "baseline_p50_ns", p->baseline_p50_ns) != NULL;
    h->no_memory |= !good;
}

static void add_row(struct history *h, const struct store_point *p)
{
    bool candidate = strcmp(p->role, "candidate") == 0;
    char text[UNITS_MAX];
    table_cell(h->table, TERM_PLAIN, units_time(p->time_ms, text));
    snprintf(text, sizeof(text), "%.12s%s", p->commit, p->dirty ? "+" : "");
    table_cell(h->table, TERM_PLAIN, text);
    table_cell(h->table, TERM_PLAIN, p->provider);
    table_cell(h->table, TERM_DIM, p->kernel);
    table_cell(h->table, TERM_PLAIN, units_duration(p->p50_ns, text));
    snprintf(text, sizeof(text), "%.2f %%", 50 * (p->p50_hi_ns - p->p50_lo_ns) / p->p50_ns);
    table_cell(h->table, TERM_DIM, text);
    table_cell(h->table, TERM_PLAIN, units_duration(p->p90_ns, text));
    table_cell(h->table, TERM_PLAIN, units_flops(p->tflops, text));
    table_cell(h->table, TERM_PLAIN, units_rate(p->gbps, "GB/s", text));
    bool compared = candidate && p->baseline_p50_ns > 0;
    table_cell(h->table, TERM_PLAIN,
               compared ? units_change(p->p50_ns / p->baseline_p50_ns, text) : "");
    table_cell(h->table, TERM_PLAIN, candidate ? p->verdict : "");
    snprintf(text, sizeof(text), "%.8s", p->run_uuid);
    table_cell(h->table, TERM_DIM, text);
}

static bool add_point(void *context, const struct store_point *p)
{
    struct history *h = context;
    h->n_points++;
    if (h->json)
        add_object(h, p);
    else
        add_row(h, p);
    return !h->no_memory;
}

static enum gate_status add_points(struct history *h, const cJSON *track, struct gate_error *err)
{
    static const struct table_column columns[] = {
        {"time (UTC)", false, 0}, {"commit", false, 0},  {"provider", false, 0},
        {"kernel", false, 2},     {"p50", true, 0},      {"\xc2\xb1", true, 5},
        {"p90", true, 4},         {"compute", true, 3},  {"memory", true, 3},
        {"vs baseline", true, 0}, {"verdict", false, 0}, {"run", false, 1},
    };
    size_t before = h->n_points;
    h->case_id = cJSON_GetArrayItem(track, 0)->valuestring;
    h->model = cJSON_GetArrayItem(track, 1)->valuestring;
    if (!h->json)
        h->table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
    enum gate_status status =
        store_trend(h->store, h->case_id, h->model, NULL, h->limit, add_point, h, err);
    if (status == GATE_OK && !h->json && h->n_points > before) {
        if (before > 0)
            buf_putc(&h->text, '\n');
        term_puts(h->case_id, &h->text);
        buf_puts(&h->text, " on ");
        term_puts(h->model, &h->text);
        buf_putc(&h->text, '\n');
        table_write(h->table, &h->style, &h->text);
    }
    table_free(h->table);
    h->table = NULL;
    return status;
}

/* Once for each provider of a case on a device model, one after the other. */
static bool add_track(void *context, const struct store_leader *l)
{
    struct history *h = context;
    const char *track[] = {l->case_id, l->device_model};
    if (fnmatch(h->pattern, l->case_id, 0) ||
        (h->case_id && !strcmp(h->case_id, l->case_id) && !strcmp(h->model, l->device_model)))
        return true;
    cJSON *added = cJSON_CreateStringArray(track, 2);
    h->no_memory |= !cJSON_AddItemToArray(h->tracks, added);
    if (h->no_memory)
        return false;
    h->case_id = cJSON_GetArrayItem(added, 0)->valuestring;
    h->model = cJSON_GetArrayItem(added, 1)->valuestring;
    return true;
}

static enum gate_status collect(struct history *h, const char *device, struct gate_error *err)
{
    const cJSON *track;
    enum gate_status status = store_leaderboard(
        h->store, NULL, device, (struct store_leader_key){0}, INT64_MAX, add_track, h, err);
    cJSON_ArrayForEach (track, h->tracks) {
        if (status == GATE_OK)
            status = add_points(h, track, err);
    }
    return status;
}

static enum gate_status history(struct history *h, const char *db, const char *device,
                                struct gate_error *err)
{
    buf_init(&h->text, COMMAND_MAX_OUTPUT);
    h->points = cJSON_CreateArray();
    h->tracks = cJSON_CreateArray();
    enum gate_status status = store_open(db, STORE_READ_ONLY, &h->store, err);
    if (status == GATE_OK)
        status = collect(h, device, err);
    if (status == GATE_OK && h->no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status == GATE_OK && h->n_points == 0)
        status = gate_fail(err, GATE_USAGE, "'%s' has no verified measurements of '%s'%s%s", db,
                           h->pattern, device ? " on " : "", device ? device : "");
    if (status == GATE_OK) {
        if (h->json)
            json_write(h->points, true, &h->text);
        status = command_write(NULL, &h->text, err);
    }
    cJSON_Delete(h->points);
    cJSON_Delete(h->tracks);
    store_close(h->store);
    buf_release(&h->text);
    return status;
}

int cmd_history(int argc, char **argv)
{
    struct history_arguments a = {.db = DEFAULT_DB, .limit = 20};
    struct gate_error err;
    int exit_code;

    if (!options_read(&command_history, &a, 1, argc, argv, NULL, &exit_code))
        return exit_code;
    if (optind == argc)
        return command_usage(&command_history, "which CASE?");
    struct history h = {
        .pattern = argv[optind], .limit = a.limit, .json = a.json, .style = command_style()};
    if (history(&h, a.db, a.device_model, &err) != GATE_OK)
        return command_failed(&command_history, &err);
    return GATE_OK;
}
