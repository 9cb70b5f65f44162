/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/seed.h"

/* The outputs of one set, which the arm at work has just written; `hash` is theirs. */
static enum gate_status check_set(const struct audit *a, unsigned set, uint64_t hash,
                                  struct gate_error *err)
{
    struct session *s = a->session;
    struct arm *arm = &s->arms[s->at];
    unsigned content = session_content(s, set);
    bool same_bits = hash == arm->verification.fingerprints.of[content];
    if (same_bits && !(arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC))
        return GATE_OK;
    return a->check(a->context, arm, &s->sets[set], content, err);
}

/* Content by content, since a check may need a reference for each. A slow provider does not get to
 * all sets. */
enum gate_status audit_outputs(const struct audit *a, struct gate_error *err)
{
    const struct session *s = a->session;
    const unsigned n = session_sets(s, s->at);
    RELEASED_BY(free_at) uint64_t *hashes = xcalloc(n, sizeof *hashes);
    TRY(operands_hash_outputs(s->device, s->sets, n, hashes, err));
    for (unsigned first = 0; first < VERIFY_SEEDS; first++)
        for (unsigned set = first; set < n; set += VERIFY_SEEDS)
            TRY(check_set(a, set, hashes[set], err));
    return GATE_OK;
}

/* A recording like the timed one, in which the outputs are poisoned before the last rotation. */
struct rotations {
    struct session *session;
    unsigned copy;
    unsigned last; /* the launch that begins it */
};

static enum kg_status launch_rotations(void *context, unsigned index, void *stream)
{
    const struct rotations *r = context;
    struct session *s = r->session;
    for (unsigned set = 0; index == r->last && set < s->n_sets; set++)
        if (session_poison(s, set, NULL))
            return KG_LAUNCH_FAILED;
    return arm_launch(&s->series[s->at].launch[r->copy], index, stream);
}

/* Whoever works in the first rotation alone has left its results for the last one. */
static enum gate_status audit_last_rotation(const struct audit *a, unsigned copy,
                                            struct gate_error *err)
{
    struct session *s = a->session;
    unsigned n = s->series[s->at].n_launches;
    struct rotations r = {s, copy, n - s->n_sets};
    struct device_replay *recording = NULL;
    struct device_time unused;
    if (n == s->n_sets)
        return GATE_OK;
    enum gate_status status =
        device_replay_record(s->device, launch_rotations, &r, n, false, &recording, err);
    if (!status)
        status = session_load(s, 2, true, err);
    if (!status)
        status = device_replay_run(s->device, recording, &unused, err);
    device_replay_free(s->device, recording);
    return status ? status : audit_outputs(a, err);
}

/* A launch like those that are timed one by one, on a set that cannot be foreseen. */
static enum gate_status audit_single(const struct audit *a, unsigned copy, struct gate_error *err)
{
    struct session *s = a->session;
    unsigned set = (unsigned)(seed_at(s->seed, ~0ull) % s->n_sets);
    uint64_t hash;
    double ns;
    TRY(session_load(s, 1, true, err));
    TRY(device_single_run(s->device, arm_launch, &s->series[s->at].launch[copy], set, &ns, err));
    TRY(operands_hash_outputs(s->device, &s->sets[set], 1, &hash, err));
    return check_set(a, set, hash, err);
}

enum gate_status audit_arms(const struct audit *a, struct gate_error *err)
{
    struct session *s = a->session;
    for (unsigned i = 0; i < s->n_arms; i++) {
        const struct series *x = &s->series[i];
        struct device_time unused;
        s->at = i;
        if (!s->arms[i].verification.fingerprints.known)
            continue;
        for (unsigned copy = 0; copy < x->n_copies; copy++) {
            TRY(session_load(s, 1, true, err));
            TRY(device_replay_run(s->device, x->replay[copy], &unused, err));
            TRY(audit_outputs(a, err));
        }
        if (s->arms[i].role != ROLE_CANDIDATE)
            continue;
        if (!a->thorough)
            TRY(audit_idleness(a, x->faster_copy, err));
        for (unsigned copy = 0; copy < x->n_copies && a->thorough; copy++) {
            TRY(audit_last_rotation(a, copy, err));
            TRY(audit_idleness(a, copy, err));
            TRY(audit_single(a, copy, err));
        }
    }
    return GATE_OK;
}

/* ---- writes elsewhere ---- */

enum gate_status audit_memory(struct session *s, struct gate_error *err)
{
    char seen[200], again[200] = "";
    TRY(session_check_kept(s, seen, sizeof seen, err));
    if (!seen[0])
        return GATE_OK;
    for (unsigned i = 0; i < s->n_arms && !again[0]; i++) {
        struct series *x = &s->series[i];
        struct device_time unused;
        double ns;
        TRY(session_load_anew(s, err));
        s->at = i;
        for (unsigned copy = 0; copy < x->n_copies; copy++) { /* as it was timed, in both ways */
            TRY(device_replay_run(s->device, x->replay[copy], &unused, err));
            TRY(device_single_run(s->device, arm_launch, &x->launch[copy], 0, &ns, err));
        }
        TRY(session_check_kept(s, again, sizeof again, err));
    }
    if (!again[0])
        s->at = 0;
    return gate_fail(err, GATE_WRONG, "kernel '%s' %s, when it was timed",
                     s->arms[s->at].kernel->name, again[0] ? again : seen);
}

/* ---- the rule: how long may it take where its result is not there? ---- */

#define LIMIT_DEVICE 1.15
#define LIMIT_HOST 1.3
#define LIMIT_ALONE 2.0
#define FIXED_DEVICE_NS 20e3
#define FIXED_HOST_NS 300e3
#define LEAST_NS 2000.0 /* a difference below this is none */

/* The most that the baseline excuses: one that idles itself shall not hide another that does. */
#define EXCUSE_MAX 2.0

struct idle_rule idle_rule(bool on_host, bool beside_baseline)
{
    double beside = on_host ? LIMIT_HOST : LIMIT_DEVICE;
    return (struct idle_rule){beside_baseline ? beside : LIMIT_ALONE,
                              on_host ? FIXED_HOST_NS : FIXED_DEVICE_NS};
}

/* As long as stale takes, which is like fresh in all else, but no more than what was timed and the
 * fixed cost. */
static double expected_ns(const struct idle_check *look, const struct idle_rule *rule)
{
    return fmin(look->stale, look->timed + rule->fixed_ns);
}

static bool is_over(const struct idle_check *look, const struct idle_rule *rule, double excuse)
{
    double expected = expected_ns(look, rule);
    return look->fresh / expected > rule->limit * excuse && look->fresh > expected + LEAST_NS;
}

enum idle_answer idle_ask(const struct idle_check *look, const struct idle_rule *rule)
{
    if (!is_over(look, rule, 1))
        return IDLE_NO;
    return is_over(look, rule, EXCUSE_MAX) ? IDLE_YES : IDLE_ASK_BASELINE;
}

enum idle_answer idle_ask_baseline(const struct idle_check *look, const struct idle_check *baseline,
                                   const struct idle_rule *rule)
{
    double excuse = fmin(fmax(baseline->fresh / expected_ns(baseline, rule), 1), EXCUSE_MAX);
    return is_over(look, rule, excuse) ? IDLE_YES : IDLE_NO;
}

int idle_score(int score, bool suspicious)
{
    return score + (suspicious ? 1 : -2);
}

/* ---- replays ---- */

/* A copy of an arm. */
struct side {
    unsigned arm, copy;
    struct device_replay *own; /* each set once; NULL: the timed recording does just that */
};

static struct device_replay *timed_replay(const struct session *s, const struct side *x)
{
    return s->series[x->arm].replay[x->copy];
}

/* Records each set once. */
static enum gate_status start_side(struct session *s, struct side *x, struct gate_error *err)
{
    struct series *series = &s->series[x->arm];
    s->at = x->arm;
    if (series->n_launches == s->n_sets)
        return GATE_OK;
    return device_replay_record(s->device, arm_launch, &series->launch[x->copy], s->n_sets, false,
                                &x->own, err);
}

/* The baseline's copy that goes with one of the candidate's. */
static struct side baseline_beside(const struct session *s, unsigned copy)
{
    return (struct side){.arm = 1, .copy = copy < s->series[1].n_copies ? copy : 0};
}

static bool is_host(const struct session *s)
{
    return device_info(s->device)->kg.kind == KG_DEVICE_HOST;
}

static enum gate_status replay(struct session *s, const struct side *x,
                               struct device_replay *recording, double *ns, struct gate_error *err)
{
    struct device_time t = {0};
    s->at = x->arm;
    TRY(session_replay(s, recording, &t, err));
    *ns = t.device_ns;
    return clock_can_be(*ns) ? GATE_OK
                             : gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN,
                                         "a replay of the audit", *ns);
}

/* Each set once, on the contents of the next rotation with poisoned outputs, or once more on what
 * the sets held: both write the inputs, for the sake of the caches. */
static enum gate_status replay_sets(struct session *s, const struct side *x, bool fresh,
                                    double rest_ns, double *ns, struct gate_error *err)
{
    TRY(session_load(s, fresh ? (s->rotation + 1) % VERIFY_SEEDS : s->rotation, fresh, err));
    if (rest_ns > 0)
        clock_spin(rest_ns);
    return replay(s, x, x->own ? x->own : timed_replay(s, x), ns, err);
}

/* ---- does it work less when it is timed? ---- */

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

/* The fastest of these replays. A fast one on fresh inputs counts only if its output is right. */
static enum gate_status replay_often(const struct audit *a, const struct side *x, bool fresh,
                                     struct replays n, double *least, struct gate_error *err)
{
    struct session *s = a->session;
    double ns = 0, spent = 0, rest_ns = is_host(s) ? HOST_REST_NS : 0;
    *least = INFINITY;
    for (unsigned i = 0; i < n.least || (i < n.most && spent < REPLAYS_NS); i++) {
        TRY(replay_sets(s, x, fresh, rest_ns, &ns, err));
        *least = fmin(*least, ns);
        spent += ns;
        if (fresh && s->arms[x->arm].role == ROLE_CANDIDATE)
            TRY(audit_outputs(a, err));
    }
    return GATE_OK;
}

/* The timed recording as often as for the samples, before the first replay of it that counts. */
static enum gate_status look_at_side(const struct audit *a, const struct side *x,
                                     struct idle_check *look, struct gate_error *err)
{
    struct session *s = a->session;
    const struct series *own = &s->series[x->arm];
    double ns = 0;
    look->timed = INFINITY;
    TRY(session_load(s, 0, true, err));
    for (size_t i = 0; i < own->n_timed[x->copy] + several.least; i++) {
        TRY(replay(s, x, timed_replay(s, x), &ns, err));
        if (i >= own->n_timed[x->copy])
            look->timed = fmin(look->timed, ns / own->n_launches * s->n_sets);
    }
    TRY(replay_often(a, x, false, several, &look->stale, err));
    return replay_often(a, x, true, several, &look->fresh, err);
}

/* `baseline`: NULL when there is none. Both take turns, where it is in doubt. */
static enum gate_status try_sides(const struct audit *a, const struct side *candidate,
                                  const struct side *baseline, const struct idle_rule *rule,
                                  struct gate_error *err)
{
    struct session *s = a->session;
    struct idle_check own = {0}, other = {0};
    int score = IDLE_SCORE_START;
    for (unsigned n = 0; n < LOOKS_MAX && 0 < score && score < IDLE_SCORE_SURE; n++) {
        TRY(look_at_side(a, candidate, &own, err));
        enum idle_answer answer = idle_ask(&own, rule);
        if (answer == IDLE_ASK_BASELINE && baseline) {
            TRY(look_at_side(a, baseline, &other, err));
            answer = idle_ask_baseline(&own, &other, rule);
        }
        score = idle_score(score, answer != IDLE_NO);
    }
    s->at = candidate->arm;
    if (score < IDLE_SCORE_SURE)
        return GATE_OK;
    return gate_fail(err, GATE_WRONG,
                     "kernel '%s' does not work where its result is there already, or not all of "
                     "it: %u launches take %.3g us on fresh inputs, and %.3g us when they are "
                     "repeated",
                     s->arms[0].kernel->name, s->n_sets, own.fresh / 1e3,
                     fmin(own.stale, own.timed) / 1e3);
}

/* First against the samples themselves, without the baseline: what is not suspicious by that is not
 * idle. A device has nobody else on it, so that few replays do. */
enum gate_status audit_idleness(const struct audit *a, unsigned copy, struct gate_error *err)
{
    struct session *s = a->session;
    bool paired = session_is_paired(s), host = is_host(s);
    struct side x = {.copy = copy}, baseline = baseline_beside(s, copy);
    const struct idle_rule rule = idle_rule(host, paired);
    struct idle_check look = {.timed = s->series[0].timed_ns[copy] * s->n_sets};
    enum gate_status status = start_side(s, &x, err);
    if (!status)
        status = replay_often(a, &x, true, host ? some : one, &look.fresh, err);
    if (!status)
        status = replay_often(a, &x, false, host ? some : few, &look.stale, err);
    if (!status && idle_ask(&look, &rule) != IDLE_NO) {
        status = paired ? start_side(s, &baseline, err) : GATE_OK;
        if (!status)
            status = try_sides(a, &x, paired ? &baseline : NULL, &rule, err);
    }
    device_replay_free(s->device, x.own);
    device_replay_free(s->device, baseline.own);
    return status;
}

/* ---- is what is faster as much faster afresh? ---- */

#define ROUNDS_MIN 6
#define ROUNDS_MAX 32
#define BUDGET_NS 200e6
#define BUDGET_ALONE_NS 50e6

/* What a side took, round by round. */
struct times {
    double fresh[ROUNDS_MAX], repeated[ROUNDS_MAX];
};

/* Which of the two comes first goes by turns. Outputs that may have other bits each time need
 * references of all contents, which take long: they are looked at once. */
static enum gate_status time_pair(const struct audit *a, const struct side *x, unsigned round,
                                  struct times *t, struct gate_error *err)
{
    struct session *s = a->session;
    const struct arm *arm = &s->arms[x->arm];
    bool looked_at = arm->role == ROLE_CANDIDATE &&
                     (round == 0 || !(arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC));
    double unused;
    for (unsigned i = 0; i < 2; i++) {
        if (i == round / 2 % 2) {
            TRY(replay_sets(s, x, true, 0, &t->fresh[round], err));
            TRY(looked_at ? audit_outputs(a, err) : GATE_OK);
        } else {
            TRY(replay(s, x, timed_replay(s, x), &unused, err));
            TRY(replay_sets(s, x, false, 0, &t->repeated[round], err));
        }
    }
    return GATE_OK;
}

/* ln of fresh over repeated. A host is shared: what disturbs a sample there only makes it longer,
 * and more often than not on a busy one. */
static double compare(const struct times *t, unsigned n, bool on_host)
{
    double log_ratio[ROUNDS_MAX], fresh = INFINITY, repeated = INFINITY;
    for (unsigned i = 0; i < n; i++) {
        log_ratio[i] = log(t->fresh[i] / t->repeated[i]);
        fresh = fmin(fresh, t->fresh[i]);
        repeated = fmin(repeated, t->repeated[i]);
    }
    return on_host ? log(fresh / repeated) : stats_middle(log_ratio, n);
}

/* The candidate's ratio over that of the baseline, if there is one. */
static enum gate_status time_rounds(const struct audit *a, const struct side *sides,
                                    unsigned n_sides, double *log_ratio, struct gate_error *err)
{
    struct times times[2];
    double start = clock_ns(), budget_ns = n_sides > 1 ? BUDGET_NS : BUDGET_ALONE_NS;
    unsigned n = 0;
    bool on_host = is_host(a->session);
    for (; n < ROUNDS_MAX && (n < ROUNDS_MIN || clock_ns() - start < budget_ns); n++)
        for (unsigned i = 0; i < n_sides; i++) {
            unsigned side = n % 2 ? n_sides - 1 - i : i;
            TRY(time_pair(a, &sides[side], n, &times[side], err));
        }
    *log_ratio = compare(&times[0], n, on_host);
    if (n_sides > 1)
        *log_ratio -= compare(&times[1], n, on_host);
    return GATE_OK;
}

enum gate_status audit_fresh(const struct audit *a, struct gate_error *err)
{
    struct session *s = a->session;
    unsigned n_sides = session_is_paired(s) ? 2 : 1, copy = s->series[0].faster_copy;
    struct side sides[2] = {{.copy = copy}, baseline_beside(s, copy)};
    double log_ratio = 0;
    enum gate_status status = GATE_OK;
    if (n_sides > 1) {
        const struct estimate *ratio = &s->arms[1].timing.ratio_to_candidate;
        if (!(ratio->value > 0 && ratio->hi < 1))
            return GATE_OK;
    }
    if (!s->arms[0].verification.fingerprints.known)
        return GATE_OK;
    for (unsigned i = 0; i < n_sides && !status; i++)
        status = start_side(s, &sides[i], err);
    if (!status)
        status = time_rounds(a, sides, n_sides, &log_ratio, err);
    if (!status)
        s->arms[n_sides - 1].timing.ratio_fresh = exp(log_ratio);
    for (unsigned i = 0; i < n_sides; i++)
        device_replay_free(s->device, sides[i].own);
    return status;
}
