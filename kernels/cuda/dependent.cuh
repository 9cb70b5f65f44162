/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dependent.cuh: a kernel that is put in place while the one before it still works.
 *
 * Programmatic dependent launch, from sm_90 on: the second kernel's blocks may start as soon as all
 * blocks of the first have called let_dependents_start() or ended and there is room, and must call
 * wait_for_predecessor() before they touch anything that the first one writes: it returns when
 * that has ended, with its writes visible. On older devices both do nothing and the second kernel
 * follows the first as usual. kernel.h allows it within a launch, not from one launch to the next.
 */
#ifndef KG_DEPENDENT_CUH
#define KG_DEPENDENT_CUH

#include "kernels/cuda/launch.cuh"

__device__ __forceinline__ void let_dependents_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ void wait_for_predecessor()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* launch_kernel() for the second of two. */
template <typename... Parameters, typename... Arguments>
static inline enum kg_status launch_dependent_kernel(void (*kernel)(Parameters...), dim3 grid,
                                                     dim3 block, size_t shared_bytes, void *stream,
                                                     const Arguments &...arguments)
{
    static_assert((has_no_padding<Parameters> && ...), "a parameter has padding or a float");
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    int device, capability;

    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device));
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = (cudaStream_t)stream;
    config.attrs = &early;
    config.numAttrs = CUDART_VERSION >= 12030 && capability >= 9; /* before, not in a capture */
    CUDA_TRY(cudaLaunchKernelEx(&config, kernel, arguments...));
    return KG_OK;
}

#endif
