/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c: see baseline.h. */
#include "gate/baseline/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dirent.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/document/fields_table.h"

#define MAX_FILE (64u * 1024 * 1024)

/* ---- the file ---- */

#define POSITIVE(member, flag) NUMBER(member, (flag) | ABOVE, 0, INFINITY)

#define ID_TEXT(member, name)                                                                      \
    {                                                                                              \
        .key = name, .kind = FIELD_TEXT, .flags = REQUIRED, .offset = offsetof(struct OF, member), \
        .least = 1, .most = ID_MAX                                                                 \
    }

static const char *const schemas[] = {"gate-baseline/1", NULL};

#define OF baseline_entry
SHAPE_BY(BASELINE_ENTRY);
static const struct field listed_entry_fields[] = {
    TEXT(device_model, 0, TEXT_MAX), TEXT(contract, 0, TEXT_MAX), ID_TEXT(case_id, "case"),
    BASELINE_ENTRY(FIELD_ROW)};
const struct shape baseline_listed_entry_shape = SHAPE_OF(listed_entry);
#undef OF

#define OF baseline_case
static const struct field baseline_case_fields[] = {PART(entry, baseline_entry)};
SHAPE(baseline_case);
#undef OF

#define OF_RATIO(name, part)                                                                       \
    {                                                                                              \
        .key = name, .kind = FIELD_NUMBER, .flags = REQUIRED | ABOVE,                              \
        .offset = offsetof(struct OF, ratio.part), .most = INFINITY                                \
    }
#define OF baseline_evidence
static const struct field evidence_fields[] = {
    SIZE(time_ms, REQUIRED),
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX),
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    OF_RATIO("ratio", value),
    OF_RATIO("lo", lo),
    OF_RATIO("hi", hi),
    POSITIVE(again, REQUIRED | NULLABLE),
};
SHAPE(evidence);
#undef OF

#define OF baseline_trend
static const struct field baseline_trend_fields[] = {
    LIST(runs, 0, 1, BASELINE_TREND_MAX, evidence)};
SHAPE(baseline_trend);
#undef OF

#define OF baseline_change
SHAPE_BY(BASELINE_CHANGE);
static const struct field listed_change_fields[] = {TEXT(device_model, 0, TEXT_MAX),
                                                    BASELINE_CHANGE(FIELD_ROW)};
const struct shape baseline_listed_change_shape = SHAPE_OF(listed_change);
#undef OF

#define OF baseline_file
SHAPE_BY(BASELINE_FILE);
#undef OF

/* ---- writing ---- */

/* An empty set has cases, too: none. */
static void write_file(const struct baseline_file *f, struct buf *out)
{
    struct baseline_file whole = *f;
    struct baseline_case none;
    whole.cases = f->cases ? f->cases : &none;
    whole.trends = f->n_trends ? f->trends : NULL;
    fields_write_records(&baseline_file_shape, &whole, out);
}

/* ---- reading ---- */

/* The cases are sorted when a file is read, and a new one is inserted at its place. */
struct baseline {
    struct baseline_file file;
    char **texts; /* which those in the file are part of */
    size_t n_texts;
};

char *baseline_path(const char *folder, const char *device_model)
{
    return xasprintf("%s/%s.json", folder, device_model);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes a text of the heap the set's. */
static const char *keep(struct baseline *b, char *text)
{
    b->texts = xrealloc(b->texts, b->n_texts + 1, sizeof *b->texts);
    return b->texts[b->n_texts++] = text;
}

enum gate_status baseline_load(const char *path, const char *device_model, struct baseline **out,
                               struct gate_error *err)
{
    struct baseline *b = xcalloc(1, sizeof *b);
    struct baseline_file *f = &b->file;
    struct fields_taken taken = {.texts = NULL};
    struct stat st;
    RELEASED_BY(buf_release) struct buf text = buf_of(MAX_FILE);
    unsigned line, column;
    *f = (struct baseline_file){.schema = schemas[0], .contract = ""};
    /* A link that leads nowhere is there, and cannot be read. */
    if (lstat(path, &st) && errno == ENOENT) {
        f->device_model = keep(b, xstrdup(device_model ? device_model : ""));
        *out = b;
        return GATE_OK;
    }
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status = fields_parse(&baseline_file_shape, path, 1, text.data, text.len, GATE_IO, f,
                              &taken, err);
    keep(b, taken.texts);
    if (!status && device_model && strcmp(f->device_model, device_model) != 0) {
        json_locate(text.data, text.len, "/device_model", false, &line, &column);
        status =
            gate_fail(err, GATE_ENVIRONMENT, "%s:%u:%u: these baselines are of '%s', not of '%s'",
                      path, line, column, f->device_model, device_model);
    }
    if (status) {
        baseline_free(b);
        return status;
    }
    /* A file that was edited by hand may have them in any order. */
    qsort(f->cases, f->n_cases, sizeof *f->cases, compare_ids);
    if (f->n_trends)
        qsort(f->trends, f->n_trends, sizeof *f->trends, compare_ids);
    *out = b;
    return GATE_OK;
}

void baseline_free(struct baseline *b)
{
    if (!b)
        return;
    fields_release(&baseline_file_shape, &b->file);
    for (size_t i = 0; i < b->n_texts; i++)
        free(b->texts[i]);
    free(b->texts);
    free(b);
}

const struct baseline_file *baseline_stored(const struct baseline *b)
{
    return &b->file;
}

/* NULL: there is none. */
static struct baseline_case *find_case(const struct baseline *b, const char *case_id)
{
    const struct baseline_file *f = &b->file;
    return f->n_cases ? bsearch(&case_id, f->cases, f->n_cases, sizeof *f->cases, compare_ids)
                      : NULL;
}

bool baseline_find(const struct baseline *b, const char *case_id, const char *contract,
                   struct baseline_entry *out)
{
    const struct baseline_case *found = find_case(b, case_id);
    if (!found || strcmp(b->file.contract, contract) != 0)
        return false;
    *out = found->entry;
    return true;
}

const char *baseline_made_by(const struct baseline *b, const char *case_id,
                             const struct baseline_entry *entry)
{
    const char *action = NULL;
    for (size_t i = 0; i < b->file.n_log; i++) {
        const struct baseline_change *c = &b->file.log[i];
        if (!strcmp(c->case_id, case_id) && !strcmp(c->run_uuid, entry->run_uuid) &&
            c->to_ns == entry->p50_ns)
            action = field_actions[c->action];
    }
    return action;
}

/* ---- what of a run becomes a baseline ---- */

void baseline_clear(struct baseline_entry *entry)
{
    fields_clear(&baseline_listed_entry_shape, entry);
}

/* ---- storing ---- */

bool baseline_is_of_op(const struct baseline_entry *entry, const char *op_sha256)
{
    return entry->op_sha256 && op_sha256 ? !strcmp(entry->op_sha256, op_sha256)
                                         : entry->op_sha256 == op_sha256;
}

/* What each action promises of the baseline that was there (`old`, NULL: none). */
static enum gate_status check_action(const char *case_id, const struct baseline_entry *old,
                                     const struct baseline_entry *entry,
                                     enum baseline_action action, struct gate_error *err)
{
    bool lowers = action == BASELINE_RATCHET || action == BASELINE_TREND;
    const char *why = NULL;
    if (action == BASELINE_ACCEPT_NEW && old && baseline_is_of_op(old, entry->op_sha256))
        why = "it is there already";
    else if ((lowers || action == BASELINE_EPOCH) && !old)
        why = "it is not there";
    else if (action == BASELINE_EPOCH && strcmp(old->library_sha256, entry->library_sha256) != 0)
        why = "its library is another";
    else if (lowers && !(entry->p50_ns < old->p50_ns))
        why = "it is only ever lowered";
    return why ? gate_fail(err, GATE_INTERNAL,
                           "the baseline of '%s', %.6g ns, cannot become %.6g ns by %s: %s",
                           case_id, old ? old->p50_ns : NAN, entry->p50_ns, field_actions[action],
                           why)
               : GATE_OK;
}

/* Inserts an item that begins with its id into a sorted list; returns the list, which has moved. */
static void *insert(void *list, size_t *n, const void *item, size_t size)
{
    char *longer = xrealloc(list, *n + 1, size), *at = longer + *n * size;
    for (; at > longer && compare_ids(at - size, item) >= 0; at -= size)
        memcpy(at, at - size, size);
    memcpy(at, item, size);
    ++*n;
    return longer;
}

/* A file that people review has no digits that no clock knows. */
static void round_digits(struct baseline_entry *e)
{
    double *const times[] = {&e->p50_ns, &e->p50_lo_ns, &e->p50_hi_ns, &e->p90_ns, &e->control_ns};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (*times[i] >= 1)
            *times[i] = round(*times[i] * 100) / 100;
    e->spread = round(e->spread * 1e6) / 1e6;
}

/* Stores a change of one case: written as a file of its own and read again, so that it fits the
 * schema, and its texts and lists are the set's. `c` NULL: no case is left. */
static enum gate_status store(struct baseline *b, const char *case_id, const char *contract,
                              struct baseline_case *c, const struct baseline_note *note,
                              struct gate_error *err)
{
    struct baseline_case *old = find_case(b, case_id);
    const struct baseline_entry *of = c ? &c->entry : &old->entry;
    struct baseline_change change = {.time_ms = note->time_ms,
                                     .case_id = case_id,
                                     .action = (int)note->action,
                                     .from_ns = old ? old->entry.p50_ns : NAN,
                                     .to_ns = c ? c->entry.p50_ns : NAN,
                                     .reason = note->reason,
                                     .author = note->author,
                                     .commit = of->commit,
                                     .run_uuid = of->run_uuid};
    struct baseline_file read, *f = &b->file,
                               alone = {.schema = f->schema,
                                        .device_model = f->device_model,
                                        .contract = contract,
                                        .cases = c,
                                        .n_cases = c != NULL,
                                        .log = &change,
                                        .n_log = 1};
    struct fields_taken taken = {.texts = NULL};
    struct field_fault fault;
    RELEASED_BY(buf_release) struct buf text = buf_of(MAX_FILE);
    write_file(&alone, &text);
    if (text.failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (!fields_take(&baseline_file_shape, text.data, text.len, &read, &taken, &fault))
        return gate_fail(err, GATE_USAGE, "can't change the baseline of '%s': %s: %s", case_id,
                         fault.pointer, fault.message);
    keep(b, taken.texts);
    if (old) {
        free(old->entry.suites);
        free(old->entry.outputs);
    }
    if (old && c)
        *old = read.cases[0];
    else if (c)
        f->cases = insert(f->cases, &f->n_cases, read.cases, sizeof *read.cases);
    else
        memmove(old, old + 1, (size_t)(f->cases + --f->n_cases - old) * sizeof *old);
    f->log = xrealloc(f->log, f->n_log + 1, sizeof *f->log);
    f->log[f->n_log++] = read.log[0];
    f->contract = read.contract;
    free(read.cases);
    free(read.log);
    baseline_trend_end(b, case_id);
    return GATE_OK;
}

enum gate_status baseline_set(struct baseline *b, const char *case_id, const char *contract,
                              const struct baseline_entry *entry, const struct baseline_note *note,
                              struct gate_error *err)
{
    struct baseline_file *f = &b->file;
    struct baseline_case *old = find_case(b, case_id);
    if (f->n_cases && strcmp(f->contract, contract) != 0)
        return gate_fail(err, GATE_USAGE,
                         "the stored baselines are of contract '%s', the measurement is of '%s'; "
                         "to start with the new contract, move the file of the old baselines away",
                         f->contract, contract);
    struct baseline_case c = {.id = case_id, .entry = *entry};
    struct baseline_entry *e = &c.entry;
    const char *suites[BASELINE_SUITES_MAX]; /* those that it was taken in before come first */
    size_t n = 0;
    for (; old && n < old->entry.n_suites; n++)
        suites[n] = old->entry.suites[n];
    for (size_t i = 0; i < entry->n_suites && n < BASELINE_SUITES_MAX; i++) {
        size_t k = 0;
        while (k < n && strcmp(suites[k], entry->suites[i]) != 0)
            k++;
        suites[n] = entry->suites[i];
        n += k == n;
    }
    e->suites = n ? suites : NULL;
    e->n_suites = n;
    round_digits(e);
    TRY(check_action(case_id, old ? &old->entry : NULL, entry, note->action, err));
    return store(b, case_id, contract, &c, note, err);
}

enum gate_status baseline_retire(struct baseline *b, const char *case_id,
                                 const struct baseline_note *note, struct gate_error *err)
{
    if (!find_case(b, case_id))
        return gate_fail(err, GATE_USAGE,
                         "'%s' has no baseline on %s: `gate baseline show` lists those that there "
                         "are",
                         case_id, b->file.device_model);
    return store(b, case_id, b->file.contract, NULL, note, err);
}

/* ---- trends ---- */

struct baseline_trend *baseline_trend(const struct baseline *b, const char *case_id)
{
    for (size_t i = 0; i < b->file.n_trends; i++)
        if (!strcmp(b->file.trends[i].id, case_id))
            return &b->file.trends[i];
    return NULL;
}

enum gate_status baseline_trend_add(struct baseline *b, const char *case_id,
                                    const struct baseline_evidence *e, struct gate_error *err)
{
    struct baseline_file *f = &b->file;
    if (!find_case(b, case_id))
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could move", case_id);
    struct baseline_evidence run = *e;
    run.run_uuid = keep(b, xstrdup(run.run_uuid));
    run.commit = keep(b, xstrdup(run.commit));
    struct baseline_trend *trend = baseline_trend(b, case_id);
    if (!trend) {
        const struct baseline_trend begun = {.id = keep(b, xstrdup(case_id))};
        f->trends = insert(f->trends, &f->n_trends, &begun, sizeof begun);
        trend = baseline_trend(b, case_id);
    }
    trend->runs = xrealloc(trend->runs, trend->n_runs + 1, sizeof run);
    trend->runs[trend->n_runs++] = run;
    if (trend->n_runs > BASELINE_TREND_MAX)
        memmove(trend->runs, trend->runs + 1, --trend->n_runs * sizeof run);
    return GATE_OK;
}

bool baseline_trend_end(struct baseline *b, const char *case_id)
{
    struct baseline_file *f = &b->file;
    struct baseline_trend *trend = baseline_trend(b, case_id);
    if (!trend)
        return false;
    free(trend->runs);
    memmove(trend, trend + 1, (size_t)(f->trends + --f->n_trends - trend) * sizeof *trend);
    return true;
}

/* ---- the folder ---- */

enum gate_status baseline_lock(const char *folder, int *fd, struct gate_error *err)
{
    int locked = -1;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return gate_fail(err, GATE_IO, "cannot create '%s': %s", folder, strerror(errno));
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (*fd >= 0 && (locked = flock(*fd, LOCK_EX)) && errno == EINTR)
        continue;
    if (!locked)
        return GATE_OK;
    enum gate_status status = gate_fail(err, GATE_IO, "cannot open and lock the folder '%s': %s",
                                        folder, strerror(errno));
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return status;
}

enum gate_status baseline_save(const struct baseline *b, const char *path, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(MAX_FILE);
    if (!b->file.contract[0])
        return gate_fail(err, GATE_INTERNAL, "'%s': there are no baselines to store", path);
    write_file(&b->file, &text);
    return text.failed ? gate_fail(err, GATE_INTERNAL, "'%s': too large, or out of memory", path)
                       : file_write_atomic(path, text.data, text.len, err);
}

static int is_baseline_file(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

enum gate_status baseline_files_each(const char *folder, const char *device_model,
                                     baseline_file_fn fn, void *context, struct gate_error *err)
{
    struct dirent **entries = NULL;
    enum gate_status status = GATE_OK;
    int n = device_model ? 1 : scandir(folder, &entries, is_baseline_file, alphasort);
    if (n < 0)
        return gate_fail(err, GATE_IO, "cannot read the folder '%s': %s%s", folder, strerror(errno),
                         errno == ENOENT ? "; gate run --accept-new makes it" : "");
    for (int i = 0; i < n; i++) {
        struct baseline *baseline = NULL;
        if (entries)
            entries[i]->d_name[strlen(entries[i]->d_name) - 5] = '\0';
        const char *model = entries ? entries[i]->d_name : device_model;
        char *path = baseline_path(folder, model);
        if (!status)
            status = baseline_load(path, model, &baseline, err);
        if (!status)
            status = fn(context, model, baseline, err);
        baseline_free(baseline);
        free(path);
        free(entries ? entries[i] : NULL);
    }
    free(entries);
    return status;
}
