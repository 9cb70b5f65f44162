/*
 * store_watch.h: what watch.c reads and keeps of trends; part of the store.
 *
 * Everything that writes is to be called in a batch or by store_atomically().
 */
#ifndef SERVER_STORE_STORE_WATCH_H
#define SERVER_STORE_STORE_WATCH_H

#include "store.h"
#include "watch_branches.h"

/* The place of a point in its series. */
struct watch_key {
    int64_t time_ms;
    int64_t run_id;
};

#define WATCH_TEXT_MAX 1604 /* as long as the schema lets a text be, in bytes */

/* One track in one run. */
struct watch_item {
    const struct watch_branches *branches; /* the watched ones: set before all else */
    int64_t run_id, track_id;
    int64_t series_id; /* of the candidate's point; 0: it has none that counts */
    int64_t device_id;
    char epoch[WATCH_TEXT_MAX];  /* "": not known, an epoch of its own */
    char branch[WATCH_TEXT_MAX]; /* "": not known */
};

struct watch_point {
    struct watch_key key;
    double p50_ns, control_ns; /* 0: not known */
    double best_ns;            /* what the run was held against; the same */
    double rel_err;            /* below 0: not known */
    double vendor_ratio;       /* its error over the vendor's; the same */
};

/* Where the last segment of a series in an epoch starts, and its last level. */
struct watch_segment {
    struct watch_key segment, cut;
};

struct watch_change {
    int64_t id;
    int64_t series_id;
    struct watch_key key;
    int64_t before_run_id;
    double before_ns, after_ns;
    bool by_control;
    double before_level, after_level;
    bool stands, settled;
    int64_t n_missed; /* looks in a row that did not find it */
};

/* The newest run, and the last one that was watched, in whole or in part; 0: none. */
enum gate_status store_watch_runs(struct store *s, int64_t *newest_id, int64_t *watched_id,
                                  struct gate_error *err);

/* The next track that was not watched, behind the item; *found: there is one. */
enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err);
/* To be called before the points of tracks are read, in each transaction: forgets which runs
 * count, which is asked once for a run and not for each of its points. */
void store_watch_forget(struct store *s);

/* Where to go on: the run and track of the last item. */
enum gate_status store_watch_mark(struct store *s, struct watch_item *item, struct gate_error *err);
enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err);

/*
 * The candidate's points of the item's series and epoch, from `from` on, that runs of watched
 * branches up to the item's brought, until fn says false: of the newest `limit` points of any run,
 * newest first. *all: fn saw them all.
 */
typedef bool (*watch_point_fn)(void *context, const struct watch_point *point);
enum gate_status store_watch_tail(struct store *s, const struct watch_item *item,
                                  struct watch_key from, int limit, watch_point_fn fn,
                                  void *context, bool *all, struct gate_error *err);
/* The same of the oldest ones, oldest first. */
enum gate_status store_watch_head(struct store *s, const struct watch_item *item,
                                  struct watch_key from, int limit, watch_point_fn fn,
                                  void *context, struct gate_error *err);

/* Of the item's series and epoch. */
enum gate_status store_watch_segment(struct store *s, const struct watch_item *item,
                                     struct watch_segment *out, struct gate_error *err);
enum gate_status store_put_watch_segment(struct store *s, const struct watch_item *item,
                                         const struct watch_segment *segment,
                                         struct gate_error *err);

/* The change points of the item's series and epoch that are not settled: at most `max`, *n. */
enum gate_status store_young_changes(struct store *s, const struct watch_item *item,
                                     struct watch_change *out, size_t max, size_t *n,
                                     struct gate_error *err);
/* One by its id, if it is of that epoch; out->id is 0 when it is not. */
enum gate_status store_find_change(struct store *s, int64_t id, const char *epoch,
                                   struct watch_change *out, struct gate_error *err);
/* Inserts when the id is 0, and sets it; updates otherwise. */
enum gate_status store_put_change(struct store *s, struct watch_change *c, struct gate_error *err);

/*
 * The first best of at least `least_ns` to which an accept raised the track in a run of any branch,
 * newer than `after_run_id` and not newer than the item's; *to_ns is 0 when there is none.
 */
enum gate_status store_raised_best(struct store *s, const struct watch_item *item,
                                   int64_t after_run_id, double least_ns, double *to_ns,
                                   struct gate_error *err);

#endif
