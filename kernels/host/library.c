/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c: the table of the host library, and the threads and inner loops that it opens.
 *
 * KG_HOST_ISA in the environment (avx512, avx2, generic) pins the instruction set: for comparing a
 * machine with a weaker one. A name that is unknown or not present makes open() fail.
 */
#include <stdlib.h>

#include "kernels/host/host.h"

enum { MAX_THREADS = 1024 };

static struct host state;
static unsigned users; /* who opened it and did not close it yet: libraries may share this one */

const struct host *host_state(void)
{
    return state.pool ? &state : NULL;
}

static void close_host(void)
{
    if (users == 0 || --users > 0)
        return;
    pool_destroy(state.pool);
    state = (struct host){0};
}

static enum kg_status start(int threads)
{
    state.simd = simd_select(getenv("KG_HOST_ISA"));
    if (!state.simd)
        return KG_UNSUPPORTED;
    state.pool = pool_create(threads);
    return state.pool ? KG_OK : KG_LAUNCH_FAILED;
}

static enum kg_status open_host(const struct kg_device *device, const struct kg_file *files)
{
    (void)files;
    if (device->struct_bytes < sizeof(*device) || device->kind != KG_DEVICE_HOST ||
        device->sm_count < 1 || device->sm_count > MAX_THREADS ||
        (users > 0 && pool_threads(state.pool) != device->sm_count))
        return KG_BAD_ARGUMENT;
    enum kg_status status = users ? KG_OK : start(device->sm_count);
    users += status == KG_OK;
    return status;
}

static const struct kg_kernel *const kernels[] = {
    &host_attention_fwd,   &host_gemm,         &host_gemv,    &host_linear_relu,
    &host_linear_relu_bwd, &host_batched_gemm, &host_rmsnorm, &host_attention_bwd,
};

static const struct kg_library library = {
    .struct_bytes = sizeof(struct kg_library),
    .abi_version = KG_ABI_VERSION,
    .provider = "host",
    .version = "1.0",
    .device_kind = KG_DEVICE_HOST,
    .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .kernels = kernels,
    .open = open_host,
    .close = close_host,
};

KG_EXPORT const struct kg_library *kg_library(void)
{
    return &library;
}
