/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_reading.h: what the readers of the parts of an op's file share.
 */
#ifndef GATE_CASES_OP_READING_H
#define GATE_CASES_OP_READING_H

#include "gate/cases/op_file.h"

struct reading {
    struct own_op *own;
    struct field_fault fault;
};

/* Always false, for a caller's `return`. */
__attribute__((format(printf, 3, 4))) bool op_refuse(struct reading *r, const char *pointer,
                                                     const char *format, ...);

/* The same in member `key` of element i of a list. */
__attribute__((format(printf, 5, 6))) bool op_refuse_in(struct reading *r, const char *list,
                                                        size_t i, const char *key,
                                                        const char *format, ...);

/* The place of a size; n_sizes: it is none. */
size_t op_size_named(const struct op_file *f, const char *name);

static inline char op_axis_of(size_t size)
{
    return (char)('a' + size);
}

bool op_read_expression(struct reading *r, const char *pointer, const char *text,
                        struct expression *out);

/* The tensors, once sizes are read. */
bool op_read_tensors(struct reading *r);

#endif
