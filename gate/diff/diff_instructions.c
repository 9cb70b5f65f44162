/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/diff/mix.h"
#include "gate/report/report_run.h"
#include "gate/report/report_table.h"

#define PLACES_MAX 17 /* the kernel, and so many loops */

/* ---- how often ---- */

/* The row of an opcode and a loop; NULL: it does not occur. */
static const struct mix_row *find(const struct mix *m, const char *opcode, size_t loop)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].loop == loop && !strcmp(m->rows[i].opcode, opcode))
            return &m->rows[i];
    return NULL;
}

/* Of a kernel that both have "8 -> 16", where that differs. */
static bool put_cell(const struct diff_row *row, const struct mix_row *r, char text[64])
{
    static const struct mix_row none;
    const struct mix_row *m = r ? r : &none;
    bool differs = row->change == DIFF_CHANGED && m->new != m->old;
    if (differs)
        snprintf(text, 64, "%zu -> %zu", m->old, m->new);
    else
        snprintf(text, 64, "%zu", row->new.kernel ? m->new : m->old);
    return differs;
}

/* The kernel, and its loops where they can be compared. */
static size_t count_places(const struct mix *m, const struct diff_row *row)
{
    size_t loops = row->new.kernel ? m->n_new : m->n_old;
    if (row->change == DIFF_CHANGED && m->n_new != m->n_old)
        return 1;
    return loops + 1 < PLACES_MAX ? loops + 1 : PLACES_MAX;
}

static void put_title(size_t place, char text[64])
{
    if (place)
        snprintf(text, 64, "loop %zu", place);
    else
        snprintf(text, 64, "in all");
}

static void put_text_mix(const struct diff_row *row, const struct mix *m,
                         const struct report_style *style, struct buf *out)
{
    struct table_column columns[PLACES_MAX + 1] = {{"instruction", false, 0}};
    char titles[PLACES_MAX][64], text[64];
    size_t n = count_places(m, row);
    for (size_t k = 0; k < n; k++) {
        put_title(k, titles[k]);
        columns[k + 1] = (struct table_column){titles[k], true, 0};
    }
    struct table *t = table_new(columns, n + 1);
    for (size_t i = 0; i < m->n && !m->rows[i].loop; i++) {
        if (!mix_is_watched(m->rows[i].opcode))
            continue;
        table_cell(t, TERM_PLAIN, m->rows[i].opcode);
        for (size_t k = 0; k < n; k++) {
            bool differs = put_cell(row, find(m, m->rows[i].opcode, k), text);
            table_cell(t, differs ? TERM_YELLOW : TERM_PLAIN, text);
        }
    }
    table_write(t, style, out);
    table_free(t);
}

static void put_markdown_mix(const struct diff_row *row, const struct mix *m, struct buf *out)
{
    char text[64];
    size_t n = count_places(m, row);
    buf_puts(out, "| instruction |");
    for (size_t k = 0; k < n; k++) {
        put_title(k, text);
        buf_printf(out, " %s |", text);
    }
    buf_puts(out, "\n| :-- |");
    for (size_t k = 0; k < n; k++)
        buf_puts(out, " --: |");
    buf_putc(out, '\n');
    for (size_t i = 0; i < m->n && !m->rows[i].loop; i++) {
        if (!mix_is_watched(m->rows[i].opcode))
            continue;
        buf_printf(out, "| %s |", m->rows[i].opcode);
        for (size_t k = 0; k < n; k++)
            buf_printf(out,
                       put_cell(row, find(m, m->rows[i].opcode, k), text) ? " **%s** |" : " %s |",
                       text);
        buf_putc(out, '\n');
    }
}

static void put_mix(const struct diff_row *row, bool markdown, const struct report_style *style,
                    struct buf *out)
{
    struct mix m;
    mix_count(row->new.listing.n ? &row->new.listing : NULL,
              row->old.listing.n ? &row->old.listing : NULL, &m);
    if (markdown)
        put_markdown_mix(row, &m, out);
    else
        put_text_mix(row, &m, style, out);
    if (row->change == DIFF_CHANGED && m.n_new != m.n_old)
        buf_printf(out, "%sloops: %zu -> %zu\n", markdown ? "\n" : "", m.n_old, m.n_new);
}

/* ---- side by side ---- */

static void put_sides(const struct diff_row *row, struct buf *out)
{
    struct buf sides;
    buf_init(&sides, out->max);
    if (listing_compare(&row->old.listing, &row->new.listing, &sides))
        buf_puts(out, sides.data ? sides.data : "the same instructions\n");
    else
        buf_puts(out, "too many instructions differ to be shown\n");
    buf_release(&sides);
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

static void put_row(const struct diff_row *row, bool sides, bool markdown,
                    const struct report_style *style, struct buf *out)
{
    struct buf text;
    const char *name = (row->new.kernel ? &row->new : &row->old)->kernel->name;
    buf_putc(out, '\n');
    buf_puts(out, markdown ? "`" : "");
    report_safe_name(name, out);
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
    put_sides(row, &text);
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
            put_row(&d->rows[i], sides, markdown, style, out);
}
