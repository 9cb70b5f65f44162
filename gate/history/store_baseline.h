/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_baseline.h: what runs were compared with, as their documents tell, and how that changed.
 */
#ifndef GATE_HISTORY_STORE_BASELINE_H
#define GATE_HISTORY_STORE_BASELINE_H

#include "gate/history/store.h"

/* What the newest run of a case was compared with. */
struct store_baseline {
    const char *case_id;
    const char *device_model;
    const char *contract;
    double p50_ns;
    const char *commit;           /* "": not known */
    const char *subject, *author; /* of it; the same */
    int64_t time_ms;              /* when it became the baseline */
    const char *epoch;            /* of the run */
    const char *run_uuid;
};

/* A run that was compared with a newer baseline than those before. */
struct store_baseline_change {
    int64_t id;
    const char *case_id;
    const char *device_model;
    int64_t time_ms; /* of the run */
    const char *run_uuid;
    double from_ns; /* 0: the first, of this contract */
    double to_ns;
    const char *commit;
    const char *subject, *author; /* of it; "": not known */
    const char
        *kind; /* "first", "lowered", "raised" or, when the run's epoch is another, "epoch" */
    const char *branch; /* of the run */
};

typedef bool (*store_baseline_fn)(void *context, const struct store_baseline *row);
typedef bool (*store_baseline_change_fn)(void *context, const struct store_baseline_change *row);

/* A position in the list of baselines; rows start after it. case_id NULL: the start. */
struct store_baseline_key {
    const char *case_id;
    const char *device_model;
};

/* By case and device model; device_model NULL: any. */
enum gate_status store_baselines(struct store *s, const char *device_model,
                                 struct store_baseline_key after, int64_t limit,
                                 store_baseline_fn fn, void *context, struct gate_error *err);
/* Newest first, those with an id below `before` (INT64_MAX: all); device_model NULL: any. */
enum gate_status store_baseline_log(struct store *s, const char *device_model, int64_t before,
                                    int64_t limit, store_baseline_change_fn fn, void *context,
                                    struct gate_error *err);
enum gate_status store_baseline_log_of_track(struct store *s, int64_t track, int64_t before,
                                             int64_t limit, store_baseline_change_fn fn,
                                             void *context, struct gate_error *err);
/* The track of a case on a device model, 0: there is none. */
enum gate_status store_track(struct store *s, const char *case_id, const char *device_model,
                             int64_t *track, struct gate_error *err);

#endif
