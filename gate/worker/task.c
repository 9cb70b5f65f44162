/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/task.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/worker/measure.h"
#include "gate/worker/record.h"
#include "gate/verify/verify.h"
#include "gate/launch/operands.h"
#include "gate/launch/plan.h"

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

static bool takes_part(const struct worker *w, const struct task *t, unsigned i)
{
    const struct library *lib = &w->libraries[i];
    if (w->roles[i] == ROLE_BASELINE)
        return !strcmp(lib->sha256, t->baseline) && !is_skipped(t, "baseline");
    return w->roles[i] == ROLE_CANDIDATE || (t->providers && !is_skipped(t, lib->table->provider));
}

static bool is_paired(const struct task *t)
{
    return t->n_arms > 1 && t->arms[1].role == ROLE_BASELINE;
}

static void choose_second_copy(const struct worker *w, const struct task *t, struct arm *arm)
{
    const struct library *second_copy = &w->second_copies[arm->library - w->libraries];
    arm->second_copy =
        library_choose(second_copy, &t->c.problem, &device_info(w->device)->kg, arm->kernel->name);
}

/* The candidate's kernel, the baseline's, and those of the providers that serve the problem. */
static void choose_arms(struct worker *w, struct task *t)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    for (unsigned i = 0; i < w->n_libraries && t->n_arms < ARMS_MAX; i++) {
        const struct library *lib = &w->libraries[i];
        const struct kg_kernel *k =
            takes_part(w, t, i) ? library_choose(lib, &t->c.problem, where, NULL) : NULL;
        if (!k && w->roles[i] == ROLE_CANDIDATE)
            return;
        if (k)
            t->arms[t->n_arms++] = (struct arm){.library = lib,
                                                .kernel = k,
                                                .role = w->roles[i],
                                                .verification = verification_start(&t->c.problem)};
    }
    for (unsigned i = 0; i < 2 && is_paired(t); i++)
        choose_second_copy(w, t, &t->arms[i]);
}

/* Puts the arms that are right in front, the candidate staying first; returns their number. */
static unsigned keep_right_arms(struct task *t)
{
    unsigned right = 0;
    for (unsigned i = 0; i < t->n_arms; i++) {
        if (!t->arms[i].verification.ok)
            continue;
        struct arm arm = t->arms[i];
        t->arms[i] = t->arms[right];
        t->arms[right++] = arm;
    }
    return right;
}

/* `kernel`: one of the arm's copies, or NULL where its library is of two minds. */
static enum gate_status prepare_copy(struct worker *w, struct task *t, struct arm *arm,
                                     const struct kg_kernel *kernel, struct gate_error *err)
{
    if (!kernel)
        return gate_fail(err, GATE_WRONG, "a second copy of the library offers no kernel '%s'",
                         arm->kernel->name);
    TRY(arm_prepare(w->device, &t->c.problem, arm, kernel, err));
    if (arm->role == ROLE_CANDIDATE)
        TRY(surroundings_check(w->device, &t->before, "before its first launch", err));
    return GATE_OK;
}

/* What a baseline does to the process is not put down to the candidate, and neither is it the other
 * way round. */
static enum gate_status prepare_arm(struct worker *w, struct task *t, unsigned i,
                                    const struct kg_kernel *kernel, struct gate_error *err)
{
    struct arm *arm = &t->arms[i];
    enum gate_status status = GATE_OK;
    send_phase(w->out, "prepare", arm_label(arm), "");
    if (arm->role == ROLE_BASELINE)
        status =
            surroundings_check(w->device, &t->before, "before the baseline was prepared", err);
    if (status)
        return status;
    status = prepare_copy(w, t, arm, kernel, err);
    if (status == GATE_WRONG) {
        arm->verification.ok = false;
        utf8_print(arm->verification.message, sizeof arm->verification.message, "%.500s",
                   err->message);
    }
    if (!status && arm->role == ROLE_BASELINE)
        status = surroundings_read(w->device, &t->before, err);
    return status;
}

/* Code is loaded in the order of its first use: A B B' A', or B A A' B', and then the providers. */
static enum gate_status prepare_arms(struct worker *w, struct task *t, struct gate_error *err)
{
    bool paired = is_paired(t);
    unsigned first = paired && t->swap, other = paired && !t->swap;
    enum gate_status status = prepare_arm(w, t, first, t->arms[first].kernel, err);
    if (paired && !status)
        status = prepare_arm(w, t, other, t->arms[other].kernel, err);
    if (paired && !status)
        status = prepare_arm(w, t, other, t->arms[other].second_copy, err);
    if (paired && !status)
        status = prepare_arm(w, t, first, t->arms[first].second_copy, err);
    for (unsigned i = paired ? 2 : 1; i < t->n_arms && !status; i++)
        status = prepare_arm(w, t, i, t->arms[i].kernel, err);
    return status;
}

static enum gate_status alloc_for_verification(struct worker *w, struct task *t,
                                               struct gate_error *err)
{
    const struct kg_problem *p = &t->c.problem;
    uint64_t workspace = 0;
    for (unsigned i = 0; i < t->n_arms; i++)
        if (t->arms[i].workspace_bytes > workspace)
            workspace = t->arms[i].workspace_bytes;
    TRY(device_alloc(w->device, operands_bytes_in_zones(p), &t->memory, err));
    if (workspace)
        TRY(device_alloc(w->device, (size_t)workspace + 2 * OPERANDS_RED_ZONE, &t->workspace, err));
    t->operands = operands_in_zones(w->device, p, t->memory.data);
    return reference_alloc(w->device, &t->operands, &t->reference, err);
}

static enum gate_status verify_task(struct worker *w, struct task *t, struct gate_error *err)
{
    enum gate_status status = prepare_arms(w, t, err);
    if (!t->verify)
        t->arms[0].verification.fingerprints = t->fingerprints;
    if (status || !t->verify)
        return status;
    status = alloc_for_verification(w, t, err);
    if (!status)
        status = verify_arms(&(struct verify_job){.device = w->device,
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
                             err);
    device_free(w->device, &t->memory);
    device_free(w->device, &t->workspace);
    return status;
}

static enum gate_status calibrate_task(struct worker *w, struct task *t,
                                       const struct measure_policy *policy, struct gate_error *err)
{
    if (keep_right_arms(t) < 2 || t->arms[1].role != ROLE_BASELINE)
        return gate_fail(err, GATE_ENVIRONMENT, "calibration needs a second copy of the library");
    return measure_injected(w->device, &t->c, t->seed, policy, t->arms, t->shares, t->n_shares,
                            t->d, err);
}

static enum gate_status measure_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct measure_policy policy = {
        .budget_ns = t->budget_ns,
        .single_budget_ns =
            t->first ? fmax(SINGLE_BUDGET_SHARE * t->budget_ns, SINGLE_BUDGET_LEAST_NS) : 0,
        .swap = t->swap,
        .input_sets = t->input_sets,
        .sensors = t->first};
    struct timed_check look = {w->device, &t->c, &t->reference, 0}; /* verify_arms() ends with 0 */
    send_phase(w->out, "measure", "", "");
    if (t->kind == TASK_CALIBRATE)
        return calibrate_task(w, t, &policy, err);
    return measure_arms(w->device, &t->c, t->seed, &policy, t->arms, keep_right_arms(t),
                        timed_check, &look, err);
}

/* Whom a GATE_WRONG of the device is put down to: the first arm with a message; the candidate when
 * there is none. */
static const struct arm *guilty_arm(const struct task *t)
{
    for (unsigned i = 0; i < t->n_arms; i++)
        if (!t->arms[i].verification.ok && t->arms[i].verification.message[0])
            return &t->arms[i];
    return &t->arms[0];
}

/* What was said of it tells where, if it is of this fault. */
static const char *what_was_wrong(const struct arm *arm, const struct gate_error *err)
{
    const char *said = arm->verification.message;
    return strstr(said, err->message) ? said : err->message;
}

/* The third arm stands for the hybrids. */
static enum gate_status transplant_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct timed_check look = {w->device, &t->c, &t->reference, 0};
    if (!is_paired(t))
        return gate_fail(err, GATE_ENVIRONMENT, "the baseline has no kernel for this problem");
    t->found = calloc(1, sizeof *t->found);
    if (!t->found)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
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

struct outcome {
    const char *name;
    char message[900];
    bool spoiled;
};

#define PROFILE_WARM_UPS 3

static enum gate_status launch_watched(struct device *d, struct arm_launch *launch,
                                       struct gate_error *err)
{
    for (unsigned i = 0; i < PROFILE_WARM_UPS; i++)
        TRY(device_launch_checked(d, arm_launch, launch, i, err));
    TRY(device_profiler_switch(d, true, err));
    TRY(device_launch_checked(d, arm_launch, launch, PROFILE_WARM_UPS, err));
    return device_profiler_switch(d, false, err);
}

/* Between the profiler's marks. */
static enum gate_status profile_launch(struct device *d, const struct suite_case *c, uint64_t seed,
                                       struct arm *arm, struct gate_error *err)
{
    struct device_memory memory = {0}, workspace = {0};
    enum gate_status status = device_alloc(d, operands_bytes(&c->problem), &memory, err);
    if (!status && arm->workspace_bytes)
        status = device_alloc(d, (size_t)arm->workspace_bytes, &workspace, err);
    if (!status) {
        struct operands set = operands_at(d, &c->problem, memory.data);
        struct arm_launch launch = arm_launch_of(arm, arm->kernel, &c->problem, &set, workspace);
        status = operands_fill(d, c, &set, seed, err);
        if (!status)
            status = launch_watched(d, &launch, err);
    }
    device_free(d, &memory);
    device_free(d, &workspace);
    return status;
}

/* After the verification. */
static enum gate_status run_kind(struct worker *w, struct task *t, struct gate_error *err)
{
    switch (t->kind) {
    case TASK_MEASURE:
    case TASK_CALIBRATE:
        return measure_task(w, t, err);
    case TASK_PROFILE:
        send_phase(w->out, "profile", arm_label(&t->arms[0]), "");
        return profile_launch(w->device, &t->c, t->seed, &t->arms[0], err);
    case TASK_TRANSPLANT:
        return transplant_task(w, t, err);
    default:
        return GATE_OK;
    }
}

static struct outcome failed(const struct task *t, const struct gate_error *err)
{
    struct outcome o = {.name = "environment", .spoiled = true};
    const struct arm *arm = guilty_arm(t);
    /* A calibration has but one library, twice. */
    bool candidate = arm->role == ROLE_CANDIDATE || t->kind == TASK_CALIBRATE;
    if (err->status != GATE_WRONG) {
        utf8_print(o.message, sizeof o.message, "%.690s", err->message);
        return o;
    }
    o.name = candidate ? "wrong" : "provider";
    utf8_print(o.message, sizeof o.message, "%s%s%.800s", candidate ? "" : arm_label(arm),
               candidate ? "" : ": ", what_was_wrong(arm, err));
    return o;
}

static struct outcome run(struct worker *w, struct task *t)
{
    bool times = t->kind == TASK_MEASURE || t->kind == TASK_CALIBRATE;
    struct outcome o = {.name = times ? "measured" : "verified"};
    struct gate_error err = {0};
    enum gate_status status = surroundings_read(w->device, &t->before, &err);
    choose_arms(w, t);
    if (!t->n_arms) {
        o.name = "unsupported";
        snprintf(o.message, sizeof o.message, "'%s' offers no kernel for this problem",
                 w->libraries[0].table->provider);
        return o;
    }
    if (!status && t->kind == TASK_SERVE)
        return o;
    if (!status)
        status = verify_task(w, t, &err);
    if (!status && !t->arms[0].verification.ok) {
        o.name = "wrong";
        o.spoiled = true; /* the kernel may have done anything to the process */
        snprintf(o.message, sizeof o.message, "%s", t->arms[0].verification.message);
        return o;
    }
    if (!status)
        status = run_kind(w, t, &err);
    return status ? failed(t, &err) : o;
}

static void send_answer(const struct worker *w, const struct task *t, const struct outcome *outcome)
{
    struct message_fingerprints texts;
    struct document_arm arms[ARMS_MAX];
    struct record_memory memory[ARMS_MAX];
    struct message_answer answer = {
        .done = t->c.id,
        .nonce = t->nonce,
        .outcome = outcome->name,
        .message = outcome->message,
        .spoiled = outcome->spoiled ? YES : NO,
        .fingerprints = texts.texts,
        .arms = arms,
        .n_arms = t->n_arms,
    };
    if (t->n_arms)
        answer.n_fingerprints =
            message_put_fingerprints(&t->arms[0].verification.fingerprints, &texts);
    if (!answer.n_fingerprints)
        answer.fingerprints = NULL;
    if (t->kind == TASK_CALIBRATE && !strcmp(outcome->name, "measured")) {
        answer.log_ratio = (double *)(uintptr_t)t->d;
        answer.n_log_ratio = t->n_shares;
    }
    if (t->found && !strcmp(outcome->name, "verified")) {
        answer.has_blame = true;
        answer.blame = t->found->document;
    }
    for (unsigned i = 0; i < t->n_arms; i++)
        arms[i] = record_arm(&t->arms[i], &t->c.problem, &memory[i]);
    send_message(w->out, &message_answer_shape, &answer);
    for (unsigned i = 0; i < t->n_arms; i++)
        record_free(&memory[i]);
}

static void release(const struct worker *w, struct task *t)
{
    for (unsigned i = 0; i < t->n_arms; i++)
        arm_release(&t->arms[i]);
    plan_release_all();
    reference_free(w->device, &t->reference);
    free(t->found);
}

enum gate_status task_read(const struct message_task *m, struct task *t, struct gate_error *err)
{
    char pointer[256];
    enum task_kind kind = (enum task_kind)m->task;
    bool times = kind == TASK_MEASURE || kind == TASK_CALIBRATE;
    *t = (struct task){.message = m,
                       .budget_ns = (isnan(m->budget_ms) ? BUDGET_MS : m->budget_ms) * 1e6,
                       .kind = kind,
                       .verify = kind == TASK_VERIFY || (times && m->verify != NO),
                       .first = m->first == UNKNOWN ? m->verify != NO : m->first == YES,
                       .providers = m->providers != NO,
                       .swap = m->swap == YES,
                       .input_sets = m->input_sets > 0 ? (unsigned)m->input_sets : 0,
                       .baseline = m->baseline ? m->baseline : "",
                       .nonce = m->nonce ? m->nonce : "",
                       .shares = m->shares,
                       .n_shares = (unsigned)m->n_shares,
                       .fingerprints = message_fingerprints(m->fingerprints, m->n_fingerprints)};
    if (!verify_tier_parse(m->tier ? m->tier : "commit", &t->tier))
        return gate_fail(err, GATE_USAGE, "this worker does not know the tier of the task");
    sscanf(m->seed, "%" SCNx64, &t->seed);
    return suite_case_read(&m->file, &t->c, pointer, sizeof pointer, err);
}

void task_run(struct worker *w, struct task *t)
{
    struct outcome outcome = run(w, t);
    send_answer(w, t, &outcome);
    release(w, t);
}
