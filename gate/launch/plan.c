/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/plan.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    const struct kg_kernel *kernel;
    struct kg_problem problem;
    void *plan;
    struct kept *next;
};

static struct kept *all;

void *plan_of(const struct kg_kernel *k, const struct kg_problem *p)
{
    for (const struct kept *x = all; x; x = x->next)
        if (x->kernel == k && !memcmp(&x->problem, p, sizeof *p))
            return x->plan;
    return NULL;
}

enum kg_status plan_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                            const struct kg_device *where)
{
    void *plan = NULL;
    if (!k->prepare || plan_of(k, p))
        return KG_OK;
    enum kg_status status = k->prepare(p, where, &plan);
    if (status != KG_OK || !plan)
        return status;
    struct kept *kept = malloc(sizeof *kept);
    if (!kept)
        abort();
    *kept = (struct kept){k, *p, plan, all};
    all = kept;
    return KG_OK;
}

uint64_t plan_workspace_bytes(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *where)
{
    return k->workspace_bytes ? k->workspace_bytes(p, where, plan_of(k, p)) : 0;
}

void plan_release_all(void)
{
    while (all) {
        struct kept *kept = all;
        all = kept->next;
        if (kept->kernel->release)
            kept->kernel->release(kept->plan);
        free(kept);
    }
}
