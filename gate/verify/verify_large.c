/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_large.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/verify/verify_check.h"
#include "gate/verify/verify_compare.h"
#include "kernels/ops/pattern.h"

/* Of the reference: a product of 8192 cubed is within it, and takes 0.11 s at 10 TFLOP/s. Beyond it
 * the sums are cut short, never the output. */
#define FLOPS_MAX 1.2e12
#define LEAST_K 64
#define EVEN_K 64 /* what a shortened sum is a multiple of */

#define INTEGERS_SET 0x696e7465u /* an index that no input set has */

#define TENSOR_ALIGNMENT 16 /* kernel.h promises these */
#define WORKSPACE_ALIGNMENT 256

/* Memory with nothing mapped behind it, or without a guard where there is none to be had. */
struct piece {
    struct device_memory memory;
    bool guarded;
};

/* The check in hand. */
struct large {
    const struct verify_job *job;
    struct kg_problem problem;
    struct arm arm; /* the candidate, with the kernel that serves the problem */
    struct operands operands;
    struct piece tensor[PROBLEM_MAX_TENSORS], workspace;
    struct reference reference;
    bool not_guarded; /* some of it, since the device gave no such memory */
};

/* Has the op exact answers? Otherwise it gets input set 0 once more. */
static bool is_exact(const struct large *l)
{
    return probe_applies(PROBE_INTEGERS, &l->problem);
}

/* ---- the problem ---- */

static void shorten_sums(struct kg_problem *p)
{
    const struct op_size *cut = op_axis(op_of(p), op_of(p)->cut);
    while (problem_flops(p) > FLOPS_MAX && op_size(p, cut) > 2 * LEAST_K)
        op_set_size(p, cut, op_size(p, cut) / 2 / EVEN_K * EVEN_K);
}

/* *served: false where no kernel of the library serves the shortened problem. */
static enum gate_status choose_kernel(struct large *l, bool *served, struct gate_error *err)
{
    const struct verify_job *job = l->job;
    const struct kg_device *where = &device_info(job->device)->kg;
    *served = true;
    if (!is_exact(l))
        return GATE_OK;
    shorten_sums(&l->problem);
    if (!memcmp(&l->problem, &job->c->problem, sizeof l->problem))
        return GATE_OK;
    if (!l->arm.kernel->supports(&l->problem, where))
        l->arm.kernel = library_choose(l->arm.library, &l->problem, where, NULL);
    *served = l->arm.kernel != NULL;
    l->arm.workspace_bytes = 0;
    return *served ? arm_prepare(job->device, &l->problem, &l->arm, l->arm.kernel, err) : GATE_OK;
}

/* ---- memory ---- */

/* What the device does not guard is counted once. */
static void note_not_guarded(struct large *l, const struct gate_error *err)
{
    struct left_out *left_out = &l->job->arms[0].verification.left_out;
    left_out->not_guarded += !l->not_guarded;
    l->not_guarded = true;
    if (!left_out->why_not_guarded[0])
        utf8_print(left_out->why_not_guarded, sizeof left_out->why_not_guarded, "%.159s",
                   err->message);
}

static enum gate_status piece_alloc(struct large *l, struct piece *piece, size_t bytes,
                                    const char *name, struct gate_error *err)
{
    struct device *d = l->job->device;
    enum gate_status status = device_guard_alloc(d, bytes, name, &piece->memory, err);
    piece->guarded = !status;
    if (status != GATE_ENVIRONMENT)
        return status;
    note_not_guarded(l, err);
    return device_alloc(d, bytes, &piece->memory, err);
}

static void piece_free(struct device *d, struct piece *piece)
{
    if (piece->guarded)
        device_guard_free(d, &piece->memory);
    else
        device_free(d, &piece->memory);
}

static size_t round_up(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Where `bytes` begin that end where the piece does, but for what their alignment leaves. */
static void *at_end(const struct piece *piece, size_t bytes, size_t alignment)
{
    return (char *)piece->memory.data + piece->memory.bytes - round_up(bytes, alignment);
}

static enum gate_status add_tensor(struct large *l, unsigned i, const struct problem_tensor *t,
                                   struct gate_error *err)
{
    struct operands *o = &l->operands;
    size_t bytes = (size_t)problem_tensor_elements(t) * problem_dtype_bytes(l->problem.dtype);
    enum gate_status status =
        piece_alloc(l, &l->tensor[i], round_up(bytes, TENSOR_ALIGNMENT), t->name, err);
    if (status)
        return status;
    struct kg_tensor view =
        problem_dense(&l->problem, t, at_end(&l->tensor[i], bytes, TENSOR_ALIGNMENT));
    if (t->is_output) {
        o->out[o->args.n_out] = *t;
        o->args.out[o->args.n_out++] = view;
    } else {
        o->in[o->args.n_in] = *t;
        o->args.in[o->args.n_in++] = view;
    }
    return GATE_OK;
}

static enum gate_status allocate(struct large *l, struct gate_error *err)
{
    struct device *d = l->job->device;
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(&l->problem, tensors);
    size_t workspace = round_up((size_t)l->arm.workspace_bytes, WORKSPACE_ALIGNMENT);
    enum gate_status status = GATE_OK;
    l->operands.args.struct_bytes = sizeof l->operands.args;
    for (unsigned i = 0; i < n && !status; i++)
        status = add_tensor(l, i, &tensors[i], err);
    if (!status && workspace)
        status = piece_alloc(l, &l->workspace, workspace, "workspace", err);
    if (!status && is_exact(l))
        status = reference_alloc(d, &l->operands, &l->reference, err);
    return status;
}

static void release(struct large *l)
{
    struct device *d = l->job->device;
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        piece_free(d, &l->tensor[i]);
    piece_free(d, &l->workspace);
    reference_free(d, &l->reference);
}

/* ---- contents ---- */

static enum gate_status fill_input(struct large *l, uint32_t i, struct gate_error *err)
{
    const struct verify_job *job = l->job;
    const struct kg_tensor *t = &l->operands.args.in[i];
    int64_t elements = problem_tensor_elements(&l->operands.in[i]);
    uint64_t seed = seed_at(seed_at(job->seed, INTEGERS_SET), i);
    if (!is_exact(l))
        return device_copy(job->device, t->data, job->operands->args.in[i].data,
                           (size_t)elements * problem_dtype_bytes(t->dtype), err);
    return device_fill_integers(job->device, t->data, t->dtype, elements,
                                probe_integers(&l->problem), seed, err);
}

static enum gate_status fill(struct large *l, struct gate_error *err)
{
    struct device *d = l->job->device;
    const struct device_memory *w = &l->workspace.memory;
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < l->operands.args.n_in && !status; i++)
        status = fill_input(l, i, err);
    if (!status)
        status = operands_poison(d, &l->operands, POISON_NAN, err);
    if (!status && w->data)
        status = device_fill_bytes(d, w->data, POISON_NAN, w->bytes, err);
    if (!status && is_exact(l))
        status = reference_compute(d, &l->problem, &l->operands, &l->reference, err);
    return status;
}

/* ---- the launch ---- */

static void set_message(struct verification *v, const char *text)
{
    v->ok = false;
    if (!v->message[0])
        utf8_print(v->message, sizeof v->message, "%.500s", text);
}

/* "probe 'exact integers' on ... (dense, unmapped memory behind)" */
static void describe_check(const struct large *l, char text[CHECK_TEXT_MAX + 1])
{
    const struct check check = {.problem = l->problem,
                                .probe = is_exact(l) ? PROBE_INTEGERS : PROBE_NORMAL,
                                .layout = image_layout_of(TENSOR_DENSE)};
    char begin[CHECK_TEXT_MAX];
    check_text(&check, l->not_guarded ? GUARD_NONE : GUARD_BEHIND, begin);
    snprintf(text, CHECK_TEXT_MAX + 1, "%s)", begin);
}

static void describe_place(const struct large *l, struct verification *v)
{
    char where[CHECK_TEXT_MAX + 1], what[400];
    describe_check(l, where);
    utf8_print(what, sizeof what, "%.399s", v->message);
    snprintf(v->message, sizeof v->message, "%s: %s", where, what);
}

static enum gate_status launch(struct large *l, struct verification *v, struct gate_error *err)
{
    size_t bytes = (size_t)l->arm.workspace_bytes;
    struct device_memory workspace = {0};
    if (bytes)
        workspace =
            (struct device_memory){at_end(&l->workspace, bytes, WORKSPACE_ALIGNMENT), bytes};
    struct arm_launch one = {&l->arm, l->arm.kernel, &l->problem, &l->operands, 1, workspace};
    enum gate_status status = device_launch_checked(l->job->device, arm_launch, &one, 0, err);
    v->checks++;
    v->coverage.values[is_exact(l) ? PROBE_INTEGERS : PROBE_NORMAL]++;
    v->coverage.layouts[TENSOR_DENSE]++;
    v->coverage.guarded += !l->not_guarded;
    v->coverage.launches++;
    if (status == GATE_WRONG)
        set_message(v, err->message);
    return status;
}

/* Every element of a product, to the bit. */
static enum gate_status compare_at_products(struct large *l, struct verification *v,
                                            struct gate_error *err)
{
    const struct operands *o = &l->operands;
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < o->args.n_out && !status; i++) {
        struct look look;
        char text[500];
        compare_start(&look, &l->problem, &o->out[i], true, 0);
        status = compare_on_device(l->job->device, &look, &o->args.out[i], l->reference.out[i].data,
                                   err);
        if (!status && !compare_is_right(&look, text, sizeof text))
            set_message(v, text);
    }
    return status;
}

static enum gate_status check(struct large *l, struct verification *v, struct gate_error *err)
{
    const struct verify_job *job = l->job;
    char where[CHECK_TEXT_MAX + 1];
    enum gate_status status = fill(l, err);
    if (status)
        return status;
    describe_check(l, where);
    job->notice(job->context, &job->arms[0], where);
    status = launch(l, v, err);
    if (!status)
        status = is_exact(l) ? compare_at_products(l, v, err)
                             : verify_outputs(job->device, job->c, &l->operands, job->reference,
                                              true, v, err);
    if (!v->ok)
        describe_place(l, v);
    return status;
}

enum gate_status verify_large(const struct verify_job *job, struct gate_error *err)
{
    struct verification *v = &job->arms[0].verification;
    struct large l = {.job = job, .problem = job->c->problem, .arm = job->arms[0]};
    bool served = false;
    enum gate_status status = choose_kernel(&l, &served, err);
    if (status == GATE_WRONG) { /* of prepare(): the device is as usable as before */
        set_message(v, err->message);
        describe_place(&l, v);
        return GATE_OK;
    }
    v->left_out.not_served += !status && !served;
    if (!status && served)
        status = allocate(&l, err);
    if (!status && served)
        status = check(&l, v, err);
    else if (status == GATE_ENVIRONMENT) { /* memory is short */
        v->left_out.too_large++;
        status = GATE_OK;
    }
    release(&l);
    return status;
}
