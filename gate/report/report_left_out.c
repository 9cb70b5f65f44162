/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/report/report_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/term.h"

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

void left_out_write_own_shape(const struct left_out_sums *sums, report_put_fn put, struct buf *out)
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
    struct buf line;
    buf_init(&line, 16 * 1024);
    left_out_write(sums, &line);
    if (line.len > 0) {
        buf_puts(out, "left out: ");
        term_puts(line.data, out);
        buf_putc(out, '\n');
    }
    if (sums->own_shape_only > 0) {
        left_out_write_own_shape(sums, term_puts, out);
        buf_putc(out, '\n');
    }
    buf_release(&line);
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

/* The row of the class `at` of all, unless no op has it. */
static void class_row(struct table *t, const struct covered_sums *sums, size_t at,
                      const char *group, const char *class)
{
    int64_t count[COVERED_OPS], all = 0;
    char text[65];
    for (size_t i = 0; i < sums->n; i++) {
        struct document_covered sum = sums->of[i].all;
        all |= count[i] = counts_of(&sum)[at];
    }
    if (!all)
        return;
    snprintf(text, sizeof text, "%s", class);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    table_cell(t, TERM_PLAIN, group);
    table_cell(t, TERM_PLAIN, text);
    for (size_t i = 0; i < sums->n; i++) {
        snprintf(text, sizeof text, "%" PRId64, count[i]);
        table_cell(t, TERM_PLAIN, text);
    }
}

struct table *covered_table(const struct covered_sums *sums)
{
    struct table_column columns[2 + COVERED_OPS] = {{"covered", false, 0}, {"class", false, 0}};
    char text[64];
    int64_t pairs = 0;
    size_t at = 0;
    if (!sums->n)
        return NULL;
    for (size_t i = 0; i < sums->n; i++)
        columns[2 + i] = (struct table_column){sums->of[i].name, true, 0};
    struct table *t = table_new(columns, 2 + sums->n);
    for (size_t i = 0; i < document_covered_shape.n; i++) {
        const struct field *group = &document_covered_shape.fields[i];
        for (size_t k = 0; k < group->shape->n; k++)
            class_row(t, sums, at++, group->key, group->shape->fields[k].key);
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
