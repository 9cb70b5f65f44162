/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/calibrate.h"

#include <math.h>
#include <stdlib.h>

#include "gate/base/alloc.h"
#include "gate/decide/decide.h"
#include "gate/base/seed.h"

#define DECISIONS 2000

const double calibrate_shares[CALIBRATE_SHARES] = {0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05};

/* A sequence of processes; every other one has the roles swapped, here as in what is drawn from. */
struct drawn {
    double d[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
};

/* Draws with replacement, role by role; `state` counts the draws. */
static void draw(const double *d, size_t n, struct drawn *out, size_t wanted,
                 struct decide_sequence *to, uint64_t seed, uint64_t *state)
{
    for (; to->n < wanted && to->n < DECIDE_LAST_LOOK; to->n++) {
        size_t role = to->n % 2, of_role = (n + 1 - role) / 2;
        out->d[to->n] = d[2 * (seed_at(seed, (*state)++) % of_role) + role];
        out->swapped[to->n] = role;
    }
    to->d = out->d;
    to->swapped = out->swapped;
}

/* One whole protocol: looks, confirmation, verdict. */
static enum verdict play_once(const double *d, size_t n, double threshold, uint64_t seed,
                              uint64_t *state)
{
    struct drawn first, confirmation;
    struct decide_input in = {.threshold = threshold};
    struct decision decision;
    draw(d, n, &first, DECIDE_FIRST_LOOK, &in.first, seed, state);
    /* The excess over the absolute floor is the concern of a run, which knows its times. */
    in.baseline_p50_ns = 1e6;
    while ((decision = decide(&in)).next != DECIDE_DONE) {
        if (decision.next == DECIDE_MORE_FIRST)
            draw(d, n, &first, decision.next_n, &in.first, seed, state);
        else
            draw(d, n, &confirmation, decision.next_n, &in.confirmation, seed, state);
    }
    return decision.verdict;
}

bool calibrate_has_figures(const struct calibrated_case *c)
{
    return c->n >= DECIDE_FIRST_LOOK && c->lacks != VERDICT_WRONG;
}

/* Standard deviation of d within the roles, which a whole sequence takes the difference out of. */
static double deviation(const double *d, size_t n)
{
    const size_t of_role[2] = {(n + 1) / 2, n / 2};
    double mean[2] = {0}, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean[i % 2] += d[i] / (double)of_role[i % 2];
    for (size_t i = 0; i < n; i++)
        squares += (d[i] - mean[i % 2]) * (d[i] - mean[i % 2]);
    return n > 2 ? sqrt(squares / (double)(n - 2)) : 0;
}

static void add_figures(struct calibrated_case *c, struct document_calibrated *out)
{
    double mde = decide_mde_of(deviation(c->d[0], c->n), DECIDE_LAST_LOOK);
    *out = (struct document_calibrated){
        .id = c->id,
        .mde = mde > 0 ? mde : NAN,
        .resolved = mde > 0 && mde <= c->threshold,
        .injected = xcalloc(CALIBRATE_SHARES, sizeof *out->injected),
    };
    for (size_t s = 0; s < CALIBRATE_SHARES; s++) {
        int64_t red = 0, pass = 0;
        uint64_t state = 0;
        for (int i = 0; i < DECISIONS; i++) {
            enum verdict v = play_once(c->d[s], c->n, c->threshold, s + 1, &state);
            red += v == VERDICT_REGRESSION;
            pass += v == VERDICT_PASS || v == VERDICT_IMPROVEMENT;
        }
        out->injected[out->n_injected++] =
            (struct document_injected){.share = calibrate_shares[s],
                                       .log_ratio = c->d[s],
                                       .n_log_ratio = c->n,
                                       .decisions = DECISIONS,
                                       .red = red,
                                       .pass = pass,
                                       .no_verdict = DECISIONS - red - pass};
    }
}

void calibrate_document(struct calibrated_case *cases, size_t n_cases, size_t wanted,
                        size_t counts[VERDICT_COUNT], struct document_calibration *out)
{
    *out = (struct document_calibration){.cases = xcalloc(n_cases, sizeof *out->cases)};
    struct document_incomplete *incomplete = xcalloc(n_cases, sizeof *incomplete);
    for (size_t i = 0; i < n_cases; i++) {
        struct calibrated_case *c = &cases[i];
        if ((int64_t)c->n > out->processes)
            out->processes = (int64_t)c->n;
        if (calibrate_has_figures(c)) {
            struct document_calibrated *figures = &out->cases[out->n_cases++];
            add_figures(c, figures);
            counts[VERDICT_NO_VERDICT] += !figures->resolved;
        }
        if (c->lacks != VERDICT_PASS) {
            incomplete[out->n_incomplete++] =
                (struct document_incomplete){.id = c->id,
                                             .processes = (int64_t)c->n,
                                             .wanted = (int64_t)wanted,
                                             .verdict = (int)c->lacks,
                                             .reason = c->reason};
            counts[c->lacks]++;
        }
    }
    if (out->n_incomplete)
        out->incomplete = incomplete;
    else
        free(incomplete);
}

void calibrate_release(struct document_calibration *c)
{
    for (size_t i = 0; i < c->n_cases; i++)
        free(c->cases[i].injected);
    free(c->cases);
    free(c->incomplete);
}
