/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/instructions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/interrupt.h"
#include "gate/base/utf8.h"
#include "gate/library/resources.h"

#define CASES_MAX 16 /* of a run: the further ones of a library are slow for the same reason */

struct job {
    const struct run *run;
    unsigned architecture; /* of the device: 90 */
    struct machine_code *new, *old;
    char old_path[PATHS_MAX]; /* of `old` */
};

/* ---- kernels ---- */

static const struct document_timing *timing_of(const struct run_case *c, enum document_role role)
{
    const struct document_arm *arm = run_arm(c, role);
    return arm && arm->has_timing && arm->timing.n_kernels ? &arm->timing : NULL;
}

static bool differ(const struct document_kernel *a, const struct document_kernel *b)
{
    return !a->code_sha256 || !b->code_sha256 || strcmp(a->code_sha256, b->code_sha256) != 0;
}

/* The code that the device runs: of its generation, the newest that is not newer than it. */
static const struct machine_kernel *find_code(const struct job *job, const struct machine_code *m,
                                              const char *name)
{
    const struct machine_kernel *kernels, *found = NULL;
    unsigned newest = 0;
    size_t n = machine_code_kernels(m, &kernels);
    for (size_t i = 0; i < n; i++) {
        unsigned sm = resources_of(&kernels[i]).architecture;
        if (strcmp(kernels[i].name, name) != 0 || sm / 10 != job->architecture / 10 ||
            sm > job->architecture || sm < newest)
            continue;
        newest = sm;
        found = &kernels[i];
    }
    return found;
}

/* ---- a case ---- */

static void put_changes(struct instructions *to, const struct mix *m, const char *name,
                        const struct listing *new, const struct listing *old)
{
    struct document_instructions *o = &to->document;
    to->names[o->n_kernels] = name;
    for (size_t i = 0; i < m->n_changed && o->n_changed < INSTRUCTIONS_MAX; i++) {
        const struct mix_row *r = &m->rows[i];
        snprintf(to->opcodes[o->n_changed], DOCUMENT_OPCODE_SIZE, "%s", r->opcode);
        char *source = to->sources[o->n_changed];
        listing_source(old, new, r->opcode, r->old > r->new, source);
        to->changed[o->n_changed] =
            (struct document_instruction){.kernel = (int64_t)o->n_kernels,
                                          .opcode = to->opcodes[o->n_changed],
                                          .candidate = (int64_t)r->new,
                                          .baseline = (int64_t)r->old,
                                          .source = source[0] ? source : NULL};
        o->n_changed++;
    }
    o->n_kernels++;
}

/* A pair whose code is not in both files is left out: nobody knows what was launched. */
static enum gate_status compare_kernels(const struct job *job, const struct document_kernel *new,
                                        const struct document_kernel *old, struct instructions *to,
                                        struct gate_error *err)
{
    const struct machine_kernel *a = find_code(job, job->new, new->name);
    const struct machine_kernel *b = find_code(job, job->old, old->name);
    struct listing new_code = {0}, old_code = {0};
    if (!a || !b)
        return GATE_OK;
    enum gate_status status =
        listing_read(&(struct listing_wanted){.kernel = a, .out = &new_code}, 1, err);
    if (!status)
        status = listing_read(&(struct listing_wanted){.kernel = b, .out = &old_code}, 1, err);
    if (!status) {
        struct mix m;
        mix_count(&new_code, &old_code, &m);
        put_changes(to, &m, new->name, &new_code, &old_code);
    }
    listing_release(&new_code);
    listing_release(&old_code);
    return status;
}

static enum gate_status open_old(struct job *job, const struct run_case *c, struct gate_error *err)
{
    char path[PATHS_MAX];
    enum gate_status status = run_baseline_path(job->run, c, path, err);
    if (status || (job->old && !strcmp(path, job->old_path)))
        return status;
    machine_code_free(job->old);
    job->old = NULL;
    snprintf(job->old_path, sizeof job->old_path, "%s", path);
    return machine_code_read(path, &job->old, err);
}

static enum gate_status compare_case(struct job *job, const struct run_case *c,
                                     struct instructions *to, struct gate_error *err)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    enum gate_status status = open_old(job, c, err);
    for (size_t i = 0; i < new->n_kernels && !status && !interrupt_signal(); i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            status = compare_kernels(job, &new->kernels[i], was, to, err);
    }
    return status;
}

/* ---- a run ---- */

static bool is_wanted(const struct run_case *c)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    if (c->record.verdict != VERDICT_REGRESSION || c->record.mode != MODE_PAIRED || c->left_out ||
        !new || !old)
        return false;
    for (size_t i = 0; i < new->n_kernels; i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            return true;
    }
    return false;
}

static struct instructions *look_at(struct job *job, const struct run_case *c)
{
    struct instructions *to = calloc(1, sizeof *to);
    struct gate_error err = {0};
    if (!to)
        return NULL;
    to->document = (struct document_instructions){.kernels = to->names, .changed = to->changed};
    if (compare_case(job, c, to, &err)) {
        utf8_print(to->message, sizeof to->message, "%.400s", err.message);
        to->document.message = to->message;
    }
    if (to->document.n_kernels || to->document.message)
        return to;
    free(to);
    return NULL;
}

bool instructions_run(struct run *run, double limit_s, void (*progress)(const char *text))
{
    struct job job = {.run = run};
    struct gate_error err = {0};
    unsigned major = 0, minor = 0;
    size_t n = 0;
    const double deadline_s = clock_s() + limit_s;
    if (sscanf(run->greeting->device.capability, "%3u.%3u", &major, &minor) == 2)
        job.architecture = 10 * major + minor;
    for (size_t i = 0; i < run->suite->n_cases && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[i];
        char text[256];
        if (!is_wanted(c) || n >= CASES_MAX || clock_s() > deadline_s)
            continue;
        if (!n++ && machine_code_read(run->library, &job.new, &err))
            break;
        snprintf(text, sizeof text, "counting instructions of %s", c->about->id);
        progress(text);
        c->instructions = look_at(&job, c);
    }
    machine_code_free(job.new);
    machine_code_free(job.old);
    return n > 0;
}
