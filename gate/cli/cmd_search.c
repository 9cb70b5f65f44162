/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_search.c: gate search. */
#include "gate/cli/commands.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/journal.h"
#include "gate/base/json.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/term.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/revision.h"
#include "gate/bisect/measure.h"
#include "gate/cli/config.h"
#include "gate/cli/run_request.h"
#include "gate/library/machine_code.h"
#include "gate/search/parameters.h"
#include "gate/search/race.h"
#include "gate/search/shell.h"

#define TRIES_MAX 3  /* of a run that the machine spoiled */
#define FAULTS_MAX 5 /* proposals in a row that bring nothing: then the race is over */
#define CANDIDATES_MAX COMBINATIONS_MAX
#define TEXT_MAX ((size_t)16 << 20)
#define SEEN "SEARCH_SEEN"

struct search_request {
    struct run_request run;
    const char *case_id, *against, *from, *propose, *strategy;
    struct option_list parameters;
    double gain, risk, max_time_s, patience_s;
    int64_t max_runs;
    bool restart;
};

#define AT(field) .at = offsetof(struct search_request, field)

static const struct option_def options[] = {
    {.name = "case", .value = "ID", .help = "the case", .type = OPTION_TEXT, AT(case_id)},
    {.name = "against",
     .value = "FILE|COMMIT",
     .help = "the library to beat",
     .type = OPTION_TEXT,
     AT(against),
     .fallback = "the one of --library"},
    {.name = "from",
     .value = "DIR",
     .help = "the candidates: each *.so in this folder",
     .type = OPTION_TEXT,
     AT(from)},
    {.name = "parameter",
     .value = "NAME=A,B,..|NAME=FROM..TO",
     .help = "a variable of the environment that the build command reads, and its values; the "
             "candidates are all combinations; repeatable",
     .type = OPTION_LIST,
     AT(parameters)},
    {.name = "propose",
     .value = "COMMAND",
     .help = "shell command that prints the next candidate as a line of JSON, {\"library\": "
             "\"FILE\"} or {\"parameters\": {\"NAME\": VALUE}}, or nothing to end; $" SEEN
             " is a file with what was seen",
     .type = OPTION_TEXT,
     AT(propose)},
    {.name = "strategy",
     .value = "halving|random",
     .help = "measure the faster half again until one is left, or each once",
     .type = OPTION_TEXT,
     AT(strategy),
     .fallback = "halving"},
    {.name = "gain",
     .value = "PERCENT",
     .help = "what a winner must gain",
     .type = OPTION_PERCENT,
     AT(gain),
     .fallback = "1%"},
    {.name = "risk",
     .value = "PERCENT",
     .help = "chance that a search of unchanged candidates finds a winner",
     .type = OPTION_PERCENT,
     AT(risk),
     .fallback = "1%"},
    {.name = "max-runs",
     .value = "N",
     .help = "runs of the race; the confirmation comes on top",
     .type = OPTION_INTEGER,
     AT(max_runs),
     .least = 1,
     .most = 1e6,
     .fallback = "none"},
    {.name = "max-time",
     .value = "SECONDS",
     .help = "time of the race in this call",
     .type = OPTION_NUMBER,
     AT(max_time_s),
     .least = 0.001,
     .most = 1e7,
     .fallback = "none"},
    {.name = "patience",
     .value = "SECONDS",
     .help = "for a build and for a proposal",
     .type = OPTION_NUMBER,
     AT(patience_s),
     .least = 0.1,
     .most = 86400,
     .fallback = "900"},
    {.name = "pause",
     .value = "SECONDS",
     .help = "before a suspicion is confirmed",
     .type = OPTION_NUMBER,
     AT(run.policy.pause_s),
     .most = 3600,
     .fallback = "5"},
    {.name = "restart",
     .help = "forget what an earlier call found",
     .type = OPTION_FLAG,
     AT(restart)},
    {0},
};

const struct command command_search = {
    .name = "search",
    .operands = "--case ID --from DIR\n--case ID --parameter NAME=VALUES... --build COMMAND\n"
                "--case ID --propose COMMAND",
    .summary = "find the fastest of many libraries, or that none is faster",
    .about = "Verifies each candidate and measures it beside the library to beat, as 'gate run' "
             "does. Those that cannot gain what is asked for go out at once. The fastest is "
             "measured again in fresh processes with fresh seeds, and these alone decide: the "
             "risk that the winner is luck holds for the whole search. No baseline is moved: the "
             "answer has the 'gate run --ratchet' that does so.\n"
             "\n"
             "What is found is kept in the cache: the same command goes on after an interruption. "
             "A build command runs in this folder once for each candidate, must build anew when "
             "a parameter changes, and is killed when it hangs.\n",
    .groups = {{options, 0},
               {request_options, offsetof(struct search_request, run)},
               {request_measure_options, offsetof(struct search_request, run)},
               {request_library_options, offsetof(struct search_request, run)},
               {request_build_options, offsetof(struct search_request, run)}},
    .ending = "Exit codes: 0 there is a winner, 3 there is none; otherwise as 'gate run'.\n",
    .main = cmd_search,
};

struct candidate {
    char name[PATHS_MAX]; /* its parameters, or its file */
    size_t choice[PARAMETERS_MAX];
    bool is_file, is_prepared;
    char path[PATHS_MAX]; /* in the cache */
    char code[65], reason[300];
    size_t n_runs;
};

struct hunt {
    const struct search_request *request;
    struct parameters parameters;
    struct revision against;
    char against_code[65], folder[PATHS_MAX], seen[PATHS_MAX];
    struct measure_options how;
    struct journal journal;
    cJSON *found; /* lines of the journal, an array */
    struct candidate *candidates;
    struct racer *racers;
    struct race race;
    size_t n_runs, n_proposals;
    double deadline;
};

/* ---- what was found before ---- */

static void keep_line(void *context, const cJSON *line)
{
    cJSON_AddItemToArray(context, cJSON_Duplicate(line, true));
}

/* The k-th line of a kind that is of this candidate; NULL: it is not there yet. */
static const cJSON *find_line(const struct hunt *h, const char *kind, const char *name, size_t k)
{
    const cJSON *line;
    cJSON_ArrayForEach (line, h->found) {
        if (json_member(line, kind) && !strcmp(json_string(line, "name", ""), name) && !k--)
            return line;
    }
    return NULL;
}

static cJSON *new_line(const char *kind, const char *value, const char *name)
{
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "name", name);
    cJSON_AddStringToObject(line, kind, value);
    return line;
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
static enum gate_status make(struct hunt *h, struct candidate *c, char sha256[65],
                             struct gate_error *err)
{
    char library[PATHS_MAX];
    enum gate_status status = GATE_OK;
    if (c->is_file)
        snprintf(library, sizeof library, "%s", c->name);
    else
        status = build(h, c, library, err);
    if (!status)
        status = artifact_put(library, sha256, err);
    return status;
}

static enum gate_status open_library(struct candidate *c, const char *sha256,
                                     struct gate_error *err)
{
    enum gate_status status = artifact_get(sha256, c->path, err);
    if (!status && machine_code_of_file(c->path, c->code, NULL))
        snprintf(c->code, sizeof c->code, "%s", sha256);
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
    const cJSON *line = find_line(h, "library", c->name, 0);
    char sha256[65] = "";
    struct gate_error why = {0};
    enum gate_status status;
    c->is_prepared = true;
    if (!line || artifact_get(json_string(line, "library", ""), c->path, NULL)) {
        status = make(h, c, sha256, &why);
        if (status && status != GATE_USAGE && status != GATE_IO)
            return gate_fail(err, status, "%s", why.message);
        if (status) {
            snprintf(c->reason, sizeof c->reason, "%.299s", why.message);
            return GATE_OK;
        }
        status = journal_append(&h->journal, new_line("library", sha256, c->name), err);
    } else {
        snprintf(sha256, sizeof sha256, "%s", json_string(line, "library", ""));
        status = GATE_OK;
    }
    if (!status)
        status = open_library(c, sha256, err);
    const char *twin = status ? NULL : find_twin(h, c);
    if (twin)
        snprintf(c->reason, sizeof c->reason, "its machine code is that of %.200s", twin);
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

/* A library that no worker can load is wrong as well; what spoils a run is tried again. */
static enum gate_status run_once(struct hunt *h, const struct candidate *c, struct race_run *out,
                                 struct comparison *m, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    *out = (struct race_run){.state = RACER_FAILED};
    for (int try = 0; try < TRIES_MAX && !status && out->state == RACER_FAILED; try++) {
        *m = (struct comparison){0};
        status = measure_pair(&h->how, c->path, NULL, h->against.path,
                              h->request->run.policy.threshold, m, err);
        if (status == GATE_WRONG) {
            snprintf(m->reason, sizeof m->reason, "%.299s", err->message);
            out->state = RACER_WRONG;
            return GATE_OK;
        }
        out->state = state_of(m);
    }
    out->n = m->n_log_ratios < RACE_RUN_VALUES ? m->n_log_ratios : RACE_RUN_VALUES;
    memcpy(out->d, m->log_ratio, out->n * sizeof *out->d);
    return status;
}

static enum gate_status keep_run(struct hunt *h, const struct candidate *c,
                                 const struct race_run *run, const struct comparison *m,
                                 struct gate_error *err)
{
    cJSON *line = new_line("state", states[run->state], c->name);
    cJSON_AddItemToObject(line, "log_ratio", cJSON_CreateDoubleArray(run->d, (int)run->n));
    cJSON_AddStringToObject(line, "reason", m->reason);
    cJSON_AddStringToObject(line, "run", m->run);
    return journal_append(&h->journal, line, err);
}

static void read_run(const cJSON *line, struct candidate *c, struct race_run *out)
{
    const cJSON *d;
    *out = (struct race_run){.state = RACER_FAILED};
    for (int k = RACER_IN; k <= RACER_FAILED; k++)
        if (!strcmp(json_string(line, "state", ""), states[k]))
            out->state = (enum racer_state)k;
    cJSON_ArrayForEach (d, json_member(line, "log_ratio")) {
        if (cJSON_IsNumber(d) && out->n < RACE_RUN_VALUES)
            out->d[out->n++] = d->valuedouble;
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

static enum gate_status measure(void *context, size_t i, struct race_run *out,
                                struct gate_error *err)
{
    struct hunt *h = context;
    struct candidate *c = &h->candidates[i];
    struct comparison m = {0};
    enum gate_status status = c->is_prepared ? GATE_OK : prepare(h, c, err);
    if (status)
        return status;
    if (!c->n_runs && c->reason[0]) {
        *out = (struct race_run){.state = c->code[0] ? RACER_BEATEN : RACER_FAILED};
        print_run(c, out);
        return GATE_OK;
    }
    h->n_runs++;
    const cJSON *line = find_line(h, "state", c->name, c->n_runs++);
    if (line) {
        read_run(line, c, out);
        return GATE_OK;
    }
    status = run_once(h, c, out, &m, err);
    if (status)
        return status;
    snprintf(c->reason, sizeof c->reason, "%.299s", m.reason);
    print_run(c, out);
    return keep_run(h, c, out, &m, err);
}

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

/* ---- what was seen ---- */

static void put_candidate(const struct hunt *h, size_t i, cJSON *to)
{
    const struct candidate *c = &h->candidates[i];
    const struct racer *racer = &h->racers[i];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(to, o);
    cJSON_AddStringToObject(o, c->is_file ? "library" : "name", c->name);
    if (!c->is_file) {
        cJSON *values = cJSON_AddObjectToObject(o, "parameters");
        for (size_t k = 0; k < h->parameters.n; k++)
            cJSON_AddStringToObject(values, h->parameters.list[k].name,
                                    h->parameters.list[k].value[c->choice[k]]);
    }
    cJSON_AddStringToObject(o, "state", racer->runs ? states[racer->state] : "not measured");
    cJSON_AddNumberToObject(o, "processes", (double)racer->n);
    if (racer->n)
        cJSON_AddNumberToObject(o, "ratio", exp(race_median(racer)));
    cJSON_AddStringToObject(o, "reason", c->reason);
}

static cJSON *describe_seen(const struct hunt *h)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "case", h->request->case_id);
    cJSON_AddNumberToObject(o, "gain", h->request->gain);
    cJSON *family = cJSON_AddObjectToObject(o, "parameters");
    for (size_t k = 0; k < h->parameters.n; k++) {
        const struct parameter *p = &h->parameters.list[k];
        cJSON *values = cJSON_AddArrayToObject(family, p->name);
        for (size_t i = 0; i < p->n; i++)
            cJSON_AddItemToArray(values, cJSON_CreateString(p->value[i]));
    }
    cJSON *list = cJSON_AddArrayToObject(o, "candidates");
    for (size_t i = 0; i < h->race.n; i++)
        put_candidate(h, i, list);
    return o;
}

/* ---- candidates that a command proposes ---- */

static enum gate_status ask(struct hunt *h, struct buf *line, struct gate_error *err)
{
    struct buf text;
    cJSON *seen = describe_seen(h);
    buf_init(&text, TEXT_MAX);
    json_write(seen, true, &text);
    cJSON_Delete(seen);
    enum gate_status status = text.failed
                                  ? gate_fail(err, GATE_INTERNAL, "what was seen is too large")
                                  : file_write_atomic(h->seen, text.data, text.len, err);
    buf_release(&text);
    if (status)
        return status;
    setenv(SEEN, h->seen, 1);
    return shell_ask(h->request->propose, "", h->request->patience_s, line, err);
}

/* The next line, of the command or of an earlier call that had it. */
static enum gate_status next_line(struct hunt *h, struct buf *line, struct gate_error *err)
{
    const cJSON *known = find_line(h, "proposal", "", h->n_proposals);
    enum gate_status status = GATE_OK;
    if (known) {
        buf_puts(line, json_string(known, "proposal", ""));
    } else {
        status = ask(h, line, err);
        if (!status && line->len)
            status = journal_append(&h->journal, new_line("proposal", line->data, ""), err);
    }
    h->n_proposals += !status;
    return status;
}

/* False: no candidate, with why. */
static bool read_proposal(struct hunt *h, const struct buf *line, struct gate_error *why)
{
    struct candidate *c = &h->candidates[h->race.n];
    cJSON *o = NULL;
    *c = (struct candidate){.is_file = true};
    if (json_parse("the proposal", line->data, line->len, GATE_USAGE, &o, why))
        return false;
    const char *library = json_string(o, "library", NULL);
    bool known = library && library[0] && strlen(library) < sizeof c->name;
    if (known) {
        snprintf(c->name, sizeof c->name, "%s", library);
    } else if (h->parameters.n &&
               parameters_read(&h->parameters, json_member(o, "parameters"), c->choice)) {
        c->is_file = false;
        parameters_text(&h->parameters, c->choice, c->name);
        known = true;
    } else {
        gate_fail(why, GATE_USAGE,
                  "it has neither a \"library\" nor \"parameters\" with values "
                  "that --parameter allows");
    }
    cJSON_Delete(o);
    for (size_t i = 0; known && i < h->race.n; i++)
        if (!strcmp(h->candidates[i].name, c->name)) {
            gate_fail(why, GATE_USAGE, "'%.200s' was proposed before", c->name);
            known = false;
        }
    return known;
}

static enum gate_status race_proposals(struct hunt *h, struct gate_error *err)
{
    struct buf line;
    enum gate_status status = GATE_OK;
    int faults = 0;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (!status && faults < FAULTS_MAX && h->race.n < CANDIDATES_MAX && goes_on(h)) {
        struct gate_error why = {0};
        buf_clear(&line);
        status = next_line(h, &line, &why);
        if (!status && !line.len)
            break;
        if (status == GATE_USAGE || (!status && !read_proposal(h, &line, &why))) {
            command_note(&command_search, "a proposal is left out: %s", why.message);
            status = GATE_OK;
            faults++;
            continue;
        }
        if (status) {
            gate_fail(err, status, "%s", why.message);
            break;
        }
        size_t i = h->race.n++;
        status = race_look(&h->race, i, err);
        faults = h->racers[i].n ? 0 : faults + 1;
    }
    if (faults == FAULTS_MAX)
        command_note(&command_search, "%d proposals in a row brought nothing: the race is over",
                     FAULTS_MAX);
    buf_release(&line);
    return status;
}

/* ---- candidates that are known before ---- */

static enum gate_status list_combinations(struct hunt *h, struct gate_error *err)
{
    size_t n = parameters_combinations(&h->parameters);
    if (n > CANDIDATES_MAX)
        return gate_fail(err, GATE_USAGE,
                         "there are over %d combinations: give fewer values, or --propose",
                         CANDIDATES_MAX);
    for (size_t i = 0; i < n; i++) {
        parameters_combination(&h->parameters, i, h->candidates[i].choice);
        parameters_text(&h->parameters, h->candidates[i].choice, h->candidates[i].name);
    }
    h->race.n = n;
    return GATE_OK;
}

static int is_library(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 3 && !strcmp(entry->d_name + n - 3, ".so");
}

static enum gate_status list_folder(struct hunt *h, struct gate_error *err)
{
    struct dirent **entries;
    const char *folder = h->request->from;
    int n = scandir(folder, &entries, is_library, alphasort);
    enum gate_status status = GATE_OK;
    if (n <= 0)
        status = gate_fail(err, GATE_USAGE, "no *.so is in the folder '%.300s'", folder);
    else if (n > CANDIDATES_MAX)
        status = gate_fail(err, GATE_USAGE, "'%.300s' has %d libraries; up to %d can be searched",
                           folder, n, CANDIDATES_MAX);
    for (int i = 0; i < n; i++) {
        if (!status) {
            struct candidate *c = &h->candidates[h->race.n++];
            c->is_file = true;
            snprintf(c->name, sizeof c->name, "%.3000s/%s", folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return status;
}

/* The order is drawn, and the same when the search goes on. */
static void shuffle(size_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t k = seed_at(seed, i) % i, was = order[k];
        order[k] = order[i - 1];
        order[i - 1] = was;
    }
}

static enum gate_status race_known(struct hunt *h, uint64_t seed, struct gate_error *err)
{
    size_t order[CANDIDATES_MAX];
    enum gate_status status = h->request->from ? list_folder(h, err) : list_combinations(h, err);
    if (status)
        return status;
    shuffle(order, h->race.n, seed);
    if (strcmp(h->request->strategy, "random") != 0)
        return race_halve(&h->race, order, err);
    for (size_t i = 0; i < h->race.n && !status && goes_on(h); i++)
        status = race_look(&h->race, order[i], err);
    return status;
}

/* ---- the answer ---- */

static void print_json(const struct hunt *h, const struct race_end *end)
{
    struct buf text;
    cJSON *o = describe_seen(h);
    cJSON_AddNumberToObject(o, "runs", (double)h->n_runs);
    cJSON_AddNumberToObject(o, "confirmations", (double)end->confirmations);
    if (end->won) {
        cJSON *w = cJSON_AddObjectToObject(o, "winner");
        cJSON_AddStringToObject(w, "name", h->candidates[end->winner].name);
        cJSON_AddStringToObject(w, "library", h->candidates[end->winner].path);
        cJSON_AddNumberToObject(w, "ratio", end->ratio.value);
        cJSON_AddNumberToObject(w, "processes", (double)end->processes);
        cJSON_AddNumberToObject(w, "risk", end->risk);
    } else {
        cJSON_AddNullToObject(o, "winner");
    }
    buf_init(&text, COMMAND_MAX_OUTPUT);
    json_write(o, true, &text);
    fputs(text.data ? text.data : "", stdout);
    buf_release(&text);
    cJSON_Delete(o);
}

static void print_text(const struct hunt *h, const struct race_end *end)
{
    size_t count[RACER_FAILED + 1] = {0}, n_measured = 0;
    struct buf safe;
    buf_init(&safe, 64 * 1024);
    for (size_t i = 0; i < h->race.n; i++)
        if (h->racers[i].runs) {
            n_measured++;
            count[h->racers[i].state]++;
        }
    if (end->won) {
        const struct candidate *c = &h->candidates[end->winner];
        term_puts(c->name, &safe);
        printf("%s: the winner is %s\n", h->request->case_id, safe.data ? safe.data : "");
        printf("    %+.2f %% of time (%+.2f to %+.2f) in the %zu processes of its confirmation\n",
               100 * (end->ratio.value - 1), 100 * (end->ratio.lo - 1), 100 * (end->ratio.hi - 1),
               end->processes);
        printf("    the risk that it gains less than %.2g %%, and is luck, is %.2g %% over the "
               "whole search\n",
               50 * h->request->gain, 100 * end->risk);
        printf("    its library is %s\n", c->path);
        printf("    it becomes the baseline by: gate run --library %s --ratchet\n", c->path);
    } else {
        printf("%s: no candidate gains %.2g %%, as far as was seen\n", h->request->case_id,
               100 * h->request->gain);
    }
    printf("%zu of %zu candidates, %zu runs: %zu wrong, %zu failed; %zu confirmed anew\n",
           n_measured, h->race.n, h->n_runs, count[RACER_WRONG], count[RACER_FAILED],
           end->confirmations);
    buf_release(&safe);
}

/* ---- the command ---- */

/* What a journal's lines hold for. */
static void describe(const struct hunt *h, struct buf *out)
{
    const struct search_request *r = h->request;
    const struct run_request *run = &r->run;
    buf_printf(out, "%s, device %s, suite %s, threshold %g, worker %s, against %s, ", r->case_id,
               run->target.device, run->suite ? run->suite : "-", run->policy.threshold,
               run->target.worker ? run->target.worker : "-", h->against.sha256);
    buf_printf(out, "from %s, propose %s, build %s, built %s, strategy %s, gain %g",
               r->from ? r->from : "-", r->propose ? r->propose : "-",
               run->build ? run->build : "-", run->built ? run->built : "-", r->strategy, r->gain);
    for (size_t i = 0; i < r->parameters.n; i++)
        buf_printf(out, ", %s", r->parameters.text[i]);
}

static enum gate_status open_journal(struct hunt *h, uint64_t *seed, struct gate_error *err)
{
    char path[PATHS_MAX];
    struct buf about;
    buf_init(&about, TEXT_MAX);
    describe(h, &about);
    enum gate_status status = artifact_cache_folder("search", h->folder, err);
    *seed = about.data ? seed_of_text(0, about.data) : 0;
    if (!status && (about.failed || strlen(h->folder) + 32 >= PATHS_MAX))
        status = gate_fail(err, GATE_ENVIRONMENT, "the path of the artifact cache is too long");
    if (!status) {
        snprintf(path, sizeof path, "%.4000s/%016" PRIx64 ".ndjson", h->folder, *seed);
        snprintf(h->seen, sizeof h->seen, "%.4000s/%016" PRIx64 ".seen", h->folder, *seed);
        snprintf(h->how.db, sizeof h->how.db, "%.4000s/%016" PRIx64 ".db", h->folder, *seed);
        snprintf(h->how.report, sizeof h->how.report, "%.4000s/%016" PRIx64 ".json", h->folder,
                 *seed);
        status = journal_open(path, about.data, h->request->restart, keep_line, h->found,
                              &h->journal, err);
    }
    buf_release(&about);
    return status;
}

/* Its copy in the cache is what is measured: the build makes another of its name. */
static enum gate_status open_against(struct hunt *h, struct gate_error *err)
{
    const struct search_request *r = h->request;
    char sha256[65];
    struct rebuild_recipe recipe =
        run_request_recipe(&r->run, !strcmp(r->run.target.device, "host"));
    enum gate_status status = revision_resolve(r->against ? r->against : r->run.target.library,
                                               &recipe, &h->against, err);
    if (!status)
        status = artifact_put(h->against.path, sha256, err);
    if (!status)
        status = artifact_get(sha256, h->against.path, err);
    if (!status && machine_code_of_file(h->against.path, h->against_code, NULL))
        snprintf(h->against_code, sizeof h->against_code, "%s", sha256);
    return status;
}

static int hunt(struct hunt *h, struct gate_error *err)
{
    struct race_end end = {0};
    uint64_t seed = 0;
    enum gate_status status = open_against(h, err);
    h->found = cJSON_CreateArray();
    h->candidates = calloc(CANDIDATES_MAX, sizeof *h->candidates);
    h->race.racers = h->racers = calloc(CANDIDATES_MAX, sizeof *h->racers);
    if (!status && (!h->found || !h->candidates || !h->racers))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (!status)
        status = open_journal(h, &seed, err);
    if (!status)
        status = h->request->propose ? race_proposals(h, err) : race_known(h, seed, err);
    if (!status)
        status = race_confirm(&h->race, &end, err);
    if (status)
        return command_failed(&command_search, err);
    if (h->request->run.json)
        print_json(h, &end);
    else
        print_text(h, &end);
    return end.won ? GATE_OK : GATE_NO_VERDICT;
}

static int check(const struct search_request *r)
{
    if (!r->case_id)
        return command_usage(&command_search, "--case ID is needed");
    if (r->run.filter || r->run.seed_text)
        return command_usage(&command_search, "--filter and --seed do not go with a search");
    if (!!r->from + !!r->propose + (r->parameters.n && !r->propose) != 1)
        return command_usage(&command_search,
                             "give one of --from DIR, --parameter and --propose COMMAND; "
                             "--parameter goes with --propose as well");
    if (r->parameters.n && (!r->run.build || !(r->run.built || r->run.target.library)))
        return command_usage(&command_search, "--parameter needs --build COMMAND and --built FILE, "
                                              "or both in gate.json");
    if (!r->against && !r->run.target.library)
        return command_usage(&command_search, "--against says which library is to be beaten");
    if (strcmp(r->strategy, "halving") != 0 && strcmp(r->strategy, "random") != 0)
        return command_usage(&command_search, "--strategy is halving or random");
    if (r->gain <= 0 || r->gain > 1 || r->risk <= 0 || r->risk > 0.5)
        return command_usage(&command_search,
                             "--gain is up to 100 %%, --risk up to 50 %%, and neither is 0");
    return GATE_OK;
}

int cmd_search(int argc, char **argv)
{
    struct search_request r = {
        .gain = 0.01, .risk = 0.01, .patience_s = 900, .strategy = "halving"};
    struct hunt h = {.request = &r, .journal.file = -1};
    struct target target = {0};
    struct gate_error err = {0};
    int code;
    run_request_init(&r.run);
    if (!options_read(&command_search, &r, 0, argc, argv, NULL, &code))
        return code;
    if ((code = check(&r)))
        return code;
    enum gate_status status = target_resolve(&r.run.target, &target, &err);
    for (size_t i = 0; i < r.parameters.n && !status; i++)
        status = parameters_add(&h.parameters, r.parameters.text[i], &err);
    if (status)
        return command_failed(&command_search, &err);
    r.run.target.device = target.device;
    h.race = (struct race){
        .rules = {r.gain, r.risk}, .measure = measure, .goes_on = goes_on, .context = &h};
    h.deadline = r.max_time_s > 0 ? clock_s() + r.max_time_s : INFINITY;
    h.how = (struct measure_options){.suite = r.run.suite,
                                     .device = target.device,
                                     .worker = r.run.target.worker,
                                     .case_id = r.case_id,
                                     .timeout_s = r.run.target.timeout_s,
                                     .budget_ms = r.run.policy.budget_ms,
                                     .pause_s = r.run.policy.pause_s,
                                     .wait_s = r.run.wait_s};
    code = hunt(&h, &err);
    journal_close(&h.journal);
    cJSON_Delete(h.found);
    free(h.candidates);
    free(h.racers);
    return code;
}
