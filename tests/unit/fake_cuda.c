/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of CUDA's driver, for test_bundle.c: it notes what is launched. Once it is loaded, a
 * library asked for as libcuda.so.1 is this one. The layouts are those of cuda.h.
 */
#include <stddef.h>
#include <string.h>

struct attribute {
    int id, unused;
    unsigned cluster[16];
};

struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    const struct attribute *attributes;
    unsigned n_attributes;
};

/* The last launch, with as many bytes of each argument as `sizes` says. */
struct noted {
    struct config config;
    unsigned cluster[3], n_launches, n_loaded;
    int allowed; /* bytes of shared memory */
    int refuses_clusters;
    const char *function;
    size_t n_arguments, sizes[8];
    unsigned char arguments[8][8];
};

struct noted fake_cuda_noted;

int cuGetErrorName(int result, const char **name);
int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuLaunchKernelEx(const struct config *config, void *function, void **arguments, void **extra);

int cuGetErrorName(int result, const char **name)
{
    *name = result == 1 ? "CUDA_ERROR_INVALID_VALUE" : NULL;
    return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
    *module = (void *)image;
    fake_cuda_noted.n_loaded++;
    return 0;
}

int cuModuleUnload(void *)
{
    fake_cuda_noted.n_loaded--;
    return 0;
}

int cuModuleGetFunction(void **function, void *, const char *name)
{
    *function = (void *)name;
    return 0;
}

int cuFuncSetAttribute(void *, int attribute, int value)
{
    if (attribute == 8)
        fake_cuda_noted.allowed = value;
    return (attribute == 8 && value > 200000) ||
           (attribute == 14 && fake_cuda_noted.refuses_clusters);
}

int cuLaunchKernelEx(const struct config *config, void *function, void **arguments, void **extra)
{
    struct noted *n = &fake_cuda_noted;
    n->config = *config;
    n->function = function;
    memset(n->cluster, 0, sizeof n->cluster);
    if (config->n_attributes == 1 && config->attributes->id == 4)
        memcpy(n->cluster, config->attributes->cluster, sizeof n->cluster);
    for (size_t i = 0; i < n->n_arguments; i++)
        if (arguments[i])
            memcpy(n->arguments[i], arguments[i], n->sizes[i]);
    n->n_launches++;
    return extra != NULL;
}
