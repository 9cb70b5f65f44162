/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_effects.h: what a library changes before its first launch.
 *
 * The checks of a verification compare the state after launches with the state before them, so that
 * a limit that was set while the library was opened, or in prepare(), would pass for the usual.
 */
#ifndef GATE_VERIFY_LOAD_EFFECTS_H
#define GATE_VERIFY_LOAD_EFFECTS_H

#include "gate/verify/verify_state.h"

struct load_effects {
    struct state process;
    struct device_state device;
};

enum gate_status load_effects_read(struct device *d, struct load_effects *out,
                                   struct gate_error *err);

/* GATE_WRONG when the state is another one than `before`; `what` is what changed it.
 * GATE_ENVIRONMENT: the device's memory went to another process, or it is not known to which. */
enum gate_status load_effects_compare(struct device *d, const struct load_effects *before,
                                      const char *what, struct gate_error *err);

#endif
