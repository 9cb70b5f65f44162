/* SPDX-License-Identifier: Apache-2.0 */
/* profile_launch.h: one launch for the profiler that this process was started by. */
#ifndef GATE_WORKER_PROFILE_LAUNCH_H
#define GATE_WORKER_PROFILE_LAUNCH_H

#include "gate/cases/suite.h"
#include "gate/launch/arm.h"

/* The arm is prepared. Its code is loaded and the GPU awake before the profiler looks. */
enum gate_status profile_launch(struct device *d, const struct suite_case *c, uint64_t seed,
                                struct arm *arm, struct gate_error *err);

#endif
