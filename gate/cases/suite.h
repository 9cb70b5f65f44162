/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h: a list of cases, read from a JSON file by gate/formats/suite.schema.json.
 */
#ifndef GATE_CASES_SUITE_H
#define GATE_CASES_SUITE_H

#include <stddef.h>

#include "gate/cases/op_file.h"
#include "gate/cases/problem.h"

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
