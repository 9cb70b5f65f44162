/* SPDX-License-Identifier: Apache-2.0 */
/* silences.c: see silences.h. */
#include "server/watch/silences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/store/store_webhook.h"
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

struct look {
    struct silences *l;
    struct buf told;   /* the present ones among those that were told */
    struct emit *emit; /* takes the first other one; NULL: all are as if told */
};

/* "\nRUN PLACE\n" */
static void name_of(const struct store_cell *cells, int n, char out[NAME_MAX_SIZE])
{
    snprintf(out, NAME_MAX_SIZE, "\n%s %s\n", store_cell_of(cells, n, "run")->text,
             store_cell_of(cells, n, "place")->text);
}

static void put_body(struct emit *e, const struct store_cell *cells, int n)
{
    emit_open(e, '{');
    emit_key(e, "silence");
    emit_open(e, '{');
    for (int i = 0; i < n; i++) {
        if (!strcmp(cells[i].name, "place"))
            continue;
        if (cells[i].kind == STORE_INTEGER)
            emit_integer_member(e, cells[i].name, cells[i].integer);
        else
            emit_known_string(e, cells[i].name, cells[i].kind == STORE_NULL ? "" : cells[i].text);
    }
    emit_close(e, '}');
    emit_close(e, '}');
}

static bool silence_row(void *context, const struct store_cell *cells, int n)
{
    struct look *look = context;
    struct silences *l = look->l;
    char name[NAME_MAX_SIZE];
    name_of(cells, n, name);
    if (!look->emit || strstr(l->told.data, name)) {
        buf_puts(&look->told, name + 1);
    } else if (l->next[0] == '\0') {
        memcpy(l->next, name, sizeof name);
        put_body(look->emit, cells, n);
    }
    return true;
}

/* Drops those that ended, and finds one that was not told. */
static enum gate_status look_at(struct silences *l, struct store *s, struct emit *e,
                                struct gate_error *err)
{
    struct look look = {.l = l, .emit = e};
    struct call call = {.store = s};
    const struct rows_value values[] = {
        {"main_branch", l->main_branch}, {"limit", "1000"}, {NULL, NULL}};
    l->next[0] = '\0';
    buf_init(&look.told, TOLD_MAX);
    buf_puts(&look.told, "\n");
    enum gate_status status = rows_select(&call, "silences.sql", values, silence_row, &look);
    if (status) {
        *err = call.err;
    } else if (look.told.len != l->told.len) {
        buf_clear(&l->told);
        buf_puts(&l->told, look.told.data);
        l->is_saved = false;
    }
    buf_release(&look.told);
    return status;
}

enum gate_status silences_open(struct store *s, const char *target, const char *main_branch,
                               struct silences **out, struct gate_error *err)
{
    struct silences *l = calloc(1, sizeof *l);
    bool found = false;
    *out = l;
    if (!l)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    *l = (struct silences){.target = target, .main_branch = main_branch, .run_id = -1};
    buf_init(&l->told, TOLD_MAX);
    enum gate_status status = store_webhook_silences(s, target, &l->told, &found, err);
    l->is_saved = found;
    return !status && !found ? look_at(l, s, NULL, err) : status;
}

void silences_close(struct silences *l)
{
    if (l)
        buf_release(&l->told);
    free(l);
}

enum gate_status silences_next(struct silences *l, struct store *s, struct emit *e, bool *found,
                               struct gate_error *err)
{
    *found = false;
    enum gate_status status = store_newest_run(s, &l->newest_run, err);
    if (!status && l->newest_run != l->run_id)
        status = look_at(l, s, e, err);
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
        l->is_saved ? GATE_OK : store_put_webhook_silences(s, l->target, l->told.data, err);
    l->is_saved |= !status;
    return status;
}
