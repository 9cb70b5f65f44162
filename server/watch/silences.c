/* SPDX-License-Identifier: Apache-2.0 */
/* silences.c: see silences.h. */
#include "server/watch/silences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"

#define TOLD_MAX ((size_t)1 << 20)
#define NAME_MAX_SIZE 256

struct silences {
    const char *target, *main_branch;
    struct buf told; /* a line each, behind a first one that is empty */
    bool is_saved;
    int64_t run_id;           /* the newest run that all was told of; -1: not known */
    char next[NAME_MAX_SIZE]; /* what silences_next() found; "": nothing */
    int64_t newest_run;       /* when it looked */
};

struct silence_look {
    struct silences *l;
    struct buf told;   /* the present ones among those that were told */
    struct emit *emit; /* takes the first other one; NULL: all are as if told */
};

static void put_body(struct emit *e, const struct store_row *row)
{
    emit_key(e, "silence");
    emit_open(e, '{');
    for (int i = 0; i < row->n; i++) {
        const struct store_cell *cell = &row->cells[i];
        if (!strcmp(cell->name, "place"))
            continue;
        if (cell->kind == STORE_INTEGER)
            emit_integer_member(e, cell->name, cell->integer);
        else
            emit_known_string(e, cell->name, cell->text);
    }
    emit_close(e, '}');
}

static bool silence_row(void *context, const struct store_row *row)
{
    struct silence_look *look = context;
    struct silences *l = look->l;
    char name[NAME_MAX_SIZE]; /* "\nRUN PLACE\n" */
    snprintf(name, sizeof name, "\n%s %s\n", store_text_of(row, "run"),
             store_text_of(row, "place"));
    if (!look->emit || strstr(l->told.data, name)) {
        buf_puts(&look->told, name + 1);
    } else if (l->next[0] == '\0') {
        memcpy(l->next, name, sizeof name);
        put_body(look->emit, row);
    }
    return true;
}

/* Drops those that ended, and finds one that was not told. */
static enum gate_status look_at(struct silences *l, struct call *c, bool finds)
{
    struct silence_look look = {.l = l, .emit = finds ? &c->emit : NULL};
    const struct rows_value values[] = {
        {"main_branch", l->main_branch}, {"limit", "1000"}, {NULL, NULL}};
    l->next[0] = '\0';
    buf_init(&look.told, TOLD_MAX);
    buf_puts(&look.told, "\n");
    enum gate_status status = rows_select(c, "silences.sql", values, silence_row, &look);
    if (!status && look.told.len != l->told.len) {
        buf_clear(&l->told);
        buf_puts(&l->told, look.told.data);
        l->is_saved = false;
    }
    buf_release(&look.told);
    return status;
}

static bool told_row(void *context, const struct store_row *row)
{
    struct silences *l = context;
    buf_puts(&l->told, store_text_of(row, "silences"));
    return false;
}

static bool newest_row(void *context, const struct store_row *row)
{
    struct silences *l = context;
    l->newest_run = store_integer_of(row, "newest_run");
    return false;
}

enum gate_status silences_open(struct store *s, const char *target, const char *main_branch,
                               struct silences **out, struct gate_error *err)
{
    struct silences *l = calloc(1, sizeof *l);
    struct call call = {.store = s};
    *out = l;
    if (!l)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    *l = (struct silences){.target = target, .main_branch = main_branch, .run_id = -1};
    buf_init(&l->told, TOLD_MAX);
    const struct rows_value values[] = {{"target", target}, {NULL, NULL}};
    enum gate_status status = rows_select(&call, "webhook.sql", values, told_row, l);
    l->is_saved = l->told.len > 0;
    if (!status && !l->is_saved)
        status = look_at(l, &call, false);
    if (status)
        *err = call.err;
    return status;
}

void silences_close(struct silences *l)
{
    if (l)
        buf_release(&l->told);
    free(l);
}

enum gate_status silences_next(struct silences *l, struct call *c, bool *found)
{
    static const struct rows_value none[] = {{NULL, NULL}};
    *found = false;
    enum gate_status status = rows_select(c, "webhook.sql", none, newest_row, l);
    if (!status && l->newest_run != l->run_id)
        status = look_at(l, c, true);
    *found = !status && l->newest_run != l->run_id && l->next[0] != '\0';
    if (!status && !*found)
        l->run_id = l->newest_run;
    return status;
}

void silences_took(struct silences *l)
{
    buf_puts(&l->told, l->next + 1);
    l->is_saved = false;
}

bool silences_are_saved(const struct silences *l)
{
    return l->is_saved;
}

enum gate_status silences_save(struct silences *l, struct store *s, struct gate_error *err)
{
    enum gate_status status =
        l->is_saved ? GATE_OK
                    : store_put_mark(s, "silences", l->target, store_text("", l->told.data), err);
    l->is_saved |= !status;
    return status;
}
