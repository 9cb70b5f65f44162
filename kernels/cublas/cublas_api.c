/* SPDX-License-Identifier: Apache-2.0 */
/* cublas_api.c: see cublas_api.h. */
#include "kernels/cublas/cublas_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TOOLKIT_FOLDER "/usr/local/cuda/lib64/"

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bytes
 * that dlsym() returns are one. */
static bool load_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

#define NAME_OF(name) NAME_OF_EXPANDED(name)
#define NAME_OF_EXPANDED(name) #name

static bool load_functions(struct cublas_api *api, void *blas, void *lt)
{
    bool ok = true;
#define LOAD(name) ok &= load_symbol(library, NAME_OF(name), &api->name);
    void *library = blas;
    CUBLAS_FUNCTIONS(LOAD)
    library = lt;
    CUBLASLT_FUNCTIONS(LOAD)
#undef LOAD
    return ok;
}

static void *open_library(const char *stem, int major)
{
    char path[128];
    snprintf(path, sizeof(path), TOOLKIT_FOLDER "%s.so.%d", stem, major);
    void *library = dlopen(path + sizeof(TOOLKIT_FOLDER) - 1, RTLD_LAZY | RTLD_LOCAL);
    return library ? library : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* Both libraries of one major version: they pass handles to each other. */
static bool load_major(struct cublas_api *api, int major)
{
    void *lt = open_library("libcublasLt", major);
    void *blas = lt ? open_library("libcublas", major) : NULL;
    if (blas && load_functions(api, blas, lt))
        return true;
    if (blas)
        dlclose(blas);
    if (lt)
        dlclose(lt);
    return false;
}

const struct cublas_api *cublas_api(void)
{
    static struct cublas_api api;
    static enum { UNTRIED, PRESENT, ABSENT } state = UNTRIED;
    if (state == UNTRIED)
        state = load_major(&api, 13) || load_major(&api, 12) ? PRESENT : ABSENT;
    return state == PRESENT ? &api : NULL;
}

enum kg_status cublas_status(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return KG_OK;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return KG_UNSUPPORTED;
    case CUBLAS_STATUS_INVALID_VALUE:
        return KG_BAD_ARGUMENT;
    default:
        return KG_LAUNCH_FAILED;
    }
}
