/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.h: which instructions of a regression's kernels occur more or less often than in the
 * baseline's, by nvdisasm, counted after the verdicts. What cannot be had is said, and changes no
 * verdict.
 */
#ifndef GATE_RUN_INSTRUCTIONS_H
#define GATE_RUN_INSTRUCTIONS_H

#include "gate/diff/listing.h"
#include "gate/run/run.h"

#define INSTRUCTIONS_MAX 400

/* What a case's document points to. */
struct instructions {
    struct document_instructions document;
    char message[500];
    const char *names[DOCUMENT_KERNELS_MAX];
    struct document_instruction changed[INSTRUCTIONS_MAX];
    char opcodes[INSTRUCTIONS_MAX][DOCUMENT_OPCODE_SIZE];
    char sources[INSTRUCTIONS_MAX][LISTING_SOURCE_SIZE];
};

/* Fills in the `instructions` of regressions with a kernel whose code changed; false: there are
 * none. After limit_s no further one is begun. */
bool instructions_run(struct run *run, double limit_s, void (*progress)(const char *text));

#endif
