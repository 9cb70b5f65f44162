/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.c: which candidates there are, and their race. */
#include "gate/search/hunt.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/cli/commands.h"

#define FAULTS_MAX 5 /* proposals in a row that bring nothing: then the race is over */
#define SEEN_MAX ((size_t)16 << 20)

/* ---- parameters ---- */

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define VALUE CAPITALS DIGITS "abcdefghijklmnopqrstuvwxyz.+-_"

static bool add_value(struct parameter *p, const char *text, size_t n)
{
    if (!n || n > PARAMETER_CHARACTERS_MAX || strspn(text, VALUE) < n ||
        p->n == PARAMETER_VALUES_MAX)
        return false;
    snprintf(p->value[p->n++], sizeof p->value[0], "%.*s", (int)n, text);
    return true;
}

/* "2..6" or "32,64,128" */
static bool add_values(struct parameter *p, const char *text)
{
    long from, to;
    int used = 0;
    char value[24];
    if (strstr(text, "..")) {
        if (sscanf(text, "%6ld..%6ld%n", &from, &to, &used) != 2 || text[used] || from > to)
            return false;
        for (; from <= to; from++)
            if (!add_value(p, value, (size_t)snprintf(value, sizeof value, "%ld", from)))
                return false;
        return true;
    }
    for (;; text++) {
        size_t n = strcspn(text, ",");
        if (!add_value(p, text, n))
            return false;
        text += n;
        if (!*text)
            return true;
    }
}

enum gate_status hunt_add_parameter(struct hunt *h, const char *text, struct gate_error *err)
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

/* A candidate that is built by the parameters is known by their values. */
static void name_choice(const struct hunt *h, struct candidate *c)
{
    size_t at = 0;
    for (size_t k = 0; k < h->n_parameters; k++)
        at += (size_t)snprintf(c->name + at, sizeof c->name - at, "%s%s=%s", k ? " " : "",
                               h->parameters[k].name, h->parameters[k].value[c->choice[k]]);
}

/* Of {"TILE": 64, "STAGES": "3"}: each parameter and no other, each with a value that it may have.
 */
static bool read_choice(const struct hunt *h, const cJSON *object, size_t choice[PARAMETERS_MAX])
{
    if (!cJSON_IsObject(object) || (size_t)cJSON_GetArraySize(object) != h->n_parameters)
        return false;
    for (size_t k = 0; k < h->n_parameters; k++) {
        const struct parameter *p = &h->parameters[k];
        const cJSON *item = json_member(object, p->name);
        char number[PARAMETER_CHARACTERS_MAX + 1] = "";
        const char *text = cJSON_IsString(item) ? item->valuestring : number;
        if (cJSON_IsNumber(item))
            snprintf(number, sizeof number, "%.15g", item->valuedouble);
        for (choice[k] = 0; choice[k] < p->n && strcmp(p->value[choice[k]], text) != 0;)
            choice[k]++;
        if (choice[k] == p->n)
            return false;
    }
    return true;
}

/* ---- candidates that a command proposes ---- */

/* The next line, of the command or of an earlier call that had it. */
static enum gate_status next_line(struct hunt *h, struct buf *line, struct gate_error *err)
{
    const cJSON *known = hunt_find_line(h, "proposal", "", h->n_proposals);
    struct buf text;
    if (known) {
        h->n_proposals++;
        buf_puts(line, json_string(known, "proposal", ""));
        return GATE_OK;
    }
    cJSON *seen = hunt_describe(h);
    buf_init(&text, SEEN_MAX);
    json_write(seen, true, &text);
    cJSON_Delete(seen);
    enum gate_status status =
        text.failed ? gate_fail(err, GATE_INTERNAL, "the results so far are too large")
                    : file_write_atomic(h->seen, text.data, text.len, err);
    buf_release(&text);
    if (status)
        return status;
    setenv(SEARCH_SEEN, h->seen, 1);
    TRY(hunt_ask_shell(h, h->request->propose, "", line, err));
    if (line->len)
        TRY(hunt_keep_line(h, hunt_new_line("proposal", line->data, ""), err));
    h->n_proposals++;
    return GATE_OK;
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
    } else if (h->n_parameters && read_choice(h, json_member(o, "parameters"), c->choice)) {
        c->is_file = false;
        name_choice(h, c);
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

enum gate_status hunt_race_proposals(struct hunt *h, struct gate_error *err)
{
    struct buf line;
    enum gate_status status = GATE_OK;
    int faults = 0;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (!status && faults < FAULTS_MAX && h->race.n < CANDIDATES_MAX && hunt_goes_on(h)) {
        struct gate_error why = {0};
        buf_clear(&line);
        status = next_line(h, &line, &why);
        if (!status && !line.len)
            break;
        if (status == GATE_USAGE || (!status && !read_proposal(h, &line, &why))) {
            command_note(&command_search, "ignored a proposal: %s", why.message);
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
        faults = h->race.racers[i].n ? 0 : faults + 1;
    }
    if (faults == FAULTS_MAX)
        command_note(&command_search, "%d proposals in a row were unusable: the race ends",
                     FAULTS_MAX);
    buf_release(&line);
    return status;
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
        struct candidate *c = &h->candidates[i];
        for (size_t k = h->n_parameters, rest = i; k-- > 0; rest /= h->parameters[k].n)
            c->choice[k] = rest % h->parameters[k].n;
        name_choice(h, c);
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
    enum gate_status status = GATE_OK;
    if (n < 0)
        status =
            gate_fail(err, GATE_IO, "cannot read the folder '%.300s': %s", folder, strerror(errno));
    else if (n == 0)
        status =
            gate_fail(err, GATE_USAGE, "the folder '%.300s' contains no *.so and no *.kgb", folder);
    else if (n > CANDIDATES_MAX)
        status = gate_fail(err, GATE_USAGE, "'%.300s' has %d libraries, more than the limit of %d",
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

enum gate_status hunt_race_known(struct hunt *h, uint64_t seed, struct gate_error *err)
{
    size_t order[CANDIDATES_MAX];
    enum gate_status status = h->request->from ? list_folder(h, err) : list_combinations(h, err);
    if (status)
        return status;
    /* The order is drawn, and the same when the search goes on. */
    for (size_t i = 0; i < h->race.n; i++)
        order[i] = i;
    for (size_t i = h->race.n; i > 1; i--) {
        size_t k = seed_at(seed, i) % i, was = order[k];
        order[k] = order[i - 1];
        order[i - 1] = was;
    }
    if (strcmp(h->request->strategy, "random") != 0)
        return race_halve(&h->race, order, err);
    for (size_t i = 0; i < h->race.n && !status && hunt_goes_on(h); i++)
        status = race_look(&h->race, order[i], err);
    return status;
}
