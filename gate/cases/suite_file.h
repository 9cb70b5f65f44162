/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_file.h: a suite's file and its cases, as gate/formats/suite.schema.json publishes them.
 * Members have the names of their keys; NAN: the key is missing. Which other keys
 * there are is up to the op.
 */
#ifndef GATE_CASES_SUITE_FILE_H
#define GATE_CASES_SUITE_FILE_H

#include <stdint.h>

#include "gate/document/fields.h"

/* Literal values of a tensor. */
struct case_values {
    const char *tensor;
    double *values;
    size_t n_values;
};

struct case_file {
    const char *op, *dtype;
    double threshold;
    struct case_values *inputs, *expect;
    size_t n_inputs, n_expect;
    struct field_other *settings; /* sizes, parameters and flags of the op */
    size_t n_settings;
};

struct suite_file {
    const char *schema, *name, *description;
    const char **ops; /* files of ops of the user's, as seen from the suite's folder */
    size_t n_ops;
    struct case_file *cases;
    size_t n_cases;
};

extern const struct shape case_file, suite_file;

#endif
