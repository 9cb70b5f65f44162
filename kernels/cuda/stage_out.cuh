/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_out.cuh: wgmma accumulators to shared memory, in the form that a TMA store takes (sm_90a).
 */
#ifndef KG_STAGE_OUT_CUH
#define KG_STAGE_OUT_CUH

#include "kernels/cuda/descriptor.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

/*
 * Rounds a warpgroup's 64 x N accumulators to 16-bit elements (the type of the tag) and writes them
 * as panels of 64 columns in the 128-byte swizzle, panel_bytes apart, the first at `panel`. Each
 * warp writes its own 16 rows. Ends with the fence: after a barrier of the warpgroup one thread may
 * store the panels by TMA.
 */
template <typename T, int R>
__device__ __forceinline__ void stage_out(uint32_t panel, uint32_t panel_bytes, const float (&d)[R],
                                          T tag)
{
    static_assert(R % 8 == 0, "blocks of 16 columns");
    const int lane = threadIdx.x % 32;
    const int row = threadIdx.x / 32 % 4 * 16 + lane % 16;
    const uint32_t at = panel + row * PANEL_ROW_BYTES;

#pragma unroll
    for (int t = 0; t < R / 8; t++)
        ptx::stmatrix_x4(
            at + t / 4 * panel_bytes + ((t % 4 * 2 + lane / 16) ^ (row & 7)) * 16,
            ptx::pack(d[8 * t], d[8 * t + 1], tag), ptx::pack(d[8 * t + 2], d[8 * t + 3], tag),
            ptx::pack(d[8 * t + 4], d[8 * t + 5], tag), ptx::pack(d[8 * t + 6], d[8 * t + 7], tag));
    ptx::fence_async_shared();
}

#endif
