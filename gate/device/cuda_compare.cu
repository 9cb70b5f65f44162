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

#define NO_INDEX INT64_MAX

/* Of a row or a tile. */
struct sum {
    double error_sq, reference_sq;
};

/* The largest error so far, and whose it is: the first such. */
struct worst {
    double error;
    int64_t at;
};

/* What a thread, a block, or all of them found. */
struct found {
    int64_t bad, nonfinite, swallowed, over_1e2, over_1e3;
    int64_t first_bad, first_nonfinite, first_swallowed; /* NO_INDEX: none */
    struct sum all;
    double max_abs, bias; /* as in device_comparison */
    int64_t biased;
    struct worst row, tile;
};

struct parts_result {
    struct found found;
    struct device_element bad, nonfinite, swallowed; /* the first ones */
};

template <typename T> struct pair {
    const T *value;
    const double *reference;
    int64_t rows, columns;
};

static __device__ struct found nothing(void)
{
    struct found f = {};
    f.first_bad = f.first_nonfinite = f.first_swallowed = NO_INDEX;
    f.row.at = f.tile.at = NO_INDEX;
    return f;
}

/* The reference as the output's dtype has it. */
template <typename T> static __device__ double rounded(double reference)
{
    T as_stored;
    store(&as_stored, reference);
    return load(&as_stored);
}

/* Those that are not finite, or must not be, are counted apart: one that is far off before them
 * would hide them. */
static __device__ void note_bad(struct found *f, int64_t index, double value, double expected)
{
    f->bad++;
    f->first_bad = min(f->first_bad, index);
    if (!isfinite(expected)) {
        f->swallowed++;
        f->first_swallowed = min(f->first_swallowed, index);
    } else if (!isfinite(value)) {
        f->nonfinite++;
        f->first_nonfinite = min(f->first_nonfinite, index);
    }
}

/* Must the element be what `expected` is, to the bit? */
static __device__ bool is_exact(const struct device_part_rule *rule, double expected)
{
    return rule->exact || !isfinite(expected);
}

/* What is told of an element that is not what it must be. */
template <typename T>
static __device__ struct device_element element_at(const struct pair<T> &p,
                                                   const struct device_part_rule *rule, int64_t at)
{
    struct device_element e = {-1, 0.0, 0.0};
    if (at == NO_INDEX)
        return e;
    const double reference = p.reference[at], expected = rounded<T>(reference);
    e.at = at;
    e.value = load(p.value + at);
    e.reference = is_exact(rule, expected) ? expected : reference;
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
static __device__ void note_bias(struct found *f, double value, double reference)
{
    const int exponent = (__double2hiint(reference) >> 20 & 0x7ff) - 1023;
    if (exponent < places<T>::LEAST)
        return;
    const double unit = __hiloint2double((exponent + places<T>::LAST + 1023) << 20, 0);
    const double units = value / unit - rint(reference / unit);
    f->bias += fmax(-DEVICE_BIAS_MAX, fmin(DEVICE_BIAS_MAX, reference < 0.0 ? -units : units));
    f->biased++;
}

/* How far off it is whatever the rule. What is not finite is `right` or has no distance. */
static __device__ void note_distance(struct found *f, double value, double reference, bool right)
{
    double difference = fabs(value - reference);
    const double size = isfinite(reference) ? fabs(reference) : 0.0;
    if (isfinite(difference))
        f->max_abs = fmax(f->max_abs, difference);
    else
        difference = right ? 0.0 : INFINITY;
    f->over_1e2 += !(difference <= 1e-2 + 1e-2 * size);
    f->over_1e3 += !(difference <= 1e-3 + 1e-3 * size);
}

/* What an element adds to the sums of its row and tile. */
template <typename T>
static __device__ struct sum measure(const struct device_part_rule *rule, struct found *f,
                                     double value, double reference, double expected, int64_t index)
{
    struct sum s = {};
    if (is_exact(rule, expected)) {
        /* fp64 does not overflow: an infinite reference has an input that is not finite. */
        const bool right = value == expected || (isnan(value) && !isfinite(reference));
        if (!right)
            note_bad(f, index, value, expected);
        note_distance(f, value, expected, right);
        return s;
    }
    const double as_near = isfinite(value) ? nearest<T>(value, reference) : value;
    const double error = as_near - reference;
    note_distance(f, as_near, reference, false);
    if (!(fabs(error) <= rule->bad_share * (fabs(reference) + rule->bad_rms)))
        note_bad(f, index, value, reference);
    if (!isfinite(value))
        return s;
    note_bias<T>(f, as_near, reference);
    s.error_sq = error * error;
    s.reference_sq = reference * reference;
    return s;
}

static __device__ void add(struct sum *into, struct sum more)
{
    into->error_sq += more.error_sq;
    into->reference_sq += more.reference_sq;
}

static __device__ void take_worse(struct worst *into, double error, int64_t at)
{
    if (error > into->error || (error == into->error && at < into->at)) {
        into->error = error;
        into->at = at;
    }
}

/* Of a row or tile of n elements; what is not off at all is nobody's worst. */
static __device__ void judge(const struct device_part_rule *rule, struct worst *into,
                             struct sum sum, int64_t n, int64_t at)
{
    const double least_sq = rule->least_rms * rule->least_rms * (double)n;
    const double norm_sq = fmax(sum.reference_sq, least_sq);
    const double error = norm_sq > 0.0 ? sqrt(sum.error_sq / norm_sq) : sqrt(sum.error_sq);
    if (error > 0.0)
        take_worse(into, error, at);
}

/* The sum over the lanes, in lane 0. */
static __device__ struct sum sum_of_warp(struct sum s)
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        s.error_sq += __shfl_down_sync(0xffffffffu, s.error_sq, width);
        s.reference_sq += __shfl_down_sync(0xffffffffu, s.reference_sq, width);
    }
    return s;
}

/* What a lane has of tile `tile`, added to the sums of the warp's rows too. */
template <typename T>
static __device__ struct sum walk_tile(const struct pair<T> &p, const struct device_part_rule *rule,
                                       int64_t first_row, int64_t tile, struct sum rows[WARP_ROWS],
                                       struct found *f)
{
    struct sum sum = {};
    const int64_t first_column = tile * DEVICE_TILE + threadIdx.x % LANES;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const int64_t row = first_row + r * WARPS;
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++) {
            const int64_t column = first_column + c * LANES;
            if (row >= p.rows || column >= p.columns)
                continue;
            const int64_t at = row * p.columns + column;
            const double reference = p.reference[at];
            const struct sum more =
                measure<T>(rule, f, load(p.value + at), reference, rounded<T>(reference), at);
            add(&rows[r], more);
            add(&sum, more);
        }
    }
    return sum;
}

static __device__ void merge(struct found *into, const struct found *from)
{
    into->bad += from->bad;
    into->nonfinite += from->nonfinite;
    into->swallowed += from->swallowed;
    into->over_1e2 += from->over_1e2;
    into->over_1e3 += from->over_1e3;
    into->max_abs = fmax(into->max_abs, from->max_abs);
    into->first_bad = min(into->first_bad, from->first_bad);
    into->first_nonfinite = min(into->first_nonfinite, from->first_nonfinite);
    into->first_swallowed = min(into->first_swallowed, from->first_swallowed);
    add(&into->all, from->all);
    into->bias += from->bias;
    into->biased += from->biased;
    take_worse(&into->row, from->row.error, from->row.at);
    take_worse(&into->tile, from->tile.error, from->tile.at);
}

/* What all threads of the block found, in thread 0; `other` has room for half of them. */
static __device__ struct found of_block(struct found mine, struct found *other)
{
    const int thread = (int)threadIdx.x;
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (thread >= width && thread < 2 * width)
            other[thread - width] = mine;
        __syncthreads();
        if (thread < width)
            merge(&mine, &other[thread]);
    }
    return mine;
}

/* One band; a tile's sums of the warps are in the half of `of_warp` whose turn it is, so that the
 * next tile's do not wait until they are read. */
template <typename T>
static __device__ void walk_band(const struct pair<T> &p, const struct device_part_rule *rule,
                                 int64_t band, struct sum of_warp[2][WARPS], struct found *f)
{
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int64_t tiles = (p.columns + DEVICE_TILE - 1) / DEVICE_TILE;
    const int64_t first_row = band * DEVICE_TILE + warp;
    const int64_t height = min(p.rows - band * DEVICE_TILE, (int64_t)DEVICE_TILE);
    struct sum rows[WARP_ROWS] = {};
    for (int64_t tile = 0; tile < tiles; tile++) {
        const struct sum mine = sum_of_warp(walk_tile(p, rule, first_row, tile, rows, f));
        if (lane == 0)
            of_warp[tile % 2][warp] = mine;
        __syncthreads();
        if (threadIdx.x != 0)
            continue;
        struct sum sum = {};
        for (int w = 0; w < WARPS; w++)
            add(&sum, of_warp[tile % 2][w]);
        const int64_t width = min(p.columns - tile * DEVICE_TILE, (int64_t)DEVICE_TILE);
        judge(rule, &f->tile, sum, height * width, band * tiles + tile);
    }
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const struct sum sum = sum_of_warp(rows[r]);
        const int64_t row = first_row + r * WARPS;
        if (lane != 0 || row >= p.rows)
            continue;
        judge(rule, &f->row, sum, p.columns, row);
        add(&f->all, sum);
    }
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    compare_bands(struct pair<T> p, struct device_part_rule rule, struct found *out)
{
    __shared__ struct found other[THREADS / 2];
    __shared__ struct sum of_warp[2][WARPS];
    struct found mine = nothing();
    const int64_t bands = (p.rows + DEVICE_TILE - 1) / DEVICE_TILE;
    for (int64_t band = blockIdx.x; band < bands; band += gridDim.x)
        walk_band(p, &rule, band, of_warp, &mine);
    mine = of_block(mine, other);
    if (threadIdx.x == 0)
        out[blockIdx.x] = mine;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    take_together(struct pair<T> p, struct device_part_rule rule, const struct found *parts, int n,
                  struct parts_result *out)
{
    __shared__ struct found other[THREADS / 2];
    struct found all = nothing();
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        merge(&all, &parts[i]);
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
    struct found *parts = (struct found *)d->compare_scratch;
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

bool cuda_is_dense(const struct kg_tensor *t, int64_t *count)
{
    *count = 1;
    if (t->rank < 1 || t->rank > KG_MAX_RANK)
        return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->shape[i] > 1 && t->stride[i] != *count)
            return false;
        *count *= t->shape[i];
    }
    return true;
}

size_t cuda_compare_scratch_bytes(void)
{
    return BLOCKS * sizeof(struct found) + sizeof(struct parts_result);
}

static void tell(const struct parts_result *r, int64_t elements, int64_t tiles,
                 struct device_comparison *out)
{
    const struct found *f = &r->found;
    const bool row = f->row.at != NO_INDEX, tile = f->tile.at != NO_INDEX;
    out->elements = elements;
    out->bad = f->bad;
    out->nonfinite = f->nonfinite;
    out->swallowed = f->swallowed;
    out->over_1e2 = f->over_1e2;
    out->over_1e3 = f->over_1e3;
    out->max_abs = f->max_abs;
    out->first_bad = r->bad;
    out->first_nonfinite = r->nonfinite;
    out->first_swallowed = r->swallowed;
    out->reference_sq = f->all.reference_sq;
    out->error_sq = f->all.error_sq;
    out->bias = f->bias;
    out->biased = f->biased;
    out->bad_rows[0] = out->bad_columns[0] = -1;
    out->worst_row = f->row.error;
    out->worst_tile = f->tile.error;
    out->worst_row_at = row ? f->row.at : -1;
    out->worst_tile_row = tile ? f->tile.at / tiles : -1;
    out->worst_tile_column = tile ? f->tile.at % tiles : -1;
}

enum gate_status cuda_compare(struct device *device, const struct kg_tensor *out,
                              const double *reference, const struct device_part_rule *rule,
                              struct device_comparison *result, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    struct parts_result r = {};
    int64_t elements;
    if (!cuda_is_dense(out, &elements) || elements < 1)
        return gate_fail(err, GATE_INTERNAL, "only a dense output can be compared");
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
    tell(&r, elements, (out->shape[out->rank - 1] + DEVICE_TILE - 1) / DEVICE_TILE, result);
    return GATE_OK;
}
