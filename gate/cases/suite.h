/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h: a list of cases, read from a JSON file by gate/formats/suite.schema.json.
 */
#ifndef GATE_CASES_SUITE_H
#define GATE_CASES_SUITE_H

#include <stddef.h>

#include "gate/cases/op_file.h"
#include "gate/cases/problem.h"

/* ---- the file: members have the names of their keys ---- */

/* clang-format off */
/* Literal values of a tensor. */
#define CASE_VALUES(F) \
    F(NUMBERS_TO, values, 0, 1, VALUES_MAX, VALUE_MAX)

#define CASE_FILE(F) \
    F(FORMED, op, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(FORMED, dtype, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(FRACTION, threshold) \
    F(MAP, inputs, 0, case_values) \
    F(MAP, expect, 0, case_values) \
    F(OTHERS, settings) /* sizes, parameters and flags of the op */

#define SUITE_FILE(F) \
    F(CHOICE, schema, REQUIRED, schemas) \
    F(FORMED, name, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(TEXT, description, 0, TEXT_MAX) \
    /* files of ops of the user's, as seen from the suite's folder */ \
    F(TEXTS, ops, 0, OPS_OWN_MAX, REASON_MAX) \
    F(LIST, cases, REQUIRED, 1, 10000, case_file)

struct case_values { const char *tensor; CASE_VALUES(FIELD_MEMBER) };
struct case_file { CASE_FILE(FIELD_MEMBER) };
struct suite_file { SUITE_FILE(FIELD_MEMBER) };
/* clang-format on */

extern const struct shape case_file_shape, suite_file_shape;

/* ---- what it says ---- */

struct suite_case {
    char id[PROBLEM_ID_MAX];
    struct kg_problem problem;
    double threshold;             /* 0: the run's */
    const struct case_file *file; /* NULL: of no file, without literals */
};

struct suite {
    struct fields_taken taken; /* the texts of the file */
    struct suite_file file;
    struct suite_case *cases;
    size_t n_cases;
};

/*
 * Reads a file, and the ops that it names. Not readable: GATE_IO. Not JSON, an unknown key, a
 * duplicate case, an impossible size: GATE_USAGE with "FILE:LINE:COLUMN: ...". The suite is the
 * caller's (suite_free).
 */
enum gate_status suite_load(const char *path, struct suite *out, struct gate_error *err);

/* The same of a copy whose ops are those that the suite at `place` would name. */
enum gate_status suite_load_copy(const char *path, const char *place, struct suite *out,
                                 struct gate_error *err);
void suite_free(struct suite *s);

/*
 * Reads one case (of a suite or of a worker's task), which stays the caller's: problem and
 * literals. False, with the fault relative to the case: sizes that cannot be (a KV head count that
 * does not divide the heads, a tensor over 2^40 elements, a key of another op), or literals that
 * are not those of a tensor.
 */
bool suite_case_read(const struct case_file *file, struct suite_case *out,
                     struct field_fault *fault);

/* Literal values of an input of a case, or those that are expected of an output; NULL: none. */
const struct case_values *suite_case_values(const struct suite_case *c, bool is_output,
                                            const char *name);

/* Keeps the cases whose id matches the shell pattern; returns how many are left. */
size_t suite_filter(struct suite *s, const char *pattern);

#endif
