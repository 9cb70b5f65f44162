/* SPDX-License-Identifier: Apache-2.0 */
/* Right, and says that its prepare() only tunes; where it is called all the same, it fails. */
#include "kernels/kernel.h"

static void tune(struct kg_kernel *k);
#define WRAP_ADJUST tune
#include "tests/mutants/wrap.h"

static enum kg_status fail(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p;
    (void)device;
    return KG_LAUNCH_FAILED;
}

static void tune(struct kg_kernel *k)
{
    k->flags |= KG_KERNEL_ONLY_TUNED;
    k->prepare = fail;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}
