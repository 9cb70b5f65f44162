/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_api.c: see cudnn_api.h. */
#include "kernels/cudnn/cudnn_api.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libcudnn.so.9"

/* The folder of PATH with a python3 in it; false: none. It is not resolved any further, since the
 * python3 of a virtual environment is a link to another's. */
static bool find_python(char *folder, size_t size)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        const int length = (int)strcspn(path, ":");
        char program[4096];
        snprintf(program, sizeof(program), "%.*s/python3", length, path);
        if (access(program, X_OK) == 0) {
            snprintf(folder, size, "%.*s", length, path);
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

static void *open_of_python(void)
{
    char folder[2048], pattern[4096];
    glob_t found = {0};
    void *library = NULL;
    if (!find_python(folder, sizeof(folder)))
        return NULL;
    snprintf(pattern, sizeof(pattern), "%s/../lib/python3*/*-packages/nvidia/cudnn/lib/" LIBRARY,
             folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        library = dlopen(found.gl_pathv[0], RTLD_LAZY | RTLD_LOCAL);
    globfree(&found);
    return library;
}

static void *open_library(void)
{
    const char *named = getenv("KG_CUDNN");
    if (named && *named)
        return dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    void *library = open_of_python();
    return library ? library : dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
}

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bytes
 * that dlsym() returns are one. */
static bool load_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool load(struct cudnn_api *api)
{
    void *library = open_library();
    bool ok = library != NULL;
#define LOAD(result, name, arguments) ok = ok && load_symbol(library, #name, &api->name);
    CUDNN_FUNCTIONS(LOAD)
#undef LOAD
    if (library && !ok)
        dlclose(library);
    return ok;
}

const struct cudnn_api *cudnn_api(void)
{
    static struct cudnn_api api;
    static enum { UNTRIED, PRESENT, ABSENT } state = UNTRIED;
    if (state == UNTRIED)
        state = load(&api) ? PRESENT : ABSENT;
    return state == PRESENT ? &api : NULL;
}
