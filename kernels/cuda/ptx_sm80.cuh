/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_sm80.cuh: the PTX instructions of compute capability 8.0 and later that C++ has no name for.
 *
 * One function an instruction, nothing else. Shared memory is addressed by its 32-bit window
 * address (shared_address), global memory by generic pointers. The layouts below are those of the
 * PTX ISA for one warp; lane = 0..31, group = lane / 4, pair = lane % 4.
 *
 *   ldmatrix      four 8x8 matrices of 16-bit elements. Lane i gives the address of row i % 8 of
 *                 matrix i / 8 (16 bytes, 16-byte aligned). Register j then holds of matrix j the
 *                 elements (group, 2 pair) and (group, 2 pair + 1), lower column in the low half;
 *                 with .trans (2 pair, group) and (2 pair + 1, group).
 *   m16n8k16      A 16x16 row-major: a[0] (group, 2 pair..), a[1] (group + 8, 2 pair..),
 *                 a[2] (group, 2 pair + 8..), a[3] (group + 8, 2 pair + 8..).
 *                 B 16x8: b[0] (2 pair.., group), b[1] (2 pair + 8.., group): k first, then n.
 *                 C 16x8: c[0], c[1] (group, 2 pair), (group, 2 pair + 1); c[2], c[3] row + 8.
 *   m16n8k8 tf32  A 16x8: a[0] (group, pair), a[1] (group + 8, pair), a[2] (group, pair + 4),
 *                 a[3] (group + 8, pair + 4). B 8x8: b[0] (pair, group), b[1] (pair + 4, group).
 *                 C as above.
 */
#ifndef KG_PTX_SM80_CUH
#define KG_PTX_SM80_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace ptx
{

__device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Copies 16 bytes from global to shared memory past L1, asynchronously. Both 16-byte aligned. */
__device__ __forceinline__ void cp_async_16(uint32_t shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(shared), "l"(global)
                 : "memory");
}

/* The same for what is read once: it is the first to leave the L2. */
__device__ __forceinline__ void cp_async_16_once(uint32_t shared, const void *global)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared),
        "l"(global), "l"(policy)
        : "memory");
}

/* The same, but writes 16 zero bytes and reads nothing when `valid` is false. `global` must still
 * be a pointer into the tensor: the instruction may translate it. */
__device__ __forceinline__ void cp_async_16_zfill(uint32_t shared, const void *global, bool valid)
{
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared),
                 "l"(global), "r"(bytes)
                 : "memory");
}

/* The same, but reads the first `bytes` bytes (0 to 16) alone and fills the rest with zeros. */
__device__ __forceinline__ void cp_async_16_partial(uint32_t shared, const void *global, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared),
                 "l"(global), "r"(bytes)
                 : "memory");
}

/* Copies 4 bytes, or writes 4 zero bytes when `valid` is false. Both 4-byte aligned. */
__device__ __forceinline__ void cp_async_4_zfill(uint32_t shared, const void *global, bool valid)
{
    const int bytes = valid ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared), "l"(global),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Waits until at most `Pending` of this thread's newest groups are in flight. Other threads' copies
 * are visible only after a barrier that follows. */
template <int Pending> __device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

/* c += A B, fp32 accumulation. The element type of A and B is the tag argument's. */
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1, __half)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1, __nv_bfloat16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += A B on fp32 bit patterns already rounded by to_tf32. */
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                 uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Rounds to TF32, ties away from zero. The tensor core would truncate instead. */
__device__ __forceinline__ uint32_t to_tf32(float x)
{
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(r) : "f"(x));
    return r;
}

/* Rounds two floats to nearest even and packs them, `low` in the low half. */
__device__ __forceinline__ uint32_t pack(float low, float high, __half)
{
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ uint32_t pack(float low, float high, __nv_bfloat16)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* The same of max(0, x). */
__device__ __forceinline__ uint32_t pack_relu(float low, float high, __half)
{
    uint32_t r;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ uint32_t pack_relu(float low, float high, __nv_bfloat16)
{
    uint32_t r;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* Loads 16 bytes that are read once: they are not kept in L1. 16-byte aligned, read-only data. */
__device__ __forceinline__ uint4 load_once_16(const void *global)
{
    uint4 r;
    asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
        : "l"(global));
    return r;
}

/* Barrier `id` (1..15; 0 is __syncthreads) among `threads` threads of the block, a multiple of 32.
 */
__device__ __forceinline__ void barrier_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/* 2^x within 2 ulp; 2^-inf is +0, subnormal results are flushed to zero. */
__device__ __forceinline__ float exp2_approx(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(r) : "f"(x));
    return r;
}

} // namespace ptx

#endif
