/* store_scope.c: see store_scope.h. */
#include "store_scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_private.h"
#include "watch_branches.h"

#define MAX_NAMES ((size_t)16 << 20) /* bytes, of all watched branches */

bool scope_has_branch(const struct store_scope *scope, const char *branch)
{
    if (scope->branch)
        return strcmp(scope->branch, branch) == 0;
    return !scope->watched_only || watch_has_branch(scope->watched, branch);
}

bool scope_is_open(const struct store_scope *scope)
{
    return !scope->branch && !scope->watched_only;
}

/* ---- names ---- */

struct names_call {
    const struct store_scope *scope;
    struct buf *names;
};

static bool branch_row(void *context, const char *branch)
{
    struct names_call *c = context;
    if (scope_has_branch(c->scope, branch))
        buf_append(c->names, branch, strlen(branch) + 1);
    return true;
}

static enum gate_status read_watched(struct store *s, const struct store_scope *scope,
                                     struct buf *names, struct gate_error *err)
{
    struct names_call call = {scope, names};
    return store_branches(s, branch_row, &call, err);
}

enum gate_status scope_branches(struct store *s, const struct store_scope *scope, struct buf *names,
                                struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    buf_init(names, MAX_NAMES);
    if (scope->branch)
        buf_append(names, scope->branch, strlen(scope->branch) + 1);
    else
        status = read_watched(s, scope, names, err);
    if (status == GATE_OK && names->failed)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    return status;
}

const char *scope_next_branch(const struct buf *names, const char *name)
{
    const char *next = name ? name + strlen(name) + 1 : names->data;
    return next < names->data + names->len ? next : NULL;
}

/* ---- runs ---- */

struct within_call {
    const struct store_scope *scope;
    bool within;
};

static bool run_branch_row(struct query *q, void *call)
{
    struct within_call *c = call;
    c->within = scope_has_branch(c->scope, column_text(q, 0));
    return true;
}

bool scope_has_run(struct scope_runs *runs, int64_t run_id)
{
    size_t at = (size_t)run_id & (SCOPE_N_RUNS - 1);
    if (scope_is_open(runs->scope))
        return true;
    if (runs->run[at].id == run_id)
        return runs->run[at].within;
    struct within_call call = {runs->scope, false};
    struct query q = query_begin(runs->store, SQL_RUN_BRANCH);
    bind_int(&q, run_id);
    runs->status = store_each_row(runs->store, &q, run_branch_row, &call, runs->err);
    runs->run[at].id = runs->status == GATE_OK ? run_id : 0;
    runs->run[at].within = call.within;
    return call.within;
}

struct key {
    int64_t id;
    int64_t time_ms;
    char uuid[37];
};

struct keys {
    struct key *key;
    size_t n, cap;
    bool no_memory;
};

static bool key_row(struct query *q, void *call)
{
    struct keys *keys = call;
    if (keys->n == keys->cap) {
        size_t cap = keys->cap ? 2 * keys->cap : 64;
        struct key *more = realloc(keys->key, cap * sizeof(*more));
        keys->no_memory = !more;
        if (!more)
            return false;
        keys->key = more;
        keys->cap = cap;
    }
    struct key *key = &keys->key[keys->n++];
    *key = (struct key){.id = column_int(q, 0), .time_ms = column_int(q, 1)};
    snprintf(key->uuid, sizeof(key->uuid), "%s", column_text(q, 2));
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? 1 : -1;
    return strcmp(y->uuid, x->uuid);
}

static enum gate_status read_keys(struct store *s, const char *branch,
                                  const struct store_run_filter *filter, struct store_run_key after,
                                  int64_t limit, struct keys *keys, struct gate_error *err)
{
    struct query q =
        query_begin(s, filter->device_model ? SQL_BRANCH_KEYS_OF_DEVICE : SQL_BRANCH_KEYS);
    bind_text(&q, branch);
    bind_int(&q, after.time_ms);
    bind_text(&q, after.uuid);
    bind_int(&q, limit);
    bind_text_or_null(&q, filter->verdict);
    if (filter->device_model)
        bind_text(&q, filter->device_model);
    enum gate_status status = store_each_row(s, &q, key_row, keys, err);
    if (status == GATE_OK && keys->no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    return status;
}

/* The first of each branch are enough to know the first of all. */
enum gate_status scope_each_run(struct store *s, const struct store_run_filter *filter,
                                struct store_run_key after, int64_t limit, scope_run_fn fn,
                                void *context, struct gate_error *err)
{
    struct buf branches;
    struct keys keys = {0};
    enum gate_status status = scope_branches(s, &filter->scope, &branches, err);
    const char *name = NULL;
    while (status == GATE_OK && (name = scope_next_branch(&branches, name)))
        status = read_keys(s, name, filter, after, limit, &keys, err);
    if (status == GATE_OK && keys.n > 0)
        qsort(keys.key, keys.n, sizeof(*keys.key), compare_keys);
    for (size_t i = 0; status == GATE_OK && i < keys.n && (int64_t)i < limit; i++) {
        if (!fn(context, keys.key[i].id, keys.key[i].time_ms))
            break;
    }
    free(keys.key);
    buf_release(&branches);
    return status;
}
