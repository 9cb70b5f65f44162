/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c: gate history and gate leaderboard. */
#include "gate/cli/commands.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/cli/list.h"

struct history_arguments {
    const char *device_model, *db;
    int64_t limit; /* of history alone */
    bool json;
};

#define ARGUMENTS struct history_arguments

static const struct option_def list_options[] = {
    OPTION(TEXT, "device-model", "MODEL", device_model,
           "only this device model, such as nvidia-h200"),
    JSON_OPTION(json),
    DB_OPTION(db),
    {0},
};

static const struct option_def history_options[] = {
    OPTION(INTEGER, "limit", "N", limit, "at most N measurements of a case and device model",
           .least = 1, .most = 1000000, .fallback = "20"),
    {0},
};

#define OF store_point
static const struct field row_fields[] = {
    {.key = "case", .kind = FIELD_TEXT, .offset = offsetof(struct OF, case_id)},
    SIZE(time_ms, 0),
    TEXT(device_model, 0, 0),
    TEXT(run_uuid, 0, 0),
    TEXT(commit, 0, 0),
    BOOL(dirty),
    TEXT(provider, 0, 0),
    TEXT(role, 0, 0),
    TEXT(kernel, 0, 0),
    TEXT(contract, 0, 0),
    TEXT(verdict, 0, 0),
    ANY(p50_ns, 0),
    ANY(p50_lo_ns, 0),
    ANY(p50_hi_ns, 0),
    ANY(p90_ns, 0),
    ANY(tflops, 0),
    ANY(gbps, 0),
    ANY(baseline_p50_ns, 0),
};
static const struct shape row_shape = SHAPE_OF(row);

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

/* ---- columns ---- */

static bool is_candidate(const struct store_point *p)
{
    return !strcmp(p->role, "candidate");
}

static void show_commit(const void *at, struct list_cell *out)
{
    const struct store_point *p = at;
    list_commit(p->commit, p->dirty, out);
}

static void show_half_width(const void *at, struct list_cell *out)
{
    const struct store_point *p = at;
    list_half_width(p->p50_ns, p->p50_lo_ns, p->p50_hi_ns, out);
}

static void show_change(const void *at, struct list_cell *out)
{
    const struct store_point *p = at;
    if (is_candidate(p) && p->baseline_p50_ns > 0)
        units_change(p->p50_ns / p->baseline_p50_ns, out->text);
}

/* Providers have none of their own. */
static void show_verdict(const void *at, struct list_cell *out)
{
    const struct store_point *p = at;
    out->shown = is_candidate(p) ? p->verdict : "";
}

static void show_run(const void *at, struct list_cell *out)
{
    snprintf(out->text, sizeof out->text, "%.8s", *(const char *const *)at);
}

#define POINT_AT(member) offsetof(struct store_point, member)
static const struct list_column history_columns[] = {
    {"time (UTC)", false, 0, TERM_PLAIN, list_time, POINT_AT(time_ms)},
    {"commit", false, 0, TERM_PLAIN, show_commit, 0},
    {"provider", false, 0, TERM_PLAIN, list_text, POINT_AT(provider)},
    {"kernel", false, 2, TERM_DIM, list_text, POINT_AT(kernel)},
    {"p50", true, 0, TERM_PLAIN, list_duration, POINT_AT(p50_ns)},
    {"\xc2\xb1", true, 5, TERM_DIM, show_half_width, 0},
    {"p90", true, 4, TERM_PLAIN, list_duration, POINT_AT(p90_ns)},
    {"compute", true, 3, TERM_PLAIN, list_flops, POINT_AT(tflops)},
    {"memory", true, 3, TERM_PLAIN, list_gbps, POINT_AT(gbps)},
    {"vs baseline", true, 0, TERM_PLAIN, show_change, 0},
    {"verdict", false, 0, TERM_PLAIN, show_verdict, 0},
    {"run", false, 1, TERM_DIM, show_run, POINT_AT(run_uuid)},
};
static const struct list_kind history_list = {
    history_columns, sizeof history_columns / sizeof history_columns[0], &row_shape};

struct history {
    const struct history_arguments *arguments;
    const char *pattern;
    char track[256]; /* the last one: case and device model */
    struct store *store;
    struct list list;
    enum gate_status status;
    struct gate_error *err;
};

static bool add_point(void *context, const struct store_point *p)
{
    struct store_point row = *p;
    if (!(row.baseline_p50_ns > 0))
        row.baseline_p50_ns = NAN;
    list_row(context, &row);
    return true;
}

/* Called once for each provider of a case on a device model, one after the other. */
static bool list_track(void *context, const struct store_point *l)
{
    struct history *h = context;
    char track[sizeof h->track];
    snprintf(track, sizeof track, "%s %s", l->case_id, l->device_model);
    if (fnmatch(h->pattern, l->case_id, 0) || !strcmp(track, h->track))
        return true;
    memcpy(h->track, track, sizeof track);
    h->status = store_trend(h->store, l->case_id, l->device_model, h->arguments->limit, add_point,
                            &h->list, h->err);
    list_table(&h->list, l->case_id, l->device_model);
    return !h->status;
}

static void release_history(struct history *h)
{
    store_close(h->store);
    list_release(&h->list);
}

static int history(struct command_call *call, struct gate_error *err)
{
    const struct history_arguments *a = call->arguments;
    RELEASED_BY(release_history)
    struct history h = {.arguments = a, .pattern = call->operands[0], .err = err};
    list_open(&h.list, &history_list, a->json);
    TRY(store_open(a->db, STORE_READ_ONLY, &h.store, err));
    TRY(store_leaderboard(h.store, a->device_model, list_track, &h, err));
    TRY(h.status);
    if (!h.list.n)
        return gate_fail(err, GATE_USAGE, "'%s' has no verified measurements of '%s'%s%s", a->db,
                         h.pattern, a->device_model ? " on " : "",
                         a->device_model ? a->device_model : "");
    return list_print(&h.list, NULL, err);
}

const struct command command_history = {
    .name = "gate history",
    .operands = "CASE",
    .summary = "the measurements of a case, newest first",
    .about = "Lists the verified measurements of a case, newest first, by device model. CASE may "
             "be a pattern, such as 'gemm/*'. A '+' after a commit means uncommitted changes.",
    .groups = {{list_options, 0}, {history_options, 0}},
    .least = 1,
    .most = 1,
    .missing = "which CASE?",
    DEFAULTS(.db = DEFAULT_DB, .limit = 20),
    .main = history,
};

/* ---- leaderboard ---- */

static const struct list_column leader_columns[] = {
    {"case", false, 0, TERM_PLAIN, list_text, POINT_AT(case_id)},
    {"device", false, 0, TERM_PLAIN, list_text, POINT_AT(device_model)},
    {"provider", false, 0, TERM_PLAIN, list_text, POINT_AT(provider)},
    {"kernel", false, 2, TERM_DIM, list_text, POINT_AT(kernel)},
    {"p50", true, 0, TERM_PLAIN, list_duration, POINT_AT(p50_ns)},
    {"compute", true, 3, TERM_PLAIN, list_flops, POINT_AT(tflops)},
    {"memory", true, 3, TERM_PLAIN, list_gbps, POINT_AT(gbps)},
    {"commit", false, 0, TERM_PLAIN, show_commit, 0},
    {"time (UTC)", false, 1, TERM_PLAIN, list_time, POINT_AT(time_ms)},
};
static const struct list_kind leader_list = {
    leader_columns, sizeof leader_columns / sizeof leader_columns[0], &leader_shape};

static bool add_leader(void *context, const struct store_point *l)
{
    if (strncmp(l->contract, DOCUMENT_FOREIGN "-", sizeof DOCUMENT_FOREIGN) != 0) /* verified */
        list_row(context, l);
    return true;
}

static int leaderboard(struct command_call *call, struct gate_error *err)
{
    const struct history_arguments *a = call->arguments;
    RELEASED_BY(command_close_store) struct store *store = NULL;
    RELEASED_BY(list_release) struct list list;
    list_open(&list, &leader_list, a->json);
    TRY(store_open(a->db, STORE_READ_ONLY, &store, err));
    TRY(store_leaderboard(store, a->device_model, add_leader, &list, err));
    if (a->device_model && !a->json && !list.n)
        return gate_fail(err, GATE_USAGE, "'%s' has no measurements of device model '%s'", a->db,
                         a->device_model);
    return list_print(&list, "no verified measurement is stored; gate run makes some\n", err);
}

const struct command command_leaderboard = {
    .name = "gate leaderboard",
    .summary = "the fastest kernel of each case, with its commit",
    .about = "Lists the lowest verified p50 of each case, device model and provider, with its "
             "commit. Only the newest contract of a case counts. A '+' after a commit means "
             "uncommitted changes.",
    .groups = {{list_options, 0}},
    DEFAULTS(.db = DEFAULT_DB),
    .main = leaderboard,
};
