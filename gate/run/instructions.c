/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/causes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"
#include "gate/library/machine_code.h"

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

/* ---- a case ---- */

/* A pair whose code is not in both files is left out: nobody knows what was launched. */
static enum gate_status compare_kernels(const struct job *job, const struct document_kernel *new,
                                        const struct document_kernel *old, struct run_case *c,
                                        struct gate_error *err)
{
    struct document_instructions *o = &c->record.instructions;
    struct instructions *to = c->instructions;
    const struct machine_kernel *a = machine_code_on(job->new, new->name, job->architecture);
    const struct machine_kernel *b = machine_code_on(job->old, old->name, job->architecture);
    struct listing new_code = {0}, old_code = {0};
    struct mix m = {.n_changed = 0};
    if (!a || !b)
        return GATE_OK;
    enum gate_status status =
        listing_read(&(struct listing_wanted){.kernel = a, .out = &new_code}, 1, err);
    if (!status)
        status = listing_read(&(struct listing_wanted){.kernel = b, .out = &old_code}, 1, err);
    if (!status) {
        mix_count(&new_code, &old_code, &m);
        to->names[o->n_kernels++] = new->name;
    }
    for (size_t i = 0; i < m.n_changed && o->n_changed < INSTRUCTIONS_MAX; i++) {
        const struct mix_row *r = &m.rows[i];
        const size_t at = o->n_changed++;
        snprintf(to->opcodes[at], DOCUMENT_OPCODE_SIZE, "%s", r->opcode);
        listing_source(&old_code, &new_code, r->opcode, r->old > r->new, to->sources[at]);
        to->changed[at] =
            (struct document_instruction){.kernel = (int64_t)o->n_kernels - 1,
                                          .opcode = to->opcodes[at],
                                          .candidate = (int64_t)r->new,
                                          .baseline = (int64_t)r->old,
                                          .source = to->sources[at][0] ? to->sources[at] : NULL};
    }
    listing_release(&new_code);
    listing_release(&old_code);
    return status;
}

static enum gate_status compare_case(struct job *job, struct run_case *c, struct gate_error *err)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    char path[PATHS_MAX];
    TRY(run_baseline_path(job->run, c, path, err));
    if (!job->old || strcmp(path, job->old_path) != 0) {
        machine_code_free(job->old);
        job->old = NULL;
        memcpy(job->old_path, path, sizeof path);
        TRY(machine_code_read(path, &job->old, err));
    }
    for (size_t i = 0; i < new->n_kernels && !interrupt_signal(); i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            TRY(compare_kernels(job, &new->kernels[i], was, c, err));
    }
    return GATE_OK;
}

/* ---- a run ---- */

static bool has_changed(const struct run_case *c)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    for (size_t i = 0; new &&old &&i < new->n_kernels; i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            return true;
    }
    return false;
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
        if (!causes_are_wanted(c) || !has_changed(c) || n >= CASES_MAX || clock_s() > deadline_s)
            continue;
        if (!n++ && machine_code_read(run->library, &job.new, &err))
            break;
        snprintf(text, sizeof text, "counting instructions of %s", c->about->id);
        progress(text);
        struct instructions *to = c->instructions = xcalloc(1, sizeof *to);
        struct document_instructions *d = &c->record.instructions;
        struct gate_error why = {0};
        *d = (struct document_instructions){.kernels = to->names, .changed = to->changed};
        if (compare_case(&job, c, &why)) {
            utf8_print(to->message, sizeof to->message, "%.400s", why.message);
            d->message = to->message;
        }
        c->record.has_instructions = d->n_kernels || d->message;
    }
    machine_code_free(job.new);
    machine_code_free(job.old);
    return n > 0;
}
