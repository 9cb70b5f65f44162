/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_baseline.c: where a run meets the stored baselines: which libraries to open. run_keep.c: what
 * to keep.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/artifact.h"
#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/cases/op_file.h"
#include "gate/library/machine_code.h"
#include "gate/tracker/tracker.h"
#include "gate/baseline/revision.h"
#include "gate/run/run.h"

/* ---- before ---- */

#define LOST_LIBRARIES_MAX 64

/* A library that is not to be had: a build that fails takes minutes, and one is enough. */
struct lost_library {
    char sha256[65], commit[41];
    char why[800];
};

/* The libraries of the baselines of a suite, each once. */
struct libraries {
    char wanted[PROTOCOL_BASELINES_MAX][65]; /* by baselines */
    char sha256[PROTOCOL_BASELINES_MAX][65]; /* of the file that is opened for it */
    char path[PROTOCOL_BASELINES_MAX][PATHS_MAX];
    bool other_code[PROTOCOL_BASELINES_MAX]; /* of revision */
    unsigned n;
    struct lost_library lost[LOST_LIBRARIES_MAX];
    unsigned n_lost;
    struct fetch fetch;
};

/* NULL: not looked for yet. */
static const struct lost_library *find_lost(const struct libraries *l,
                                            const struct baseline_entry *e)
{
    for (unsigned i = 0; i < l->n_lost; i++)
        if (!strcmp(l->lost[i].sha256, e->library_sha256) && !strcmp(l->lost[i].commit, e->commit))
            return &l->lost[i];
    return NULL;
}

static void note_lost(struct libraries *l, const struct baseline_entry *e, const char *why)
{
    if (l->n_lost == LOST_LIBRARIES_MAX)
        return;
    struct lost_library *lost = &l->lost[l->n_lost++];
    snprintf(lost->sha256, sizeof lost->sha256, "%s", e->library_sha256);
    snprintf(lost->commit, sizeof lost->commit, "%s", e->commit);
    utf8_print(lost->why, sizeof lost->why, "%.799s", why);
}

void run_fall_back(const struct run *run, struct run_case *c, const char *why)
{
    bool usable = c->record.has_baseline && c->baseline.control_ns > 0 &&
                  !strcmp(c->baseline.epoch, run->epoch);
    c->record.mode = usable ? MODE_NUMBER : MODE_NONE;
    snprintf(c->note, sizeof c->note, "%.800s%s", why,
             c->record.has_baseline && !usable
                 ? "; its number is of another epoch and is not compared"
                 : "");
}

/* The same where the library is nowhere to be found: says which command brings it. */
static void fall_back_without_library(const struct run *run, struct run_case *c, const char *why)
{
    size_t used;
    run_fall_back(run, c, why);
    used = strlen(c->note);
    snprintf(c->note + used, sizeof c->note - used,
             "; 'gate baseline fetch --server URL' brings the library where a tracking server has "
             "it, and --against FILE takes a copy of it");
}

/* From the tracking server into the cache; that it cannot be had costs a rebuild, or the pair. */
static enum gate_status fetch_baseline(struct fetch *fetch, const char *sha256,
                                       char path[PATHS_MAX])
{
    struct gate_error why;
    if (!remote_is_named(&fetch->choice))
        return GATE_NO_VERDICT;
    enum gate_status status = fetch_library(fetch, sha256, path, &why);
    if (status)
        fprintf(stderr, "gate: the library of a baseline is not fetched: %s\n", why.message);
    return status;
}

/* The case is paired with this file; one that is not the baseline's own is said. */
static void pair_with(const struct run *run, struct run_case *c, const char *sha256,
                      bool other_code)
{
    memcpy(c->opened, sha256, sizeof c->opened);
    c->other_code = other_code;
    if (other_code && !c->baseline.launches)
        run_fall_back(run, c,
                      "the build of the baseline's commit differs from its library, and what its "
                      "launches run is not stored");
    else if (other_code)
        snprintf(c->note, sizeof c->note,
                 "the baseline's library was rebuilt from commit %.12s: its host code differs, "
                 "its launches are the stored ones",
                 c->baseline.commit);
    else if (strcmp(sha256, c->baseline.library_sha256) != 0)
        snprintf(c->note, sizeof c->note,
                 "the baseline's library was rebuilt from commit %.12s: another file with the same "
                 "machine code",
                 c->baseline.commit);
}

/* Where it is not in the cache: the candidate may be this very file, a server may have it, and its
 * commit may make it once more. */
static enum gate_status find_elsewhere(const struct run *run, const struct run_case *c,
                                       struct libraries *l, struct revision *found,
                                       struct gate_error *why)
{
    const char *sha256 = c->baseline.library_sha256;
    memcpy(found->sha256, sha256, sizeof found->sha256);
    if (!strcmp(sha256, run_candidate_sha256(run))) {
        snprintf(found->path, sizeof found->path, "%s", run->library);
        return GATE_OK;
    }
    if (!fetch_baseline(&l->fetch, sha256, found->path))
        return GATE_OK;
    return revision_resolve_baseline(&c->baseline, &run->recipe, found, why);
}

/* Finds the library of a case's baseline, unless it is open already. One that cannot be had leaves
 * the number; one that is damaged is refused. */
static enum gate_status open_library(const struct run *run, struct run_case *c, struct libraries *l,
                                     struct gate_error *err)
{
    const char *sha256 = c->baseline.library_sha256;
    struct gate_error why = {0};
    struct revision found = {.other_code = false};
    c->record.mode = MODE_PAIRED;
    for (unsigned i = 0; i < l->n; i++)
        if (!strcmp(l->wanted[i], sha256)) {
            pair_with(run, c, l->sha256[i], l->other_code[i]);
            return GATE_OK;
        }
    if (l->n == PROTOCOL_BASELINES_MAX) {
        run_fall_back(run, c, "the baselines of this suite come from too many libraries");
        return GATE_OK;
    }
    const struct lost_library *lost = find_lost(l, &c->baseline);
    if (lost) {
        fall_back_without_library(run, c, lost->why);
        return GATE_OK;
    }
    memcpy(found.sha256, sha256, 65);
    enum gate_status status = artifact_get(sha256, found.path, &why);
    if (status == GATE_ENVIRONMENT)
        return gate_fail(err, status, "%s", why.message);
    if (status)
        status = find_elsewhere(run, c, l, &found, &why);
    if (status) {
        note_lost(l, &c->baseline, why.message);
        fall_back_without_library(run, c, why.message);
        return GATE_OK;
    }
    pair_with(run, c, found.sha256, found.other_code);
    l->other_code[l->n] = found.other_code;
    memcpy(l->path[l->n], found.path, sizeof found.path);
    memcpy(l->wanted[l->n], sha256, 65);
    memcpy(l->sha256[l->n++], found.sha256, 65);
    return GATE_OK;
}

/* NULL: the op is built in. */
static const char *own_sha256(const struct kg_problem *p)
{
    const struct own_op *own = op_of(p)->own;
    return own && own->sha256[0] ? own->sha256 : NULL;
}

static enum gate_status find_baseline(struct run *run, struct run_case *c, struct libraries *l,
                                      struct gate_error *err)
{
    const char *contract = run->greeting->contract;
    c->record.mode = run->against_sha256 ? MODE_PAIRED : MODE_NONE;
    if (run->against_sha256)
        return GATE_OK;
    c->record.has_baseline = baseline_find(run->baseline, c->about->id, contract, &c->baseline);
    if (c->record.has_baseline && !baseline_is_of_op(&c->baseline, c->record.op_sha256)) {
        c->record.has_baseline = false;
        snprintf(c->note, sizeof c->note,
                 "op '%s' was another one when its baseline was measured: its file or its "
                 "reference has changed, so the two are not compared; --accept-new takes a new "
                 "baseline",
                 c->record.op);
    }
    if (!c->record.has_baseline)
        return GATE_OK;
    c->record.baseline = (struct document_baseline){
        .p50_ns = c->baseline.p50_ns,
        .commit = c->baseline.commit,
        .time_ms = c->baseline.time_ms,
        .library_sha256 = c->baseline.library_sha256,
        .made_by = baseline_made_by(run->baseline, c->about->id, &c->baseline),
        .again_ns = NAN,
        .off = NO,
    };
    return open_library(run, c, l, err);
}

/* A case without a baseline is measured once, or as often as a baseline deserves. */
static size_t first_processes(const struct run *run, const struct run_case *c)
{
    return c->record.mode == MODE_NONE && !run->policy.accept_new ? 1 : DECIDE_FIRST_LOOK;
}

/* The worker must have loaded what was asked for, byte by byte. */
static enum gate_status check_loaded(const struct run *run, const struct libraries *l,
                                     struct gate_error *err)
{
    unsigned at = 0;
    for (size_t i = 0; i < run->greeting->n_libraries; i++) {
        if (run->greeting->libraries[i].role != ROLE_BASELINE)
            continue;
        const char *loaded = run->greeting->libraries[i].sha256;
        if (at >= l->n || strcmp(loaded, l->sha256[at]) != 0)
            return gate_fail(err, GATE_ENVIRONMENT,
                             "the worker loaded a library of hash %.16s... as %s, expected "
                             "%.16s...: refused",
                             loaded, run->policy.other, at < l->n ? l->sha256[at] : "none");
        at++;
    }
    if (at != l->n)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the worker loaded %u of %u libraries to hold the candidate against", at,
                         l->n);
    return GATE_OK;
}

static void copy_greeting(struct run *run, const struct supervisor *s)
{
    run->greeting = supervisor_greeting(s);
    run->providers = supervisor_providers(s);
    const struct document_device *device = &run->greeting->device;
    snprintf(run->epoch, sizeof run->epoch, "%.60s/%.60s/%lld", device->driver, device->runtime,
             (long long)device->power_limit_mw);
}

static enum gate_status open_baselines(struct run *run, struct supervisor *s,
                                       const struct libraries *l, struct gate_error *err)
{
    const char *paths[PROTOCOL_BASELINES_MAX];
    for (unsigned i = 0; i < l->n; i++)
        paths[i] = l->path[i];
    TRY(supervisor_open_baselines(s, paths, l->n, err));
    copy_greeting(run, s);
    return check_loaded(run, l, err);
}

enum gate_status run_baseline_path(const struct run *run, const struct run_case *c,
                                   char path[PATHS_MAX], struct gate_error *err)
{
    if (!run->against_path)
        return artifact_get(c->opened, path, err);
    snprintf(path, PATHS_MAX, "%s", run->against_path);
    return GATE_OK;
}

static bool wants_providers(const struct run *run)
{
    for (size_t i = 0; i < run->suite->n_cases; i++)
        if (!run->cases[i].vendors)
            return true;
    return false;
}

enum gate_status run_start(struct run *run, struct supervisor *s, struct gate_error *err)
{
    struct libraries *l = xcalloc(1, sizeof *l);
    run->cases = xcalloc(run->suite->n_cases, sizeof *run->cases);
    enum gate_status status = GATE_OK;
    run_find_missing(run);
    if (run->against_sha256) {
        snprintf(l->path[0], PATHS_MAX, "%s", run->against_path);
        snprintf(l->sha256[0], sizeof l->sha256[0], "%s", run->against_sha256);
        l->n = 1;
    }
    copy_greeting(run, s);
    if (!run->library || machine_code_of_file(run->library, run->candidate_code, NULL))
        run->candidate_code[0] = '\0';
    for (size_t i = 0; i < run->suite->n_cases && !status; i++) {
        struct run_case *c = &run->cases[i];
        c->about = &run->suite->cases[i];
        fields_clear(&document_case_shape, &c->record);
        c->record.id = c->about->id;
        c->record.op = c->about->problem.op;
        c->record.op_sha256 = own_sha256(&c->about->problem);
        c->record.dtype = problem_dtype_name(&c->about->problem);
        c->record.reason = c->reason;
        status = find_baseline(run, c, l, err);
        c->sequence[STAGE_FIRST].wanted = first_processes(run, c);
    }
    if (!status)
        run_recall(run);
    if (!status && !wants_providers(run))
        supervisor_leave_providers(s);
    if (!status && l->n)
        status = open_baselines(run, s, l, err);
    fetch_release(&l->fetch);
    free(l);
    return status;
}
