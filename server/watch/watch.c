/* watch.c: see watch.h. */
#include "watch.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "ops/log.h"
#include "decide/stats.h"
#include "store/store_private.h"
#include "watch_private.h"

/*
 * Points of all epochs and branches that are read to find those of one epoch that are watched:
 * runners of one device model with several drivers take turns, and each has a trend of its own, and
 * between two runs of the main branch there may be many of merge requests. These cost no look of
 * their own, so what is read beside a tail is made up for. Of an epoch that was away for longer no
 * more than the first points of its segment count.
 */
#define MAX_READ (24 * CHANGEPOINT_TAIL)

/* What a look reads beside its tail. */
struct reading {
    struct look look;
    struct watch_segment segment;
    struct watch_point reference[CHANGEPOINT_SETTLED]; /* the segment's first, before the tail */
    size_t n_reference;
    struct watch_key before; /* where the reference ends */
    bool is_whole;           /* the tail is all of the segment */
    bool by_control;         /* all points have a control */
    bool quiet;              /* there is nothing to find, so not all of the tail was read */
    enum gate_status status; /* of what was read between two points */
};

/* ---- values ---- */

static double value_of(const struct watch_point *p, bool by_control)
{
    return log(by_control ? p->p50_ns / p->control_ns : p->p50_ns);
}

static bool all_have_control(const struct watch_point *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i].control_ns <= 0)
            return false;
    }
    return true;
}

static bool have_control(const struct reading *r)
{
    return all_have_control(r->look.tail, r->look.n) &&
           all_have_control(r->reference, r->n_reference);
}

/* ---- a glance ---- */

static bool reference_row(void *context, const struct watch_point *point)
{
    struct reading *r = context;
    if (watch_compare(point->key, r->before) >= 0)
        return false;
    r->reference[r->n_reference++] = *point;
    return r->n_reference < CHANGEPOINT_SETTLED;
}

static enum gate_status read_reference(struct reading *r, struct watch_key before)
{
    struct look *l = &r->look;
    r->n_reference = 0;
    r->before = before;
    return store_watch_head(l->store, l->item, r->segment.segment, MAX_READ, reference_row, r,
                            l->err);
}

/* The tail is newest first. */
static bool values_are_quiet(const struct reading *r, bool by_control)
{
    size_t n = r->look.n;
    bool is_long = n + r->n_reference >= CHANGEPOINT_WINDOW;
    double newest[CHANGEPOINT_WINDOW], start[CHANGEPOINT_SETTLED];
    for (size_t i = 0; i < n; i++)
        newest[n - 1 - i] = value_of(&r->look.tail[i], by_control);
    for (size_t i = 0; i < r->n_reference; i++)
        start[i] = value_of(&r->reference[i], by_control);
    return changepoint_is_quiet(newest, n, is_long ? start : NULL);
}

/*
 * With a window of the tail read, newest first, or all that there is: is it plain that nothing will
 * be found in the whole? Whether all of that has a control is not known yet, so both must be quiet.
 */
static enum gate_status glance(struct reading *r)
{
    struct look *l = &r->look;
    struct watch_change young;
    size_t n_young = 0;
    if (l->tail[0].key.run_id != l->item->run_id)
        return GATE_OK;
    enum gate_status status = store_young_changes(l->store, l->item, &young, 1, &n_young, l->err);
    if (status != GATE_OK || n_young > 0)
        return status;
    if (!r->is_whole)
        status = read_reference(r, l->tail[l->n - 1].key);
    if (status == GATE_OK && (r->is_whole || r->n_reference == CHANGEPOINT_SETTLED))
        r->quiet = values_are_quiet(r, false) && (!have_control(r) || values_are_quiet(r, true));
    return status;
}

/* ---- reading ---- */

/* Most looks find nothing, and a glance at a third of the tail is enough to know. */
static bool tail_row(void *context, const struct watch_point *point)
{
    struct reading *r = context;
    struct look *l = &r->look;
    l->tail[l->n++] = *point;
    if (l->n == CHANGEPOINT_WINDOW)
        r->status = glance(r);
    return l->n < CHANGEPOINT_TAIL && !r->quiet && r->status == GATE_OK;
}

static void reverse(struct watch_point *x, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct watch_point swapped = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = swapped;
    }
}

static enum gate_status read_points(struct reading *r)
{
    struct look *l = &r->look;
    bool all = true;
    enum gate_status status = store_watch_segment(l->store, l->item, &r->segment, l->err);
    if (status == GATE_OK)
        status = store_watch_tail(l->store, l->item, r->segment.cut, MAX_READ, tail_row, r, &all,
                                  l->err);
    if (status == GATE_OK)
        status = r->status;
    if (status != GATE_OK || l->n == 0)
        return status;
    r->is_whole = all && watch_compare(r->segment.segment, r->segment.cut) == 0;
    if (l->n < CHANGEPOINT_WINDOW)
        status = glance(r);
    reverse(l->tail, l->n);
    if (status == GATE_OK && !r->quiet) {
        r->n_reference = 0;
        if (!r->is_whole)
            status = read_reference(r, l->tail[0].key);
        r->by_control = have_control(r);
    }
    return status;
}

/* ---- judging ---- */

static double median_ns(const struct watch_point *x, size_t n)
{
    double sorted[CHANGEPOINT_TAIL];
    for (size_t i = 0; i < n; i++)
        sorted[i] = x[i].p50_ns;
    stats_sort(sorted, n);
    return stats_quantile(sorted, n, 0.5);
}

/* The points that a drift started from. */
static double start_ns(const struct reading *r)
{
    if (r->n_reference > 0)
        return median_ns(r->reference, r->n_reference);
    return median_ns(r->look.tail, CHANGEPOINT_SETTLED);
}

/* Fills in l->found: element i is at l->at[i], and element i + 1 ends it. */
static void put_found(struct reading *r, const struct changepoint *c, size_t i)
{
    struct look *l = &r->look;
    size_t at = l->at[i], from = i > 0 ? l->at[i - 1] : 0;
    size_t to = i + 1 < l->n_found ? l->at[i + 1] : l->n;
    const struct watch_point *before =
        at > 0 ? &l->tail[at - 1] : &r->reference[r->n_reference - 1];
    l->found[i] = (struct watch_change){
        .series_id = l->item->series_id,
        .key = l->tail[at].key,
        .before_run_id = before->key.run_id,
        .before_ns = c->drift ? start_ns(r) : median_ns(l->tail + from, at - from),
        .after_ns = c->drift ? median_ns(l->tail + l->n - CHANGEPOINT_SETTLED, CHANGEPOINT_SETTLED)
                             : median_ns(l->tail + at, to - at),
        .by_control = r->by_control,
        .before_level = exp(c->before),
        .after_level = exp(c->after),
        .stands = true,
        .settled = c->settled,
    };
}

/* The place of a position in the tail. */
static struct watch_key key_at(const struct reading *r, int64_t position)
{
    return r->look.tail[(size_t)position - r->n_reference].key;
}

/* Looks at the newest value of the tail. *moved: the segment is another one now. */
static void judge(struct reading *r, bool *moved)
{
    struct look *l = &r->look;
    struct changepoint_tail tail;
    struct changepoint found[CHANGEPOINT_MAX];
    double reference[CHANGEPOINT_SETTLED];
    for (size_t i = 0; i < r->n_reference; i++)
        reference[i] = value_of(&r->reference[i], r->by_control);
    changepoint_resume(&tail, 0, reference, r->n_reference, 0, (int64_t)r->n_reference);
    for (size_t i = 0; i + 1 < l->n; i++)
        changepoint_push(&tail, value_of(&l->tail[i], r->by_control));
    l->n_found = changepoint_append(&tail, value_of(&l->tail[l->n - 1], r->by_control), found);
    for (size_t i = 0; i < l->n_found; i++)
        l->at[i] = (size_t)found[i].position - r->n_reference;
    for (size_t i = 0; i < l->n_found; i++)
        put_found(r, &found[i], i);

    *moved = tail.cut > 0;
    if (tail.segment > 0)
        r->segment.segment = key_at(r, tail.segment);
    if (tail.cut > 0)
        r->segment.cut = key_at(r, tail.cut);
}

/* A run that came so late that its point is behind the tail changes nothing. */
static bool is_in_tail(const struct look *l)
{
    for (size_t i = l->n; i-- > 0;) {
        if (l->tail[i].key.run_id == l->item->run_id)
            return true;
    }
    return false;
}

static enum gate_status find_changes(struct reading *r)
{
    struct look *l = &r->look;
    bool moved = false;
    enum gate_status status = GATE_OK;
    judge(r, &moved);
    if (moved)
        status = store_put_watch_segment(l->store, l->item, &r->segment, l->err);
    return status == GATE_OK ? watch_apply_changes(l) : status;
}

static enum gate_status look_at_series(struct reading *r)
{
    struct look *l = &r->look;
    enum gate_status status = read_points(r);
    if (status != GATE_OK || !is_in_tail(l))
        return status;
    if (!r->quiet)
        status = find_changes(r);
    return status == GATE_OK ? watch_apply_error(l) : status;
}

static enum gate_status look_at(struct store *s, const struct watch_item *item, int64_t now_ms,
                                struct gate_error *err)
{
    struct reading r;
    struct look *l = &r.look;
    l->store = s;
    l->item = item;
    l->now_ms = now_ms;
    l->err = err;
    l->n = l->n_found = r.n_reference = 0;
    r.is_whole = r.quiet = false;
    r.status = GATE_OK;
    enum gate_status status =
        store_open_alerts(s, item->track_id, l->alerts, LOOK_MAX_ALERTS, &l->n_alerts, err);
    if (status == GATE_OK && item->series_id != 0)
        status = look_at_series(&r);
    if (status == GATE_OK && l->n_alerts > 0)
        status = watch_apply_accept(l);
    return status;
}

/* ---- all that waits ---- */

struct one_look {
    struct store *store;
    const struct watch_item *item;
    int64_t now_ms;
    bool refused; /* by a constraint of the tables: it would be each time */
};

static enum gate_status take_look(void *context, struct gate_error *err)
{
    struct one_look *look = context;
    enum gate_status status = look_at(look->store, look->item, look->now_ms, err);
    int code = sqlite3_extended_errcode(look->store->db);
    look->refused = status != GATE_OK && (code & 0xff) == SQLITE_CONSTRAINT;
    return status;
}

/* In a savepoint, so that a look that is left out leaves no trace. */
static enum gate_status look_or_leave(struct store *s, const struct watch_item *item,
                                      int64_t now_ms, struct gate_error *err)
{
    struct one_look look = {s, item, now_ms, false};
    enum gate_status status = store_atomically(s, take_look, &look, err);
    if (status == GATE_OK || !look.refused)
        return status;
    log_message(LOG_LEVEL_ERROR, "the watch leaves out track %lld in run %lld: %s",
                (long long)item->track_id, (long long)item->run_id, err ? err->message : "");
    return GATE_OK;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Of a run that is not watched, all tracks are done at once. */
static enum gate_status look_or_skip(struct store *s, struct watch_item *item, int64_t now_ms,
                                     struct gate_error *err)
{
    if (watch_has_branch(item->branches, item->branch))
        return look_or_leave(s, item, now_ms, err);
    item->track_id = INT64_MAX;
    return GATE_OK;
}

/* In a batch; `item` is the first. */
static enum gate_status look_at_pending(struct store *s, struct watch_item *item, int max_tracks,
                                        bool *more, struct gate_error *err)
{
    int64_t now = now_ms();
    enum gate_status status = look_or_skip(s, item, now, err);
    for (int i = 1; i < max_tracks && status == GATE_OK && *more; i++) {
        status = store_watch_next(s, item, more, err);
        if (status == GATE_OK && *more)
            status = look_or_skip(s, item, now, err);
    }
    return status == GATE_OK ? store_put_watch_mark(s, item, err) : status;
}

enum gate_status watch_pending(struct store *s, const struct watch_branches *branches,
                               int max_tracks, bool *more, struct gate_error *err)
{
    struct watch_item item = {.branches = branches};
    bool own_batch = !s->in_batch;
    *more = false;
    store_watch_forget(s);
    enum gate_status status = store_watch_mark(s, &item, err);
    /* Where there is nothing to do, nothing is written. */
    if (status == GATE_OK)
        status = store_watch_next(s, &item, more, err);
    if (status != GATE_OK || !*more)
        return status;
    if (own_batch)
        status = store_batch_begin(s, err);
    if (status == GATE_OK)
        status = look_at_pending(s, &item, max_tracks, more, err);
    if (own_batch && status == GATE_OK)
        status = store_batch_commit(s, err);
    else if (own_batch)
        store_batch_rollback(s);
    if (status != GATE_OK)
        *more = false;
    return status;
}
