/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/audit_idle.h"

#include <math.h>
#include <stdio.h>

#include "gate/base/clock.h"
#include "gate/worker/idle.h"

/* Of several replays the least is taken: what disturbs one only makes it longer. Short ones are
 * disturbed by more, and there is time for more of them. */
struct replays {
    unsigned least, most; /* these until there were REPLAYS_NS of them */
};
static const struct replays several = {4, 12}, some = {2, 12}, few = {1, 4}, one = {1, 1};

#define REPLAYS_NS 1e6
#define LOOKS_MAX 64

/* Threads of a host's kernel wait for work before they sleep, and are slow to wake. Before a fresh
 * replay more is written, which may send them to sleep: they shall sleep before any replay. */
#define HOST_REST_NS 200e3

/* A copy of the candidate, or that of the baseline beside it. */
struct idle_side {
    struct session *session;
    unsigned arm, copy;
    struct device_replay *own; /* each set once; NULL: the timed recording does just that */
};

static struct series *series_of(const struct idle_side *x)
{
    return &x->session->series[x->arm];
}

static enum gate_status start_side(struct idle_side *x, struct gate_error *err)
{
    struct session *s = x->session;
    struct series *own = series_of(x);
    s->at = x->arm;
    if (own->n_launches == s->n_sets)
        return GATE_OK;
    return device_replay_record(s->device, arm_launch, &own->launch[x->copy], s->n_sets, false,
                                &x->own, err);
}

/* ---- replays ---- */

static bool is_host(const struct session *s)
{
    return device_info(s->device)->kg.kind == KG_DEVICE_HOST;
}

static enum gate_status replay(const struct idle_side *x, struct device_replay *recording,
                               double *ns, struct gate_error *err)
{
    struct device_time t = {0};
    x->session->at = x->arm;
    enum gate_status status = device_replay_run(x->session->device, recording, &t, err);
    if (!status && !clock_can_be(t.device_ns))
        return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a replay of the audit",
                         t.device_ns);
    *ns = t.device_ns;
    return status;
}

/* The sets hold the contents of `rotation`, new ones with poisoned outputs or once more what they
 * held: both write the inputs, for the sake of the caches. */
static enum gate_status replay_once(const struct idle_side *x, unsigned rotation, bool fresh,
                                    double *ns, struct gate_error *err)
{
    struct device_replay *recording = x->own ? x->own : series_of(x)->replay[x->copy];
    enum gate_status status = session_load(x->session, rotation, fresh, err);
    if (status)
        return status;
    if (is_host(x->session))
        clock_spin(HOST_REST_NS);
    return replay(x, recording, ns, err);
}

/* The least of these replays. Nobody is fresh and fast who is not right. */
static enum gate_status replay_often(const struct audit *a, const struct idle_side *x, bool fresh,
                                     struct replays n, double *least, struct gate_error *err)
{
    struct session *s = a->session;
    bool on_trial = s->arms[x->arm].role == ROLE_CANDIDATE;
    double ns = 0, spent = 0;
    enum gate_status status = GATE_OK;
    *least = INFINITY;
    for (unsigned i = 0; (i < n.least || (i < n.most && spent < REPLAYS_NS)) && !status; i++) {
        status =
            replay_once(x, fresh ? (s->rotation + 1) % VERIFY_SEEDS : s->rotation, fresh, &ns, err);
        *least = fmin(*least, ns);
        spent += ns;
        if (!status && fresh && on_trial)
            status = audit_outputs(a, err);
    }
    return status;
}

/* ---- looks ---- */

/* Against the samples themselves, without the baseline: who is not suspicious by that is not idle.
 * A device has nobody else on it, so that few replays do. */
static enum gate_status look_at_samples(const struct audit *a, const struct idle_side *x,
                                        bool *suspicious, struct gate_error *err)
{
    const struct idle_rule rule = idle_rule(is_host(a->session), session_is_paired(a->session));
    struct idle_check look = {.timed = series_of(x)->timed_ns[x->copy] * a->session->n_sets};
    enum gate_status status =
        replay_often(a, x, true, is_host(a->session) ? some : one, &look.fresh, err);
    if (!status)
        status = replay_often(a, x, false, is_host(a->session) ? some : few, &look.stale, err);
    *suspicious = idle_ask(&look, &rule) != IDLE_NO;
    return status;
}

/* As in the samples, and as many of them before the first one that counts. */
static enum gate_status replay_as_timed(const struct idle_side *x, double *least,
                                        struct gate_error *err)
{
    const struct series *own = series_of(x);
    enum gate_status status = GATE_OK;
    double ns = 0;
    *least = INFINITY;
    for (size_t i = 0; i < own->n_timed[x->copy] + several.least && !status; i++) {
        status = replay(x, own->replay[x->copy], &ns, err);
        if (i >= own->n_timed[x->copy])
            *least = fmin(*least, ns / own->n_launches * x->session->n_sets);
    }
    return status;
}

static enum gate_status look_at_side(const struct audit *a, const struct idle_side *x,
                                     struct idle_check *look, struct gate_error *err)
{
    TRY(session_load(a->session, 0, true, err));
    TRY(replay_as_timed(x, &look->timed, err));
    TRY(replay_often(a, x, false, several, &look->stale, err));
    return replay_often(a, x, true, several, &look->fresh, err);
}

static enum gate_status describe_idle(const struct audit *a, const struct idle_check *look,
                                      struct gate_error *err)
{
    const struct session *s = a->session;
    return gate_fail(err, GATE_WRONG,
                     "kernel '%s' does not work where its result is there already, or not all of "
                     "it: %u launches take %.3g us on fresh inputs, and %.3g us when they are "
                     "repeated",
                     s->arms[0].kernel->name, s->n_sets, look->fresh / 1e3,
                     fmin(look->stale, look->timed) / 1e3);
}

/* `baseline`: NULL when there is none. Both take turns, where it is in doubt. */
static enum gate_status try_sides(const struct audit *a, const struct idle_side *candidate,
                                  const struct idle_side *baseline, struct gate_error *err)
{
    struct idle_check own = {0}, other = {0};
    const struct idle_rule rule = idle_rule(is_host(a->session), baseline != NULL);
    int score = IDLE_SCORE_START;
    for (unsigned n = 0; n < LOOKS_MAX && 0 < score && score < IDLE_SCORE_SURE; n++) {
        enum gate_status status = look_at_side(a, candidate, &own, err);
        enum idle_answer answer = idle_ask(&own, &rule);
        if (!status && answer == IDLE_ASK_BASELINE && baseline) {
            status = look_at_side(a, baseline, &other, err);
            answer = idle_ask_baseline(&own, &other, &rule);
        }
        if (status)
            return status;
        score = idle_score(score, answer != IDLE_NO);
    }
    a->session->at = candidate->arm;
    return score < IDLE_SCORE_SURE ? GATE_OK : describe_idle(a, &own, err);
}

static enum gate_status try_beside_baseline(const struct audit *a,
                                            const struct idle_side *candidate,
                                            struct gate_error *err)
{
    struct session *s = a->session;
    if (!session_is_paired(s))
        return try_sides(a, candidate, NULL, err);
    struct idle_side baseline = {.session = s, .arm = 1};
    baseline.copy = candidate->copy < series_of(&baseline)->n_copies ? candidate->copy : 0;
    enum gate_status status = start_side(&baseline, err);
    if (!status)
        status = try_sides(a, candidate, &baseline, err);
    device_replay_free(s->device, baseline.own);
    return status;
}

enum gate_status audit_idleness(const struct audit *a, unsigned copy, struct gate_error *err)
{
    struct session *s = a->session;
    struct idle_side x = {.session = s, .copy = copy};
    bool suspicious = false;
    enum gate_status status = start_side(&x, err);
    if (!status)
        status = look_at_samples(a, &x, &suspicious, err);
    if (!status && suspicious)
        status = try_beside_baseline(a, &x, err);
    device_replay_free(s->device, x.own);
    return status;
}
