/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/hunt.h"

#include <math.h>
#include <stdio.h>

#include "gate/base/term.h"
#include "gate/cli/commands.h"

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
    cJSON_AddStringToObject(o, "state",
                            racer->runs ? hunt_state_name(racer->state) : "not measured");
    cJSON_AddNumberToObject(o, "processes", (double)racer->n);
    if (racer->n)
        cJSON_AddNumberToObject(o, "ratio", exp(race_median(racer)));
    cJSON_AddStringToObject(o, "reason", racer->why ? racer->why : c->reason);
}

cJSON *hunt_describe(const struct hunt *h)
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

/* ---- the answer ---- */

void hunt_print_json(const struct hunt *h, const struct race_end *end)
{
    struct buf text;
    cJSON *o = hunt_describe(h);
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

void hunt_print_text(const struct hunt *h, const struct race_end *end)
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
        if (h->racers[i].why) {
            buf_clear(&safe);
            term_puts(h->candidates[i].name, &safe);
            printf("    eliminated: %s: %s\n", safe.data ? safe.data : "", h->racers[i].why);
        }
    printf(
        "%zu of %zu candidates measured, %zu runs: %zu wrong, %zu failed; %zu confirmations in all "
        "calls\n",
        n_measured, h->race.n, h->n_runs, count[RACER_WRONG], count[RACER_FAILED],
        end->confirmations);
    buf_release(&safe);
}
