/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h: a bundle as a table of kernels, which the gate itself launches.
 *
 * A kernel of the table is asked by the functions below where one of a shared object has supports()
 * and prepare(), which do not say whose they are: several bundles may be open. All else is as
 * kernel.h says. An op that is not known yet is none that its kernels serve.
 */
#ifndef GATE_LIBRARY_BUNDLE_H
#define GATE_LIBRARY_BUNDLE_H

#include "gate/base/error.h"
#include "gate/library/piece.h"

struct bundle;

/* GATE_WRONG: "manifest:LINE:COLUMN: ..." what does not fit together. The piece, which has a
 * manifest, outlives the bundle. */
enum gate_status bundle_open(const struct piece *piece, struct bundle **out,
                             const struct kg_library **table, struct gate_error *err);
void bundle_close(struct bundle *b); /* NULL is fine */

/* Loads the machine code that this GPU can run. GATE_WRONG: it can run none; else as driver.h. */
enum gate_status bundle_start(struct bundle *b, const struct kg_device *device,
                              struct gate_error *err);

bool bundle_has(const struct kg_kernel *k); /* is it of a bundle? Then: */
bool bundle_serves(const struct kg_kernel *k, const struct kg_problem *p,
                   const struct kg_device *device);
enum kg_status bundle_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *device, void **plan);
const char *bundle_fault(const struct kg_kernel *k); /* why it did not; "": not known */

/* ---- driver.c: launches machine code by CUDA's driver ----
 *
 * It is asked for by name: no CUDA header or library is needed to build the gate. The device's
 * context is current already.
 */

struct driver_launch {
    void *function;
    unsigned grid[3], cluster[3], block[3];
    unsigned shared; /* dynamic bytes */
    void *stream;
    void **arguments; /* where each value lies */
};

/* GATE_ENVIRONMENT: there is no driver, or too old a one. */
enum gate_status driver_start(struct gate_error *err);

/* Of a cubin, which is loaded where *module is NULL. GATE_WRONG: it cannot be, or has none of this
 * name. */
enum gate_status driver_function(const void *cubin, void **module, const char *name,
                                 void **function, struct gate_error *err);
void driver_unload(void *module); /* NULL is fine */

/* Lets launches have so many dynamic bytes of shared memory, and such clusters. GATE_WRONG: *what
 * is refused, "shared" or "cluster". */
enum gate_status driver_allow(const struct driver_launch *l, const char **what,
                              struct gate_error *err);

/* False: the driver refuses. */
bool driver_launch(const struct driver_launch *l);

#endif
