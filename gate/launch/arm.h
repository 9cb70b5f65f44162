/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.h: one kernel that takes part in a case: the candidate, the baseline it is compared with, or
 * a provider beside them. Its plan, its launches, and the machine code that they run.
 */
#ifndef GATE_LAUNCH_ARM_H
#define GATE_LAUNCH_ARM_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/device/device.h"
#include "gate/library/library.h"
#include "gate/library/machine_code.h"
#include "gate/launch/operands.h"
#include "gate/document/document.h"

#define ARMS_MAX 8

/* What is known of one kernel by its verification. */
struct verification {
    bool ok;
    char message[900]; /* empty when ok */
    /* Its figures as the run's document has them, the worst over seeds and outputs; a count that is
     * 0 is not there. Its texts and lists are those of the other members, once the case is done. */
    struct document_verify record;
    struct document_output outputs[DOCUMENT_OUTPUTS_MAX];
    double vendor_rel_fro; /* of record.vendor, the provider beside it, on the same inputs */
    unsigned probes;       /* that were asked, a bit each */
    char why_not_guarded[160];
    struct fingerprints fingerprints;
};

/* Notes what is wrong; the first fault is the message. */
void verification_fault(struct verification *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Counts a check that was wanted and not made as asked, by its reason: refused, not_served,
 * not_guarded or too_large of the record. */
void verification_skip(struct verification *v, int64_t *reason);

/* ---- what runs on the GPU when an arm is replayed ---- */

/* What a replay runs, and what the timing of its arm points to. */
struct code {
    uint64_t sequence; /* of device_kernels */
    char sha256[65]; /* of the kernels' machine code and the shapes of their grids; "": not known */
    char *launches;  /* revision.h; NULL: not all of it is known */
    struct document_kernel kernels[DOCUMENT_KERNELS_MAX]; /* the first ones */
    struct {
        char name[DOCUMENT_KERNEL_NAME_SIZE], sha256[65], grid[48], block[48];
    } texts[DOCUMENT_KERNELS_MAX];
};

/*
 * Of a replay of `calls` calls of launch(), whose order is that of one call. `library`: the file
 * that the kernels come from; NULL: not known. `architecture`: the GPU's, 90 for sm_90. Fills what
 * the timing says of it; registers, spilt and shared bytes are the most that a kernel takes.
 */
void code_read(struct code *code, const struct device_kernels *kernels, unsigned calls,
               const struct machine_code *library, unsigned architecture,
               struct document_timing *out);

/* Do both replays run the same machine code, in the same order, on the same arguments? Two replays
 * of one process, on the same buffers; false where that is not known of one of them. */
bool code_is_same(const struct code *a, const struct code *b);

/* ---- an arm ---- */

#define ARM_COPIES 2 /* of a library, at most */

struct arm {
    const struct library *library;
    const struct kg_kernel *kernel;
    const struct kg_kernel *second_copy; /* the same of a second copy of the library; NULL: none */
    enum document_role role;             /* the candidate is always the first arm */
    uint64_t workspace_bytes;            /* that its launches need */
    struct verification verification;
    bool timed;
    struct document_timing timing;
    char *samples; /* of timing.samples_ns */
    struct code code;
};

/* Frees what it holds, but for the library's plans. */
void arm_release(struct arm *arm);

/* What a launch of an arm needs; the context of device_launch_fn for arm_launch(). */
struct arm_launch {
    const struct arm *arm;
    const struct kg_kernel *kernel; /* of the arm, or its second_copy */
    const struct kg_problem *problem;
    void *plan;                  /* of the kernel for the problem */
    const struct operands *sets; /* launch i uses sets[i % n_sets] */
    unsigned n_sets;
    struct device_memory workspace; /* the same for all arms of a case, like the operands */
};

/*
 * The plans that kernels make of problems, kept until a case is done with. A process works on one
 * case at a time, in one thread; so there is one list.
 */

/* Calls prepare(), if the kernel did not make a plan of this problem yet. */
enum kg_status plan_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                            const struct kg_device *where);

/* NULL: there is none. */
void *plan_of(const struct kg_kernel *k, const struct kg_problem *p);

/* 0 for a kernel that takes none. */
uint64_t plan_workspace_bytes(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *where);

/* Releases all. What was recorded with them is not launched any more. */
void plan_release_all(void);

/* How the worker's protocol calls an arm: "baseline", or the name of its provider. */
const char *arm_label(const struct arm *arm);

/* Calls prepare() of one of the arm's kernels and asks for the size of the workspace: the arm's is
 * the larger of them. */
enum gate_status arm_prepare(struct device *d, const struct kg_problem *p, struct arm *arm,
                             const struct kg_kernel *kernel, struct gate_error *err);

/* A launch of one of the arm's kernels, which is prepared, on one set. */
struct arm_launch arm_launch_of(const struct arm *arm, const struct kg_kernel *kernel,
                                const struct kg_problem *problem, const struct operands *set,
                                struct device_memory workspace);
enum kg_status arm_launch(void *context, unsigned index, void *stream);

#endif
