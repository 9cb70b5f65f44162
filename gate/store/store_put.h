/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put.h: what the files share that take a run document apart. Not for the store's users.
 */
#ifndef GATE_STORE_STORE_PUT_H
#define GATE_STORE_STORE_PUT_H

#include "gate/document/document.h"
#include "gate/store/store_pack.h"
#include "gate/store/store_private.h"

#define PUT_N_KERNELS 8 /* arms of a case */

/* A kernel of the run, by its name in the document. */
struct put_kernel {
    const char *name;
    int64_t id;
};

/* One run on its way in. */
struct put {
    struct store *store;
    const struct document *document;
    const struct store_packed *packed;
    enum store_put_outcome *outcome;
    const char *epoch; /* "": not known */
    int64_t run_id;
    int64_t device_id;
    int64_t machine_id;         /* 0: not known */
    struct put_kernel *kernels; /* PUT_N_KERNELS, of the last case, by arm */
    struct gate_error *err;
};

/*
 * What the tables have of a case. A timing counts only if its arm passed verification in this run,
 * and a candidate's only if its case is not wrong. The baseline that is measured beside the
 * candidate is neither candidate nor provider: it is the line that both are compared with.
 */
struct put_figures {
    const struct document_arm *candidate; /* the first; NULL: none that counts */
    double baseline_p50_ns; /* as measured in this run, else as on record; NAN: neither */
    double control_ns;      /* median over the processes; 0: not known */
    const char *peer;       /* the provider that is hardest to beat; "": none */
    double peer_ratio;      /* the candidate's p50 over its */
};

/* A track that the run has, as it was before. */
struct put_track {
    int64_t id;
    bool newest;      /* no run of the track that is stored is newer than this one */
    int64_t point_ms; /* -1: it has none */
    bool moves_point; /* this run has its newest point */
};

/* store_put_case.c: the track of a case, made where there is none, and the case's rows of it. */
enum gate_status put_case_track(const struct put *p, const struct document_case *c,
                                struct put_track *track);
enum gate_status put_case(const struct put *p, const struct document_case *c,
                          struct put_track *track);
/* store_put_figures.c. */
bool put_counts(const struct document_case *c, const struct document_arm *arm);
void put_figures_read(const struct document_case *c, struct put_figures *out);
/* The timings of a case, store_put_point.c. The series of its candidate, 0: it has none. */
enum gate_status put_points(const struct put *p, const struct document_case *c,
                            const struct put_figures *figures, struct put_track *track,
                            int64_t *series_id);
/* What the case was compared with, store_put_baseline.c; called for the newest run of a track. */
enum gate_status put_baseline(const struct put *p, const struct document_baseline *baseline,
                              int64_t track_id);
/* From when on the device had which epoch, store_put_epoch.c; the run is stored already. */
enum gate_status put_epoch(const struct put *p);
/* What its verification covered, store_put_coverage.c; nothing of one that does not say. */
enum gate_status put_coverage(const struct put *p, const struct document_case *c);
/* store_put_calibration.c; a document without one is fine. */
enum gate_status put_calibration(const struct put *p);

#endif
