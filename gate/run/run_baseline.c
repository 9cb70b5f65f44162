/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_baseline.c: where a run meets the stored baselines: which libraries to open, which cases are
 * missing, and what it leaves behind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/artifact.h"
#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/baseline/baseline.h"
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
        c->record.dtype = dtype_of(&c->about->problem)->name;
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

/* ---- the baseline's own library ---- */

static struct baseline_entry entry_of_run(const struct run *run)
{
    struct baseline_entry e;
    baseline_clear(&e);
    e.time_ms = run->start_ms;
    e.run_uuid = run->origin.uuid;
    e.epoch = run->epoch;
    return e;
}

void run_remeasure_baseline(const struct run *run, struct run_case *c)
{
    const struct run_sequence *q = &c->sequence[STAGE_FIRST];
    char why[240];
    c->again = entry_of_run(run);
    if (c->record.mode != MODE_PAIRED || !c->record.has_baseline || q->n < DECIDE_FIRST_LOOK ||
        !baseline_of_arm(&c->again, q->process, q->n, STAGE_FIRST, run_arm(c, ROLE_BASELINE)))
        return;
    c->record.baseline.again_ns = c->again.p50_ns;
    if (strcmp(c->baseline.epoch, run->epoch) != 0 ||
        !ratchet_is_off(&c->baseline, &c->again, why, sizeof why))
        return;
    c->record.baseline.off = YES;
    if (!run->policy.ratchet)
        utf8_join(c->reason, sizeof c->reason, "; ",
                  "the baseline's own library %s: its record may be of another epoch", why);
}

bool run_may_move(const struct run *run, const struct run_case *c)
{
    const struct document_process *p = &c->sequence[STAGE_FIRST].process[0];
    const struct baseline_entry again = {.p50_ns = p->baseline_p50_ns, .control_ns = p->control_ns};
    char why[240];
    return run->policy.ratchet && c->record.has_baseline &&
           (strcmp(c->baseline.epoch, run->epoch) != 0 ||
            baseline_trend(run->baseline, c->about->id) ||
            ratchet_is_off(&c->baseline, &again, why, sizeof why));
}

/* ---- keeping ---- */

static const char no_control[] =
    "the control kernel could not be timed in the same run, so this result cannot be a baseline";

/* What a run keeps. */
struct kept {
    bool changed;   /* the set of baselines */
    bool candidate; /* the candidate's library is a baseline's now */
    size_t n_wide;  /* new ones whose p50 is not known well */
};

/* The candidate as a baseline, by a sequence of its processes; false: without the control. */
static bool candidate_entry(const struct run *run, const struct run_case *c,
                            enum document_stage stage, struct baseline_entry *out)
{
    const struct run_sequence *q = &c->sequence[stage];
    *out = entry_of_run(run);
    out->commit = run->origin.commit;
    out->library_sha256 = run_candidate_sha256(run);
    out->code_sha256 = run->candidate_code[0] ? run->candidate_code : NULL;
    out->op_sha256 = c->record.op_sha256;
    out->dirty = run->origin.dirty ? YES : UNKNOWN;
    out->suites = (const char **)(uintptr_t)&run->suite->file.name;
    out->n_suites = 1;
    return baseline_of_arm(out, q->process, q->n, stage, run_arm(c, ROLE_CANDIDATE));
}

static enum gate_status keep_new(const struct run *run, struct run_case *c,
                                 struct baseline *baseline, struct kept *kept,
                                 struct gate_error *err)
{
    const struct run_sequence *q = &c->sequence[STAGE_FIRST];
    const struct baseline_note note = {BASELINE_ACCEPT_NEW, "first measurement of the case",
                                       run->author, run->end_ms};
    struct baseline_entry entry;
    char width[120] = "";
    double half_widths[DECIDE_LAST_LOOK];
    if (!candidate_entry(run, c, STAGE_FIRST, &entry)) {
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", no_control);
        return GATE_OK;
    }
    /* The median over the processes of what each knows its p50 within. That it is wide does not
     * matter much: the pairs with its library carry the verdict. */
    for (size_t i = 0; i < q->n; i++)
        half_widths[i] = isnan(q->process[i].half_width) ? 0 : q->process[i].half_width;
    double half_width = decide_bounds(half_widths, q->n).value;
    bool wide = half_width > run_threshold(run, c) / 2;
    if (wide)
        snprintf(width, sizeof width, ", though its p50 is known within %.2f %% only",
                 half_width * 100);
    TRY(baseline_set(baseline, c->about->id, run->greeting->contract, &entry, &note, err));
    kept->changed = kept->candidate = true;
    kept->n_wide += wide;
    c->record.verdict = VERDICT_PASS;
    snprintf(c->reason, sizeof c->reason,
             "right, and the first measurement: taken as the baseline%s%s%.600s", width,
             c->result.said[0] ? "; " : "", c->result.said);
    return GATE_OK;
}

/* The baseline of a case that has one, moved as far as this run moves it. */
static enum gate_status keep_moved(const struct run *run, struct run_case *c,
                                   struct baseline *baseline, struct kept *kept,
                                   struct gate_error *err)
{
    bool paired = c->record.mode == MODE_PAIRED;
    bool judged = paired && c->result.outcome == CASE_MEASURED &&
                  c->sequence[STAGE_FIRST].n >= DECIDE_FIRST_LOOK &&
                  c->record.verdict != VERDICT_WRONG && c->record.verdict != VERDICT_ENVIRONMENT &&
                  c->calls.decision.verdict != VERDICT_REGRESSION &&
                  c->fresh.decision.verdict != VERDICT_REGRESSION && !run_error_jumped(run, c);
    struct ratchet_run found = {.again = c->again,
                                .ratio = c->decision.ratio,
                                .threshold = run_threshold(run, c),
                                .judged = judged,
                                .confirmed = paired && c->record.verdict == VERDICT_IMPROVEMENT &&
                                             c->decision.confirmed_ratio > 0 &&
                                             c->decision.confirmed_ratio < 1,
                                .time_ms = run->end_ms,
                                .author = run->author};
    struct ratchet_end end;
    if (run_same_library(run, c)) /* is as fast as itself, whatever was measured */
        found.ratio = (struct estimate){1, 1, 1};
    enum document_stage stage =
        c->sequence[STAGE_CONFIRMATION].n ? STAGE_CONFIRMATION : STAGE_FIRST;
    if (!found.judged && !found.confirmed)
        return GATE_OK;
    if (!candidate_entry(run, c, stage, &found.candidate)) {
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", no_control);
        return GATE_OK;
    }
    TRY(ratchet_move(baseline, c->about->id, run->greeting->contract, &found, &end, err));
    kept->changed |= end.changed;
    kept->candidate |= end.lowered;
    if (end.text[0])
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", end.text);
    return GATE_OK;
}

/* The library that was measured, byte by byte, becomes an artifact. */
static enum gate_status keep_library(const struct run *run, struct gate_error *err)
{
    char sha256[65];
    TRY(artifact_put(run->library, sha256, err));
    if (strcmp(sha256, run_candidate_sha256(run)) != 0)
        return gate_fail(err, GATE_ENVIRONMENT, "'%s' changed while it was measured; run it again",
                         run->library);
    return GATE_OK;
}

enum gate_status run_keep_baselines(struct run *run, struct baseline *baseline, bool *changed,
                                    struct gate_error *err)
{
    struct kept kept = {.changed = false};
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < run->suite->n_cases && !status; i++) {
        struct run_case *c = &run->cases[i];
        if (run->policy.accept_new && !c->record.has_baseline &&
            c->result.outcome == CASE_MEASURED && c->sequence[STAGE_FIRST].n > 0)
            status = keep_new(run, c, baseline, &kept, err);
        else if (run->policy.ratchet && c->record.has_baseline)
            status = keep_moved(run, c, baseline, &kept, err);
    }
    run_count_verdicts(run);
    if (!status && kept.n_wide)
        fprintf(
            stderr,
            "gate: this machine was not quiet: the p50 of %zu new baseline%s is not known "
            "within half of the threshold; no verdict rests on it, since the baseline is timed "
            "again beside each candidate; to show a better one, run again on a quiet machine and "
            "take that by 'gate baseline accept'\n",
            kept.n_wide, kept.n_wide == 1 ? "" : "s");
    if (!status && kept.candidate)
        status = keep_library(run, err);
    *changed = kept.changed;
    return status;
}

void run_keep_candidate(const struct run *run)
{
    struct gate_error err;
    if (keep_library(run, &err))
        fprintf(stderr, "gate: the library is not kept for 'gate baseline accept': %s\n",
                err.message);
}
