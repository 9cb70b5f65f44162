/* SPDX-License-Identifier: Apache-2.0 */
/* own_ops.h: ops of a user's, for tests: read from a text whose quotes are single ones, and used.
 */
#ifndef TESTS_UNIT_OWN_OPS_H
#define TESTS_UNIT_OWN_OPS_H

#include "gate/cases/op_file.h"
#include "tests/unit/quotes.h"
#include "tests/unit/unit.h"

/* The op alone is in use. */
static inline struct own_op *use_op(const char *text)
{
    static const struct op *used;
    struct own_op *own;
    struct gate_error err = {0};
    const char *json = double_quoted(text);
    if (own_op_parse("own.op.json", json, strlen(json), &own, &err))
        fail_msg("%s", err.message);
    used = &own->op;
    op_use(&used, 1);
    return own;
}

static inline void end(struct own_op *own)
{
    op_use(NULL, 0);
    own_op_free(own);
}

#endif
