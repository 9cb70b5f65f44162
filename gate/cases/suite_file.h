/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_file.h: a suite's file and its cases, as gate/formats/suite.schema.json publishes them.
 * Members have the names of their keys; -1, NAN and UNKNOWN: the key is missing.
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
    int64_t m, n, k, b, h, kv_heads, s, sq, d;
    enum yes_no causal;
    double scale, threshold;
    struct case_values *inputs, *expect;
    size_t n_inputs, n_expect;
};

struct suite_file {
    const char *schema, *name, *description;
    struct case_file *cases;
    size_t n_cases;
};

extern const struct shape case_file, suite_file;

#endif
