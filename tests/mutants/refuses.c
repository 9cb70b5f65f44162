/* SPDX-License-Identifier: Apache-2.0 */
/* supports() says yes, the launch says no. */
#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *, const struct kg_args *)
{
    return KG_UNSUPPORTED;
}
