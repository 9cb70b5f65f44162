/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_timed.h"

#include "gate/verify/verify.h"

/* The reference of a content, of which one is kept; *fresh: it was not the one kept. */
static enum gate_status find_reference(struct timed_check *look, const struct operands *o,
                                       unsigned content, bool *fresh, struct gate_error *err)
{
    struct reference *r = look->reference;
    enum gate_status status = GATE_OK;
    *fresh = !r->out[0].data || look->content != content;
    if (!r->out[0].data)
        status = reference_alloc(look->device, o, r, err);
    if (!status && *fresh)
        status = reference_compute(look->device, &look->c->problem, o, r, err);
    look->content = content;
    return status;
}

enum gate_status timed_check(void *context, struct arm *arm, const struct operands *o,
                             unsigned content, struct gate_error *err)
{
    struct timed_check *look = context;
    struct verification *v = &arm->verification;
    bool fresh, may_differ = arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC;
    enum gate_status status = find_reference(look, o, content, &fresh, err);
    if (!status)
        status =
            verify_outputs(look->device, look->c, o, look->reference, fresh || !may_differ, v, err);
    if (status)
        return status;
    if (!v->ok)
        return gate_fail(err, GATE_WRONG, "right when verified, wrong when timed: %.500s",
                         v->message);
    if (may_differ || arm->role != ROLE_CANDIDATE)
        return GATE_OK;
    return gate_fail(
        err, GATE_WRONG,
        "the timed launch gave different bits than the verified one on the same inputs; the "
        "kernel does not declare itself non-deterministic");
}
