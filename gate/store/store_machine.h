/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_machine.h: the machines of a device model, and what their newest runs say of them.
 */
#ifndef GATE_STORE_STORE_MACHINE_H
#define GATE_STORE_STORE_MACHINE_H

#include "gate/store/store.h"

#define MACHINE_RUNS 20  /* the newest, that the numbers are of */
#define MACHINE_LEAST 3  /* runs that make a level, and machines that make a model's */
#define MACHINE_FAR 3    /* spreads that a machine may be off */
#define MACHINES_MAX 200 /* the newest */

struct store_machine {
    char device_model[65];
    char *name, *host, *gpu; /* host, gpu "": not known */
    int64_t n_runs, time_ms; /* time_ms: of the newest run */
    /* of the newest MACHINE_RUNS */
    int64_t n_cases, n_no_verdict, n_environment;
    double control_drift; /* median of those that are known; -1: none is */
    size_t n_levels;
    double level;   /* median of ln of the control's time */
    double scatter; /* robust standard deviation of it, between runs */
    /* against the other machines of the model; spread 0: there are too few to tell */
    double off; /* of the level, as a share of time */
    double spread;
    bool is_off;
    /* the newest calibration; calibrated_ms 0: there is none */
    char calibration_run[37];
    int64_t calibrated_ms, n_calibrated, n_resolved;
    double threshold, mde; /* mde: the worst of its cases, -1: not known */
};

struct store_machines {
    struct store_machine *list; /* the one with the newest run first */
    size_t n;
};

/* device_model NULL: any. Release them whatever comes back. */
enum gate_status store_machines(struct store *s, const char *device_model,
                                struct store_machines *out, struct gate_error *err);
void store_machines_release(struct store_machines *m);

/* Says of each machine how far it is from the level of its model. */
void machines_compare(struct store_machine *list, size_t n);

#endif
