/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is wrong: what every other mutant is compared with. */
#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}
