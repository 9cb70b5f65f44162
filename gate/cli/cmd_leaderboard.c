/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_leaderboard.c: gate leaderboard. */
#include "gate/cli/commands.h"

#include "gate/cli/list.h"

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

#define OF store_leader
static const struct field leader_fields[] = {
    {.key = "case", .kind = FIELD_TEXT, .offset = offsetof(struct OF, case_id)},
    TEXT(device_model, 0, 0),
    TEXT(contract, 0, 0),
    TEXT(provider, 0, 0),
    TEXT(role, 0, 0),
    TEXT(kernel, 0, 0),
    ANY(p50_ns, 0),
    ANY(tflops, 0),
    ANY(gbps, 0),
    TEXT(commit, 0, 0),
    BOOL(dirty),
    TEXT(run_uuid, 0, 0),
    SIZE(time_ms, 0),
};
SHAPE(leader);
#undef OF

static void show_commit(const void *at, struct list_cell *out)
{
    const struct store_leader *l = at;
    list_commit(l->commit, l->dirty, out);
}

#define LEADER_AT(member) offsetof(struct store_leader, member)
static const struct list_column columns[] = {
    {"case", false, 0, TERM_PLAIN, list_text, LEADER_AT(case_id)},
    {"device", false, 0, TERM_PLAIN, list_text, LEADER_AT(device_model)},
    {"provider", false, 0, TERM_PLAIN, list_text, LEADER_AT(provider)},
    {"kernel", false, 2, TERM_DIM, list_text, LEADER_AT(kernel)},
    {"p50", true, 0, TERM_PLAIN, list_duration, LEADER_AT(p50_ns)},
    {"compute", true, 3, TERM_PLAIN, list_flops, LEADER_AT(tflops)},
    {"memory", true, 3, TERM_PLAIN, list_gbps, LEADER_AT(gbps)},
    {"commit", false, 0, TERM_PLAIN, show_commit, 0},
    {"time (UTC)", false, 1, TERM_PLAIN, list_time, LEADER_AT(time_ms)},
};
static const struct list_kind leader_list = {columns, sizeof columns / sizeof columns[0], &leader};

static bool add_leader(void *context, const struct store_leader *l)
{
    list_row(context, l);
    return true;
}

int cmd_leaderboard(int argc, char **argv)
{
    struct leaderboard_arguments a = {.db = DEFAULT_DB};
    struct store *store = NULL;
    struct list list;
    struct gate_error err;
    int exit_code;

    if (!options_read(&command_leaderboard, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    list_open(&list, &leader_list, a.json);
    enum gate_status status = store_open(a.db, STORE_READ_ONLY, &store, &err);
    if (!status)
        status = store_leaderboard(store, a.device_model, add_leader, &list, &err);
    if (!status && a.device_model && !a.json && !list.n)
        status = gate_fail(&err, GATE_USAGE, "'%s' has no measurements of device model '%s'", a.db,
                           a.device_model);
    if (!status)
        status =
            list_print(&list, "no verified measurement is stored; gate run makes some\n", &err);
    list_release(&list);
    store_close(store);
    return status ? command_failed(&command_leaderboard, &err) : GATE_OK;
}
