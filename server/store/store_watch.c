/* store_watch.c: see store_watch.h. */
#include "store_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_private.h"

#define PS_PER_NS 1000.0

/* ---- where to go on ---- */

static bool mark_row(struct query *q, void *call)
{
    struct watch_item *item = call;
    item->run_id = column_int(q, 0);
    item->track_id = column_int(q, 1);
    return true;
}

enum gate_status store_watch_mark(struct store *s, struct watch_item *item, struct gate_error *err)
{
    *item = (struct watch_item){.branches = item->branches};
    struct query q = query_begin(s, SQL_WATCH_MARK);
    return store_each_row(s, &q, mark_row, item, err);
}

enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err)
{
    struct query q = query_begin(s, SQL_PUT_WATCH_MARK);
    bind_int(&q, item->run_id);
    bind_int(&q, item->track_id);
    return store_finish(s, &q, err);
}

struct watch_ends {
    int64_t newest_id, watched_id;
};

static bool ends_row(struct query *q, void *call)
{
    struct watch_ends *ends = call;
    ends->watched_id = column_int(q, 0);
    ends->newest_id = column_int(q, 2);
    return true;
}

enum gate_status store_watch_runs(struct store *s, int64_t *newest_id, int64_t *watched_id,
                                  struct gate_error *err)
{
    struct watch_ends ends = {0};
    struct query q = query_begin(s, SQL_WATCH_MARK);
    enum gate_status status = store_each_row(s, &q, ends_row, &ends, err);
    *newest_id = ends.newest_id;
    *watched_id = ends.watched_id;
    return status;
}

static bool item_row(struct query *q, void *call)
{
    struct watch_item *item = call;
    item->run_id = column_int(q, 0);
    item->track_id = column_int(q, 1);
    item->series_id = column_int(q, 2);
    item->device_id = column_int(q, 3);
    snprintf(item->epoch, sizeof(item->epoch), "%s", column_text(q, 4));
    snprintf(item->branch, sizeof(item->branch), "%s", column_text(q, 5));
    return true;
}

enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err)
{
    struct watch_item next = {.branches = item->branches};
    struct query q = query_begin(s, SQL_WATCH_NEXT);
    bind_int(&q, item->run_id);
    bind_int(&q, item->track_id);
    enum gate_status status = store_each_row(s, &q, item_row, &next, err);
    *found = status == GATE_OK && next.run_id != 0;
    if (*found)
        *item = next;
    return status;
}

/* ---- points ---- */

#define N_RUNS 4096 /* a power of two */

/* Which runs are of one epoch and of a watched branch: the points of all tracks are of the same few
 * runs. */
struct watch_runs {
    char epoch[WATCH_TEXT_MAX];
    struct {
        int64_t id; /* 0: nobody is here */
        bool counts;
    } run[N_RUNS]; /* by the low bits of the id */
};

void store_watch_forget(struct store *s)
{
    if (s->watch_runs)
        memset(s->watch_runs, 0, sizeof(*s->watch_runs));
}

/* Makes s->watch_runs that of the item's epoch. */
static enum gate_status use_epoch(struct store *s, const struct watch_item *item,
                                  struct gate_error *err)
{
    if (!s->watch_runs)
        s->watch_runs = calloc(1, sizeof(*s->watch_runs));
    if (!s->watch_runs)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (strcmp(s->watch_runs->epoch, item->epoch) != 0) {
        store_watch_forget(s);
        snprintf(s->watch_runs->epoch, sizeof(s->watch_runs->epoch), "%s", item->epoch);
    }
    return GATE_OK;
}

struct point_call {
    struct store *store;
    const struct watch_branches *branches;
    watch_point_fn fn;
    void *context;
    int limit, n;
    bool all;
    enum gate_status status;
    struct gate_error *err;
};

struct run_call {
    const struct watch_branches *branches;
    bool counts;
};

static bool run_row(struct query *q, void *call)
{
    struct run_call *c = call;
    c->counts = column_int(q, 0) != 0 && watch_has_branch(c->branches, column_text(q, 1));
    return true;
}

static bool counts(struct point_call *c, int64_t run_id)
{
    struct watch_runs *runs = c->store->watch_runs;
    size_t at = (size_t)run_id & (N_RUNS - 1);
    if (runs->run[at].id == run_id)
        return runs->run[at].counts;
    struct run_call call = {c->branches, false};
    struct query q = query_begin(c->store, SQL_WATCH_RUN);
    bind_int(&q, run_id);
    bind_text(&q, runs->epoch);
    c->status = store_each_row(c->store, &q, run_row, &call, c->err);
    runs->run[at].id = c->status == GATE_OK ? run_id : 0;
    runs->run[at].counts = call.counts;
    return call.counts;
}

static bool point_row(struct query *q, void *call)
{
    struct point_call *c = call;
    bool error_known = sqlite3_column_type(q->stmt, 4) != SQLITE_NULL;
    bool vendor_known = sqlite3_column_type(q->stmt, 6) != SQLITE_NULL;
    struct watch_point point = {
        .key = {column_int(q, 0), column_int(q, 1)},
        .p50_ns = column_real(q, 2) / PS_PER_NS,
        .control_ns = column_real(q, 3) / PS_PER_NS,
        .rel_err = error_known ? column_real(q, 4) : -1,
        .best_ns = column_real(q, 5) / PS_PER_NS,
        .vendor_ratio = vendor_known ? column_real(q, 6) / 1e6 : -1,
    };
    bool goes_on = !counts(c, point.key.run_id) || c->fn(c->context, &point);
    c->all = c->all && goes_on && ++c->n < c->limit;
    return goes_on && c->status == GATE_OK;
}

static enum gate_status each_point(struct store *s, enum store_sql id,
                                   const struct watch_item *item, struct watch_key from,
                                   struct point_call *call, struct gate_error *err)
{
    enum gate_status status = use_epoch(s, item, err);
    if (status != GATE_OK)
        return status;
    struct query q = query_begin(s, id);
    bind_int(&q, item->series_id);
    bind_int(&q, item->run_id);
    bind_int(&q, from.time_ms);
    bind_int(&q, from.run_id);
    bind_int(&q, call->limit);
    status = store_each_row(s, &q, point_row, call, err);
    return status == GATE_OK ? call->status : status;
}

enum gate_status store_watch_tail(struct store *s, const struct watch_item *item,
                                  struct watch_key from, int limit, watch_point_fn fn,
                                  void *context, bool *all, struct gate_error *err)
{
    struct point_call call = {s, item->branches, fn, context, limit, 0, true, GATE_OK, err};
    enum gate_status status = each_point(s, SQL_WATCH_TAIL, item, from, &call, err);
    *all = call.all;
    return status;
}

enum gate_status store_watch_head(struct store *s, const struct watch_item *item,
                                  struct watch_key from, int limit, watch_point_fn fn,
                                  void *context, struct gate_error *err)
{
    struct point_call call = {s, item->branches, fn, context, limit, 0, true, GATE_OK, err};
    return each_point(s, SQL_WATCH_HEAD, item, from, &call, err);
}

/* ---- segments ---- */

static bool epoch_row(struct query *q, void *call)
{
    struct watch_segment *segment = call;
    segment->segment.time_ms = segment->cut.time_ms = column_int(q, 0);
    return true;
}

static bool segment_row(struct query *q, void *call)
{
    struct watch_segment *segment = call;
    *segment = (struct watch_segment){{column_int(q, 0), column_int(q, 1)},
                                      {column_int(q, 2), column_int(q, 3)}};
    return true;
}

enum gate_status store_watch_segment(struct store *s, const struct watch_item *item,
                                     struct watch_segment *out, struct gate_error *err)
{
    *out = (struct watch_segment){{-1, 0}, {-1, 0}};
    struct query q = query_begin(s, SQL_WATCH_SEGMENT);
    bind_int(&q, item->series_id);
    bind_text(&q, item->epoch);
    enum gate_status status = store_each_row(s, &q, segment_row, out, err);
    if (status != GATE_OK || out->cut.time_ms >= 0)
        return status;
    q = query_begin(s, SQL_WATCH_EPOCH);
    bind_int(&q, item->device_id);
    bind_text(&q, item->epoch);
    return store_each_row(s, &q, epoch_row, out, err);
}

enum gate_status store_put_watch_segment(struct store *s, const struct watch_item *item,
                                         const struct watch_segment *segment,
                                         struct gate_error *err)
{
    struct query q = query_begin(s, SQL_PUT_WATCH_SEGMENT);
    bind_int(&q, item->series_id);
    bind_text(&q, item->epoch);
    bind_int(&q, segment->segment.time_ms);
    bind_int(&q, segment->segment.run_id);
    bind_int(&q, segment->cut.time_ms);
    bind_int(&q, segment->cut.run_id);
    return store_finish(s, &q, err);
}

/* ---- change points ---- */

struct changes_call {
    struct watch_change *out;
    size_t n;
};

static bool change_row(struct query *q, void *call)
{
    struct changes_call *c = call;
    c->out[c->n++] = (struct watch_change){
        .id = column_int(q, 0),
        .series_id = column_int(q, 1),
        .key = {column_int(q, 2), column_int(q, 3)},
        .before_run_id = column_int(q, 4),
        .before_ns = column_real(q, 5),
        .after_ns = column_real(q, 6),
        .by_control = column_int(q, 7) != 0,
        .before_level = column_real(q, 8),
        .after_level = column_real(q, 9),
        .stands = column_int(q, 10) != 0,
        .settled = column_int(q, 11) != 0,
        .n_missed = column_int(q, 12),
    };
    return true;
}

enum gate_status store_young_changes(struct store *s, const struct watch_item *item,
                                     struct watch_change *out, size_t max, size_t *n,
                                     struct gate_error *err)
{
    struct changes_call call = {out, 0};
    struct query q = query_begin(s, SQL_YOUNG_CHANGES);
    bind_int(&q, item->series_id);
    bind_text(&q, item->epoch);
    bind_int(&q, (int64_t)max);
    enum gate_status status = store_each_row(s, &q, change_row, &call, err);
    *n = call.n;
    return status;
}

enum gate_status store_find_change(struct store *s, int64_t id, const char *epoch,
                                   struct watch_change *out, struct gate_error *err)
{
    struct changes_call call = {out, 0};
    *out = (struct watch_change){0};
    struct query q = query_begin(s, SQL_FIND_CHANGE);
    bind_int(&q, id);
    bind_text(&q, epoch);
    return store_each_row(s, &q, change_row, &call, err);
}

enum gate_status store_put_change(struct store *s, struct watch_change *c, struct gate_error *err)
{
    struct query q = query_begin(s, c->id ? SQL_MOVE_CHANGE : SQL_PUT_CHANGE);
    bind_int(&q, c->id ? c->id : c->series_id);
    bind_int(&q, c->key.time_ms);
    bind_int(&q, c->key.run_id);
    bind_int(&q, c->before_run_id);
    bind_real(&q, c->before_ns);
    bind_real(&q, c->after_ns);
    bind_int(&q, c->by_control);
    bind_real(&q, c->before_level);
    bind_real(&q, c->after_level);
    bind_int(&q, c->stands);
    bind_int(&q, c->settled);
    bind_int(&q, c->n_missed);
    enum gate_status status = store_finish(s, &q, err);
    if (status == GATE_OK && c->id == 0)
        c->id = sqlite3_last_insert_rowid(s->db);
    return status == GATE_OK ? store_touch(s, err) : status;
}

static bool real_row(struct query *q, void *call)
{
    *(double *)call = column_real(q, 0);
    return true;
}

enum gate_status store_raised_best(struct store *s, const struct watch_item *item,
                                   int64_t after_run_id, double least_ns, double *to_ns,
                                   struct gate_error *err)
{
    *to_ns = 0;
    struct query q = query_begin(s, SQL_RAISED_BEST);
    bind_int(&q, item->track_id);
    bind_int(&q, after_run_id);
    bind_int(&q, item->run_id);
    bind_real(&q, least_ns);
    return store_each_row(s, &q, real_row, to_ns, err);
}
