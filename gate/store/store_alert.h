/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_alert.h: alerts and the steps of their lives, in the same file as the history.
 *
 * An alert is opened by alerts.h, once for a confirmed verdict, a change of level or a jump of the
 * error. People take it through its states; the server itself closes it as fixed when the level
 * returns, as accepted when somebody accepted the new level as baseline, and opens it again when
 * that was too early.
 */
#ifndef GATE_STORE_STORE_ALERT_H
#define GATE_STORE_STORE_ALERT_H

#include "gate/store/store.h"

#define ALERT_MAX_REASON 500       /* characters */
#define ALERT_MAX_ASSIGNEE 64      /* the same */
#define ALERT_SERVER "gate-server" /* who, where the server itself did it */

enum alert_state {
    ALERT_NEW,
    ALERT_ACKNOWLEDGED,
    ALERT_ACCEPTED,
    ALERT_FIXED,
    ALERT_IGNORED,
    ALERT_STATES
};

enum alert_kind { ALERT_REGRESSION, ALERT_IMPROVEMENT, ALERT_ERROR, ALERT_WRONG, ALERT_KINDS };

/* The words of the API. */
const char *alert_state_name(enum alert_state state);
/* False: no such word. */
bool alert_state_of(const char *name, enum alert_state *out);

/* ---- writes: each in a transaction of its own, or a part of the one that is open ---- */

enum alert_step { STEP_DONE, STEP_NO_ALERT, STEP_REFUSED };

/* What somebody does with alerts. */
struct alert_action {
    bool has_state; /* takes them to the state `to` */
    enum alert_state to;
    const char *assignee; /* NULL: as it is, "": nobody */
    const char *who;
    const char *reason; /* "": none; the caller's rules say where it is needed */
    int64_t now_ms;
};

/*
 * Does it with all of the ids, a JSON array, or with none: *step is then not STEP_DONE, and
 * *refused the first one that prevents it. Steps that there are: from new to any other state, from
 * acknowledged to any that closes an alert, from any back to new.
 */
enum gate_status store_act_on_alerts(struct store *s, const char *ids,
                                     const struct alert_action *action, enum alert_step *step,
                                     int64_t *refused, struct gate_error *err);

/* ---- what alerts.c reads of trends, and where it goes on; what writes is in a transaction ---- */

/* The place of a run: that of its commit, and its own time among the runs of that. */
struct watch_key {
    int64_t place_ms;
    int64_t time_ms;
    int64_t run_id;
};

static inline int watch_compare(struct watch_key a, struct watch_key b)
{
    if (a.place_ms != b.place_ms)
        return a.place_ms < b.place_ms ? -1 : 1;
    if (a.time_ms != b.time_ms)
        return a.time_ms < b.time_ms ? -1 : 1;
    return a.run_id < b.run_id ? -1 : a.run_id > b.run_id;
}

#define WATCH_TEXT_MAX 1604 /* as long as the schema lets a text be, in bytes */

#define WATCH_KNOWN 1024

/*
 * What points say of their runs and of the commits of their baselines, in the looks of one write:
 * all tracks of a run have the same ones, and to find them takes longer than to read a point.
 */
struct watch_known {
    int64_t run_id; /* of the item: the epoch is its own */
    struct watch_run {
        int64_t id, revision;
        bool own_epoch;
    } run[WATCH_KNOWN]; /* each at the place that its id gives it */
    char commit[41];    /* of a baseline, the last one that was asked for */
    int64_t revision, place_ms;
};

/* One track in one run. */
struct watch_item {
    const char *main_branch; /* set before all else, as is: */
    struct watch_known *known;
    int64_t run_id, track_id;
    struct store_series series;  /* of the candidate; "": it never had a verified timing */
    char epoch[WATCH_TEXT_MAX];  /* "": not known, an epoch of its own */
    char branch[WATCH_TEXT_MAX]; /* "": not known */
};

enum watch_verdict {
    WATCH_GOOD, /* pass or improvement */
    WATCH_REGRESSION,
    WATCH_WRONG,
    WATCH_NONE /* no verdict, or environment */
};

/* A result of the candidate. One that was wrong has no timing, and 0 in p50_ns. */
struct watch_point {
    struct watch_key key;
    enum watch_verdict verdict;
    bool own_epoch;            /* that of the item */
    double p50_ns, control_ns; /* 0: not known */
    double baseline_ns;        /* p50 of the baseline; the same */
    double ratio;              /* over the baseline's, from pairs; the same */
    double judged;             /* of a regression: the ratio that its verdict names; the same */
    int64_t baseline_ms;       /* when that became the baseline; 0: not known */
    int64_t baseline_revision; /* of what commit; 0: not known */
    int64_t baseline_place_ms; /* of that commit; the same */
    int64_t revision;          /* the run's own; 0: none */
    double rel_err;            /* below 0: not known */
    double vendor_ratio;       /* its error over the vendor's; the same */
    bool is_repeat; /* of a commit that was measured before, when a later one had been too */
};

/* The next track that was not watched, behind the item; *found: there is one. */
enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err);

/* Where to go on: the run and track of the last item. */
enum gate_status store_watch_mark(struct store *s, struct watch_item *item, struct gate_error *err);
enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err);

/*
 * Newest first, until fn says false: the candidate's newest `limit` points of the item's series
 * that runs of the main branch up to the item's brought.
 */
typedef bool (*watch_point_fn)(void *context, const struct watch_point *point);
enum gate_status store_watch_points(struct store *s, const struct watch_item *item, int limit,
                                    watch_point_fn fn, void *context, struct gate_error *err);
/* The same of the results of the item's track that were wrong, from `from` on. */
enum gate_status store_watch_wrong(struct store *s, const struct watch_item *item,
                                   struct watch_key from, int limit, watch_point_fn fn,
                                   void *context, struct gate_error *err);

/* Which change of a track's baseline is looked for, in runs of any branch. */
struct baseline_log {
    int64_t after_run_id, after_ms; /* newer than that run, and than that time; 0: any */
    int64_t until_baseline_ms;      /* it became the baseline then, or before; 0: not known */
    const char *kind;               /* "raised" by an accept, or "lowered" */
    double level_ns;                /* it is not further than `within` from it on the side that */
    double within;                  /* it came from; 0: whatever it is, and lowered as raised */
};

/* The first such change that is not newer than the item's run; *to_ns is 0 when there is none. */
enum gate_status store_logged_baseline(struct store *s, const struct watch_item *item,
                                       const struct baseline_log *log, double *to_ns,
                                       struct gate_error *err);

/* ---- what alerts.c does with alerts; in a transaction ---- */

/* An alert as far as the server handles it by itself. */
struct alert_row {
    int64_t id;
    enum alert_kind kind;
    enum alert_state state;
    bool confirmed;
    bool own_epoch; /* its run's is that of the item */
    bool by_server; /* its last step was the server's own */
    bool by_vendor;
    bool was_reopened;                 /* by the server */
    int64_t reopened_ms;               /* when a person last opened it again; 0: nobody did */
    int64_t place_ms, time_ms, run_id; /* the place of its run's commit */
    int64_t before_run_id, end_run_id; /* 0: none */
    double before, after, change;
};

/* The newest alerts of a series, and of wrong results of its track: at most `max`, *n of them. */
enum gate_status store_track_alerts(struct store *s, int64_t track_id,
                                    const struct store_series *series, const char *epoch,
                                    struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err);
/* Opens it; its id is set. */
enum gate_status store_raise_alert(struct store *s, int64_t track_id,
                                   const struct store_series *series, struct alert_row *alert,
                                   int64_t now_ms, struct gate_error *err);
/* What is known by now of where it is and what it is worth; end_run_id too. */
enum gate_status store_move_alert(struct store *s, const struct alert_row *alert,
                                  struct gate_error *err);
/* A step of the server's own, whatever the state was; `end_run_id` 0: the level did not return. */
enum gate_status store_server_step(struct store *s, const struct alert_row *alert,
                                   enum alert_state to, int64_t end_run_id, const char *reason,
                                   int64_t now_ms, struct gate_error *err);

#endif
