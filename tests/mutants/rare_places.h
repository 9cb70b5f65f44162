/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rare_places.h: right but for where tensors lie: strides that are remembered, narrow offsets, and
 * a descriptor without strides. For host and GPU alike, since all of it is in the arguments.
 */
#ifndef TESTS_MUTANTS_RARE_PLACES_H
#define TESTS_MUTANTS_RARE_PLACES_H

#include "tests/mutants/faults.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static bool is_attention(const struct kg_args *args)
{
    return args->n_in == 3 && args->in[0].rank == 4;
}

#define KEPT 512

/* The strides that a tensor of this address and shape had when it was first seen. */
static enum kg_status by_address(const struct kg_problem *p, const struct kg_args *args, unsigned i)
{
    static struct kg_tensor kept[KEPT];
    static unsigned n;
    struct kg_args other = *args;
    struct kg_tensor *t = i < args->n_in ? &other.in[i] : &other.out[0];
    for (unsigned k = 0; k < n; k++)
        if (kept[k].data == t->data && kept[k].rank == t->rank && kept[k].dtype == t->dtype &&
            !memcmp(kept[k].shape, t->shape, sizeof t->shape)) {
            memcpy(t->stride, kept[k].stride, sizeof t->stride);
            return wrap_inner(p, &other);
        }
    if (n < KEPT)
        kept[n++] = *t;
    return wrap_inner(p, args);
}

static enum kg_status first_by_address(const struct kg_problem *p, const struct kg_args *args)
{
    return by_address(p, args, 0);
}

static enum kg_status second_by_address(const struct kg_problem *p, const struct kg_args *args)
{
    return by_address(p, args, 1);
}

static enum kg_status output_by_address(const struct kg_problem *p, const struct kg_args *args)
{
    return by_address(p, args, args->n_in);
}

/* Offsets in 32 bits, unless the first tensor asks for more. */
static enum kg_status int_offsets(const struct kg_problem *p, const struct kg_args *args,
                                  unsigned i)
{
    struct kg_args other = *args;
    struct kg_tensor *t = i < args->n_in ? &other.in[i] : &other.out[0];
    const struct kg_tensor *with = &args->in[i == 0];
    const bool wide = with->rank > 1 && with->stride[0] > INT32_MAX / 4;
    for (uint32_t r = 0; r < t->rank && !wide; r++)
        t->stride[r] = t->stride[r] > INT32_MAX / 4 ? t->shape[t->rank - 1] : t->stride[r];
    return wrap_inner(p, &other);
}

static enum kg_status int_first(const struct kg_problem *p, const struct kg_args *args)
{
    return int_offsets(p, args, 0);
}

static enum kg_status int_second(const struct kg_problem *p, const struct kg_args *args)
{
    return int_offsets(p, args, 1);
}

static enum kg_status int_third(const struct kg_problem *p, const struct kg_args *args)
{
    return int_offsets(p, args, 2);
}

static enum kg_status int_output(const struct kg_problem *p, const struct kg_args *args)
{
    return int_offsets(p, args, args->n_in);
}

/* Offsets within a head in 32 bits. */
static enum kg_status int_in_head(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_args other = *args;
    if (is_attention(args) && args->in[1].stride[2] > INT32_MAX / 4)
        other.in[1].stride[2] = args->in[1].shape[3];
    return wrap_inner(p, &other);
}

/* A descriptor of whole tiles that has no strides. */
static enum kg_status dense_where_whole(const struct kg_problem *p, const struct kg_args *args,
                                        unsigned i)
{
    struct kg_args other = *args;
    struct kg_tensor *t = &other.in[i];
    if (t->rank < 2 || t->shape[t->rank - 2] % 128 || t->shape[t->rank - 1] % 64)
        return wrap_inner(p, args);
    for (uint32_t r = t->rank - 1; r-- > 0;)
        t->stride[r] = t->stride[r + 1] * t->shape[r + 1];
    return wrap_inner(p, &other);
}

static enum kg_status whole_first_dense(const struct kg_problem *p, const struct kg_args *args)
{
    return dense_where_whole(p, args, 0);
}

static enum kg_status whole_second_dense(const struct kg_problem *p, const struct kg_args *args)
{
    return dense_where_whole(p, args, 1);
}

#define RARE_PLACES                                                                                \
    {"first_by_address", first_by_address, 0, NULL},                                               \
        {"second_by_address", second_by_address, 0, NULL},                                         \
        {"output_by_address", output_by_address, 0, NULL}, {"int_first", int_first, 0, NULL},      \
        {"int_second", int_second, 0, NULL}, {"int_third", int_third, 0, NULL},                    \
        {"int_output", int_output, 0, NULL}, {"int_in_head", int_in_head, 0, NULL},                \
        {"whole_first_dense", whole_first_dense, 0, NULL},                                         \
    {                                                                                              \
        "whole_second_dense", whole_second_dense, 0, NULL                                          \
    }

#endif
