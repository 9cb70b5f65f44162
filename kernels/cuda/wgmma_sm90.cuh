/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma_sm90.cuh: the warpgroup's asynchronous matrix products, m64nNk16 (fp16, bf16) and m64nNk8
 * (tf32), fp32 accumulators; where they find operands in shared memory, how those get there, and
 * how accumulators leave (sm_90a).
 *
 * D[64, N] += A[64, K] B[K, N], or D = A B where `accumulate` is 0. A comes from shared memory
 * (wgmma_ss) or from registers (wgmma_rs), B from shared memory, where a descriptor says. TA, TB: 0
 * is K-major, 1 is MN-major; tf32 has K-major only. The tag argument gives the type of A and B;
 * float is tf32, which drops the low 13 bits of its inputs. The size of D gives N.
 *
 * Layouts. Warp w of the warpgroup has rows 16 w to 16 w + 15. With group = lane / 4 and pair =
 * lane % 4, d[4 j + i] of a thread is row group + 8 (i / 2), column 8 j + 2 pair + i % 2. A in
 * registers is the A operand of mma.sync, see ptx.cuh. So the columns 16 t to 16 t + 15 of one
 * product, packed in pairs from d[8 t] on, are the A of another.
 *
 * Order: keep(d), wgmma_fence(), products, wgmma_commit(), wgmma_wait<n>(), keep(d). keep() ties
 * registers to a place: the compiler moves no use of them over an issue or a wait.
 */
#ifndef KG_WGMMA_SM90_CUH
#define KG_WGMMA_SM90_CUH

#include "kernels/cuda/ptx.cuh"

/*
 * Descriptors of operands.
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

/*
 * A ring of stages in shared memory between one producer thread and consumers.
 *
 * A stage has two barriers. `full` ends its phase when the bytes of the stage have come, `empty`
 * when every consumer has let it go. The place in the ring is kept by each side for itself.
 *
 *     producer                                  consumer
 *     ring.wait_empty(at);                      ring.wait_full(at);
 *     ring.expect(at, bytes);                   use stage at.stage
 *     tma_load(.., ring.full(at), ..);          ring.release(at);     one thread a consumer
 *     at.next();                                at.next();
 */

/* A place in a ring: the stage, and the parity of its phase. Starts as {0, 0} on both sides. */
template <int STAGES> struct ring_place {
    int stage, parity;

    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <int STAGES> struct ring {
    static constexpr int BYTES = 2 * STAGES * 8;
    uint32_t barriers; /* shared address of BYTES bytes, aligned to 8 */

    using place = ring_place<STAGES>;

    __device__ __forceinline__ uint32_t full(place at) const
    {
        return barriers + at.stage * 8;
    }
    __device__ __forceinline__ uint32_t empty(place at) const
    {
        return barriers + (STAGES + at.stage) * 8;
    }
    /* By one thread; then fence_mbarrier_init() and a barrier of the block or the cluster. */
    __device__ __forceinline__ void init(int consumers) const
    {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(barriers + i * 8, 1);
            ptx::mbarrier_init(barriers + (STAGES + i) * 8, consumers);
        }
    }
    /* The first round finds all stages empty: parity 1 on a fresh barrier. */
    __device__ __forceinline__ void wait_empty(place at) const
    {
        ptx::mbarrier_wait(empty(at), at.parity ^ 1);
    }
    __device__ __forceinline__ void expect(place at, int bytes) const
    {
        ptx::mbarrier_arrive_expect(full(at), bytes);
    }
    __device__ __forceinline__ void wait_full(place at) const
    {
        ptx::mbarrier_wait(full(at), at.parity);
    }
    __device__ __forceinline__ void release(place at) const
    {
        ptx::mbarrier_arrive(empty(at));
    }
    /* The same in block `rank` of the cluster, whose stages are filled by multicast. */
    __device__ __forceinline__ void release_at(place at, uint32_t rank) const
    {
        ptx::mbarrier_arrive_at(empty(at), rank);
    }
};

namespace ptx
{

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/* Waits until at most `Pending` of the newest groups are at work. */
template <int Pending> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(Pending) : "memory");
}

template <int N> __device__ __forceinline__ void keep(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(r[i])::"memory");
}

template <int N> __device__ __forceinline__ void keep(uint32_t (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(r[i])::"memory");
}

/* In place of keep() before a product that does not accumulate: what the registers held is not
 * needed, so that others may use them until here. */
template <int N> __device__ __forceinline__ void forget(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "=f"(r[i])::"memory");
}

/* The names of the first operands, and the accumulators d[0], d[1], ... as those operands. */
#define KG_REGS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KG_REGS_16 KG_REGS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define KG_REGS_24 KG_REGS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define KG_REGS_32 KG_REGS_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define KG_REGS_40 KG_REGS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define KG_REGS_48 KG_REGS_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define KG_REGS_56 KG_REGS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define KG_REGS_64 KG_REGS_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define KG_REGS_72 KG_REGS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define KG_REGS_80 KG_REGS_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define KG_REGS_88 KG_REGS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define KG_REGS_96 KG_REGS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define KG_REGS_104 KG_REGS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define KG_REGS_112 KG_REGS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define KG_REGS_120 KG_REGS_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define KG_REGS_128 KG_REGS_120 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define KG_OUT_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define KG_OUTS_8(d) KG_OUT_8(d, 0)
#define KG_OUTS_16(d) KG_OUTS_8(d), KG_OUT_8(d, 8)
#define KG_OUTS_24(d) KG_OUTS_16(d), KG_OUT_8(d, 16)
#define KG_OUTS_32(d) KG_OUTS_24(d), KG_OUT_8(d, 24)
#define KG_OUTS_40(d) KG_OUTS_32(d), KG_OUT_8(d, 32)
#define KG_OUTS_48(d) KG_OUTS_40(d), KG_OUT_8(d, 40)
#define KG_OUTS_56(d) KG_OUTS_48(d), KG_OUT_8(d, 48)
#define KG_OUTS_64(d) KG_OUTS_56(d), KG_OUT_8(d, 56)
#define KG_OUTS_72(d) KG_OUTS_64(d), KG_OUT_8(d, 64)
#define KG_OUTS_80(d) KG_OUTS_72(d), KG_OUT_8(d, 72)
#define KG_OUTS_88(d) KG_OUTS_80(d), KG_OUT_8(d, 80)
#define KG_OUTS_96(d) KG_OUTS_88(d), KG_OUT_8(d, 88)
#define KG_OUTS_104(d) KG_OUTS_96(d), KG_OUT_8(d, 96)
#define KG_OUTS_112(d) KG_OUTS_104(d), KG_OUT_8(d, 104)
#define KG_OUTS_120(d) KG_OUTS_112(d), KG_OUT_8(d, 112)
#define KG_OUTS_128(d) KG_OUTS_120(d), KG_OUT_8(d, 120)

/* R = N / 2 accumulators a thread; n0 to n6 are R to R + 6, the operands after them. */
#define KG_WGMMA_16(N, R, TYPE, TAG, n0, n1, n2, n3, n4, n5, n6)                                   \
    template <int TA, int TB>                                                                      \
    __device__ __forceinline__ void wgmma_ss(float(&d)[R], uint64_t a, uint64_t b, int accumulate, \
                                             TAG)                                                  \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #n2 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE               \
                     " {" KG_REGS_##R "}, %" #n0 ", %" #n1 ", p, 1, 1, %" #n3 ", %" #n4 ";\n}\n"   \
                     : KG_OUTS_##R(d)                                                              \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(TA), "n"(TB));                         \
    }                                                                                              \
    template <int TB>                                                                              \
    __device__ __forceinline__ void wgmma_rs(float(&d)[R], const uint32_t(&a)[4], uint64_t b,      \
                                             int accumulate, TAG)                                  \
    {                                                                                              \
        asm volatile(                                                                              \
            "{\n.reg .pred p;\nsetp.ne.b32 p, %" #n5 ", 0;\n"                                      \
            "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" KG_REGS_##R       \
            "}, {%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 "}, %" #n4 ", p, 1, 1, %" #n6 ";\n}\n"       \
            : KG_OUTS_##R(d)                                                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));       \
    }

#define KG_WGMMA_8(N, R, n0, n1, n2, n3, n4, n5)                                                   \
    template <int TA, int TB>                                                                      \
    __device__ __forceinline__ void wgmma_ss(float(&d)[R], uint64_t a, uint64_t b, int accumulate, \
                                             float)                                                \
    {                                                                                              \
        static_assert(TA == 0 && TB == 0, "tf32 has K-major operands only");                       \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #n2 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32"                     \
                     " {" KG_REGS_##R "}, %" #n0 ", %" #n1 ", p, 1, 1;\n}\n"                       \
                     : KG_OUTS_##R(d)                                                              \
                     : "l"(a), "l"(b), "r"(accumulate));                                           \
    }                                                                                              \
    template <int TB>                                                                              \
    __device__ __forceinline__ void wgmma_rs(float(&d)[R], const uint32_t(&a)[4], uint64_t b,      \
                                             int accumulate, float)                                \
    {                                                                                              \
        static_assert(TB == 0, "tf32 has K-major operands only");                                  \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #n5 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32"                     \
                     " {" KG_REGS_##R "}, {%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 "}, %" #n4         \
                                      ", p, 1, 1;\n}\n"                                            \
                     : KG_OUTS_##R(d)                                                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));       \
    }

#define KG_WGMMA(N, R, n0, n1, n2, n3, n4, n5, n6)                                                 \
    KG_WGMMA_16(N, R, "f16", __half, n0, n1, n2, n3, n4, n5, n6)                                   \
    KG_WGMMA_16(N, R, "bf16", __nv_bfloat16, n0, n1, n2, n3, n4, n5, n6)                           \
    KG_WGMMA_8(N, R, n0, n1, n2, n3, n4, n5)

KG_WGMMA(16, 8, 8, 9, 10, 11, 12, 13, 14)
KG_WGMMA(32, 16, 16, 17, 18, 19, 20, 21, 22)
KG_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38)
KG_WGMMA(80, 40, 40, 41, 42, 43, 44, 45, 46)
KG_WGMMA(96, 48, 48, 49, 50, 51, 52, 53, 54)
KG_WGMMA(112, 56, 56, 57, 58, 59, 60, 61, 62)
KG_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70)
KG_WGMMA(160, 80, 80, 81, 82, 83, 84, 85, 86)
KG_WGMMA(176, 88, 88, 89, 90, 91, 92, 93, 94)
KG_WGMMA(192, 96, 96, 97, 98, 99, 100, 101, 102)
KG_WGMMA(224, 112, 112, 113, 114, 115, 116, 117, 118)
KG_WGMMA(256, 128, 128, 129, 130, 131, 132, 133, 134)

#undef KG_WGMMA
#undef KG_WGMMA_16
#undef KG_WGMMA_8

} // namespace ptx

/* x rounded to TF32 as the copy engine rounds it: to nearest, ties to even. */
__device__ __forceinline__ float tf32_kept(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u);
}

/* The rest, which is exact. */
__device__ __forceinline__ float tf32_dropped(float x)
{
    return x - tf32_kept(x);
}

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
