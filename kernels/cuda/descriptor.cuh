/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor.cuh: where wgmma finds an operand in shared memory (sm_90a).
 *
 * Operands lie in panels with the 128-byte swizzle, as a TMA box of 128 bytes in its innermost
 * dimension leaves them: rows of 128 bytes, in which the 16-byte chunk c of row r lies at chunk
 * c ^ (r % 8). A panel is aligned to 1024 bytes.
 *
 *   K-major    a row is an m or n, its 128 bytes are 64 halves or 32 floats of k. The rows follow
 *              one another whatever M or N is. More k is another panel.
 *   MN-major   (16-bit types) a row is a k, its 128 bytes are 64 of m or n. More m or n is another
 *              panel, panel_bytes on; one instruction reads over panels.
 *
 * A descriptor is two words. The high one never changes. The low one is made once and then moved by
 * constants, which costs one instruction an operand instead of three: make it uniform (from
 * __shfl_sync), or it takes vector registers and moves.
 */
#ifndef KG_DESCRIPTOR_CUH
#define KG_DESCRIPTOR_CUH

#include <stdint.h>

constexpr int PANEL_ROW_BYTES = 128;
constexpr int PANEL_ALIGNMENT = 1024;

/* Steps of the low word: 16 bytes each. A wgmma takes 32 bytes of k of a K-major operand (16 halves
 * or 8 floats), or 16 rows of an MN-major one. */
constexpr uint32_t DESCRIPTOR_K_STEP = 32 / 16;
constexpr uint32_t DESCRIPTOR_MN_STEP = 16 * PANEL_ROW_BYTES / 16;

/* The low word of the panel at shared address `panel`, for K-major operands and for MN-major ones
 * of one panel. In a cluster the address has the block's rank in its high byte, where the
 * descriptor has other fields. */
__device__ __forceinline__ uint32_t descriptor_low(uint32_t panel)
{
    return (panel & 0x3ffff) >> 4;
}

/* The same for an MN-major operand over several panels. */
__device__ __forceinline__ uint32_t descriptor_low(uint32_t panel, uint32_t panel_bytes)
{
    return descriptor_low(panel) | panel_bytes >> 4 << 16;
}

/* The whole descriptor: 8 rows are 1024 bytes, 128-byte swizzle. */
__device__ __forceinline__ uint64_t descriptor(uint32_t low)
{
    uint64_t whole;
    asm("mov.b64 %0, {%1, %2};\n" : "=l"(whole) : "r"(low), "n"(0x40000040));
    return whole;
}

/* `x` of lane 0, which the compiler then knows to be the same in all lanes. */
template <typename T> __device__ __forceinline__ T uniform(T x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

#endif
