/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"

#define BUDGET_MS 150.0         /* where the task sets none */
#define SINGLE_BUDGET_SHARE 0.2 /* of the budget for samples, and at least so much */
#define SINGLE_BUDGET_LEAST_NS 4e6

static void notice_arm(void *context, const struct arm *arm, const char *check)
{
    const struct worker *w = context;
    send_phase(w->out, "verify", arm_label(arm), check);
}

static void notice_node(void *context, const char *node)
{
    const struct worker *w = context;
    send_phase(w->out, "transplant", "", node);
}

static bool is_skipped(const struct task *t, const char *label)
{
    for (size_t i = 0; i < t->message->n_skip; i++)
        if (!strcmp(t->message->skip[i], label))
            return true;
    return false;
}

static bool is_paired(const struct task *t)
{
    return t->n_arms > 1 && t->arms[1].role == ROLE_BASELINE;
}

/* The candidate's kernel, the baseline's, and those of the providers that serve the problem. */
static void choose_arms(struct worker *w, struct task *t)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    const char *baseline = t->message->baseline ? t->message->baseline : "";
    for (unsigned i = 0; i < w->n_libraries && t->n_arms < ARMS_MAX; i++) {
        const struct library *lib = &w->libraries[i];
        const enum document_role role = w->roles[i];
        if (role == ROLE_BASELINE ? strcmp(lib->sha256, baseline) != 0 || is_skipped(t, "baseline")
                                  : role == ROLE_PROVIDER && (t->message->providers == NO ||
                                                              is_skipped(t, lib->table->provider)))
            continue;
        const struct kg_kernel *k = library_choose(lib, &t->c.problem, where, NULL);
        if (!k && role == ROLE_CANDIDATE)
            return;
        if (k)
            t->arms[t->n_arms++] = (struct arm){.library = lib,
                                                .kernel = k,
                                                .role = role,
                                                .verification = verification_start(&t->c.problem)};
    }
    for (unsigned i = 0; i < 2 && is_paired(t); i++) {
        struct arm *arm = &t->arms[i];
        arm->second_copy = library_choose(&w->second_copies[arm->library - w->libraries],
                                          &t->c.problem, where, arm->kernel->name);
    }
}

/* `kernel`: one of the arm's copies, or NULL if the library's two copies offer different kernels.
 * What a baseline does to the process is not put down to the candidate, and neither is it the other
 * way round. */
static enum gate_status prepare_arm(struct worker *w, struct task *t, unsigned i,
                                    const struct kg_kernel *kernel, struct gate_error *err)
{
    struct arm *arm = &t->arms[i];
    enum gate_status status;
    send_phase(w->out, "prepare", arm_label(arm), "");
    if (arm->role == ROLE_BASELINE)
        TRY(surroundings_check(w->device, &t->before, "before the baseline was prepared", err));
    if (kernel)
        status = arm_prepare(w->device, &t->c.problem, arm, kernel, err);
    else
        status = gate_fail(err, GATE_WRONG, "a second copy of the library offers no kernel '%s'",
                           arm->kernel->name);
    if (!status && arm->role == ROLE_CANDIDATE)
        status = surroundings_check(w->device, &t->before, "before its first launch", err);
    if (status == GATE_WRONG)
        verification_fault(&arm->verification, "%.500s", err->message);
    if (!status && arm->role == ROLE_BASELINE)
        status = surroundings_read(w->device, &t->before, err);
    return status;
}

/* On memory with red zones, which task_run() gives back where an error leaves it. */
static enum gate_status verify_task(struct worker *w, struct task *t, struct gate_error *err)
{
    const struct kg_problem *p = &t->c.problem;
    uint64_t workspace = 0;
    bool paired = is_paired(t);
    unsigned first = paired && t->message->swap == YES, other = paired && !first;
    /* Code is loaded in the order of its first use: A B B' A', or B A A' B', and then the
     * providers. */
    TRY(prepare_arm(w, t, first, t->arms[first].kernel, err));
    if (paired) {
        TRY(prepare_arm(w, t, other, t->arms[other].kernel, err));
        TRY(prepare_arm(w, t, other, t->arms[other].second_copy, err));
        TRY(prepare_arm(w, t, first, t->arms[first].second_copy, err));
    }
    for (unsigned i = paired ? 2 : 1; i < t->n_arms; i++)
        TRY(prepare_arm(w, t, i, t->arms[i].kernel, err));
    if (!t->verify) {
        struct fingerprints *f = &t->arms[0].verification.fingerprints;
        f->known = t->message->n_fingerprints == VERIFY_SEEDS;
        for (unsigned i = 0; i < VERIFY_SEEDS && f->known; i++)
            f->known = sscanf(t->message->fingerprints[i], "%16" SCNx64, &f->of[i]) == 1;
        return GATE_OK;
    }
    for (unsigned i = 0; i < t->n_arms; i++)
        if (t->arms[i].workspace_bytes > workspace)
            workspace = t->arms[i].workspace_bytes;
    TRY(device_alloc(w->device, operands_bytes(p, operands_red_zones), &t->memory, err));
    if (workspace)
        TRY(device_alloc(w->device, (size_t)workspace + 2 * OPERANDS_RED_ZONE, &t->workspace, err));
    t->operands = operands_at(w->device, p, t->memory.data, operands_red_zones);
    TRY(reference_reserve(w->device, t->operands.out, t->operands.args.n_out, &t->reference, err));
    TRY(verify_arms(&(struct verify_job){.device = w->device,
                                         .c = &t->c,
                                         .seed = t->seed,
                                         .tier = t->tier,
                                         .operands = &t->operands,
                                         .workspace = t->workspace,
                                         .reference = &t->reference,
                                         .arms = t->arms,
                                         .n_arms = t->n_arms,
                                         .notice = notice_arm,
                                         .context = w},
                    err));
    device_free(w->device, &t->memory);
    device_free(w->device, &t->workspace);
    return GATE_OK;
}

static enum gate_status measure_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct measure_policy policy = {
        .budget_ns = t->budget_ns,
        .single_budget_ns =
            t->first ? fmax(SINGLE_BUDGET_SHARE * t->budget_ns, SINGLE_BUDGET_LEAST_NS) : 0,
        .swap = t->message->swap == YES,
        .input_sets = t->message->input_sets > 0 ? (unsigned)t->message->input_sets : 0};
    struct timed_check look = {w->device, &t->c, &t->reference, 0}; /* verify_arms() ends with 0 */
    send_phase(w->out, "measure", "", "");
    unsigned right = 0;
    for (unsigned i = 0; i < t->n_arms; i++) { /* these in front, the candidate staying first */
        if (!t->arms[i].verification.ok)
            continue;
        struct arm arm = t->arms[i];
        t->arms[i] = t->arms[right];
        t->arms[right++] = arm;
    }
    if (t->kind == TASK_MEASURE)
        return measure_arms(w->device, &t->c, t->seed, &policy, t->arms, right, timed_check, &look,
                            err);
    if (right < 2 || t->arms[1].role != ROLE_BASELINE)
        return gate_fail(err, GATE_ENVIRONMENT, "calibration needs a second copy of the library");
    return measure_injected(w->device, &t->c, t->seed, &policy, t->arms, t->message->shares,
                            (unsigned)t->message->n_shares, t->d, err);
}

/* The third arm stands for the hybrids. */
static enum gate_status transplant_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct timed_check look = {w->device, &t->c, &t->reference, 0};
    if (!is_paired(t))
        return gate_fail(err, GATE_ENVIRONMENT, "the baseline has no kernel for this problem");
    t->found = xcalloc(1, sizeof *t->found);
    t->arms[2] = t->arms[0];
    t->arms[2].role = ROLE_PROVIDER;
    return transplant_run(&(struct transplant_job){.device = w->device,
                                                   .c = &t->c,
                                                   .seed = t->seed,
                                                   .budget_ns = t->budget_ns,
                                                   .arms = t->arms,
                                                   .check = timed_check,
                                                   .look = &look,
                                                   .notice = notice_node,
                                                   .context = w},
                          t->found, err);
}

#define PROFILE_WARM_UPS 3

/* One launch between the profiler's marks. */
static enum gate_status profile_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct device *d = w->device;
    struct arm *arm = &t->arms[0];
    send_phase(w->out, "profile", arm_label(arm), "");
    TRY(device_alloc(d, operands_bytes(&t->c.problem, operands_gaps), &t->memory, err));
    if (arm->workspace_bytes)
        TRY(device_alloc(d, (size_t)arm->workspace_bytes, &t->workspace, err));
    t->operands = operands_at(d, &t->c.problem, t->memory.data, operands_gaps);
    struct arm_launch launch =
        arm_launch_of(arm, arm->kernel, &t->c.problem, &t->operands, t->workspace);
    TRY(operands_fill(d, &t->c, &t->operands, t->seed, err));
    for (unsigned i = 0; i < PROFILE_WARM_UPS; i++)
        TRY(device_launch_checked(d, arm_launch, &launch, i, err));
    TRY(device_profiler_switch(d, true, err));
    TRY(device_launch_checked(d, arm_launch, &launch, PROFILE_WARM_UPS, err));
    return device_profiler_switch(d, false, err);
}

/* ---- what came of it ---- */

static enum case_outcome fail(struct task *t, const struct gate_error *err)
{
    t->spoiled = true;
    if (err->status != GATE_WRONG) {
        utf8_print(t->said, sizeof t->said, "%.690s", err->message);
        return CASE_ENVIRONMENT;
    }
    /* It is put down to the first arm with a message; to the candidate when there is none. */
    const struct arm *arm = &t->arms[0];
    for (unsigned i = t->n_arms; i-- > 0;)
        if (!t->arms[i].verification.ok && t->arms[i].verification.message[0])
            arm = &t->arms[i];
    /* A calibration has but one library, twice. */
    bool candidate = arm->role == ROLE_CANDIDATE || t->kind == TASK_CALIBRATE;
    /* What was said of the arm tells where, if it is of this fault. */
    const char *said = arm->verification.message;
    utf8_print(t->said, sizeof t->said, "%s%s%.800s", candidate ? "" : arm_label(arm),
               candidate ? "" : ": ", strstr(said, err->message) ? said : err->message);
    return candidate ? CASE_WRONG : CASE_PROVIDER;
}

static enum case_outcome run(struct worker *w, struct task *t)
{
    bool times = t->kind == TASK_MEASURE || t->kind == TASK_CALIBRATE;
    struct gate_error err = {0};
    enum gate_status status = surroundings_read(w->device, &t->before, &err);
    choose_arms(w, t);
    if (!t->n_arms) {
        snprintf(t->said, sizeof t->said, "'%s' offers no kernel for this problem",
                 w->libraries[0].table->provider);
        return CASE_UNSUPPORTED;
    }
    if (!status && t->kind == TASK_SERVE)
        return CASE_VERIFIED;
    if (!status)
        status = verify_task(w, t, &err);
    if (!status && !t->arms[0].verification.ok) {
        t->spoiled = true; /* the kernel may have done anything to the process */
        snprintf(t->said, sizeof t->said, "%s", t->arms[0].verification.message);
        return CASE_WRONG;
    }
    if (!status && times)
        status = measure_task(w, t, &err);
    if (!status && t->kind == TASK_PROFILE)
        status = profile_task(w, t, &err);
    if (!status && t->kind == TASK_TRANSPLANT)
        status = transplant_task(w, t, &err);
    return status ? fail(t, &err) : times ? CASE_MEASURED : CASE_VERIFIED;
}

enum gate_status task_read(const struct message_task *m, struct task *t, struct gate_error *err)
{
    struct field_fault fault;
    enum task_kind kind = (enum task_kind)m->task;
    bool times = kind == TASK_MEASURE || kind == TASK_CALIBRATE;
    *t = (struct task){.message = m,
                       .budget_ns = (isnan(m->budget_ms) ? BUDGET_MS : m->budget_ms) * 1e6,
                       .kind = kind,
                       .verify = kind == TASK_VERIFY || (times && m->verify != NO),
                       .first = m->first == UNKNOWN ? m->verify != NO : m->first == YES};
    if (!verify_tier_parse(&t->tier, m->tier ? m->tier : "commit"))
        return gate_fail(err, GATE_USAGE, "this worker does not know the tier of the task");
    sscanf(m->seed, "%" SCNx64, &t->seed);
    return suite_case_read(&m->file, &t->c, &fault)
               ? GATE_OK
               : gate_fail(err, GATE_USAGE, "%s", fault.message);
}

static double finite_or_nan(double value)
{
    return isfinite(value) ? value : NAN;
}

/* Points the record to the texts and lists beside it. Of several outputs each has its error: those
 * of a small one do not show in the worst of all. */
static struct document_verify record_verification(struct verification *v, size_t n_out)
{
    struct document_verify *out = &v->record;
    out->ok = v->ok;
    out->message = v->message;
    out->why_not_guarded = v->why_not_guarded[0] ? v->why_not_guarded : NULL;
    out->rel_fro = out->seeds ? finite_or_nan(out->rel_fro) : NAN;
    out->max_abs = out->seeds ? finite_or_nan(out->max_abs) : NAN;
    if (!out->seeds)
        out->allclose_1e2 = out->allclose_1e3 = 0;
    for (size_t i = 0; i < n_out; i++)
        v->outputs[i].rel_fro = finite_or_nan(v->outputs[i].rel_fro);
    out->outputs = n_out > 1 && out->seeds ? v->outputs : NULL;
    out->n_outputs = n_out;
    if (out->vendor && out->rel_fro >= 0 && v->vendor_rel_fro > 0)
        out->vendor_ratio = out->rel_fro / v->vendor_rel_fro;
    else
        out->vendor = NULL;
    return *out;
}
static_assert(KG_MAX_TENSORS <= DOCUMENT_OUTPUTS_MAX, "all outputs have a place");

void task_run(struct worker *w, struct task *t)
{
    const enum case_outcome outcome = run(w, t);
    char digits[VERIFY_SEEDS][17];
    const char *fingerprints[VERIFY_SEEDS];
    struct document_arm arms[ARMS_MAX];
    struct message_answer answer = {
        .done = t->c.id,
        .nonce = t->message->nonce ? t->message->nonce : "",
        .outcome = (int)outcome,
        .message = t->said,
        .spoiled = t->spoiled ? YES : NO,
        .arms = arms,
        .n_arms = t->n_arms,
    };
    const struct fingerprints *f = &t->arms[0].verification.fingerprints;
    for (unsigned i = 0; i < VERIFY_SEEDS && t->n_arms && f->known; i++) {
        snprintf(digits[i], sizeof digits[i], "%016" PRIx64, f->of[i]);
        fingerprints[answer.n_fingerprints++] = digits[i];
        answer.fingerprints = fingerprints;
    }
    if (t->kind == TASK_CALIBRATE && outcome == CASE_MEASURED) {
        answer.log_ratio = (double *)(uintptr_t)t->d;
        answer.n_log_ratio = t->message->n_shares;
    }
    if (t->found && outcome == CASE_VERIFIED) {
        answer.has_blame = true;
        answer.blame = t->found->document;
    }
    for (unsigned i = 0; i < t->n_arms; i++) {
        struct arm *arm = &t->arms[i];
        arms[i] = (struct document_arm){
            .provider = arm->library->table->provider,
            .role = (int)arm->role,
            .kernel = arm->kernel->name,
            .has_verify = true,
            .verify = record_verification(&arm->verification, t->c.problem.n_out),
            .has_timing = arm->timed,
            .timing = arm->timing};
    }
    send_message(w->out, &message_answer_shape, &answer);
    for (unsigned i = 0; i < t->n_arms; i++)
        arm_release(&t->arms[i]);
    plan_release_all();
    device_free(w->device, &t->memory);
    device_free(w->device, &t->workspace);
    device_free(w->device, &t->reference.memory);
    free(t->found);
}
