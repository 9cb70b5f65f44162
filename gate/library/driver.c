/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: see bundle.h. Types and values follow the published ABI of the driver API. */
#include "gate/library/bundle.h"

#include <dlfcn.h>
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

static const char *name_of(int result)
{
    const char *name = NULL;
    return driver.error_name(result, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

enum gate_status driver_load(const void *cubin, void **module, struct gate_error *err)
{
    int result = driver.load(module, cubin);
    return result == CUDA_SUCCESS
               ? GATE_OK
               : gate_fail(err, GATE_WRONG, "the driver does not load it: %s", name_of(result));
}

void driver_unload(void *module)
{
    if (module)
        (void)driver.unload(module);
}

enum gate_status driver_function(void *module, const char *name, void **function,
                                 struct gate_error *err)
{
    int result = driver.function(function, module, name);
    return result == CUDA_SUCCESS ? GATE_OK
                                  : gate_fail(err, GATE_WRONG, "the driver finds no '%.100s': %s",
                                              name, name_of(result));
}

enum gate_status driver_allow(const struct driver_launch *l, struct gate_error *err)
{
    int result = driver.set(l->function, FUNCTION_DYNAMIC_SHARED, (int)l->shared);
    return result == CUDA_SUCCESS
               ? GATE_OK
               : gate_fail(err, GATE_WRONG, "the driver refuses %u bytes of shared memory: %s",
                           l->shared, name_of(result));
}

enum gate_status driver_allow_cluster(const struct driver_launch *l, struct gate_error *err)
{
    const unsigned blocks = l->cluster[0] * l->cluster[1] * l->cluster[2];
    const int result = blocks > PORTABLE_CLUSTER
                           ? driver.set(l->function, FUNCTION_LARGE_CLUSTER, 1)
                           : CUDA_SUCCESS;
    return result == CUDA_SUCCESS
               ? GATE_OK
               : gate_fail(err, GATE_WRONG, "the driver refuses a cluster of %u blocks: %s", blocks,
                           name_of(result));
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
