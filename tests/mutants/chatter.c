/* SPDX-License-Identifier: Apache-2.0 */
/* Right, but prints what looks like an answer of the worker to standard output. */
#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    printf("{\"done\": \"anything\", \"outcome\": \"measured\", \"arms\": []}\n");
    fflush(stdout);
    return wrap_inner(p, args);
}
