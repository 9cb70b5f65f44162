/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h: a kernel library that is another one with something wrong.
 *
 * The library named by $GATE_MUTANT_OF is opened, and its table is returned with each launch()
 * replaced by wrap_launch(), which the including file defines; it may call wrap_inner(). A macro
 * WRAP_ADJUST names a function that may change more of a kernel, WRAP_OPEN and WRAP_CLOSE those
 * that take the places of wrap_open() and of the library's close().
 */
#ifndef TESTS_MUTANTS_WRAP_H
#define TESTS_MUTANTS_WRAP_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/problem.h"
#include "tests/named.h"

#define WRAP_MAX 64

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args);

static const struct kg_library *wrap_original;
static struct kg_device wrap_device;
static struct kg_kernel wrap_kernels[WRAP_MAX];
static const struct kg_kernel *wrap_table[WRAP_MAX];
static struct kg_library wrap_library;

/* The original's launch of this problem. */
static inline enum kg_status wrap_inner(const struct kg_problem *p, const struct kg_args *args)
{
    for (uint32_t i = 0; i < wrap_original->n_kernels; i++) {
        const struct kg_kernel *k = wrap_original->kernels[i];
        if (!strcmp(k->op, p->op) && k->supports(p, &wrap_device))
            return k->launch(p, args);
    }
    return KG_UNSUPPORTED;
}

/* Is this the second copy of the library, in memory, which is timed and not verified? */
static inline bool wrap_is_copy(void)
{
    Dl_info about;
    return dladdr(&wrap_library, &about) && strstr(about.dli_fname, "/fd/");
}

/* Called with the device that the gate gave, before anything is launched. */
static enum kg_status wrap_open(const struct kg_device *device, const struct kg_file *files)
{
    wrap_device = *device;
    return wrap_original->open ? wrap_original->open(device, files) : KG_OK;
}

KG_EXPORT const struct kg_library *kg_library(void)
{
    const char *path = getenv("GATE_MUTANT_OF");
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    kg_library_fn get = NULL;
    if (handle)
        *(void **)&get = dlsym(handle, KG_LIBRARY_SYMBOL);
    if (!get) {
        fprintf(stderr, "mutant: GATE_MUTANT_OF names no kernel library\n");
        return NULL;
    }
    wrap_original = get();
    wrap_library = *wrap_original;
    wrap_library.provider = "mutant";
    for (uint32_t i = 0; i < wrap_original->n_kernels && i < WRAP_MAX; i++) {
        wrap_kernels[i] = *wrap_original->kernels[i];
        wrap_kernels[i].launch = wrap_launch;
#ifdef WRAP_ADJUST
        WRAP_ADJUST(&wrap_kernels[i]);
#endif
        wrap_table[i] = &wrap_kernels[i];
    }
    wrap_library.kernels = wrap_table;
#ifdef WRAP_OPEN
    wrap_library.open = WRAP_OPEN;
#else
    wrap_library.open = wrap_open;
#endif
#ifdef WRAP_CLOSE
    wrap_library.close = WRAP_CLOSE;
#endif
    return &wrap_library;
}

#endif
