/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: what a worker knows, as parts of a run document. Texts stay those of what is recorded.
 */
#ifndef GATE_WORKER_RECORD_H
#define GATE_WORKER_RECORD_H

#include "gate/document/document.h"
#include "gate/launch/arm.h"

struct document_device record_device(const struct device_info *info);
struct document_library record_library(const struct library *lib, enum document_role role);

/* What a recorded arm points to. */
struct record_memory {
    char *samples, *launches;
    struct record_kernels *kernels;
};

/* *memory is the caller's (record_free), and holds what is recorded. */
struct document_arm record_arm(const struct arm *arm, const struct kg_problem *p,
                               struct record_memory *memory);
void record_free(struct record_memory *memory);

#endif
