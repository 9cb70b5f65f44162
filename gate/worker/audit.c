/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/measure.h"

#include <stdlib.h>

#include "gate/base/alloc.h"
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
    uint64_t *hashes = xcalloc(n, sizeof *hashes);
    enum gate_status status = operands_hash_outputs(s->device, s->sets, n, hashes, err);
    for (unsigned first = 0; first < VERIFY_SEEDS; first++)
        for (unsigned set = first; set < n && !status; set += VERIFY_SEEDS)
            status = check_set(a, set, hashes[set], err);
    free(hashes);
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
