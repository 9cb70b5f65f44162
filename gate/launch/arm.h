/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.h: one kernel that takes part in a case: the candidate, the baseline it is compared with, or
 * a provider beside them. Its plan, its launches, and the machine code that they run.
 */
#ifndef GATE_LAUNCH_ARM_H
#define GATE_LAUNCH_ARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/device/device.h"
#include "gate/library/library.h"
#include "gate/library/machine_code.h"
#include "gate/document/document.h"
#include "gate/cases/problem.h"
#include "gate/cases/suite.h"

/* ---- operands.c: the device memory of one input set of a problem ---- */

/* Bytes that are no tensor's before the first and, at least, behind each. */
struct operands_zones {
    size_t before, behind;
};

struct operands {
    struct kg_args args; /* tensors and stream are filled in; the workspace is the launch's */
    struct problem_tensor in[KG_MAX_TENSORS], out[KG_MAX_TENSORS];
    struct operands_zones zones;
};

#define OPERANDS_RED_ZONE 4096

/* What is verified lies in red zones, what is timed has gaps. */
static const struct operands_zones operands_red_zones = {OPERANDS_RED_ZONE, OPERANDS_RED_ZONE};
static const struct operands_zones operands_gaps = {0, 256};

/* Bytes of one set of dense tensors, each aligned to 256 bytes. */
size_t operands_bytes(const struct kg_problem *p, struct operands_zones zones);

/* The set at `memory`, which is operands_bytes() long, aligned to 256 bytes, and stays the
 * caller's. The contents are garbage. */
struct operands operands_at(struct device *d, const struct kg_problem *p, void *memory,
                            struct operands_zones zones);

/* Fills the red zones, or the gaps, with a byte. */
enum gate_status operands_fill_zones(struct device *d, const struct operands *o, unsigned char byte,
                                     struct gate_error *err);

/* Says in `text` which of them is not filled with that byte any more; "": none. */
enum gate_status operands_check_zones(struct device *d, const struct operands *o,
                                      unsigned char byte, char *text, size_t size,
                                      struct gate_error *err);

/* The same for the red zones before and behind a piece of memory, which is told as `what`. */
enum gate_status operands_check_around(struct device *d, const void *begin, size_t bytes,
                                       const char *what, unsigned char byte, char *text,
                                       size_t size, struct gate_error *err);

/* One hash over each `each` spans of n * each. */
enum gate_status operands_hash_spans(struct device *d, const struct device_span *spans, size_t n,
                                     size_t each, uint64_t *hashes, struct gate_error *err);

/* One hash over all inputs of a set, or over all outputs of each of n sets of one problem. */
enum gate_status operands_hash_inputs(struct device *d, const struct operands *o, uint64_t *hash,
                                      struct gate_error *err);
enum gate_status operands_hash_outputs(struct device *d, const struct operands *sets, size_t n,
                                       uint64_t *hashes, struct gate_error *err);

/* What no launch may write: each input, and then what lies behind each tensor. */
#define OPERANDS_KEPT_MAX (3 * KG_MAX_TENSORS)
unsigned operands_kept(const struct operands *o);
/* Hashes of these of n sets of one problem, operands_kept() of each set. */
enum gate_status operands_hash_kept(struct device *d, const struct operands *sets, size_t n,
                                    uint64_t *hashes, struct gate_error *err);
/* Says which one it is, and for a zone filled with `byte` how much of it was written. */
enum gate_status operands_describe_kept(struct device *d, const struct operands *o, unsigned which,
                                        unsigned char byte, char *text, size_t size,
                                        struct gate_error *err);

/* Fills input i, `count` elements with what lies between its rows: with normal numbers, scales, or
 * any of what the file of a user's op allows; `exact`: with the integers of PROBE_INTEGERS. `id`:
 * the case's, NULL for another problem than a case's. */
enum gate_status operands_fill_input(struct device *d, const struct kg_problem *p, unsigned i,
                                     const struct kg_tensor *t, int64_t count, bool exact,
                                     const char *id, uint64_t seed, struct gate_error *err);

/* Fills each input from `seed`, or with the case's literal values; restores outputs. Inputs that
 * say how much work there is follow from the case's id alone, so that each run times the same work.
 */
enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err);

/* Bytes that make a NaN, and a large finite number, of every dtype: what was not written shows. */
enum { POISON_NAN = 0xff, POISON_LARGE = 0x5a };

/* Gives outputs that are updated in place the contents that they begin with: those of a set, or of
 * any arguments whose outputs are `outputs`. */
enum gate_status operands_restore(struct device *d, const struct operands *o,
                                  struct gate_error *err);
enum gate_status operands_restore_args(struct device *d, const struct problem_tensor *outputs,
                                       const struct kg_args *args, struct gate_error *err);

/* Fills outputs with a byte, but restores these. */
enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err);

/* ---- fingerprints of a kernel's verified outputs, by operands_hash_outputs() ----
 *
 * They hold for one case, seed and device, in every process: the process that verified a kernel
 * reports them, and the others compare the outputs of what they time with them.
 */

/* Input contents that are verified; timed launches work on these and no others. */
#define VERIFY_SEEDS 3

struct fingerprints {
    bool known; /* all of them */
    uint64_t of[VERIFY_SEEDS];
};

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
