/* SPDX-License-Identifier: Apache-2.0 */
/* compare_base.c: see compare_base.h. The server has no repository: it knows the parents of the
 * commits that were measured. */
#include "server/api/compare_base.h"

#include <stdio.h>
#include <string.h>

#define MAX_STEPS 200

struct ancestor {
    char uuid[40];
    char commit[41];
    char parent[41];
    char device[68];
    int64_t time_ms;
};

static bool note_ancestor(void *context, const struct store_run *row)
{
    struct ancestor *a = context;
    snprintf(a->uuid, sizeof a->uuid, "%s", row->uuid);
    snprintf(a->commit, sizeof a->commit, "%s", row->commit);
    snprintf(a->parent, sizeof a->parent, "%s", row->parent);
    snprintf(a->device, sizeof a->device, "%s", row->device_model);
    a->time_ms = row->time_ms;
    return false;
}

bool compare_is_base(const char *name)
{
    return !strcmp(name, "parent") || !strcmp(name, "merge-base");
}

/* The newest run before `before`; out->uuid is "" where there is none. */
static enum gate_status newest(struct call *c, const struct store_run_filter *filter,
                               int64_t before, struct ancestor *out)
{
    struct store_run_key after = {before, ""};
    *out = (struct ancestor){0};
    return store_runs(c->store, filter, after, 1, note_ancestor, out, &c->err);
}

/* From parent to parent, to one that was measured on the device, on `branch` unless it is NULL. */
static enum gate_status climb(struct call *c, const struct ancestor *from, const char *branch,
                              struct ancestor *out)
{
    char commit[41];
    struct ancestor step = *from;
    struct store_run_filter here = {
        .branch = branch, .device_model = from->device, .commit = commit};
    struct store_run_filter anywhere = {.commit = commit};
    enum gate_status status = GATE_OK;
    *out = (struct ancestor){0};
    for (int i = 0; i < MAX_STEPS && !status && step.parent[0] && !out->uuid[0]; i++) {
        memcpy(commit, step.parent, sizeof commit);
        status = newest(c, &here, INT64_MAX, out);
        if (!status && !out->uuid[0])
            status = newest(c, &anywhere, INT64_MAX, &step);
    }
    return status;
}

enum gate_status compare_find_base(struct call *c, const char *name, const char *run,
                                   const char *device, struct compare_base *out)
{
    struct ancestor from = {0};
    struct ancestor found = {0};
    *out = (struct compare_base){0};
    enum gate_status status =
        store_find_run(c->store, run, device, note_ancestor, &from, NULL, &c->err);
    if (status)
        return status;
    status = climb(c, &from, strcmp(name, "parent") ? c->main_branch : NULL, &found);
    out->by_time = !found.uuid[0];
    struct store_run_filter on_main = {.branch = c->main_branch, .device_model = from.device};
    if (!status && out->by_time)
        status = newest(c, &on_main, from.time_ms, &found);
    memcpy(out->uuid, found.uuid, sizeof out->uuid);
    return status;
}
