/* SPDX-License-Identifier: Apache-2.0 */
/* The launch ends in a segmentation fault, after a word to standard error. */
#include <signal.h>

#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *, const struct kg_args *)
{
    fprintf(stderr, "about to crash\n");
    raise(SIGSEGV);
    return KG_OK;
}
