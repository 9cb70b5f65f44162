/* SPDX-License-Identifier: Apache-2.0 */
/* Right, but the second copy of it, in memory, does not open: for tests/e2e/test_worker.py. */
#define WRAP_OPEN open_once
#include "kernels/problem.h"
static enum kg_status open_once(const struct kg_device *device, const struct kg_file *files);
#include "tests/mutants/wrap.h"

static enum kg_status open_once(const struct kg_device *device, const struct kg_file *files)
{
    return wrap_is_copy() ? KG_UNSUPPORTED : wrap_open(device, files);
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}
