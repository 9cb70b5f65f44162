/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/library/machine_code.h"
#include "gate/report/report_run.h"

#define NAME_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS (RESOURCE_COUNT + 3)

static const char *const changes[DIFF_CHANGES] = {"same", "changed", "added", "removed"};

/* Of a side that is there. */
static void put_figure(const struct diff_side *s, enum resource r, char out[24])
{
    out[0] = '\0';
    if (s->kernel && s->resources.of[r] < 0)
        snprintf(out, 24, "?");
    else if (s->kernel)
        snprintf(out, 24, "%" PRId64, s->resources.of[r]);
}

static unsigned architecture_of(const struct diff_row *row)
{
    return (row->new.kernel ? &row->new : &row->old)->resources.architecture;
}

static void put_row(const struct diff_row *row, bool markdown, struct table *t)
{
    char text[16];
    snprintf(text, sizeof text, "%u", architecture_of(row));
    table_cell(t, TERM_DIM, text);
    table_cell(t, row->change == DIFF_SAME ? TERM_DIM : TERM_YELLOW, changes[row->change]);
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        char new[24], old[24], both[64];
        put_figure(&row->new, (enum resource)r, new);
        put_figure(&row->old, (enum resource)r, old);
        bool differs = new[0] && old[0] && strcmp(new, old) != 0;
        snprintf(both, sizeof both, "%s -> %s", old, new);
        table_cell(t, differs ? TERM_YELLOW : TERM_PLAIN, differs ? both : new[0] ? new : old);
    }
    if (!markdown) {
        table_cell(t, TERM_PLAIN, diff_kernel_name(row));
        return;
    }
    struct buf name;
    buf_init(&name, NAME_MAX_BYTES);
    markdown_code(diff_kernel_name(row), &name);
    table_cell(t, TERM_PLAIN, name.data ? name.data : "");
    buf_release(&name);
}

void diff_write(const struct diff *d, bool all, bool markdown, const struct report_style *style,
                struct buf *out)
{
    struct table_column columns[COLUMNS] = {{0}};
    char titles[COLUMNS][32];
    for (size_t i = 0; i < COLUMNS; i++) {
        snprintf(titles[i], sizeof titles[i], "%s",
                 i == 0            ? "sm"
                 : i == 1          ? "code is"
                 : i < COLUMNS - 1 ? resource_names[i - 2]
                                   : "kernel");
        for (char *at = titles[i]; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        columns[i] = (struct table_column){titles[i], i != 1 && i != COLUMNS - 1, 0};
    }
    struct table *t = table_new(columns, COLUMNS);
    for (size_t i = 0; i < d->n; i++)
        if (all || d->rows[i].change != DIFF_SAME)
            put_row(&d->rows[i], markdown, t);
    if (d->n > (all ? 0 : d->count[DIFF_SAME])) {
        if (t)
            table_markdown(t, COLUMNS - 1, titles[COLUMNS - 1], true);
        if (markdown)
            table_write_markdown(t, out);
        else
            table_write(t, style, out);
        buf_putc(out, '\n');
    }
    buf_printf(out, "%zu kernels: %zu with the same code, %zu changed, %zu added, %zu removed\n",
               d->n, d->count[DIFF_SAME], d->count[DIFF_CHANGED], d->count[DIFF_ADDED],
               d->count[DIFF_REMOVED]);
    table_free(t);
}

/* ---- the instructions of a kernel ---- */

/* All that changed, then what makes up the kernel's time. */
static void put_mix(const struct diff_row *row, bool markdown, const struct report_style *style,
                    struct buf *out)
{
    struct mix m;
    char text[64], source[LISTING_SOURCE_SIZE], what[300];
    struct table_column columns[] = {
        {"instruction", false, 0}, {"count", true, 0}, {"what it does", false, 0}};
    struct table *t = table_new(columns, 3);
    mix_count(row->new.listing.n ? &row->new.listing : NULL,
              row->old.listing.n ? &row->old.listing : NULL, &m);
    for (size_t i = 0; i < m.n; i++) {
        const struct mix_row *r = &m.rows[i];
        bool changed = i < m.n_changed;
        const char *meaning = opcode_meaning(r->opcode);
        if (!changed && !opcode_is_work(r->opcode))
            continue;
        source[0] = '\0';
        if (row->change == DIFF_CHANGED && r->new != r->old) {
            snprintf(text, sizeof text, "%zu -> %zu", r->old, r->new);
            /* Where the first instruction lies that is new or gone. */
            listing_source(&row->old.listing, &row->new.listing, r->opcode, r->old > r->new,
                           source);
        } else {
            snprintf(text, sizeof text, "%zu", row->new.kernel ? r->new : r->old);
        }
        snprintf(what, sizeof what, "%s%s%s", meaning ? meaning : "",
                 !source[0] ? ""
                 : meaning  ? ", at "
                            : "at ",
                 source);
        table_cell(t, TERM_PLAIN, r->opcode);
        table_cell(t, changed ? TERM_YELLOW : TERM_PLAIN, text);
        table_cell(t, TERM_PLAIN, what);
    }
    if (markdown)
        table_write_markdown(t, out);
    else
        table_write(t, style, out);
    table_free(t);
}

/* Safe for a terminal, and without what ends a block of code. */
static void put_safe(const struct buf *text, struct buf *out)
{
    const char *from = text->data ? text->data : "";
    for (size_t n; *from; from += n + (from[n] == '\n')) {
        char line[256];
        n = strcspn(from, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, from);
        for (char *at = utf8_trim(line); *at; at++)
            *at = *at == '`' ? '\'' : *at;
        term_puts(line, out);
        buf_putc(out, '\n');
    }
}

static void put_kernel(const struct diff_row *row, bool sides, bool markdown,
                       const struct report_style *style, struct buf *out)
{
    struct buf text;
    buf_putc(out, '\n');
    buf_puts(out, markdown ? "`" : "");
    report_safe_name(diff_kernel_name(row), out);
    buf_puts(out, markdown ? "`\n\n" : "\n");
    if (row->why[0]) {
        buf_puts(out, "absent: ");
        term_puts(row->why, out);
        buf_putc(out, '\n');
        return;
    }
    put_mix(row, markdown, style, out);
    if (!sides || row->change != DIFF_CHANGED)
        return;
    buf_init(&text, out->max);
    if (!listing_compare(&row->old.listing, &row->new.listing, &text))
        buf_puts(&text, "too many instructions differ to be shown\n");
    else if (!text.len)
        buf_puts(&text, "the same instructions\n");
    buf_puts(out, markdown ? "\n```\n" : "\n");
    put_safe(&text, out);
    buf_puts(out, markdown ? "```\n" : "");
    buf_release(&text);
}

void diff_write_instructions(const struct diff *d, bool sides, bool markdown,
                             const struct report_style *style, struct buf *out)
{
    if (d->why[0]) {
        buf_puts(out, "\nInstructions: absent, ");
        term_puts(d->why, out);
        buf_putc(out, '\n');
        return;
    }
    for (size_t i = 0; i < d->n; i++)
        if (d->rows[i].new.listing.n || d->rows[i].old.listing.n || d->rows[i].why[0])
            put_kernel(&d->rows[i], sides, markdown, style, out);
}

/* ---- JSON ---- */

static void put_side(cJSON *row, const char *name, const struct diff_side *s)
{
    if (!s->kernel) {
        cJSON_AddNullToObject(row, name);
        return;
    }
    cJSON *o = cJSON_AddObjectToObject(row, name);
    struct buf safe;
    buf_init(&safe, NAME_MAX_BYTES);
    term_puts(s->kernel->name, &safe);
    cJSON_AddStringToObject(o, "name", safe.data ? safe.data : "");
    buf_release(&safe);
    cJSON_AddStringToObject(o, "code_sha256", s->sha256);
    if (s->listing.n) {
        struct mix m;
        mix_count(&s->listing, NULL, &m);
        cJSON *all = cJSON_AddObjectToObject(o, "instructions");
        for (size_t i = 0; i < m.n; i++)
            cJSON_AddNumberToObject(all, m.rows[i].opcode, (double)m.rows[i].new);
    }
    for (int r = 0; r < RESOURCE_COUNT; r++)
        if (s->resources.of[r] < 0)
            cJSON_AddNullToObject(o, resource_names[r]);
        else
            cJSON_AddNumberToObject(o, resource_names[r], (double)s->resources.of[r]);
}

void diff_write_json(const struct diff *d, struct buf *out)
{
    cJSON *top = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(top, "kernels");
    if (d->why[0])
        cJSON_AddStringToObject(top, "no_instructions", d->why);
    for (size_t i = 0; i < d->n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "architecture", architecture_of(&d->rows[i]));
        cJSON_AddStringToObject(row, "change", changes[d->rows[i].change]);
        if (d->rows[i].why[0])
            cJSON_AddStringToObject(row, "no_instructions", d->rows[i].why);
        put_side(row, "new", &d->rows[i].new);
        put_side(row, "old", &d->rows[i].old);
        cJSON_AddItemToArray(rows, row);
    }
    json_write(top, true, out);
    cJSON_Delete(top);
}
