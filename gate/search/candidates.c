/* SPDX-License-Identifier: Apache-2.0 */
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
#include "gate/search/shell.h"

#define FAULTS_MAX 5 /* proposals in a row that bring nothing: then the race is over */
#define SEEN_MAX ((size_t)16 << 20)

/* ---- candidates that a command proposes ---- */

static enum gate_status ask(struct hunt *h, struct buf *line, struct gate_error *err)
{
    struct buf text;
    cJSON *seen = hunt_describe(h);
    buf_init(&text, SEEN_MAX);
    json_write(seen, true, &text);
    cJSON_Delete(seen);
    enum gate_status status = text.failed ? gate_fail(err, GATE_INTERNAL,
                                                      "the results so far are too "
                                                      "large")
                                          : file_write_atomic(h->seen, text.data, text.len, err);
    buf_release(&text);
    if (status)
        return status;
    setenv(SEARCH_SEEN, h->seen, 1);
    return shell_ask(h->request->propose, "", h->request->patience_s, line, err);
}

/* The next line, of the command or of an earlier call that had it. */
static enum gate_status next_line(struct hunt *h, struct buf *line, struct gate_error *err)
{
    const cJSON *known = hunt_find_line(h, "proposal", "", h->n_proposals);
    enum gate_status status = GATE_OK;
    if (known) {
        buf_puts(line, json_string(known, "proposal", ""));
    } else {
        status = ask(h, line, err);
        if (!status && line->len)
            status = journal_append(&h->journal, hunt_new_line("proposal", line->data, ""), err);
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
        faults = h->racers[i].n ? 0 : faults + 1;
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
    size_t n = parameters_combinations(&h->parameters);
    if (n > CANDIDATES_MAX)
        return gate_fail(err, GATE_USAGE,
                         "there are over %d combinations: use fewer values, or --propose",
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
    if (n < 0)
        status =
            gate_fail(err, GATE_IO, "cannot read the folder '%.300s': %s", folder, strerror(errno));
    else if (n == 0)
        status = gate_fail(err, GATE_USAGE, "the folder '%.300s' contains no *.so", folder);
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

enum gate_status hunt_race_known(struct hunt *h, uint64_t seed, struct gate_error *err)
{
    size_t order[CANDIDATES_MAX];
    enum gate_status status = h->request->from ? list_folder(h, err) : list_combinations(h, err);
    if (status)
        return status;
    shuffle(order, h->race.n, seed);
    if (strcmp(h->request->strategy, "random") != 0)
        return race_halve(&h->race, order, err);
    for (size_t i = 0; i < h->race.n && !status && hunt_goes_on(h); i++)
        status = race_look(&h->race, order[i], err);
    return status;
}
