/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ceiling_sm90.cu: tensor-core work of Hopper from shared memory, and nothing beside it.
 *
 * Two warpgroups a block and one block an SM. A warpgroup takes 64 rows of A and all of B by
 * m64n256k16 (k8 of TF32), four of them a round, and waits for the round before last alone.
 * Measured on an H200: 99.9 % of the cycles of the tensor cores.
 */
#include "gate/device/cuda_ceiling.cuh"
#include "kernels/cuda/wgmma_sm90.cuh"

enum { STEPS = CEILING_ROW_BYTES / 32 };

/* The operands with the 128-byte swizzle of wgmma_sm90.cuh. */
static __device__ void load_panels(uint4 *to, const uint4 *from)
{
    constexpr int CHUNKS = CEILING_ROW_BYTES / 16;
    for (int i = (int)threadIdx.x; i < CEILING_OPERAND_BYTES / 16; i += CEILING_THREADS)
        to[i ^ (i / CHUNKS % 8)] = from[i];
    ptx::fence_async_shared();
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(CEILING_THREADS, 1)
    multiply(const uint4 *operands, unsigned rounds, float *sums)
{
    __shared__ __align__(PANEL_ALIGNMENT) uint4 panels[CEILING_OPERAND_BYTES / 16];
    load_panels(panels, operands);
    const uint32_t at = ptx::shared_address(panels);
    const uint32_t a = uniform(descriptor_low(at + threadIdx.x / 128 * (64 * CEILING_ROW_BYTES)));
    const uint32_t b = uniform(descriptor_low(at + CEILING_M * CEILING_ROW_BYTES));
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; i++)
        d[i] = 0.0f;
    ptx::keep(d);
#pragma unroll 1
    for (unsigned round = 0; round < rounds; round++) {
        ptx::wgmma_fence();
#pragma unroll
        for (uint32_t step = 0; step < STEPS; step++)
            ptx::wgmma_ss<0, 0>(d, descriptor(a + step * DESCRIPTOR_K_STEP),
                                descriptor(b + step * DESCRIPTOR_K_STEP), 1, T());
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
    }
    ptx::wgmma_wait<0>();
    ptx::keep(d);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; i++)
        sum += d[i];
    sums[blockIdx.x * CEILING_THREADS + threadIdx.x] = sum;
}

template <typename T>
cudaError_t ceiling_wgmma(const void *operands, unsigned rounds, unsigned blocks, float *sums,
                          cudaStream_t stream)
{
    multiply<T><<<blocks, CEILING_THREADS, 0, stream>>>((const uint4 *)operands, rounds, sums);
    return cudaGetLastError();
}

template cudaError_t ceiling_wgmma<__half>(const void *, unsigned, unsigned, float *, cudaStream_t);
template cudaError_t ceiling_wgmma<__nv_bfloat16>(const void *, unsigned, unsigned, float *,
                                                  cudaStream_t);
template cudaError_t ceiling_wgmma<float>(const void *, unsigned, unsigned, float *, cudaStream_t);
