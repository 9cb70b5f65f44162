/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/diff/mix.h"
#include "gate/report/report_table.h"

#define NAME_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS (RESOURCE_COUNT + 3)

static const char *const changes[DIFF_CHANGES] = {"same", "changed", "added", "removed"};

/* The figure of a side, or both where they differ: "128 -> 168". */
struct diff_cell {
    char text[64];
    bool differs;
};

static void put_figure(const struct diff_side *s, enum resource r, char *out, size_t size)
{
    if (s->resources.of[r] < 0)
        snprintf(out, size, "?");
    else
        snprintf(out, size, "%" PRId64, s->resources.of[r]);
}

static struct diff_cell cell_of(const struct diff_row *row, enum resource r)
{
    struct diff_cell c = {.differs = false};
    char new[24] = "", old[24] = "";
    if (row->new.kernel)
        put_figure(&row->new, r, new, sizeof new);
    if (row->old.kernel)
        put_figure(&row->old, r, old, sizeof old);
    c.differs = row->new.kernel && row->old.kernel &&strcmp(new, old) != 0;
    snprintf(c.text, sizeof c.text, "%s%s%s", old, c.differs ? " -> " : "",
             c.differs || !old[0] ? new : "");
    return c;
}

static unsigned architecture_of(const struct diff_row *row)
{
    return (row->new.kernel ? &row->new : &row->old)->resources.architecture;
}

static void title(size_t column, char *out, size_t size)
{
    static const char *const others[] = {"sm", "code is", "kernel"};
    const char *name = column == 0            ? others[0]
                       : column == 1          ? others[1]
                       : column < COLUMNS - 1 ? resource_names[column - 2]
                                              : others[2];
    snprintf(out, size, "%s", name);
    for (char *at = out; *at; at++)
        *at = *at == '_' ? ' ' : *at;
}

static void put_count(const struct diff *d, struct buf *out)
{
    buf_printf(out, "%zu kernels: %zu with the same code, %zu changed, %zu added, %zu removed\n",
               d->n, d->count[DIFF_SAME], d->count[DIFF_CHANGED], d->count[DIFF_ADDED],
               d->count[DIFF_REMOVED]);
}

static bool is_listed(const struct diff_row *row, bool all)
{
    return all || row->change != DIFF_SAME;
}

static bool lists_any(const struct diff *d, bool all)
{
    return d->n > (all ? 0 : d->count[DIFF_SAME]);
}

static void put_row(const struct diff_row *row, bool markdown, struct table *t)
{
    char text[16];
    snprintf(text, sizeof text, "%u", architecture_of(row));
    table_cell(t, TERM_DIM, text);
    table_cell(t, row->change == DIFF_SAME ? TERM_DIM : TERM_YELLOW, changes[row->change]);
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        struct diff_cell c = cell_of(row, (enum resource)r);
        table_cell(t, c.differs ? TERM_YELLOW : TERM_PLAIN, c.text);
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
        title(i, titles[i], sizeof titles[i]);
        columns[i] = (struct table_column){titles[i], i != 1 && i != COLUMNS - 1, 0};
    }
    struct table *t = table_new(columns, COLUMNS);
    for (size_t i = 0; i < d->n; i++)
        if (is_listed(&d->rows[i], all))
            put_row(&d->rows[i], markdown, t);
    if (lists_any(d, all)) {
        if (t)
            table_markdown(t, COLUMNS - 1, titles[COLUMNS - 1], true);
        if (markdown)
            table_write_markdown(t, out);
        else
            table_write(t, style, out);
        buf_putc(out, '\n');
    }
    put_count(d, out);
    table_free(t);
}

/* How often each instruction occurs; nothing where it is not known. */
static void put_mix(cJSON *o, const struct listing *l)
{
    struct mix m;
    if (!l->n)
        return;
    mix_count(l, NULL, &m);
    cJSON *all = cJSON_AddObjectToObject(o, "instructions");
    for (size_t i = 0; i < m.n; i++)
        cJSON_AddNumberToObject(all, m.rows[i].opcode, (double)m.rows[i].new);
}

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
    put_mix(o, &s->listing);
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
