/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/audit_memory.h"

/* As they were timed, by recordings and one by one. */
static enum gate_status launch_arm(struct session *s, unsigned arm, struct gate_error *err)
{
    struct series *x = &s->series[arm];
    struct device_time unused;
    double ns;
    enum gate_status status = session_load_anew(s, err);
    s->at = arm;
    for (unsigned copy = 0; copy < x->n_copies && !status; copy++) {
        status = device_replay_run(s->device, x->replay[copy], &unused, err);
        if (!status)
            status = device_single_run(s->device, arm_launch, &x->launch[copy], 0, &ns, err);
    }
    return status;
}

enum gate_status audit_memory(struct session *s, struct gate_error *err)
{
    char seen[200], again[200] = "";
    enum gate_status status = session_check_kept(s, seen, sizeof seen, err);
    if (status || !seen[0])
        return status;
    for (unsigned i = 0; i < s->n_arms && !status && !again[0]; i++) {
        status = launch_arm(s, i, err);
        if (!status)
            status = session_check_kept(s, again, sizeof again, err);
    }
    if (status)
        return status;
    if (!again[0])
        s->at = 0;
    return gate_fail(err, GATE_WRONG, "kernel '%s' %s, when it was timed",
                     s->arms[s->at].kernel->name, again[0] ? again : seen);
}
