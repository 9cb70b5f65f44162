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

/* Checks that were wanted and not made as asked. */
struct left_out {
    unsigned refused;     /* layouts, by the kernel */
    unsigned not_served;  /* shapes that no kernel of the library serves */
    unsigned not_guarded; /* looked at in plain memory, since the device gave no other */
    unsigned too_large;   /* shapes, for the tier or the memory */
    char why_not_guarded[160];
    const char *not_declared; /* what the file of a user's op leaves out; NULL: nothing */
};

#define COVERAGE_VALUES 24
#define COVERAGE_LAYOUTS 8

/* What the checks have covered. */
struct coverage {
    unsigned values[COVERAGE_VALUES];   /* checks with each kind of inputs, an enum probe */
    unsigned small, as_large, giant;    /* shapes other than the case's */
    unsigned strided;                   /* checks in other layouts than dense ones */
    unsigned layouts[COVERAGE_LAYOUTS]; /* checks in which a tensor has one, enum tensor_layout */
    unsigned far, guarded;              /* checks with rows far apart, between unmapped pages */
    unsigned launches;                  /* whose outputs were looked at */
    unsigned in_a_row;                  /* of these, on one small shape */
    unsigned on_the_case;               /* in a row, of which the last one is compared */
    unsigned pairs, pairs_of;           /* of classes of sizes that met in a shape, of so many */
};

/* Worst figures over the seeds and outputs of one kernel's verification. */
struct verification {
    bool ok;
    unsigned seeds; /* input sets that were looked at */
    double rel_fro; /* relative Frobenius error; NaN when an element is not finite */
    /* The same of each output. */
    double output_rel_fro[KG_MAX_TENSORS];
    double limit;                      /* of rel_fro */
    double max_abs;                    /* largest absolute error */
    double allclose_1e2, allclose_1e3; /* smallest share of elements within atol = rtol */
    int64_t nonfinite;
    unsigned checks;     /* probes on neighbour shapes and layouts that were looked at */
    bool own_shape_only; /* the case's kernel took no other shape than the case's in them */
    struct left_out left_out;
    struct coverage coverage;
    char vendor[32];       /* the provider beside it; empty: none that is right */
    double vendor_rel_fro; /* of the vendor's own kernel on the same inputs */
    struct fingerprints fingerprints;
    char message[900]; /* empty when ok */
};

/* Notes what is wrong; the first fault is the message. */
void verification_fault(struct verification *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- what runs on the GPU when an arm is replayed ---- */

#define CODE_KERNELS_MAX 16

struct code_kernel {
    const char *name; /* mangled; the library's, until it is closed */
    char sha256[65];  /* of its machine code; "": not known */
    unsigned grid[3], block[3];
    unsigned shared_bytes; /* of a block, static and dynamic */
    unsigned launches;     /* by a call of launch(); 0: not known */
    struct resources resources;
};

struct code {
    char sha256[65]; /* of the kernels' machine code and the shapes of their grids; "": not known */
    uint64_t sequence; /* of device_kernels */
    uint64_t order;    /* the same of one launch; 0: not known */
    bool is_whole;     /* all kernels are below */
    bool has_resources;
    unsigned registers, spill_bytes, shared_bytes; /* the most that one of the kernels takes */
    struct code_kernel kernels[CODE_KERNELS_MAX];  /* the first ones */
    size_t n_kernels;
};

/* Of a replay of `calls` calls of launch(). `library`: the file that the kernels come from; NULL:
 * not known. `architecture`: the GPU's, 90 for sm_90. */
struct code code_of(const struct device_kernels *kernels, unsigned calls,
                    const struct machine_code *library, unsigned architecture);

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
    struct document_timing timing; /* without its lists, which record_arm() adds */
    double *samples_ns;            /* in the order taken, timing.samples; the arm's */
    struct code code;
};

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
