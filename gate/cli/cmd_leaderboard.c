/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_leaderboard.c: gate leaderboard. */
#include "gate/cli/commands.h"

#include <stdio.h>

#include "gate/base/json.h"
#include "gate/cli/cmd_common.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"

struct leaderboard_arguments {
    const char *device_model, *db;
    bool json;
};

#define ARGUMENTS struct leaderboard_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "device-model", "MODEL", device_model,
           "only this device model, such as nvidia-h200"),
    JSON_OPTION(struct leaderboard_arguments, json),
    DB_OPTION(struct leaderboard_arguments, db),
    {0},
};

const struct command command_leaderboard = {
    .name = "leaderboard",
    .summary = "the fastest kernel of each case, with its commit",
    .about = "Lists the lowest verified p50 of each case, device model and provider, with its "
             "commit. Only the newest contract of a case counts. A '+' after a commit means "
             "uncommitted changes.",
    .groups = {{options, 0}},
    .main = cmd_leaderboard,
};

struct leaderboard {
    bool json;
    cJSON *leaders; /* for --json */
    struct table *table;
    size_t n;
    bool no_memory;
};

static void add_object(struct leaderboard *b, const struct store_leader *l)
{
    cJSON *o = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(b->leaders, o)) {
        b->no_memory = true;
        return;
    }
    b->no_memory |= !(cJSON_AddStringToObject(o, "case", l->case_id) &&
                      cJSON_AddStringToObject(o, "device_model", l->device_model) &&
                      cJSON_AddStringToObject(o, "contract", l->contract) &&
                      cJSON_AddStringToObject(o, "provider", l->provider) &&
                      cJSON_AddStringToObject(o, "role", l->role) &&
                      cJSON_AddStringToObject(o, "kernel", l->kernel) &&
                      cJSON_AddNumberToObject(o, "p50_ns", l->p50_ns) &&
                      cJSON_AddNumberToObject(o, "tflops", l->tflops) &&
                      cJSON_AddNumberToObject(o, "gbps", l->gbps) &&
                      cJSON_AddStringToObject(o, "commit", l->commit) &&
                      cJSON_AddBoolToObject(o, "dirty", l->dirty) &&
                      cJSON_AddStringToObject(o, "run_uuid", l->run_uuid) &&
                      cJSON_AddNumberToObject(o, "time_ms", (double)l->time_ms));
}

static void add_row(struct leaderboard *b, const struct store_leader *l)
{
    char text[UNITS_MAX];
    table_cell(b->table, TERM_PLAIN, l->case_id);
    table_cell(b->table, TERM_PLAIN, l->device_model);
    table_cell(b->table, TERM_PLAIN, l->provider);
    table_cell(b->table, TERM_DIM, l->kernel);
    table_cell(b->table, TERM_PLAIN, units_duration(l->p50_ns, text));
    table_cell(b->table, TERM_PLAIN, units_flops(l->tflops, text));
    table_cell(b->table, TERM_PLAIN, units_rate(l->gbps, "GB/s", text));
    snprintf(text, sizeof(text), "%.12s%s", l->commit, l->dirty ? "+" : "");
    table_cell(b->table, TERM_PLAIN, text);
    table_cell(b->table, TERM_PLAIN, units_time(l->time_ms, text));
}

static bool add_leader(void *context, const struct store_leader *l)
{
    struct leaderboard *b = context;
    b->n++;
    if (b->json)
        add_object(b, l);
    else
        add_row(b, l);
    return !b->no_memory;
}

static enum gate_status leaderboard(const char *db, const char *device, bool json,
                                    struct gate_error *err)
{
    static const struct table_column columns[] = {
        {"case", false, 0},   {"device", false, 0}, {"provider", false, 0},
        {"kernel", false, 2}, {"p50", true, 0},     {"compute", true, 3},
        {"memory", true, 3},  {"commit", false, 0}, {"time (UTC)", false, 1},
    };
    const struct report_style style = command_style();
    struct leaderboard b = {.json = json, .leaders = cJSON_CreateArray()};
    struct store *store = NULL;
    struct buf text;

    buf_init(&text, COMMAND_MAX_OUTPUT);
    b.table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
    enum gate_status status = store_open(db, STORE_READ_ONLY, &store, err);
    if (status == GATE_OK)
        status = store_leaderboard(store, NULL, device, (struct store_leader_key){0}, INT64_MAX,
                                   add_leader, &b, err);
    if (status == GATE_OK && (b.no_memory || !b.leaders))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status == GATE_OK && device && !json && !b.n)
        status =
            gate_fail(err, GATE_USAGE, "'%s' has no measurements of device model '%s'", db, device);
    if (status == GATE_OK) {
        if (json)
            json_write(b.leaders, true, &text);
        else if (!b.n)
            buf_puts(&text, "no verified measurement is stored; gate run makes some\n");
        else
            table_write(b.table, &style, &text);
        status = command_write(NULL, &text, err);
    }
    table_free(b.table);
    cJSON_Delete(b.leaders);
    store_close(store);
    buf_release(&text);
    return status;
}

int cmd_leaderboard(int argc, char **argv)
{
    struct leaderboard_arguments a = {.db = DEFAULT_DB};
    struct gate_error err;
    int exit_code;

    if (!options_read(&command_leaderboard, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    if (leaderboard(a.db, a.device_model, a.json, &err) != GATE_OK)
        return command_failed(&command_leaderboard, &err);
    return GATE_OK;
}
