/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rare_alike.h: right but for what is remembered of problems and tensors that are alike, and for
 * layouts of other frameworks. For host and GPU alike, since all of it is in the arguments.
 */
#ifndef TESTS_MUTANTS_RARE_ALIKE_H
#define TESTS_MUTANTS_RARE_ALIKE_H

#include "tests/mutants/faults.h"

#define KNOWN 512 /* problems or tensors that are remembered */

/* The first one of these sizes. */
static const struct kg_problem *first_alike(const struct kg_problem *p)
{
    static struct kg_problem known[KNOWN];
    static unsigned n;
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(known[i].op, p->op) && known[i].dtype[0] == p->dtype[0] &&
            !memcmp(known[i].size, p->size, sizeof p->size))
            return &known[i];
    if (n < KNOWN)
        known[n++] = *p;
    return p;
}

static enum kg_status mask_by_sizes(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_problem other = *p;
    other.flags = first_alike(p)->flags;
    return wrap_inner(&other, args);
}

static enum kg_status scale_by_sizes(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_problem other = *p;
    memcpy(other.param, first_alike(p)->param, sizeof other.param);
    return wrap_inner(&other, args);
}

/* A descriptor that is kept by address and strides has the rows of the first tensor there. */
static enum kg_status rows_by_address(const struct kg_problem *p, const struct kg_args *args)
{
    static struct kg_tensor kept[KNOWN];
    static unsigned n;
    const struct kg_tensor *t = &args->in[0];
    struct kg_problem fewer = *p;
    struct kg_args of_fewer = *args;
    if (!kg_is_op(p, "gemm"))
        return wrap_inner(p, args);
    for (unsigned k = 0; k < n; k++)
        if (kept[k].data == t->data && kept[k].dtype == t->dtype &&
            kept[k].stride[0] == t->stride[0]) {
            if (kept[k].shape[0] < t->shape[0])
                *op_named(&fewer, "m") = of_fewer.in[0].shape[0] = of_fewer.out[0].shape[0] =
                    kept[k].shape[0];
            return wrap_inner(&fewer, &of_fewer);
        }
    if (n < KNOWN)
        kept[n++] = *t;
    return wrap_inner(p, args);
}

/* Batches whose rows lie between those of each other are taken for one. */
static enum kg_status batches_outermost(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_args other = *args;
    struct kg_tensor *q = &other.in[0];
    if (q->rank == 4 && q->shape[2] > 1 && q->stride[0] < q->stride[2])
        q->stride[0] = 0;
    return wrap_inner(p, &other);
}

/* A matrix that is cut out of one three times as wide is taken for dense. */
static enum kg_status wide_pitch(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_args other = *args;
    struct kg_tensor *a = &other.in[0];
    if (a->rank == 2 && a->stride[0] >= 3 * a->shape[1] && a->stride[0] < 1 << 20)
        a->stride[0] = a->shape[1];
    return wrap_inner(p, &other);
}

#define RARE_ALIKE                                                                                 \
    {"mask_by_sizes", mask_by_sizes, 0, NULL}, {"scale_by_sizes", scale_by_sizes, 0, NULL},        \
        {"rows_by_address", rows_by_address, 0, NULL},                                             \
        {"batches_outermost", batches_outermost, 0, NULL},                                         \
    {                                                                                              \
        "wide_pitch", wide_pitch, 0, NULL                                                          \
    }

#endif
