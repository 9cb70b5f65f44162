/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd_decode_sm90: attention forward for up to 16 query rows a KV head, in one kernel
 * (sm_90a).
 *
 * Regime      decode. fp16, bf16; D = 64, 128
 * Block       the query heads of a KV head packed into one tile of rows, and a share of the keys,
 *             dealt out to 4 or 8 warps that keep step with nobody while they walk
 * Merge       the blocks that share a KV head are a cluster. Each warp leaves maximum, sum and O of
 *             its rows in its own shared memory; after one barrier of the cluster each block
 *             combines a part of the columns from all of them, in a fixed order. No workspace, no
 *             second kernel
 * Tiles       32 (D = 128) or 64 keys, 3 slots of 8 KB a warp
 * Resources   registers 164 at D = 64, 212 at D = 128, no spills; shared memory 100 KB, two blocks
 *             a multiprocessor, or with 8 warps 200 KB and one
 * Bound       memory: of an H200's 4.8 TB/s by data sheet, in the gate's contract, 56 % at batch 1
 *             (8192 keys, 8 KV heads), 88 % at 8, 92 % at 32 and 94 % at 128 (4096 keys)
 */
#include "kernels/attention_fwd/key_walk.cuh"

/* Named, since a nameless one would put the folder of the build into the machine code. */
namespace attention_fwd_decode
{

/*
 * Into how many blocks the keys of a KV head are cut, and why. Pure: supports() and launch() ask at
 * different times and must come to the same.
 */
#define DECODE_TILE_ELEMENTS 4096    /* of K, as many of V */
#define DECODE_RING_BYTES (24 << 10) /* of a warp: three tiles of 16-bit elements */

/* Packed rows of a KV head, see problem.cuh. */
static inline int64_t decode_rows(const struct attention_sizes *p)
{
    return p->seqlen_q * (p->heads / p->kv_heads);
}

/*
 * Whether K and V are the first to leave the L2, since nobody reads them again.
 *
 * Where they fit into it, as they do at batch 1, they need not push out what others left there,
 * which would have to be written back: after a sweep of the L2 17.1 us, and 19.2 without the hint.
 * Where they do not, they only push out each other, and what others left is written back all along:
 * at batch 128 504 us, and 488 without the hint. Where nobody else uses the L2 it saves
 * 0.4 %, since a part of K and V is still there at the next launch.
 */
static inline int decode_leaves_first(const struct attention_sizes *p)
{
    const int64_t l2_bytes = (int64_t)50 << 20; /* of an H100; an H200 has 60 */
    const int64_t row_bytes = 2 * p->head_dim;  /* 16-bit types */
    return 2 * p->batch * p->kv_heads * p->seqlen_kv * row_bytes <= l2_bytes;
}

/* Tiles of keys that a KV head has. */
static inline int64_t decode_tiles(const struct attention_sizes *p)
{
    const int64_t tile_keys = DECODE_TILE_ELEMENTS / p->head_dim;
    return (p->seqlen_kv + tile_keys - 1) / tile_keys;
}

/*
 * The warps of a block. With 4, two blocks share a multiprocessor; with 8 there is one. 8 heads in
 * clusters of 8 leave that room: with 8 warps they take 3.1 % less, if each has a tile. With more
 * heads clusters would soon have to wait for each other; 64 heads in clusters of 2 took 0.4 % less
 * and 256 single blocks 0.7 % more. What lies between was not measured.
 */
static inline int decode_warps(const struct attention_sizes *p)
{
    return p->batch * p->kv_heads <= 8 && decode_tiles(p) >= 8 * 8 ? 8 : 4;
}

static inline int64_t decode_shared_bytes(const struct attention_sizes *p)
{
    return (int64_t)decode_warps(p) * DECODE_RING_BYTES;
}

/*
 * The blocks of a cluster, which share a KV head: a power of two; 0: not served.
 *
 * While all run at once, as many as fit: 30, 62 and 132 clusters of 8, 4 and 2 blocks do on the 132
 * multiprocessors of an H200, and 264 single blocks; 64 clusters of 4 took 8 % longer than as many
 * of 2. 14 of 16 fit, but share too few multiprocessors: 5 % longer than of 8. Past that, 2: with
 * shorter blocks the last wave ends more evenly, 1 % of 1024 heads. Each warp gets a tile of keys.
 */
static inline int decode_cluster(const struct attention_sizes *p, int64_t sm_count)
{
    const int64_t heads = p->batch * p->kv_heads;
    const int64_t tiles = decode_tiles(p);
    int cluster = heads <= 30 ? 8 : heads <= 62 ? 4 : heads <= 132 ? 2 : heads <= 264 ? 1 : 2;

    if (decode_rows(p) > 16 || sm_count < 132)
        return 0;
    while (cluster > 1 && cluster * decode_warps(p) > tiles)
        cluster /= 2;
    return cluster;
}

/* `WARPS` warps that each walk keys of their own: the groups of a tile. */
template <typename T, int D, int WARPS, bool LEAVES_FIRST>
struct decode_tile_sm90 : tile<T, D, 1, 1, WARPS, DECODE_TILE_ELEMENTS / D, 3> {
    static constexpr bool READ_ONCE = LEAVES_FIRST; /* see decode_leaves_first() */
};

struct decode_params {
    struct attention a;
    int rows;    /* packed rows of a KV head, see problem.cuh */
    int cluster; /* blocks that share a KV head */
};

/* A row's part of the result: O relative to the maximum. */
struct part {
    float max, sum;
    float4 out;
};

constexpr int64_t DECODE_STATIC_BYTES = 8 * 32 * sizeof(struct part); /* of_block, at most */

/* What a warp leaves in its ring: O of 16 rows, then maximum and sum of each. */
template <typename Tile> constexpr int stats_offset = 16 * Tile::D * 4;

__device__ __forceinline__ void add_scaled(float4 &to, const float4 &x, float by)
{
    to.x = fmaf(x.x, by, to.x);
    to.y = fmaf(x.y, by, to.y);
    to.z = fmaf(x.z, by, to.z);
    to.w = fmaf(x.w, by, to.w);
}

/* Adds up the parts that `part_at(i)` gives, 0 <= i < count, in this order. With no key in any the
 * weights are 2^-inf = 0. */
template <int UNROLL, typename PartAt>
__device__ __forceinline__ struct part merge(int count, float scale_log2, PartAt part_at)
{
    struct part all = {-INFINITY, 0.0f, make_float4(0.0f, 0.0f, 0.0f, 0.0f)};
#pragma unroll UNROLL
    for (int i = 0; i < count; i++)
        all.max = fmaxf(all.max, part_at(i).max);
    const float zero = finite_maximum(all.max);
#pragma unroll UNROLL
    for (int i = 0; i < count; i++) {
        const struct part &x = part_at(i);
        const float weight = ptx::exp2_approx((x.max - zero) * scale_log2);
        all.sum = fmaf(x.sum, weight, all.sum);
        add_scaled(all.out, x.out, weight);
    }
    return all;
}

/* Leaves the warp's rows in its own ring, which it alone has read. */
template <typename Tile>
__device__ __forceinline__ void leave_rows(unsigned char *ring, int rows,
                                           const struct softmax_state<Tile> &state)
{
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = half * 8 + lane / 4;
        if (row >= rows)
            continue;
        float2 *const out = (float2 *)ring + row * (Tile::D / 2) + lane % 4;
#pragma unroll
        for (int n = 0; n < Tile::D / 8; n++)
            out[n * 4] = make_float2(state.out[0][n][2 * half], state.out[0][n][2 * half + 1]);
        if (lane % 4 == 0)
            ((float2 *)(ring + stats_offset<Tile>))[row] =
                make_float2(state.max[0][half], state.sum[0][half]);
    }
}

/* What warp `warp` of block `block` left of chunk `chunk` of all rows. */
template <typename Tile>
__device__ __forceinline__ struct part read_part(uint32_t shared, int block, int warp, int chunk)
{
    const uint32_t ring = ptx::cluster_address(shared + warp * Tile::RING_BYTES, (uint32_t)block);
    const float2 stats = ptx::load_cluster_8(ring + stats_offset<Tile> + chunk / (Tile::D / 4) * 8);
    return {stats.x, stats.y, ptx::load_cluster_16(ring + chunk * 16)};
}

template <typename Tile>
__device__ __forceinline__ void store_chunk(const struct decode_params &p, int batch, int kv_head,
                                            int chunk, const struct part &x)
{
    char *const row = packed_row(p.a.o, p.a.group, batch, kv_head, chunk / (Tile::D / 4));
    const float scale = reciprocal_or_zero(x.sum);
    ((uint2 *)row)[chunk % (Tile::D / 4)] =
        make_uint2(ptx::pack(x.out.x * scale, x.out.y * scale, typename Tile::T()),
                   ptx::pack(x.out.z * scale, x.out.w * scale, typename Tile::T()));
}

/*
 * Combines the block's share of the chunks of 4 columns, each by one thread for each block of the
 * cluster: it adds up that block's warps, then one of them adds up the blocks. Arrives at the
 * cluster's barrier when it has read all that others left.
 */
template <typename Tile>
__device__ __forceinline__ void combine(const struct decode_params &p, float scale_log2,
                                        uint32_t shared, int rank, int batch, int kv_head)
{
    __shared__ struct part of_block[Tile::THREADS];
    const int chunks = Tile::THREADS / p.cluster; /* at a time */
    const int block = threadIdx.x / chunks, in_pass = threadIdx.x % chunks;
    const int all = p.rows * (Tile::D / 4), share = (all + p.cluster - 1) / p.cluster;
    const int end = min((rank + 1) * share, all);
    const int passes = (share + chunks - 1) / chunks;

    for (int pass = 0; pass < passes; pass++) {
        const int chunk = rank * share + pass * chunks + in_pass;
        struct part of_warp[Tile::GROUPS];
#pragma unroll
        for (int warp = 0; warp < Tile::GROUPS; warp++)
            if (chunk < end)
                of_warp[warp] = read_part<Tile>(shared, block, warp, chunk);
        __syncwarp(); /* barriers of the cluster want whole warps */
        if (pass == passes - 1)
            ptx::cluster_arrive();
        if (pass > 0)
            __syncthreads();
        if (chunk < end)
            of_block[threadIdx.x] = merge<Tile::GROUPS>(
                Tile::GROUPS,
                scale_log2, [&](int warp) -> const struct part & { return of_warp[warp]; });
        __syncthreads();
        if (block == 0 && chunk < end)
            store_chunk<Tile>(p, batch, kv_head, chunk,
                              merge<4>(
                                  p.cluster, scale_log2, [&](int i) -> const struct part & {
                                      return of_block[i * chunks + in_pass];
                                  }));
    }
}

template <typename Tile>
__global__ void __launch_bounds__(Tile::THREADS, Tile::GROUPS == 4 ? 2 : 1)
    attention_decode_kernel(const __grid_constant__ struct decode_params p, float scale_log2)
{
    extern __shared__ __align__(256) unsigned char shared[];
    const struct attention &a = p.a;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % p.cluster;
    const int batch = blockIdx.x / p.cluster / a.kv_heads;
    const int kv_head = blockIdx.x / p.cluster % a.kv_heads;

    struct row_limits<Tile> limits;
    for (int half = 0; half < 2; half++)
        limits.keys[0][half] = visible_keys(a, (half * 8 + lane / 4) / a.group);
    limits.warp_least = visible_keys(a, 0);
    limits.warp_most = visible_keys(a, (p.rows - 1) / a.group);

    /* Tiles of the cluster's blocks side by side, those of a block's warps in turn. */
    const int n_tiles = (limits.warp_most + Tile::KEYS - 1) / Tile::KEYS;
    const int first = (int)((int64_t)n_tiles * rank / p.cluster);
    const int tiles = (int)((int64_t)n_tiles * (rank + 1) / p.cluster) - first;
    struct key_range range = keys_of(a, batch, kv_head);
    range.first = first + warp;
    range.step = Tile::GROUPS;
    range.n_tiles = (tiles - warp + Tile::GROUPS - 1) / Tile::GROUPS;

    const struct key_ring ring = {ptx::shared_address(shared) + warp * Tile::RING_BYTES, lane, 0};
    fill_ring<Tile>(ring, range);

    struct query_registers<Tile> query;
    struct softmax_state<Tile> state;
    load_packed_query(a, batch, kv_head, 0, p.rows, &query);
    clear_state(state);
    walk_keys<Tile>(ring, range, query, limits, scale_log2, state);
    finish_sums(state);
    leave_rows<Tile>(shared + warp * Tile::RING_BYTES, p.rows, state);

    __syncwarp();
    ptx::cluster_arrive();
    ptx::cluster_wait();
    combine<Tile>(p, scale_log2, ptx::shared_address(shared), rank, batch, kv_head);
    __syncwarp();
    ptx::cluster_wait(); /* nobody leaves while others still read what it left */
}

using decode_kernel = void (*)(struct decode_params, float);

template <typename T, int D, int WARPS>
decode_kernel kernel_of_warps(const struct attention_sizes *p)
{
    static_assert(decode_tile_sm90<T, D, WARPS, true>::RINGS_BYTES == WARPS * DECODE_RING_BYTES,
                  "what is asked for");
    static_assert(has_no_padding<struct decode_params>, "a parameter has padding or a float");
    return decode_leaves_first(p) ? attention_decode_kernel<decode_tile_sm90<T, D, WARPS, true>>
                                  : attention_decode_kernel<decode_tile_sm90<T, D, WARPS, false>>;
}

template <typename T, int D> decode_kernel kernel_of_type(const struct attention_sizes *p)
{
    return decode_warps(p) == 8 ? kernel_of_warps<T, D, 8>(p) : kernel_of_warps<T, D, 4>(p);
}

decode_kernel kernel_of(const struct attention_sizes *p)
{
    if (p->dtype == KG_F16)
        return p->head_dim == 64 ? kernel_of_type<__half, 64>(p) : kernel_of_type<__half, 128>(p);
    return p->head_dim == 64 ? kernel_of_type<__nv_bfloat16, 64>(p)
                             : kernel_of_type<__nv_bfloat16, 128>(p);
}

int supports(const struct attention_sizes *p, const struct kg_device *device)
{
    return attention_supports(p, device) && device->cc_major == 9 && device->cc_minor == 0 &&
           device->shared_bytes_optin >= decode_shared_bytes(p) + DECODE_STATIC_BYTES &&
           decode_cluster(p, device->sm_count) > 0;
}

enum kg_status prepare(const struct attention_sizes *p, const struct kg_device *device)
{
    (void)device;
    return allow_shared(kernel_of(p), decode_shared_bytes(p));
}

enum kg_status launch(const struct attention_sizes *p, const struct kg_args *args)
{
    struct decode_params params;
    int sm_count;
    enum kg_status status = read_attention(p, args, &params.a);
    if (status == KG_OK)
        status = count_sms(&sm_count);
    if (status != KG_OK)
        return status;
    params.rows = (int)decode_rows(p);
    params.cluster = decode_cluster(p, sm_count);
    if (params.cluster == 0)
        return KG_UNSUPPORTED;

    cudaLaunchAttribute cluster = {};
    cudaLaunchConfig_t config = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)params.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)(params.a.batch * params.a.kv_heads * params.cluster));
    config.blockDim = dim3(32u * (unsigned)decode_warps(p));
    config.dynamicSmemBytes = (size_t)decode_shared_bytes(p);
    config.stream = (cudaStream_t)args->stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    CUDA_TRY(cudaLaunchKernelEx(&config, kernel_of(p), params, scale_log2_of(p)));
    return KG_OK;
}

} // namespace attention_fwd_decode

using namespace attention_fwd_decode;

extern "C" const struct kg_kernel kg_attention_fwd_decode_sm90 =
    kernel_of<attention_sizes, supports, prepare, nullptr, launch>("attention_fwd",
                                                                   "attention_fwd_decode_sm90");
