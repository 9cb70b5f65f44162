/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/causes.h"

#include <stdio.h>

#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"

#define CASES_MAX 16    /* of a run: the further ones of a library are slow for the same reason */
#define BUDGET_MS 150.0 /* of each hybrid */

static bool has_several(const struct run_case *c, enum document_role role)
{
    const struct document_arm *arm = run_arm(c, role);
    int64_t launches = 0;
    for (size_t i = 0; arm && arm->has_timing && i < arm->timing.n_kernels; i++)
        launches += arm->timing.kernels[i].launches > 1 ? arm->timing.kernels[i].launches : 1;
    return launches > 1;
}

bool causes_are_wanted(const struct run_case *c)
{
    return c->record.verdict == VERDICT_REGRESSION && c->record.mode == MODE_PAIRED && !c->left_out;
}

bool blame_run(struct run *run, struct supervisor *s, double limit_s,
               void (*progress)(const char *text))
{
    size_t n = 0;
    const double deadline_s = clock_s() + limit_s;
    for (size_t i = 0; i < run->suite->n_cases && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[i];
        char text[256];
        if (!causes_are_wanted(c) ||
            !(has_several(c, ROLE_CANDIDATE) || has_several(c, ROLE_BASELINE)))
            continue;
        static struct document_node none; /* a list that is not there would be none at all */
        struct case_result *result = &c->blamed;
        char *why = c->why_not_blamed;
        const size_t size = sizeof c->why_not_blamed;
        c->record.has_blame = true;
        c->record.blame = (struct document_blame){.message = why, .nodes = &none};
        if (n++ >= CASES_MAX)
            snprintf(why, size, "only the first %d regressions of a run are taken apart",
                     CASES_MAX);
        else if (clock_s() > deadline_s)
            snprintf(why, size, "the regressions before it took the %g s that a run has for this",
                     limit_s);
        if (why[0])
            continue;
        snprintf(text, sizeof text, "looking for the node that makes %s slower", c->about->id);
        progress(text);
        const struct case_task task = {.c = c->about,
                                       .seed = seed_of_text(run->seed, c->about->id),
                                       .budget_ms = BUDGET_MS,
                                       .baseline = run_baseline_sha256(run, c),
                                       .kind = TASK_TRANSPLANT};
        struct gate_error err = {0};
        if (supervisor_run_case(s, &task, result, &err))
            utf8_print(why, size, "%.400s", err.message);
        else if (result->outcome != CASE_VERIFIED)
            utf8_print(why, size, "the worker: %.400s", result->said);
        else if (!result->has_blame)
            snprintf(why, size, "this worker does not report it");
        else
            c->record.blame = result->blame;
    }
    supervisor_retire_worker(s);
    return n > 0;
}
