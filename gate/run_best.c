/*
 * run_best.c: where a run meets the stored bests: which libraries to open, and what to keep.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact.h"
#include "base/json.h"
#include "fetch.h"
#include "revision.h"
#include "run.h"

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* ---- before ---- */

/* The libraries of the bests of a suite, each once. */
struct libraries {
    char sha256[SUPERVISOR_BESTS_MAX][65];
    char path[SUPERVISOR_BESTS_MAX][PATHS_MAX];
    unsigned n;
    struct fetch fetch;
};

static bool is_open(const struct libraries *l, const char *sha256)
{
    for (unsigned i = 0; i < l->n; i++)
        if (!strcmp(l->sha256[i], sha256))
            return true;
    return false;
}

void run_fall_back(const struct run *run, struct run_case *c, const char *why)
{
    bool usable = c->has_best && c->best.control_ns > 0 && !strcmp(c->best.epoch, run->epoch);
    c->mode = usable ? RUN_NUMBER : RUN_NONE;
    snprintf(c->note, sizeof c->note, "%.250s%s", why,
             usable        ? "; held against its number"
             : c->has_best ? "; its number is of another epoch and is not compared"
                           : "");
}

/* From the tracking server into the cache; that it cannot be had costs a rebuild, or the pair. */
static enum gate_status fetch_best(struct fetch *fetch, const char *sha256, char path[PATHS_MAX])
{
    struct gate_error why;
    if (!remote_is_named(&fetch->choice))
        return GATE_NO_VERDICT;
    enum gate_status status = fetch_library(fetch, sha256, path, &why);
    if (status)
        fprintf(stderr, "gate: the library of a best is not fetched: %s\n", why.message);
    return status;
}

/* Finds the library of a case's best, unless it is open already. One that cannot be had leaves the
 * number; one that is damaged is refused. */
static enum gate_status open_library(const struct run *run, struct run_case *c, struct libraries *l,
                                     struct gate_error *err)
{
    const cJSON *device = member(run->greeting, "device");
    bool host = !strcmp(json_string(device, "kind", ""), "host");
    const char *sha256 = c->best.library_sha256;
    struct gate_error why = {0};
    struct revision found;
    c->mode = RUN_PAIRED;
    if (is_open(l, sha256))
        return GATE_OK;
    if (l->n == SUPERVISOR_BESTS_MAX) {
        run_fall_back(run, c, "the bests of this suite come from too many libraries");
        return GATE_OK;
    }
    enum gate_status status = artifact_get(sha256, found.path, &why);
    if (status == GATE_ENVIRONMENT)
        return gate_fail(err, status, "%s", why.message);
    if (status)
        status = fetch_best(&l->fetch, sha256, found.path);
    if (status)
        status = revision_resolve_best(sha256, c->best.commit, host ? "libhost.so" : "libours.so",
                                       &found, &why);
    if (status) {
        run_fall_back(run, c, why.message);
        return GATE_OK;
    }
    memcpy(l->path[l->n], found.path, sizeof found.path);
    memcpy(l->sha256[l->n++], sha256, 65);
    return GATE_OK;
}

static void copy_texts(struct run_case *c)
{
    snprintf(c->best_commit, sizeof c->best_commit, "%s", c->best.commit);
    snprintf(c->best_library, sizeof c->best_library, "%s", c->best.library_sha256);
    snprintf(c->best_epoch, sizeof c->best_epoch, "%s", c->best.epoch);
    c->best.commit = c->best_commit;
    c->best.library_sha256 = c->best_library;
    c->best.epoch = c->best_epoch;
}

static enum gate_status find_best(struct run *run, struct run_case *c, struct libraries *l,
                                  struct gate_error *err)
{
    const char *contract = json_string(run->greeting, "contract", "");
    c->mode = run->against_sha256 ? RUN_PAIRED : RUN_NONE;
    if (run->against_sha256)
        return GATE_OK;
    c->has_best = best_find(run->best, c->about->id, contract, &c->best);
    if (!c->has_best)
        return GATE_OK;
    copy_texts(c);
    return open_library(run, c, l, err);
}

/* A case without a best is measured once, or as often as a best deserves. */
static size_t first_processes(const struct run *run, const struct run_case *c)
{
    return c->mode == RUN_NONE && !run->policy.accept_new ? 1 : DECIDE_FIRST_LOOK;
}

/* The worker must have loaded what was asked for, byte by byte. */
static enum gate_status check_loaded(const struct run *run, const struct libraries *l,
                                     struct gate_error *err)
{
    unsigned at = 0;
    const cJSON *lib;
    cJSON_ArrayForEach (lib, member(run->greeting, "libraries")) {
        if (strcmp(json_string(lib, "role", ""), "best") != 0)
            continue;
        const char *loaded = json_string(lib, "sha256", "");
        if (at >= l->n || strcmp(loaded, l->sha256[at]) != 0)
            return gate_fail(err, GATE_ENVIRONMENT,
                             "the worker loaded a library of hash %.16s... as the best, expected "
                             "%.16s...: refused",
                             loaded, at < l->n ? l->sha256[at] : "none");
        at++;
    }
    if (at != l->n)
        return gate_fail(err, GATE_ENVIRONMENT, "the worker loaded %u of %u libraries of bests", at,
                         l->n);
    return GATE_OK;
}

static void describe_epoch(struct run *run)
{
    const cJSON *device = member(run->greeting, "device");
    snprintf(run->epoch, sizeof run->epoch, "%.60s/%.60s/%lld", json_string(device, "driver", ""),
             json_string(device, "runtime", ""),
             (long long)json_integer(device, "power_limit_mw", 0));
}

static enum gate_status take_greeting(struct run *run, const struct supervisor *s,
                                      struct gate_error *err)
{
    cJSON_Delete(run->greeting);
    run->greeting = cJSON_Duplicate(supervisor_greeting(s), true);
    if (!run->greeting)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    describe_epoch(run);
    return GATE_OK;
}

static enum gate_status open_bests(struct run *run, struct supervisor *s, const struct libraries *l,
                                   struct gate_error *err)
{
    const char *paths[SUPERVISOR_BESTS_MAX];
    for (unsigned i = 0; i < l->n; i++)
        paths[i] = l->path[i];
    enum gate_status status = supervisor_open_bests(s, paths, l->n, err);
    if (!status)
        status = take_greeting(run, s, err);
    return status ? status : check_loaded(run, l, err);
}

enum gate_status run_start(struct run *run, struct supervisor *s, struct gate_error *err)
{
    struct libraries *l = calloc(1, sizeof *l);
    run->cases = calloc(run->suite->n_cases, sizeof *run->cases);
    enum gate_status status = GATE_OK;
    if (!l || !run->cases)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (!status && run->against_sha256) {
        snprintf(l->path[0], PATHS_MAX, "%s", run->against_path);
        snprintf(l->sha256[0], sizeof l->sha256[0], "%s", run->against_sha256);
        l->n = 1;
    }
    if (!status)
        status = take_greeting(run, s, err);
    for (size_t i = 0; i < run->suite->n_cases && !status; i++) {
        struct run_case *c = &run->cases[i];
        c->about = &run->suite->cases[i];
        status = find_best(run, c, l, err);
        c->sequence[RUN_FIRST].wanted = first_processes(run, c);
    }
    if (!status && l->n)
        status = open_bests(run, s, l, err);
    if (l)
        fetch_release(&l->fetch);
    free(l);
    return status;
}

/* ---- after ---- */

static enum gate_status medians(const struct run_sequence *q, struct best_entry *entry,
                                struct gate_error *err)
{
    double p50[DECIDE_LAST_LOOK], control[DECIDE_LAST_LOOK];
    for (size_t i = 0; i < q->n; i++) {
        p50[i] = q->process[i].candidate.p50_ns;
        control[i] = q->process[i].control_ns;
    }
    if (!best_control(entry, p50, control, q->n))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the control could not be timed, so nothing can be kept as a best");
    struct estimate e = decide_bounds(p50, q->n);
    entry->p50_ns = e.value;
    entry->p50_lo_ns = e.lo;
    entry->p50_hi_ns = e.hi;
    return GATE_OK;
}

/* A best is the median over the processes of the sequence that it is believed for: of the
 * confirmation when there is one, so that no lucky look is kept. */
static enum gate_status keep(const struct run *run, const struct run_case *c,
                             const struct run_sequence *q, const struct best_note *note,
                             struct best *best, struct gate_error *err)
{
    const cJSON *arm = c->result.arms->child;
    const cJSON *library = cJSON_GetArrayItem(member(run->greeting, "libraries"), 0);
    struct best_entry entry = {.time_ms = run->start_ms,
                               .p90_ns = json_number(member(arm, "timing"), "p90_ns", 0),
                               .kernel = json_string(arm, "kernel", ""),
                               .commit = run->origin.commit,
                               .run_uuid = run->origin.uuid,
                               .library_sha256 = json_string(library, "sha256", ""),
                               .epoch = run->epoch};
    enum gate_status status = medians(q, &entry, err);
    if (status)
        return status;
    return best_set(best, c->about->id, json_string(run->greeting, "contract", ""), &entry, note,
                    err);
}

static double median_p50(const struct run_sequence *q)
{
    double p50[DECIDE_LAST_LOOK];
    for (size_t i = 0; i < q->n; i++)
        p50[i] = q->process[i].candidate.p50_ns;
    return decide_bounds(p50, q->n).value;
}

static void append_reason(struct run_case *c, const char *text)
{
    size_t used = strlen(c->reason);
    snprintf(c->reason + used, sizeof c->reason - used, "; %s", text);
}

static bool is_new(const struct run *run, const struct run_case *c)
{
    return run->policy.accept_new && !c->has_best && c->result.outcome == CASE_MEASURED &&
           c->sequence[RUN_FIRST].n > 0;
}

static bool is_confirmed_improvement(const struct run *run, const struct run_case *c)
{
    return run->policy.ratchet && c->has_best && c->verdict == VERDICT_IMPROVEMENT &&
           c->decision.confirmed_ratio > 0 && c->decision.confirmed_ratio < 1;
}

static enum gate_status keep_case(const struct run *run, struct run_case *c, struct best *best,
                                  size_t *n, struct gate_error *err)
{
    struct best_note note = {.author = run->origin.who, .time_ms = run->end_ms};
    char reason[200];
    enum gate_status status = GATE_OK;
    if (is_new(run, c)) {
        note.action = BEST_ACCEPT_NEW;
        note.reason = "first measurement of the case";
        status = keep(run, c, &c->sequence[RUN_FIRST], &note, best, err);
        c->verdict = VERDICT_PASS;
        snprintf(c->reason, sizeof c->reason,
                 "right, and the first measurement: taken as the best%s%.600s",
                 c->result.message[0] ? "; " : "", c->result.message);
        ++*n;
    } else if (is_confirmed_improvement(run, c)) {
        snprintf(reason, sizeof reason, "confirmed to be %.2f %% faster in fresh processes",
                 100 * (1 - c->decision.confirmed_ratio));
        note.action = BEST_RATCHET;
        note.reason = reason;
        /* The record may be of other hours of the machine: what was confirmed is the pair. */
        if (median_p50(&c->sequence[RUN_CONFIRMATION]) < c->best.p50_ns) {
            status = keep(run, c, &c->sequence[RUN_CONFIRMATION], &note, best, err);
            ++*n;
        } else {
            append_reason(c, "the best stays: its record is lower than anything seen in this run, "
                             "so the machine is slower today");
        }
    }
    return status;
}

static void recount(struct run *run)
{
    memset(run->counts, 0, sizeof run->counts);
    for (size_t i = 0; i < run->suite->n_cases; i++)
        run->counts[run->cases[i].verdict]++;
}

enum gate_status run_keep_bests(struct run *run, const char *library, struct best *best, size_t *n,
                                struct gate_error *err)
{
    char sha256[65];
    enum gate_status status = GATE_OK;
    *n = 0;
    for (size_t i = 0; i < run->suite->n_cases && !status; i++)
        status = keep_case(run, &run->cases[i], best, n, err);
    recount(run);
    if (status || !*n)
        return status;
    status = artifact_put(library, sha256, err);
    const cJSON *measured = cJSON_GetArrayItem(member(run->greeting, "libraries"), 0);
    if (!status && strcmp(sha256, json_string(measured, "sha256", "")) != 0)
        status = gate_fail(err, GATE_ENVIRONMENT,
                           "'%s' changed while it was measured; run it again", library);
    return status;
}
