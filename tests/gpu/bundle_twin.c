/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_twin.c: the softmax of examples/triton as a library written by hand, for test_bundles.py.
 * It launches the same machine code as the bundle, twin.cubin, as the bundle's manifest says: the
 * test writes the constants below into a second file.
 */
#include <dlfcn.h>
#include <string.h>

#include "kernels/problem.h"

KG_FILE(twin, "twin.cubin");

extern const char twin_entry[];
extern const unsigned twin_longest, twin_block, twin_shared;

static int (*load)(void **, const void *);
static int (*find)(void **, void *, const char *);
static int (*start)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                    void *, void **, void **);
static void *function;

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    const int64_t n = kg_size(p, "n");
    return device->kind == KG_DEVICE_CUDA && kg_dtype(p) == KG_F16 && n <= twin_longest &&
           n % 16 == 0;
}

static void look_up(void *driver, const char *name, void *to)
{
    void *symbol = dlsym(driver, name);
    memcpy(to, &symbol, sizeof symbol);
}

static enum kg_status open_twin(const struct kg_device *, const struct kg_file *files)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module = NULL;
    look_up(driver, "cuModuleLoadData", &load);
    look_up(driver, "cuModuleGetFunction", &find);
    look_up(driver, "cuLaunchKernel", &start);
    return load(&module, kg_file(files, "twin.cubin")->data) || find(&function, module, twin_entry)
               ? KG_UNSUPPORTED
               : KG_OK;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *x = &args->in[0], *y = &args->out[0];
    int strides[2] = {(int)x->stride[0], (int)y->stride[0]}, n = (int)kg_size(p, "n");
    void *none = NULL;
    void *arguments[] = {
        (void *)&x->data, (void *)&y->data, &strides[0], &strides[1], &n, &none, &none};
    if (x->stride[0] % 16 || y->stride[0] % 16)
        return KG_UNSUPPORTED;
    return start(function, (unsigned)kg_size(p, "m"), 1, 1, twin_block, 1, 1, twin_shared,
                 args->stream, arguments, NULL)
               ? KG_LAUNCH_FAILED
               : KG_OK;
}

static const struct kg_kernel kernel = {.struct_bytes = sizeof kernel,
                                        .op = "softmax",
                                        .name = "twin",
                                        .supports = supports,
                                        .launch = launch};
static const struct kg_kernel *const kernels[] = {&kernel};
static const struct kg_library library = {.struct_bytes = sizeof library,
                                          .abi_version = KG_ABI_VERSION,
                                          .provider = "twin",
                                          .version = "1",
                                          .device_kind = KG_DEVICE_CUDA,
                                          .n_kernels = 1,
                                          .kernels = kernels,
                                          .open = open_twin};

const struct kg_library *kg_library(void)
{
    return &library;
}
