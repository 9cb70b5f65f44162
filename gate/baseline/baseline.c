/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c: see baseline.h.
 *
 * A set is kept as the JSON document that it is stored as. Its cases are sorted when it is read,
 * and a new one is inserted at its place.
 */
#include "gate/baseline/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/baseline/baseline_file.h"
#include "gate/baseline/baseline_write.h"
#include "gate/decide/decide_bounds.h"
#include "gate/decide/stats.h"

#define MAX_FILE (64u * 1024 * 1024)

struct baseline {
    cJSON *document;
};

static const char *const action_names[BASELINE_ACTION_COUNT] = {
    [BASELINE_ACCEPT_NEW] = "accept-new", [BASELINE_ACCEPT] = "accept",
    [BASELINE_RATCHET] = "ratchet",       [BASELINE_TREND] = "trend",
    [BASELINE_EPOCH] = "epoch",
};

const char *baseline_action_name(enum baseline_action action)
{
    return action_names[action];
}

static enum baseline_action action_of_name(const char *name)
{
    for (int a = 0; a < BASELINE_ACTION_COUNT; a++) {
        if (strcmp(action_names[a], name) == 0)
            return (enum baseline_action)a;
    }
    return BASELINE_ACCEPT; /* not reached: the schema knows no other name */
}

bool baseline_control(struct baseline_entry *entry, const double *p50_ns, const double *control_ns,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(p50_ns[i] > 0 && control_ns[i] > 0))
            return false;
    }
    double *x = n ? calloc(n, sizeof(*x)) : NULL;
    if (!x)
        return false;
    for (size_t i = 0; i < n; i++)
        x[i] = log(p50_ns[i] / control_ns[i]);
    entry->spread = stats_deviation(x, n);
    memcpy(x, control_ns, n * sizeof(*x));
    entry->control_ns = stats_middle(x, n);
    free(x);
    return true;
}

void baseline_allow_for(struct baseline_entry *entry, const double *half_width, size_t n)
{
    entry->spread = fmax(entry->spread, decide_bounds(half_width, n).value);
}

/* NAN: not known. */
static void add_output(struct baseline_error *e, const char *name, double rel_fro)
{
    if (isnan(rel_fro) || e->n_outputs == BASELINE_OUTPUTS_MAX)
        return;
    struct baseline_output *to = &e->outputs[e->n_outputs++];
    snprintf(to->name, sizeof to->name, "%s", name);
    to->rel_fro = rel_fro;
}

static void read_outputs(const cJSON *outputs, struct baseline_error *e)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, outputs)
        if (cJSON_IsNumber(one) && one->string)
            add_output(e, one->string, one->valuedouble);
}

struct baseline_error baseline_error_of_document(const struct document_verify *v)
{
    struct baseline_error e = {
        .known = !isnan(v->rel_fro),
        .rel_fro = isnan(v->rel_fro) ? 0 : v->rel_fro,
        .vendor_ratio = isnan(v->vendor_ratio) ? 0 : v->vendor_ratio,
    };
    snprintf(e.vendor, sizeof e.vendor, "%s", v->vendor ? v->vendor : "");
    add_output(&e, "dx", v->has_outputs ? v->outputs.dx : NAN);
    add_output(&e, "dw", v->has_outputs ? v->outputs.dw : NAN);
    add_output(&e, "db", v->has_outputs ? v->outputs.db : NAN);
    return e;
}

struct baseline_error baseline_error_of(const cJSON *verify)
{
    struct baseline_error e = {
        .known = cJSON_IsNumber(json_member(verify, "rel_fro")),
        .rel_fro = json_number(verify, "rel_fro", 0),
        .vendor_ratio = json_number(verify, "vendor_ratio", 0),
    };
    snprintf(e.vendor, sizeof e.vendor, "%s", json_string(verify, "vendor", ""));
    read_outputs(json_member(verify, "outputs"), &e);
    return e;
}

char *baseline_path(const char *folder, const char *device_model)
{
    char *path;
    return asprintf(&path, "%s/%s.json", folder, device_model) < 0 ? NULL : path;
}

static cJSON *empty_document(const char *device_model)
{
    cJSON *d = cJSON_CreateObject();
    if (cJSON_AddStringToObject(d, "schema", "gate-baseline/1") &&
        cJSON_AddStringToObject(d, "device_model", device_model ? device_model : "") &&
        cJSON_AddStringToObject(d, "contract", "") && cJSON_AddObjectToObject(d, "cases") &&
        cJSON_AddArrayToObject(d, "log"))
        return d;
    cJSON_Delete(d);
    return NULL;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* A file that was edited by hand may have them in any order. */
static bool sort_members(cJSON *object)
{
    size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
    cJSON **items = calloc(n + 1, sizeof(cJSON *));
    if (!items)
        return false;
    for (; object->child; i++)
        items[i] = cJSON_DetachItemViaPointer(object, object->child);
    qsort(items, n, sizeof(cJSON *), compare_items);
    for (i = 0; i < n; i++)
        cJSON_AddItemToArray(object, items[i]); /* keeps the key that it has */
    free(items);
    return true;
}

static enum gate_status read_document(struct baseline *b, const char *path,
                                      const char *device_model, struct gate_error *err)
{
    struct buf text;
    unsigned line, column;
    buf_init(&text, MAX_FILE);
    enum gate_status status = file_read(path, &text, err);
    if (status == GATE_OK)
        status =
            fields_parse(&baseline_file, path, 1, text.data, text.len, GATE_IO, &b->document, err);
    if (status != GATE_OK)
        goto out;

    const char *found = json_string(b->document, "device_model", "");
    if (device_model && strcmp(found, device_model) != 0) {
        json_locate(b->document, text.data, text.len, "/device_model", false, &line, &column);
        status =
            gate_fail(err, GATE_ENVIRONMENT, "%s:%u:%u: these baselines are of '%s', not of '%s'",
                      path, line, column, found, device_model);
    } else if (!sort_members(cJSON_GetObjectItemCaseSensitive(b->document, "cases"))) {
        status = gate_fail(err, GATE_INTERNAL, "%s: out of memory", path);
    }
out:
    buf_release(&text);
    return status;
}

enum gate_status baseline_load(const char *path, const char *device_model, struct baseline **out,
                               struct gate_error *err)
{
    struct baseline *b = calloc(1, sizeof(*b));
    enum gate_status status = GATE_OK;
    if (!b)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", path);
    if (access(path, F_OK) == 0 || errno != ENOENT)
        status = read_document(b, path, device_model, err);
    else if (!(b->document = empty_document(device_model)))
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
    cJSON_Delete(b->document);
    free(b);
}

const char *baseline_contract(const struct baseline *b)
{
    return json_string(b->document, "contract", "");
}

static void read_entry(const cJSON *item, struct baseline_entry *out)
{
    *out = (struct baseline_entry){
        .p50_ns = json_number(item, "p50_ns", 0),
        .p50_lo_ns = json_number(item, "p50_lo_ns", 0),
        .p50_hi_ns = json_number(item, "p50_hi_ns", 0),
        .p90_ns = json_number(item, "p90_ns", 0),
        .control_ns = json_number(item, "control_ns", 0),
        .spread = json_number(item, "spread", 0),
        .time_ms = json_integer(item, "time_ms", 0),
        .kernel = json_string(item, "kernel", ""),
        .commit = json_string(item, "commit", ""),
        .run_uuid = json_string(item, "run_uuid", ""),
        .library_sha256 = json_string(item, "library_sha256", ""),
        .code_sha256 = json_string(item, "code_sha256", ""),
        .dirty = json_bool(item, "dirty", false),
        .epoch = json_string(item, "epoch", ""),
        .error = baseline_error_of(item),
    };
}

bool baseline_find(const struct baseline *b, const char *case_id, const char *contract,
                   struct baseline_entry *out)
{
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(b->document, "cases");
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cases, case_id);
    if (!item || strcmp(baseline_contract(b), contract) != 0)
        return false;
    read_entry(item, out);
    return true;
}

static bool put_outputs(cJSON *to, const struct baseline_error *e)
{
    cJSON *outputs = e->n_outputs ? cJSON_AddObjectToObject(to, "outputs") : NULL;
    bool put = outputs || !e->n_outputs;
    for (unsigned i = 0; i < e->n_outputs && put; i++)
        put = cJSON_AddNumberToObject(outputs, e->outputs[i].name, e->outputs[i].rel_fro) != NULL;
    return put;
}

static bool put_error(cJSON *to, const struct baseline_error *e)
{
    if (!e->known)
        return true;
    if (!cJSON_AddNumberToObject(to, "rel_fro", e->rel_fro) || !put_outputs(to, e))
        return false;
    return e->vendor[0] == '\0' || e->vendor_ratio == 0 ||
           (cJSON_AddStringToObject(to, "vendor", e->vendor) &&
            cJSON_AddNumberToObject(to, "vendor_ratio", e->vendor_ratio));
}

bool baseline_put_entry(cJSON *to, const struct baseline_entry *e)
{
    return cJSON_AddNumberToObject(to, "p50_ns", e->p50_ns) &&
           cJSON_AddNumberToObject(to, "p50_lo_ns", e->p50_lo_ns) &&
           cJSON_AddNumberToObject(to, "p50_hi_ns", e->p50_hi_ns) &&
           cJSON_AddNumberToObject(to, "p90_ns", e->p90_ns) &&
           cJSON_AddNumberToObject(to, "control_ns", e->control_ns) &&
           cJSON_AddNumberToObject(to, "spread", e->spread) &&
           cJSON_AddStringToObject(to, "kernel", e->kernel) &&
           cJSON_AddStringToObject(to, "commit", e->commit) &&
           cJSON_AddStringToObject(to, "run_uuid", e->run_uuid) &&
           cJSON_AddNumberToObject(to, "time_ms", (double)e->time_ms) &&
           cJSON_AddStringToObject(to, "epoch", e->epoch) &&
           cJSON_AddStringToObject(to, "library_sha256", e->library_sha256) &&
           (!e->code_sha256 || !e->code_sha256[0] ||
            cJSON_AddStringToObject(to, "code_sha256", e->code_sha256)) &&
           (!e->dirty || cJSON_AddTrueToObject(to, "dirty")) && put_error(to, &e->error);
}

bool baseline_put_change(cJSON *to, const struct baseline_change *c)
{
    bool put = cJSON_AddNumberToObject(to, "time_ms", (double)c->time_ms) &&
               cJSON_AddStringToObject(to, "case", c->case_id) &&
               cJSON_AddStringToObject(to, "action", action_names[c->action]);
    if (put)
        put = c->from_ns > 0 ? cJSON_AddNumberToObject(to, "from_ns", c->from_ns) != NULL
                             : cJSON_AddNullToObject(to, "from_ns") != NULL;
    return put && cJSON_AddNumberToObject(to, "to_ns", c->to_ns) &&
           cJSON_AddStringToObject(to, "reason", c->reason) &&
           cJSON_AddStringToObject(to, "author", c->author) &&
           cJSON_AddStringToObject(to, "commit", c->commit) &&
           cJSON_AddStringToObject(to, "run_uuid", c->run_uuid);
}

static cJSON *entry_object(const struct baseline_entry *e)
{
    cJSON *o = cJSON_CreateObject();
    if (baseline_put_entry(o, e))
        return o;
    cJSON_Delete(o);
    return NULL;
}

static cJSON *change_object(const char *case_id, const cJSON *old, const struct baseline_entry *e,
                            const struct baseline_note *note)
{
    const struct baseline_change change = {.time_ms = note->time_ms,
                                           .case_id = case_id,
                                           .action = note->action,
                                           .from_ns = json_number(old, "p50_ns", 0),
                                           .to_ns = e->p50_ns,
                                           .reason = note->reason,
                                           .author = note->author,
                                           .commit = e->commit,
                                           .run_uuid = e->run_uuid};
    cJSON *o = cJSON_CreateObject();
    if (baseline_put_change(o, &change))
        return o;
    cJSON_Delete(o);
    return NULL;
}

/* A document with only this change, to be checked by the schema before anything is touched. */
static enum gate_status check_change(const struct baseline *b, const char *case_id,
                                     const char *contract, const cJSON *entry, const cJSON *change,
                                     struct gate_error *err)
{
    struct schema_fault fault;
    enum gate_status status = GATE_OK;
    cJSON *d = empty_document(json_string(b->document, "device_model", ""));
    if (!d)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    cJSON_ReplaceItemInObjectCaseSensitive(d, "contract", cJSON_CreateString(contract));
    cJSON_AddItemReferenceToObject(cJSON_GetObjectItemCaseSensitive(d, "cases"), case_id,
                                   (cJSON *)(uintptr_t)entry);
    cJSON_AddItemReferenceToArray(cJSON_GetObjectItemCaseSensitive(d, "log"),
                                  (cJSON *)(uintptr_t)change);
    if (!fields_check(&baseline_file, d, &fault))
        status = gate_fail(err, GATE_USAGE, "can't store a baseline of '%s': %s: %s", case_id,
                           fault.pointer, fault.message);
    cJSON_Delete(d);
    return status;
}

/*
 * Puts a member where it belongs by its key, in place of one that has the same key. A new one is
 * appended, and those that belong behind it are moved there: cJSON_InsertItemInArray() refuses an
 * item that was detached in some of the versions in use.
 */
static bool insert_sorted(cJSON *object, const char *key, cJSON *item)
{
    cJSON *at, *next;
    if (cJSON_GetObjectItemCaseSensitive(object, key))
        return cJSON_ReplaceItemInObjectCaseSensitive(object, key, item);
    if (!cJSON_AddItemToObject(object, key, item))
        return false;
    for (at = object->child; at != item; at = next) {
        next = at->next;
        if (strcmp(at->string, key) > 0)
            cJSON_AddItemToArray(object, cJSON_DetachItemViaPointer(object, at));
    }
    return true;
}

/* What each action promises of the baseline that was there (`old`, NULL: none). */
static enum gate_status check_action(const char *case_id, const cJSON *old,
                                     const struct baseline_entry *entry,
                                     enum baseline_action action, struct gate_error *err)
{
    double from_ns = json_number(old, "p50_ns", 0);
    if (action == BASELINE_ACCEPT_NEW && old)
        return gate_fail(err, GATE_INTERNAL, "'%s' has a baseline of %.6g ns, so none is new",
                         case_id, from_ns);
    bool lowers = action == BASELINE_RATCHET || action == BASELINE_TREND;
    if ((lowers || action == BASELINE_EPOCH) && !old)
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could be %s", case_id,
                         lowers ? "lowered" : "measured anew");
    if (action == BASELINE_EPOCH &&
        strcmp(json_string(old, "library_sha256", ""), entry->library_sha256) != 0)
        return gate_fail(err, GATE_INTERNAL,
                         "the baseline of '%s' is another library's in a new epoch", case_id);
    if (lowers && !(entry->p50_ns < from_ns))
        return gate_fail(
            err, GATE_INTERNAL,
            "the baseline of '%s' is %.6g ns and is only ever lowered, not set to %.6g ns", case_id,
            from_ns, entry->p50_ns);
    return GATE_OK;
}

enum gate_status baseline_set(struct baseline *b, const char *case_id, const char *contract,
                              const struct baseline_entry *entry, const struct baseline_note *note,
                              struct gate_error *err)
{
    cJSON *cases = cJSON_GetObjectItemCaseSensitive(b->document, "cases");
    cJSON *log = cJSON_GetObjectItemCaseSensitive(b->document, "log");
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(cases, case_id);
    const char *old_contract = baseline_contract(b);
    enum gate_status status;

    if (cases->child && strcmp(old_contract, contract) != 0)
        return gate_fail(err, GATE_USAGE,
                         "the stored baselines are of contract '%s', the measurement is of '%s'; "
                         "to begin anew under it, move the file of the old ones away",
                         old_contract, contract);
    status = check_action(case_id, old, entry, note->action, err);
    if (status != GATE_OK)
        return status;
    cJSON *object = entry_object(entry);
    cJSON *change = change_object(case_id, old, entry, note);
    cJSON *new_contract = cJSON_CreateString(contract);
    if (!object || !change || !new_contract) {
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
        goto out;
    }
    status = check_change(b, case_id, contract, object, change, err);
    if (status != GATE_OK)
        goto out;
    if (!insert_sorted(cases, case_id, object)) {
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
        goto out;
    }
    baseline_trend_end(b, case_id);
    cJSON_AddItemToArray(log, change);
    cJSON_ReplaceItemInObjectCaseSensitive(b->document, "contract", new_contract);
    return GATE_OK;
out:
    cJSON_Delete(object);
    cJSON_Delete(change);
    cJSON_Delete(new_contract);
    return status;
}

/* ---- trends ---- */

static cJSON *trend_of(const struct baseline *b, const char *case_id)
{
    cJSON *trends = cJSON_GetObjectItemCaseSensitive(b->document, "trends");
    return cJSON_GetObjectItemCaseSensitive(trends, case_id);
}

size_t baseline_trend(const struct baseline *b, const char *case_id,
                      struct baseline_evidence out[BASELINE_TREND_MAX])
{
    size_t n = 0;
    const cJSON *run;
    cJSON_ArrayForEach (run, trend_of(b, case_id)) {
        if (n == BASELINE_TREND_MAX)
            break;
        out[n++] = (struct baseline_evidence){
            .time_ms = json_integer(run, "time_ms", 0),
            .run_uuid = json_string(run, "run_uuid", ""),
            .commit = json_string(run, "commit", ""),
            .ratio = {json_number(run, "ratio", 0), json_number(run, "lo", 0),
                      json_number(run, "hi", 0)},
            .again = json_number(run, "again", 0),
        };
    }
    return n;
}

static cJSON *evidence_object(const struct baseline_evidence *e)
{
    cJSON *o = cJSON_CreateObject();
    if (cJSON_AddNumberToObject(o, "time_ms", (double)e->time_ms) &&
        cJSON_AddStringToObject(o, "run_uuid", e->run_uuid) &&
        cJSON_AddStringToObject(o, "commit", e->commit) &&
        cJSON_AddNumberToObject(o, "ratio", e->ratio.value) &&
        cJSON_AddNumberToObject(o, "lo", e->ratio.lo) &&
        cJSON_AddNumberToObject(o, "hi", e->ratio.hi) &&
        (e->again > 0 ? cJSON_AddNumberToObject(o, "again", e->again)
                      : cJSON_AddNullToObject(o, "again")))
        return o;
    cJSON_Delete(o);
    return NULL;
}

/* The trend of a case, begun when there is none; NULL: out of memory. */
static cJSON *begin_trend(struct baseline *b, const char *case_id)
{
    cJSON *trends = cJSON_GetObjectItemCaseSensitive(b->document, "trends");
    cJSON *trend = trend_of(b, case_id);
    if (trend)
        return trend;
    if (!trends)
        trends = cJSON_AddObjectToObject(b->document, "trends");
    trend = cJSON_CreateArray();
    if (trends && trend && insert_sorted(trends, case_id, trend))
        return trend;
    cJSON_Delete(trend);
    return NULL;
}

enum gate_status baseline_trend_add(struct baseline *b, const char *case_id,
                                    const struct baseline_evidence *e, struct gate_error *err)
{
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(b->document, "cases");
    if (!cJSON_GetObjectItemCaseSensitive(cases, case_id))
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could move", case_id);
    cJSON *trend = begin_trend(b, case_id), *evidence = evidence_object(e);
    if (trend && evidence && cJSON_AddItemToArray(trend, evidence)) {
        if (cJSON_GetArraySize(trend) > BASELINE_TREND_MAX)
            cJSON_DeleteItemFromArray(trend, 0);
        return GATE_OK;
    }
    cJSON_Delete(evidence);
    return gate_fail(err, GATE_INTERNAL, "out of memory");
}

bool baseline_trend_end(struct baseline *b, const char *case_id)
{
    cJSON *trends = cJSON_GetObjectItemCaseSensitive(b->document, "trends");
    bool there = trend_of(b, case_id) != NULL;
    cJSON_DeleteItemFromObjectCaseSensitive(trends, case_id);
    return there;
}

enum gate_status baseline_lock(const char *folder, int *fd, struct gate_error *err)
{
    int locked = -1;
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (*fd >= 0 && (locked = flock(*fd, LOCK_EX)) && errno == EINTR)
        continue;
    if (!locked)
        return GATE_OK;
    enum gate_status status =
        gate_fail(err, GATE_IO, "cannot lock '%s': %s", folder, strerror(errno));
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
    baseline_write(b->document, &text);
    if (text.failed)
        status = gate_fail(err, GATE_INTERNAL, "'%s': too large, or out of memory", path);
    else
        status = file_write_atomic(path, text.data, text.len, err);
    buf_release(&text);
    return status;
}

void baseline_each(const struct baseline *b, baseline_case_fn fn, void *context)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(b->document, "cases")) {
        struct baseline_entry entry;
        read_entry(item, &entry);
        fn(context, item->string, &entry);
    }
}

const char *baseline_made_by(const struct baseline *b, const char *case_id,
                             const struct baseline_entry *entry)
{
    const char *action = NULL;
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(b->document, "log"))
        if (strcmp(json_string(item, "case", ""), case_id) == 0 &&
            strcmp(json_string(item, "run_uuid", ""), entry->run_uuid) == 0 &&
            json_number(item, "to_ns", 0) == entry->p50_ns)
            action = baseline_action_name(action_of_name(json_string(item, "action", "")));
    return action;
}

void baseline_each_change(const struct baseline *b, baseline_change_fn fn, void *context)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(b->document, "log")) {
        const struct baseline_change change = {
            .time_ms = json_integer(item, "time_ms", 0),
            .case_id = json_string(item, "case", ""),
            .action = action_of_name(json_string(item, "action", "")),
            .from_ns = json_number(item, "from_ns", 0),
            .to_ns = json_number(item, "to_ns", 0),
            .reason = json_string(item, "reason", ""),
            .author = json_string(item, "author", ""),
            .commit = json_string(item, "commit", ""),
            .run_uuid = json_string(item, "run_uuid", ""),
        };
        fn(context, &change);
    }
}
