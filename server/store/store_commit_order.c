/*
 * store_commit_order.c: see store_commit_order.h.
 *
 * A commit moves to the front when an older run of it comes in, so the places are read anew after
 * each write. The commit of a run never changes, and only those of new runs are added.
 */
#include "store_commit_order.h"

#include <stdlib.h>
#include <string.h>

#include "store_private.h"

#define MAX_ID INT32_MAX /* of a run or a commit; ids are given one by one */

/* Makes entry `id` of an array of n, and those that it lacks below it zero. */
static bool extend(int32_t **array, int64_t *n, int64_t id)
{
    if (id < *n)
        return true;
    if (id < 0 || id >= MAX_ID)
        return false;
    int64_t more = 2 * id + 1024;
    int32_t *grown = realloc(*array, (size_t)more * sizeof(**array));
    if (!grown)
        return false;
    memset(grown + *n, 0, (size_t)(more - *n) * sizeof(**array));
    *array = grown;
    *n = more;
    return true;
}

static bool commit_row(struct query *q, void *call)
{
    struct commit_order *o = call;
    int64_t id = column_int(q, 0);
    if (!extend(&o->place, &o->n_places, id))
        return false;
    o->place[id] = (int32_t)++o->n_commits;
    return true;
}

static bool run_row(struct query *q, void *call)
{
    struct commit_order *o = call;
    int64_t id = column_int(q, 0);
    int64_t commit = column_int(q, 1);
    if (commit < 0 || commit >= MAX_ID || !extend(&o->commit, &o->n_runs, id))
        return false;
    o->commit[id] = (int32_t)commit;
    o->last_run = id;
    return true;
}

/* A callback that ends the query has found no room. */
static enum gate_status read_all(struct store *s, struct query *q, store_row_fn fn,
                                 struct gate_error *err)
{
    int rc;
    while ((rc = query_step(q)) == SQLITE_ROW && fn(q, &s->order))
        continue;
    enum gate_status status = GATE_OK;
    if (rc == SQLITE_ROW)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    else if (rc != SQLITE_DONE)
        status = store_fail(s, rc, "read", err);
    query_end(q);
    return status;
}

static enum gate_status read_order(struct store *s, struct gate_error *err)
{
    struct commit_order *o = &s->order;
    o->n_commits = 0;
    if (!extend(&o->place, &o->n_places, 0))
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    memset(o->place, 0, (size_t)o->n_places * sizeof(*o->place));
    struct query q = query_begin(s, SQL_COMMIT_ORDER);
    enum gate_status status = read_all(s, &q, commit_row, err);
    if (status != GATE_OK)
        return status;
    q = query_begin(s, SQL_COMMIT_OF_RUNS);
    bind_int(&q, o->last_run);
    return read_all(s, &q, run_row, err);
}

enum gate_status store_commit_order(struct store *s, const struct commit_order **out,
                                    struct gate_error *err)
{
    *out = &s->order;
    return read_order(s, err);
}

void commit_order_release(struct commit_order *order)
{
    free(order->place);
    free(order->commit);
    *order = (struct commit_order){0};
}
