/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c: the table of the host library, the threads and inner loops that it opens, and the
 * rules of kernel.h, checked once for all of its kernels.
 *
 * KG_HOST_ISA in the environment (avx512, avx2, generic) pins the instruction set: for comparing a
 * machine with a weaker one. A name that is unknown or not present makes open() fail.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/host/host.h"
#include "kernels/ops/op.h"

enum { MAX_THREADS = 1024 };

static struct host state;
static unsigned users; /* who opened it and did not close it yet: libraries may share this one */

int host_supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->struct_bytes >= sizeof(*device) && device->kind == KG_DEVICE_HOST &&
           device->sm_count >= 1 && op_is_problem(p);
}

static bool tensors_fit(const struct kg_problem *p, const struct kg_args *args)
{
    if (!op_is_problem(p) || !kg_is_call(p, args))
        return false;
    for (uint32_t i = 0; i < p->n_in + p->n_out; i++) {
        const struct kg_tensor *t = i < p->n_in ? &args->in[i] : &args->out[i - p->n_in];
        const struct kg_shape shape = op_shape_of(p, i);
        for (uint32_t r = 0; r < t->rank; r++)
            if (t->rank != shape.rank || t->shape[r] != shape.size[r] || t->stride[r] < 0)
                return false;
    }
    return true;
}

const struct host *host_enter(const struct kg_problem *p, const struct kg_args *args,
                              host_bytes_fn *workspace_bytes)
{
    if (!state.pool || !tensors_fit(p, args))
        return NULL;
    const struct kg_device device = {.struct_bytes = sizeof(device),
                                     .kind = KG_DEVICE_HOST,
                                     .sm_count = pool_threads(state.pool)};
    const uint64_t bytes = workspace_bytes(p, &device, NULL);
    return args->workspace_bytes >= bytes && (bytes == 0 || args->workspace) ? &state : NULL;
}

static void close_host(void)
{
    if (users == 0 || --users > 0)
        return;
    pool_destroy(state.pool);
    state = (struct host){0};
}

static enum kg_status open_host(const struct kg_device *device, const struct kg_file *)
{
    if (device->struct_bytes < sizeof(*device) || device->kind != KG_DEVICE_HOST ||
        device->sm_count < 1 || device->sm_count > MAX_THREADS ||
        (users > 0 && pool_threads(state.pool) != device->sm_count))
        return KG_BAD_ARGUMENT;
    if (users == 0) {
        state.simd = simd_select(getenv("KG_HOST_ISA"));
        if (!state.simd)
            return KG_UNSUPPORTED;
        state.pool = pool_create(device->sm_count);
        if (!state.pool)
            return KG_LAUNCH_FAILED;
    }
    users++;
    return KG_OK;
}

static const struct kg_kernel *const kernels[] = {
    &host_attention_fwd,   &host_gemm,           &host_gemv,         &host_linear_relu,
    &host_linear_relu_bwd, &host_batched_gemm,   &host_rmsnorm,      &host_attention_bwd,
    &host_gemm_fp8,        &host_gemm_fp8_block, &host_grouped_gemm, &host_attention_paged,
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
