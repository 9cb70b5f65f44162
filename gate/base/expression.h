/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h: whole numbers computed from sizes that have names: "n % 16 == 0", "8 * m * n".
 *
 * Numbers, names of sizes, parentheses, + - * / %, == != < <= > >=, && and ||, where what holds is
 * 1. Division cuts off. Nothing wraps round: what does not fit in 63 bits is an error.
 */
#ifndef GATE_BASE_EXPRESSION_H
#define GATE_BASE_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"

#define EXPRESSION_STEPS 64

enum expression_step_kind { STEP_NUMBER, STEP_SIZE, STEP_OPERATOR };

/* In the order of a stack: operands first. */
struct expression_step {
    enum expression_step_kind kind;
    int64_t value; /* a number, the place of a size, or of an operator */
};

struct expression {
    unsigned n;
    struct expression_step step[EXPRESSION_STEPS];
};

/* GATE_USAGE: "at character 5: ...". */
enum gate_status expression_parse(const char *text, const char *const *sizes, unsigned n_sizes,
                                  struct expression *out, struct gate_error *err);

/* False, with the reason: it overflows, or divides by zero. */
bool expression_value(const struct expression *e, const int64_t *sizes, int64_t *value,
                      const char **why);

/* Is it "SIZE % X == 0", where X is a number above 0 or another size? Then says which. */
bool expression_is_multiple(const struct expression *e, unsigned *size, struct expression_step *of);

#endif
