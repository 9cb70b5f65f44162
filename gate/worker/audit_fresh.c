/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/audit_fresh.h"

#include <math.h>

#include "gate/base/clock.h"

#define ROUNDS_MIN 6
#define ROUNDS_MAX 32
#define BUDGET_NS 200e6
#define BUDGET_ALONE_NS 50e6
#define SIDES 2

/* A copy of an arm; `own`: each set once, NULL: the timed recording does just that. */
struct fresh_side {
    unsigned arm, copy;
    struct device_replay *own;
};

static enum gate_status start_side(struct session *s, struct fresh_side *x, struct gate_error *err)
{
    struct series *series = &s->series[x->arm];
    s->at = x->arm;
    if (series->n_launches == s->n_sets)
        return GATE_OK;
    return device_replay_record(s->device, arm_launch, &series->launch[x->copy], s->n_sets, false,
                                &x->own, err);
}

/* Each set once. */
static enum gate_status time_sets(struct session *s, const struct fresh_side *x, double *ns,
                                  struct gate_error *err)
{
    struct device_time t = {0};
    enum gate_status status =
        device_replay_run(s->device, x->own ? x->own : s->series[x->arm].replay[x->copy], &t, err);
    *ns = t.device_ns;
    if (!status && !clock_can_be(*ns))
        return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a replay of the audit", *ns);
    return status;
}

/* Outputs that may have other bits each time need references of all contents, which take long: they
 * are looked at once. */
static bool is_looked_at(const struct arm *arm, unsigned round)
{
    return arm->role == ROLE_CANDIDATE &&
           (round == 0 || !(arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC));
}

static enum gate_status time_fresh(const struct audit *a, const struct fresh_side *x,
                                   unsigned round, double *ns, struct gate_error *err)
{
    struct session *s = a->session;
    enum gate_status status = session_load(s, (s->rotation + 1) % VERIFY_SEEDS, true, err);
    if (!status)
        status = time_sets(s, x, ns, err);
    return status || !is_looked_at(&s->arms[x->arm], round) ? status : audit_outputs(a, err);
}

/* The inputs are written as for a fresh one, for the sake of the caches. */
static enum gate_status time_repeated(const struct audit *a, const struct fresh_side *x, double *ns,
                                      struct gate_error *err)
{
    struct session *s = a->session;
    struct device_time unused;
    TRY(device_replay_run(s->device, s->series[x->arm].replay[x->copy], &unused, err));
    TRY(session_load(s, s->rotation, false, err));
    return time_sets(s, x, ns, err);
}

/* What a side took, round by round. */
struct times {
    double fresh[ROUNDS_MAX], repeated[ROUNDS_MAX];
};

/* Which of the two comes first goes by turns. */
static enum gate_status time_pair(const struct audit *a, const struct fresh_side *x, unsigned round,
                                  struct times *t, struct gate_error *err)
{
    bool fresh_first = round / 2 % 2 == 0;
    double *fresh = &t->fresh[round], *repeated = &t->repeated[round];
    a->session->at = x->arm;
    TRY(fresh_first ? time_fresh(a, x, round, fresh, err) : time_repeated(a, x, repeated, err));
    return fresh_first ? time_repeated(a, x, repeated, err) : time_fresh(a, x, round, fresh, err);
}

static double least(const double *x, unsigned n)
{
    double value = x[0];
    for (unsigned i = 1; i < n; i++)
        value = fmin(value, x[i]);
    return value;
}

/* ln of fresh over repeated. A host is shared: what disturbs a sample there only makes it longer,
 * and more often than not on a busy one. */
static double compare(const struct times *t, unsigned n, bool on_host)
{
    double log_ratio[ROUNDS_MAX];
    if (on_host)
        return log(least(t->fresh, n) / least(t->repeated, n));
    for (unsigned i = 0; i < n; i++)
        log_ratio[i] = log(t->fresh[i] / t->repeated[i]);
    return stats_middle(log_ratio, n);
}

/* Of the first side over that of the second, if there is one. */
static enum gate_status time_rounds(const struct audit *a, const struct fresh_side *sides,
                                    unsigned n_sides, double *out, struct gate_error *err)
{
    struct times times[SIDES];
    double start = clock_ns();
    unsigned n = 0;
    bool on_host = device_info(a->session->device)->kg.kind == KG_DEVICE_HOST;
    enum gate_status status = GATE_OK;
    double budget_ns = n_sides == SIDES ? BUDGET_NS : BUDGET_ALONE_NS;
    while (n < ROUNDS_MAX && !status && (n < ROUNDS_MIN || clock_ns() - start < budget_ns)) {
        for (unsigned i = 0; i < n_sides && !status; i++) {
            unsigned side = n % 2 ? n_sides - 1 - i : i;
            status = time_pair(a, &sides[side], n, &times[side], err);
        }
        n += !status;
    }
    *out = status ? 0 : compare(&times[0], n, on_host);
    if (!status && n_sides == SIDES)
        *out -= compare(&times[1], n, on_host);
    return status;
}

static bool was_faster(const struct session *s)
{
    const struct estimate *ratio = &s->arms[1].timing.ratio_to_candidate;
    return ratio->value > 0 && ratio->hi < 1;
}

enum gate_status audit_fresh(const struct audit *a, struct gate_error *err)
{
    struct session *s = a->session;
    struct fresh_side sides[SIDES] = {{.arm = 0}, {.arm = 1}};
    double log_ratio = 0;
    bool paired = session_is_paired(s);
    unsigned n_sides = paired ? SIDES : 1;
    if ((paired && !was_faster(s)) || !s->arms[0].verification.fingerprints.known)
        return GATE_OK;
    sides[0].copy = s->series[0].faster_copy;
    if (paired)
        sides[1].copy = sides[0].copy < s->series[1].n_copies ? sides[0].copy : 0;
    enum gate_status status = start_side(s, &sides[0], err);
    if (!status && paired)
        status = start_side(s, &sides[1], err);
    if (!status)
        status = time_rounds(a, sides, n_sides, &log_ratio, err);
    if (!status)
        s->arms[n_sides - 1].timing.ratio_fresh = exp(log_ratio);
    for (unsigned i = 0; i < n_sides; i++)
        device_replay_free(s->device, sides[i].own);
    return status;
}
