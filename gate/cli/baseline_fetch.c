/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_fetch.c: see baseline_fetch.h. */
#include "gate/cli/baseline_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/artifact.h"
#include "gate/base/json.h"
#include "gate/baseline/baseline_files.h"
#include "gate/cli/cmd_common.h"
#include "gate/tracker/fetch.h"
#include "gate/report/report_table.h"

/* A library that baselines of a device model come from. */
struct wanted_library {
    char device_model[80], sha256[65];
    size_t n_cases;
    const char *state; /* "cached", "fetched" or "absent" */
};

struct wanted_libraries {
    const char *device_model; /* of the file that is read */
    struct wanted_library *list;
    size_t n;
    bool no_memory;
};

static void note_entry(void *context, const char *case_id, const struct baseline_entry *e)
{
    struct wanted_libraries *l = context;
    (void)case_id;
    for (size_t i = 0; i < l->n; i++) {
        if (!strcmp(l->list[i].sha256, e->library_sha256) &&
            !strcmp(l->list[i].device_model, l->device_model)) {
            l->list[i].n_cases++;
            return;
        }
    }
    struct wanted_library *longer = realloc(l->list, (l->n + 1) * sizeof *longer);
    l->no_memory |= !longer;
    if (!longer)
        return;
    l->list = longer;
    longer[l->n] = (struct wanted_library){.n_cases = 1, .state = "absent"};
    snprintf(longer[l->n].device_model, sizeof longer->device_model, "%s", l->device_model);
    snprintf(longer[l->n++].sha256, sizeof longer->sha256, "%s", e->library_sha256);
}

static enum gate_status note_file(void *context, const char *device_model,
                                  const struct baseline *baseline, struct gate_error *err)
{
    struct wanted_libraries *l = context;
    l->device_model = device_model;
    baseline_each(baseline, note_entry, l);
    return l->no_memory ? gate_fail(err, GATE_INTERNAL, "out of memory") : GATE_OK;
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

enum gate_status baseline_fetch(const struct remote_choice *choice, const char *folder,
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
