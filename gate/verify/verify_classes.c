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
#define ALONE 15        /* pairs that a class is worth which no shape had before */

/* The classes of a shape, each with the dimension that it is of. */
struct classes {
    unsigned n, end; /* `end`: one more than the last class there could be */
    unsigned dimensions, counts[2 * OP_SIZES_MAX + 2]; /* of the classes of each but the dtype */
    struct {
        unsigned char dimension, class;
    } of[FEATURES_MAX];
};

/* To the dimension in hand. */
static void add_class(struct classes *c, size_t class)
{
    c->of[c->n].dimension = (unsigned char)c->dimensions;
    c->of[c->n++].class = (unsigned char)(c->end + class);
}

static void end_dimension(struct classes *c, size_t classes)
{
    c->counts[c->dimensions++] = (unsigned)classes;
    c->end += (unsigned)classes;
}

static void add_length(struct classes *c, int64_t length)
{
    size_t size = 0;
    for (size_t i = 0; i < COUNT(moduli); i++) {
        const int64_t modulus = moduli[i], rest = length % modulus;
        add_class(c, i * REST_CLASSES + (length < modulus      ? 5
                                         : rest == 0           ? 0
                                         : rest == 1           ? 1
                                         : rest == modulus - 1 ? 2
                                         : rest == modulus / 2 ? 3
                                                               : 4));
    }
    while (length >= size_ends[size])
        size++;
    add_class(c, COUNT(moduli) * REST_CLASSES + size);
    end_dimension(c, LENGTH_CLASSES);
}

/* Up to 8 each is a class, and so is what is left up to each power of two from there on. */
static void add_count(struct classes *c, int64_t count, unsigned most)
{
    const int64_t n = count < most ? count : most;
    add_class(c, n <= 8 ? (size_t)n - 1 : 68 - (size_t)__builtin_clzll((uint64_t)n - 1));
    end_dimension(c, most <= 8 ? most : 8 + (size_t)__builtin_ctz(most / 8));
}

static struct classes classes_of(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    struct classes c = {0};
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *s = &op->sizes[i];
        int64_t size = op_size(p, s);
        if (s->kind == OP_LENGTH)
            add_length(&c, size);
        else if (s->kind == OP_COUNT)
            add_count(&c, s->multiple_of ? size / op_length(p, s->multiple_of) : size, s->classes);
    }
    for (unsigned i = 1; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_LENGTH && op->sizes[i - 1].kind == OP_LENGTH) {
            const int64_t one = op_size(p, &op->sizes[i - 1]), other = op_size(p, &op->sizes[i]);
            add_count(&c, one < other ? 1 : one == other ? 2 : 3, 3);
        }
    if (op->flag)
        add_count(&c, p->flags & op->flag->bit ? 2 : 1, 2);
    if (op->param) { /* below 0, 0, or less, more than or as much as is usual */
        const double ratio = op_param(p, op->param) / op->param->usual(p);
        add_count(&c, ratio < 0 ? 1 : ratio == 0 ? 5 : ratio < 1 ? 2 : ratio > 1 ? 3 : 4, 5);
    }
    add_class(&c, problem_dtype_index(p));
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
    const struct classes c = classes_of(p);
    unsigned n = 0;
    for (unsigned i = 0; i <= c.dimensions; i++)
        for (unsigned j = 0; j < i; j++)
            n += (i == c.dimensions ? n_dtypes : c.counts[i]) * c.counts[j];
    return n;
}
