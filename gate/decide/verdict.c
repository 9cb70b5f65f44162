/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/verdict.h"

#include <string.h>

const char *const verdict_names[VERDICT_COUNT + 1] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_IMPROVEMENT] = "improvement",
    [VERDICT_REGRESSION] = "regression",
    [VERDICT_WRONG] = "wrong",
    [VERDICT_NO_VERDICT] = "no-verdict",
    [VERDICT_ENVIRONMENT] = "environment",
};

/* A wrong result beats everything; see the exit codes in base/error.h. */
static const struct {
    enum verdict verdict;
    int exit_code;
} precedence[] = {
    {VERDICT_WRONG, 2},
    {VERDICT_REGRESSION, 1},
    {VERDICT_ENVIRONMENT, 4},
    {VERDICT_NO_VERDICT, 3},
};

const char *verdict_name(enum verdict v)
{
    return (unsigned)v < VERDICT_COUNT ? verdict_names[v] : "";
}

int verdict_find(const char *name)
{
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (!strcmp(verdict_names[v], name))
            return v;
    return -1;
}

int verdict_exit_code(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].exit_code;
    return 0;
}

enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].verdict;
    return VERDICT_PASS;
}
