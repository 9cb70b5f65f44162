/* SPDX-License-Identifier: Apache-2.0 */
/* api_compare.c: two runs, case by case; see api.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/compare_base.h"
#include "server/api/compare_judge.h"
#include "server/api/rows.h"

/* A case of one of the runs. */
struct item {
    char case_id[164];
    struct store_result result;
};

/* One of the runs. */
struct compare_side {
    const char *name; /* "a" or "b" */
    const char *text; /* as the address has it */
    char uuid[40];
    int64_t run;
    bool by_time; /* it is the main branch's newest before the other */
    char device[68];
    char contract[68];
    struct item *items; /* by case */
    size_t n;
    size_t cap;
    bool no_memory;
};

static bool note_run(void *context, const struct store_run *row)
{
    struct compare_side *s = context;
    snprintf(s->uuid, sizeof s->uuid, "%s", row->uuid);
    snprintf(s->device, sizeof s->device, "%s", row->device_model);
    snprintf(s->contract, sizeof s->contract, "%s", row->contract);
    return false;
}

static bool note_result(void *context, const struct store_result *row)
{
    struct compare_side *s = context;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct item *items = realloc(s->items, cap * sizeof *items);
        s->no_memory = !items;
        if (!items)
            return false;
        s->items = items;
        s->cap = cap;
    }
    struct item *item = &s->items[s->n++];
    item->result = *row;
    snprintf(item->case_id, sizeof item->case_id, "%s", row->case_id);
    return true;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->case_id, ((const struct item *)b)->case_id);
}

static enum gate_status read_side(struct call *c, struct compare_side *s)
{
    enum gate_status status = store_results(c->store, s->run, note_result, s, &c->err);
    if (!status && s->no_memory)
        status = gate_fail(&c->err, GATE_INTERNAL, "out of memory");
    if (!status && s->n > 0)
        qsort(s->items, s->n, sizeof *s->items, compare_items);
    return status;
}

/* ---- rows ---- */

static void put_item(struct emit *e, const struct compare_side *s, const struct item *item)
{
    emit_key(e, s->name);
    if (!item && e->form != EMIT_CSV) {
        emit_null(e);
        return;
    }
    static const struct store_result none = {.rel_err = -1};
    const struct store_result *i = item ? &item->result : &none;
    emit_open(e, '{');
    emit_known_real(e, "p50_ns", i->p50_ns);
    emit_known_real(e, "p50_lo_ns", i->p50_lo_ns);
    emit_known_real(e, "p50_hi_ns", i->p50_hi_ns);
    emit_known_real(e, "over_baseline", i->ratio);
    emit_known_string(e, "verdict", i->verdict);
    emit_key(e, "rel_err");
    if (i->rel_err < 0)
        emit_null(e);
    else
        emit_real(e, i->rel_err);
    emit_known_string(e, "contract", item ? s->contract : "");
    emit_close(e, '}');
}

/* Why the two numbers say nothing about each other; "": they do. */
static void find_reason(const struct compare_side *a, const struct item *x,
                        const struct compare_side *b, const struct item *y, char *why, size_t size)
{
    why[0] = '\0';
    if (!x || !y)
        snprintf(why, size, "only %s has the case", x ? a->name : b->name);
    else if (strcmp(a->device, b->device) != 0)
        snprintf(why, size, "measured on %s and %s", a->device, b->device);
    else if (strcmp(a->contract, b->contract) != 0)
        snprintf(why, size, "measured by the contracts %s and %s", a->contract, b->contract);
    else if (x->result.p50_ns <= 0 || y->result.p50_ns <= 0)
        snprintf(why, size, "%s has no verified time", x->result.p50_ns <= 0 ? a->name : b->name);
}

/* The baseline of `b` over that of `a`, where one became the other; value 0: not known. */
static struct estimate link_of(struct call *c, const struct store_result *a,
                               const struct store_result *b)
{
    struct estimate link = {0};
    if (c->status || !compare_needs_link(a, b))
        return link;
    bool is_newer = b->baseline_ms > a->baseline_ms;
    c->status = store_baseline_link(c->store, is_newer ? a : b, is_newer ? b : a, &link, &c->err);
    if (is_newer || link.value <= 0)
        return link;
    return (struct estimate){.value = 1 / link.value, .lo = 1 / link.hi, .hi = 1 / link.lo};
}

static void put_pair(struct call *call, const struct compare_side *a, const struct item *x,
                     const struct compare_side *b, const struct item *y)
{
    struct emit *e = &call->emit;
    char why[200];
    struct case_change c = {.judged = "none"};
    find_reason(a, x, b, y, why, sizeof why);
    if (why[0] == '\0')
        c = compare_results(&x->result, &y->result, link_of(call, &x->result, &y->result));
    emit_row_begin(e);
    emit_string_member(e, "id", x ? x->case_id : y->case_id);
    put_item(e, a, x);
    put_item(e, b, y);
    emit_known_real(e, "ratio", c.ratio);
    emit_known_real(e, "ratio_control", c.control.value);
    emit_known_real(e, "paired", c.paired.value);
    emit_known_real(e, "paired_lo", c.paired.lo);
    emit_known_real(e, "paired_hi", c.paired.hi);
    emit_known_real(e, "threshold", c.threshold);
    emit_string_member(e, "judged", c.judged);
    emit_bool_member(e, "comparable", why[0] == '\0');
    emit_string_member(e, "why", why);
    emit_row_end(e);
}

/* Both are sorted: side by side, a case that only one has alone. */
static void put_pairs(struct call *c, const struct compare_side *a, const struct compare_side *b)
{
    size_t i = 0;
    size_t k = 0;
    while (i < a->n || k < b->n) {
        int order = i == a->n ? 1 : k == b->n ? -1 : compare_items(&a->items[i], &b->items[k]);
        put_pair(c, a, order <= 0 ? &a->items[i] : NULL, b, order >= 0 ? &b->items[k] : NULL);
        i += order <= 0;
        k += order >= 0;
    }
}

static enum gate_status put_side(struct call *c, const struct compare_side *s)
{
    const struct rows_value values[] = {{"uuid", s->uuid}, {"limit", "1"}, {NULL, NULL}};
    emit_key(&c->emit, s->name);
    emit_open(&c->emit, '{');
    enum gate_status status = rows_members(c, "runs.sql", values);
    emit_close(&c->emit, '}');
    return status;
}

static enum gate_status put_answer(struct call *c, const struct compare_side *a,
                                   const struct compare_side *b)
{
    static const struct item none;
    enum gate_status status = GATE_OK;
    list_open(c, "cases");
    put_pairs(c, a, b);
    status = c->status;
    if (list_rows_end(c)) {
        if (!status)
            status = put_side(c, a);
        if (!status)
            status = put_side(c, b);
        emit_bool_member(&c->emit, "by_time", a->by_time || b->by_time);
    }
    if (list_lacks_header(c))
        put_pair(c, a, &none, b, &none);
    list_close(c);
    return status;
}

static bool note_uuid(void *context, const struct store_run *row)
{
    struct compare_side *s = context;
    snprintf(s->uuid, sizeof s->uuid, "%s", row->uuid);
    return false;
}

/* The run that `s` is to be compared with the other by. GATE_USAGE where there is none. */
static enum gate_status look_up_base(struct call *c, const char *device, struct compare_side *s,
                                     const struct compare_side *other)
{
    struct compare_base base;
    enum gate_status status = compare_find_base(c, s->text, other->text, device, &base);
    s->by_time = base.by_time;
    if (status || !base.uuid[0])
        return status ? status : GATE_USAGE;
    memcpy(s->uuid, base.uuid, sizeof s->uuid);
    s->text = s->uuid;
    return store_find_run(c->store, s->uuid, device, note_run, s, &s->run, &c->err);
}

/* A run, the newest one of a commit or, where there is none, of a branch. */
static enum gate_status look_up(struct call *c, const char *device, struct compare_side *s)
{
    enum gate_status status =
        store_find_run(c->store, s->text, device, note_run, s, &s->run, &c->err);
    if (status != GATE_USAGE)
        return status;
    struct store_run_filter branch = {.device_model = device, .branch = s->text};
    struct store_run_key newest = {INT64_MAX, ""};
    status = store_runs(c->store, &branch, newest, 1, note_uuid, s, &c->err);
    if (status)
        return status;
    s->text = s->uuid;
    return store_find_run(c->store, s->uuid, device, note_run, s, &s->run, &c->err);
}

/* False: the request was answered with a problem, or *status says what failed. */
static bool find_side(struct call *c, const char *device, struct compare_side *s,
                      const struct compare_side *other, enum gate_status *status)
{
    bool is_base = compare_is_base(s->text);
    const char *asked = s->text;
    *status = is_base ? look_up_base(c, device, s, other) : look_up(c, device, s);
    if (*status != GATE_USAGE)
        return *status == GATE_OK;
    *status = GATE_OK;
    if (is_base)
        reply_problem(c->reply, 404, "No run of the %s of '%s' is known on its device.", s->text,
                      other->name);
    else
        reply_problem(
            c->reply, 404,
            "No run, or more than one, is called '%s': name it by a branch, 7 or more digits of a "
            "commit, a uuid or 4 or more characters of its start, or 'parent' or 'merge-base' of "
            "the other.",
            is_name(asked, "_-./+", 100) ? asked : "...");
    return false;
}

static bool read_side_query(struct call *c, struct compare_side *s)
{
    s->text = request_parameter(c->request, s->name);
    if (!s->text)
        reply_problem(c->reply, 400, "The parameter '%s' is missing.", s->name);
    return s->text != NULL;
}

enum gate_status get_compare(struct call *c)
{
    const char *device;
    struct compare_side a = {.name = "a"};
    struct compare_side b = {.name = "b"};
    enum gate_status status = GATE_OK;
    if (!read_format(c) || !read_device(c, false, &device) || !read_side_query(c, &a) ||
        !read_side_query(c, &b))
        return status;
    /* the one that is a base of the other comes after it */
    struct compare_side *first = compare_is_base(a.text) ? &b : &a;
    struct compare_side *second = first == &a ? &b : &a;
    if (!find_side(c, device, first, second, &status) ||
        !find_side(c, device, second, first, &status))
        return status;
    status = read_side(c, &a);
    if (!status)
        status = read_side(c, &b);
    if (!status)
        status = put_answer(c, &a, &b);
    free(a.items);
    free(b.items);
    return status;
}
