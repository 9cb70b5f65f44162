/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h: one table of the environment variables that the gate reads, except those that CI
 * systems set in a job (gate/ci/ci.c).
 */
#ifndef GATE_BASE_ENVIRONMENT_H
#define GATE_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct environment_variable {
    const char *name, *what;
    bool is_secret; /* its value is never printed */
};

/* Ends with a NULL name. */
extern const struct environment_variable environment_variables[];

/* The value of a variable of the table; NULL when it is not set, or empty. */
const char *environment_get(const char *name);

#endif
