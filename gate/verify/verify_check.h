/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_check.h: one kernel, one small problem, one probe, one layout: launched and looked at.
 *
 * A check uploads an image (verify_layout.h), launches, downloads all of it and looks: at every
 * element of the outputs, and at every byte that no kernel may touch. It launches again on what the
 * first launch left behind: the outputs must be the same bits, or, for a kernel that declares
 * itself non-deterministic, right each time. Then once more with one element of one input changed,
 * and among other bytes: what the kernel remembers of the inputs is of no use there.
 */
#ifndef GATE_VERIFY_VERIFY_CHECK_H
#define GATE_VERIFY_VERIFY_CHECK_H

#include "gate/launch/arm.h"
#include "gate/verify/verify_large_strides.h"
#include "gate/verify/verify_guard.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"

struct bench {
    struct device *device;
    const struct arm *arm; /* its kernel is preferred; else its library chooses */
    unsigned repeats;      /* launches on what the one before left behind */

    struct verification *found; /* what checks add to: checks, what is left out, the first fault */
    struct device_memory slab, reference, workspace;
    struct guard guard;
    struct far far;
    const struct kg_kernel *kernel; /* of the problem in hand, which is prepared */
    uint64_t workspace_bytes;
};

struct check {
    struct kg_problem problem;
    enum probe probe;
    struct image_layout layout;
    enum guard_side guard; /* of a dense layout */
    uint64_t seed;
    bool thorough; /* launched again and changed; else one of them, by the seed */
};

#define CHECK_TEXT_MAX (PROBLEM_ID_MAX + LAYOUT_TEXT_MAX + 120)

/* "probe 'exact integers' on gemm/fp16/m131-n136-k72 (dense, unmapped memory behind" */
void check_text(const struct check *check, enum guard_side guard, char text[CHECK_TEXT_MAX]);

/* The kernel, or another of its library, that serves the problem; NULL: none. */
const struct kg_kernel *bench_kernel(const struct bench *b, const struct kg_problem *p);
bool bench_serves(const struct bench *b, const struct kg_problem *p);

/* Calls prepare() of the problem's kernel, if there is one: of all that are to be checked before
 * the first one is launched, since a plan may be used for another problem than its own. */
void bench_prepare(struct bench *b, const struct kg_problem *p);

/*
 * Runs one check. What is wrong is an answer: found->ok and found->message. GATE_WRONG: a launch
 * failed, and the device may be spoiled; found says so too. A problem that no kernel serves is not
 * counted; a layout that the kernel refuses is counted as left out, and gives way to one without
 * odd rows, then to dense tensors; a guard that the device does not give is counted as left out,
 * though the check is made without it.
 */
enum gate_status bench_check(struct bench *b, const struct check *check, struct gate_error *err);

/* The problem's kernel and workspace become the bench's; false: no kernel, or something is wrong.
 */
bool bench_choose(struct bench *b, const struct kg_problem *p, enum gate_status *status,
                  struct gate_error *err);

/* Memory that only grows: equal problems get equal addresses. */
enum gate_status bench_reserve(struct bench *b, struct device_memory *m, size_t bytes,
                               struct gate_error *err);

void bench_release(struct bench *b);

#endif
