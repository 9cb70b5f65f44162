/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/verify/verify_soak.h"
#include "gate/verify/verify_compare.h"
#include "kernels/ops/pattern.h"
#include "gate/verify/verify_spot.h"
#include "gate/verify/verify_state.h"

/* Launches of the candidate on what the one before left behind: so many, or what there is time for.
 * A race that shows in one launch of ten is seen by 20 in 88 of 100 verifications. */
#define REPEATS_MIN 2
#define REPEATS_MAX 20
#define REPEATS_NS 5e6

struct verification verification_start(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    const bool declared = !op->own || op->multilinear;
    return (struct verification){
        .ok = true,
        .limit = problem_error_limit(p),
        .allclose_1e2 = 1,
        .allclose_1e3 = 1,
        .left_out.not_declared =
            declared ? NULL : "exact integers and single values, which are for a multilinear op"};
}

static double max_nan(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

static bool has_own_inputs(const struct suite_case *c)
{
    return c->file && c->file->n_inputs;
}

/*
 * What an output's elements are at least, as a root mean square over many: half of what sums of
 * products of random inputs come to. A single sum may nearly cancel, and the rounding of its terms
 * is no small share of it then: in 8 of 120 verifications of one element, all right. 0: not
 * known, since inputs are the case's own; or the rows of an attention, which are averages.
 */
static double least_rms(const struct suite_case *c, const struct problem_tensor *t)
{
    return has_own_inputs(c) ? 0 : 0.5 * compare_usual_rms(&c->problem, t);
}

/* The figures that are reported of output i. */
static void add_comparison(struct verification *v, uint32_t i, const struct look *look)
{
    const struct device_comparison *c = &look->found;
    const double rel_fro = compare_whole_error(look), n = (double)c->elements;
    v->rel_fro = max_nan(v->rel_fro, rel_fro);
    v->output_rel_fro[i] = max_nan(v->output_rel_fro[i], rel_fro);
    v->max_abs = max_nan(v->max_abs, c->max_abs);
    v->allclose_1e2 = fmin(v->allclose_1e2, 1 - (double)c->over_1e2 / n);
    v->allclose_1e3 = fmin(v->allclose_1e3, 1 - (double)c->over_1e3 / n);
    v->nonfinite += c->nonfinite;
}

/* Outputs with literal expected values must have exactly these. */
static enum gate_status compare_expected(struct device *d, const struct kg_tensor *t,
                                         const struct problem_tensor *about,
                                         const struct case_values *expected, struct verification *v,
                                         struct gate_error *err)
{
    size_t n = (size_t)problem_tensor_elements(about);
    size_t bytes = n * problem_dtype_bytes(t->dtype);
    void *host = malloc(bytes);
    if (!host)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = device_download(d, host, t->data, bytes, err);
    for (size_t i = 0; !status && i < n; i++) {
        float got = kg_load_float(host, t->dtype, (int64_t)i);
        if (got == (float)expected->values[i])
            continue;
        v->ok = false;
        if (!v->message[0])
            snprintf(v->message, sizeof v->message,
                     "output '%s': element %zu must be exactly %.9g, is %.9g", about->name, i,
                     expected->values[i], (double)got);
    }
    free(host);
    return status;
}

/* ---- parts of an output ---- */

static void note_look(struct verification *v, const struct look *look)
{
    char text[500];
    if (compare_is_right(look, text, sizeof text))
        return;
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message, "%s", text);
}

static enum gate_status verify_output(struct device *d, const struct suite_case *c,
                                      const struct operands *o, const struct reference *r,
                                      uint32_t i, bool closely, struct verification *v,
                                      struct gate_error *err)
{
    const struct case_values *expected = suite_case_expected(c, o->out[i].name);
    const struct kg_tensor *got = &o->args.out[i];
    struct look look;
    compare_start(&look, &c->problem, &o->out[i], false, least_rms(c, &o->out[i]));
    look.whole = !closely;
    look.unbiased = !has_own_inputs(c) && !op_of(&c->problem)->rounds_inside;
    enum gate_status status = compare_on_device(d, &look, got, r->out[i].data, err);
    if (status)
        return status;
    add_comparison(v, i, &look);
    note_look(v, &look);
    return expected ? compare_expected(d, got, &o->out[i], expected, v, err) : GATE_OK;
}

enum gate_status verify_outputs(struct device *d, const struct suite_case *c,
                                const struct operands *o, const struct reference *r, bool closely,
                                struct verification *v, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < o->args.n_out && !status; i++)
        status = verify_output(d, c, o, r, i, closely, v, err);
    return status;
}

/* ---- one arm ---- */

static void note_fault(struct verification *v, const char *text)
{
    v->ok = false;
    if (!v->message[0])
        utf8_print(v->message, sizeof v->message, "%.890s", text);
}

/* Puts "where: " before what is said already. */
static void note_fault_before(struct verification *v, const char *where)
{
    char what[sizeof v->message];
    memcpy(what, v->message, sizeof what);
    snprintf(v->message, sizeof v->message, "%s: %.*s", where,
             (int)(sizeof what - strlen(where) - 3), what);
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

/* One launch on the job's operands, waited for. GATE_WRONG stands in arm->verification too. */
static enum gate_status verify_launch(const struct verify_job *job, struct arm *arm,
                                      struct gate_error *err)
{
    struct arm_launch launch = verifying_launch(job, arm);
    enum gate_status status = device_launch_checked(job->device, arm_launch, &launch, 0, err);
    if (status == GATE_WRONG)
        note_fault(&arm->verification, err->message);
    return status;
}

static enum gate_status check_zones(const struct verify_job *job, struct arm *arm,
                                    unsigned char poison, struct gate_error *err)
{
    bool intact;
    char text[200];
    enum gate_status status =
        operands_check_zones(job->device, job->operands, poison, &intact, text, sizeof text, err);
    if (!status && intact && arm->workspace_bytes)
        status = operands_check_workspace(job->device, &job->workspace, arm->workspace_bytes,
                                          poison, &intact, text, sizeof text, err);
    if (!status && !intact)
        note_fault(&arm->verification, text);
    return status;
}

/* The candidate once more on what it left behind: the same bits, or, declared otherwise, right. */
static enum gate_status repeat(const struct verify_job *job, struct arm *arm,
                               struct gate_error *err)
{
    struct verification *v = &arm->verification;
    uint64_t first, again;
    const double end_ns = clock_ns() + REPEATS_NS;
    enum gate_status status = operands_hash_outputs(job->device, job->operands, 1, &first, err);
    for (int i = 0; i < REPEATS_MAX && !status && v->ok; i++) {
        if (i >= REPEATS_MIN && clock_ns() > end_ns)
            break;
        status = verify_launch(job, arm, err);
        if (!status && (arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC)) {
            status =
                verify_outputs(job->device, job->c, job->operands, job->reference, false, v, err);
            continue;
        }
        if (!status)
            status = operands_hash_outputs(job->device, job->operands, 1, &again, err);
        if (!status && again != first)
            note_fault(
                v, "a second launch on the same inputs gave different bits; the kernel does not "
                   "declare itself non-deterministic");
    }
    return status;
}

/*
 * One launch as it will be timed: recorded, then replayed into poisoned outputs. What hides on
 * another stream is not in the recording, or has run before the outputs were poisoned.
 */
static enum gate_status replay_once(const struct verify_job *job, struct arm *arm,
                                    struct gate_error *err)
{
    struct arm_launch launch = verifying_launch(job, arm);
    struct device_replay *recording = NULL;
    struct device_time unused;
    enum gate_status status =
        device_replay_record(job->device, arm_launch, &launch, 1, false, &recording, err);
    if (!status)
        status = device_synchronize(job->device, err);
    if (!status)
        status = operands_poison(job->device, job->operands, POISON_NAN, err);
    if (!status)
        status = device_replay_run(job->device, recording, &unused, err);
    device_replay_free(job->device, recording);
    return status;
}

/* What the replay wrote: the bits of the launches, or, declared otherwise, something right. */
static enum gate_status verify_replayed(const struct verify_job *job, struct arm *arm,
                                        struct gate_error *err)
{
    struct verification *v = &arm->verification;
    uint64_t launched = 0, replayed = 0;
    enum gate_status status = operands_hash_outputs(job->device, job->operands, 1, &launched, err);
    if (!status)
        status = replay_once(job, arm, err);
    if (status == GATE_WRONG)
        note_fault(v, err->message);
    if (!status)
        status = operands_hash_outputs(job->device, job->operands, 1, &replayed, err);
    if (status || replayed == launched)
        return status;
    status = verify_outputs(job->device, job->c, job->operands, job->reference, true, v, err);
    if (!status && !v->ok)
        note_fault_before(v, "right when launched, wrong when replayed from a recording");
    else if (!status && !(arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC))
        note_fault(v, "a replayed recording gave different bits than a launch; the kernel "
                      "does not declare itself non-deterministic");
    return status;
}

/* What no launch may change: the state of the process and of the device, and the inputs. */
struct surroundings {
    struct state process;
    struct device_state device;
    uint64_t inputs; /* their hash */
};

static enum gate_status read_surroundings(const struct verify_job *job, struct surroundings *out,
                                          struct gate_error *err)
{
    state_read(&out->process);
    enum gate_status status = device_state_read(job->device, &out->device, err);
    return status ? status : operands_hash_inputs(job->device, job->operands, &out->inputs, err);
}

/* The candidate has left its inputs, the process and the device alone. */
static enum gate_status check_surroundings(const struct verify_job *job, struct arm *arm,
                                           const struct surroundings *before,
                                           struct gate_error *err)
{
    struct surroundings now;
    enum gate_status status = read_surroundings(job, &now, err);
    if (status)
        return status;
    state_compare(&before->process, &now.process, STATE_MORE_ANY, &arm->verification);
    if (now.inputs != before->inputs)
        note_fault(&arm->verification, "wrote where it must not: an input changed");
    return state_compare_device(&before->device, &now.device, &arm->verification, err);
}

/* Its launches give the same again, and so does their recording, which leaves all else alone too.
 */
static enum gate_status verify_further(const struct verify_job *job, struct arm *arm,
                                       unsigned char poison, const struct surroundings *before,
                                       struct gate_error *err)
{
    const struct verification *v = &arm->verification;
    enum gate_status status = check_surroundings(job, arm, before, err);
    if (!status && v->ok)
        status = repeat(job, arm, err);
    if (!status && v->ok)
        status = verify_replayed(job, arm, err);
    if (!status && v->ok)
        status = check_zones(job, arm, poison, err);
    return status || !v->ok ? status : check_surroundings(job, arm, before, err);
}

/* Before the first launch: what allocates or waits for the device there alone shows. *fault says
 * why it cannot be recorded. It is noted when nothing else is wrong: what a launch does to its
 * results, to the process or to the device says more. */
static enum gate_status record_first(const struct verify_job *job, struct arm *arm,
                                     struct gate_error *fault, struct gate_error *err)
{
    struct arm_launch launch = verifying_launch(job, arm);
    struct device_replay *recording = NULL;
    enum gate_status status =
        device_replay_record(job->device, arm_launch, &launch, 1, false, &recording, err);
    device_replay_free(job->device, recording);
    if (status != GATE_WRONG)
        return status;
    *fault = *err;
    return GATE_OK;
}

/* One launch into poisoned outputs between poisoned red zones, compared; before it a recording if
 * `fault` is not NULL. */
static enum gate_status verify_once(const struct verify_job *job, struct arm *arm,
                                    unsigned char poison, struct gate_error *fault,
                                    struct gate_error *err)
{
    struct device *d = job->device;
    struct device_memory w = job->workspace;
    enum gate_status status = operands_poison(d, job->operands, poison, err);
    if (!status && w.bytes)
        status = device_fill_bytes(d, w.data, poison, w.bytes, err);
    if (!status)
        status = device_poison_shared(d, err);
    if (!status && fault)
        status = record_first(job, arm, fault, err);
    if (!status)
        status = verify_launch(job, arm, err);
    if (status)
        return status;
    arm->verification.seeds++;
    status = verify_outputs(d, job->c, job->operands, job->reference, fault != NULL,
                            &arm->verification, err);
    return status ? status : check_zones(job, arm, poison, err);
}

/* Says under which inputs the fault showed that `v` has and did not have before. */
static void note_inputs(struct verification *v, unsigned set, bool had)
{
    char where[100];
    if (had || !v->message[0])
        return;
    snprintf(where, sizeof where, "probe '%s' on the problem itself (input set %u)",
             probe_name(PROBE_NORMAL), set);
    note_fault_before(v, where);
}

/* All arms on input set `s`. */
static enum gate_status verify_set(const struct verify_job *job, unsigned s, struct gate_error *err)
{
    struct device *d = job->device;
    const struct kg_problem *p = &job->c->problem;
    uint64_t set_seed = seed_at(job->seed, s);
    bool first = s == VERIFY_SEEDS - 1;
    unsigned char poison = s % 2 ? POISON_LARGE : POISON_NAN;
    struct surroundings before;
    enum gate_status status = operands_fill(d, job->c, job->operands, set_seed, err);
    if (!status)
        status = operands_fill_zones(d, job->operands, poison, err);
    if (!status)
        status = reference_compute(d, p, job->operands, job->reference, err);
    if (!status && first && op_of(p)->element)
        status = spot_check(d, p, job->operands, job->reference, set_seed, err);
    if (!status && first)
        status = read_surroundings(job, &before, err);
    for (unsigned i = 0; i < job->n_arms && !status; i++) {
        struct arm *arm = &job->arms[i];
        bool closely = first && i == 0, had = arm->verification.message[0];
        struct gate_error fault = {0};
        job->notice(job->context, arm, "");
        if (arm->verification.ok)
            status = verify_once(job, arm, poison, closely ? &fault : NULL, err);
        if (!status && arm->verification.ok)
            status = operands_hash_outputs(d, job->operands, 1,
                                           &arm->verification.fingerprints.of[s], err);
        if (!status && closely && arm->verification.ok)
            status = verify_further(job, arm, poison, &before, err);
        if (!status && fault.message[0] && arm->verification.ok)
            note_fault(&arm->verification, fault.message);
        note_inputs(&arm->verification, s, had);
    }
    return status;
}

/* The error of the first provider that is right, on the inputs that the candidate had. */
static void note_vendor(const struct verify_job *job)
{
    struct verification *v = &job->arms[0].verification;
    for (unsigned i = 1; i < job->n_arms && !v->vendor[0]; i++) {
        const struct arm *arm = &job->arms[i];
        if (arm->role != ROLE_PROVIDER || !arm->verification.ok)
            continue;
        snprintf(v->vendor, sizeof v->vendor, "%s", arm->library->table->provider);
        v->vendor_rel_fro = arm->verification.rel_fro;
    }
}

/* Many launches of the candidate on the problem itself. */
static enum gate_status endure(const struct verify_job *job, struct arm *arm,
                               struct gate_error *err)
{
    struct arm_launch launch = verifying_launch(job, arm);
    job->notice(job->context, arm, "many launches of the case itself");
    enum gate_status status =
        endure_own(job->device, &launch, &tier_endures[job->tier], &arm->verification, err);
    if (status == GATE_WRONG)
        note_fault(&arm->verification, err->message);
    return status;
}

enum gate_status verify_arms(const struct verify_job *job, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned s = job->tier == VERIFY_SMALL ? 0 : VERIFY_SEEDS; s-- > 0 && !status;)
        status = verify_set(job, s, err);
    for (unsigned i = 0; i < job->n_arms && !status && job->tier != VERIFY_SMALL; i++)
        job->arms[i].verification.fingerprints.known = job->arms[i].verification.ok;
    note_vendor(job);
    if (status || !job->arms[0].verification.ok)
        return status;
    const struct trial_given given = {job->operands, job->reference};
    status = tier_checks(job->device, &job->c->problem, job->seed, job->tier, &job->arms[0], &given,
                         job->notice, job->context, err);
    if (status || !job->arms[0].verification.ok || job->tier == VERIFY_SMALL)
        return status;
    return endure(job, &job->arms[0], err);
}
