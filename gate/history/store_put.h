/*
 * store_put.h: what the files share that take a run document apart. Not for the store's users.
 */
#ifndef GATE_HISTORY_STORE_PUT_H
#define GATE_HISTORY_STORE_PUT_H

#include "gate/base/json.h"
#include "gate/history/run_rows.h"
#include "gate/history/store_pack.h"
#include "gate/history/store_private.h"

#define PUT_N_KERNELS 8 /* arms of a case */

/* A kernel of the run, by its name in the document. */
struct put_kernel {
    const char *name;
    int64_t id;
};

/* One run on its way in. */
struct put {
    struct store *store;
    const cJSON *document; /* whose cases may be gone */
    const struct run_rows *rows;
    const struct store_packed *packed;
    enum store_put_outcome *outcome;
    const char *uuid;
    const char *branch; /* "": not known */
    const char *contract;
    const char *epoch;
    int64_t time_ms;
    int64_t run_id;
    int64_t device_id;
    struct put_kernel *kernels; /* PUT_N_KERNELS, of the last case, by arm */
    struct gate_error *err;
};

/* A track that the run has, as it was before. */
struct put_track {
    int64_t id;
    bool newest;      /* no run of the track that is stored is newer than this one */
    int64_t point_ms; /* -1: it has none */
    bool moves_point; /* this run has its newest point */
};

/* store_put_case.c: the track of a case, made where there is none, and the case's rows of it. */
enum gate_status put_case_track(const struct put *p, const struct run_case *c,
                                struct put_track *track);
enum gate_status put_case(const struct put *p, const struct run_case *c, struct put_track *track);
/* The timings of a case, store_put_point.c. The series of its candidate, 0: it has none. */
enum gate_status put_points(const struct put *p, const struct run_case *c, struct put_track *track,
                            int64_t *series_id);
/* What the case was compared with, store_put_baseline.c; called for the newest run of a track. */
enum gate_status put_baseline(const struct put *p, const struct run_case *c, int64_t track_id);
/* From when on the device had which epoch, store_put_epoch.c; the run is stored already. */
enum gate_status put_epoch(const struct put *p);
/* store_put_calibration.c; a document without one is fine. */
enum gate_status put_calibration(const struct put *p);

#endif
