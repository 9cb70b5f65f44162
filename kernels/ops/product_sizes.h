/* SPDX-License-Identifier: Apache-2.0 */
/* product_sizes.h: a problem with the sizes m, n and k as members, read once; n of a gemv is 0. */
#ifndef KG_OPS_PRODUCT_SIZES_H
#define KG_OPS_PRODUCT_SIZES_H

#include "kernels/problem.h"

struct product_sizes {
    const char *op;
    uint32_t dtype, flags;
    int64_t m, n, k;
};

static inline struct product_sizes product_sizes_of(const struct kg_problem *p)
{
    struct product_sizes s;
    s.op = p->op;
    s.dtype = kg_dtype(p);
    s.flags = p->flags;
    s.m = kg_size(p, "m");
    s.n = kg_size(p, "n");
    s.k = kg_size(p, "k");
    return s;
}

#endif
