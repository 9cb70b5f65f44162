/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/verdict.h"

const char *const verdict_names[VERDICT_COUNT + 1] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_IMPROVEMENT] = "improvement",
    [VERDICT_REGRESSION] = "regression",
    [VERDICT_WRONG] = "wrong",
    [VERDICT_NO_VERDICT] = "no-verdict",
    [VERDICT_ENVIRONMENT] = "environment",
};

/* A wrong result beats everything; see the exit codes in base/error.h. */
static const enum verdict precedence[] = {VERDICT_WRONG, VERDICT_REGRESSION, VERDICT_ENVIRONMENT,
                                          VERDICT_NO_VERDICT};
static const int exit_codes[VERDICT_COUNT] = {[VERDICT_REGRESSION] = 1,
                                              [VERDICT_WRONG] = 2,
                                              [VERDICT_NO_VERDICT] = 3,
                                              [VERDICT_ENVIRONMENT] = 4};

const char *verdict_name(enum verdict v)
{
    return (unsigned)v < VERDICT_COUNT ? verdict_names[v] : "";
}

enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i]])
            return precedence[i];
    return VERDICT_PASS;
}

int verdict_exit_code(const size_t counts[VERDICT_COUNT])
{
    return exit_codes[verdict_of_run(counts)];
}
