/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.cuh: the border between kernel code and the CUDA runtime.
 *
 * Every runtime call of a kernel library goes through CUDA_TRY, every kernel launch through
 * launch_kernel, so that no error is dropped and all of them map to enum kg_status in one place.
 */
#ifndef KG_LAUNCH_CUH
#define KG_LAUNCH_CUH

#include "kernels/kernel.h"

#include <cuda_runtime.h>
#include <stddef.h>
#include <type_traits>

/* A device without machine code for the kernel is unsupported, not broken. */
static inline enum kg_status status_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return KG_OK;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
        return KG_UNSUPPORTED;
    default:
        return KG_LAUNCH_FAILED;
    }
}

/* Returns from the calling function with a status when `call` fails. The runtime also remembers the
 * error for whoever asks next; taking it here keeps it from being blamed on a later launch. */
#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        const cudaError_t cuda_try_error_ = (call);                                                \
        if (cuda_try_error_ != cudaSuccess) {                                                      \
            (void)cudaGetLastError();                                                              \
            return status_of(cuda_try_error_);                                                     \
        }                                                                                          \
    } while (0)

/* Lets a kernel use `bytes` of dynamic shared memory. For prepare(): too dear for launch(). */
template <typename... Parameters>
static inline enum kg_status allow_shared(void (*kernel)(Parameters...), size_t bytes)
{
    CUDA_TRY(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)bytes));
    return KG_OK;
}

/*
 * Is every byte of an argument part of its value? Padding goes to the device too, with whatever the
 * stack held, so that equal launches would differ to who compares them (the gate does, to know the
 * same work when it sees it). A float in a struct is refused: it has two zeros, and is an argument
 * of its own.
 */
template <typename T>
static constexpr bool has_no_padding =
    std::is_scalar_v<T> || std::has_unique_object_representations_v<T>;

/* Enqueues one kernel on `stream` (a cudaStream_t) and reads the launch error at once. */
template <typename... Parameters, typename... Arguments>
static inline enum kg_status launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                           size_t shared_bytes, void *stream,
                                           const Arguments &...arguments)
{
    static_assert((has_no_padding<Parameters> && ...), "a parameter has padding or a float");
    kernel<<<grid, block, shared_bytes, (cudaStream_t)stream>>>(arguments...);
    return status_of(cudaGetLastError());
}

#endif
