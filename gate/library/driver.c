/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: see library.h. Types and values follow the published ABI of the driver API. */
#include "gate/library/library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    CUDA_SUCCESS = 0,
    LAUNCH_CLUSTER = 4,
    FUNCTION_DYNAMIC_SHARED = 8,
    FUNCTION_LARGE_CLUSTER = 14,
};

#define PORTABLE_CLUSTER 8

struct launch_attribute {
    int id, unused;
    union {
        unsigned cluster[3];
        char room[64];
    } value;
};

struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    const struct launch_attribute *attributes;
    unsigned n_attributes;
};

/* X(member, its parameters, symbol) */
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(error_name, (int, const char **), cuGetErrorName)                                            \
    X(load, (void **, const void *), cuModuleLoadData)                                             \
    X(unload, (void *), cuModuleUnload)                                                            \
    X(function, (void **, void *, const char *), cuModuleGetFunction)                              \
    X(set, (void *, int, int), cuFuncSetAttribute)                                                 \
    X(launch, (const struct launch_config *, void *, void **, void **), cuLaunchKernelEx)

static struct {
#define DRIVER_MEMBER(member, parameters, symbol) int(*member) parameters;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
} driver;

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bytes
 * that dlsym() returns are one. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

enum gate_status driver_start(struct gate_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return gate_fail(err, GATE_ENVIRONMENT, "a bundle needs CUDA's driver: %s", dlerror());
#define DRIVER_FIND(member, parameters, symbol)                                                    \
    if (!find(library, #symbol, &driver.member))                                                   \
        return gate_fail(err, GATE_ENVIRONMENT,                                                    \
                         "a bundle needs a driver of CUDA 12: this one has no " #symbol);
    DRIVER_FUNCTIONS(DRIVER_FIND)
#undef DRIVER_FIND
    return GATE_OK;
}

/* GATE_WRONG with what was tried and the driver's name for what came of it. */
__attribute__((format(printf, 3, 4))) static enum gate_status
check(int result, struct gate_error *err, const char *format, ...)
{
    const char *name = NULL;
    char tried[160];
    va_list args;
    if (result == CUDA_SUCCESS)
        return GATE_OK;
    va_start(args, format);
    vsnprintf(tried, sizeof tried, format, args);
    va_end(args);
    bool known = driver.error_name(result, &name) == CUDA_SUCCESS && name;
    return gate_fail(err, GATE_WRONG, "%s: %s", tried, known ? name : "an unknown error");
}

enum gate_status driver_function(const void *cubin, void **module, const char *name,
                                 void **function, struct gate_error *err)
{
    if (!*module)
        TRY(check(driver.load(module, cubin), err, "the driver does not load it"));
    return check(driver.function(function, *module, name), err, "the driver finds no '%.100s'",
                 name);
}

void driver_unload(void *module)
{
    if (module)
        (void)driver.unload(module);
}

enum gate_status driver_allow(const struct driver_launch *l, const char **what,
                              struct gate_error *err)
{
    const unsigned blocks = l->cluster[0] * l->cluster[1] * l->cluster[2];
    *what = "shared";
    TRY(check(driver.set(l->function, FUNCTION_DYNAMIC_SHARED, (int)l->shared), err,
              "the driver refuses %u bytes of shared memory", l->shared));
    *what = "cluster";
    return blocks <= PORTABLE_CLUSTER
               ? GATE_OK
               : check(driver.set(l->function, FUNCTION_LARGE_CLUSTER, 1), err,
                       "the driver refuses a cluster of %u blocks", blocks);
}

bool driver_launch(const struct driver_launch *l)
{
    struct launch_attribute cluster = {.id = LAUNCH_CLUSTER};
    struct launch_config config = {.shared = l->shared, .stream = l->stream};
    memcpy(config.grid, l->grid, sizeof config.grid);
    memcpy(config.block, l->block, sizeof config.block);
    if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1) {
        memcpy(cluster.value.cluster, l->cluster, sizeof cluster.value.cluster);
        config.attributes = &cluster;
        config.n_attributes = 1;
    }
    return driver.launch(&config, l->function, l->arguments, NULL) == CUDA_SUCCESS;
}
