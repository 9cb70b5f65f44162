/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_sm90.cuh: the PTX instructions of compute capability 9.0a (Hopper) that C++ has no name for,
 * wgmma apart (wgmma_sm90.cuh).
 *
 * One function an instruction, nothing else. Shared memory is addressed by its 32-bit window
 * address. Files that use these are named *_sm90.cu and are compiled for sm_90a alone: nothing here
 * exists on another architecture, later ones included.
 *
 * An mbarrier is 8 bytes of shared memory that count arrivals and bytes. Its phase ends when all
 * expected arrivals and bytes have come. Whoever waits names the parity of the phase: 0 for the
 * first, then 1, 0, ... A wait for parity 1 on a fresh barrier returns at once.
 */
#ifndef KG_PTX_SM90_CUH
#define KG_PTX_SM90_CUH

#include "kernels/cuda/ptx_sm80.cuh"

#include <cuda.h>

namespace ptx
{

/* ---- mbarrier ---- */

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

/* ---- bulk tensor copies (TMA) ----
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

/* ---- clusters ---- */

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

/* ---- registers, warps, barriers ---- */

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
