/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_change.h: where trends changed, by the alerts (watch.h).
 */
#ifndef GATE_STORE_STORE_CHANGE_H
#define GATE_STORE_STORE_CHANGE_H

#include "gate/store/store.h"

struct store_change {
    int64_t id; /* of its alert; 0: it is where the level of one returned */
    int64_t time_ms;
    const char *run_uuid;
    const char *commit, *subject, *author, *parent;
    /* Of the last run before it; "" where an alert has none, and where a level returned. */
    const char *before_commit, *before_subject, *before_author;
    double before_ns, after_ns;
    double change; /* after over before, less 1 */
    const char *kind;
    const char *branch; /* of the run */
};

typedef bool (*store_change_fn)(void *context, const struct store_change *row);

/* Of one track (store_trend_result), oldest first. */
enum gate_status store_change_points(struct store *s, int64_t track, store_change_fn fn,
                                     void *context, struct gate_error *err);
/* A result that was wrong, and so never timed. */
struct store_wrong {
    int64_t time_ms;
    const char *run_uuid;
    const char *commit;                    /* "": not known */
    const char *subject, *author, *reason; /* the same */
    const char *branch;                    /* of the run */
};

typedef bool (*store_wrong_fn)(void *context, const struct store_wrong *row);

/* Of one track, newest first. */
enum gate_status store_wrong_results(struct store *s, int64_t track, int64_t limit,
                                     store_wrong_fn fn, void *context, struct gate_error *err);

/* A run that was compared with a newer baseline than all before it. */
struct store_baseline_change {
    int64_t time_ms;
    const char *run_uuid;
    const char *kind;                      /* "first", "lowered", "raised", "epoch" */
    double from_ns, to_ns;                 /* from_ns 0: not known */
    const char *commit, *subject, *author; /* of the baseline; "": not known */
    const char *branch;                    /* of the run */
};

typedef bool (*store_baseline_change_fn)(void *context, const struct store_baseline_change *row);

/* Of one track, newest first. */
enum gate_status store_baseline_changes(struct store *s, int64_t track, int64_t limit,
                                        store_baseline_change_fn fn, void *context,
                                        struct gate_error *err);

#endif
