/* SPDX-License-Identifier: Apache-2.0 */
/* watch_history.c: see watch_history.h. */
#include "tests/unit/watch_history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"
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

const char *const history_kinds[ALERT_KINDS] = {"regression", "improvement", "error", "wrong"};

static bool see_alert(void *context, const struct store_row *row)
{
    struct seen *seen = context;
    assert_true(seen->n < MAX_ALERTS);
    assert_string_equal(store_text_of(row, "case"), CASE);
    assert_string_equal(store_text_of(row, "device"), DEVICE);
    struct seen_alert *a = &seen->alert[seen->n++];
    *a = (struct seen_alert){
        .id = store_integer_of(row, "id"),
        .time_ms = store_integer_of(row, "time_ms"),
        .closed_ms = store_integer_of(row, "closed_ms"),
        .confirmed = store_integer_of(row, "confirmed"),
        .by_vendor = store_integer_of(row, "by_vendor"),
        .change = store_cell_of(row, "change")->real,
    };
    while (strcmp(history_kinds[a->kind], store_text_of(row, "kind")) != 0)
        a->kind++;
    assert_true(alert_state_of(store_text_of(row, "state"), &a->state));
    bool is_error = a->kind == ALERT_ERROR;
    a->before = store_cell_of(row, is_error ? "before_error" : "before_ns")->real;
    a->after = store_cell_of(row, is_error ? "after_error" : "after_ns")->real;
    snprintf(a->reason, sizeof a->reason, "%s", store_text_of(row, "reason"));
    snprintf(a->evidence, sizeof a->evidence, "%s", store_text_of(row, "evidence"));
    snprintf(a->text, sizeof a->text, "%s", store_text_of(row, "text"));
    snprintf(a->before_commit, sizeof a->before_commit, "%s", store_text_of(row, "before_commit"));
    snprintf(a->provider, sizeof a->provider, "%s", store_text_of(row, "provider"));
    snprintf(a->machine, sizeof a->machine, "%s", store_text_of(row, "machine"));
    return true;
}

struct seen history_alerts(const struct history *h)
{
    struct seen seen = {.n = 0};
    static const struct rows_value values[] = {{"groups", "0"}, {"limit", "1000"}, {NULL, NULL}};
    struct call call = {.store = h->s};
    if (rows_select(&call, "alerts.sql", values, see_alert, &seen) != GATE_OK)
        fail_msg("%s", call.err.message);
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

static bool silence_row(void *context, const struct store_row *)
{
    ++*(size_t *)context;
    return true;
}

size_t history_n_silences(const struct history *h)
{
    static const struct rows_value values[] = {
        {"main_branch", "main"}, {"limit", "100"}, {NULL, NULL}};
    struct call call = {.store = h->s};
    size_t n = 0;
    if (rows_select(&call, "silences.sql", values, silence_row, &n) != GATE_OK)
        fail_msg("%s", call.err.message);
    return n;
}

static int64_t first_ms(void)
{
    cJSON *document = sample_run(&long_plan, 0);
    int64_t first = (int64_t)cJSON_GetObjectItem(document, "time_ms")->valuedouble;
    cJSON_Delete(document);
    return first;
}

int64_t history_index_of(const struct seen_alert *a)
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
    char ids[24];
    snprintf(ids, sizeof ids, "[%lld]", (long long)id);
    assert_int_equal(store_act_on_alerts(h->s, ids, &action, &step, &refused, &h->f->err), GATE_OK);
    assert_int_equal(step, expected);
}
