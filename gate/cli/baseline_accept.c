/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_accept.c: gate baseline accept and retire. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/origin.h"
#include "gate/baseline/baseline.h"
#include "gate/cli/list.h"
#include "gate/library/machine_code.h"

static bool is_pattern(const struct baseline_request *r)
{
    return strpbrk(r->cases, "*?[") != NULL;
}

/* ---- the run ---- */

/* A run of a CI job is named where its report is read, which is seldom where its database is. */
static enum gate_status not_here(const struct baseline_request *r, enum gate_status status,
                                 struct gate_error *err)
{
    if (!r->run)
        return status;
    return gate_fail(err, status,
                     "%s. If the run was measured elsewhere, first `gate import` its JSON report "
                     "(gate-run.json, an artifact of the job)",
                     err->message);
}

/* Of one case: its newest run, measured or not. */
struct newest {
    char models[400]; /* all that have the case, for a message */
    size_t n_models;
    char run[64];
};

static bool note_model(void *context, const char *model, const char *run)
{
    struct newest *s = context;
    s->n_models++;
    utf8_join(s->models, sizeof s->models, ", ", "%s", model);
    snprintf(s->run, sizeof s->run, "%s", run);
    return true;
}

/* The run that is named, or the newest one: of all, or of those with the case. Of a case that was
 * wrong, on a busy device or not timed in it, the measurement of an older one is not taken in
 * silence; and cases of one run belong together. */
static enum gate_status open_run(const struct baseline_request *r, struct store *store,
                                 struct document *out, struct gate_error *err)
{
    struct newest s = {.n_models = 0};
    if (!r->run && is_pattern(r)) {
        TRY(command_newest_run(store, r->device_model, s.run, err));
    } else if (!r->run) {
        TRY(store_newest(store, r->cases, r->device_model, note_model, &s, err));
        if (s.n_models != 1)
            return gate_fail(err, GATE_USAGE,
                             s.n_models ? "'%s' was measured on several device models (%s); "
                                          "choose one with --device-model"
                                        : "the database has no run with the case '%s'%s",
                             r->cases, s.models);
    }
    enum gate_status status = command_document(store, r->run ? r->run : s.run, out, err);
    if (status == GATE_USAGE)
        return not_here(r, status, err);
    TRY(status);
    if (r->device_model && strcmp(r->device_model, out->device.model) != 0)
        return gate_fail(err, GATE_USAGE, "run %.8s was measured on %s, not on %s", out->uuid,
                         out->device.model, r->device_model);
    return GATE_OK;
}

/* ---- its measurements ---- */

/* A wrong result has no time, and a disturbed machine no good one, whatever was measured. */
static bool is_usable(const struct document_case *c)
{
    return c->verdict != VERDICT_WRONG && c->verdict != VERDICT_ENVIRONMENT;
}

/* A case and its baseline to be; the strings are the document's. */
struct accepted {
    struct baseline_entry entry;
    double from_ns; /* of the baseline before; NAN: none */
    double ratio;   /* in the run, to the baseline beside it; 0: none was beside it */
    char code[65];
    bool is_at_hand; /* its library, on this machine */
};

/* The candidate as it was verified and timed; NULL: it was not. */
static const struct document_arm *find_measured(const struct document_case *c)
{
    const struct document_arm *arm = document_candidate(c);
    return arm && arm->has_timing && arm->has_verify && arm->verify.ok ? arm : NULL;
}

static void take_library(const struct document *d, const struct document_arm *arm,
                         struct accepted *out)
{
    char path[PATHS_MAX];
    out->entry.library_sha256 = "";
    for (size_t i = 0; i < d->n_libraries; i++)
        if (d->libraries[i].role == ROLE_CANDIDATE &&
            !strcmp(d->libraries[i].provider, arm->provider)) {
            out->entry.library_sha256 = d->libraries[i].sha256;
            out->entry.code_sha256 = d->libraries[i].code_sha256;
            break;
        }
    /* What it runs, by the file where it is at hand, else by the run that measured it, which may
     * have done so on another machine. An older run does not say: then a rebuild must be the very
     * same file. */
    out->is_at_hand = !artifact_get(out->entry.library_sha256, path, NULL);
    if (out->is_at_hand && !machine_code_of_file(path, out->code, NULL))
        out->entry.code_sha256 = out->code;
}

static enum gate_status read_measurement(const struct document *d, const struct document_case *c,
                                         struct accepted *out, struct gate_error *err)
{
    const struct document_arm *arm = find_measured(c);
    if (!is_usable(c) || !arm)
        return gate_fail(err, GATE_USAGE,
                         "run %.8s has no verified measurement of '%s' that counts (its verdict is "
                         "'%s'): measure again, or name another run with --run UUID",
                         d->uuid, c->id, verdict_name((enum verdict)c->verdict));
    if (arm->verify.verified_in)
        return gate_fail(err, GATE_USAGE,
                         "run %.8s took it from run %.8s that '%s' is right, and a baseline is "
                         "verified by the run that measures it: measure again with --full",
                         d->uuid, arm->verify.verified_in, c->id);
    *out = (struct accepted){
        .from_ns = NAN,
        .ratio = c->has_baseline && c->mode == MODE_PAIRED && c->has_ratio ? c->ratio.value : 0};
    struct baseline_entry *e = &out->entry;
    baseline_clear(e);
    e->case_id = c->id;
    e->device_model = d->device.model;
    e->time_ms = d->time_ms;
    e->commit = d->git.commit;
    e->run_uuid = d->uuid;
    e->op_sha256 = c->op_sha256;
    e->dirty = d->git.dirty ? YES : UNKNOWN;
    e->epoch = d->epoch ? d->epoch : "";
    e->suites = (const char **)(uintptr_t)&d->suite;
    e->n_suites = 1;
    /* As `gate run` would: the confirmation decides where there is one. */
    enum document_stage stage = STAGE_FIRST;
    for (size_t i = 0; i < c->n_processes; i++)
        if (c->processes[i].stage == STAGE_CONFIRMATION)
            stage = STAGE_CONFIRMATION;
    if (!baseline_of_arm(e, c->processes, c->n_processes, stage, arm))
        return gate_fail(err, GATE_IO,
                         "run %s has no time of the control kernel for '%s', which a baseline "
                         "needs: measure the case again",
                         d->uuid, c->id);
    take_library(d, arm, out);
    return GATE_OK;
}

/* ---- the baselines ---- */

#define OF accepted
static const struct field accepted_fields[] = {
    {.key = "case", .kind = FIELD_TEXT, .offset = offsetof(struct OF, entry.case_id)},
    {.key = "device_model", .kind = FIELD_TEXT, .offset = offsetof(struct OF, entry.device_model)},
    ANY(from_ns, NULLABLE),
    {.key = "to_ns", .kind = FIELD_NUMBER, .offset = offsetof(struct OF, entry.p50_ns)},
    {.key = "run_uuid", .kind = FIELD_TEXT, .offset = offsetof(struct OF, entry.run_uuid)},
};
static const struct shape accepted_shape = SHAPE_OF(accepted);
#undef OF

/* All are of one run, and so of one library. A pattern's answer is a list, of one as well. */
static enum gate_status print(const struct baseline_request *r, const char *path,
                              const struct accepted *accepted, size_t n, struct gate_error *err)
{
    static const struct list_kind kind = {.shape = &accepted_shape};
    const struct baseline_entry *first = &accepted->entry;
    char p50[UNITS_MAX], change[UNITS_MAX];
    RELEASED_BY(list_release) struct list l;
    list_open(&l, &kind, r->json);
    if (r->json && is_pattern(r)) {
        for (size_t i = 0; i < n; i++)
            list_row(&l, &accepted[i]);
        return list_print(&l, NULL, err);
    }
    if (r->json) {
        fields_write_spaced(&accepted_shape, accepted, &l.text);
        buf_putc(&l.text, '\n');
    } else {
        /* The numbers of the run. What the baselines held before was measured on another day: the
         * two p50s beside each other would contradict the pairs of the run. */
        for (const struct accepted *a = accepted; a < accepted + n; a++) {
            term_puts(a->entry.case_id, &l.text);
            buf_printf(&l.text, " on %s: %s, run %.8s", a->entry.device_model,
                       units_duration(a->entry.p50_ns, p50), a->entry.run_uuid);
            if (a->ratio > 0)
                buf_printf(&l.text, " (%s beside its baseline)", units_change(a->ratio, change));
            buf_puts(&l.text, ", in ");
            term_puts(path, &l.text);
            buf_putc(&l.text, '\n');
        }
        if (!accepted->is_at_hand)
            buf_printf(&l.text,
                       "the library %.16s... is not in the cache of this machine: a run takes it "
                       "from its own cache or from the tracking server",
                       first->library_sha256);
        if (!accepted->is_at_hand && first->commit[0] && !first->dirty)
            buf_printf(&l.text, ", or rebuilds commit %.12s", first->commit);
        buf_puts(&l.text, accepted->is_at_hand ? "commit " : "\ncommit ");
        term_puts(path, &l.text);
        buf_puts(&l.text, ": the next run compares with it\n");
    }
    return command_write(NULL, &l.text, err);
}

static void release_baseline(struct baseline **b)
{
    baseline_free(*b);
}

static void unlock(const int *lock)
{
    if (*lock >= 0)
        close(*lock);
}

enum gate_status baseline_accept(const struct baseline_request *r, struct gate_error *err)
{
    RELEASED_BY(command_close_store) struct store *store = NULL;
    RELEASED_BY(document_release) struct document d = {0};
    RELEASED_BY(release_baseline) struct baseline *baseline = NULL;
    RELEASED_BY(unlock) int lock = -1;
    char author[400];
    struct baseline_entry old = {0};
    size_t n = 0;
    enum gate_status status = store_open(r->db, STORE_READ_ONLY, &store, err);
    if (status && access(r->db, F_OK) != 0)
        status = not_here(r, status, err);
    TRY(status);
    TRY(open_run(r, store, &d, err));
    if (d.git.dirty && !r->allow_dirty)
        return gate_fail(err, GATE_USAGE,
                         "run %.8s was measured with uncommitted changes, so no commit builds its "
                         "library: commit them and measure again, or add --allow-dirty",
                         d.uuid);
    RELEASED_BY(free_at) struct accepted *list = xcalloc(d.n_cases, sizeof *list);
    for (const struct document_case *c = d.cases; c < d.cases + d.n_cases; c++) {
        /* Of a pattern, what the library does not serve is no part. */
        if (fnmatch(r->cases, c->id, 0) || (is_pattern(r) && is_usable(c) && !find_measured(c)))
            continue;
        TRY(read_measurement(&d, c, &list[n], err));
        n++;
    }
    if (!n)
        return gate_fail(err, GATE_USAGE, "run %.8s has no verified measurement of '%s'", d.uuid,
                         r->cases);
    RELEASED_BY(free_at) char *path = baseline_path(r->baselines, d.device.model);
    TRY(baseline_lock(r->baselines, &lock, err));
    TRY(baseline_load(path, d.device.model, &baseline, err));
    origin_author(author, sizeof author);
    const struct baseline_note note = {BASELINE_ACCEPT, r->reason, author, clock_wall_ms()};
    for (struct accepted *a = list; a < list + n; a++) {
        if (baseline_find(baseline, a->entry.case_id, d.contract, &old))
            a->from_ns = old.p50_ns;
        TRY(baseline_set(baseline, a->entry.case_id, d.contract, &a->entry, &note, err));
    }
    TRY(baseline_save(baseline, path, err));
    return print(r, path, list, n, err);
}

/* ---- retire ---- */

struct retiring {
    const struct baseline_request *request;
    const struct baseline_note *note;
    size_t n; /* device models whose file has the case */
};

static enum gate_status retire(void *context, const char *model, const struct baseline *found,
                               struct gate_error *err)
{
    struct retiring *r = context;
    const char *case_id = r->request->cases;
    struct baseline_entry entry;
    RELEASED_BY(release_baseline) struct baseline *baseline = NULL;
    RELEASED_BY(free_at) char *path = baseline_path(r->request->baselines, model);
    if (!baseline_find(found, case_id, baseline_stored(found)->contract, &entry))
        return GATE_OK;
    r->n++;
    TRY(baseline_load(path, model, &baseline, err));
    TRY(baseline_retire(baseline, case_id, r->note, err));
    TRY(baseline_save(baseline, path, err));
    printf("the baseline of %s on %s is retired; commit '%s'\n", case_id, model, path);
    return GATE_OK;
}

enum gate_status baseline_retire_case(const struct baseline_request *r, struct gate_error *err)
{
    char author[400];
    RELEASED_BY(unlock) int lock = -1;
    origin_author(author, sizeof author);
    const struct baseline_note note = {BASELINE_RETIRE, r->reason, author, clock_wall_ms()};
    struct retiring retiring = {r, &note, 0};
    if (strpbrk(r->cases, "*?"))
        return gate_fail(err, GATE_USAGE, "retire takes the id of one case, and '%s' is a pattern",
                         r->cases);
    TRY(baseline_lock(r->baselines, &lock, err));
    TRY(baseline_files_each(r->baselines, r->device_model, retire, &retiring, err));
    if (retiring.n)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "'%s' has no baseline in '%s': `gate baseline show` lists those that are "
                     "there",
                     r->cases, r->baselines);
}
