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

/* launch_kernel() in clusters of so many blocks, the second of two where it is dependent. */
template <typename... Parameters, typename... Arguments>
static inline enum kg_status
launch_cluster(void (*kernel)(Parameters...), int blocks, bool dependent, dim3 grid, dim3 block,
               size_t shared_bytes, void *stream, const Arguments &...arguments)
{
    static_assert((has_no_padding<Parameters> && ...), "a parameter has padding or a float");
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    int n = 0;
    if (blocks > 1) {
        attributes[n].id = cudaLaunchAttributeClusterDimension;
        attributes[n].val.clusterDim.x = (unsigned)blocks;
        attributes[n].val.clusterDim.y = attributes[n].val.clusterDim.z = 1;
        n++;
    }
    if (dependent && CUDART_VERSION >= 12030) { /* before, not in a capture */
        attributes[n].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[n].val.programmaticStreamSerializationAllowed = 1;
        n++;
    }
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = (cudaStream_t)stream;
    config.attrs = attributes;
    config.numAttrs = (unsigned)n;
    CUDA_TRY(cudaLaunchKernelEx(&config, kernel, arguments...));
    return KG_OK;
}

/* launch_kernel() for the second of two. */
template <typename... Parameters, typename... Arguments>
static inline enum kg_status launch_dependent_kernel(void (*kernel)(Parameters...), dim3 grid,
                                                     dim3 block, size_t shared_bytes, void *stream,
                                                     const Arguments &...arguments)
{
    static_assert((has_no_padding<Parameters> && ...), "a parameter has padding or a float");
    int device, capability;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device));
    return launch_cluster(kernel, 1, capability >= 9, grid, block, shared_bytes, stream,
                          arguments...);
}

#endif
