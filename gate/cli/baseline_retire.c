/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/baseline_retire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/baseline/baseline.h"
#include "gate/baseline/origin.h"

#define MODELS_MAX 64

/* The device models whose files have the case. */
struct holders {
    const char *case_id;
    char *models[MODELS_MAX];
    size_t n;
};

static enum gate_status look(void *context, const char *device_model,
                             const struct baseline *baseline, struct gate_error *err)
{
    struct holders *h = context;
    struct baseline_entry entry;
    (void)err;
    if (h->n < MODELS_MAX &&
        baseline_find(baseline, h->case_id, baseline_stored(baseline)->contract, &entry))
        h->models[h->n++] = xstrdup(device_model);
    return GATE_OK;
}

static enum gate_status retire(const struct retire_request *r, const char *model,
                               const struct baseline_note *note, struct gate_error *err)
{
    struct baseline *baseline = NULL;
    char *path = baseline_path(r->baselines, model);
    enum gate_status status = baseline_load(path, model, &baseline, err);
    if (!status)
        status = baseline_retire(baseline, r->case_id, note, err);
    if (!status)
        status = baseline_save(baseline, path, err);
    if (!status)
        printf("the baseline of %s on %s is retired; commit '%s'\n", r->case_id, model, path);
    baseline_free(baseline);
    free(path);
    return status;
}

enum gate_status baseline_retire_case(const struct retire_request *r, struct gate_error *err)
{
    char author[400];
    struct holders h = {.case_id = r->case_id};
    int lock = -1;
    origin_author(author, sizeof author);
    const struct baseline_note note = {BASELINE_RETIRE, r->reason, author, clock_wall_ms()};
    enum gate_status status = baseline_lock(r->baselines, &lock, err);
    if (!status)
        status = baseline_files_each(r->baselines, r->device_model, look, &h, err);
    if (!status && !h.n)
        status = gate_fail(err, GATE_USAGE,
                           "'%s' has no baseline in '%s': `gate baseline show` lists those that "
                           "are there",
                           r->case_id, r->baselines);
    for (size_t i = 0; i < h.n && !status; i++)
        status = retire(r, h.models[i], &note, err);
    for (size_t i = 0; i < h.n; i++)
        free(h.models[i]);
    if (lock >= 0)
        close(lock);
    return status;
}
