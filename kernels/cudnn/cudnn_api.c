/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_api.c: see cudnn_api.h. */
#include "kernels/cudnn/cudnn_api.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#define CHECK(name, value)                                                                         \
    _Static_assert((int)name == K##name, #name " is another number in cuDNN's header");
#if CUDNN_VERSION >= 91300
CUDNN_VALUES(CHECK)
#endif

#endif

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

/* ---- descriptors ---- */

/* Statuses of cuDNN 9 come in thousands: 2000 are bad arguments, 3000 what is not supported. */
enum { BAD_PARAM = 2, NOT_SUPPORTED = 3 };

static bool is_going(const struct descriptors *list)
{
    return list->status == KCUDNN_STATUS_SUCCESS;
}

cudnn_descriptor descriptor_new(struct descriptors *list, int type)
{
    cudnn_descriptor d = NULL;
    if (is_going(list) && list->count == DESCRIPTORS_MAX)
        list->status = BAD_PARAM * 1000;
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendCreateDescriptor(type, &d);
    if (is_going(list))
        list->all[list->count++] = d;
    return d;
}

void descriptor_set(struct descriptors *list, cudnn_descriptor d, int name, int type, int64_t count,
                    const void *elements)
{
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendSetAttribute(d, name, type, count, elements);
}

void descriptor_set_int(struct descriptors *list, cudnn_descriptor d, int name, int type, int value)
{
    descriptor_set(list, d, name, type, 1, &value);
}

void descriptor_link(struct descriptors *list, cudnn_descriptor d, int name, cudnn_descriptor other)
{
    descriptor_set(list, d, name, KCUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void descriptor_finish(struct descriptors *list, cudnn_descriptor d)
{
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendFinalize(d);
}

void descriptors_free(struct descriptors *list)
{
    while (list->count)
        (void)cudnn_api()->cudnnBackendDestroyDescriptor(list->all[--list->count]);
}

enum kg_status descriptors_status(const struct descriptors *list)
{
    if (list->status == KCUDNN_STATUS_SUCCESS)
        return KG_OK;
    /* Thousands are kinds since cuDNN 9; the small numbers of older ones are failures too. */
    switch (list->status / 1000) {
    case NOT_SUPPORTED:
        return KG_UNSUPPORTED;
    case BAD_PARAM:
        return KG_BAD_ARGUMENT;
    default:
        return KG_LAUNCH_FAILED;
    }
}
