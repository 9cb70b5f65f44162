/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/verify/verify_compare.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"
#include "gate/verify/verify_state.h"

/* Launches of the candidate on what the one before left behind: so many, or what there is time for.
 * A race that shows in one launch of ten is seen by 20 in 88 of 100 verifications. */
#define REPEATS_MIN 2
#define REPEATS_MAX 20
#define REPEATS_NS 5e6

struct verification verification_start(const struct kg_problem *p)
{
    struct verification v = {.ok = true};
    struct document_verify *r = &v.record;
    fields_clear(&document_verify_shape, r);
    r->seeds = r->nonfinite = r->checks = r->skipped = 0;
    r->rel_fro = r->max_abs = 0;
    r->allclose_1e2 = r->allclose_1e3 = 1;
    r->limit = compare_limit(p, PROBE_NORMAL);
    r->not_declared = op_of(p)->not_declared;
    for (uint32_t i = 0; i < p->n_out; i++)
        v.outputs[i].name = op_of(p)->tensors[p->n_in + i].name;
    return v;
}

static double max_nan(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

/* Outputs with literal expected values must have exactly these. */
static enum gate_status compare_expected(struct device *d, const struct kg_tensor *t,
                                         const struct problem_tensor *about,
                                         const struct case_values *expected, struct verification *v,
                                         struct gate_error *err)
{
    const size_t bytes = problem_tensor_bytes(about);
    RELEASED_BY(free_at) void *host = xcalloc(1, bytes);
    TRY(device_download(d, host, t->data, bytes, err));
    for (size_t i = 0; i < expected->n_values; i++) {
        const double got = storage_get(host, t->dtype, (int64_t)i);
        if (got != (double)(float)expected->values[i])
            verification_fault(v, "output '%s': element %zu must be exactly %.9g, is %.9g",
                               about->name, i, expected->values[i], got);
    }
    return GATE_OK;
}

/* Compares the outputs in `o` with `r` once more, `closely` by tile and row too, and adds what it
 * finds to `v`. */
static enum gate_status verify_outputs(struct device *d, const struct suite_case *c,
                                       const struct operands *o, const struct reference *r,
                                       bool closely, struct verification *v, struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_out; i++) {
        const struct problem_tensor *about = &o->out[i];
        const struct case_values *expected = suite_case_values(c, true, about->name);
        const bool own_inputs = c->file && c->file->n_inputs;
        struct look look;
        char text[500];
        compare_start(&look, &c->problem, about, PROBE_NORMAL,
                      own_inputs ? 0 : compare_least_rms(PROBE_NORMAL, &c->problem, about));
        look.whole = !closely;
        look.unbiased = !own_inputs && !op_of(&c->problem)->rounds_inside;
        TRY(compare_on_device(d, &look, &o->args.out[i], r->out[i], err));
        TRY(own_reference_asked(d, &look, r->out[i], err));
        const struct device_comparison *found = &look.found;
        const double rel_fro = compare_whole_error(&look), n = (double)found->elements;
        struct document_verify *worst = &v->record;
        worst->rel_fro = max_nan(worst->rel_fro, rel_fro);
        v->outputs[i].rel_fro = max_nan(v->outputs[i].rel_fro, rel_fro);
        worst->max_abs = max_nan(worst->max_abs, found->max_abs);
        worst->allclose_1e2 = fmin(worst->allclose_1e2, 1 - (double)found->over_1e2 / n);
        worst->allclose_1e3 = fmin(worst->allclose_1e3, 1 - (double)found->over_1e3 / n);
        worst->nonfinite += found->nonfinite;
        if (!compare_is_right(&look, text, sizeof text))
            verification_fault(v, "%s", text);
        if (expected)
            TRY(compare_expected(d, &o->args.out[i], about, expected, v, err));
    }
    return GATE_OK;
}

/* ---- one arm ---- */

/* Puts "where: " before what is said already. */
static void note_fault_before(struct verification *v, const char *where)
{
    char what[sizeof v->message];
    memcpy(what, v->message, sizeof what);
    v->message[0] = '\0';
    verification_fault(v, "%s: %s", where, what);
}

static struct arm_launch verifying_launch(const struct verify_job *job, const struct arm *arm)
{
    struct device_memory inner = job->workspace;
    if (inner.data) {
        inner.data = (char *)inner.data + OPERANDS_RED_ZONE;
        inner.bytes -= (size_t)2 * OPERANDS_RED_ZONE;
    }
    return arm_launch_of(arm, arm->kernel, &job->c->problem, job->operands, inner);
}

/* Passes a status on; that of a launch that failed stands in the arm's verification too. */
static enum gate_status noted(struct arm *arm, enum gate_status status,
                              const struct gate_error *err)
{
    if (status == GATE_WRONG)
        verification_fault(&arm->verification, "%s", err->message);
    return status;
}

/* One launch on the job's operands, waited for. */
static enum gate_status verify_launch(const struct verify_job *job, struct arm *arm,
                                      struct gate_error *err)
{
    struct arm_launch launch = verifying_launch(job, arm);
    TRY(operands_restore(job->device, job->operands, err));
    return noted(arm, device_launch_checked(job->device, arm_launch, &launch, 0, err), err);
}

static enum gate_status check_zones(const struct verify_job *job, struct arm *arm,
                                    unsigned char poison, struct gate_error *err)
{
    char text[200];
    TRY(operands_check_zones(job->device, job->operands, poison, text, sizeof text, err));
    if (!text[0] && arm->workspace_bytes)
        TRY(operands_check_around(job->device, (char *)job->workspace.data + OPERANDS_RED_ZONE,
                                  (size_t)arm->workspace_bytes, "the workspace", poison, text,
                                  sizeof text, err));
    if (text[0])
        verification_fault(&arm->verification, "%s", text);
    return GATE_OK;
}

/* The candidate once more on what it left behind, but for what it updates in place: the same bits,
 * or, declared otherwise, right. */
static enum gate_status repeat(const struct verify_job *job, struct arm *arm,
                               struct gate_error *err)
{
    struct verification *v = &arm->verification;
    uint64_t first, again;
    const double end_ns = clock_ns() + REPEATS_NS;
    TRY(operands_hash_outputs(job->device, job->operands, 1, &first, err));
    for (int i = 0; i < REPEATS_MAX && v->ok; i++) {
        if (i >= REPEATS_MIN && clock_ns() > end_ns)
            break;
        TRY(verify_launch(job, arm, err));
        if (kernel_may_differ(arm->kernel)) {
            TRY(verify_outputs(job->device, job->c, job->operands, job->reference, false, v, err));
            continue;
        }
        TRY(operands_hash_outputs(job->device, job->operands, 1, &again, err));
        if (again != first)
            verification_fault(
                v, "a second launch on the same inputs gave different bits; the kernel does not "
                   "declare itself non-deterministic");
    }
    return GATE_OK;
}

/*
 * One launch as it will be timed: recorded, then replayed into poisoned outputs. What hides on
 * another stream is not in the recording, or has run before the outputs were poisoned. It writes
 * the bits of the launches, or, declared otherwise, something right.
 */
static enum gate_status verify_replayed(const struct verify_job *job, struct arm *arm,
                                        struct gate_error *err)
{
    struct verification *v = &arm->verification;
    struct device *d = job->device;
    struct arm_launch launch = verifying_launch(job, arm);
    struct device_replay *recording = NULL;
    struct device_time unused;
    uint64_t launched = 0, replayed = 0;
    TRY(operands_hash_outputs(d, job->operands, 1, &launched, err));
    enum gate_status status =
        device_replay_record(d, arm_launch, &launch, 1, false, &recording, err);
    if (!status)
        status = device_synchronize(d, err);
    if (!status)
        status = operands_poison(d, job->operands, POISON_NAN, err);
    if (!status)
        status = device_replay_run(d, recording, &unused, err);
    device_replay_free(d, recording);
    TRY(noted(arm, status, err));
    TRY(operands_hash_outputs(d, job->operands, 1, &replayed, err));
    if (replayed == launched)
        return GATE_OK;
    TRY(verify_outputs(d, job->c, job->operands, job->reference, true, v, err));
    if (!v->ok)
        note_fault_before(v, "right when launched, wrong when replayed from a recording");
    else if (!kernel_may_differ(arm->kernel))
        verification_fault(v, "a replayed recording gave different bits than a launch; the kernel "
                              "does not declare itself non-deterministic");
    return GATE_OK;
}

/* What no launch may change. */
struct before {
    struct surroundings around;
    uint64_t inputs; /* their hash */
};

/* The candidate has left its inputs, the process and the device alone. */
static enum gate_status check_before(const struct verify_job *job, struct arm *arm,
                                     const struct before *before, struct gate_error *err)
{
    struct verification *v = &arm->verification;
    uint64_t inputs;
    TRY(operands_hash_inputs(job->device, job->operands, &inputs, err));
    if (inputs != before->inputs)
        verification_fault(v, "wrote where it must not: an input changed");
    return surroundings_compare(job->device, &before->around, STATE_MORE_ANY, v, err);
}

/*
 * One launch into poisoned outputs between poisoned red zones, compared; before it a recording if
 * `fault` is not NULL: what allocates or waits for the device in the first launch alone shows.
 * *fault says why it cannot be recorded. It is noted when nothing else is wrong: what a launch does
 * to its results, to the process or to the device says more.
 */
static enum gate_status verify_once(const struct verify_job *job, struct arm *arm,
                                    unsigned char poison, struct gate_error *fault,
                                    struct gate_error *err)
{
    struct device *d = job->device;
    TRY(operands_poison(d, job->operands, poison, err));
    if (job->workspace.bytes)
        TRY(device_fill_bytes(d, job->workspace.data, poison, job->workspace.bytes, err));
    TRY(device_poison_shared(d, err));
    if (fault) {
        struct arm_launch launch = verifying_launch(job, arm);
        struct device_replay *recording = NULL;
        enum gate_status status =
            device_replay_record(d, arm_launch, &launch, 1, false, &recording, err);
        device_replay_free(d, recording);
        if (status == GATE_WRONG)
            *fault = *err;
        else
            TRY(status);
    }
    TRY(verify_launch(job, arm, err));
    arm->verification.record.seeds++;
    TRY(verify_outputs(d, job->c, job->operands, job->reference, fault != NULL, &arm->verification,
                       err));
    return check_zones(job, arm, poison, err);
}

static enum gate_status verify_arm(const struct verify_job *job, struct arm *arm, unsigned s,
                                   const struct before *before, struct gate_error *err)
{
    struct verification *v = &arm->verification;
    struct gate_error fault = {0};
    const bool closely = s == VERIFY_SEEDS - 1 && arm == job->arms;
    const unsigned char poison = s % 2 ? POISON_LARGE : POISON_NAN;
    job->notice(job->context, arm, "");
    if (v->ok)
        TRY(verify_once(job, arm, poison, closely ? &fault : NULL, err));
    if (v->ok)
        TRY(operands_hash_outputs(job->device, job->operands, 1, &v->fingerprints.of[s], err));
    if (closely && v->ok) { /* again, and recorded: the same, and all else is left alone */
        TRY(check_before(job, arm, before, err));
        if (v->ok)
            TRY(repeat(job, arm, err));
        if (v->ok)
            TRY(verify_replayed(job, arm, err));
        if (v->ok)
            TRY(check_zones(job, arm, poison, err));
        if (v->ok)
            TRY(check_before(job, arm, before, err));
    }
    if (fault.message[0] && v->ok)
        verification_fault(v, "%s", fault.message);
    return GATE_OK;
}

/* All arms on input set `s`. A fault that shows is put down to these inputs. */
static enum gate_status verify_set(const struct verify_job *job, unsigned s, struct gate_error *err)
{
    struct device *d = job->device;
    const struct kg_problem *p = &job->c->problem;
    const uint64_t seed = seed_at(job->seed, s);
    struct before before;
    TRY(operands_fill(d, job->c, job->operands, seed, err));
    TRY(operands_fill_zones(d, job->operands, s % 2 ? POISON_LARGE : POISON_NAN, err));
    TRY(reference_compute(d, p, job->operands->args.in, job->reference, err));
    if (s == VERIFY_SEEDS - 1) {
        if (op_of(p)->element)
            TRY(spot_check(d, p, job->operands, job->reference, seed, err));
        TRY(surroundings_read(d, &before.around, err));
        TRY(operands_hash_inputs(d, job->operands, &before.inputs, err));
    }
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < job->n_arms && !status; i++) {
        struct verification *v = &job->arms[i].verification;
        const bool had = v->message[0];
        char where[100];
        status = verify_arm(job, &job->arms[i], s, &before, err);
        snprintf(where, sizeof where, "probe '%s' on the problem itself (input set %u)",
                 probe_name(PROBE_NORMAL), s);
        if (!had && v->message[0])
            note_fault_before(v, where);
    }
    return status;
}

enum gate_status verify_arms(const struct verify_job *job, struct gate_error *err)
{
    struct arm *arm = job->arms;
    const bool itself = job->tier != VERIFY_SMALL;
    enum gate_status status = GATE_OK;
    for (unsigned s = itself ? VERIFY_SEEDS : 0; s-- > 0 && !status;)
        status = verify_set(job, s, err);
    for (unsigned i = 0; i < job->n_arms && !status && itself; i++)
        job->arms[i].verification.fingerprints.known = job->arms[i].verification.ok;
    for (unsigned i = job->n_arms; i-- > 1;) { /* the first provider that is right */
        const struct arm *other = &job->arms[i];
        if (other->role != ROLE_PROVIDER || !other->verification.ok)
            continue;
        arm->verification.record.vendor = other->library->table->provider;
        arm->verification.vendor_rel_fro = other->verification.record.rel_fro;
    }
    if (status || !arm->verification.ok)
        return status;
    TRY(tier_checks(job, err));
    if (!arm->verification.ok || !itself)
        return GATE_OK;
    struct arm_launch launch = verifying_launch(job, arm);
    job->notice(job->context, arm, "many launches of the case itself");
    return noted(
        arm, endure_own(job->device, &launch, &tier_endures[job->tier], &arm->verification, err),
        err);
}

/* ---- timed launches ---- */

enum gate_status timed_check(void *context, struct arm *arm, const struct operands *o,
                             unsigned content, struct gate_error *err)
{
    struct timed_check *look = context;
    struct reference *r = look->reference;
    struct verification *v = &arm->verification;
    const bool fresh = !r->memory.data || look->content != content;
    if (!r->memory.data)
        TRY(reference_reserve(look->device, o->out, o->args.n_out, r, err));
    if (fresh)
        TRY(reference_compute(look->device, &look->c->problem, o->args.in, r, err));
    look->content = content;
    TRY(verify_outputs(look->device, look->c, o, r, fresh || !kernel_may_differ(arm->kernel), v,
                       err));
    if (!v->ok)
        return gate_fail(err, GATE_WRONG, "right when verified, wrong when timed: %.500s",
                         v->message);
    if (kernel_may_differ(arm->kernel) || arm->role != ROLE_CANDIDATE)
        return GATE_OK;
    return gate_fail(
        err, GATE_WRONG,
        "the timed launch gave different bits than the verified one on the same inputs; the "
        "kernel does not declare itself non-deterministic");
}
