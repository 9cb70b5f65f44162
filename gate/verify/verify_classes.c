/* SPDX-License-Identifier: Apache-2.0 */
/* verify_classes.c: see verify_shapes.h. */
#include "gate/verify/verify_shapes.h"

#include <stddef.h>
#include <stdint.h>

#include "gate/cases/problem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Of a length: what it leaves modulo each of these, 0, 1, all but 1, half or something else, if it
 * is no shorter; and how many tiles of 32 it has. */
static const int64_t moduli[] = {8, 16, 32, 64, 128, 256, 512};
#define REST_CLASSES 6
static const int64_t size_ends[] = {2,   17,  33,  65,  97,  129,  161,      193,
                                    225, 257, 289, 385, 513, 1025, INT64_MAX};
#define LENGTH_CLASSES (COUNT(moduli) * REST_CLASSES + COUNT(size_ends))

#define FEATURES_MAX 64 /* of a shape */
#define PARAM_CLASSES 5
#define RELATIONS 3
#define ALONE 15 /* pairs that a class is worth which no shape had before */

/* The classes of a shape, each with the dimension that it is of. */
struct classes {
    unsigned n, end; /* `end`: one more than the last class there could be */
    struct {
        unsigned char dimension, class;
    } of[FEATURES_MAX];
};

static void add_class(struct classes *c, unsigned dimension, size_t class)
{
    c->of[c->n].dimension = (unsigned char)dimension;
    c->of[c->n++].class = (unsigned char)(c->end + class);
}

static void add_length(struct classes *c, unsigned dimension, int64_t length)
{
    size_t size = 0;
    for (size_t i = 0; i < COUNT(moduli); i++) {
        const int64_t modulus = moduli[i], rest = length % modulus;
        add_class(c, dimension,
                  i * REST_CLASSES + (length < modulus      ? 5
                                      : rest == 0           ? 0
                                      : rest == 1           ? 1
                                      : rest == modulus - 1 ? 2
                                      : rest == modulus / 2 ? 3
                                                            : 4));
    }
    while (length >= size_ends[size])
        size++;
    add_class(c, dimension, COUNT(moduli) * REST_CLASSES + size);
    c->end += (unsigned)LENGTH_CLASSES;
}

/* Up to 8 each is one, and so is what is left up to each power of two from there on. */
#define COUNT_CLASSES(most) ((most) <= 8 ? (most) : 8 + (unsigned)__builtin_ctz((most) / 8))

static void add_count(struct classes *c, unsigned dimension, int64_t count, unsigned most)
{
    const int64_t n = count < most ? count : most;
    add_class(c, dimension, n <= 8 ? (size_t)n - 1 : 68 - (size_t)__builtin_clzll((uint64_t)n - 1));
    c->end += COUNT_CLASSES(most);
}

static struct classes classes_of(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    struct classes c = {0};
    unsigned dimension = 0;
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *s = &op->sizes[i];
        int64_t size = op_size(p, s);
        if (s->kind == OP_LENGTH)
            add_length(&c, dimension++, size);
        else if (s->kind == OP_COUNT)
            add_count(&c, dimension++, s->multiple_of ? size / op_length(p, s->multiple_of) : size,
                      s->classes);
    }
    for (unsigned i = 1; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_LENGTH && op->sizes[i - 1].kind == OP_LENGTH) {
            const int64_t one = op_size(p, &op->sizes[i - 1]), other = op_size(p, &op->sizes[i]);
            add_class(&c, dimension++, one < other ? 0 : one == other ? 1 : 2);
            c.end += RELATIONS;
        }
    if (op->flag)
        add_count(&c, dimension++, p->flags & op->flag->bit ? 2 : 1, 2);
    if (op->param) { /* below 0, 0, or less, more than or as much as is usual */
        const double ratio = op_param(p, op->param) / op->param->usual(p);
        add_count(&c, dimension++,
                  ratio < 0    ? 1
                  : ratio == 0 ? 5
                  : ratio < 1  ? 2
                  : ratio > 1  ? 3
                               : 4,
                  PARAM_CLASSES);
    }
    add_class(&c, dimension, problem_dtype_index(p));
    return c;
}

unsigned classes_new_pairs(struct meetings *all, const struct kg_problem *p, bool note)
{
    struct classes c = classes_of(p);
    unsigned n = 0;
    for (unsigned i = 0; i < c.n; i++)
        for (unsigned j = 0; j <= i; j++) {
            bool *met = &all->met[c.of[i].class][c.of[j].class];
            if ((i != j && c.of[i].dimension == c.of[j].dimension) || *met)
                continue;
            n += i == j ? ALONE : 1;
            *met = note;
        }
    return n;
}

unsigned classes_all_pairs(const struct kg_problem *p, unsigned n_dtypes)
{
    const struct op *op = op_of(p);
    unsigned of[2 * OP_SIZES_MAX + 3], dimensions = 0, n = 0;
    of[dimensions++] = n_dtypes;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind != OP_GIVEN)
            of[dimensions++] = op->sizes[i].kind == OP_LENGTH ? LENGTH_CLASSES
                                                              : COUNT_CLASSES(op->sizes[i].classes);
    for (unsigned i = 1; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_LENGTH && op->sizes[i - 1].kind == OP_LENGTH)
            of[dimensions++] = RELATIONS;
    if (op->flag)
        of[dimensions++] = 2;
    if (op->param)
        of[dimensions++] = PARAM_CLASSES;
    for (size_t i = 0; i < dimensions; i++)
        for (size_t j = 0; j < i; j++)
            n += of[i] * of[j];
    return n;
}
