/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameters.h: named values that a library is built with, and all combinations of them.
 */
#ifndef GATE_SEARCH_PARAMETERS_H
#define GATE_SEARCH_PARAMETERS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"

#define PARAMETERS_MAX 7
#define PARAMETER_VALUES_MAX 64
#define PARAMETER_CHARACTERS_MAX 40
#define COMBINATIONS_MAX 1024
#define COMBINATION_TEXT_MAX 640 /* "TILE=64 STAGES=3" and a NUL */

struct parameter {
    char name[PARAMETER_CHARACTERS_MAX + 1];
    char value[PARAMETER_VALUES_MAX][PARAMETER_CHARACTERS_MAX + 1];
    size_t n;
};

struct parameters {
    struct parameter list[PARAMETERS_MAX];
    size_t n;
};

/* A name is a capital letter with capitals, digits and '_' behind it; a value has letters, digits,
 * '.', '+', '-' and '_'. Takes "TILE=32,64,128" or "STAGES=2..6". GATE_USAGE: anything else, or a
 * name that comes twice. */
enum gate_status parameters_add(struct parameters *p, const char *text, struct gate_error *err);

/* How many combinations there are; COMBINATIONS_MAX + 1: more. */
size_t parameters_combinations(const struct parameters *p);

/* Which value of each combination i has. */
void parameters_combination(const struct parameters *p, size_t i, size_t choice[PARAMETERS_MAX]);

/* Of {"TILE": 64, "STAGES": "3"}: each parameter and no other, each with a value that it may have.
 */
bool parameters_read(const struct parameters *p, const cJSON *object,
                     size_t choice[PARAMETERS_MAX]);

void parameters_text(const struct parameters *p, const size_t choice[PARAMETERS_MAX],
                     char out[COMBINATION_TEXT_MAX]);

/* Puts them into this process's environment. */
void parameters_export(const struct parameters *p, const size_t choice[PARAMETERS_MAX]);

#endif
