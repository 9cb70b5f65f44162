/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_file.h: an op of a user's, read from a file by gate/formats/op.schema.json; and the structs of
 * that file and of a suite's. Members have the names of their keys; NAN, -1, NULL and UNKNOWN: the
 * key is missing.
 *
 * docs/ops.md says what the keys mean. The op has no function of its own but a reference: a kernel
 * library, which gate/verify/verify_reference.h runs.
 */
#ifndef GATE_CASES_OP_FILE_H
#define GATE_CASES_OP_FILE_H

#include "kernels/ops/dtype.h"
#include "kernels/ops/op.h"
#include "gate/base/error.h"
#include "gate/base/expression.h"
#include "gate/base/paths.h"
#include "gate/document/fields.h"

/* ---- the file ---- */

/* Values that an input may have, in the order of their names in the file. */
enum own_fill {
    FILL_NORMAL,
    FILL_ANY,
    FILL_UNIFORM,
    FILL_INTEGERS,
    FILL_POSITIVE,
    FILL_CONSTANT,
    FILL_QUANTISED,
    FILL_SCALES,
    FILL_PERMUTATION,
    FILL_OFFSETS,
    FILL_TABLE,
    FILL_MASK,
};

extern const char *const own_fill_names[];

/* Do the elements of a row have to fit each other? */
static inline bool own_fill_is_arranged(enum own_fill fill)
{
    return fill >= FILL_PERMUTATION;
}

enum op_file_role { FILE_IN, FILE_INOUT, FILE_OUT };

/* clang-format off */
#define OP_FILE_SIZE(F) \
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX) \
    F(WORD, kind, REQUIRED, kinds) /* enum op_size_kind */ \
    F(COUNT_FROM, least, 0, 1, (double)OP_SIZE_MAX) \
    F(COUNT_FROM, most, 0, 1, (double)OP_SIZE_MAX) \
    F(NUMBERS_TO, values, 0, 0, 16, (double)OP_SIZE_MAX)

#define OP_FILE_PARAMETER(F) \
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX) \
    F(ANY, usual, REQUIRED) \
    F(ANY, least, REQUIRED) \
    F(ANY, most, REQUIRED)

#define OP_FILE_FLAG(F) \
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX) \
    F(FORMED, yes, REQUIRED, FORM_NAME, KEY_MAX) \
    F(FORMED, no, REQUIRED, FORM_NAME, KEY_MAX)

#define OP_FILE_TENSOR(F) \
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX) \
    F(WORD, role, REQUIRED, roles) /* enum op_file_role */ \
    F(TEXTS, axes, REQUIRED, KG_MAX_RANK, AXIS_MAX) \
    F(FORMED, dtype, 0, FORM_NAME, KEY_MAX) /* NULL: the case's */ \
    F(TEXTS, whole, 0, OP_SIZES_MAX, KEY_MAX) \
    F(WORD, fill, 0, own_fill_names) \
    F(ANY, least, 0) \
    F(ANY, most, 0) \
    F(ANY, value, 0) \
    F(WORDS, end, 0, EXPRESSION_MAX) \
    F(YES_NO, nan) /* may it have NaN? */

#define OP_FILE_DTYPE(F) \
    F(FORMED, dtype, REQUIRED, FORM_NAME, KEY_MAX)

#define OP_FILE_VARIANT(F) \
    F(MAP, dtypes, REQUIRED, op_file_dtype) /* of all tensors that have none of their own */

#define OP_FILE_LIMIT(F) \
    F(NUMBER, limit, ABOVE, 0, 1)

#define OP_FILE(F) \
    F(CHOICE, schema, REQUIRED, schemas) \
    F(FORMED, name, REQUIRED, FORM_NAME, OP_NAME_MAX) \
    F(TEXT, description, 0, TEXT_MAX) \
    F(WORDS, reference, REQUIRED, REASON_MAX) \
    F(WORDS, second_reference, 0, REASON_MAX) \
    F(LIST, sizes, REQUIRED, 1, OP_SIZES_MAX, op_file_size) \
    F(TEXTS, constraints, 0, OWN_CONSTRAINTS_MAX, EXPRESSION_MAX) \
    F(MAYBE, parameter, 0, op_file_parameter) \
    F(MAYBE, flag, 0, op_file_flag) \
    F(LIST, tensors, REQUIRED, 2, OP_TENSORS_MAX, op_file_tensor) \
    F(WORDS, flops, REQUIRED, EXPRESSION_MAX) \
    F(TEXTS, id, 0, OP_SIZES_MAX, KEY_MAX) \
    F(YES_NO, multilinear) \
    F(MAP, variants, 0, op_file_variant) \
    F(MAP, error_limits, 0, op_file_limit)

struct op_file_size { OP_FILE_SIZE(FIELD_MEMBER) };
struct op_file_parameter { OP_FILE_PARAMETER(FIELD_MEMBER) };
struct op_file_flag { OP_FILE_FLAG(FIELD_MEMBER) };
struct op_file_tensor { OP_FILE_TENSOR(FIELD_MEMBER) };
struct op_file_dtype { const char *tensor; OP_FILE_DTYPE(FIELD_MEMBER) };
struct op_file_variant { const char *name; OP_FILE_VARIANT(FIELD_MEMBER) };
struct op_file_limit {
    const char *dtype; /* of a case */
    OP_FILE_LIMIT(FIELD_MEMBER)
};
struct op_file { OP_FILE(FIELD_MEMBER) };
/* clang-format on */

extern const struct shape op_file_shape;

/* ---- the op ---- */

#define OWN_CONSTRAINTS_MAX 16
#define OWN_AXES_MAX 8 /* that are no sizes */

struct own_range {
    enum own_fill fill;
    double least, most;
};

struct own_op {
    struct op op;
    struct op_file file;
    struct fields_taken taken; /* the texts of the file */
    char path[PATHS_MAX];      /* of the file */
    char reference[PATHS_MAX]; /* of the library, as seen from the current folder; */
    char second[PATHS_MAX];    /* of the second one; "": there is none */
    char sha256[65];           /* of the file and the libraries; "": one cannot be read */
    struct op_size sizes[OP_SIZES_MAX];
    struct op_tensor tensors[OP_TENSORS_MAX];
    struct op_param param;
    struct op_flag flag;
    char axes[OP_TENSORS_MAX][KG_MAX_RANK + 1], whole[OP_TENSORS_MAX][OP_SIZES_MAX + 1];
    char id[OP_SIZES_MAX + 1];
    int64_t *values; /* of the size that is given */
    int64_t least[OP_SIZES_MAX], most[OP_SIZES_MAX], step[OP_SIZES_MAX]; /* a multiple of step */
    struct own_range range[OP_TENSORS_MAX];
    struct dtype rows[DTYPES]; /* variants */
    uint32_t row_dtypes[DTYPES][OP_TENSORS_MAX];
    struct expression constraints[OWN_CONSTRAINTS_MAX], flops;
    struct expression axis[OWN_AXES_MAX], end[OP_TENSORS_MAX];
    const char *axis_text[OWN_AXES_MAX];
    unsigned n_axes;
};

/* GATE_USAGE with "NAME:LINE:COLUMN: ...". The op is the caller's (own_op_free), and no op yet. */
enum gate_status own_op_parse(const char *name, const char *text, size_t len, struct own_op **out,
                              struct gate_error *err);
void own_op_free(struct own_op *own);

/* Reads the file at a path, unless it was read already. It is an op from now on, for as long as the
 * program runs. GATE_IO: it cannot be read. */
enum gate_status own_op_use(const char *path, struct gate_error *err);

/* A path that is as seen from the folder of the file at `path`; false: it is too long. */
bool own_op_beside(const char *path, const char *name, char out[PATHS_MAX]);

/* The n-th that is in use; NULL: there are not so many. */
const struct own_op *own_op_at(size_t n);

/* ---- op_file.c and op_tensors.c, as they read a file ---- */

struct op_reading {
    struct own_op *own;
    struct field_fault fault;
};

/* The place of a size; n_sizes: it is none. */
size_t op_size_named(const struct op_file *f, const char *name);

static inline char op_axis_of(size_t size)
{
    return (char)('a' + size);
}

bool op_read_expression(struct op_reading *r, const char *pointer, const char *text,
                        struct expression *out);

/* The tensors, once sizes are read. */
bool op_read_tensors(struct op_reading *r);

/* ---- own_op.c ---- */

/* Gives the op its functions and patterns, once it has all else. */
void own_op_complete(struct own_op *own);

/* Takes the nearest sizes that are allowed; false: none are found. */
bool own_op_fit_sizes(const struct own_op *own, struct kg_problem *p);

/* Has it an input that says how much work there is, or where? */
bool own_op_has_indices(const struct own_op *own);

struct own_broken {
    const char *what; /* a constraint, another expression, or an input */
    char pointer[40]; /* to it in the file */
    char why[120];    /* "": it is a constraint that does not hold */
};

/* Do the sizes break what the file says, or leave an input without the values that it must have?
 * `own` NULL: of a built-in op, which breaks nothing. */
bool own_op_broken(const struct own_op *own, const struct kg_problem *p, struct own_broken *broken);

/* ---- arrange.c ---- */

int64_t common_divisor(int64_t a, int64_t b);

/* Draws an input whose fill is arranged, below or up to `end`; not `varied`: in the usual way. */
void arrange_fill(enum own_fill fill, const struct kg_tensor *t, int64_t end, bool varied,
                  uint64_t seed);

/* Changes it to another one that is allowed; false: there is none near. */
bool arrange_change(enum own_fill fill, const struct kg_tensor *t, int64_t end, uint64_t seed);

#endif
