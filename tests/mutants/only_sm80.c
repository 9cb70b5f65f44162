/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is wrong, but kernels for Hopper (their names end with _sm90) serve nothing: so those
 * that serve older devices are tested on a new one.
 */
#include "kernels/problem.h"

static void hide_sm90(struct kg_kernel *k);
#define WRAP_ADJUST hide_sm90
#include "tests/mutants/wrap.h"

static bool is_sm90(const struct kg_kernel *k)
{
    const size_t length = strlen(k->name);
    return length > 5 && strcmp(k->name + length - 5, "_sm90") == 0;
}

static int serves_nothing(const struct kg_problem *, const struct kg_device *)
{
    return 0;
}

static void hide_sm90(struct kg_kernel *k)
{
    if (is_sm90(k))
        k->supports = serves_nothing;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    for (uint32_t i = 0; i < wrap_original->n_kernels; i++) {
        const struct kg_kernel *k = wrap_original->kernels[i];
        if (!strcmp(k->op, p->op) && !is_sm90(k) && k->supports(p, &wrap_device))
            return k->launch(p, args);
    }
    return KG_UNSUPPORTED;
}
