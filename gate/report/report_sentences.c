/* SPDX-License-Identifier: Apache-2.0 */
/* report_sentences.c: what a page says below the table of cases, each a line of its own, and the
 * sums of what verification left out and covered. */
#include "gate/report/report_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/term.h"

#define UNRESOLVED_MAX 10 /* cases that are named; the others are counted */
#define UNCOUNTED_MAX 6

/* ---- what was left out ---- */

void left_out_add(struct left_out_sums *sums, const char *id, const struct document_verify *verify)
{
    if (!verify)
        return;
    /* -1: not known */
    sums->not_served += verify->not_served > 0 ? verify->not_served : 0;
    sums->refused += verify->refused > 0 ? verify->refused : 0;
    sums->not_guarded += verify->not_guarded > 0 ? verify->not_guarded : 0;
    sums->too_large += verify->too_large > 0 ? verify->too_large : 0;
    if (!sums->why_not_guarded && verify->why_not_guarded && verify->why_not_guarded[0])
        sums->why_not_guarded = verify->why_not_guarded;
    if (!sums->not_declared)
        sums->not_declared = verify->not_declared;
    if (verify->own_shape_only != YES)
        return;
    if (sums->own_shape_only < REPORT_MAX_OWN_SHAPE)
        sums->own_shape[sums->own_shape_only] = id;
    sums->own_shape_only++;
}

/* "n things" as the next of a list; false: there are none. */
static bool item(int64_t n, const char *one, const char *many, const char *how, bool *first,
                 struct buf *out)
{
    if (n <= 0)
        return false;
    buf_printf(out, "%s%lld %s %s", *first ? "" : ", ", (long long)n, n == 1 ? one : many, how);
    *first = false;
    return true;
}

void left_out_write(const struct left_out_sums *sums, struct buf *out)
{
    bool first = true;
    item(sums->not_served, "edge shape", "edge shapes", "not served", &first, out);
    item(sums->refused, "layout", "layouts", "refused", &first, out);
    if (item(sums->not_guarded, "guard", "guards", "not offered", &first, out) &&
        sums->why_not_guarded)
        buf_printf(out, " (%s)", sums->why_not_guarded);
    if (item(sums->too_large, "shape", "shapes", "too large for", &first, out))
        buf_printf(out, " %s probes%s", sums->too_large == 1 ? "its" : "their",
                   sums->most ? "" : " (see 'gate verify --tier nightly')");
    if (sums->not_declared)
        buf_printf(out, "%s%s", first ? "" : ", ", sums->not_declared);
}

/* "2 cases were looked at on their own shape alone, since the kernel takes no other: A, B", each
 * written by `put`; nothing when there is none. */
static void write_own_shape(const struct left_out_sums *sums, report_put_fn put, struct buf *out)
{
    int64_t named = 0;
    if (sums->own_shape_only == 0)
        return;
    buf_printf(out,
               "%lld case%s looked at on %s own shape alone, since the kernel takes no other: ",
               (long long)sums->own_shape_only, sums->own_shape_only == 1 ? " was" : "s were",
               sums->own_shape_only == 1 ? "its" : "their");
    for (; named < sums->own_shape_only && named < REPORT_MAX_OWN_SHAPE; named++) {
        buf_puts(out, named ? ", " : "");
        put(sums->own_shape[named], out);
    }
    if (sums->own_shape_only > named)
        buf_printf(out, " and %lld more", (long long)(sums->own_shape_only - named));
}

void left_out_write_lines(const struct left_out_sums *sums, struct buf *out)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(16 * 1024);
    left_out_write(sums, &line);
    if (line.len > 0) {
        buf_puts(out, "left out: ");
        term_puts(line.data, out);
        buf_putc(out, '\n');
    }
    if (sums->own_shape_only > 0) {
        write_own_shape(sums, term_puts, out);
        buf_putc(out, '\n');
    }
}

/* ---- what was covered ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The sums of an op, in their place by name; NULL: there is no room for one more. */
static struct covered_op *sums_of(struct covered_sums *sums, const char *op)
{
    size_t at = 0;
    while (at < sums->n && strcmp(sums->of[at].name, op) < 0)
        at++;
    if (at < sums->n && !strcmp(sums->of[at].name, op))
        return &sums->of[at];
    if (sums->n == COVERED_OPS)
        return NULL;
    memmove(&sums->of[at + 1], &sums->of[at], (sums->n++ - at) * sizeof sums->of[0]);
    sums->of[at] = (struct covered_op){.pairs = 0};
    snprintf(sums->of[at].name, sizeof sums->of[at].name, "%s", op);
    return &sums->of[at];
}

/* Its members are counts alone, in the order of their fields. */
static int64_t *counts_of(struct document_covered *c)
{
    return (int64_t *)(void *)c;
}

void covered_add(struct covered_sums *sums, const char *op, const struct document_verify *verify)
{
    struct covered_op *sum = verify && verify->has_covered ? sums_of(sums, op) : NULL;
    if (!sum)
        return;
    struct document_covered one = verify->covered;
    for (size_t i = 0; i < sizeof one / sizeof(int64_t); i++)
        counts_of(&sum->all)[i] += larger(counts_of(&one)[i], 0);
    sum->pairs = larger(sum->pairs, verify->pairs);
    sum->pairs_of = larger(sum->pairs_of, verify->pairs_of);
}

struct table *covered_table(const struct covered_sums *sums)
{
    struct table_column columns[2 + COVERED_OPS] = {{.title = "covered"}, {.title = "class"}};
    char text[64];
    int64_t pairs = 0;
    size_t at = 0;
    if (!sums->n)
        return NULL;
    for (size_t i = 0; i < sums->n; i++)
        columns[2 + i] = (struct table_column){.title = sums->of[i].name, .right = true};
    struct table *t = table_new(columns, 2 + sums->n);
    for (size_t i = 0; i < document_covered_shape.n; i++) {
        const struct field *group = &document_covered_shape.fields[i];
        for (size_t k = 0; k < group->shape->n; k++, at++) {
            int64_t count[COVERED_OPS], all = 0;
            for (size_t op = 0; op < sums->n; op++) {
                struct document_covered sum = sums->of[op].all;
                all |= count[op] = counts_of(&sum)[at];
            }
            if (!all) /* no op has this class */
                continue;
            snprintf(text, sizeof text, "%s", group->shape->fields[k].key);
            for (char *c = text; *c; c++)
                *c = *c == '_' ? ' ' : *c;
            table_cell(t, TERM_PLAIN, group->key);
            table_cell(t, TERM_PLAIN, text);
            for (size_t op = 0; op < sums->n; op++) {
                snprintf(text, sizeof text, "%" PRId64, count[op]);
                table_cell(t, TERM_PLAIN, text);
            }
        }
    }
    for (size_t i = 0; i < sums->n; i++)
        pairs += sums->of[i].pairs_of;
    if (!pairs)
        return t;
    table_cell(t, TERM_PLAIN, "shapes");
    table_cell(t, TERM_PLAIN, "pairs of classes");
    for (size_t i = 0; i < sums->n; i++) {
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64, sums->of[i].pairs,
                 sums->of[i].pairs_of);
        table_cell(t, TERM_PLAIN, text);
    }
    return t;
}

/* ---- sentences ---- */

/* "n of m cases cannot resolve the threshold here: A (3.10 %), B (2.4 %)" */
static void say_unresolved(const struct page *p, struct buf *out)
{
    char text[UNITS_MAX];
    const struct report_run *run = p->run;
    const struct document *d = p->d;
    size_t n = 0;
    if (run->n_unresolved == 0)
        return;
    buf_printf(out, "%zu of %zu case%s cannot resolve the threshold here: ", run->n_unresolved,
               d->n_cases, d->n_cases == 1 ? "" : "s");
    for (size_t i = 0; i < d->n_cases && n < UNRESOLVED_MAX; i++) {
        if (!report_is_unresolved(run, &d->cases[i]))
            continue;
        buf_puts(out, n++ ? ", " : "");
        p->code(d->cases[i].id, out);
        buf_printf(out, " (%s)", units_percent(d->cases[i].mde, text));
    }
    if (run->n_unresolved > n)
        buf_printf(out, " and %zu more", run->n_unresolved - n);
}

static void say_same_code(const struct page *p, struct buf *out)
{
    size_t n = p->run->n_same_code;
    if (n > 0)
        buf_printf(out,
                   "%zu of %zu case%s %s the same code on both sides: timed in one process as "
                   "a control",
                   n, p->d->n_cases, p->d->n_cases == 1 ? "" : "s", n == 1 ? "has" : "have");
}

static void say_remembered(const struct page *p, struct buf *out)
{
    size_t n = p->d->n_cases;
    if (p->run->n_remembered)
        buf_printf(out,
                   "%zu of %zu case%s verified in earlier runs of the same library; the others "
                   "anew, with new inputs (--full: all)",
                   p->run->n_remembered, n, n == 1 ? " was" : "s were");
    if (p->run->vendors_remembered)
        buf_printf(out, "%sthe vendors' times are those of earlier runs (--vendors: anew)",
                   p->run->n_remembered ? "; " : "");
}

static void say_left_out(const struct page *p, struct buf *out)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(16 * 1024);
    left_out_write(&p->run->left_out, &line);
    if (line.len > 0) {
        buf_puts(out, "left out: ");
        p->text(line.data, out);
    }
}

static void say_own_shape(const struct page *p, struct buf *out)
{
    write_own_shape(&p->run->left_out, p->code, out);
}

/* "not served, and not counted: 2 of the suite's 3 cases: A, B": the ids are plain ASCII, by the
 * schema. */
static void put_uncounted(const struct page *p, const char *what,
                          const struct document_not_served *list, size_t n, struct buf *out)
{
    if (!n)
        return;
    buf_printf(out, "%s: %zu of the suite's %zu cases: ", what, n,
               p->d->n_cases + p->d->n_not_served + p->d->n_filtered);
    for (size_t i = 0; i < n && i < UNCOUNTED_MAX; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list[i].id);
    if (n > UNCOUNTED_MAX)
        buf_printf(out, " and %zu more", n - UNCOUNTED_MAX);
}

static void say_not_served(const struct page *p, struct buf *out)
{
    put_uncounted(p, "not served, and not counted", p->d->not_served, p->d->n_not_served, out);
}

static void say_filtered(const struct page *p, struct buf *out)
{
    put_uncounted(p, "left out by --filter", p->d->filtered, p->d->n_filtered, out);
}

/* "warning: this change moves thresholds: A: threshold 2 % -> 100 %; ..." */
static void say_changed(const struct page *p, struct buf *out)
{
    const struct document_policy *policy = &p->d->policy;
    RELEASED_BY(buf_release) struct buf line = buf_of(65536);
    for (size_t i = 0; i < policy->n_changed; i++)
        buf_printf(&line, "%s%s",
                   i ? "; " : "warning: this change moves thresholds: ", policy->changed[i]);
    if (line.len)
        p->code(line.data, out);
}

static void say_not_stored(const struct page *p, struct buf *out)
{
    if (!p->d->not_stored)
        return;
    buf_puts(out, "NOT STORED at its end, and no baseline has changed, whatever a reason says: ");
    p->code(p->d->not_stored, out);
    buf_puts(out, "; `gate import` takes its JSON report");
}

void page_sentences(const struct page *p)
{
    static const struct {
        bool warns;
        void (*say)(const struct page *p, struct buf *out);
    } all[] = {{true, say_unresolved}, {false, say_remembered}, {false, say_same_code},
               {false, say_left_out},  {true, say_own_shape},   {false, say_not_served},
               {false, say_filtered},  {true, say_changed},     {true, say_not_stored}};
    RELEASED_BY(buf_release) struct buf line = buf_of(128 * 1024);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_clear(&line);
        all[i].say(p, &line);
        if (line.len)
            buf_printf(p->out, "%s%s", p->markdown ? "\n" : "",
                       p->markdown && all[i].warns ? PAGE_WARNING_SIGN : "");
        buf_append(p->out, line.data, line.len);
        buf_puts(p->out, line.len ? "\n" : "");
    }
}

void page_legend(const struct page *p)
{
    const char *begin = p->markdown ? "\n" : "";
    if (p->run->warm)
        buf_printf(p->out, "%s* warm: the inputs do not exceed three times the cache\n",
                   p->markdown ? "\n\\" : "");
    if (p->d->n_cases > 0 && p->d->has_ceilings && !p->d->ceilings.message)
        buf_printf(p->out,
                   "%sceiling: share of the data sheet's maximum; here: share of what the gate's "
                   "own kernels reach on this GPU\n",
                   begin);
    if (p->run->any_stored && !p->markdown)
        buf_puts(p->out, "(baseline): the stored time; the baseline was not measured beside the "
                         "candidate\n");
    if (p->run->more_providers)
        buf_printf(p->out, "%s%s the first %d providers have columns\n", begin,
                   p->markdown ? "Only" : "only", REPORT_MAX_PROVIDERS);
}
