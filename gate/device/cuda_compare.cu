/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compare.cu: one pass over an output and its fp64 reference, by elements, rows and tiles.
 *
 * A block walks bands of DEVICE_TILE rows from tile to tile, a warp has some rows of each band and
 * a lane some columns of each tile. Sums of a row stay with the lanes until the band ends, sums of
 * a tile go over the block at once, so that no memory is needed for either. Then one block takes
 * what the blocks found together. The order of all additions is fixed by the sizes alone.
 */
#include "gate/device/cuda_device.cuh"
#include "gate/device/parts.h"
#include "kernels/ops/dtype.cuh"
#include "kernels/ops/dtype.h"

enum {
    THREADS = 512,
    BLOCKS = 512,
    LANES = 32,
    WARPS = THREADS / LANES,
    WARP_ROWS = DEVICE_TILE / WARPS,   /* that a warp has of a band */
    LANE_COLUMNS = DEVICE_TILE / LANES /* that a lane has of a tile */
};

struct parts_result {
    struct parts found;
    struct device_element bad, nonfinite, swallowed; /* the first ones */
};

template <typename T> struct pair {
    const T *value;
    const double *reference;
    int64_t rows, columns;
};

/* The reference as the output's dtype has it. */
template <typename T> static __device__ double rounded(double reference)
{
    T as_stored;
    store(&as_stored, reference);
    return load(&as_stored);
}

/* What is told of an element that is not what it must be. */
template <typename T>
static __device__ struct device_element element_at(const struct pair<T> &p,
                                                   const struct device_part_rule *rule, int64_t at)
{
    struct device_element e = {-1, 0.0, 0.0};
    if (at == PARTS_NONE)
        return e;
    const double reference = p.reference[at], expected = rounded<T>(reference);
    e.at = at;
    e.value = load(p.value + at);
    e.reference = parts_is_exact(rule, expected) ? expected : reference;
    return e;
}

/* The exponents of the smallest normal number of a dtype, and of its last place in 1. */
template <typename T> struct places;
template <> struct places<__half> {
    enum { LEAST = -14, LAST = -10 };
};
template <> struct places<__nv_bfloat16> {
    enum { LEAST = -126, LAST = -7 };
};
template <> struct places<float> {
    enum { LEAST = 1024, LAST = 0 }; /* no number counts */
};
template <> struct places<__nv_fp8_e4m3> : places<float> {
};
template <> struct places<__nv_fp8_e5m2> : places<float> {
};
template <> struct places<int8_t> : places<float> {
};

/* Half a step of the dtype away from 0 and towards it, and its ends, as of storage_nearest(). */
static __device__ double clamped(double value, double reference, double outward, double inward,
                                 double least, double most)
{
    const double below = value < 0.0 ? outward : inward, above = value < 0.0 ? inward : outward;
    return fmax(value <= least ? -INFINITY : value - below,
                fmin(value >= most ? INFINITY : value + above, reference));
}

static __device__ double nearest_float(double value, double reference, int lowest, int mantissa,
                                       double most)
{
    const int exponent = value == 0.0 ? lowest : max(ilogb(value), lowest);
    const double outward = ldexp(0.5, exponent - mantissa);
    const bool is_power = exponent > lowest && fabs(value) == ldexp(1.0, exponent);
    return clamped(value, reference, outward, is_power ? outward / 2 : outward, -most, most);
}

template <typename T> static __device__ double nearest(double value, double reference)
{
    return value;
}

template <> __device__ double nearest<__nv_fp8_e4m3>(double value, double reference)
{
    return nearest_float(value, reference, -6, 3, 448);
}

template <> __device__ double nearest<__nv_fp8_e5m2>(double value, double reference)
{
    return nearest_float(value, reference, -14, 2, 57344);
}

template <> __device__ double nearest<int8_t>(double value, double reference)
{
    return clamped(value, reference, 0.5, 0.5, -128, 127);
}

/* As that of host_parts.c. */
template <typename T>
static __device__ void note_bias(struct parts *f, double value, double reference)
{
    const int exponent = (__double2hiint(reference) >> 20 & 0x7ff) - 1023;
    if (exponent < places<T>::LEAST)
        return;
    const double unit = __hiloint2double((exponent + places<T>::LAST + 1023) << 20, 0);
    const double units = value / unit - rint(reference / unit);
    parts_note_bias(f, reference < 0.0 ? -units : units);
}

/* What an element adds to the sums of its row and tile. */
template <typename T>
static __device__ struct part_sum
measure(const struct pair<T> &p, const struct device_part_rule *rule, struct parts *f, int64_t at)
{
    const double value = load(p.value + at), reference = p.reference[at];
    struct part_element e = {at, value, reference, rounded<T>(reference), value};
    struct part_sum sum;
    if (!parts_is_exact(rule, e.expected) && isfinite(value))
        e.nearest = nearest<T>(value, reference);
    if (parts_measure(rule, f, &e, &sum))
        note_bias<T>(f, e.nearest, reference);
    return sum;
}

/* The sum over the lanes, in lane 0. */
static __device__ struct part_sum sum_of_warp(struct part_sum s)
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        s.error_sq += __shfl_down_sync(0xffffffffu, s.error_sq, width);
        s.reference_sq += __shfl_down_sync(0xffffffffu, s.reference_sq, width);
    }
    return s;
}

/* What a lane has of tile `tile`, added to the sums of the warp's rows too. */
template <typename T>
static __device__ struct part_sum
walk_tile(const struct pair<T> &p, const struct device_part_rule *rule, int64_t first_row,
          int64_t tile, struct part_sum rows[WARP_ROWS], struct parts *f)
{
    struct part_sum sum = {};
    const int64_t first_column = tile * DEVICE_TILE + threadIdx.x % LANES;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const int64_t row = first_row + r * WARPS;
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++) {
            const int64_t column = first_column + c * LANES;
            if (row >= p.rows || column >= p.columns)
                continue;
            const struct part_sum more = measure(p, rule, f, row * p.columns + column);
            parts_add(&rows[r], more);
            parts_add(&sum, more);
        }
    }
    return sum;
}

/* What all threads of the block found, in thread 0; `other` has room for half of them. */
static __device__ struct parts of_block(struct parts mine, struct parts *other)
{
    const int thread = (int)threadIdx.x;
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (thread >= width && thread < 2 * width)
            other[thread - width] = mine;
        __syncthreads();
        if (thread < width)
            parts_merge(&mine, &other[thread]);
    }
    return mine;
}

/* One band; a tile's sums of the warps are in the half of `of_warp` whose turn it is, so that the
 * next tile's do not wait until they are read. */
template <typename T>
static __device__ void walk_band(const struct pair<T> &p, const struct device_part_rule *rule,
                                 int64_t band, struct part_sum of_warp[2][WARPS], struct parts *f)
{
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int64_t tiles = (p.columns + DEVICE_TILE - 1) / DEVICE_TILE;
    const int64_t first_row = band * DEVICE_TILE + warp;
    const int64_t height = min(p.rows - band * DEVICE_TILE, (int64_t)DEVICE_TILE);
    struct part_sum rows[WARP_ROWS] = {};
    for (int64_t tile = 0; tile < tiles; tile++) {
        const struct part_sum mine = sum_of_warp(walk_tile(p, rule, first_row, tile, rows, f));
        if (lane == 0)
            of_warp[tile % 2][warp] = mine;
        __syncthreads();
        if (threadIdx.x != 0)
            continue;
        struct part_sum sum = {};
        for (int w = 0; w < WARPS; w++)
            parts_add(&sum, of_warp[tile % 2][w]);
        const int64_t width = min(p.columns - tile * DEVICE_TILE, (int64_t)DEVICE_TILE);
        parts_judge(rule, &f->tile, sum, height * width, band * tiles + tile);
    }
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const struct part_sum sum = sum_of_warp(rows[r]);
        const int64_t row = first_row + r * WARPS;
        if (lane != 0 || row >= p.rows)
            continue;
        parts_judge(rule, &f->row, sum, p.columns, row);
        parts_add(&f->all, sum);
    }
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    compare_bands(struct pair<T> p, struct device_part_rule rule, struct parts *out)
{
    __shared__ struct parts other[THREADS / 2];
    __shared__ struct part_sum of_warp[2][WARPS];
    struct parts mine = parts_nothing();
    const int64_t bands = (p.rows + DEVICE_TILE - 1) / DEVICE_TILE;
    for (int64_t band = blockIdx.x; band < bands; band += gridDim.x)
        walk_band(p, &rule, band, of_warp, &mine);
    mine = of_block(mine, other);
    if (threadIdx.x == 0)
        out[blockIdx.x] = mine;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    take_together(struct pair<T> p, struct device_part_rule rule, const struct parts *parts, int n,
                  struct parts_result *out)
{
    __shared__ struct parts other[THREADS / 2];
    struct parts all = parts_nothing();
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        parts_merge(&all, &parts[i]);
    all = of_block(all, other);
    if (threadIdx.x != 0)
        return;
    out->found = all;
    out->bad = element_at(p, &rule, all.first_bad);
    out->nonfinite = element_at(p, &rule, all.first_nonfinite);
    out->swallowed = element_at(p, &rule, all.first_swallowed);
}

template <typename T>
static enum gate_status compare(struct cuda_device *d, const struct kg_tensor *t, int64_t elements,
                                const double *reference, const struct device_part_rule *rule,
                                struct parts_result *result, struct gate_error *err)
{
    const int64_t columns = t->shape[t->rank - 1];
    const struct pair<T> p = {
        (const T *)t->data, reference, elements / columns, columns
    };
    const int64_t bands = (p.rows + DEVICE_TILE - 1) / DEVICE_TILE;
    const int blocks = (int)(bands < BLOCKS ? bands : BLOCKS);
    struct parts *parts = (struct parts *)d->compare_scratch;
    struct parts_result *on_device = (struct parts_result *)(parts + BLOCKS);
    compare_bands<T><<<blocks, THREADS, 0, d->stream>>>(p, *rule, parts);
    CUDA_TRY(cudaGetLastError(), err);
    take_together<T><<<1, THREADS, 0, d->stream>>>(p, *rule, parts, blocks, on_device);
    CUDA_TRY(cudaGetLastError(), err);
    CUDA_TRY(cudaMemcpyAsync(result, on_device, sizeof(*result), cudaMemcpyDeviceToHost, d->stream),
             err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

size_t cuda_compare_scratch_bytes(void)
{
    return BLOCKS * sizeof(struct parts) + sizeof(struct parts_result);
}

enum gate_status cuda_compare(struct device *device, const struct kg_tensor *out,
                              const double *reference, const struct device_part_rule *rule,
                              struct device_comparison *result, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    struct parts_result r = {};
    int64_t elements = 1;
    for (uint32_t i = 0; i < out->rank; i++)
        elements *= out->shape[i];
    const uint32_t dtype = out->dtype;
#define COMPARE(T) TRY(compare<T>(d, out, elements, reference, rule, &r, err))
    if (dtype == KG_E4M3)
        COMPARE(__nv_fp8_e4m3);
    else if (dtype == KG_E5M2)
        COMPARE(__nv_fp8_e5m2);
    else if (dtype == KG_I8)
        COMPARE(int8_t);
    else if (dtype > KG_F32)
        return gate_fail(err, GATE_INTERNAL, "cannot compare elements of unknown dtype %u", dtype);
    KG_DISPATCH(dtype, COMPARE)
#undef COMPARE
    *result = parts_tell(&r.found, elements, out->shape[out->rank - 1]);
    result->first_bad = r.bad;
    result->first_nonfinite = r.nonfinite;
    result->first_swallowed = r.swallowed;
    return GATE_OK;
}
