/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.c: which candidates there are; builds them, measures each against the library to beat,
 * and lets them race.
 */
#include "gate/search/hunt.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/cli/commands.h"
#include "gate/cli/config.h"
#include "gate/library/machine_code.h"

#define TRIES_MAX 3  /* of a run that the machine spoiled */
#define WORDS_MAX 40 /* of a comparison */
#define SHELL_OUTPUT_MAX ((size_t)64 << 20)
#define SHELL_GRACE_S 10.0
#define FAULTS_MAX 5 /* proposals in a row that bring nothing: then the race is over */
#define SEEN_MAX ((size_t)16 << 20)

const char *const hunt_states[RACER_FAILED + 1] = {[RACER_IN] = "in",
                                                   [RACER_BEATEN] = "beaten",
                                                   [RACER_WRONG] = "wrong",
                                                   [RACER_FAILED] = "failed"};

/* ---- parameters ---- */

static void add_value(struct candidate *c, const struct parameter *p, size_t k)
{
    utf8_join(c->name, sizeof c->name, " ", "%s=%s", p->name, p->value[k]);
}

/* Of {"TILE": 64, "STAGES": "3"}: each parameter and no other, each with a value that it may have.
 */
static bool read_choice(const struct hunt *h, const cJSON *object, struct candidate *c)
{
    if (!cJSON_IsObject(object) || (size_t)cJSON_GetArraySize(object) != h->n_parameters)
        return false;
    for (const struct parameter *p = h->parameters; p < h->parameters + h->n_parameters; p++) {
        const cJSON *item = json_member(object, p->name);
        char number[PARAMETER_CHARACTERS_MAX + 1] = "";
        const char *text = cJSON_IsString(item) ? item->valuestring : number;
        size_t k = 0;
        if (cJSON_IsNumber(item))
            snprintf(number, sizeof number, "%.15g", item->valuedouble);
        while (k < p->n && strcmp(p->value[k], text) != 0)
            k++;
        if (k == p->n)
            return false;
        add_value(c, p, k);
    }
    return h->n_parameters > 0;
}

/* ---- a candidate's library ---- */

/*
 * Runs a command of the user by sh in `folder`, with nothing on its standard input, and puts the
 * first line that it prints into `first`, which stays empty where it prints none. It is killed with
 * all its children when it takes too long (--patience). GATE_USAGE, with why: it failed, hung or
 * flooded. GATE_ENVIRONMENT: it cannot be started, or this program is to end.
 */
static enum gate_status ask_shell(const struct hunt *h, const char *command, const char *folder,
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
    size_t total = 0;
    char how[96] = "";
    enum process_event event;
    buf_clear(first);
    process_adopt_orphans();
    TRY(process_start_scrubbed(&p, argv, err));
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    while ((event = process_read_line(&p, deadline - clock_s(), &line)) == PROCESS_LINE) {
        if (!total)
            buf_append(first, line.data, line.len);
        if ((total += line.len + 1) > SHELL_OUTPUT_MAX) {
            event = PROCESS_FLOOD;
            break;
        }
        buf_clear(&line);
    }
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
 * it. A candidate that has no library, or another's machine code, has its reason then. */
static enum gate_status prepare(struct hunt *h, struct candidate *c, struct gate_error *err)
{
    const struct run_request *r = &h->request->run;
    struct gate_error why = {0};
    char library[PATHS_MAX];
    c->is_prepared = true;
    snprintf(library, sizeof library, "%s", c->name);
    if (!c->is_file && snprintf(library, sizeof library, "%s%s", r->built ? config_folder() : "",
                                r->built ? r->built : r->target.library) >= PATHS_MAX)
        return gate_fail(err, GATE_USAGE, "the path of the library is too long");
    if (!find_kept(h, c)) {
        RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
        RELEASED_BY(free_at)
        char *build = c->is_file ? NULL : xasprintf("export %s; %s", c->name, r->build);
        if (!c->is_file)
            unlink(library); /* one of another candidate must not be taken for this one's */
        enum gate_status status =
            c->is_file ? GATE_OK : ask_shell(h, build, config_folder(), &line, &why);
        if (!status)
            status = artifact_put(library, c->sha256, &why);
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

/* Options of this call that the comparison gets too. */
static const char *const passed[] = {"suite",  "threshold", "timeout", "budget",
                                     "worker", "pause",     "wait",    NULL};

/* By a `gate compare` of its own. GATE_ENVIRONMENT and others: no run came about, as on a busy
 * device. */
static enum gate_status compare(const struct hunt *h, const char *library, struct document *out,
                                struct gate_error *err)
{
    char gate[PATHS_MAX], report[PATHS_MAX + 8], names[OPTIONS_MAX][OPTION_WORD_MAX];
    struct process p = {0};
    TRY(paths_installed("bin", "gate", gate, err));
    if (unlink(h->report) && errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot remove '%s': %s", h->report, strerror(errno));
    snprintf(report, sizeof report, "json=%s", h->report);
    const char *argv[WORDS_MAX] = {gate,
                                   "compare",
                                   library,
                                   h->against.path,
                                   "--no-ceilings",
                                   "--filter",
                                   h->request->case_id,
                                   "--device",
                                   h->request->run.target.device,
                                   "--report",
                                   report,
                                   "--no-vendors"};
    options_repeat(h->given, passed, false, names, argv + 12, WORDS_MAX - 13);
    RELEASED_BY(free_at) char *what = xasprintf("the measurement of %.200s", library);
    TRY(process_start(&p, (char *const *)argv, err));
    TRY(run_reports_await(&p, what, h->report, out, err));
    if (out->n_cases == 1)
        return GATE_OK;
    gate_fail(err, out->exit_code ? (enum gate_status)out->exit_code : GATE_USAGE,
              "%s has %zu cases of '%s', not 1", what, out->n_cases, h->request->case_id);
    document_release(out);
    return err->status;
}

/* The runs of a candidate are kept by this: a file that has changed is another candidate. */
static const char *key_of(const struct candidate *c)
{
    return c->is_file ? c->sha256 : c->name;
}

/* As a line of the journal. A library that no worker can load is wrong as well; what spoils a run
 * is tried again. */
static enum gate_status run_once(const struct hunt *h, const struct candidate *c, const char *kind,
                                 cJSON **out, struct gate_error *err)
{
    for (int try = 1;; try++) {
        RELEASED_BY(document_release) struct document d = {0};
        enum gate_status status = compare(h, c->path, &d, err);
        if (status == GATE_WRONG) {
            *out = hunt_new_line(kind, hunt_states[RACER_WRONG], key_of(c));
            cJSON_AddStringToObject(*out, "reason", err->message);
            return GATE_OK;
        }
        if (status)
            return status;
        const struct document_case *found = &d.cases[0];
        cJSON *ratios = cJSON_CreateArray(), *fresh = cJSON_CreateArray();
        for (size_t i = 0; found->mode == MODE_PAIRED && i < found->n_processes; i++) {
            double ratio = found->processes[i].log_ratio, f = found->processes[i].log_ratio_fresh;
            if (isnan(ratio))
                continue;
            cJSON_AddItemToArray(ratios, cJSON_CreateNumber(ratio));
            cJSON_AddItemToArray(fresh, isnan(f) ? cJSON_CreateNull() : cJSON_CreateNumber(f));
        }
        enum racer_state state = RACER_FAILED;
        if (found->verdict == VERDICT_WRONG)
            state = RACER_WRONG;
        else if (found->verdict != VERDICT_ENVIRONMENT && cJSON_GetArraySize(ratios))
            state = found->verdict == VERDICT_REGRESSION ? RACER_BEATEN : RACER_IN;
        *out = hunt_new_line(kind, hunt_states[state], key_of(c));
        cJSON_AddItemToObject(*out, "log_ratio", ratios);
        cJSON_AddItemToObject(*out, "log_ratio_fresh", fresh); /* JSON has no NaN: null */
        cJSON_AddStringToObject(*out, "reason", found->reason);
        if (state != RACER_FAILED || try == TRIES_MAX)
            return GATE_OK;
        cJSON_Delete(*out);
    }
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
    utf8_print(c->reason, sizeof c->reason, "%.299s", json_string(line, "reason", ""));
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

/* For struct race: measures the i-th candidate once, or takes the run from the journal. */
static enum gate_status measure(void *context, size_t i, size_t confirmation, struct race_run *out,
                                struct gate_error *err)
{
    struct hunt *h = context;
    struct candidate *c = &h->candidates[i];
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
    const cJSON *line = hunt_find_line(h, kind, key_of(c), (*n_runs)++);
    if (line) {
        h->n_earlier++;
        read_run(line, kind, c, out);
        return GATE_OK;
    }
    cJSON *new;
    TRY(run_once(h, c, kind, &new, err));
    if (confirmation)
        cJSON_AddNumberToObject(new, "confirmation", (double)confirmation);
    read_run(new, kind, c, out);
    print_run(c, out);
    return hunt_keep_line(h, new, err);
}

/* For struct race: is there time, and are there runs left? */
static bool goes_on(void *context)
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

/* ---- candidates that a command proposes ---- */

/* The next line, of the command or of an earlier call that had it. */
static enum gate_status next_line(struct hunt *h, struct buf *line, struct gate_error *err)
{
    const cJSON *known = hunt_find_line(h, "proposal", "", h->n_proposals);
    if (known) {
        h->n_proposals++;
        buf_puts(line, json_string(known, "proposal", ""));
        return GATE_OK;
    }
    RELEASED_BY(buf_release) struct buf text = buf_of(SEEN_MAX);
    RELEASED_BY(json_delete_at) cJSON *seen = hunt_describe(h);
    json_write(seen, true, &text);
    if (text.failed)
        return gate_fail(err, GATE_INTERNAL, "the results so far are too large");
    TRY(file_write_atomic(h->seen, text.data, text.len, err));
    setenv(SEARCH_SEEN, h->seen, 1);
    TRY(ask_shell(h, h->request->propose, "", line, err));
    if (line->len)
        TRY(hunt_keep_line(h, hunt_new_line("proposal", line->data, ""), err));
    h->n_proposals++;
    return GATE_OK;
}

/* False: no candidate, with why. */
static bool read_proposal(struct hunt *h, const struct buf *line, struct gate_error *why)
{
    struct candidate *c = &h->candidates[h->race.n];
    RELEASED_BY(json_delete_at) cJSON *o = NULL;
    *c = (struct candidate){.name = ""};
    if (json_parse("the proposal", line->data, line->len, GATE_USAGE, &o, why))
        return false;
    const char *library = json_string(o, "library", "");
    c->is_file = library[0] && strlen(library) < sizeof c->name;
    if (c->is_file)
        snprintf(c->name, sizeof c->name, "%s", library);
    else if (!read_choice(h, json_member(o, "parameters"), c))
        return !gate_fail(why, GATE_USAGE,
                          "it has neither a \"library\" nor \"parameters\" with values that "
                          "--parameter allows");
    for (size_t i = 0; i < h->race.n; i++)
        if (!strcmp(h->candidates[i].name, c->name))
            return !gate_fail(why, GATE_USAGE, "'%.200s' was proposed before", c->name);
    return true;
}

static enum gate_status race_proposals(struct hunt *h, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    int faults = 0;
    while (faults < FAULTS_MAX && h->race.n < CANDIDATES_MAX && goes_on(h)) {
        struct gate_error why = {0};
        buf_clear(&line);
        enum gate_status status = next_line(h, &line, &why);
        if (status && status != GATE_USAGE)
            return gate_fail(err, status, "%s", why.message);
        if (!status && !line.len)
            return GATE_OK;
        if (status || !read_proposal(h, &line, &why)) {
            command_note(&command_search, "ignored a proposal: %s", why.message);
            faults++;
            continue;
        }
        size_t i = h->race.n++;
        TRY(race_look(&h->race, i, err));
        faults = h->race.racers[i].n ? 0 : faults + 1;
    }
    if (faults == FAULTS_MAX)
        command_note(&command_search, "%d proposals in a row were unusable: the race ends",
                     FAULTS_MAX);
    return GATE_OK;
}

/* ---- candidates that are known before ---- */

static enum gate_status list_combinations(struct hunt *h, struct gate_error *err)
{
    size_t n = 1;
    for (size_t k = 0; k < h->n_parameters; k++)
        if ((n *= h->parameters[k].n) > CANDIDATES_MAX)
            return gate_fail(err, GATE_USAGE,
                             "there are over %d combinations: use fewer values, or --propose",
                             CANDIDATES_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t each = n; /* candidates in a row that have the same value */
        for (size_t k = 0; k < h->n_parameters; k++) {
            each /= h->parameters[k].n;
            add_value(&h->candidates[i], &h->parameters[k], i / each % h->parameters[k].n);
        }
    }
    h->race.n = n;
    return GATE_OK;
}

static int is_library(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot > entry->d_name && (!strcmp(dot, ".so") || !strcmp(dot, ".kgb"));
}

static enum gate_status list_folder(struct hunt *h, struct gate_error *err)
{
    struct dirent **entries;
    const char *folder = h->request->from;
    int n = scandir(folder, &entries, is_library, alphasort);
    if (n < 0)
        return gate_fail(err, GATE_IO, "cannot read the folder '%.300s': %s", folder,
                         strerror(errno));
    for (int i = 0; i < n; i++) {
        if (i < CANDIDATES_MAX) {
            struct candidate *c = &h->candidates[h->race.n++];
            c->is_file = true;
            snprintf(c->name, sizeof c->name, "%.3000s/%s", folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    if (n == 0)
        return gate_fail(err, GATE_USAGE, "the folder '%.300s' contains no *.so and no *.kgb",
                         folder);
    return n <= CANDIDATES_MAX
               ? GATE_OK
               : gate_fail(err, GATE_USAGE, "'%.300s' has %d libraries, more than the limit of %d",
                           folder, n, CANDIDATES_MAX);
}

/* ---- the search ---- */

enum gate_status hunt_race(struct hunt *h, uint64_t seed, struct race_end *out,
                           struct gate_error *err)
{
    struct race *r = &h->race;
    const cJSON *line;
    *r = (struct race){.rules = {h->request->gain, h->request->risk},
                       .racers = xcalloc(CANDIDATES_MAX, sizeof *r->racers),
                       .measure = measure,
                       .goes_on = goes_on,
                       .context = h};
    if (h->request->propose) {
        TRY(race_proposals(h, err));
    } else {
        size_t order[CANDIDATES_MAX];
        TRY(h->request->from ? list_folder(h, err) : list_combinations(h, err));
        /* The order is drawn, and the same when the search goes on. */
        for (size_t i = 0; i < r->n; i++)
            order[i] = i;
        for (size_t i = r->n; i > 1; i--) {
            size_t k = seed_at(seed, i) % i, was = order[k];
            order[k] = order[i - 1];
            order[i - 1] = was;
        }
        TRY(race_halve(r, order, err));
    }
    /* The race is over; now it is told what was confirmed before and after its last run. */
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
    return race_confirm(r, out, err);
}
