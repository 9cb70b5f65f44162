/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_timed.h: a look at outputs of timed launches whose bits are not the verified ones.
 */
#ifndef GATE_VERIFY_VERIFY_TIMED_H
#define GATE_VERIFY_VERIFY_TIMED_H

#include "gate/launch/arm.h"
#include "gate/verify/verify_reference.h"

struct timed_check {
    struct device *device;
    const struct suite_case *c;
    struct reference *reference; /* allocated when it is needed, and then the caller's */
    unsigned content;            /* of the inputs that the reference is for */
};

/*
 * Are the outputs in `o`, of inputs of content `content`, right (audit_check_fn; `context` is the
 * look)? The candidate must give the verified bits unless it is declared otherwise; another arm,
 * which is not on trial, only what is right.
 */
enum gate_status timed_check(void *context, struct arm *arm, const struct operands *o,
                             unsigned content, struct gate_error *err);

#endif
