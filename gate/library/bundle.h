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
                             struct gate_error *err);
void bundle_close(struct bundle *b); /* NULL is fine */

const struct kg_library *bundle_table(const struct bundle *b);

/* Loads the machine code that this GPU can run. GATE_WRONG: it can run none; else as driver.h. */
enum gate_status bundle_start(struct bundle *b, const struct kg_device *device,
                              struct gate_error *err);

bool bundle_has(const struct kg_kernel *k); /* is it of a bundle? Then: */
bool bundle_serves(const struct kg_kernel *k, const struct kg_problem *p,
                   const struct kg_device *device);
enum kg_status bundle_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *device, void **plan);
const char *bundle_fault(const struct kg_kernel *k); /* why it did not; "": not known */

#endif
