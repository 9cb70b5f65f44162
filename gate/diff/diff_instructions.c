/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/diff/mix.h"
#include "gate/library/opcode.h"
#include "gate/report/report_run.h"
#include "gate/report/report_table.h"

/* ---- how often ---- */

/* Of a kernel that both have "8 -> 16", where that differs. */
/* Where the first instruction lies that is new or gone. */
static void find_source(const struct diff_row *row, const struct mix_row *r,
                        char out[LISTING_SOURCE_SIZE])
{
    out[0] = '\0';
    if (row->change == DIFF_CHANGED && r->new != r->old)
        listing_source(&row->old.listing, &row->new.listing, r->opcode, r->old > r->new, out);
}

static void put_cell(const struct diff_row *row, const struct mix_row *r, char text[64])
{
    if (row->change == DIFF_CHANGED && r->new != r->old)
        snprintf(text, 64, "%zu -> %zu", r->old, r->new);
    else
        snprintf(text, 64, "%zu", row->new.kernel ? r->new : r->old);
}

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
        put_cell(row, r, text);
        find_source(row, r, source);
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
