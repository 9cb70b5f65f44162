#include "audit.h"

#include <stdlib.h>

#include "base/clock.h"

/*
 * Does who takes IDLE_RATIO times as long, and IDLE_NS longer, on fresh inputs do nothing else? One
 * pair says little, on a machine that is busy: each idle one counts 1 and each other one -2, from
 * SCORE_START until nothing or SCORE_IDLE is left. If three pairs in ten looked idle by chance, one
 * kernel in a million would be called so; most take two pairs.
 */
#define IDLE_RATIO 2.0
#define IDLE_NS 2000.0
#define SCORE_START 4
#define SCORE_IDLE 16
#define PAIRS_MAX 64

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

/* Content by content, since a check may need a reference for each. */
static enum gate_status check_sets(const struct audit *a, struct gate_error *err)
{
    const struct session *s = a->session;
    uint64_t *hashes = malloc(s->n_sets * sizeof *hashes);
    if (!hashes)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = operands_hash_outputs(s->device, s->sets, s->n_sets, hashes, err);
    for (unsigned first = 0; first < VERIFY_SEEDS; first++)
        for (unsigned set = first; set < s->n_sets && !status; set += VERIFY_SEEDS)
            status = check_set(a, set, hashes[set], err);
    free(hashes);
    return status;
}

/* Sets get the contents of others, outputs are poisoned, the recording runs. */
static enum gate_status replay_fresh(const struct audit *a, unsigned copy, unsigned rotation,
                                     double *ns, struct gate_error *err)
{
    struct session *s = a->session;
    struct device_time t = {0};
    enum gate_status status = session_load(s, rotation, true, err);
    if (!status)
        status = device_replay_run(s->device, s->series[s->at].replay[copy], &t, err);
    *ns = t.device_ns;
    return status;
}

/* Once more on what is there. The inputs are written anew, the same, for the sake of the caches. */
static enum gate_status replay_stale(const struct audit *a, unsigned copy, double *ns,
                                     struct gate_error *err)
{
    struct session *s = a->session;
    struct device_time t = {0};
    enum gate_status status = session_load(s, s->rotation, false, err);
    if (!status)
        status = device_replay_run(s->device, s->series[s->at].replay[copy], &t, err);
    *ns = t.device_ns;
    return status;
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
    return status ? status : check_sets(a, err);
}

/* A pair of replays of which the second one finds the results there. */
struct pair {
    double fresh_ns, stale_ns;
};

static bool is_idle(const struct pair *p)
{
    return p->fresh_ns > IDLE_RATIO * p->stale_ns && p->fresh_ns > p->stale_ns + IDLE_NS;
}

/* The outputs of the first pair are looked at; the others are for the clock. */
static enum gate_status take_pair(const struct audit *a, unsigned copy, unsigned n,
                                  struct pair *out, struct gate_error *err)
{
    enum gate_status status = replay_fresh(a, copy, n % VERIFY_SEEDS, &out->fresh_ns, err);
    if (!status && n == 0)
        status = check_sets(a, err);
    if (!status)
        status = replay_stale(a, copy, &out->stale_ns, err);
    if (!status && n == 0)
        status = check_sets(a, err);
    if (!status && !(clock_can_be(out->fresh_ns) && clock_can_be(out->stale_ns)))
        return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a replay of the audit",
                         clock_can_be(out->fresh_ns) ? out->stale_ns : out->fresh_ns);
    return status;
}

/* Each set once: what is repeated within a recording finds its result there as well. */
static enum gate_status audit_idleness(const struct audit *a, unsigned copy, struct gate_error *err)
{
    struct session *s = a->session;
    struct pair p = {0};
    int score = SCORE_START;
    enum gate_status status = GATE_OK;
    if (s->series[s->at].n_launches != s->n_sets)
        status = session_record(s, s->at, copy, s->n_sets, err);
    for (unsigned n = 0; n < PAIRS_MAX && 0 < score && score < SCORE_IDLE && !status; n++) {
        status = take_pair(a, copy, n, &p, err);
        score += is_idle(&p) ? 1 : -2;
    }
    if (status || score < SCORE_IDLE)
        return status;
    return gate_fail(err, GATE_WRONG,
                     "kernel '%s' does not work where its result is there already: %u launches "
                     "take %.3g us on fresh inputs, and %.3g us when they are repeated",
                     s->arms[s->at].kernel->name, s->n_sets, p.fresh_ns / 1e3, p.stale_ns / 1e3);
}

/* A launch like those that are timed one by one, on a set that cannot be foreseen. */
static enum gate_status audit_single(const struct audit *a, unsigned copy, struct gate_error *err)
{
    struct session *s = a->session;
    unsigned set = (unsigned)(operands_seed(s->seed, ~0ull) % s->n_sets);
    uint64_t hash;
    double ns;
    enum gate_status status = session_load(s, 1, true, err);
    if (!status)
        status =
            device_single_run(s->device, arm_launch, &s->series[s->at].launch[copy], set, &ns, err);
    if (!status)
        status = operands_hash_outputs(s->device, &s->sets[set], 1, &hash, err);
    return status ? status : check_set(a, set, hash, err);
}

static enum gate_status audit_thoroughly(const struct audit *a, unsigned copy,
                                         struct gate_error *err)
{
    enum gate_status status = audit_last_rotation(a, copy, err);
    if (!status)
        status = audit_idleness(a, copy, err);
    return status ? status : audit_single(a, copy, err);
}

static enum gate_status audit_arm(const struct audit *a, struct gate_error *err)
{
    const struct session *s = a->session;
    struct series *x = &a->session->series[s->at];
    enum gate_status status = GATE_OK;
    double ns;
    for (unsigned copy = 0; copy < x->n_copies && !status; copy++) {
        status = replay_fresh(a, copy, 1, &ns, err);
        if (!status)
            status = check_sets(a, err);
    }
    bool on_trial = s->arms[s->at].role == ARM_CANDIDATE;
    if (status || !on_trial)
        return status;
    if (!a->thorough)
        return audit_idleness(a, x->faster_copy, err);
    const unsigned n_launches = x->n_launches;
    for (unsigned copy = 0; copy < x->n_copies && !status; copy++) {
        x->n_launches = n_launches; /* of this copy's recording: that of idleness has fewer */
        status = audit_thoroughly(a, copy, err);
    }
    return status;
}

enum gate_status audit_arms(const struct audit *a, struct gate_error *err)
{
    struct session *s = a->session;
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < s->n_arms && !status; i++) {
        if (!s->arms[i].verification.fingerprints.known)
            continue;
        s->at = i;
        status = audit_arm(a, err);
    }
    return status;
}
