/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c: see baseline.h.
 *
 * A set is kept as the file that it is stored as. Its cases are sorted when it is read, and a new
 * one is inserted at its place.
 */
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

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/baseline/baseline_record.h"
#include "gate/decide/decide_bounds.h"
#include "gate/decide/stats.h"
#include "gate/document/fields_table.h"

#define MAX_FILE (64u * 1024 * 1024)

struct baseline {
    struct baseline_file file;
    cJSON *tree;  /* that the texts of what was read are of */
    char **texts; /* those of what was stored since */
    size_t n_texts;
};

const char *baseline_action_name(enum baseline_action action)
{
    return field_actions[action];
}

char *baseline_path(const char *folder, const char *device_model)
{
    char *path;
    return asprintf(&path, "%s/%s.json", folder, device_model) < 0 ? NULL : path;
}

/* ---- reading ---- */

static int compare_cases(const void *a, const void *b)
{
    return strcmp(((const struct file_case *)a)->id, ((const struct file_case *)b)->id);
}

static int compare_trends(const void *a, const void *b)
{
    return strcmp(((const struct file_trend *)a)->id, ((const struct file_trend *)b)->id);
}

static enum gate_status read_file(struct baseline *b, const char *path, const char *device_model,
                                  struct gate_error *err)
{
    struct buf text;
    unsigned line, column;
    struct baseline_file *f = &b->file;
    buf_init(&text, MAX_FILE);
    enum gate_status status = file_read(path, &text, err);
    if (status == GATE_OK)
        status = fields_parse(&baseline_file_shape, path, 1, text.data, text.len, GATE_IO, f,
                              &b->tree, err);
    if (status != GATE_OK)
        goto out;
    /* A file that was edited by hand may have them in any order. */
    qsort(f->cases, f->n_cases, sizeof(*f->cases), compare_cases);
    if (f->n_trends)
        qsort(f->trends, f->n_trends, sizeof(*f->trends), compare_trends);
    if (device_model && strcmp(f->device_model, device_model) != 0) {
        json_locate(b->tree, text.data, text.len, "/device_model", false, &line, &column);
        status =
            gate_fail(err, GATE_ENVIRONMENT, "%s:%u:%u: these baselines are of '%s', not of '%s'",
                      path, line, column, f->device_model, device_model);
    }
out:
    buf_release(&text);
    return status;
}

/* A copy of a text, which is the set's; NULL: out of memory. */
static const char *keep_text(struct baseline *b, const char *text)
{
    char *copy = strdup(text);
    char **texts = copy ? realloc(b->texts, (b->n_texts + 1) * sizeof(*texts)) : NULL;
    if (!texts) {
        free(copy);
        return NULL;
    }
    b->texts = texts;
    texts[b->n_texts++] = copy;
    return copy;
}

enum gate_status baseline_load(const char *path, const char *device_model, struct baseline **out,
                               struct gate_error *err)
{
    struct baseline *b = calloc(1, sizeof(*b));
    enum gate_status status = GATE_OK;
    if (!b)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", path);
    b->file = (struct baseline_file){.schema = "gate-baseline/1", .contract = ""};
    if (access(path, F_OK) == 0 || errno != ENOENT)
        status = read_file(b, path, device_model, err);
    else if (!(b->file.device_model = keep_text(b, device_model ? device_model : "")))
        status = gate_fail(err, GATE_INTERNAL, "%s: out of memory", path);
    if (status != GATE_OK) {
        baseline_free(b);
        return status;
    }
    *out = b;
    return GATE_OK;
}

void baseline_free(struct baseline *b)
{
    if (!b)
        return;
    fields_release(&baseline_file_shape, &b->file);
    cJSON_Delete(b->tree);
    for (size_t i = 0; i < b->n_texts; i++)
        free(b->texts[i]);
    free(b->texts);
    free(b);
}

const char *baseline_contract(const struct baseline *b)
{
    return b->file.contract;
}

void baseline_write_entry(const struct baseline *b, const char *device_model, const char *case_id,
                          const struct baseline_entry *entry, struct buf *out)
{
    struct file_entry listed = record_write(entry);
    listed.device_model = device_model;
    listed.contract = baseline_contract(b);
    listed.case_id = case_id;
    fields_write_spaced(&baseline_listed_entry_shape, &listed, out);
}

void baseline_write_change(const char *device_model, const struct baseline_change *change,
                           struct buf *out)
{
    struct file_change listed = record_write_change(change);
    listed.device_model = device_model;
    fields_write_spaced(&baseline_listed_change_shape, &listed, out);
}

/* NULL: there is none. */
static struct file_case *find_case(const struct baseline *b, const char *case_id)
{
    const struct file_case key = {.id = case_id};
    return b->file.n_cases
               ? bsearch(&key, b->file.cases, b->file.n_cases, sizeof(key), compare_cases)
               : NULL;
}

bool baseline_find(const struct baseline *b, const char *case_id, const char *contract,
                   struct baseline_entry *out)
{
    const struct file_case *found = find_case(b, case_id);
    if (!found || strcmp(baseline_contract(b), contract) != 0)
        return false;
    *out = record_read(&found->entry);
    return true;
}

/* ---- storing ---- */

/* A file with only this change is checked before anything is touched. `c` NULL: no case is left. */
static enum gate_status check_change(const struct baseline *b, const char *contract,
                                     struct file_case *c, struct file_change *change,
                                     struct gate_error *err)
{
    struct baseline_file read, alone = {.schema = b->file.schema,
                                        .device_model = b->file.device_model,
                                        .contract = contract,
                                        .cases = c,
                                        .n_cases = c != NULL,
                                        .log = change,
                                        .n_log = 1};
    struct field_fault fault;
    struct buf text;
    cJSON *tree = NULL;
    buf_init(&text, MAX_FILE);
    baseline_file_write(&alone, &text);
    enum gate_status status =
        text.failed ? gate_fail(err, GATE_INTERNAL, "out of memory")
                    : json_parse("record", text.data, text.len, GATE_USAGE, &tree, err);
    if (!status && fields_read(&baseline_file_shape, tree, &read, &fault))
        fields_release(&baseline_file_shape, &read);
    else if (!status)
        status = gate_fail(err, GATE_USAGE, "can't change the baseline of '%s': %s: %s",
                           change->case_id, fault.pointer, fault.message);
    cJSON_Delete(tree);
    buf_release(&text);
    return status;
}

/* What each action promises of the baseline that was there (`old`, NULL: none). */
static enum gate_status check_action(const char *case_id, const struct file_entry *old,
                                     const struct baseline_entry *entry,
                                     enum baseline_action action, struct gate_error *err)
{
    double from_ns = old ? old->p50_ns : 0;
    if (action == BASELINE_ACCEPT_NEW && old)
        return gate_fail(err, GATE_INTERNAL, "'%s' has a baseline of %.6g ns, so none is new",
                         case_id, from_ns);
    bool lowers = action == BASELINE_RATCHET || action == BASELINE_TREND;
    if ((lowers || action == BASELINE_EPOCH) && !old)
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could be %s", case_id,
                         lowers ? "lowered" : "measured anew");
    if (action == BASELINE_EPOCH && strcmp(old->library_sha256, entry->library_sha256) != 0)
        return gate_fail(err, GATE_INTERNAL,
                         "the baseline of '%s' is another library's in a new epoch", case_id);
    if (lowers && !(entry->p50_ns < from_ns))
        return gate_fail(
            err, GATE_INTERNAL,
            "the baseline of '%s' is %.6g ns and is only ever lowered, not set to %.6g ns", case_id,
            from_ns, entry->p50_ns);
    return GATE_OK;
}

/* Makes each of the texts, those that are there, the set's; false: out of memory. */
static bool keep_texts(struct baseline *b, const char **const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (*texts[i] && !(*texts[i] = keep_text(b, *texts[i])))
            return false;
    return true;
}

#define KEEP(b, ...)                                                                               \
    keep_texts(b, (const char **const[]){__VA_ARGS__},                                             \
               sizeof((const char **const[]){__VA_ARGS__}) / sizeof(char **))

/* Room for one more item in a list; false: out of memory. */
static bool grow(void *list, size_t n, size_t size)
{
    void *grown = realloc(*(void **)list, (n + 1) * size);
    if (grown)
        *(void **)list = grown;
    return grown != NULL;
}

/* Inserts an item that begins with its id into a sorted list that has room. */
static void *insert(void *list, size_t *n, const void *item, size_t size)
{
    char *at = (char *)list + *n * size;
    for (; at > (char *)list; at -= size) {
        if (strcmp(*(char **)(void *)(at - size), *(char *const *)item) < 0)
            break;
        memcpy(at, at - size, size);
    }
    memcpy(at, item, size);
    ++*n;
    return at;
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Puts the suites that the baseline was taken in before in front of the new ones, in an array of
 * the set's; false: out of memory. */
static bool keep_suites(struct baseline *b, const struct file_entry *old, struct file_entry *e)
{
    const char **suites = calloc(BASELINE_SUITES_MAX, sizeof(*suites));
    size_t n = 0;
    for (; suites && old && n < old->n_suites; n++)
        suites[n] = old->suites[n];
    for (size_t i = 0; suites && i < e->n_suites && n < BASELINE_SUITES_MAX; i++) {
        if (is_among(e->suites[i], suites, n))
            continue;
        suites[n] = e->suites[i];
        if (!KEEP(b, &suites[n++])) {
            free(suites);
            return false;
        }
    }
    e->suites = suites;
    e->n_suites = n;
    if (suites && !n) {
        free(suites);
        e->suites = NULL;
    }
    return suites != NULL;
}

static enum gate_status store(struct baseline *b, const char *contract, struct file_case *c,
                              struct file_change *change, struct gate_error *err)
{
    struct baseline_file *f = &b->file;
    struct file_entry *e = &c->entry;
    struct file_case *old = find_case(b, c->id);
    if (!keep_suites(b, old ? &old->entry : NULL, e))
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (!grow(&f->cases, f->n_cases, sizeof(*c)) || !grow(&f->log, f->n_log, sizeof(*change)) ||
        !KEEP(b, &contract, &c->id, &e->kernel, &e->commit, &e->run_uuid, &e->epoch,
              &e->library_sha256, &e->code_sha256, &e->vendor, &change->case_id, &change->reason,
              &change->author, &change->commit, &change->run_uuid)) {
        free(e->suites);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    old = find_case(b, c->id); /* the list may have moved */
    if (old) {
        free(old->entry.suites);
        old->entry = *e;
    } else {
        insert(f->cases, &f->n_cases, c, sizeof(*c));
    }
    f->log[f->n_log++] = *change;
    f->contract = contract;
    baseline_trend_end(b, c->id);
    return GATE_OK;
}

enum gate_status baseline_set(struct baseline *b, const char *case_id, const char *contract,
                              const struct baseline_entry *entry, const struct baseline_note *note,
                              struct gate_error *err)
{
    const struct file_case *old = find_case(b, case_id);
    if (b->file.n_cases && strcmp(baseline_contract(b), contract) != 0)
        return gate_fail(err, GATE_USAGE,
                         "the stored baselines are of contract '%s', the measurement is of '%s'; "
                         "to start with the new contract, move the file of the old baselines away",
                         baseline_contract(b), contract);
    enum gate_status status =
        check_action(case_id, old ? &old->entry : NULL, entry, note->action, err);
    if (status != GATE_OK)
        return status;
    struct file_case c = {.id = case_id, .entry = record_write(entry)};
    struct file_change change =
        record_write_change(&(struct baseline_change){.time_ms = note->time_ms,
                                                      .case_id = case_id,
                                                      .action = note->action,
                                                      .from_ns = old ? old->entry.p50_ns : 0,
                                                      .to_ns = entry->p50_ns,
                                                      .reason = note->reason,
                                                      .author = note->author,
                                                      .commit = entry->commit,
                                                      .run_uuid = entry->run_uuid});
    status = check_change(b, contract, &c, &change, err);
    return status ? status : store(b, contract, &c, &change, err);
}

enum gate_status baseline_retire(struct baseline *b, const char *case_id,
                                 const struct baseline_note *note, struct gate_error *err)
{
    struct baseline_file *f = &b->file;
    struct file_case *old = find_case(b, case_id);
    if (!old)
        return gate_fail(err, GATE_USAGE,
                         "'%s' has no baseline on %s: `gate baseline show` lists those that there "
                         "are",
                         case_id, f->device_model);
    struct file_change change =
        record_write_change(&(struct baseline_change){.time_ms = note->time_ms,
                                                      .case_id = case_id,
                                                      .action = BASELINE_RETIRE,
                                                      .from_ns = old->entry.p50_ns,
                                                      .reason = note->reason,
                                                      .author = note->author,
                                                      .commit = old->entry.commit,
                                                      .run_uuid = old->entry.run_uuid});
    enum gate_status status = check_change(b, f->contract, NULL, &change, err);
    if (status)
        return status;
    if (!grow(&f->log, f->n_log, sizeof(change)) ||
        !KEEP(b, &change.case_id, &change.reason, &change.author, &change.commit, &change.run_uuid))
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    f->log[f->n_log++] = change;
    free(old->entry.suites);
    memmove(old, old + 1, (size_t)(f->cases + --f->n_cases - old) * sizeof(*old));
    baseline_trend_end(b, case_id);
    return GATE_OK;
}

/* ---- trends ---- */

static double zero_if_unknown(double value)
{
    return isnan(value) ? 0 : value;
}

static double unknown_if_zero(double value)
{
    return value > 0 ? value : NAN;
}

static struct file_trend *find_trend(const struct baseline *b, const char *case_id)
{
    for (size_t i = 0; i < b->file.n_trends; i++)
        if (!strcmp(b->file.trends[i].id, case_id))
            return &b->file.trends[i];
    return NULL;
}

size_t baseline_trend(const struct baseline *b, const char *case_id,
                      struct baseline_evidence out[BASELINE_TREND_MAX])
{
    const struct file_trend *trend = find_trend(b, case_id);
    size_t n = trend ? trend->n_runs : 0;
    for (size_t i = 0; i < n; i++) {
        const struct file_evidence *e = &trend->runs[i];
        out[i] = (struct baseline_evidence){.time_ms = e->time_ms,
                                            .run_uuid = e->run_uuid,
                                            .commit = e->commit,
                                            .ratio = {e->ratio, e->lo, e->hi},
                                            .again = zero_if_unknown(e->again)};
    }
    return n;
}

/* The trend of a case, begun when there is none; NULL: out of memory. */
static struct file_trend *begin_trend(struct baseline *b, const char *case_id)
{
    struct file_trend begun = {.id = case_id}, *trend = find_trend(b, case_id);
    if (trend)
        return trend;
    begun.runs = calloc(BASELINE_TREND_MAX + 1, sizeof(*begun.runs));
    if (!begun.runs || !grow(&b->file.trends, b->file.n_trends, sizeof(begun)) ||
        !KEEP(b, &begun.id)) {
        free(begun.runs);
        return NULL;
    }
    return insert(b->file.trends, &b->file.n_trends, &begun, sizeof(begun));
}

enum gate_status baseline_trend_add(struct baseline *b, const char *case_id,
                                    const struct baseline_evidence *e, struct gate_error *err)
{
    if (!find_case(b, case_id))
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could move", case_id);
    struct file_evidence run = {.time_ms = e->time_ms,
                                .run_uuid = e->run_uuid,
                                .commit = e->commit,
                                .ratio = e->ratio.value,
                                .lo = e->ratio.lo,
                                .hi = e->ratio.hi,
                                .again = unknown_if_zero(e->again)};
    struct file_trend *trend = KEEP(b, &run.run_uuid, &run.commit) ? begin_trend(b, case_id) : NULL;
    if (!trend || !grow(&trend->runs, trend->n_runs, sizeof(run)))
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    trend->runs[trend->n_runs++] = run;
    if (trend->n_runs > BASELINE_TREND_MAX)
        memmove(trend->runs, trend->runs + 1, --trend->n_runs * sizeof(run));
    return GATE_OK;
}

bool baseline_trend_end(struct baseline *b, const char *case_id)
{
    struct baseline_file *f = &b->file;
    struct file_trend *trend = find_trend(b, case_id);
    if (!trend)
        return false;
    free(trend->runs);
    memmove(trend, trend + 1, (size_t)(f->trends + --f->n_trends - trend) * sizeof(*trend));
    return true;
}

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
    struct buf text;
    enum gate_status status;
    if (!baseline_contract(b)[0])
        return gate_fail(err, GATE_INTERNAL, "'%s': there are no baselines to store", path);
    buf_init(&text, MAX_FILE);
    baseline_file_write(&b->file, &text);
    if (text.failed)
        status = gate_fail(err, GATE_INTERNAL, "'%s': too large, or out of memory", path);
    else
        status = file_write_atomic(path, text.data, text.len, err);
    buf_release(&text);
    return status;
}

void baseline_each(const struct baseline *b, baseline_case_fn fn, void *context)
{
    for (size_t i = 0; i < b->file.n_cases; i++) {
        const struct baseline_entry entry = record_read(&b->file.cases[i].entry);
        fn(context, b->file.cases[i].id, &entry);
    }
}

const char *baseline_made_by(const struct baseline *b, const char *case_id,
                             const struct baseline_entry *entry)
{
    const char *action = NULL;
    for (size_t i = 0; i < b->file.n_log; i++) {
        const struct file_change *c = &b->file.log[i];
        if (!strcmp(c->case_id, case_id) && !strcmp(c->run_uuid, entry->run_uuid) &&
            c->to_ns == entry->p50_ns)
            action = field_actions[c->action];
    }
    return action;
}

void baseline_each_change(const struct baseline *b, baseline_change_fn fn, void *context)
{
    for (size_t i = 0; i < b->file.n_log; i++) {
        const struct baseline_change change = record_read_change(&b->file.log[i]);
        fn(context, &change);
    }
}
