/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the program gate-search, which `gate search` starts. It measures by `gate compare` alone.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/baseline/artifact.h"
#include "gate/cli/commands.h"
#include "gate/search/hunt.h"
#include "gate/library/machine_code.h"

#define DESCRIPTION_MAX ((size_t)1 << 20)

static void keep_line(void *context, const cJSON *line)
{
    cJSON_AddItemToArray(context, cJSON_Duplicate(line, true));
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
    buf_printf(out, "from %s, propose %s, build %s, built %s, strategy %s, gain %g, fresh",
               r->from ? r->from : "-", r->propose ? r->propose : "-",
               run->build ? run->build : "-", run->built ? run->built : "-", r->strategy, r->gain);
    for (size_t i = 0; i < r->parameters.n; i++)
        buf_printf(out, ", %s", r->parameters.text[i]);
}

static enum gate_status open_journal(struct hunt *h, uint64_t *seed, struct gate_error *err)
{
    char path[PATHS_MAX];
    struct buf about;
    buf_init(&about, DESCRIPTION_MAX);
    describe(h, &about);
    enum gate_status status = artifact_cache_folder("search", h->folder, err);
    *seed = about.data ? seed_of_text(0, about.data) : 0;
    if (!status && (about.failed || strlen(h->folder) + 32 >= PATHS_MAX))
        status = gate_fail(err, GATE_ENVIRONMENT, "the path of the artifact cache is too long");
    if (!status) {
        snprintf(path, sizeof path, "%.4000s/%016" PRIx64 ".ndjson", h->folder, *seed);
        snprintf(h->seen, sizeof h->seen, "%.4000s/%016" PRIx64 ".seen", h->folder, *seed);
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
    enum gate_status status = revision_resolve(r->against, &recipe, &h->against, err);
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
        status = h->request->propose ? hunt_race_proposals(h, err) : hunt_race_known(h, seed, err);
    if (!status)
        hunt_recall_confirmations(h);
    if (!status)
        status = race_confirm(&h->race, &end, err);
    if (status)
        return command_failed(&command_search, err);
    if (h->n_earlier)
        command_note(&command_search, "%zu runs are from an earlier call; --restart forgets them",
                     h->n_earlier);
    if (h->request->run.json)
        hunt_print_json(h, &end);
    else
        hunt_print_text(h, &end);
    return end.won ? GATE_OK : GATE_NO_VERDICT;
}

static int check(const struct search_request *r, const struct options_seen *seen)
{
    if (!r->case_id)
        return command_usage(&command_search, "--case ID is needed");
    if (r->run.filter || options_given(seen, "seed"))
        return command_usage(&command_search, "a search takes neither --filter nor --seed");
    if (!!r->from + !!r->propose + (r->parameters.n && !r->propose) != 1)
        return command_usage(&command_search,
                             "use one of --from DIR, --parameter and --propose COMMAND; "
                             "--parameter and --propose may be combined");
    if (r->parameters.n && (!r->run.build || !(r->run.built || r->run.target.library)))
        return command_usage(&command_search, "--parameter needs --build COMMAND and --built FILE, "
                                              "or both in gate.json");
    if (strcmp(r->strategy, "halving") != 0 && strcmp(r->strategy, "random") != 0)
        return command_usage(&command_search, "--strategy must be halving or random");
    if (r->gain <= 0 || r->gain > 1 || r->risk <= 0 || r->risk > 0.5)
        return command_usage(&command_search,
                             "--gain must be at most 100 %%, --risk at most 50 %%, and both above "
                             "0");
    return GATE_OK;
}

int main(int argc, char **argv)
{
    struct search_request r = {
        .gain = 0.01, .risk = 0.01, .patience_s = 900, .strategy = "halving"};
    struct hunt h = {.request = &r, .journal.file = -1};
    struct target target = {0};
    struct gate_error err = {0};
    struct options_seen seen;
    int code;
    run_request_init(&r.run);
    if (!options_read(&command_search, &r, 0, argc, argv, &seen, &code))
        return code;
    if ((code = check(&r, &seen)))
        return code;
    enum gate_status status = target_resolve(&r.run.target, &target, &err);
    for (size_t i = 0; i < r.parameters.n && !status; i++)
        status = parameters_add(&h.parameters, r.parameters.text[i], &err);
    if (status)
        return command_failed(&command_search, &err);
    r.run.target.device = target.device;
    r.against = r.against ? r.against : target.library;
    h.race = (struct race){
        .rules = {r.gain, r.risk}, .measure = hunt_measure, .goes_on = hunt_goes_on, .context = &h};
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
