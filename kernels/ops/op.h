/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h: an op as data: all that the gate knows of what a kernel computes.
 *
 * Each op is one file of this folder and one line in op.c. Suites, ids, operands, input patterns,
 * shapes, layouts, comparison and documents read its tables; nothing outside of this folder asks
 * which op it is. An axis is one letter, which names a size of the op; tensors are strings of axes.
 * A capital letter stands for the blocks of OP_BLOCK that the axis of its small letter has, the
 * last one cut short if need be, and '1' for an axis of one element.
 *
 *     static const struct op_size sizes[] = {
 *         OP_SIZE(0, m, 'm'), OP_SIZE(1, n, 'n'), OP_SIZE(2, k, 'k')};
 *     static const struct op_tensor tensors[] = {
 *         {"a", "mk", OP_FACTOR}, {"b", "kn", OP_FACTOR}, {"c", "mn", OP_OUT, .whole = "k"}};
 */
#ifndef KG_OPS_OP_H
#define KG_OPS_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OP_SIZES_MAX KG_MAX_SIZES
#define OP_TENSORS_MAX KG_MAX_TENSORS /* inputs and outputs together */

#define OP_BLOCK 128 /* elements along an axis that have one scale */

/* Sizes past these are refused, so that products of a few of them fit in 63 bits. */
#define OP_SIZE_MAX ((int64_t)1 << 30)
#define OP_ELEMENTS_MAX ((int64_t)1 << 40)

enum op_size_kind {
    OP_LENGTH, /* any value; kernels cut it into tiles */
    OP_COUNT,  /* repetitions, such as batches and heads */
    OP_GIVEN,  /* kernels are made for a few values, such as the dimension of a head */
};

struct op_size {
    const char *key; /* in a suite, and in struct kg_problem */
    const char *id;  /* in an id */
    char axis;
    enum op_size_kind kind;
    unsigned at; /* in the problem's sizes: its place in the op's */
    char usual;  /* a suite may leave it out: then it is the size of this axis; 0: it may not */
    char multiple_of; /* it is a multiple of the size of this axis, which counts groups of it; 0 */
    bool one_stays;   /* where it is 1, it is 1 in the shapes that verification adds too */
    unsigned classes; /* of a count: values, or members of a group, that are told apart */
    int64_t few;      /* enough of it to show a fault; 0: the problem's own */
    const int64_t
        *values; /* of OP_GIVEN: other values that are tried, from both ends; 0 ends them */
};

/* A length at a place. */
#define OP_SIZE(place, name, letter)                                                               \
    {                                                                                              \
        .key = #name, .id = #name, .axis = (letter), .at = (place), .few = 8                       \
    }

/* A real number that a suite may set. */
struct op_param {
    const char *key;
    unsigned at; /* in the problem's parameters */
    double least, most;
    double (*usual)(const struct kg_problem *p);
};

/* A yes or no that a suite may set, and how an id says it. */
struct op_flag {
    const char *key;
    uint32_t bit; /* enum kg_flag */
    const char *yes, *no;
};

enum op_role {
    OP_FACTOR,  /* an input that is multiplied */
    OP_ADDEND,  /* an input that is added to each sum: not a factor */
    OP_SCALE,   /* an input that multiplies a factor: one number for many of its elements */
    OP_INPUT,   /* another input */
    OP_INDICES, /* an input that fill() draws: which elements of the others meet */
    OP_INOUT,   /* an input that the output of its name updates in place */
    OP_OUT,
};

struct op_tensor {
    const char *name; /* in kernel.h, in lower case */
    const char *axes;
    enum op_role role;
    const char *whole; /* of an output: an element depends on all of these axes, and of the others
                          on its own place alone; of indices: they are places in this axis */
};

/* A shape, in the order of the op's sizes. 0: as the problem has it. OP_OWN + n: the problem's own,
 * as far as that can be looked at closely, plus n. */
#define OP_OWN ((int64_t)1 << 40)

enum op_scale { OP_SCALE_OWN, OP_SCALE_0, OP_SCALE_1, OP_SCALE_2 };

struct op_shape {
    int64_t size[OP_SIZES_MAX];
    enum op_scale scale; /* the parameter */
};

struct op_shapes {
    const struct op_shape *shapes;
    unsigned n;
};

/* Of random numbers. */
struct op_spread {
    double mean, deviation;
};

struct op_pattern;
struct probing;
struct own_op;
struct drawing;
struct dtype;

struct op {
    const char *name;
    const struct op_size *sizes; /* LENGTHs in the order of their importance */
    unsigned n_sizes;
    const struct op_param *param;    /* NULL: none */
    const struct op_flag *flag;      /* NULL: none */
    const struct op_tensor *tensors; /* inputs first */
    unsigned n_tensors;
    const char *id;     /* axes in the order in which an id has their sizes */
    bool multilinear;   /* outputs are sums of products of the factors over `whole`: random inputs
                           have results of a known size, and integers exact ones */
    uint32_t only;      /* the dtype of its cases; 0: fp16, bf16, fp32 and TF32 */
    bool rounds_inside; /* a kernel may round what is not its result to the dtype, so that the
                           errors of a row are alike */
    double (*flops)(const struct kg_problem *p);
    double (*bytes)(const struct kg_problem *p); /* that are moved; NULL: those of all tensors */
    double (*cost)(const struct kg_problem *p);  /* of the reference, in FLOP; NULL: flops */
    char cut; /* the axis that is shortened where the reference would take too long; 0: none */

    /* Changes places in the op's axes, drawn one by one, to such as meet; NULL: all do. */
    void (*meet)(const struct kg_problem *p, const struct kg_tensor *in, int64_t *place);

    const struct op_pattern *patterns; /* inputs of verification, see pattern.h */
    unsigned n_patterns;
    unsigned sharpest; /* enum probe: which sees most */
    /* Changes one element of one input, so that the results are others. */
    void (*change)(const struct probing *x);
    bool (*inputs_count)(const struct kg_problem *p); /* all elements; NULL: always */

    /* Of the random elements of an input; NULL: 0 and 1. */
    struct op_spread (*spread)(const struct kg_problem *p, unsigned tensor);
    /* Values of OP_SCALE; `exact`: that leave exact what is. */
    double (*scale)(const struct drawing *d, int64_t flat, bool exact);
    double (*limit)(const struct kg_problem *p); /* of the error; NULL, or 0: that of the dtype */
    uint32_t fixed[OP_TENSORS_MAX]; /* dtype of a tensor whatever the case's is; 0: the case's */

    /* Shapes of its own; without them they are made from the kinds of its sizes. */
    struct op_shapes closest, giant, tails, wide;
    void (*draw)(uint64_t *state, const struct kg_problem *own, struct kg_problem *p);

    /* Fills `count` elements, of which the view is part, or none, with values that an input may
     * have; false: any normal numbers are such values. With the id of a case those that are
     * timed: how much work there is follows from the id. NULL: false for all inputs. */
    bool (*fill)(const struct kg_problem *p, unsigned tensor, const struct kg_tensor *to,
                 int64_t count, const char *id, uint64_t seed);
    int64_t (*length)(const struct kg_problem *p, char axis); /* of a capital letter, which is no
                                          blocks then; NULL: it has none */

    /* All outputs in double, dense, from the stored inputs; see rows_reference(). */
    enum kg_status (*reference)(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads);
    /* One element of an output by the formula, on a path of its own. */
    double (*element)(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                      int64_t flat);

    /* Of an op of a user's, which has neither of the two before: */
    const struct own_op *own;          /* what its file says; NULL: it is built in */
    const char *sha256;                /* of its file and its reference; NULL: not known */
    bool needs_others;                 /* the reference needs libraries that this does not tell */
    bool reference_apart;              /* a process of its own computes the reference, on the host
                                          whatever the device is (gate/verify/verify_reference.h) */
    const char *not_declared;          /* checks that the file leaves out; NULL: none */
    bool (*fit)(struct kg_problem *p); /* takes the nearest sizes that it allows; false: none */
    const struct dtype *rows; /* its variants, in place of the dtypes of dtype.h; NULL: none */
    unsigned n_rows;
    const uint32_t (*row_dtypes)[OP_TENSORS_MAX]; /* of all tensors in each variant */
};

/* From now on these are ops too, which live as long as they are in use; none may have the name of
 * another op. n is 0: only the built-in ones are. */
#define OPS_OWN_MAX 16
void op_use(const struct op *const *own, size_t n);

/* The built-in ops, and then the user's; NULL: there is none, or not so many. */
const struct op *op_of(const struct kg_problem *p);
const struct op *op_by_name(const char *name);
const struct op *op_at(size_t i);

/* A problem of the op without sizes, with all tensors of one dtype, but for those of a fixed one.
 */
struct kg_problem op_problem(const struct op *op, uint32_t dtype, uint32_t flags);
void op_set_dtype(struct kg_problem *p, uint32_t dtype);

/* What a case of the op may name as its dtype: variants, or all of dtype.h; and the one of that
 * name, NULL: there is none. */
const struct dtype *op_rows(const struct op *op, unsigned *n);
const struct dtype *op_row_by_name(const struct op *op, const char *name);
void op_set_row(struct kg_problem *p, const struct dtype *row);

/* The dtype of the tensors that are of no fixed one; 0: they differ. */
uint32_t op_dtype(const struct kg_problem *p);

/* Changes the sizes to the nearest ones that the op allows; false: there are none. */
static inline bool op_fit(const struct op *op, struct kg_problem *p)
{
    return !op->fit || op->fit(p);
}

/* Does the op have cases in the dtype, and does it allow the sizes? Only a user's op asks for more
 * of these than op.h does. */
bool op_has_dtype(const struct op *op, const struct dtype *dtype);
bool op_allows(const struct kg_problem *p);

static inline int64_t op_size(const struct kg_problem *p, const struct op_size *s)
{
    return p->size[s->at].value;
}

static inline void op_set_size(struct kg_problem *p, const struct op_size *s, int64_t value)
{
    p->size[s->at].value = value;
}

static inline double op_param(const struct kg_problem *p, const struct op_param *param)
{
    return p->param[param->at].value;
}

static inline void op_set_param(struct kg_problem *p, const struct op_param *param, double value)
{
    p->param[param->at].value = value;
}

/* The size of an axis, or of what its blocks cut; NULL: the op has none such. */
const struct op_size *op_axis(const struct op *op, char axis);
int64_t op_length(const struct kg_problem *p, char axis); /* in elements, or blocks */

/* The small letter of an axis; '1': there is none. */
static inline char op_letter(char axis)
{
    return (char)(axis >= 'A' && axis <= 'Z' ? axis - 'A' + 'a' : axis);
}

struct kg_shape {
    uint32_t rank;
    int64_t size[KG_MAX_RANK];
};

struct kg_shape op_shape_of(const struct kg_problem *p, unsigned tensor);

/* Elements of a shape; -1 when a size is outside of [1, OP_SIZE_MAX] or the product too large. */
int64_t kg_shape_elements(const struct kg_shape *shape);

unsigned op_inputs(const struct op *op);

/* Of an output that is updated in place: 1 + the input that it begins as; else 0. */
unsigned op_begins(const struct op *op, unsigned tensor);

/* Terms of an element of output tensor i, and the most that an output has; 0: it is no sum. */
int64_t op_terms(const struct kg_problem *p, unsigned i);
int64_t op_longest_sum(const struct kg_problem *p);

/* Not: a struct too short, an unknown op or dtype, tensors of several dtypes, flags that do not
 * apply, a size out of range or not the multiple that it must be, a parameter that is not finite.
 */
bool op_is_problem(const struct kg_problem *p);

#ifdef __cplusplus
}
#endif

#endif
