/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_guard.h: operands with nothing mapped beside them.
 *
 * A red zone shows what was written there, and a NaN in it what was read and used. What was read
 * and not used, or read far away, shows when there is no memory: the launch dies of it.
 */
#ifndef GATE_VERIFY_VERIFY_GUARD_H
#define GATE_VERIFY_VERIFY_GUARD_H

#include "gate/device/device.h"
#include "gate/verify/verify_layout.h"

enum guard_side {
    GUARD_NONE,
    GUARD_BEHIND, /* tensors end where their memory ends, but for what 16 bytes of alignment leave
                   */
    GUARD_BEFORE, /* tensors begin where their memory begins */
    GUARD_FAR,    /* rows far apart, of verify_large_strides.h */
};

const char *guard_side_name(enum guard_side side); /* " before unmapped memory", ... */

/* Memory of the tensors in the order of an image, and of the workspace; it only grows. */
struct guard {
    struct device_memory tensor[PROBLEM_MAX_TENSORS], workspace;
};

/* Room for the tensors of a dense image, and a workspace. GATE_ENVIRONMENT: the device gives no
 * such memory, and `err` says why. */
enum gate_status guard_make(struct device *d, struct guard *g, const struct image *image,
                            uint64_t workspace_bytes, struct gate_error *err);
void guard_release(struct device *d, struct guard *g);

/* Lets the arguments of a launch point there. */
void guard_place(const struct guard *g, enum guard_side side, const struct image *image,
                 struct kg_args *args);

/* Copies the tensors there from `slab`, the image on the device, and back again. All else there,
 * the workspace too, is `poison`. */
enum gate_status guard_enter(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, const void *slab, unsigned char poison,
                             struct gate_error *err);
enum gate_status guard_leave(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, struct gate_error *err);

#endif
