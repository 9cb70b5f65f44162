/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_baseline.c: where a run meets the stored baselines: which libraries to open, and which cases
 * are missing. run_keep.c: what to keep.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/artifact.h"
#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/document/fields_table.h"
#include "gate/library/machine_code.h"
#include "gate/tracker/tracker.h"
#include "gate/baseline/revision.h"
#include "gate/run/run.h"

/* Of these the baselines of a suite may lack, and say so once. */
#define LOST_LIBRARIES_MAX 64

/* The library of some baselines. One that is not to be had is not looked for again: a build that
 * fails takes minutes. */
struct sought {
    char wanted[65], commit[41]; /* by the baselines */
    struct revision found;
    char why[800]; /* it is not to be had; "": it is open */
};

struct libraries {
    struct sought list[PROTOCOL_BASELINES_MAX + LOST_LIBRARIES_MAX];
    size_t n;
    unsigned n_open;
    struct fetch fetch;
};

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

/* The case is paired with what was found; a file that is not the baseline's own is said. */
static void pair_with(const struct run *run, struct run_case *c, const struct sought *s)
{
    if (s->why[0]) { /* nowhere: which command brings it? */
        run_fall_back(run, c, s->why);
        utf8_join(c->note, sizeof c->note, "; ",
                  "'gate baseline fetch --server URL' brings the library where a tracking server "
                  "has it, and --against FILE takes a copy of it");
        return;
    }
    memcpy(c->opened, s->found.sha256, sizeof c->opened);
    c->other_code = s->found.other_code;
    if (c->other_code && !c->baseline.launches)
        run_fall_back(run, c,
                      "the build of the baseline's commit differs from its library, and what its "
                      "launches run is not stored");
    else if (c->other_code)
        snprintf(c->note, sizeof c->note,
                 "the baseline's library was rebuilt from commit %.12s: its host code differs, "
                 "its launches are the stored ones",
                 c->baseline.commit);
    else if (strcmp(c->opened, c->baseline.library_sha256) != 0)
        snprintf(c->note, sizeof c->note,
                 "the baseline's library was rebuilt from commit %.12s: another file with the same "
                 "machine code",
                 c->baseline.commit);
}

/* Where it is not in the cache: the candidate may be this very file, a tracking server may have it,
 * and its commit may make it once more. */
static enum gate_status find_elsewhere(const struct run *run, const struct run_case *c,
                                       struct fetch *fetch, struct revision *found,
                                       struct gate_error *why)
{
    const char *sha256 = c->baseline.library_sha256;
    if (!strcmp(sha256, run_candidate_sha256(run))) {
        snprintf(found->path, sizeof found->path, "%s", run->library);
        return GATE_OK;
    }
    if (remote_is_named(&fetch->choice)) {
        struct gate_error not_fetched;
        if (!fetch_library(fetch, sha256, found->path, &not_fetched))
            return GATE_OK;
        fprintf(stderr, "gate: the library of a baseline is not fetched: %s\n",
                not_fetched.message);
    }
    return revision_resolve_baseline(&c->baseline, &run->recipe, found, why);
}

/* Finds the library of a case's baseline, unless it is open already. One that cannot be had leaves
 * the number; one that is damaged is refused. */
static enum gate_status open_library(const struct run *run, struct run_case *c, struct libraries *l,
                                     struct gate_error *err)
{
    const struct baseline_entry *e = &c->baseline;
    struct gate_error why = {0};
    struct sought s = {.why = ""};
    c->record.mode = MODE_PAIRED;
    for (size_t i = 0; i < l->n; i++) {
        const struct sought *known = &l->list[i];
        if (strcmp(known->wanted, e->library_sha256) != 0 ||
            (known->why[0] && strcmp(known->commit, e->commit) != 0))
            continue;
        pair_with(run, c, known);
        return GATE_OK;
    }
    if (l->n_open == PROTOCOL_BASELINES_MAX) {
        run_fall_back(run, c, "the baselines of this suite come from too many libraries");
        return GATE_OK;
    }
    snprintf(s.wanted, sizeof s.wanted, "%s", e->library_sha256);
    snprintf(s.commit, sizeof s.commit, "%s", e->commit);
    memcpy(s.found.sha256, s.wanted, sizeof s.wanted);
    enum gate_status status = artifact_get(s.wanted, s.found.path, &why);
    if (status == GATE_ENVIRONMENT)
        return gate_fail(err, status, "%s", why.message);
    if (status && find_elsewhere(run, c, &l->fetch, &s.found, &why))
        utf8_print(s.why, sizeof s.why, "%.799s", why.message);
    if (!s.why[0])
        l->n_open++;
    if (!s.why[0] || l->n - l->n_open < LOST_LIBRARIES_MAX)
        l->list[l->n++] = s;
    pair_with(run, c, &s);
    return GATE_OK;
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

static void copy_greeting(struct run *run, const struct supervisor *s)
{
    run->greeting = &s->greeting.m;
    run->providers = supervisor_providers(s);
    const struct document_device *device = &run->greeting->device;
    snprintf(run->epoch, sizeof run->epoch, "%.60s/%.60s/%lld", device->driver, device->runtime,
             (long long)device->power_limit_mw);
}

/* The worker must have loaded what was asked for, byte by byte. */
static enum gate_status open_baselines(struct run *run, struct supervisor *s,
                                       const struct libraries *l, struct gate_error *err)
{
    const char *paths[PROTOCOL_BASELINES_MAX], *sha256[PROTOCOL_BASELINES_MAX];
    unsigned n = 0, at = 0;
    for (size_t i = 0; i < l->n; i++)
        if (!l->list[i].why[0]) {
            paths[n] = l->list[i].found.path;
            sha256[n++] = l->list[i].found.sha256;
        }
    TRY(supervisor_open_baselines(s, paths, n, err));
    copy_greeting(run, s);
    for (size_t i = 0; i < run->greeting->n_libraries; i++) {
        const struct document_library *lib = &run->greeting->libraries[i];
        if (lib->role != ROLE_BASELINE)
            continue;
        if (at >= n || strcmp(lib->sha256, sha256[at]) != 0)
            return gate_fail(err, GATE_ENVIRONMENT,
                             "the worker loaded a library of hash %.16s... as %s, expected "
                             "%.16s...: refused",
                             lib->sha256, run->policy.other, at < n ? sha256[at] : "none");
        at++;
    }
    return at == n ? GATE_OK
                   : gate_fail(err, GATE_ENVIRONMENT,
                               "the worker loaded %u of %u libraries to hold the candidate against",
                               at, n);
}

enum gate_status run_baseline_path(const struct run *run, const struct run_case *c,
                                   char path[PATHS_MAX], struct gate_error *err)
{
    if (!run->against_path)
        return artifact_get(c->opened, path, err);
    snprintf(path, PATHS_MAX, "%s", run->against_path);
    return GATE_OK;
}

/* ---- cases that the suite has no more ---- */

/* Cases that have a baseline from this suite, and that the suite has no more. Nobody measures them,
 * so their slowdown would never be seen: such a run is incomplete. */
static void find_missing(struct run *run)
{
    const struct baseline_file *f = run->baseline ? baseline_stored(run->baseline) : NULL;
    const char *suite = run->suite->file.name;
    for (size_t i = 0; f && run->whole && i < f->n_cases; i++) {
        const char *id = f->cases[i].id;
        const struct baseline_entry *e = &f->cases[i].entry;
        char op_name[NAME_MAX_CHARACTERS + 1] = "", dtype_name[NAME_MAX_CHARACTERS + 1] = "";
        bool of_suite = false, is_there = false;
        for (size_t k = 0; k < e->n_suites; k++)
            of_suite |= !strcmp(e->suites[k], suite);
        for (size_t k = 0; k < run->whole->n_cases; k++)
            is_there |= !strcmp(run->whole->cases[k].id, id);
        if (!of_suite || is_there || sscanf(id, "%64[^/]/%64[^/]", op_name, dtype_name) != 2)
            continue;
        const struct op *op = op_by_name(op_name);
        const struct dtype *dtype = op ? op_row_by_name(op, dtype_name) : NULL;
        if (!dtype)
            continue;
        run->missing = xrealloc(run->missing, run->n_missing + 1, sizeof *run->missing);
        struct document_case *to = &run->missing[run->n_missing++];
        fields_clear(&document_case_shape, to);
        to->id = id;
        to->op = op->name;
        to->dtype = dtype->name;
        to->verdict = VERDICT_NO_VERDICT;
        to->mode = MODE_NONE;
        to->reason =
            xasprintf("missing: its baseline was taken in suite '%s', which does not have the case "
                      "any more: put it back, or `gate baseline retire %s --reason TEXT`",
                      suite, id);
    }
}

size_t run_missing_here(const struct run *run)
{
    return !run->shard || run->shard->index == 1 ? run->n_missing : 0;
}

/* ---- the start of a run ---- */

enum gate_status run_start(struct run *run, struct supervisor *s, struct gate_error *err)
{
    struct libraries *l = xcalloc(1, sizeof *l);
    enum gate_status status = GATE_OK;
    bool wants_providers = false;
    run->cases = xcalloc(run->suite->n_cases, sizeof *run->cases);
    find_missing(run);
    if (run->against_sha256) {
        struct revision *found = &l->list[l->n++].found;
        snprintf(found->path, sizeof found->path, "%s", run->against_path);
        snprintf(found->sha256, sizeof found->sha256, "%s", run->against_sha256);
        l->n_open = 1;
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
        c->record.op_sha256 = op_of(&c->about->problem)->sha256;
        c->record.dtype = problem_dtype_name(&c->about->problem);
        c->record.reason = c->reason;
        status = find_baseline(run, c, l, err);
        /* Without a baseline it is measured once, or as often as a baseline deserves. */
        bool once = c->record.mode == MODE_NONE && !run->policy.accept_new;
        c->sequence[STAGE_FIRST].wanted = once ? 1 : DECIDE_FIRST_LOOK;
    }
    if (!status)
        run_recall(run);
    for (size_t i = 0; i < run->suite->n_cases; i++)
        wants_providers |= !run->cases[i].vendors;
    if (!status && !wants_providers)
        s->without_providers = true;
    if (!status && l->n_open)
        status = open_baselines(run, s, l, err);
    free(l);
    return status;
}
