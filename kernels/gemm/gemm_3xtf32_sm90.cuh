/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_3xtf32_sm90.cuh: fp32 products on tensor cores, by three TF32 products each (sm_90a).
 *
 * x = hi + lo, where hi is x rounded to TF32 and lo is x - hi rounded to TF32, both to nearest and
 * by the copy engine. A B = hi hi + (hi lo + lo hi); what is left out is 2^-22 of a product at
 * most, of either sign. Tensor cores truncate when they accumulate, so sums of hi hi over 64 of k
 * are added to others outside of them (in one accumulator 4096 of k would be off by 4e-5), and the
 * small terms have an accumulator of their own, where truncating is harmless.
 *
 * Range: TF32 has nothing below 2^-136, so an operand is off by up to 2^-136. From (2 - 2^-11)
 * 2^127 on it rounds to infinity, and what it is part of becomes an infinity or a NaN.
 *
 * Both operands are K-major, lo lies in a matrix of its own. A stage holds 32 of k of A and B, hi
 * and lo are two stages in a row. The two consumers add at different times, so that one always has
 * products under way.
 */
#ifndef KG_GEMM_3XTF32_SM90_CUH
#define KG_GEMM_3XTF32_SM90_CUH

#include "kernels/gemm/gemm_tile_sm90.cuh"

namespace gemm_3xtf32
{

using namespace gemm_sm90;
template <int BN> using tile = product<float, BN, BN == 128 ? 6 : 8, 2, true, true>;
template <typename P> using plan = shared_plan<P, true>;

struct arguments {
    struct tile_lists lists;
    int32_t n;               /* columns of the first product, for its bias */
    int32_t sum_n, sum_rows; /* column sums: db[sum_n] of sums[sum_rows][sum_n] */
    const float *bias;       /* then ReLU, or NULL */
    const float *sums;
    float *db;
};

/* N blocks of k: sum += hi hi, low += hi lo + lo hi. */
template <int N, typename P>
__device__ __forceinline__ void multiply_blocks(consumer<P> &me, float (&sum)[P::BN / 2],
                                                float (&low)[P::BN / 2])
{
    constexpr uint32_t STAGE = P::STAGE_BYTES / 16;
    ring_place<P::STAGES> hi, lo;
    float acc[P::BN / 2];
#pragma unroll
    for (int block = 0; block < N; block++) {
        const ring_place<P::STAGES> last_hi = hi, last_lo = lo;
        hi = me.at;
        me.at.next();
        lo = me.at;
        me.at.next();
        me.stages.wait_full(hi);
        me.stages.wait_full(lo);
        ptx::keep(acc);
        ptx::keep(low);
        ptx::wgmma_fence();
        const uint32_t a = me.a + hi.stage * STAGE, b = me.b + hi.stage * STAGE;
        const uint32_t a_lo = me.a + lo.stage * STAGE, b_lo = me.b + lo.stage * STAGE;
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            constexpr uint32_t STEP = DESCRIPTOR_K_STEP;
            ptx::wgmma_ss<0, 0>(acc, descriptor(a + i * STEP), descriptor(b + i * STEP),
                                block > 0 || i > 0, float());
            ptx::wgmma_ss<0, 0>(low, descriptor(a + i * STEP), descriptor(b_lo + i * STEP), 1,
                                float());
            ptx::wgmma_ss<0, 0>(low, descriptor(a_lo + i * STEP), descriptor(b + i * STEP), 1,
                                float());
        }
        ptx::wgmma_commit();
        if (block > 0) {
            ptx::wgmma_wait<1>();
            me.release(last_hi);
            me.release(last_lo);
        }
    }
    ptx::wgmma_wait<0>();
    ptx::keep(acc);
    ptx::keep(low);
    me.release(hi);
    me.release(lo);
#pragma unroll
    for (int i = 0; i < P::BN / 2; i++)
        sum[i] += acc[i];
}

template <typename P, bool BIAS_RELU>
__global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(P::CLUSTER, 1, 1)
    kernel(const __grid_constant__ CUtensorMap a0, const __grid_constant__ CUtensorMap a0_lo,
           const __grid_constant__ CUtensorMap b0, const __grid_constant__ CUtensorMap b0_lo,
           const __grid_constant__ CUtensorMap c0, const __grid_constant__ CUtensorMap a1,
           const __grid_constant__ CUtensorMap a1_lo, const __grid_constant__ CUtensorMap b1,
           const __grid_constant__ CUtensorMap b1_lo, const __grid_constant__ CUtensorMap c1,
           const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    constexpr int GROUP = 2048 / (P::BM * P::CLUSTER);
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan<P>::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int rank = (int)ptx::cluster_rank();
    const int cluster = (int)blockIdx.x / P::CLUSTER, clusters = (int)gridDim.x / P::CLUSTER;

    open_ring<P>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<24>();
        wait_for_predecessor();
        if (threadIdx.x >= 32) {
            if (p.db != NULL)
                sum_columns(p.db, p.sums, p.sum_rows, p.sum_n,
                            (int)blockIdx.x * 3 + (int)threadIdx.x / 32 - 1, (int)gridDim.x * 3);
            return;
        }
        if (!ptx::elect_lane())
            return;
        ring_place<P::STAGES> at = {0, 0};
        for (int round = 0;; round++) {
            const listed_tile t = tile_of<GROUP>(p.lists, round, cluster, clusters);
            if (!t.any)
                break;
            const int m0 = (t.m * P::CLUSTER + rank) * P::BM, n0 = t.n * P::BN;
            const CUtensorMap *const a[2] = {t.which ? &a1 : &a0, t.which ? &a1_lo : &a0_lo};
            const CUtensorMap *const b[2] = {t.which ? &b1 : &b0, t.which ? &b1_lo : &b0_lo};
            for (int k = 0; k < p.lists.of[t.which].blocks_k; k++) {
#pragma unroll
                for (int part = 0; part < 2; part++) {
                    stages.wait_empty(at);
                    load_a<P>(stages, at, base, a[part], m0, k);
                    load_b<P>(stages, at, base, b[part], n0, k, rank);
                    at.next();
                }
            }
        }
        close_ring<P>(stages, at);
        return;
    }

    ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan<P>::STAGING + index * STAGING_BYTES;
    consumer<P> me(stages, base, index);
    float sum[P::BN / 2], low[P::BN / 2];
    tile_bias<float, P::BN> bias;
    bias.shared = (float *)(shared + plan<P>::BIAS + index * plan<P>::BIAS_BYTES);
    for (int round = 0;; round++) {
        const listed_tile t = tile_of<GROUP>(p.lists, round, cluster, clusters);
        if (!t.any)
            break;
        const int m0 = (t.m * P::CLUSTER + rank) * P::BM + index * 64, n0 = t.n * P::BN;
        const int blocks_k = p.lists.of[t.which].blocks_k;
        int k = 0;
        if constexpr (BIAS_RELU)
            bias.ask(p.bias, n0, p.n);
#pragma unroll
        for (int i = 0; i < P::BN / 2; i++)
            sum[i] = low[i] = 0.0f;
        if (index > 0) {
            multiply_blocks<1>(me, sum, low);
            k = 1;
        }
#pragma unroll 1
        for (; k + 1 < blocks_k; k += 2)
            multiply_blocks<2>(me, sum, low);
        if (k < blocks_k)
            multiply_blocks<1>(me, sum, low);
#pragma unroll
        for (int i = 0; i < P::BN / 2; i++)
            sum[i] += low[i];
        if constexpr (BIAS_RELU) {
            bias.write();
            add_bias_relu(sum, bias);
        }
        store_floats<P::BN>(sum, staging, t.which ? &c1 : &c0, m0, n0);
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* An operand with its lo; lines of both are aligned to 16 bytes. */
struct operand {
    struct gemm_matrix whole, lo;
};

struct call {
    struct operand a, b; /* a[m,k], b[n,k] */
    struct gemm_matrix c;
    int64_t m, n, k;
};

struct encoded {
    CUtensorMap a, a_lo, b, b_lo, c;
};

template <typename P>
static enum kg_status encode_call(struct encoded *maps, const struct call &call)
{
    const uint32_t f32 = KG_F32;
    enum kg_status status = encode(&maps->a, f32, call.a.whole, call.m, call.k, P::BM, P::BK, 1);
    if (status == KG_OK)
        status = encode(&maps->a_lo, f32, call.a.lo, call.m, call.k, P::BM, P::BK, 1);
    if (status == KG_OK)
        status = encode(&maps->b, f32, call.b.whole, call.n, call.k, P::B_SHARE, P::BK, 1);
    if (status == KG_OK)
        status = encode(&maps->b_lo, f32, call.b.lo, call.n, call.k, P::B_SHARE, P::BK, 1);
    return status == KG_OK ? encode_c<P>(&maps->c, f32, call.c, call.m, call.n) : status;
}

template <typename P> static struct tile_lists lists_of(const struct call *calls, int count)
{
    struct tile_lists lists;
    lists.first = count > 1 && calls[1].k > calls[0].k;
    for (int i = 0; i < 2; i++)
        lists.of[i] = i < count ? list_of<P>(calls[i].m, calls[i].n, calls[i].k)
                                : (struct tile_list){0, 0, 0};
    return lists;
}

template <typename P, bool BIAS_RELU>
static enum kg_status launch_tile(const struct call *calls, int count, arguments p, void *stream,
                                  int64_t most_clusters)
{
    struct encoded maps[2];
    enum kg_status status = encode_call<P>(&maps[0], calls[0]);
    if (status == KG_OK)
        status = encode_call<P>(&maps[1], calls[count - 1]);
    if (status != KG_OK)
        return status;
    p.lists = lists_of<P>(calls, count);
    const int64_t clusters = clusters_for(p.lists, most_clusters);
    return launch_dependent_kernel(kernel<P, BIAS_RELU>, dim3((unsigned)(clusters * P::CLUSTER)),
                                   dim3(THREADS), plan<P>::BYTES, stream, maps[0].a, maps[0].a_lo,
                                   maps[0].b, maps[0].b_lo, maps[0].c, maps[1].a, maps[1].a_lo,
                                   maps[1].b, maps[1].b_lo, maps[1].c, p);
}

/* Enqueues `count` products (1 or 2) as a dependent launch. p: all but the lists. */
template <bool BIAS_RELU>
static enum kg_status launch(const struct call *calls, int count, const arguments &p, void *stream)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t clusters = sms / 2;
    return clocks_of<tile<64>>(lists_of<tile<64>>(calls, count), clusters) <
                   clocks_of<tile<128>>(lists_of<tile<128>>(calls, count), clusters)
               ? launch_tile<tile<64>, BIAS_RELU>(calls, count, p, stream, clusters)
               : launch_tile<tile<128>, BIAS_RELU>(calls, count, p, stream, clusters);
}

template <bool BIAS_RELU> static enum kg_status prepare()
{
    enum kg_status status = tensor_map_open();
    if (status == KG_OK)
        status = allow_shared(kernel<tile<64>, BIAS_RELU>, plan<tile<64>>::BYTES);
    return status == KG_OK ? allow_shared(kernel<tile<128>, BIAS_RELU>, plan<tile<128>>::BYTES)
                           : status;
}

} // namespace gemm_3xtf32

#endif
