/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_calibration.h: what a machine could tell, as `gate calibrate` measured it.
 */
#ifndef GATE_HISTORY_STORE_CALIBRATION_H
#define GATE_HISTORY_STORE_CALIBRATION_H

#include "gate/history/store.h"

/* A run with a calibration. */
struct store_calibration {
    int64_t id; /* for store_calibrated() */
    const char *run_uuid;
    int64_t time_ms;
    const char *device_model;
    const char *commit, *subject, *author;
    const char *contract;
    double threshold;
    int64_t processes;
    const char *host, *gpu, *machine; /* as in struct store_run */
};

/* One of its cases. */
struct store_calibrated {
    const char *case_id;
    double mde;    /* minimum detectable effect; -1: too few processes to tell */
    bool resolved; /* the machine resolves the threshold for this case */
    int64_t place; /* for store_injected() */
};

/* A share of time that was added, and what was decided, of `decisions` times. */
struct store_injected {
    double share;
    int64_t decisions, red, pass, no_verdict;
};

typedef bool (*store_calibration_fn)(void *context, const struct store_calibration *row);
typedef bool (*store_calibrated_fn)(void *context, const struct store_calibrated *row);
typedef bool (*store_injected_fn)(void *context, const struct store_injected *row);

/* A position in the list, newest first; rows start after it. */
struct store_calibration_key {
    int64_t time_ms; /* INT64_MAX: the start */
    int64_t id;
};

/* Newest first; device_model and machine NULL: any. A callback may ask for the cases of its row,
 * and that of a case for what was injected. */
enum gate_status store_calibrations(struct store *s, const char *device_model, const char *machine,
                                    struct store_calibration_key after, int64_t limit,
                                    store_calibration_fn fn, void *context, struct gate_error *err);
enum gate_status store_calibrated(struct store *s, int64_t calibration, store_calibrated_fn fn,
                                  void *context, struct gate_error *err);
enum gate_status store_injected(struct store *s, int64_t calibration, int64_t place,
                                store_injected_fn fn, void *context, struct gate_error *err);

#endif
