/* SPDX-License-Identifier: Apache-2.0 */
/* compare_base.c: see compare_base.h. The server has no repository: it knows the history that run
 * documents brought. */
#include "server/api/compare_base.h"

#include <stdio.h>
#include <string.h>

#include "server/api/rows.h"

struct found {
    char uuid[40], device[68];
    int64_t time_ms;
};

static bool note_run(void *context, const struct store_run *row)
{
    struct found *f = context;
    snprintf(f->uuid, sizeof f->uuid, "%s", row->uuid);
    snprintf(f->device, sizeof f->device, "%s", row->device_model);
    f->time_ms = row->time_ms;
    return false;
}

static bool note_base(void *context, const struct store_cell *cells, int n)
{
    struct compare_base *out = context;
    (void)n;
    snprintf(out->uuid, sizeof out->uuid, "%s", cells[0].text);
    return false;
}

static bool note_before(void *context, const struct store_run *row)
{
    struct compare_base *out = context;
    snprintf(out->uuid, sizeof out->uuid, "%s", row->uuid);
    return false;
}

bool compare_is_base(const char *name)
{
    return !strcmp(name, "parent") || !strcmp(name, "merge-base");
}

enum gate_status compare_find_base(struct call *c, const char *name, const char *run,
                                   const char *device, struct compare_base *out)
{
    struct found from = {.time_ms = 0};
    *out = (struct compare_base){0};
    enum gate_status status = store_find_run(c->store, run, device, note_run, &from, NULL, &c->err);
    if (status)
        return status;
    const struct rows_value values[] = {{"run", from.uuid},
                                        {"device", from.device},
                                        {"branch", strcmp(name, "parent") ? c->main_branch : NULL},
                                        {NULL, NULL}};
    status = rows_select(c, "base.sql", values, note_base, out);
    out->by_time = !out->uuid[0];
    struct store_run_filter on_main = {.branch = c->main_branch, .device_model = from.device};
    struct store_run_key before = {from.time_ms, ""};
    if (!status && out->by_time)
        status = store_runs(c->store, &on_main, before, 1, note_before, out, &c->err);
    return status;
}
