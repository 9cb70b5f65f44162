/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/race.h"

#include <math.h>
#include <string.h>

#include "gate/decide/decide.h"

/* ---- luck ---- */

/*
 * 1 / p is the product of the bets, spread evenly over all chances q of a win from 1/2 to 1: the
 * integral of 2 q^k (1 - q)^(n - k) / 2^-n, which is an incomplete beta function.
 */
void race_luck_add(struct race_luck *l, bool win)
{
    l->n++;
    l->wins += win;
    double n = (double)l->n, k = (double)l->wins, tail = 0; /* P(Binomial(n + 1, 1/2) <= k) */
    for (double i = 0; i <= k; i++)
        tail += exp(lgamma(n + 2) - lgamma(i + 1) - lgamma(n + 2 - i) + (n + 1) * log(0.5));
    double log_beta = lgamma(k + 1) + lgamma(n - k + 1) - lgamma(n + 2);
    double p = 1 / (exp((n + 1) * log(2) + log_beta) * fmin(tail, 1));
    l->least = p < l->least ? p : l->least;
}

/* ---- fresh inputs ---- */

enum race_fresh race_fresh_of(const double *d, const double *fresh, size_t n, double gain)
{
    double more[DECIDE_MAX_PROCESSES], left[DECIDE_MAX_PROCESSES];
    size_t known = 0;
    for (size_t i = 0; i < n && known < DECIDE_MAX_PROCESSES; i++) {
        if (!isfinite(fresh[i]))
            continue;
        more[known] = fresh[i];
        left[known++] = d[i] + fresh[i];
    }
    if (known < DECIDE_FIRST_LOOK)
        return RACE_FRESH_OPEN;
    struct estimate e = decide_bounds(more, known);
    if (e.value > log1p(gain) && e.lo > log1p(gain / 2))
        return RACE_FRESH_IDLES;
    return e.hi < log1p(gain) || decide_bounds(left, known).hi < -log1p(gain) ? RACE_FRESH_GAINS
                                                                              : RACE_FRESH_OPEN;
}

/* ---- the race ---- */

static double median_of(const double *d, size_t n)
{
    double sorted[RACE_VALUES];
    memcpy(sorted, d, n * sizeof *d);
    return stats_middle(sorted, n);
}

static void put_out(struct racer *racer, enum race_fresh seen)
{
    racer->state = RACER_BEATEN;
    racer->why = seen == RACE_FRESH_IDLES
                     ? "it leaves work out where its result is there already"
                     : "its gain was not shown on fresh inputs and destroyed outputs";
}

/* The margin that a process must be under to speak for a gain. */
static double margin(const struct race *r)
{
    return -log1p(r->rules.gain / 2);
}

enum gate_status race_look(struct race *r, size_t i, struct gate_error *err)
{
    struct racer *racer = &r->racers[i];
    struct race_run run = {.state = RACER_FAILED};
    TRY(r->measure(r->context, i, 0, &run, err));
    racer->runs++;
    racer->state = run.state == RACER_IN && !run.n ? RACER_FAILED : run.state;
    for (size_t k = 0; k < run.n && racer->n < RACE_VALUES; k++)
        racer->d[racer->n++] = run.d[k];
    racer->median = racer->n ? median_of(racer->d, racer->n) : 0;
    if (racer->state != RACER_IN)
        return GATE_OK;
    if (decide_bounds(run.d, run.n).lo > margin(r))
        racer->state = RACER_BEATEN;
    else if (race_fresh_of(run.d, run.fresh, run.n, r->rules.gain) == RACE_FRESH_IDLES)
        put_out(racer, RACE_FRESH_IDLES);
    return GATE_OK;
}

enum gate_status race_halve(struct race *r, const size_t *order, struct gate_error *err)
{
    size_t n_in = r->n, n_before;
    do {
        n_before = n_in;
        for (size_t i = 0; i < r->n; i++) {
            if (r->racers[order[i]].state != RACER_IN)
                continue;
            if (!r->goes_on(r->context))
                return GATE_OK;
            TRY(race_look(r, order[i], err));
        }
        n_in = 0;
        for (size_t i = 0; i < r->n; i++)
            n_in += r->racers[i].state == RACER_IN;
        for (size_t slow = n_in / 2; slow > 0; slow--, n_in--) {
            struct racer *slowest = r->racers;
            for (struct racer *racer = r->racers; racer < r->racers + r->n; racer++)
                if (racer->state == RACER_IN &&
                    (slowest->state != RACER_IN || racer->median >= slowest->median))
                    slowest = racer;
            slowest->state = RACER_BEATEN;
        }
    } while (n_in > 1 && n_in < n_before);
    return GATE_OK;
}

/* ---- the confirmation ---- */

static enum gate_status confirm(struct race *r, size_t i, struct race_end *out,
                                struct gate_error *err)
{
    const double share = ldexp(1, -(int)r->racers[i].confirmation); /* of the risk */
    double d[RACE_CONFIRMATION_RUNS * RACE_RUN_VALUES];
    double fresh[RACE_CONFIRMATION_RUNS * RACE_RUN_VALUES];
    struct race_luck luck = {.least = 1};
    enum race_fresh seen = RACE_FRESH_OPEN;
    bool gains = false;
    size_t n = 0;
    for (int k = 0; k < RACE_CONFIRMATION_RUNS && !out->won; k++) {
        struct race_run run = {.state = RACER_FAILED};
        TRY(r->measure(r->context, i, r->racers[i].confirmation, &run, err));
        if (run.state != RACER_IN) {
            r->racers[i].state = run.state;
            return GATE_OK;
        }
        for (size_t j = 0; j < run.n; j++) {
            race_luck_add(&luck, run.d[j] < margin(r));
            fresh[n] = run.fresh[j];
            d[n++] = run.d[j];
        }
        double median = median_of(d, n);
        seen = race_fresh_of(d, fresh, n, r->rules.gain);
        gains = luck.least <= share * r->rules.risk && median < -log1p(r->rules.gain);
        out->won = gains && seen == RACE_FRESH_GAINS;
        if (median > margin(r) || seen == RACE_FRESH_IDLES)
            break;
    }
    if (out->won) {
        out->winner = i;
        out->risk = luck.least / share;
        out->ratio = (struct estimate){exp(median_of(d, n)), INFINITY, 0};
        for (size_t j = 0; j < n; j++) {
            out->ratio.lo = fmin(out->ratio.lo, exp(d[j]));
            out->ratio.hi = fmax(out->ratio.hi, exp(d[j]));
        }
        out->processes = n;
    } else if (gains || seen == RACE_FRESH_IDLES) {
        put_out(&r->racers[i], seen);
    } else {
        r->racers[i].state = RACER_BEATEN;
    }
    return GATE_OK;
}

enum gate_status race_confirm(struct race *r, struct race_end *out, struct gate_error *err)
{
    *out = (struct race_end){.won = false};
    while (!out->won) {
        /* The fastest of those that are in, gained what is asked for and may be confirmed. */
        double least = -log1p(r->rules.gain);
        size_t best = r->n;
        for (size_t i = 0; i < r->n; i++) {
            const struct racer *racer = &r->racers[i];
            if (racer->state != RACER_IN || !racer->n || racer->median >= least)
                continue;
            if (!racer->confirmation && r->n_since >= RACE_CONFIRMATIONS)
                continue;
            least = racer->median;
            best = i;
        }
        if (best == r->n)
            break;
        if (!r->racers[best].confirmation) {
            r->racers[best].confirmation = ++r->confirmed;
            r->n_since++;
        }
        TRY(confirm(r, best, out, err));
    }
    out->confirmations = r->confirmed;
    return GATE_OK;
}
