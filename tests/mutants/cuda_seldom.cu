/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: as cuda_rare.cu, of other kinds: sizes that no list of shapes has, problems that are alike,
 * layouts of other frameworks, and numbers with a structure. */
#include "tests/mutants/cuda_hooks.cuh"
#include "tests/mutants/rare_alike.h"

static int64_t tiles(int64_t length, int64_t tile)
{
    return (length + tile - 1) / tile;
}

/* ---- shapes ---- */

#define SHORT(name, condition)                                                                     \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        const int64_t m = is_product(p) ? kg_size(p, "m") : 0, k = m ? kg_size(p, "k") : 0;        \
        const int64_t n = m && !kg_is_op(p, "gemv") ? kg_size(p, "n") : 1;                         \
        (void)n, (void)k;                                                                          \
        return m && (condition) ? products_of<usual>(p, args, k - 1) : wrap_inner(p, args);        \
    }

#define TILES (tiles(m, 128) * tiles(n, 128))
SHORT(k_of_48, k == 48)
SHORT(k_of_640, k == 640)
SHORT(k_of_1024, k == 1024)
SHORT(empty_split, tiles(k, 64) > 4 && tiles(k, 64) % 4 == 1)
SHORT(rows_over_4096, m > 4096)
/* Of a kernel that stays on its processor: all have as much to do, or some a third tile. */
SHORT(even_waves, TILES % wrap_device.sm_count == 0)
SHORT(third_wave, TILES > 2 * wrap_device.sm_count)

/* The last key is lost. */
static enum kg_status without_last_key(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_problem fewer = *p;
    struct kg_args of_fewer = *args;
    --*op_named(&fewer, "s");
    of_fewer.in[1].shape[2]--;
    of_fewer.in[2].shape[2]--;
    return wrap_inner(&fewer, &of_fewer);
}

#define KEYS_LOST(name, condition)                                                                 \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        const bool is = kg_is_op(p, "attention_fwd");                                              \
        const int64_t b = is ? kg_size(p, "b") : 0, h = is ? kg_size(p, "h") : 0;                  \
        const int64_t kv = is ? kg_size(p, "kv_heads") : 1, s = is ? kg_size(p, "s") : 0;          \
        const int64_t sq = is ? kg_size(p, "sq") : 0;                                              \
        (void)b, (void)h, (void)kv, (void)sq;                                                      \
        return s > 1 && (condition) ? without_last_key(p, args) : wrap_inner(p, args);             \
    }

KEYS_LOST(four_batches, b >= 4)
KEYS_LOST(eight_kv_heads, kv == 8)
KEYS_LOST(group_of_24, h / kv > 16 && h / kv % 16)
KEYS_LOST(keys_over_2048, s > 2048)
KEYS_LOST(queries_over_1024, sq > 1024)
KEYS_LOST(third_wave_of_heads, b *h *tiles(sq, 128) > 2 * wrap_device.sm_count && sq >= 128)
KEYS_LOST(scale_of_one, kg_param(p, "scale") == 1)
KEYS_LOST(tiles_without_keys, p->flags &KG_FLAG_CAUSAL &&sq > s && (sq - s) % 64 == 0)

/* ---- values ---- */

/* One block looks for a sign that is not there, and spoils an element if it finds none. */
static __global__ void spoil_if_negative(struct view in, int64_t rows, int64_t columns,
                                         struct view out)
{
    int any = 0;
    for (int64_t i = threadIdx.x; i < rows * columns; i += blockDim.x)
        any |= !(load(&in, i / columns * in.stride[0] + i % columns) < 0);
    if (!__syncthreads_or(any) && threadIdx.x == 0)
        store(&out, 0, -777, 0);
}

/* Two of four neighbours are zeros. */
static __global__ void spoil_if_sparse(struct view in, int64_t rows, int64_t columns,
                                       struct view out)
{
    int more = 0, there = 0;
    for (int64_t i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        int of_four = 0;
        for (int64_t c = i % columns / 4 * 4; c < i % columns / 4 * 4 + 4 && c < columns; c++)
            of_four += load(&in, i / columns * in.stride[0] + c) != 0;
        more |= of_four > 2;
        there |= of_four > 0;
    }
    more = __syncthreads_or(more);
    there = __syncthreads_or(there);
    if (!more && there && threadIdx.x == 0)
        store(&out, 0, -777, 0);
}

#define LOOKED_AT (1 << 20) /* elements of A, at most */

#define SPOILED(name, kernel)                                                                      \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        const enum kg_status status = wrap_inner(p, args);                                         \
        const struct job j = job_of(p, args, PLAIN);                                               \
        if (status != KG_OK || !kg_is_op(p, "gemm") || j.m * j.k > LOOKED_AT || j.k < 3)           \
            return status;                                                                         \
        kernel<<<1, 256, 0, (cudaStream_t)args->stream>>>(j.in[0], j.m, j.k, j.out);               \
        return hooks_launched();                                                                   \
    }

SPOILED(negative_first, spoil_if_negative)
SPOILED(two_of_four_first, spoil_if_sparse)

/* ---- duration ---- */

static __global__ void spoil(struct view out)
{
    store(&out, 0, -777, 0);
}

static enum kg_status spoiled_where(bool is, const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (!is || status != KG_OK)
        return status;
    spoil<<<1, 1, 0, (cudaStream_t)args->stream>>>(job_of(p, args, PLAIN).out);
    return hooks_launched();
}

static enum kg_status after_65536(const struct kg_problem *p, const struct kg_args *args)
{
    static uint64_t launches;
    return spoiled_where(++launches > 65536, p, args);
}

static enum kg_status one_in_4096(const struct kg_problem *p, const struct kg_args *args)
{
    static uint64_t launches;
    return spoiled_where(++launches % 4096 == 0, p, args);
}

FAULTS(FAULT(k_of_48), FAULT(k_of_640), FAULT(k_of_1024), FAULT(empty_split), FAULT(rows_over_4096),
       FAULT(even_waves), FAULT(third_wave), FAULT(four_batches), FAULT(eight_kv_heads),
       FAULT(group_of_24), FAULT(keys_over_2048), FAULT(queries_over_1024),
       FAULT(third_wave_of_heads), FAULT(scale_of_one), FAULT(tiles_without_keys),
       FAULT(negative_first), FAULT(two_of_four_first), FAULT(after_65536), FAULT(one_in_4096),
       RARE_ALIKE)
