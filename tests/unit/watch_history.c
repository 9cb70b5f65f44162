/* SPDX-License-Identifier: Apache-2.0 */
/* watch_history.c: see watch_history.h. */
#include "tests/unit/watch_history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"
#include "gate/store/store_rows.h"
#include "tests/unit/unit.h"

#define CASE "attention_fwd/fp16/b8-h16-s512-d64/causal"
#define DEVICE "nvidia-h200"
#define RUN_MS INT64_C(21600000) /* from one run to the next */

static const struct sample_plan long_plan = {
    .seed = 7, .n_runs = 100000, .n_cases = 1, .n_devices = 1};

void history_commit(int index, char commit[41], char parent[41])
{
    cJSON *document = sample_run(&long_plan, index);
    const cJSON *git = cJSON_GetObjectItem(document, "git");
    snprintf(commit, 41, "%s", cJSON_GetObjectItem(git, "commit")->valuestring);
    snprintf(parent, 41, "%s", cJSON_GetObjectItem(git, "parent")->valuestring);
    cJSON_Delete(document);
}

static void measure_again(cJSON *document, int index)
{
    cJSON *git = cJSON_GetObjectItem(document, "git");
    char commit[41], parent[41];
    history_commit(index, commit, parent);
    set_string(git, "commit", commit);
    set_string(git, "parent", parent);
}

static void put_run(struct store_fixture *f, struct store *s, const struct spec *spec)
{
    cJSON *document = sample_run(&long_plan, spec->index);
    cJSON *item = item_of(document, 0), *process = NULL;
    cJSON *baseline = cJSON_GetObjectItemCaseSensitive(item, "baseline");
    cJSON *verify = cJSON_GetObjectItemCaseSensitive(arm_of(document, 0, CANDIDATE), "verify");
    set_number(timing_of(document, 0, CANDIDATE), "p50_ns", spec->p50_ns);
    cJSON_ArrayForEach (process, cJSON_GetObjectItemCaseSensitive(item, "processes"))
        set_number(process, "control_ns", spec->control_ns);
    if (spec->rel_err > 0)
        set_number(verify, "rel_fro", spec->rel_err);
    if (spec->vendor_ratio > 0)
        set_number(verify, "vendor_ratio", spec->vendor_ratio);
    if (spec->vendor_ratio < 0)
        cJSON_DeleteItemFromObjectCaseSensitive(verify, "vendor_ratio");
    if (spec->baseline_ns > 0) {
        set_number(baseline, "p50_ns", spec->baseline_ns);
        set_string(baseline, "made_by", "accept");
        set_number(timing_of(document, 0, BASELINE), "p50_ns", spec->baseline_ns);
    }
    if (spec->baseline_ms > 0)
        set_number(baseline, "time_ms", (double)spec->baseline_ms);
    if (spec->baseline_commit)
        set_string(baseline, "commit", spec->baseline_commit);
    if (spec->again > 0)
        measure_again(document, spec->again - 1);
    if (spec->commit)
        set_string(cJSON_GetObjectItemCaseSensitive(document, "git"), "commit", spec->commit);
    if (spec->parent)
        set_string(cJSON_GetObjectItemCaseSensitive(document, "git"), "parent", spec->parent);
    set_string(item, "verdict", spec->verdict ? spec->verdict : "pass");
    set_string(item, "mode", spec->ratio <= 0 ? "none" : spec->by_number ? "number" : "paired");
    if (spec->ratio > 0)
        set_number(cJSON_GetObjectItemCaseSensitive(item, "ratio"), "value", spec->ratio);
    if (spec->epoch)
        set_string(document, "epoch", spec->epoch);
    if (spec->contract)
        set_string(document, "contract", spec->contract);
    if (spec->device)
        set_string(cJSON_GetObjectItemCaseSensitive(document, "device"), "model", spec->device);
    if (spec->case_id)
        set_string(item, "id", spec->case_id);
    if (spec->baseline_ns < 0) {
        cJSON_DeleteItemFromArray(cJSON_GetObjectItemCaseSensitive(item, "arms"), BASELINE);
        cJSON_ReplaceItemInObjectCaseSensitive(item, "baseline", cJSON_CreateNull());
    }
    if (spec->branch)
        cJSON_DeleteItemFromObject(cJSON_GetObjectItemCaseSensitive(document, "git"), "change");
    if (spec->machine)
        set_string(cJSON_GetObjectItemCaseSensitive(document, "device"), "uuid", spec->machine);
    set_string(cJSON_GetObjectItemCaseSensitive(document, "git"), "branch",
               spec->branch ? spec->branch : "main");
    if (put(f, s, document, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

void history_watch(struct store_fixture *f, struct store *s)
{
    bool more = true;
    while (more) {
        if (alerts_look(s, "main", 0, &more, &f->err) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
}

struct history history_begin(void **state)
{
    struct history h = {.f = *state, .sd = 0.002, .watched = true};
    h.s = open_store(h.f, STORE_READ_WRITE);
    /* What is looked at is not how it is kept. */
    assert_int_equal(sqlite3_exec(h.s->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL),
                     SQLITE_OK);
    h.spec = (struct spec){.p50_ns = 20000, .control_ns = 1e6};
    rng_seed(&h.rng, 5);
    return h;
}

void history_add(struct history *h, int n, double p50_ns)
{
    for (int i = 0; i < n; i++) {
        h->spec.p50_ns = p50_ns * exp(h->sd * rng_normal(&h->rng));
        put_run(h->f, h->s, &h->spec);
        h->spec.index++;
        if (h->watched)
            history_watch(h->f, h->s);
    }
}

static bool see_alert(void *context, const struct store_alert *row)
{
    struct seen *seen = context;
    assert_true(seen->n < MAX_ALERTS);
    assert_string_equal(row->case_id, CASE);
    assert_string_equal(row->device_model, DEVICE);
    snprintf(seen->reason[seen->n], sizeof(seen->reason[0]), "%s", row->reason);
    snprintf(seen->before_commit[seen->n], sizeof(seen->before_commit[0]), "%s",
             row->before_commit);
    snprintf(seen->machine[seen->n], sizeof seen->machine[0], "%s", row->machine);
    snprintf(seen->provider[seen->n], sizeof seen->provider[0], "%s", row->provider);
    alert_sentence(row, seen->text[seen->n]);
    snprintf(seen->evidence[seen->n], sizeof(seen->evidence[0]), "%s", row->evidence);
    seen->alert[seen->n] = *row;
    seen->alert[seen->n].reason = seen->reason[seen->n];
    seen->alert[seen->n].evidence = seen->evidence[seen->n];
    seen->n++;
    return true;
}

static const struct alert_filter any = {.state = -1, .kind = -1};

struct seen history_alerts(const struct history *h)
{
    struct seen seen = {.n = 0};
    if (store_alerts(h->s, &any, false, INT64_MAX, MAX_ALERTS, see_alert, &seen, &h->f->err) !=
        GATE_OK)
        fail_msg("%s", h->f->err.message);
    return seen;
}

/* Of level: by the alerts that were borne out, and where levels returned. */
size_t history_n_changes(const struct history *h)
{
    return (size_t)scalar(h->f->path,
                          "SELECT (SELECT count(*) FROM alert WHERE kind IN ('regression',"
                          " 'improvement') AND NOT (state = 'fixed' AND who = 'gate-server' AND"
                          " end_run_id IS NULL)) + (SELECT count(*) FROM alert WHERE kind IN"
                          " ('regression', 'improvement') AND end_run_id IS NOT NULL)");
}

static void silence_value(void *context, const char *name, struct store_cell *value)
{
    (void)context;
    if (!strcmp(name, "main_branch"))
        *value = (struct store_cell){.kind = STORE_TEXT, .text = "main"};
    if (!strcmp(name, "limit"))
        *value = (struct store_cell){.kind = STORE_INTEGER, .integer = 100};
}

static bool silence_row(void *context, const struct store_cell *cells, int n)
{
    (void)n;
    (void)cells;
    ++*(size_t *)context;
    return true;
}

size_t history_n_silences(const struct history *h)
{
    static char sql[16384];
    size_t n = 0;
    FILE *file = fopen("server/queries/silences.sql", "r");
    assert_non_null(file);
    sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
    fclose(file);
    if (store_select(h->s, sql, silence_value, silence_row, &n, &h->f->err) != GATE_OK)
        fail_msg("%s", h->f->err.message);
    return n;
}

static int64_t first_ms(void)
{
    cJSON *document = sample_run(&long_plan, 0);
    int64_t first = (int64_t)cJSON_GetObjectItem(document, "time_ms")->valuedouble;
    cJSON_Delete(document);
    return first;
}

int64_t history_index_of(const struct store_alert *a)
{
    return (a->time_ms - first_ms()) / RUN_MS;
}

void assert_alerts(const struct history *h, size_t n, enum alert_kind kind, enum alert_state state)
{
    struct seen seen = history_alerts(h);
    if (seen.n != n)
        fail_msg("%zu alerts, not %zu", seen.n, n);
    if (n > 0) {
        assert_int_equal(seen.alert[0].kind, kind);
        assert_int_equal(seen.alert[0].state, state);
    }
}

void history_end(struct history *h)
{
    bool more = true;
    assert_int_equal(alerts_look(h->s, "main", 1, &more, &h->f->err), GATE_OK);
    assert_false(more);
    store_close(h->s);
    assert_sound(h->f->path);
}

void history_step(const struct history *h, int64_t id, enum alert_state to,
                  enum alert_step expected)
{
    enum alert_step step;
    int64_t now_ms = first_ms() + (h->spec.index - 1) * RUN_MS + 1; /* behind the last run */
    const struct alert_action action = {
        .has_state = true, .to = to, .who = "ada", .reason = "because", .now_ms = now_ms};
    int64_t refused;
    assert_int_equal(store_act_on_alerts(h->s, &id, 1, &action, &step, &refused, &h->f->err),
                     GATE_OK);
    assert_int_equal(step, expected);
}
