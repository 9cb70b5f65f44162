/* store_watch_kept.c: lets go of the newest results and the leaders of old branches; see
 * store_watch.h. */
#include "store_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_private.h"

struct kept {
    char name[WATCH_TEXT_MAX];
    int64_t time_ms; /* of its newest run */
};

struct kept_call {
    struct store *store;
    const struct watch_branches *watched;
    struct kept *kept;
    size_t n, cap;
};

static bool name_row(struct query *q, void *call)
{
    snprintf(call, WATCH_TEXT_MAX, "%s", column_text(q, 0));
    return true;
}

static bool time_row(struct query *q, void *call)
{
    *(int64_t *)call = column_int(q, 1);
    return true;
}

static enum gate_status add_branch(struct kept_call *c, const char *name, struct gate_error *err)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 32;
        struct kept *more = realloc(c->kept, cap * sizeof(*more));
        if (!more)
            return gate_fail(err, GATE_INTERNAL, "out of memory");
        c->kept = more;
        c->cap = cap;
    }
    struct kept *kept = &c->kept[c->n++];
    kept->time_ms = 0;
    snprintf(kept->name, sizeof(kept->name), "%s", name);
    struct query q = query_begin(c->store, SQL_NEWEST_OF_BRANCH);
    bind_text(&q, kept->name);
    return store_each_row(c->store, &q, time_row, &kept->time_ms, err);
}

/* Those that are not watched. */
static enum gate_status read_kept(struct kept_call *c, struct gate_error *err)
{
    char name[WATCH_TEXT_MAX] = "";
    enum gate_status status = GATE_OK;
    while (status == GATE_OK) {
        char next[WATCH_TEXT_MAX] = "";
        struct query q = query_begin(c->store, SQL_NEXT_KEPT_BRANCH);
        bind_text(&q, name);
        status = store_each_row(c->store, &q, name_row, next, err);
        if (next[0] == '\0')
            break;
        if (status == GATE_OK && !watch_has_branch(c->watched, next))
            status = add_branch(c, next, err);
        memcpy(name, next, sizeof(name));
    }
    return status;
}

static int newest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return (x->time_ms < y->time_ms) - (x->time_ms > y->time_ms);
}

static enum gate_status drop(struct store *s, enum store_sql id, const char *branch,
                             struct gate_error *err)
{
    struct query q = query_begin(s, id);
    bind_text(&q, branch);
    return store_finish(s, &q, err);
}

enum gate_status store_drop_branches(struct store *s, const struct watch_branches *watched,
                                     size_t n, struct gate_error *err)
{
    struct kept_call c = {.store = s, .watched = watched};
    enum gate_status status = read_kept(&c, err);
    if (c.n > n)
        qsort(c.kept, c.n, sizeof(*c.kept), newest_first);
    for (size_t i = n; i < c.n && status == GATE_OK; i++) {
        status = drop(s, SQL_DROP_RESULTS, c.kept[i].name, err);
        if (status == GATE_OK)
            status = drop(s, SQL_DROP_LEADERS, c.kept[i].name, err);
    }
    if (status == GATE_OK && c.n > n)
        status = store_touch(s, err);
    free(c.kept);
    return status;
}
