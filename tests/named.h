/* SPDX-License-Identifier: Apache-2.0 */
/* named.h: sizes and parameters of a problem by name, to be written. */
#ifndef TESTS_NAMED_H
#define TESTS_NAMED_H

#include <stdlib.h>

#include "kernels/problem.h"

static inline int64_t *op_named(struct kg_problem *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_sizes; i++)
        if (!strcmp(p->size[i].name, name))
            return &p->size[i].value;
    abort();
}

static inline double *op_param_named(struct kg_problem *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_params; i++)
        if (!strcmp(p->param[i].name, name))
            return &p->param[i].value;
    abort();
}

#endif
