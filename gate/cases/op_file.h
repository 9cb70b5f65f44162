/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_file.h: an op of a user's, read from a file by gate/formats/op.schema.json.
 *
 * docs/ops.md says what the keys mean. The op has no function of its own but a reference: a kernel
 * library, which gate/verify/verify_reference.h runs.
 */
#ifndef GATE_CASES_OP_FILE_H
#define GATE_CASES_OP_FILE_H

#include <cjson/cJSON.h>

#include "kernels/ops/op.h"
#include "gate/base/error.h"
#include "gate/base/expression.h"
#include "gate/base/paths.h"
#include "gate/document/fields.h"

/* ---- the file; members have the names of their keys ---- */

struct op_file_size {
    const char *name;
    int kind; /* enum op_size_kind */
    int64_t least, most;
    double *values;
    size_t n_values;
};

struct op_file_parameter {
    const char *name;
    double usual, least, most;
};

struct op_file_flag {
    const char *name, *yes, *no;
};

/* Values that an input may have, in the order of their names in the file. */
enum own_fill { FILL_NORMAL, FILL_ANY, FILL_UNIFORM, FILL_INTEGERS, FILL_POSITIVE, FILL_CONSTANT };

enum op_file_role { FILE_IN, FILE_INOUT, FILE_OUT };

struct op_file_tensor {
    const char *name, *dtype; /* dtype: NULL: the case's */
    int role;                 /* enum op_file_role */
    const char **axes, **whole;
    size_t n_axes, n_whole;
    int fill;
    double least, most, value;
};

struct op_file_limits {
    double fp16, bf16, fp32, tf32;
};

struct op_file {
    const char *schema, *name, *description, *reference, *flops;
    struct op_file_size *sizes;
    size_t n_sizes;
    const char **constraints, **id;
    size_t n_constraints, n_id;
    struct op_file_parameter parameter;
    struct op_file_flag flag;
    bool has_parameter, has_flag, has_error_limits;
    struct op_file_tensor *tensors;
    size_t n_tensors;
    enum yes_no multilinear;
    struct op_file_limits error_limits;
};

extern const struct shape op_file;

/* ---- the op ---- */

#define OWN_CONSTRAINTS_MAX 16

struct own_range {
    enum own_fill fill;
    double least, most;
};

struct own_op {
    struct op op;
    struct op_file file;
    struct fields_taken taken; /* the texts of the file */
    char path[PATHS_MAX];      /* of the file */
    char reference[PATHS_MAX]; /* of the library, as seen from the current folder */
    char sha256[65];           /* of the file and the library; "": that cannot be read */
    struct op_size sizes[OP_SIZES_MAX];
    struct op_tensor tensors[OP_TENSORS_MAX];
    struct op_param param;
    struct op_flag flag;
    char axes[OP_TENSORS_MAX][KG_MAX_RANK + 1], whole[OP_TENSORS_MAX][OP_SIZES_MAX + 1];
    char id[OP_SIZES_MAX + 1];
    int64_t *values; /* of the size that is given */
    int64_t least[OP_SIZES_MAX], most[OP_SIZES_MAX], step[OP_SIZES_MAX]; /* a multiple of step */
    struct own_range range[OP_TENSORS_MAX];
    struct expression constraints[OWN_CONSTRAINTS_MAX], flops;
};

/* GATE_USAGE with "NAME:LINE:COLUMN: ...". The op is the caller's (own_op_free), and no op yet. */
enum gate_status own_op_parse(const char *name, const char *text, size_t len, struct own_op **out,
                              struct gate_error *err);
void own_op_free(struct own_op *own);

/* Reads the file at a path, unless it was read already. It is an op from now on, for as long as the
 * program runs. GATE_IO: it cannot be read. */
enum gate_status own_op_use(const char *path, struct gate_error *err);

/* The n-th that is in use; NULL: there are not so many. */
const struct own_op *own_op_at(size_t n);

/* ---- own_op.c ---- */

/* Gives the op its functions and patterns, once it has all else. */
void own_op_complete(struct own_op *own);

/* Takes the nearest sizes that are allowed; false: none are found. */
bool own_op_fit_sizes(const struct own_op *own, struct kg_problem *p);

/* Which constraint do the sizes break? NULL: none; *why: it is no matter of the sizes but has no
 * value. */
const char *own_op_broken(const struct own_op *own, const struct kg_problem *p, const char **why);

#endif
