/* SPDX-License-Identifier: Apache-2.0 */
/* store_figures.c: see store_figures.h. */
#include "gate/store/store_figures.h"

#include <math.h>
#include <string.h>

#include "gate/decide/stats.h"

#define MAX_PROCESSES 64 /* that a document may have */

bool store_arm_counts(const struct document_case *c, const struct document_arm *arm)
{
    bool good = document_case_is_foreign(c) || (arm->has_verify && arm->verify.ok);
    return arm->has_timing && good && arm->role != ROLE_BASELINE &&
           (arm->role != ROLE_CANDIDATE || c->verdict != VERDICT_WRONG);
}

void store_figures_read(const struct document_case *c, struct store_figures *out)
{
    *out = (struct store_figures){
        .peer = "",
        .baseline_p50_ns = c->has_baseline ? c->baseline.p50_ns : NAN,
    };
    double control[MAX_PROCESSES];
    size_t n = 0;
    for (size_t i = 0; i < c->n_processes && n < MAX_PROCESSES; i++)
        if (c->processes[i].control_ns > 0)
            control[n++] = c->processes[i].control_ns;
    out->control_ns = stats_middle(control, n);
    for (size_t i = c->n_arms; i-- > 0;) {
        const struct document_arm *arm = &c->arms[i];
        if (arm->role == ROLE_CANDIDATE && store_arm_counts(c, arm))
            out->candidate = arm;
        if (arm->role == ROLE_BASELINE && arm->has_timing && arm->has_verify && arm->verify.ok)
            out->baseline_p50_ns = arm->timing.p50_ns;
    }
    for (size_t i = 0; i < c->n_arms && out->candidate; i++) {
        const struct document_arm *arm = &c->arms[i];
        if (arm->role != ROLE_PROVIDER || !store_arm_counts(c, arm))
            continue;
        /* From pairs of samples where there are any, since those drift together. */
        const struct document_timing *timing = &arm->timing;
        double ratio = timing->has_ratio_to_candidate
                           ? timing->ratio_to_candidate.value
                           : out->candidate->timing.p50_ns / timing->p50_ns;
        if (ratio > out->peer_ratio) {
            out->peer_ratio = ratio;
            out->peer = arm->provider;
            out->peer_lo = timing->ratio_to_candidate.lo;
            out->peer_hi = timing->ratio_to_candidate.hi;
        }
    }
}
