/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h: launches machine code by CUDA's driver, which is asked for by name: no CUDA header or
 * library is needed to build the gate. The device's context is current already.
 */
#ifndef GATE_LIBRARY_DRIVER_H
#define GATE_LIBRARY_DRIVER_H

#include "gate/base/error.h"

struct driver_launch {
    void *function;
    unsigned grid[3], cluster[3], block[3];
    unsigned shared; /* dynamic bytes */
    void *stream;
    void **arguments; /* where each value lies */
};

/* GATE_ENVIRONMENT: there is no driver, or too old a one. */
enum gate_status driver_start(struct gate_error *err);

/* Loads a cubin. GATE_WRONG, with the driver's reason. */
enum gate_status driver_load(const void *cubin, void **module, struct gate_error *err);
void driver_unload(void *module); /* NULL is fine */

/* GATE_WRONG: it has none of this name. */
enum gate_status driver_function(void *module, const char *name, void **function,
                                 struct gate_error *err);

/* Lets launches have so many dynamic bytes of shared memory, and such clusters. */
enum gate_status driver_allow(const struct driver_launch *l, struct gate_error *err);
enum gate_status driver_allow_cluster(const struct driver_launch *l, struct gate_error *err);

/* False: the driver refuses. */
bool driver_launch(const struct driver_launch *l);

#endif
