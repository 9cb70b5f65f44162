/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h: one kernel on one problem, one kind of inputs and one layout: launched and looked at.
 *
 * A trial on the host builds an image (verify_layout.h), uploads it, launches, downloads all of it
 * and looks: at every element of the outputs, and at every byte that no kernel may touch. A problem
 * that is too large for that is tried on the device: filled, computed and compared there. Its
 * outputs are dense; red zones and hashes show what else was written. Either launches again on what
 * the first launch left behind, but for outputs that are updated in place, which are restored: the
 * outputs must be the same bits, or, for a kernel that declares itself non-deterministic, right
 * each time. Last, on the host, one element of one input changes, and all other bytes: what the
 * kernel remembers of the inputs is of no use there.
 */
#ifndef GATE_VERIFY_TRIAL_H
#define GATE_VERIFY_TRIAL_H

#include <pthread.h>

#include "gate/verify/verify.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"

struct bench {
    struct device *device;
    const struct arm *arm; /* its kernel is preferred; else its library chooses */

    struct verification *found; /* what trials add to: checks, what is left out, the first fault */
    struct device_memory slab, workspace; /* equal problems get equal addresses */
    struct reference reference;
    struct guard guard;
    const struct kg_kernel *kernel; /* of the problem in hand, which is prepared */
    uint64_t workspace_bytes;
};

/* Inputs and their fp64 outputs that a trial on the device copies. */
struct trial_given {
    const struct operands *inputs;
    const struct reference *reference;
};

struct trial {
    struct kg_problem problem;
    enum probe probe; /* on the device: random normal or exact integers */
    struct image_layout layout;
    enum guard_side guard; /* of a dense layout */
    struct far_choice far; /* of GUARD_FAR */
    uint64_t seed;
    unsigned repeats; /* launches on what the one before left behind */
    bool changed;     /* launched on changed inputs too; on the host alone */
    bool on_device;
    bool launches_only;              /* a sanitizer looks at them: nothing is compared */
    const struct trial_given *given; /* NULL: inputs are made */
    struct image *made; /* of trial_image(), taken over by who tries it; NULL: it is made then */
    int64_t *counted;   /* of a class of shapes; NULL: none */
};

#define TRIAL_TEXT_MAX (PROBLEM_ID_MAX + LAYOUT_TEXT_MAX + 120)

/* What a trial on the host uploads. */
struct image trial_image(const struct trial *t);

/* "probe 'exact integers' on gemm/fp16/m131-n136-k72 (dense, unmapped memory behind" */
void trial_text(const struct trial *t, enum guard_side guard, char text[TRIAL_TEXT_MAX]);

/* The kernel, or another of its library, that serves the problem; NULL: none. */
const struct kg_kernel *bench_kernel(const struct bench *b, const struct kg_problem *p);

/* Calls prepare() of the problem's kernel, if there is one: of all that are to be tried before the
 * first one is launched, since a plan may be used for another problem than its own. */
void bench_prepare(struct bench *b, const struct kg_problem *p);

/*
 * Runs one trial. What is wrong is an answer: found->ok and found->message. GATE_WRONG: a launch
 * failed, and the device may be spoiled; found says so too. A problem that no kernel serves is not
 * counted; a layout that the kernel refuses is counted as left out, and gives way to one without
 * odd rows, then to dense tensors; a guard that the device does not give is counted as left out,
 * though the trial is made without it; and so is a trial on the device for which memory is short.
 */
enum gate_status bench_try(struct bench *b, const struct trial *t, struct gate_error *err);

/* The problem's kernel and workspace become the bench's; false: no kernel, or something is wrong.
 * `large`: a workspace may take what the device has; where it has not enough, that is counted. */
bool bench_choose(struct bench *b, const struct kg_problem *p, bool large, enum gate_status *status,
                  struct gate_error *err);

/* What a launch of the bench's kernel gets on an image at `memory`, on the device's stream. */
struct kg_args bench_args(const struct bench *b, const struct image *image, void *memory);

/* Random inputs, of the op's kind. */
static inline enum probe probe_random(const struct kg_problem *p)
{
    return probe_applies(PROBE_NORMAL, p) ? PROBE_NORMAL : PROBE_UNIFORM;
}

static inline bool kernel_may_differ(const struct kg_kernel *k)
{
    return k->flags & KG_KERNEL_NONDETERMINISTIC;
}

/* Computes the bench's reference from the inputs of an image at `memory`. */
enum gate_status bench_reference(struct bench *b, const struct image *image, void *memory,
                                 struct gate_error *err);

void bench_release(struct bench *b);

/* Runs the tier's checks on the job's first arm, whose canonical results are right; what is wrong
 * stands in its verification. Status as that of bench_try(). */
enum gate_status tier_checks(const struct verify_job *job, struct gate_error *err);

/*
 * ---- trials in a row, verify_ahead.c ----
 *
 * While one is tried a thread of its own makes the image of the next one.
 */

struct trial_row {
    struct trial_ahead {
        struct trial trial;
        struct image image;
        pthread_t thread;
        bool waits, started;
    } of[2]; /* the one that waits for its turn, and whose image is made */
    unsigned turn;
};

typedef enum gate_status (*trial_fn)(void *context, const struct trial *t, struct gate_error *err);

/* Tries the one that waits, if there is one, and lets `next` wait; NULL: none. */
enum gate_status trial_row_next(struct trial_row *row, const struct trial *next, trial_fn try,
                                void *context, struct gate_error *err);

void trial_row_release(struct trial_row *row);

/*
 * ---- many launches, verify_soak.c ----
 *
 * A launch that loses a little each time of what it needs shows in many: counted before them, after
 * the first half and at the end, it is what grows in both halves. What a kernel keeps for good
 * grows in one.
 */

/* As many launches as fit into `ns`, but no more; 0: none. Before them so many whose outputs are
 * not looked at, for what only comes with their number. */
struct soak_budget {
    unsigned launches;
    double ns;
    unsigned before;
};

/*
 * Many launches on a small problem, on inputs that differ in single elements, in an order that the
 * seed deals out, into poisoned outputs whose hashes are taken on the device. The results are those
 * of the first launches on the same inputs, which are compared with a reference, and nothing is
 * lost on the way. What is wrong stands in b->found.
 */
enum gate_status soak_small(struct bench *b, const struct kg_problem *p,
                            const struct soak_budget *budget, uint64_t seed,
                            struct gate_error *err);

/* Launches of the problem itself: what fits into `ns`, but no more than `most`; and no fewer than
 * 16 where so many fit into `few_ns`, or else 6, for those that take milliseconds. */
struct endure_budget {
    double ns, few_ns;
    unsigned most;
};

/* How many launches of `ns` each; an even number. */
unsigned endure_launches(const struct endure_budget *budget, double ns);

/*
 * Many launches on the problem itself, whose inputs are those of input set 0: nothing is lost, and
 * the results stay the same bits. What is wrong stands in v; GATE_WRONG: a launch failed.
 */
enum gate_status endure_own(struct device *d, struct arm_launch *launch,
                            const struct endure_budget *budget, struct verification *v,
                            struct gate_error *err);

extern const struct endure_budget tier_endures[VERIFY_TIERS];

#endif
