/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_latency_sm90: attention forward on Hopper for grids of less than a wave.
 *
 * Regime      D = 64, up to 512 keys, as many 64-row tiles as multiprocessors or fewer
 * Block       64 rows of a head; two warpgroups share its keys in chunks of 128, even and odd ones,
 *             and are merged through shared memory
 * Loads       all at once by TMA, in the order of use, before anything reads a parameter
 * Products    S by wgmma from shared memory, both chunks before the first softmax; O += P V with P
 *             in registers
 * Resources   216 registers, no spills; 152 KB of shared memory, one block a multiprocessor
 * Measured    H200, (1, 8, 512, 64) full: 4.87 us, 0.533 of cuDNN's; (2, 8) 5.5 us, 0.546, 20 % of
 *             the tensor cores' peak. A launch that loads,
 *             multiplies and stores 8 KB takes 2.3 us, the loads of a block alone 2.6
 */
#include "kernels/attention_fwd/softmax_sm90.cuh"
#include "kernels/attention_fwd/policy_sm90.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_latency_sm90
{

constexpr int KEYS = SHORT_KEYS, CHUNKS = SHORT_CHUNKS;
constexpr int CHUNK_BYTES = KEYS * 128, Q_BYTES = 64 * 128;
constexpr int GIVEN_BYTES = 64 * 32 * 4; /* half of the columns of O in fp32 */

/* Shared memory. */
constexpr int K_AT = 0;
constexpr int V_AT = K_AT + CHUNKS * CHUNK_BYTES;
constexpr int Q_AT = V_AT + CHUNKS * CHUNK_BYTES;
constexpr int GIVEN_AT = Q_AT + Q_BYTES;
constexpr int ROWS_AT = GIVEN_AT + 2 * GIVEN_BYTES; /* reference and sum of each row */
constexpr int K_FULL = ROWS_AT + 2 * 64 * 8;
constexpr int V_FULL = K_FULL + CHUNKS * 8;
constexpr int Q_FULL = V_FULL + CHUNKS * 8;
constexpr int SHARED_BYTES = Q_FULL + 8;

/* Everything at once, first what is used first. The barriers have one phase. */
__device__ __forceinline__ void load(const struct attention_sm90 &a, const CUtensorMap &map_q,
                                     const CUtensorMap &map_k, const CUtensorMap &map_v,
                                     uint32_t base)
{
    for (int i = 0; i < 2 * CHUNKS + 1; i++)
        ptx::mbarrier_init(base + K_FULL + i * 8, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect(base + Q_FULL, Q_BYTES);
    ptx::tma_load(base + Q_AT, &map_q, base + Q_FULL, 0, blockIdx.x * 64, blockIdx.y, blockIdx.z);
    const int kv_head = a.group == 1 ? blockIdx.y : blockIdx.y / a.group;
    const int keys = visible_keys(a, min((int)blockIdx.x * 64 + 64, a.seqlen_q) - 1);
    const int chunks = (keys + KEYS - 1) / KEYS;
    auto load_chunk = [&](const CUtensorMap &map, int at, int full, int j) {
        if (j >= chunks)
            return;
        ptx::mbarrier_arrive_expect(base + full + j * 8, CHUNK_BYTES);
        ptx::tma_load(base + at + j * CHUNK_BYTES, &map, base + full + j * 8, 0, j * KEYS, kv_head,
                      blockIdx.z);
    };
#pragma unroll
    for (int pair = 0; pair < CHUNKS; pair += 2) {
        load_chunk(map_k, K_AT, K_FULL, pair);
        load_chunk(map_k, K_AT, K_FULL, pair + 1);
        load_chunk(map_v, V_AT, V_FULL, pair);
        load_chunk(map_v, V_AT, V_FULL, pair + 1);
    }
}

/* N chunks of a warpgroup: w, w + 2, ... All their scores are issued before the first softmax. */
template <typename T, int N>
__device__ __forceinline__ void attend(const struct attention_sm90 &a, uint32_t base, int w,
                                       float factor, float (&o)[32], struct softmax_rows &rows)
{
    constexpr int STEP = 2 * CHUNK_BYTES / 16; /* from a chunk to the next of this warpgroup */
    const uint32_t q_low = uniform(descriptor_low(base + Q_AT));
    const uint32_t k_low = uniform(descriptor_low(base + K_AT + w * CHUNK_BYTES));
    const uint32_t v_low = uniform(descriptor_low(base + V_AT + w * CHUNK_BYTES));
    const int unmasked = uniform(visible_keys(a, blockIdx.x * 64));
    float s[N][KEYS / 2];

#pragma unroll
    for (int t = 0; t < N; t++) {
        ptx::mbarrier_wait(base + K_FULL + (w + 2 * t) * 8, 0);
        ptx::keep(s[t]);
        ptx::wgmma_fence();
        issue_scores<T, 64, 64, KEYS>(s[t], q_low, k_low + t * STEP);
        ptx::wgmma_commit();
    }
#pragma unroll
    for (int t = 0; t < N; t++) {
        const int chunk = w + 2 * t;
        uint32_t p[KEYS / 4];
        auto hide = [&](float(&x)[KEYS / 2]) {
            if ((chunk + 1) * KEYS > unmasked)
                mask_tile(x, a, blockIdx.x * 64, chunk * KEYS);
        };
        if (t == 0 && N > 1)
            ptx::wgmma_wait<1>();
        else
            ptx::wgmma_wait<0>();
        ptx::keep(s[t]);
        if (t > 0)
            ptx::keep(o);
        softmax_tile<T, 64, LATENCY_POLYNOMIAL>(
            s[t], rows, factor, t == 0, {base + Q_AT, base + K_AT + chunk * CHUNK_BYTES, 64, KEYS},
            hide, [&](const float(&shrink)[2]) {
                if (t > 0)
                    scale_rows(o, shrink);
            });
        pack_tile(p, s[t], T());
        ptx::mbarrier_wait(base + V_FULL + chunk * 8, 0);
        ptx::keep(p);
        ptx::keep(o);
        ptx::wgmma_fence();
        issue_output<T>(o, p, v_low + t * STEP, t > 0);
        ptx::wgmma_commit();
    }
    add_up_lanes(rows);
    ptx::wgmma_wait<0>();
    ptx::keep(o);
}

/* Leaves the columns of O that the other warpgroup finishes, and the rows' references and sums. */
template <int W>
__device__ __forceinline__ void give(unsigned char *shared, const float (&o)[32],
                                     const struct softmax_rows &rows)
{
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
    float4 *const given = (float4 *)(shared + GIVEN_AT + W * GIVEN_BYTES);
    float2 *const kept = (float2 *)(shared + ROWS_AT) + W * 64;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *const x = o + (1 - W) * 16 + 4 * i;
        given[i * 128 + thread] = make_float4(x[0], x[1], x[2], x[3]);
    }
    if (thread % 4 == 0) {
        kept[row] = make_float2(rows.reference[0], rows.sum[0]);
        kept[row + 8] = make_float2(rows.reference[1], rows.sum[1]);
    }
}

/* Adds what the other warpgroup left to columns 32 W to 32 W + 31, rounds them and puts them over Q
 * in its swizzle. */
template <typename T, int W>
__device__ __forceinline__ void take(const unsigned char *shared, uint32_t base,
                                     const float (&o)[32], const struct softmax_rows &rows)
{
    const int thread = threadIdx.x % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
    const float4 *const given = (const float4 *)(shared + GIVEN_AT + (1 - W) * GIVEN_BYTES);
    const float2 *const kept = (const float2 *)(shared + ROWS_AT) + (1 - W) * 64;
    float mine[2], theirs[2];
    uint32_t packed[8];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float2 other = kept[row + 8 * half];
        const float reference = finite_reference(fmaxf(rows.reference[half], other.x));
        mine[half] = ptx::exp2_approx(rows.reference[half] - reference);
        theirs[half] = ptx::exp2_approx(other.x - reference);
        const float sum = rows.sum[half] * mine[half] + other.y * theirs[half];
        const float inverse = sum == 0.0f ? 0.0f : __fdividef(1.0f, sum);
        mine[half] *= inverse;
        theirs[half] *= inverse;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 x = given[i * 128 + thread];
        const float *const y = o + W * 16 + 4 * i;
        packed[2 * i] =
            ptx::pack(y[0] * mine[0] + x.x * theirs[0], y[1] * mine[0] + x.y * theirs[0], T());
        packed[2 * i + 1] =
            ptx::pack(y[2] * mine[1] + x.z * theirs[1], y[3] * mine[1] + x.w * theirs[1], T());
    }
    const int to = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int t = 0; t < 2; t++)
        ptx::stmatrix_x4(base + Q_AT + to * 128 + (((t + 2 * W) * 2 + lane / 16) ^ (to & 7)) * 16,
                         packed[4 * t], packed[4 * t + 1], packed[4 * t + 2], packed[4 * t + 3]);
}

template <typename T>
__global__ void __launch_bounds__(256, 1)
    attention_latency_kernel(const __grid_constant__ CUtensorMap map_q,
                             const __grid_constant__ CUtensorMap map_k,
                             const __grid_constant__ CUtensorMap map_v,
                             const __grid_constant__ struct tensor_view out,
                             const __grid_constant__ struct attention_sm90 a, float factor)
{
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    const int w = uniform(threadIdx.x / 128);

    if (threadIdx.x == 0)
        load(a, map_q, map_k, map_v, base);
    __syncthreads();

    const int keys = visible_keys(a, min((int)blockIdx.x * 64 + 64, a.seqlen_q) - 1);
    const int chunks = uniform(((keys + KEYS - 1) / KEYS - w + 1) / 2); /* of this warpgroup */
    float o[32];
    struct softmax_rows rows;
    clear_rows(rows);
    ptx::mbarrier_wait(base + Q_FULL, 0);
    if (a.negative) {
        if (w == 0)
            turn_signs<64, 64>(base + Q_AT);
        __syncthreads();
    }
    if (chunks >= 2) {
        attend<T, 2>(a, base, w, factor, o, rows);
    } else if (chunks == 1) {
        attend<T, 1>(a, base, w, factor, o, rows);
    } else {
#pragma unroll
        for (int i = 0; i < 32; i++)
            o[i] = 0.0f;
    }

    if (w == 0)
        give<0>(shared, o, rows);
    else
        give<1>(shared, o, rows);
    __syncthreads();
    if (w == 0)
        take<T, 0>(shared, base, o, rows);
    else
        take<T, 1>(shared, base, o, rows);
    __syncwarp();
    /* Each warp stores its own 16 rows x 32 columns, 16 bytes a lane: sooner than by TMA. */
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int in_tile = threadIdx.x % 128 / 32 * 16 + i * 8 + lane / 4;
        const int row = blockIdx.x * 64 + in_tile, chunk = w * 4 + lane % 4;
        const uint4 x =
            *(const uint4 *)(shared + Q_AT + in_tile * 128 + ((chunk ^ (in_tile & 7)) << 4));
        if (row < a.seqlen_q)
            *(uint4 *)(out.data + blockIdx.z * out.batch_stride + blockIdx.y * out.head_stride +
                       row * out.row_stride + chunk * 16) = x;
    }
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return choose_sm90(p, device) == SM90_LATENCY;
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *)
{
    const enum kg_status status = tensor_map_open();
    if (status != KG_OK)
        return status;
    return p->dtype == KG_F16 ? allow_shared(attention_latency_kernel<__half>, SHARED_BYTES)
                              : allow_shared(attention_latency_kernel<__nv_bfloat16>, SHARED_BYTES);
}

template <typename T>
enum kg_status launch_type(const struct attention_sizes *p, const struct kg_args *args)
{
    struct attention_sm90 a;
    struct attention_maps maps;
    struct tensor_view o;
    enum kg_status status = read_attention_sm90(p, args, 64, KEYS, &maps, &a);
    if (status == KG_OK)
        status = view_tensor(&args->out[0], p->dtype, p->batch, p->heads, p->seqlen_q, 64, &o);
    if (status != KG_OK)
        return status;
    return launch_kernel(
        attention_latency_kernel<T>,
        dim3((unsigned)((p->seqlen_q + 63) / 64), (unsigned)p->heads, (unsigned)p->batch),
        dim3(256), SHARED_BYTES, args->stream, maps.q, maps.k, maps.v, o, a, factor_of(p));
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    return p->dtype == KG_F16 ? launch_type<__half>(p, args) : launch_type<__nv_bfloat16>(p, args);
}

} // namespace attention_fwd_latency_sm90

using namespace attention_fwd_latency_sm90;

extern "C" const struct kg_kernel kg_attention_fwd_latency_sm90 =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_latency_sm90");
