/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped_gemm: C = A B[g] in the rows of each group, by the tiles of gemm/.
 *
 * Regime      fp16, bf16, fp32, TF32; any extents and layout; compute capability 8.0 and later
 * Order       as many blocks as there may be tiles; each looks in the offsets for its own, and ends
 *             where there is none
 */
#include "kernels/batched_gemm/batched_gemm.h"
#include "kernels/gemm/gemm_mma.cuh"
#include "kernels/gemm/gemm_simt.cuh"

namespace batched_gemm
{

using namespace gemm;

struct grouped_arguments {
    operand a, b;
    result c;
    int k, groups;
    int tiles_n, vector;
    const int32_t *offsets;
};

/* A tile of a group: its matrices, and its corner in them. */
struct group_tile {
    operand a, b;
    result c;
    int m0, n0;
};

/* That of the block; false: it has none. */
template <typename T, typename Tile>
static __device__ __forceinline__ bool find_tile(const grouped_arguments &p, group_tile &tile)
{
    int left = (int)blockIdx.x / p.tiles_n;
    for (int group = 0; group < p.groups; group++) {
        const int from = p.offsets[group], rows = p.offsets[group + 1] - from;
        const int tiles = (rows + Tile::BM - 1) / Tile::BM;
        if (left < tiles) {
            tile = {p.a, p.b, p.c, left * Tile::BM, (int)blockIdx.x % p.tiles_n * Tile::BN};
            tile.a.data = (const T *)p.a.data + from * p.a.leading;
            tile.b.data = (const T *)p.b.data + group * p.b.apart;
            tile.c.data = (T *)p.c.data + from * p.c.leading;
            tile.c.m = rows;
            return true;
        }
        left -= tiles;
    }
    return false;
}

template <typename T, typename Tile, bool VECTOR>
static __global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    group_mma(const __grid_constant__ grouped_arguments p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    group_tile tile;
    float acc[Tile::MMA_M][Tile::MMA_N][4];
    if (!find_tile<T, Tile>(p, tile))
        return;
    mainloop<T, Tile, true, false, VECTOR>(acc, tile.a, tile.b, tile.m0, tile.n0, tile.c.m,
                                           tile.c.n, p.k, shared);
    store_tile<T, Tile, true, false, false>(acc, tile.c, p.vector != 0, tile.m0, tile.n0, shared);
}

template <typename Tile>
static __global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    group_simt(const __grid_constant__ grouped_arguments p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    group_tile tile;
    const tile_place mine = simt_place<Tile>();
    float acc[Tile::TM][Tile::TN];
    if (!find_tile<float, Tile>(p, tile))
        return;
    simt_product<Tile, true, false>(acc, tile.a, tile.b, tile.m0, tile.n0, tile.c.m, tile.c.n, p.k,
                                    (float *)shared);
    simt_store<Tile, false>(acc, tile.c, p.vector != 0, tile.m0 + mine.m, tile.n0 + mine.n);
}

template <typename Tile>
static enum kg_status launch_groups(void (*kernel)(grouped_arguments), const struct gemm_call &call,
                                    const int32_t *offsets)
{
    grouped_arguments p;
    p.a = operand_of(call.a);
    p.b = operand_of(call.b);
    p.c = result_of(call);
    p.k = (int)call.k;
    p.groups = (int)call.batches;
    p.tiles_n = (int)gemm_blocks(call.n, Tile::BN);
    p.vector = gemm_aligned(&call.c, call.dtype) != 0;
    p.offsets = offsets;
    /* Of rows in whole tiles, and one tile more in each group that has rows. */
    const int64_t tiles = p.tiles_n * (call.m / Tile::BM + (p.groups < call.m ? p.groups : call.m));
    if (tiles > INT32_MAX)
        return KG_UNSUPPORTED;
    return launch_kernel(kernel, dim3((unsigned)tiles), dim3(Tile::THREADS), Tile::SHARED_BYTES,
                         call.stream, p);
}

template <typename T>
static enum kg_status launch_mma(const struct gemm_call &call, const int32_t *offsets)
{
    return gemm_aligned(&call.a, call.dtype) && gemm_aligned(&call.b, call.dtype)
               ? launch_groups<medium>(group_mma<T, medium, true>, call, offsets)
               : launch_groups<gemm::small>(group_mma<T, gemm::small, false>, call, offsets);
}

enum kg_status launch_groups_plain(const struct kg_problem *problem, const struct gemm_call *call,
                                   const int32_t *offsets)
{
    const struct product_sizes s = group_sizes_of(problem);
    if (!gemm_mma_dtype(&s))
        return launch_groups<simt_small>(group_simt<simt_small>, *call, offsets);
    return s.dtype == KG_F16    ? launch_mma<__half>(*call, offsets)
           : s.dtype == KG_BF16 ? launch_mma<__nv_bfloat16>(*call, offsets)
                                : launch_mma<float>(*call, offsets);
}

enum kg_status groups_of(const struct kg_problem *problem, const struct kg_args *args,
                         struct gemm_call *call, const int32_t **offsets)
{
    const struct product_sizes p = group_sizes_of(problem);
    const struct kg_tensor *ends = &args->in[2];
    *call = {};
    call->dtype = p.dtype;
    call->m = p.m;
    call->n = p.n;
    call->k = p.k;
    call->stream = args->stream;
    call->batches = kg_size(problem, "g");
    enum kg_status status = gemm_check_frame(&p, args, "grouped_gemm", 3, 1);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->in[0], p.dtype, p.m, p.k, &call->a);
    if (status == KG_OK)
        status = check_batches(&args->in[1], call, p.k, p.n, &call->b);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->out[0], p.dtype, p.m, p.n, &call->c);
    if (status == KG_OK && (!kg_is_tensor(ends, KG_I32, 1) || ends->shape[0] != call->batches + 1))
        return KG_BAD_ARGUMENT;
    *offsets = (const int32_t *)ends->data;
    return status;
}

bool serves_groups(const struct kg_problem *p, const struct kg_device *device)
{
    const struct product_sizes s = group_sizes_of(p);
    const int64_t groups = kg_size(p, "g");
    return gemm_is_op(&s, "grouped_gemm") && groups >= 1 && groups < INT32_MAX &&
           gemm_serves(device, s.m, s.n, s.k) && (gemm_mma_dtype(&s) || gemm_simt_dtype(&s)) &&
           gemm_blocks(s.n, 64) <= INT32_MAX / (s.m / 64 + (groups < s.m ? groups : s.m));
}

static int supports_groups(const struct kg_problem *p, const struct kg_device *device)
{
    return serves_groups(p, device);
}

static enum kg_status launch_plain_groups(const struct kg_problem *p, const struct kg_args *args)
{
    struct gemm_call call;
    const int32_t *offsets;
    const enum kg_status status = groups_of(p, args, &call, &offsets);
    return status == KG_OK ? launch_groups_plain(p, &call, offsets) : status;
}

} // namespace batched_gemm

extern "C" const struct kg_kernel kg_grouped_gemm = {
    sizeof(struct kg_kernel),
    0,
    "grouped_gemm",
    "grouped_gemm",
    batched_gemm::supports_groups,
    NULL,
    NULL,
    batched_gemm::launch_plain_groups,
    NULL,
};
