/* SPDX-License-Identifier: Apache-2.0 */
/* candidate.c: builds a candidate, and measures it against the library to beat. */
#include "gate/search/hunt.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/cli/commands.h"
#include "gate/cli/config.h"
#include "gate/library/machine_code.h"

#define TRIES_MAX 3 /* of a run that the machine spoiled */
#define COMPARE_PATIENCE_S 86400.0
#define SHELL_OUTPUT_MAX ((size_t)64 << 20)
#define SHELL_GRACE_S 10.0

const char *const hunt_states[RACER_FAILED + 1] = {[RACER_IN] = "in",
                                                   [RACER_BEATEN] = "beaten",
                                                   [RACER_WRONG] = "wrong",
                                                   [RACER_FAILED] = "failed"};

/* ---- a candidate's library ---- */

enum gate_status hunt_ask_shell(const struct hunt *h, const char *command, const char *folder,
                                struct buf *first, struct gate_error *err)
{
    char *argv[] = {(char *)"sh",
                    (char *)"-c",
                    (char *)"cd -- \"$0\" && eval \"$1\"",
                    (char *)(folder[0] ? folder : "."),
                    (char *)command,
                    NULL};
    double deadline = clock_s() + h->request->patience_s;
    struct process p = {0};
    struct buf line;
    size_t total = 0;
    char how[96] = "";
    buf_clear(first);
    process_adopt_orphans();
    TRY(process_start_scrubbed(&p, argv, err));
    buf_init(&line, PROCESS_LINE_MAX + 1);
    enum process_event event = PROCESS_LINE;
    for (bool is_first = true; event == PROCESS_LINE; is_first = false) {
        buf_clear(&line);
        event = process_read_line(&p, deadline - clock_s(), &line);
        total += line.len + 1;
        if (event == PROCESS_LINE && total > SHELL_OUTPUT_MAX)
            event = PROCESS_FLOOD;
        if (event == PROCESS_LINE && is_first)
            buf_append(first, line.data, line.len);
    }
    buf_release(&line);
    if (event == PROCESS_END) {
        int code = process_finish(&p, SHELL_GRACE_S);
        return code ? gate_fail(err, GATE_USAGE, "'%.200s' ended with %d: %.400s", command, code,
                                process_last_words(&p))
                    : GATE_OK;
    }
    process_kill(&p, how, sizeof how);
    process_end_orphans();
    if (event == PROCESS_INTERRUPTED)
        return gate_fail(err, GATE_ENVIRONMENT, "interrupted");
    return gate_fail(err, GATE_USAGE, "'%.200s' %s and was killed", command,
                     event == PROCESS_FLOOD ? "printed too much"
                                            : "did not end in its time (--patience)");
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

/* Builds it where it is no file, and copies it into the cache, so that the next build cannot change
 * it. */
static enum gate_status make(struct hunt *h, struct candidate *c, struct gate_error *err)
{
    const struct run_request *r = &h->request->run;
    char library[PATHS_MAX];
    if (c->is_file)
        return artifact_put(c->name, c->sha256, err);
    if (snprintf(library, sizeof library, "%s%s", r->built ? config_folder() : "",
                 r->built ? r->built : r->target.library) >= PATHS_MAX)
        return gate_fail(err, GATE_USAGE, "the path of the library is too long");
    for (size_t k = 0; k < h->n_parameters; k++)
        setenv(h->parameters[k].name, h->parameters[k].value[c->choice[k]], 1);
    unlink(library); /* one of another candidate must not be taken for this one's */
    struct buf line;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    enum gate_status status = hunt_ask_shell(h, r->build, config_folder(), &line, err);
    buf_release(&line);
    return status ? status : artifact_put(library, c->sha256, err);
}

/* A candidate that has no library, or another's machine code, has its reason then. */
static enum gate_status prepare(struct hunt *h, struct candidate *c, struct gate_error *err)
{
    struct gate_error why = {0};
    c->is_prepared = true;
    if (!find_kept(h, c)) {
        enum gate_status status = make(h, c, &why);
        if (status && status != GATE_USAGE && status != GATE_IO)
            return gate_fail(err, status, "%s", why.message);
        if (status) {
            utf8_print(c->reason, sizeof c->reason, "%.299s", why.message);
            return GATE_OK;
        }
        TRY(hunt_keep_line(h, hunt_new_line("library", c->sha256, c->name), err));
    }
    TRY(artifact_get(c->sha256, c->path, err));
    if (machine_code_of_file(c->path, c->code, NULL))
        snprintf(c->code, sizeof c->code, "%s", c->sha256);
    const char *twin = strcmp(c->code, h->against_code) ? NULL : "the library to beat";
    for (size_t i = 0; i < h->race.n && !twin; i++)
        if (&h->candidates[i] != c && !strcmp(h->candidates[i].code, c->code))
            twin = h->candidates[i].name;
    if (twin)
        utf8_print(c->reason, sizeof c->reason, "its machine code is that of %.200s", twin);
    return GATE_OK;
}

/* ---- a run ---- */

/* By a `gate compare` of its own. GATE_ENVIRONMENT and others: no run came about, as on a busy
 * device. */
static enum gate_status compare(const struct hunt *h, const char *library, struct document *out,
                                struct gate_error *err)
{
    const struct run_request *r = &h->request->run;
    char gate[PATHS_MAX], report[PATHS_MAX + 8], percent[32], timeout[32], budget[32], pause[32],
        wait[32];
    const char *const values[][2] = {{"--filter", h->request->case_id},
                                     {"--report", report},
                                     {"--threshold", percent},
                                     {"--timeout", timeout},
                                     {"--budget", budget},
                                     {"--pause", pause},
                                     {"--wait", wait},
                                     {"--device", r->target.device},
                                     {"--suite", r->suite}, /* NULL: left to `gate compare` */
                                     {"--worker", r->target.worker}};
    const char *argv[32] = {gate,          "compare", library, h->against.path, "--no-ceilings",
                            "--no-vendors"};
    size_t n = 6;
    struct process p = {0};
    struct buf line;
    snprintf(report, sizeof report, "json=%s", h->report);
    snprintf(percent, sizeof percent, "%.6g%%", 100 * r->policy.threshold);
    snprintf(timeout, sizeof timeout, "%.6g", r->target.timeout_s);
    snprintf(budget, sizeof budget, "%.6g", r->policy.budget_ms);
    snprintf(pause, sizeof pause, "%.6g", r->policy.pause_s);
    snprintf(wait, sizeof wait, "%.6g", r->wait_s);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][1]) {
            argv[n++] = values[i][0];
            argv[n++] = values[i][1];
        }
    TRY(paths_beside("gate", gate, err));
    if (unlink(h->report) && errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot remove '%s': %s", h->report, strerror(errno));
    TRY(process_start(&p, (char *const *)argv, err));
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (process_read_line(&p, COMPARE_PATIENCE_S, &line) == PROCESS_LINE)
        buf_clear(&line);
    buf_release(&line);
    int code = process_finish(&p, COMPARE_PATIENCE_S);
    /* One that measured nothing leaves a report that is no run. */
    if (!document_load(h->report, out, NULL)) {
        if (out->n_cases == 1)
            return GATE_OK;
        document_release(out);
    }
    return gate_fail(err, code > 0 ? (enum gate_status)code : GATE_INTERNAL,
                     "the measurement of %.200s ended with %d: %.500s", library, code,
                     process_last_words(&p));
}

static void read_comparison(const struct document_case *c, struct race_run *out)
{
    enum verdict v = (enum verdict)c->verdict;
    *out = (struct race_run){.state = RACER_FAILED};
    for (size_t i = 0; i < c->n_processes && out->n < RACE_RUN_VALUES; i++)
        if (c->mode == MODE_PAIRED && !isnan(c->processes[i].log_ratio)) {
            out->fresh[out->n] = c->processes[i].log_ratio_fresh;
            out->d[out->n++] = c->processes[i].log_ratio;
        }
    if (v == VERDICT_WRONG)
        out->state = RACER_WRONG;
    else if (v != VERDICT_ENVIRONMENT && out->n)
        out->state = v == VERDICT_REGRESSION ? RACER_BEATEN : RACER_IN;
}

/* A library that no worker can load is wrong as well; what spoils a run is tried again. */
static enum gate_status run_once(struct hunt *h, struct candidate *c, struct race_run *out,
                                 char uuid[40], struct gate_error *err)
{
    *out = (struct race_run){.state = RACER_FAILED};
    for (int try = 0; try < TRIES_MAX && out->state == RACER_FAILED; try++) {
        struct document d;
        enum gate_status status = compare(h, c->path, &d, err);
        if (status == GATE_WRONG) {
            utf8_print(c->reason, sizeof c->reason, "%.299s", err->message);
            out->state = RACER_WRONG;
            return GATE_OK;
        }
        if (status)
            return status;
        read_comparison(&d.cases[0], out);
        utf8_print(c->reason, sizeof c->reason, "%.299s", d.cases[0].reason);
        snprintf(uuid, 40, "%s", d.uuid);
        document_release(&d);
    }
    return GATE_OK;
}

/* JSON has no NaN. */
static cJSON *new_numbers(const double *x, size_t n)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isnan(x[i]) ? cJSON_CreateNull() : cJSON_CreateNumber(x[i]));
    return list;
}

static void read_run(const cJSON *line, const char *kind, struct candidate *c, struct race_run *out)
{
    const cJSON *d, *fresh = json_member(line, "log_ratio_fresh");
    *out = (struct race_run){.state = RACER_FAILED};
    for (int k = RACER_IN; k <= RACER_FAILED; k++)
        if (!strcmp(json_string(line, kind, ""), hunt_states[k]))
            out->state = (enum racer_state)k;
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
                     run->state == RACER_IN ? "" : hunt_states[run->state]);
    else
        command_note(&command_search, "%s: %s: %s", c->name, hunt_states[run->state], c->reason);
}

/* The runs of a candidate are kept by this: a file that has changed is another candidate. */
static const char *key_of(const struct candidate *c)
{
    return c->is_file ? c->sha256 : c->name;
}

enum gate_status hunt_measure(void *context, size_t i, size_t confirmation, struct race_run *out,
                              struct gate_error *err)
{
    struct hunt *h = context;
    struct candidate *c = &h->candidates[i];
    char uuid[40] = "";
    if (!c->is_prepared)
        TRY(prepare(h, c, err));
    if (!c->n_runs && c->reason[0]) {
        *out = (struct race_run){.state = c->code[0] ? RACER_BEATEN : RACER_FAILED};
        print_run(c, out);
        return GATE_OK;
    }
    h->n_runs++;
    const char *kind = confirmation ? "confirmed" : "state";
    size_t *n_runs = confirmation ? &c->n_confirming : &c->n_runs;
    const cJSON *known = hunt_find_line(h, kind, key_of(c), (*n_runs)++);
    if (known) {
        h->n_earlier++;
        read_run(known, kind, c, out);
        return GATE_OK;
    }
    TRY(run_once(h, c, out, uuid, err));
    print_run(c, out);
    cJSON *line = hunt_new_line(kind, hunt_states[out->state], key_of(c));
    if (confirmation)
        cJSON_AddNumberToObject(line, "confirmation", (double)confirmation);
    cJSON_AddItemToObject(line, "log_ratio", new_numbers(out->d, out->n));
    cJSON_AddItemToObject(line, "log_ratio_fresh", new_numbers(out->fresh, out->n));
    cJSON_AddStringToObject(line, "reason", c->reason);
    cJSON_AddStringToObject(line, "run", uuid);
    return hunt_keep_line(h, line, err);
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
