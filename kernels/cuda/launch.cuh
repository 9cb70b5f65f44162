/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.cuh: the border between kernel code, the CUDA runtime and the table of kernel.h.
 *
 * Every runtime call of a kernel library goes through CUDA_TRY, every kernel launch through
 * launch_kernel, so that no error is dropped and all of them map to enum kg_status in one place.
 */
#ifndef KG_LAUNCH_CUH
#define KG_LAUNCH_CUH

#include "kernels/kernel.h"

#include <cuda.h>
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

/* The multiprocessors of the device that is in use. */
static inline enum kg_status count_sms(int *sms)
{
    int device;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(sms, cudaDevAttrMultiProcessorCount, device));
    return KG_OK;
}

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

/*
 * A kernel that is put in place while the one before it still works.
 *
 * Programmatic dependent launch, from sm_90 on: the second kernel's blocks may start as soon as all
 * blocks of the first have called let_dependents_start() or ended and there is room, and must call
 * wait_for_predecessor() before they touch anything that the first one writes: it returns when
 * that has ended, with its writes visible. On older devices both do nothing and the second kernel
 * follows the first as usual. kernel.h allows it within a launch, not from one launch to the next.
 */
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
    int device, capability;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device));
    return launch_cluster(kernel, 1, capability >= 9, grid, block, shared_bytes, stream,
                          arguments...);
}

/*
 * Tensor maps, by which the copy engine (TMA) of compute capability 9.0 knows a tensor. They are
 * made at each launch and given to the kernel as __grid_constant__ parameters of their own, so that
 * nothing is kept between launches.
 */

/* A tensor of up to 5 dimensions, innermost first, and the box of it that one copy moves. */
struct tensor_map_shape {
    int rank;
    int64_t size[5];   /* elements */
    int64_t stride[5]; /* elements; [0] is 1. That of a dimension of one is not looked at */
    int box[5];        /* elements; the innermost 128 bytes or less, the others 256 or less */
    int tf32; /* fp32 elements are rounded to TF32 on their way, to nearest, ties to even */
};

/* Finds the driver's function. For prepare(): KG_UNSUPPORTED where the driver has none. */
enum kg_status tensor_map_open(void);

/*
 * Makes the map of elements of `dtype` at `data`, aligned to 16 bytes. Shared memory gets the
 * 128-byte swizzle (wgmma_sm90.cuh). What lies outside of the tensor is read as zeros and not
 * written. KG_UNSUPPORTED for what TMA cannot do: strides that are no multiples of 16 bytes.
 */
enum kg_status tensor_map_encode(CUtensorMap *map, uint32_t dtype, const void *data,
                                 const struct tensor_map_shape *shape);

/* A tile of a matrix, counted in tiles. */
struct tile_place {
    int m, n;
};

/* Blocks run in about the order of their index, so those of one wave should share rows of A and
 * columns of B in L2: bands of GROUP tiles along m, each walked along n. */
template <int GROUP>
__device__ __forceinline__ tile_place grouped(int block, int tiles_m, int tiles_n)
{
    const int first = block / (GROUP * tiles_n) * GROUP;
    const int height = min(tiles_m - first, GROUP);
    const int in_band = block % (GROUP * tiles_n);
    return {first + in_band % height, in_band / height};
}

/*
 * A row of the table of kernel.h, from functions that take the sizes as members of a struct S. For
 * that there is a read_sizes(const struct kg_problem *, S *), false where they are not its own.
 */
template <typename S, int F(const S *, const struct kg_device *)>
int supports_as(const struct kg_problem *p, const struct kg_device *device)
{
    S s;
    return read_sizes(p, &s) && F(&s, device);
}

template <typename S, enum kg_status F(const S *, const struct kg_device *)>
enum kg_status prepare_as(const struct kg_problem *p, const struct kg_device *device, void **)
{
    S s;
    return read_sizes(p, &s) ? F(&s, device) : KG_BAD_ARGUMENT;
}

template <typename S, uint64_t F(const S *, const struct kg_device *)>
uint64_t workspace_as(const struct kg_problem *p, const struct kg_device *device, void *)
{
    S s;
    return read_sizes(p, &s) ? F(&s, device) : 0;
}

template <typename S, enum kg_status F(const S *, const struct kg_args *)>
enum kg_status launch_as(const struct kg_problem *p, const struct kg_args *args)
{
    S s;
    return read_sizes(p, &s) ? F(&s, args) : KG_BAD_ARGUMENT;
}

/* nullptr for what the kernel does not need. */
template <typename S, int Supports(const S *, const struct kg_device *),
          enum kg_status Prepare(const S *, const struct kg_device *),
          uint64_t Workspace(const S *, const struct kg_device *),
          enum kg_status Launch(const S *, const struct kg_args *)>
constexpr struct kg_kernel kernel_of(const char *op, const char *name, uint32_t flags = 0)
{
    struct kg_kernel k = {sizeof(k), flags, op, name};
    k.supports = supports_as<S, Supports>;
    k.launch = launch_as<S, Launch>;
    if constexpr (Prepare != nullptr)
        k.prepare = prepare_as<S, Prepare>;
    if constexpr (Workspace != nullptr)
        k.workspace_bytes = workspace_as<S, Workspace>;
    return k;
}

#endif
