/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the program gate-search, which `gate search` starts. It measures by `gate compare` alone.
 *
 * All measurements are kept in a journal, so that the same command continues an interrupted search:
 * a file with one JSON object per line, whose name is the hash of the aim of the search. A line
 * that was cut off by a crash is dropped.
 */
#include "gate/search/hunt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/seed.h"
#include "gate/base/term.h"
#include "gate/baseline/artifact.h"
#include "gate/cli/commands.h"
#include "gate/library/machine_code.h"

#define JOURNAL_MAX ((size_t)64 << 20)
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* ---- the journal ---- */

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

enum gate_status hunt_keep_line(struct hunt *h, cJSON *o, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    RELEASED_BY(buf_release) struct buf line = buf_of(LINE_MAX_BYTES);
    json_write(o, false, &line);
    cJSON_AddItemToArray(h->found, o);
    if (line.failed || write(h->journal, line.data, line.len) != (ssize_t)line.len ||
        fdatasync(h->journal))
        status = gate_fail(err, GATE_IO, "cannot write '%s': %s", h->journal_path, strerror(errno));
    return status;
}

/* Opens it and takes the lines of an earlier search. */
static enum gate_status open_journal(struct hunt *h, struct gate_error *err)
{
    size_t whole = 0; /* so many bytes of the file are whole lines */
    const char *end;
    h->journal = open(h->journal_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (h->journal < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", h->journal_path, strerror(errno));
    if (flock(h->journal, LOCK_EX | LOCK_NB))
        return gate_fail(err, GATE_ENVIRONMENT, "another gate is at this search (it holds '%s')",
                         h->journal_path);
    if (h->request->restart && ftruncate(h->journal, 0))
        return gate_fail(err, GATE_IO, "cannot empty '%s': %s", h->journal_path, strerror(errno));
    RELEASED_BY(buf_release) struct buf text = buf_of(JOURNAL_MAX);
    TRY(file_read_fd(h->journal, h->journal_path, &text, err));
    while ((end = memchr(text.data + whole, '\n', text.len - whole))) {
        cJSON *o = NULL;
        TRY(json_parse(h->journal_path, text.data + whole, (size_t)(end - text.data) - whole,
                       GATE_IO, &o, err));
        cJSON_AddItemToArray(h->found, o);
        whole = (size_t)(end - text.data) + 1;
    }
    return ftruncate(h->journal, (off_t)whole) ? gate_fail(err, GATE_IO, "cannot shorten '%s': %s",
                                                           h->journal_path, strerror(errno))
                                               : GATE_OK;
}

/* ---- what was seen ---- */

cJSON *hunt_describe(const struct hunt *h)
{
    cJSON *top = cJSON_CreateObject();
    cJSON_AddStringToObject(top, "case", h->request->case_id);
    cJSON_AddNumberToObject(top, "gain", h->request->gain);
    cJSON *family = cJSON_AddObjectToObject(top, "parameters");
    for (size_t k = 0; k < h->n_parameters; k++) {
        const struct parameter *p = &h->parameters[k];
        cJSON *values = cJSON_AddArrayToObject(family, p->name);
        for (size_t i = 0; i < p->n; i++)
            cJSON_AddItemToArray(values, cJSON_CreateString(p->value[i]));
    }
    cJSON *list = cJSON_AddArrayToObject(top, "candidates");
    for (size_t i = 0; i < h->race.n; i++) {
        const struct candidate *c = &h->candidates[i];
        const struct racer *racer = &h->race.racers[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        cJSON_AddStringToObject(o, c->is_file ? "library" : "name", c->name);
        cJSON *values = c->is_file ? NULL : cJSON_AddObjectToObject(o, "parameters");
        char name[PARAMETER_CHARACTERS_MAX + 1], value[PARAMETER_CHARACTERS_MAX + 1];
        int used = 0;
        for (const char *at = c->name;
             values && sscanf(at, " %40[^=]=%40[^ ]%n", name, value, &used) == 2; at += used)
            cJSON_AddStringToObject(values, name, value);
        cJSON_AddStringToObject(o, "state",
                                racer->runs ? hunt_states[racer->state] : "not measured");
        cJSON_AddNumberToObject(o, "processes", (double)racer->n);
        if (racer->n)
            cJSON_AddNumberToObject(o, "ratio", exp(racer->median));
        cJSON_AddStringToObject(o, "reason", racer->why ? racer->why : c->reason);
    }
    return top;
}

static void print_json(const struct hunt *h, const struct race_end *end)
{
    RELEASED_BY(json_delete_at) cJSON *o = hunt_describe(h);
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
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    json_write(o, true, &text);
    fputs(text.data, stdout);
}

static void print_text(const struct hunt *h, const struct race_end *end)
{
    size_t count[RACER_FAILED + 1] = {0}, n_measured = 0;
    RELEASED_BY(buf_release) struct buf safe = buf_of(64 * 1024);
    for (size_t i = 0; i < h->race.n; i++)
        if (h->race.racers[i].runs) {
            n_measured++;
            count[h->race.racers[i].state]++;
        }
    if (end->won) {
        const struct candidate *c = &h->candidates[end->winner];
        term_puts(c->name, &safe);
        printf("%s: the winner is %s\n", h->request->case_id, safe.data);
        printf("    %+.2f %% of time (%+.2f to %+.2f) in the %zu processes of its confirmation\n",
               100 * (end->ratio.value - 1), 100 * (end->ratio.lo - 1), 100 * (end->ratio.hi - 1),
               end->processes);
        printf("    the risk that this is luck, and the gain is below %.2g %%, is %.2g %% over all "
               "calls of this search\n",
               50 * h->request->gain, 100 * end->risk);
        printf("    its library is %s\n", c->path);
        printf("    to make it the baseline: gate run --library %s --ratchet\n", c->path);
    } else {
        printf("%s: no measured candidate gains %.2g %%\n", h->request->case_id,
               100 * h->request->gain);
    }
    for (size_t i = 0; i < h->race.n; i++)
        if (h->race.racers[i].why) {
            buf_clear(&safe);
            term_puts(h->candidates[i].name, &safe);
            printf("    eliminated: %s: %s\n", safe.data, h->race.racers[i].why);
        }
    printf(
        "%zu of %zu candidates measured, %zu runs: %zu wrong, %zu failed; %zu confirmations in all "
        "calls\n",
        n_measured, h->race.n, h->n_runs, count[RACER_WRONG], count[RACER_FAILED],
        end->confirmations);
}

/* ---- the command ---- */

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define VALUE CAPITALS DIGITS "abcdefghijklmnopqrstuvwxyz.+-_"

/* "2..6" or "32,64,128" */
static bool add_values(struct parameter *p, const char *text)
{
    long from, to;
    int used = 0;
    RELEASED_BY(buf_release) struct buf range = buf_of(16 * PARAMETER_VALUES_MAX);
    if (strstr(text, "..")) {
        if (sscanf(text, "%6ld..%6ld%n", &from, &to, &used) != 2 || text[used] || from > to)
            return false;
        for (; from <= to && !range.failed; from++)
            buf_printf(&range, "%s%ld", range.len ? "," : "", from);
        text = range.data;
    }
    for (size_t n;; text += n + 1) {
        n = strcspn(text, ",");
        if (!n || n > PARAMETER_CHARACTERS_MAX || strspn(text, VALUE) < n ||
            p->n == PARAMETER_VALUES_MAX)
            return false;
        snprintf(p->value[p->n++], sizeof p->value[0], "%.*s", (int)n, text);
        if (!text[n])
            return true;
    }
}

/* A name is a capital letter with capitals, digits and '_' behind it; a value has letters, digits,
 * '.', '+', '-' and '_'. GATE_USAGE: anything else, or a name that comes twice. */
static enum gate_status add_parameter(struct hunt *h, const char *text, struct gate_error *err)
{
    struct parameter *p = &h->parameters[h->n_parameters];
    const char *why = NULL;
    size_t n = strspn(text, CAPITALS DIGITS "_");
    *p = (struct parameter){.n = 0};
    if (!n || !strchr(CAPITALS, text[0]) || text[n] != '=' || n > PARAMETER_CHARACTERS_MAX)
        why = "its name is not of capitals, digits and '_'";
    else
        snprintf(p->name, sizeof p->name, "%.*s", (int)n, text);
    for (size_t i = 0; i < h->n_parameters && !why; i++)
        if (!strcmp(h->parameters[i].name, p->name))
            why = "it comes twice";
    if (!why && !add_values(p, text + n + 1))
        why = "it has 1 to 64 values of letters, digits, '.', '+', '-' and '_'";
    if (why)
        return gate_fail(err, GATE_USAGE,
                         "'%.100s' is not a parameter: %s. Write TILE=32,64,128 or STAGES=2..6",
                         text, why);
    h->n_parameters++;
    return GATE_OK;
}

/* Opens the library to beat: its copy in the cache is what is measured, since a build makes another
 * of its name. Then the journal, whose aim gives the seed. */
static enum gate_status open_hunt(struct hunt *h, uint64_t *seed, struct gate_error *err)
{
    const struct search_request *r = h->request;
    char sha256[65], folder[PATHS_MAX];
    struct rebuild_recipe recipe =
        run_request_recipe(&r->run, !strcmp(r->run.target.device, "host"));
    TRY(revision_resolve(r->against, &recipe, &h->against, err));
    TRY(artifact_put(h->against.path, sha256, err));
    TRY(artifact_get(sha256, h->against.path, err));
    if (machine_code_of_file(h->against.path, h->against_code, NULL))
        snprintf(h->against_code, sizeof h->against_code, "%s", sha256);
    TRY(artifact_cache_folder("search", folder, err));
    const struct run_request *run = &r->run;
    RELEASED_BY(buf_release) struct buf aim = buf_of((size_t)1 << 20); /* what its lines hold for */
    buf_printf(&aim,
               "%s, device %s, suite %s, threshold %g, worker %s, against %s, from %s, propose %s, "
               "build %s, built %s, gain %g",
               r->case_id, run->target.device, run->suite ? run->suite : "-", run->policy.threshold,
               run->target.worker ? run->target.worker : "-", h->against.sha256,
               r->from ? r->from : "-", r->propose ? r->propose : "-",
               run->build ? run->build : "-", run->built ? run->built : "-", r->gain);
    for (size_t i = 0; i < r->parameters.n; i++)
        buf_printf(&aim, ", %s", r->parameters.text[i]);
    *seed = seed_of_text(0, aim.data);
    TRY(paths_set(h->journal_path, err, "%s/%016" PRIx64 ".ndjson", folder, *seed));
    snprintf(h->seen, sizeof h->seen, "%.*s.seen", (int)strlen(h->journal_path) - 7,
             h->journal_path);
    snprintf(h->report, sizeof h->report, "%.*s.json", (int)strlen(h->journal_path) - 7,
             h->journal_path);
    return open_journal(h, err);
}

static void close_hunt(const struct hunt *h)
{
    if (h->journal >= 0)
        close(h->journal);
    cJSON_Delete(h->found);
    free(h->candidates);
    free(h->race.racers);
}

static int search(struct command_call *call, struct gate_error *err)
{
    struct search_request *r = call->arguments;
    RELEASED_BY(close_hunt)
    struct hunt h = {
        .request = r, .given = &call->seen, .journal = -1, .found = cJSON_CreateArray()};
    struct race_end end = {0};
    struct target target = {0};
    uint64_t seed = 0;
    if (!r->case_id)
        return command_usage(&command_search, "--case ID is needed");
    if (r->run.filter || options_given(&call->seen, "seed"))
        return command_usage(&command_search, "a search takes neither --filter nor --seed");
    if (!!r->from + !!r->propose + (r->parameters.n && !r->propose) != 1)
        return command_usage(&command_search,
                             "use one of --from DIR, --parameter and --propose COMMAND; "
                             "--parameter and --propose may be combined");
    if (r->parameters.n && (!r->run.build || !(r->run.built || r->run.target.library)))
        return command_usage(&command_search, "--parameter needs --build COMMAND and --built FILE, "
                                              "or both in gate.json");
    if (r->gain <= 0 || r->gain > 1 || r->risk <= 0 || r->risk > 0.5)
        return command_usage(&command_search,
                             "--gain must be at most 100 %%, --risk at most 50 %%, and both above "
                             "0");
    TRY(target_resolve(&r->run.target, false, &target, err));
    for (size_t i = 0; i < r->parameters.n; i++)
        TRY(add_parameter(&h, r->parameters.text[i], err));
    r->run.target.device = target.device;
    r->against = r->against ? r->against : target.library;
    h.candidates = xcalloc(CANDIDATES_MAX, sizeof *h.candidates);
    h.deadline = r->max_time_s > 0 ? clock_s() + r->max_time_s : INFINITY;
    TRY(open_hunt(&h, &seed, err));
    TRY(hunt_race(&h, seed, &end, err));
    if (h.n_earlier)
        command_note(&command_search, "%zu runs are from an earlier call; --restart forgets them",
                     h.n_earlier);
    (r->run.json ? print_json : print_text)(&h, &end);
    return end.won ? GATE_OK : GATE_NO_VERDICT;
}

int main(int argc, char **argv)
{
    struct command own = command_search;
    own.main = search;
    return command_call(&own, argc, argv);
}
