/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/list.h"

#include <stdio.h>
#include <string.h>

#define LIST_COLUMNS_MAX 16

void list_open(struct list *l, const struct list_kind *kind, bool json)
{
    *l = (struct list){.kind = kind, .json = json, .style = command_style()};
    buf_init(&l->text, COMMAND_MAX_OUTPUT);
}

static struct table *table_of(const struct list_kind *kind)
{
    struct table_column columns[LIST_COLUMNS_MAX];
    for (size_t i = 0; i < kind->n_columns; i++)
        columns[i] = (struct table_column){.title = kind->columns[i].title,
                                           .right = kind->columns[i].right,
                                           .drop = kind->columns[i].drop};
    return table_new(columns, kind->n_columns);
}

void list_row(struct list *l, const void *row)
{
    bool first = l->n++ == 0;
    if (l->json) {
        buf_puts(&l->text, first ? "[\n  " : ",\n  ");
        fields_write_spaced(l->kind->shape, row, &l->text);
        return;
    }
    if (!l->kind->columns)
        return;
    if (!l->table)
        l->table = table_of(l->kind);
    for (size_t i = 0; i < l->kind->n_columns; i++) {
        const struct list_column *column = &l->kind->columns[i];
        struct list_cell cell = {.colour = column->colour};
        cell.shown = cell.text;
        column->show((const char *)row + column->offset, &cell);
        table_cell(l->table, cell.colour, cell.shown);
    }
}

static void write_table(struct list *l)
{
    if (!l->table)
        l->table = table_of(l->kind);
    table_write(l->table, &l->style, &l->text);
    table_free(l->table);
    l->table = NULL;
}

void list_table(struct list *l, const char *case_id, const char *device_model)
{
    if (!l->table)
        return;
    if (l->text.len)
        buf_putc(&l->text, '\n');
    term_puts(case_id, &l->text);
    buf_puts(&l->text, " on ");
    term_puts(device_model, &l->text);
    buf_putc(&l->text, '\n');
    write_table(l);
}

enum gate_status list_print(struct list *l, const char *none, struct gate_error *err)
{
    if (l->json)
        buf_puts(&l->text, l->n ? "\n]\n" : "[]\n");
    else if (!l->n && none)
        buf_puts(&l->text, none);
    else if (l->table || (!l->n && l->kind->columns))
        write_table(l);
    return command_write(NULL, &l->text, err);
}

void list_release(struct list *l)
{
    table_free(l->table);
    buf_release(&l->text);
}

/* ---- columns ---- */

void list_text(const void *at, struct list_cell *out)
{
    out->shown = *(const char *const *)at;
}

void list_count(const void *at, struct list_cell *out)
{
    snprintf(out->text, sizeof out->text, "%lld", (long long)*(const int64_t *)at);
}

void list_duration(const void *at, struct list_cell *out)
{
    if (*(const double *)at > 0) /* else it is not known */
        units_duration(*(const double *)at, out->text);
}

void list_percent(const void *at, struct list_cell *out)
{
    snprintf(out->text, sizeof out->text, "%.2f %%", 100 * *(const double *)at);
}

void list_flops(const void *at, struct list_cell *out)
{
    if (*(const double *)at > 0)
        units_flops(*(const double *)at, out->text);
}

void list_gbps(const void *at, struct list_cell *out)
{
    if (*(const double *)at > 0)
        units_rate(*(const double *)at, "GB/s", out->text);
}

void list_time(const void *at, struct list_cell *out)
{
    units_time(*(const int64_t *)at, out->text);
}

void list_commit(const char *commit, bool dirty, struct list_cell *out)
{
    snprintf(out->text, sizeof out->text, "%.12s%s", commit, dirty ? "+" : "");
}

void list_half_width(double value, double lo, double hi, struct list_cell *out)
{
    if (lo > 0)
        snprintf(out->text, sizeof out->text, "%.2f %%", 50 * (hi - lo) / value);
}
