/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: the plans that kernels make of problems, kept until a case is done with.
 *
 * A process works on one case at a time, in one thread; so there is one list.
 */
#ifndef GATE_LAUNCH_PLAN_H
#define GATE_LAUNCH_PLAN_H

#include "kernels/kernel.h"

/* Calls prepare(), if the kernel has it and did not make a plan of this problem yet. */
enum kg_status plan_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                            const struct kg_device *where);

/* NULL: there is none. */
void *plan_of(const struct kg_kernel *k, const struct kg_problem *p);

/* 0 for a kernel that takes none. */
uint64_t plan_workspace_bytes(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *where);

/* Releases all. What was recorded with them is not launched any more. */
void plan_release_all(void);

#endif
