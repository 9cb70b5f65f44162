/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h: many faults in one library.
 *
 * The including file lists them by FAULTS(); $GATE_MUTANT names the one that is in force. A macro
 * FAULT_PREPARE names a prepare() for all of them.
 * Launches that the fault does not touch go to the original library by wrap_inner().
 */
#ifndef TESTS_MUTANTS_FAULTS_H
#define TESTS_MUTANTS_FAULTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/problem.h"

#define WRAP_ADJUST wrap_adjust
static void wrap_adjust(struct kg_kernel *k);
#include "tests/mutants/wrap.h"

struct fault {
    const char *name;
    enum kg_status (*launch)(const struct kg_problem *, const struct kg_args *);
    uint32_t flags; /* that the kernel declares */
    int (*supports)(const struct kg_problem *, const struct kg_device *);
};

/* Defined by FAULTS(). */
static const struct fault *all_faults(size_t *n);

static const struct fault *chosen(void)
{
    static const struct fault *found;
    const char *name = getenv("GATE_MUTANT");
    size_t n;
    const struct fault *all = all_faults(&n);
    for (size_t i = 0; i < n && !found && name; i++)
        if (!strcmp(all[i].name, name))
            found = &all[i];
    if (!found) {
        fprintf(stderr, "mutant: GATE_MUTANT names no fault of this library\n");
        abort();
    }
    return found;
}

static void wrap_adjust(struct kg_kernel *k)
{
    k->flags |= chosen()->flags;
    if (chosen()->supports)
        k->supports = chosen()->supports;
#ifdef FAULT_PREPARE
    k->prepare = FAULT_PREPARE;
#endif
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return chosen()->launch(p, args);
}

#define FAULTS(...)                                                                                \
    static const struct fault *all_faults(size_t *n)                                               \
    {                                                                                              \
        static const struct fault faults[] = {__VA_ARGS__};                                        \
        *n = sizeof faults / sizeof faults[0];                                                     \
        return faults;                                                                             \
    }

#endif
