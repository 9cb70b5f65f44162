/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.cuh: the PTX instructions that C++ has no name for, wgmma apart (wgmma_sm90.cuh).
 *
 * One function an instruction, nothing else: first those of compute capability 8.0 and later, then
 * those of 9.0a (Hopper). Files that use the latter are named *_sm90.cu and are compiled for sm_90a
 * alone: they exist on no other architecture, later ones included. Shared memory is addressed by
 * its 32-bit window address (shared_address), global memory by generic pointers. The layouts below
 * are those of the PTX ISA for one warp; lane = 0..31, group = lane / 4, pair = lane % 4.
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
 *
 * An mbarrier is 8 bytes of shared memory that count arrivals and bytes. Its phase ends when all
 * expected arrivals and bytes have come. Whoever waits names the parity of the phase: 0 for the
 * first, then 1, 0, ... A wait for parity 1 on a fresh barrier returns at once.
 */
#ifndef KG_PTX_CUH
#define KG_PTX_CUH

#include <cuda.h>
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

/* ---- 9.0a: mbarrier ---- */

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers visible to the copy engine and to the cluster. */
__device__ __forceinline__ void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/* Arrives at the barrier at the same place in the shared memory of block `rank` of the cluster.
 * Orders nothing that this thread wrote: a release for the cluster waits for everything that the
 * thread has under way, about 1000 clocks. */
__device__ __forceinline__ void mbarrier_arrive_at(uint32_t barrier, uint32_t rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Arrives, and lets the phase wait for `bytes` more bytes. */
__device__ __forceinline__ void mbarrier_arrive_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(uint32_t barrier, int parity)
{
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, int parity)
{
    while (!mbarrier_try_wait(barrier, parity))
        continue;
}

/* ---- 9.0a: bulk tensor copies (TMA) ----
 * Coordinates are elements, innermost first, of the box's first element; they may lie outside of
 * the tensor, where loads give zeros and stores do nothing. Called by one thread. */

__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                         int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                         int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                         int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                                         int c0, int c1, int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

/* Bytes that follow one another, without a map: both addresses and `bytes` are multiples of 16. */
__device__ __forceinline__ void bulk_load(uint32_t to, const void *from, int bytes,
                                          uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Loads into the same place of every block whose bit is set in `blocks`; each one's barrier at the
 * same place counts the bytes. */
__device__ __forceinline__ void tma_load_multicast(uint32_t to, const CUtensorMap *map,
                                                   uint32_t barrier, uint16_t blocks, int c0,
                                                   int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;\n" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void tma_load_multicast(uint32_t to, const CUtensorMap *map,
                                                   uint32_t barrier, uint16_t blocks, int c0,
                                                   int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;\n" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap *map, uint32_t from, int c0, int c1)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(map),
        "r"(from), "r"(c0), "r"(c1)
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap *map, uint32_t from, int c0, int c1,
                                          int c2)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n" ::"l"(
            map),
        "r"(from), "r"(c0), "r"(c1), "r"(c2)
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap *map, uint32_t from, int c0, int c1,
                                          int c2, int c3)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n" ::
            "l"(map),
        "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap *map, uint32_t from, int c0, int c1,
                                          int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group "
                 "[%0, {%2, %3, %4, %5, %6}], [%1];\n" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

__device__ __forceinline__ void tma_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

/* Waits until at most `Pending` of this thread's newest store groups still read shared memory. */
template <int Pending> __device__ __forceinline__ void tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(Pending) : "memory");
}

/* Orders this thread's ordinary writes to shared memory before reads by the copy engine or by
 * wgmma. In every writing thread, then a barrier. */
__device__ __forceinline__ void fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/* ---- 9.0a: clusters ---- */

__device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
}

/* Orders nothing but initialised barriers, after fence_mbarrier_init(). */
__device__ __forceinline__ void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

/* Where `address` lies in the shared memory of block `rank` of the cluster. */
__device__ __forceinline__ uint32_t cluster_address(uint32_t address, uint32_t rank)
{
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

/* 8 and 16 bytes of another block's shared memory, at an address of cluster_address(). */
__device__ __forceinline__ float2 load_cluster_8(uint32_t address)
{
    float2 x;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];\n"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"(address)
                 : "memory");
    return x;
}

__device__ __forceinline__ float4 load_cluster_16(uint32_t address)
{
    float4 x;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

/* ---- 9.0a: registers, warps, barriers ---- */

/* All warps of a warpgroup give registers back or take more. The kernel's launch bounds must say
 * one block a multiprocessor, else it is ignored (C7508). */
template <int Registers> __device__ __forceinline__ void registers_decrease()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Registers));
}

template <int Registers> __device__ __forceinline__ void registers_increase()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Registers));
}

/* True in one lane of the warp. */
__device__ __forceinline__ bool elect_lane()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(elected));
    return elected;
}

/* Counts at barrier `id` without waiting; see barrier_sync(). */
__device__ __forceinline__ void barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/* Four 8x8 matrices of 16-bit elements to shared memory: ldmatrix_x4 backwards. */
__device__ __forceinline__ void stmatrix_x4(uint32_t shared, uint32_t r0, uint32_t r1, uint32_t r2,
                                            uint32_t r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

/* The same, each matrix transposed. */
__device__ __forceinline__ void stmatrix_x4_trans(uint32_t shared, uint32_t r0, uint32_t r1,
                                                  uint32_t r2, uint32_t r3)
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3)
        : "memory");
}

/* The transpose of an 8x8 matrix of 16-bit elements: lane = 4 row + pair, before and after. */
__device__ __forceinline__ uint32_t movmatrix(uint32_t x)
{
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(r) : "r"(x));
    return r;
}

/* 16 bytes to and from shared memory, aligned. */
__device__ __forceinline__ void store_shared_16(uint32_t shared, uint4 x)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(shared), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

__device__ __forceinline__ uint4 load_shared_16(uint32_t shared)
{
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(shared)
                 : "memory");
    return x;
}

/* Two floats to shared memory, aligned to 8 bytes. */
__device__ __forceinline__ void store_shared_8(uint32_t shared, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(shared), "f"(x), "f"(y) : "memory");
}

/* Four floats to shared memory, aligned to 16 bytes. */
__device__ __forceinline__ void store_shared_16(uint32_t shared, const float *x)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(shared), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
}

/* Adds four floats to global memory, aligned to 16 bytes, each by itself and in any order. */
__device__ __forceinline__ void add_global_16(float *global, const float *x)
{
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(global),
                 "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}

} // namespace ptx

#endif
