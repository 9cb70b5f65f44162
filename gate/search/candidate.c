/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/hunt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/cli/commands.h"
#include "gate/cli/config.h"
#include "gate/library/machine_code.h"
#include "gate/search/shell.h"

#define TRIES_MAX 3 /* of a run that the machine spoiled */

/* ---- what was found before ---- */

const cJSON *hunt_find_line(const struct hunt *h, const char *kind, const char *name, size_t k)
{
    const cJSON *line;
    cJSON_ArrayForEach (line, h->found) {
        if (json_member(line, kind) && !strcmp(json_string(line, "name", ""), name) && !k--)
            return line;
    }
    return NULL;
}

cJSON *hunt_new_line(const char *kind, const char *value, const char *name)
{
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "name", name);
    cJSON_AddStringToObject(line, kind, value);
    return line;
}

/* Its runs are kept by it: a file that has changed is another candidate. */
static const char *key_of(const struct candidate *c)
{
    return c->is_file ? c->sha256 : c->name;
}

/* Is the library there that an earlier call made? */
static bool find_kept(const struct hunt *h, struct candidate *c)
{
    const cJSON *line = NULL, *next;
    if (c->is_file && !access(c->name, F_OK))
        return false;
    for (size_t k = 0; (next = hunt_find_line(h, "library", c->name, k)); k++)
        line = next;
    if (!line || artifact_get(json_string(line, "library", ""), c->path, NULL))
        return false;
    snprintf(c->sha256, sizeof c->sha256, "%s", json_string(line, "library", ""));
    return true;
}

/* ---- a candidate's library ---- */

static enum gate_status build(struct hunt *h, const struct candidate *c, char library[PATHS_MAX],
                              struct gate_error *err)
{
    const struct search_request *r = h->request;
    const char *file = r->run.built ? r->run.built : r->run.target.library;
    struct buf line;
    if (snprintf(library, PATHS_MAX, "%s%s", r->run.built ? config_folder() : "", file) >=
        PATHS_MAX)
        return gate_fail(err, GATE_USAGE, "the path of the library is too long");
    parameters_export(&h->parameters, c->choice);
    unlink(library); /* one of another candidate must not be taken for this one's */
    buf_init(&line, PROCESS_LINE_MAX + 1);
    enum gate_status status = shell_ask(r->run.build, config_folder(), r->patience_s, &line, err);
    buf_release(&line);
    return status;
}

/* Copies it into the cache, so that the next build cannot change it. */
static enum gate_status make(struct hunt *h, struct candidate *c, struct gate_error *err)
{
    char library[PATHS_MAX];
    enum gate_status status = GATE_OK;
    if (c->is_file)
        snprintf(library, sizeof library, "%s", c->name);
    else
        status = build(h, c, library, err);
    if (!status)
        status = artifact_put(library, c->sha256, err);
    return status;
}

static enum gate_status open_library(struct candidate *c, struct gate_error *err)
{
    enum gate_status status = artifact_get(c->sha256, c->path, err);
    if (!status && machine_code_of_file(c->path, c->code, NULL))
        snprintf(c->code, sizeof c->code, "%s", c->sha256);
    return status;
}

/* Whose machine code it has; NULL: nobody's. */
static const char *find_twin(const struct hunt *h, const struct candidate *c)
{
    if (!strcmp(c->code, h->against_code))
        return "the library to beat";
    for (size_t i = 0; i < h->race.n; i++)
        if (&h->candidates[i] != c && !strcmp(h->candidates[i].code, c->code))
            return h->candidates[i].name;
    return NULL;
}

/* A candidate that has no library, or another's, has its reason then. */
static enum gate_status prepare(struct hunt *h, struct candidate *c, struct gate_error *err)
{
    struct gate_error why = {0};
    enum gate_status status = GATE_OK;
    c->is_prepared = true;
    if (!find_kept(h, c)) {
        status = make(h, c, &why);
        if (status && status != GATE_USAGE && status != GATE_IO)
            return gate_fail(err, status, "%s", why.message);
        if (status) {
            utf8_print(c->reason, sizeof c->reason, "%.299s", why.message);
            return GATE_OK;
        }
        status = journal_append(&h->journal, hunt_new_line("library", c->sha256, c->name), err);
    }
    if (!status)
        status = open_library(c, err);
    const char *twin = status ? NULL : find_twin(h, c);
    if (twin)
        utf8_print(c->reason, sizeof c->reason, "its machine code is that of %.200s", twin);
    return status;
}

/* ---- a run ---- */

static enum racer_state state_of(const struct comparison *m)
{
    if (m->verdict == VERDICT_WRONG)
        return RACER_WRONG;
    if (m->verdict == VERDICT_ENVIRONMENT || !m->n_log_ratios)
        return RACER_FAILED;
    return m->verdict == VERDICT_REGRESSION ? RACER_BEATEN : RACER_IN;
}

static const char *const states[] = {[RACER_IN] = "in",
                                     [RACER_BEATEN] = "beaten",
                                     [RACER_WRONG] = "wrong",
                                     [RACER_FAILED] = "failed"};

const char *hunt_state_name(enum racer_state state)
{
    return states[state];
}

/* A library that no worker can load is wrong as well; what spoils a run is tried again. */
static enum gate_status run_once(struct hunt *h, const struct candidate *c, struct race_run *out,
                                 struct comparison *m, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    *out = (struct race_run){.state = RACER_FAILED};
    for (int try = 0; try < TRIES_MAX && !status && out->state == RACER_FAILED; try++) {
        *m = (struct comparison){0};
        status = measure_pair(&h->how, c->path, h->against.path, h->request->run.policy.threshold,
                              m, err);
        if (status == GATE_WRONG) {
            utf8_print(m->reason, sizeof m->reason, "%.299s", err->message);
            out->state = RACER_WRONG;
            return GATE_OK;
        }
        out->state = state_of(m);
    }
    out->n = m->n_log_ratios < RACE_RUN_VALUES ? m->n_log_ratios : RACE_RUN_VALUES;
    memcpy(out->d, m->log_ratio, out->n * sizeof *out->d);
    memcpy(out->fresh, m->log_ratio_fresh, out->n * sizeof *out->fresh);
    return status;
}

static const char *kind_of(size_t confirmation)
{
    return confirmation ? "confirmed" : "state";
}

/* JSON has no NaN. */
static cJSON *new_numbers(const double *x, size_t n)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isnan(x[i]) ? cJSON_CreateNull() : cJSON_CreateNumber(x[i]));
    return list;
}

static enum gate_status keep_run(struct hunt *h, const struct candidate *c, size_t confirmation,
                                 const struct race_run *run, const struct comparison *m,
                                 struct gate_error *err)
{
    cJSON *line = hunt_new_line(kind_of(confirmation), states[run->state], key_of(c));
    if (confirmation)
        cJSON_AddNumberToObject(line, "confirmation", (double)confirmation);
    cJSON_AddItemToObject(line, "log_ratio", new_numbers(run->d, run->n));
    cJSON_AddItemToObject(line, "log_ratio_fresh", new_numbers(run->fresh, run->n));
    cJSON_AddStringToObject(line, "reason", m->reason);
    cJSON_AddStringToObject(line, "run", m->run);
    return journal_append(&h->journal, line, err);
}

static void read_run(const cJSON *line, const char *kind, struct candidate *c, struct race_run *out)
{
    const cJSON *d;
    *out = (struct race_run){.state = RACER_FAILED};
    for (int k = RACER_IN; k <= RACER_FAILED; k++)
        if (!strcmp(json_string(line, kind, ""), states[k]))
            out->state = (enum racer_state)k;
    const cJSON *fresh = json_member(line, "log_ratio_fresh");
    cJSON_ArrayForEach (d, json_member(line, "log_ratio")) {
        const cJSON *f = cJSON_GetArrayItem(fresh, (int)out->n);
        if (cJSON_IsNumber(d) && out->n < RACE_RUN_VALUES) {
            out->fresh[out->n] = cJSON_IsNumber(f) ? f->valuedouble : NAN;
            out->d[out->n++] = d->valuedouble;
        }
    }
    snprintf(c->reason, sizeof c->reason, "%s", json_string(line, "reason", ""));
}

static void print_run(const struct candidate *c, const struct race_run *run)
{
    double d[RACE_RUN_VALUES];
    memcpy(d, run->d, sizeof d);
    if (run->n)
        command_note(&command_search, "%s: %+.2f %% in %zu processes%s%s", c->name,
                     100 * expm1(stats_middle(d, run->n)), run->n,
                     run->state == RACER_IN ? "" : ", ",
                     run->state == RACER_IN ? "" : states[run->state]);
    else
        command_note(&command_search, "%s: %s: %s", c->name, states[run->state], c->reason);
}

enum gate_status hunt_measure(void *context, size_t i, size_t confirmation, struct race_run *out,
                              struct gate_error *err)
{
    struct hunt *h = context;
    struct candidate *c = &h->candidates[i];
    struct comparison m = {0};
    TRY(c->is_prepared ? GATE_OK : prepare(h, c, err));
    if (!c->n_runs && c->reason[0]) {
        *out = (struct race_run){.state = c->code[0] ? RACER_BEATEN : RACER_FAILED};
        print_run(c, out);
        return GATE_OK;
    }
    h->n_runs++;
    const char *kind = kind_of(confirmation);
    size_t *n_runs = confirmation ? &c->n_confirming : &c->n_runs;
    const cJSON *line = hunt_find_line(h, kind, key_of(c), (*n_runs)++);
    if (line) {
        h->n_earlier++;
        read_run(line, kind, c, out);
        return GATE_OK;
    }
    TRY(run_once(h, c, out, &m, err));
    utf8_print(c->reason, sizeof c->reason, "%.299s", m.reason);
    print_run(c, out);
    return keep_run(h, c, confirmation, out, &m, err);
}

void hunt_recall_confirmations(struct hunt *h)
{
    struct race *r = &h->race;
    const cJSON *line;
    cJSON_ArrayForEach (line, h->found) {
        const char *name = json_string(line, "name", "");
        size_t number = (size_t)fmax(0, (double)json_integer(line, "confirmation", 0));
        if (json_member(line, "state"))
            r->n_since = 0;
        r->n_since += number > r->confirmed;
        r->confirmed = number > r->confirmed ? number : r->confirmed;
        for (size_t i = 0; number && i < r->n; i++)
            if (!strcmp(key_of(&h->candidates[i]), name))
                r->racers[i].confirmation = number;
    }
    if (h->n_runs > h->n_earlier)
        r->n_since = 0;
}

bool hunt_goes_on(void *context)
{
    const struct hunt *h = context;
    const struct search_request *r = h->request;
    if (r->max_runs && h->n_runs >= (size_t)r->max_runs) {
        command_note(&command_search, "the race has had its %" PRId64 " runs", r->max_runs);
        return false;
    }
    if (clock_s() > h->deadline) {
        command_note(&command_search, "the race has had its %g s", r->max_time_s);
        return false;
    }
    return true;
}
