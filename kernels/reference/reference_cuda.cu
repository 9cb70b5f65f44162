/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_cuda.cu: the fp64 reference of every op on the device, see reference_cuda.h.
 *
 * It judges the kernels, so it shares nothing with them: its own loads, its own loops, no tensor
 * cores, no fast arithmetic. Three kernels serve all ops: a product of two strided views, column
 * sums, and attention. Inputs are turned into fp64 once for each tile, in shared memory, since the
 * conversion is the slow part; each thread keeps a few sums in registers. That is all the tuning
 * there is, and it is enough for an 8192^3 product to take a fraction of a second on a chip with
 * full-rate fp64.
 */
#include "kernels/reference/reference_cuda.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/ops/dtype.cuh"
#include "kernels/ops/op.h"

/* A block of SIDE x SIDE threads computes an N x N piece of a product, STEP terms at a time; each
 * thread has N / SIDE times N / SIDE sums, SIDE apart. A product alone has room for a large N, so
 * that an element which was brought in and converted once serves many sums. */
enum { SIDE = 16, THREADS = SIDE * SIDE, STEP = 16, LARGE = 128, TILE = 64, EACH = TILE / SIDE };

/* One more than N, so that a column of the tile lies in different banks. */
template <int N> struct tile {
    double at[STEP][N + 1];
};

/* One operand of a product: element (i, l) is data[i * outer + l * inner], where the product sums
 * over l. Where `gate` is set, elements whose gate is not positive are 0. */
template <typename T> struct view {
    const T *data;
    int64_t outer, inner;
    const T *gate;
    int64_t gate_outer, gate_inner;
    const float *scale;  /* of OP_BLOCK elements each along l; NULL: there is none */
    int64_t scale_outer; /* from i, or from OP_BLOCK of them, to the next */
    int64_t scale_inner; /* from one block along l to the next */
    bool scale_rows;     /* each i has its own */
};

static_assert(OP_BLOCK % STEP == 0 && LARGE == OP_BLOCK, "a tile has one block along each axis");

/* Element (i, l) of the view that begins at (i0, l0) of `v`. */
template <typename T>
static __device__ struct view<T> from(const struct view<T> &v, int64_t i0, int64_t l0) {
    struct view<T> rest = v;
    rest.data += i0 * v.outer + l0 * v.inner;
    if (v.gate)
        rest.gate += i0 * v.gate_outer + l0 * v.gate_inner;
    if (v.scale)
        rest.scale +=
            (v.scale_rows ? i0 : i0 / OP_BLOCK) * v.scale_outer + l0 / OP_BLOCK * v.scale_inner;
    return rest;
}

template <typename T>
static __device__ double element(const struct view<T> &v, int i, int l)
{
    if (v.gate && !(load(v.gate + i * v.gate_outer + l * v.gate_inner) > 0.0))
        return 0.0;
    const double scale = v.scale ? load(v.scale + (v.scale_rows ? i * v.scale_outer : 0)) : 1.0;
    return load(v.data + i * v.outer + l * v.inner) * scale;
}

/* Loads elements (i0 .., l0 ..) of a view whose sizes are n_i and n_l; 0 outside of it.
 * Neighbouring threads take neighbouring elements of memory. */
template <typename T, int N>
static __device__ void load_tile(struct tile<N> &to, const struct view<T> &v, int64_t i0,
                                 int64_t l0, int64_t n_i, int64_t n_l)
{
    const struct view<T> here = from(v, i0, l0);
    const int height = (int)min(n_i - i0, (int64_t)N), width = (int)min(n_l - l0, (int64_t)STEP);
#pragma unroll
    for (int turn = 0; turn < N * STEP / THREADS; turn++) {
        const int e = turn * THREADS + (int)threadIdx.x;
        const int i = v.inner == 1 ? e / STEP : e % N;
        const int l = v.inner == 1 ? e % STEP : e / N;
        to.at[l][i] = i < height && l < width ? element(here, i, l) : 0.0;
    }
}

/* sum[r][c] += a . b over STEP terms, for row y + r * SIDE and column x + c * SIDE of the tiles. */
template <int N>
static __device__ void multiply_tiles(double sum[N / SIDE][N / SIDE], const struct tile<N> &a,
                                      const struct tile<N> &b, int y, int x)
{
#pragma unroll 2 /* more of it spills registers */
    for (int l = 0; l < STEP; l++) {
        double row[N / SIDE], column[N / SIDE];
        for (int e = 0; e < N / SIDE; e++) {
            row[e] = a.at[l][y + e * SIDE];
            column[e] = b.at[l][x + e * SIDE];
        }
        for (int r = 0; r < N / SIDE; r++)
            for (int c = 0; c < N / SIDE; c++)
                sum[r][c] = fma(row[r], column[c], sum[r][c]);
    }
}

/* Keeps a NaN, so that a poisoned input cannot hide behind it. */
static __device__ double relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* The block's tile of c[m, n] = a[m, k] b[n, k]^T; with a bias, the ReLU of that plus bias[n]. */
template <typename T>
static __device__ void compute_tile(const struct view<T> &a, const struct view<T> &b, const T *bias,
                                    double *c, int64_t m, int64_t n, int64_t k)
{
    __shared__ struct tile<LARGE> a_tile, b_tile;
    const int y = (int)threadIdx.x / SIDE, x = (int)threadIdx.x % SIDE;
    const int64_t tiles_across = (n + LARGE - 1) / LARGE;
    const int64_t i0 = blockIdx.x / tiles_across * LARGE;
    const int64_t j0 = blockIdx.x % tiles_across * LARGE;
    double sum[LARGE / SIDE][LARGE / SIDE] = {};

    for (int64_t l0 = 0; l0 < k; l0 += STEP) {
        __syncthreads();
        load_tile(a_tile, a, i0, l0, m, k);
        load_tile(b_tile, b, j0, l0, n, k);
        __syncthreads();
        multiply_tiles(sum, a_tile, b_tile, y, x);
    }
    for (int r = 0; r < LARGE / SIDE; r++) {
        for (int s = 0; s < LARGE / SIDE; s++) {
            const int64_t i = i0 + y + r * SIDE, j = j0 + x + s * SIDE;
            if (i < m && j < n)
                c[i * n + j] = bias ? relu(sum[r][s] + load(bias + j)) : sum[r][s];
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    product(struct view<T> a, struct view<T> b, const T *bias, double *c, int64_t m, int64_t n,
            int64_t k)
{
    compute_tile(a, b, bias, c, m, n, k);
}

/* The rows of group blockIdx.y, whose matrices are `apart`; there are as many blocks as for all
 * rows. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    group_product(struct view<T> a, struct view<T> b, int64_t apart, const int32_t *offsets,
                  double *c, int64_t n, int64_t k)
{
    const int64_t first = offsets[blockIdx.y], rows = offsets[blockIdx.y + 1] - first;
    b.data += blockIdx.y * apart;
    if (blockIdx.x / ((n + LARGE - 1) / LARGE) * LARGE < rows)
        compute_tile(from(a, first, 0), b, (const T *)NULL, c + first * n, rows, n, k);
}

/* out[i] = sum of v(i, l) over l; one thread a sum. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    sums(struct view<T> v, double *out, int64_t n_i, int64_t n_l)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n_i)
        return;
    double sum = 0.0;
#pragma unroll 8
    for (int64_t l = 0; l < n_l; l++)
        sum += element(from(v, i, l), 0, 0);
    out[i] = sum;
}

/* A block computes CHUNK dimensions of the output of TILE queries of one head. It walks the keys
 * TILE at a time: scores, their exponentials against the largest score so far, and the weighted sum
 * of the values, which is scaled down whenever a larger score turns up. A head that is wider than
 * the largest CHUNK is computed in several blocks, each of which computes the scores anew. */
enum { CHUNK_SMALL = 64, CHUNK_LARGE = 128 };

template <typename T> struct heads {
    const T *data;
    int64_t batch, head, row; /* strides; the last one is 1 */
};

template <typename T> struct attention {
    struct heads<T> q, k, v;
    double *o;
    int64_t n_heads, heads_a_kv_head, seqlen_q, seqlen_kv, head_dim;
    int64_t query_tiles, chunks;
    double scale;
    bool causal;
};

template <int CHUNK> struct attention_shared {
    union {
        struct {
            struct tile<TILE> q, k;
        };
        double v[STEP][CHUNK];
    };
    double weight[TILE][TILE + 1];
};

/* Rows of one head as an operand of a product over the head's dimensions. */
template <typename T>
static __device__ struct view<T> rows_of(const struct heads<T> &t, int64_t batch, int64_t head) {
    return {t.data + batch * t.batch + head * t.head, t.row, 1, NULL, 0, 0};
}

/* The SIDE threads of a row exchange in a fixed pattern, so all of them get the same bits. */
static __device__ double
row_max(double x)
{
    for (int lane = SIDE / 2; lane > 0; lane /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}

static __device__ double row_sum(double x)
{
    for (int lane = SIDE / 2; lane > 0; lane /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* Turns one row's scores into weights against the new maximum. Returns the factor that what was
 * summed so far must be scaled by. A key that the row does not see has weight 0. */
static __device__ double weigh_row(double score[EACH], const bool seen[EACH], double *max,
                                   double *total)
{
    double top = *max;
    for (int c = 0; c < EACH; c++)
        top = seen[c] ? fmax(top, score[c]) : top;
    top = row_max(top);
    double weights = 0.0;
    for (int c = 0; c < EACH; c++) {
        score[c] = seen[c] ? exp(score[c] - top) : 0.0;
        weights += score[c];
    }
    const double factor = *total > 0.0 ? exp(*max - top) : 0.0;
    *total = *total * factor + row_sum(weights);
    *max = top;
    return factor;
}

/* sum[r][c] += weight . v over STEP keys, of which row r sees the first `seen[r]`: the value of a
 * key that is not seen must not come in even as 0 times NaN. */
template <int CHUNK>
static __device__ void add_values(double sum[EACH][CHUNK / SIDE],
                                  const struct attention_shared<CHUNK> &shared,
                                  const int seen[EACH], int step, int y, int x)
{
#pragma unroll 2
    for (int l = 0; l < STEP; l++) {
        double value[CHUNK / SIDE];
        for (int c = 0; c < CHUNK / SIDE; c++)
            value[c] = shared.v[l][x + c * SIDE];
        for (int r = 0; r < EACH; r++) {
            const double weight = shared.weight[y + r * SIDE][step + l];
            if (l < seen[r])
                for (int c = 0; c < CHUNK / SIDE; c++)
                    sum[r][c] = fma(weight, value[c], sum[r][c]);
        }
    }
}

template <typename T, int CHUNK>
static __device__ void load_values(struct attention_shared<CHUNK> &shared, const struct view<T> &v,
                                   int64_t j0, int64_t d0, int64_t n_j, int64_t n_d)
{
    const struct view<T> here = from(v, j0, d0);
    const int height = (int)min(n_j - j0, (int64_t)STEP);
    const int width = (int)min(n_d - d0, (int64_t)CHUNK);
#pragma unroll
    for (int turn = 0; turn < STEP * CHUNK / THREADS; turn++) {
        const int e = turn * THREADS + (int)threadIdx.x, j = e / CHUNK, d = e % CHUNK;
        shared.v[j][d] = j < height && d < width ? element(here, j, d) : 0.0;
    }
}

template <typename T, int CHUNK>
static __global__ void __launch_bounds__(THREADS, 2) attend(struct attention<T> a)
{
    enum { WIDE = CHUNK / SIDE };
    extern __shared__ double shared_memory[];
    struct attention_shared<CHUNK> &shared = *(struct attention_shared<CHUNK> *)shared_memory;
    const int y = (int)threadIdx.x / SIDE, x = (int)threadIdx.x % SIDE;
    const int64_t d0 = blockIdx.x % a.chunks * CHUNK;
    const int64_t i0 = blockIdx.x / a.chunks % a.query_tiles * TILE;
    const int64_t batch_head = blockIdx.x / a.chunks / a.query_tiles;
    const int64_t batch = batch_head / a.n_heads, head = batch_head % a.n_heads;
    const struct view<T> q = rows_of(a.q, batch, head);
    const struct view<T> k = rows_of(a.k, batch, head / a.heads_a_kv_head);
    const struct view<T> v = rows_of(a.v, batch, head / a.heads_a_kv_head);

    int64_t seen[EACH]; /* row r sees the keys below this */
    double top[EACH], total[EACH], sum[EACH][WIDE] = {};
    for (int r = 0; r < EACH; r++) {
        const int64_t last = i0 + y + r * SIDE + a.seqlen_kv - a.seqlen_q;
        seen[r] = a.causal ? min(last + 1, a.seqlen_kv) : a.seqlen_kv;
        top[r] = -INFINITY;
        total[r] = 0.0;
    }
    const int64_t last_of_tile = i0 + TILE - 1 + a.seqlen_kv - a.seqlen_q;
    const int64_t keys = a.causal ? min(last_of_tile + 1, a.seqlen_kv) : a.seqlen_kv;

    for (int64_t j0 = 0; j0 < keys; j0 += TILE) {
        double score[EACH][EACH] = {};
        for (int64_t l0 = 0; l0 < a.head_dim; l0 += STEP) {
            __syncthreads();
            load_tile(shared.q, q, i0, l0, a.seqlen_q, a.head_dim);
            load_tile(shared.k, k, j0, l0, a.seqlen_kv, a.head_dim);
            __syncthreads();
            multiply_tiles(score, shared.q, shared.k, y, x);
        }
        for (int r = 0; r < EACH; r++) {
            bool is_seen[EACH];
            for (int c = 0; c < EACH; c++) {
                is_seen[c] = j0 + x + c * SIDE < seen[r];
                score[r][c] *= a.scale;
            }
            const double factor = weigh_row(score[r], is_seen, &top[r], &total[r]);
            for (int c = 0; c < EACH; c++)
                shared.weight[y + r * SIDE][x + c * SIDE] = score[r][c];
            for (int c = 0; c < WIDE; c++)
                sum[r][c] *= factor;
        }
        for (int step = 0; step < TILE && j0 + step < keys; step += STEP) {
            __syncthreads();
            load_values(shared, v, j0 + step, d0, a.seqlen_kv, a.head_dim);
            __syncthreads();
            int seen_here[EACH];
            for (int r = 0; r < EACH; r++)
                seen_here[r] = (int)max((int64_t)0, min(seen[r] - j0 - step, (int64_t)STEP));
            add_values(sum, shared, seen_here, step, y, x);
        }
    }
    for (int r = 0; r < EACH; r++) {
        const int64_t i = i0 + y + r * SIDE;
        double *o = a.o + (batch_head * a.seqlen_q + i) * a.head_dim;
        for (int c = 0; c < WIDE; c++) {
            const int64_t d = d0 + x + c * SIDE;
            if (i < a.seqlen_q && d < a.head_dim)
                o[d] = seen[r] > 0 ? sum[r][c] / total[r] : 0.0;
        }
    }
}

static int64_t tiles_of(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

/* The grid's limit; no problem that fits in memory comes near it. */
static bool fits_grid(int64_t blocks)
{
    return blocks > 0 && blocks <= INT32_MAX;
}

/* A matrix as operand of a sum over its columns; turned() sums over its rows. */
template <typename T> static struct view<T> plain(const struct kg_tensor &t) {
    return {(const T *)t.data, t.stride[0], 1, NULL, 0, 0};
}

template <typename T>
static struct view<T> turned(struct view<T> v) {
    return {v.data, v.inner, v.outer, v.gate, v.gate_inner, v.gate_outer};
}

template <typename T>
static struct view<T> gated(struct view<T> v, const struct kg_tensor &gate) {
    return {v.data, v.outer, v.inner, (const T *)gate.data, gate.stride[0], 1};
}

template <typename T>
static cudaError_t enqueue_product(struct view<T> a, struct view<T> b, const T *bias, double *c,
                                   int64_t m, int64_t n, int64_t k, cudaStream_t stream)
{
    const int64_t blocks = tiles_of(m, LARGE) * tiles_of(n, LARGE);
    if (!fits_grid(blocks))
        return cudaErrorInvalidValue;
    product<T><<<(unsigned)blocks, THREADS, 0, stream>>>(a, b, bias, c, m, n, k);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t linear_relu_bwd(const struct kg_problem *p, const struct kg_tensor *in,
                                   double *const *out, cudaStream_t stream)
{
    const T *none = NULL;
    const struct view<T> g = gated(plain<T>(in[0]), in[3]);
    const struct view<T> x = plain<T>(in[1]), w = plain<T>(in[2]);
    cudaError_t error = enqueue_product(g, turned(w), none, out[0], kg_size(p, "m"),
                                        kg_size(p, "k"), kg_size(p, "n"), stream);
    if (error == cudaSuccess)
        error = enqueue_product(turned(g), turned(x), none, out[1], kg_size(p, "n"),
                                kg_size(p, "k"), kg_size(p, "m"), stream);
    if (error != cudaSuccess)
        return error;
    const unsigned blocks = (unsigned)tiles_of(kg_size(p, "n"), THREADS);
    sums<T><<<blocks, THREADS, 0, stream>>>(turned(g), out[2], kg_size(p, "n"), kg_size(p, "m"));
    return cudaGetLastError();
}

template <typename T> static struct heads<T> heads_of(const struct kg_tensor &t) {
    return {(const T *)t.data, t.stride[0], t.stride[1], t.stride[2]};
}

template <typename T, int CHUNK>
static cudaError_t enqueue_attention(struct attention<T> a, int64_t heads, cudaStream_t stream)
{
    a.query_tiles = tiles_of(a.seqlen_q, TILE);
    a.chunks = tiles_of(a.head_dim, CHUNK);
    const int64_t blocks = heads * a.query_tiles * a.chunks;
    if (!fits_grid(blocks))
        return cudaErrorInvalidValue;
    const int shared_bytes = (int)sizeof(struct attention_shared<CHUNK>);
    const cudaError_t error = cudaFuncSetAttribute(
        attend<T, CHUNK>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess)
        return error;
    attend<T, CHUNK><<<(unsigned)blocks, THREADS, shared_bytes, stream>>>(a);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t attention_fwd(const struct kg_problem *p, const struct kg_tensor *in,
                                 double *const *out, cudaStream_t stream)
{
    struct attention<T> a = {
    };
    a.q = heads_of<T>(in[0]);
    a.k = heads_of<T>(in[1]);
    a.v = heads_of<T>(in[2]);
    a.o = out[0];
    a.n_heads = kg_size(p, "h");
    a.heads_a_kv_head = kg_size(p, "h") / kg_size(p, "kv_heads");
    a.seqlen_q = kg_size(p, "sq");
    a.seqlen_kv = kg_size(p, "s");
    a.head_dim = kg_size(p, "d");
    a.scale = kg_param(p, "scale");
    a.causal = (p->flags & KG_FLAG_CAUSAL) != 0;
    return kg_size(p, "d") <= CHUNK_SMALL
               ? enqueue_attention<T, CHUNK_SMALL>(a, kg_size(p, "b") * kg_size(p, "h"), stream)
               : enqueue_attention<T, CHUNK_LARGE>(a, kg_size(p, "b") * kg_size(p, "h"), stream);
}

/* ---- attention backward ---- */

/* A block computes the gradients of one line, a query or a key. It walks the lines of the other
 * side THREADS at a time: each thread has one of them, and leaves its weight and gradient in shared
 * memory, from where each dimension adds them up. */
template <typename T> struct backward {
    struct heads<T> q, k, v, o, d_o;
    struct heads<float> lse;
    double *dq, *dk, *dv;
    int64_t n_heads, group, seqlen_q, seqlen_kv, head_dim;
    double scale;
    int causal;
};

template <typename T>
static __device__ const T *line(const struct heads<T> &h, int64_t batch, int64_t head, int64_t row)
{
    return h.data + batch * h.batch + head * h.head + row * h.row;
}

/* The weight of a query and a key; *gradient is that of their score. */
template <typename T>
static __device__ double weigh(const struct backward<T> &a, int64_t batch, int64_t head, int64_t i,
                               int64_t j, double *gradient)
{
    const T *q = line(a.q, batch, head, i), *k = line(a.k, batch, head / a.group, j);
    const T *v = line(a.v, batch, head / a.group, j), *o = line(a.o, batch, head, i);
    const T *d_o = line(a.d_o, batch, head, i);
    double score = 0, dp = 0;

    *gradient = 0;
    if (a.causal && j > i + (a.seqlen_kv - a.seqlen_q))
        return 0;
    for (int64_t l = 0; l < a.head_dim; l++) {
        const double g = load(d_o + l);
        score = fma(load(q + l), load(k + l), score);
        dp = fma(g, load(v + l) - load(o + l), dp);
    }
    const double weight =
        exp(score * a.scale - (double)a.lse.data[batch * a.lse.batch + head * a.lse.head + i]);
    *gradient = a.scale * weight * dp;
    return weight;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) attend_backward_query(struct backward<T> a)
{
    __shared__ double gradients[THREADS];
    const int64_t i = blockIdx.x % a.seqlen_q, head = blockIdx.x / a.seqlen_q % a.n_heads;
    const int64_t batch = blockIdx.x / a.seqlen_q / a.n_heads;

    for (int64_t d0 = 0; d0 < a.head_dim; d0 += THREADS) {
        const int64_t d = d0 + threadIdx.x;
        double dq = 0, gradient;
        for (int64_t j0 = 0; j0 < a.seqlen_kv; j0 += THREADS) {
            const int n = (int)min((int64_t)THREADS, a.seqlen_kv - j0);
            __syncthreads();
            if ((int)threadIdx.x < n) {
                weigh(a, batch, head, i, j0 + threadIdx.x, &gradient);
                gradients[threadIdx.x] = gradient;
            }
            __syncthreads();
            for (int j = 0; j < n && d < a.head_dim; j++)
                if (gradients[j] != 0)
                    dq = fma(gradients[j], load(line(a.k, batch, head / a.group, j0 + j) + d), dq);
        }
        if (d < a.head_dim)
            a.dq[blockIdx.x * a.head_dim + d] = dq;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) attend_backward_key(struct backward<T> a)
{
    __shared__ double weights[THREADS], gradients[THREADS];
    const int64_t kv_heads = a.n_heads / a.group;
    const int64_t j = blockIdx.x % a.seqlen_kv, kv = blockIdx.x / a.seqlen_kv % kv_heads;
    const int64_t batch = blockIdx.x / a.seqlen_kv / kv_heads;

    for (int64_t d0 = 0; d0 < a.head_dim; d0 += THREADS) {
        const int64_t d = d0 + threadIdx.x;
        double dk = 0, dv = 0;
        for (int64_t head = kv * a.group; head < (kv + 1) * a.group; head++)
            for (int64_t i0 = 0; i0 < a.seqlen_q; i0 += THREADS) {
                const int n = (int)min((int64_t)THREADS, a.seqlen_q - i0);
                __syncthreads();
                if ((int)threadIdx.x < n)
                    weights[threadIdx.x] =
                        weigh(a, batch, head, i0 + threadIdx.x, j, &gradients[threadIdx.x]);
                __syncthreads();
                for (int i = 0; i < n && d < a.head_dim; i++) {
                    if (weights[i] == 0)
                        continue;
                    dk = fma(gradients[i], load(line(a.q, batch, head, i0 + i) + d), dk);
                    dv = fma(weights[i], load(line(a.d_o, batch, head, i0 + i) + d), dv);
                }
            }
        if (d < a.head_dim) {
            a.dk[blockIdx.x * a.head_dim + d] = dk;
            a.dv[blockIdx.x * a.head_dim + d] = dv;
        }
    }
}

template <typename T>
static cudaError_t attention_bwd(const struct kg_problem *p, const struct kg_tensor *in,
                                 double *const *out, cudaStream_t stream)
{
    struct backward<T> a = {
    };
    const int64_t queries = kg_size(p, "b") * kg_size(p, "h") * kg_size(p, "sq");
    const int64_t keys = kg_size(p, "b") * kg_size(p, "kv_heads") * kg_size(p, "s");
    if (!fits_grid(queries) || !fits_grid(keys))
        return cudaErrorInvalidValue;
    a.q = heads_of<T>(in[0]);
    a.k = heads_of<T>(in[1]);
    a.v = heads_of<T>(in[2]);
    a.o = heads_of<T>(in[3]);
    a.d_o = heads_of<T>(in[4]);
    a.lse.data = (const float *)in[5].data;
    a.lse.batch = in[5].stride[0];
    a.lse.head = in[5].stride[1];
    a.dq = out[0];
    a.dk = out[1];
    a.dv = out[2];
    a.n_heads = kg_size(p, "h");
    a.group = kg_size(p, "h") / kg_size(p, "kv_heads");
    a.seqlen_q = kg_size(p, "sq");
    a.seqlen_kv = kg_size(p, "s");
    a.head_dim = kg_size(p, "d");
    a.scale = kg_param(p, "scale");
    a.causal = (p->flags & KG_FLAG_CAUSAL) != 0;
    attend_backward_query<T><<<(unsigned)queries, THREADS, 0, stream>>>(a);
    attend_backward_key<T><<<(unsigned)keys, THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

/* ---- attention of pages ---- */

/* A block computes a query of a head. It walks the keys THREADS at a time: each thread finds the
 * score of one, and then sums one dimension of the values. */
template <typename T> struct paged {
    struct heads<T> q, k, v; /* strides of a sequence or block, of a query or key, and of a head */
    const int32_t *table, *lengths;
    double *o;
    int64_t n_heads, group, seqlen_q, page, table_row, head_dim;
    double scale;
};

/* In a fixed order. Ends with a barrier, so that `values` may be written again. */
static __device__ double over_block(double *values, double x, bool max)
{
    values[threadIdx.x] = x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) {
            const double other = values[threadIdx.x + half];
            values[threadIdx.x] =
                max ? fmax(values[threadIdx.x], other) : values[threadIdx.x] + other;
        }
    }
    __syncthreads();
    const double all = values[0];
    __syncthreads();
    return all;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) attend_pages(struct paged<T> a)
{
    __shared__ double weights[THREADS], scratch[THREADS];
    const int64_t head = blockIdx.x % a.n_heads, i = blockIdx.x / a.n_heads % a.seqlen_q;
    const int64_t sequence = blockIdx.x / a.n_heads / a.seqlen_q;
    const int32_t *table = a.table + sequence * a.table_row;
    const T *q = line(a.q, sequence, i, head);
    const int64_t seen = a.lengths[sequence] - a.seqlen_q + i + 1;

    for (int64_t d0 = 0; d0 < a.head_dim; d0 += THREADS) {
        const int64_t d = d0 + threadIdx.x;
        double top = -INFINITY, total = 0, sum = 0;
        for (int64_t j0 = 0; j0 < seen; j0 += THREADS) {
            const int64_t j = j0 + threadIdx.x;
            const int n = (int)min((int64_t)THREADS, seen - j0);
            double score = 0;
            if (j < seen) {
                const T *k = line(a.k, table[j / a.page], j % a.page, head / a.group);
                for (int64_t l = 0; l < a.head_dim; l++)
                    score = fma(load(q + l), load(k + l), score);
                score *= a.scale;
            }
            const double most = fmax(top, over_block(scratch, j < seen ? score : -INFINITY, true));
            const double old = exp(top - most), weight = j < seen ? exp(score - most) : 0;
            weights[threadIdx.x] = weight;
            total = total * old + over_block(scratch, weight, false);
            sum *= old;
            for (int e = 0; e < n && d < a.head_dim; e++) {
                const int64_t key = j0 + e;
                sum = fma(weights[e],
                          load(line(a.v, table[key / a.page], key % a.page, head / a.group) + d),
                          sum);
            }
            top = most;
            __syncthreads();
        }
        if (d < a.head_dim)
            a.o[blockIdx.x * a.head_dim + d] = seen > 0 ? sum / total : 0.0;
    }
}

template <typename T>
static cudaError_t attention_paged(const struct kg_problem *p, const struct kg_tensor *in,
                                   double *const *out, cudaStream_t stream)
{
    struct paged<T> a = {
    };
    const int64_t rows = kg_size(p, "b") * kg_size(p, "sq") * kg_size(p, "h");
    if (!fits_grid(rows))
        return cudaErrorInvalidValue;
    a.q = heads_of<T>(in[0]);
    a.k = heads_of<T>(in[1]);
    a.v = heads_of<T>(in[2]);
    a.table = (const int32_t *)in[3].data;
    a.table_row = in[3].stride[0];
    a.lengths = (const int32_t *)in[4].data;
    a.o = out[0];
    a.n_heads = kg_size(p, "h");
    a.group = kg_size(p, "h") / kg_size(p, "kv_heads");
    a.seqlen_q = kg_size(p, "sq");
    a.page = kg_size(p, "page");
    a.head_dim = kg_size(p, "d");
    a.scale = kg_param(p, "scale");
    attend_pages<T><<<(unsigned)rows, THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

/* Elements from one place in an axis to the next; 0: the tensor has no such axis. */
static int64_t stride_of(const struct kg_tensor &t, const char *axes, char axis)
{
    const char *at = strchr(axes, axis);
    return at ? t.stride[at - axes] : 0;
}

/* Any product of two factors, by their axes: lines of the one, and of the other, have one axis. */
template <typename T>
static cudaError_t any_product(const struct kg_problem *p, const struct kg_tensor *in,
                               double *const *out, cudaStream_t stream)
{
    const struct op_tensor *tensors = op_of(p)->tensors, *c = &tensors[2];
    const T *none = NULL, *data[2] = {(const T *)in[0].data, (const T *)in[1].data};
    int64_t lines[2] = {1, 1}, outer[2] = {0, 0}, batches = 1, apart[2] = {0, 0};
    for (const char *axis = c->axes; *axis; axis++) {
        const bool first = strchr(tensors[0].axes, *axis), second = strchr(tensors[1].axes, *axis);
        if (first && second) {
            batches = op_length(p, *axis);
            for (int i = 0; i < 2; i++)
                apart[i] = stride_of(in[i], tensors[i].axes, *axis);
        } else {
            lines[second] = op_length(p, *axis);
            outer[second] = stride_of(in[second], tensors[second].axes, *axis);
        }
    }
    const int64_t k = op_length(p, *c->whole);
    cudaError_t error = cudaSuccess;
    for (int64_t i = 0; i < batches && error == cudaSuccess; i++) {
        struct view<T> v[2];
        for (int f = 0; f < 2; f++)
            v[f] = {data[f] + i * apart[f],
                    outer[f],
                    stride_of(in[f], tensors[f].axes, *c->whole),
                    NULL,
                    0,
                    0};
        error = enqueue_product(v[0], v[1], none, out[0] + i * lines[0] * lines[1], lines[0],
                                lines[1], k, stream);
    }
    return error;
}

template <typename T>
static cudaError_t grouped_gemm(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, cudaStream_t stream)
{
    const int64_t n = kg_size(p, "n"), groups = kg_size(p, "g"), most = 65535; /* of a grid */
    const int64_t blocks = tiles_of(kg_size(p, "m"), LARGE) * tiles_of(n, LARGE);
    const int32_t *offsets = (const int32_t *)in[2].data;
    struct view<T> b = {
        (const T *)in[1].data, 1, in[1].stride[1], NULL, 0, 0
    };
    if (!fits_grid(blocks))
        return cudaErrorInvalidValue;
    for (int64_t g = 0; g < groups; g += most) {
        const dim3 grid((unsigned)blocks, (unsigned)(groups - g < most ? groups - g : most));
        group_product<T><<<grid, THREADS, 0, stream>>>(plain<T>(in[0]), b, in[1].stride[0],
                                                       offsets + g, out[0], n, kg_size(p, "k"));
        b.data += most * in[1].stride[0];
    }
    return cudaGetLastError();
}

/* A factor with its scales, which are one or a matrix. */
static struct view<__nv_fp8_e4m3> scaled(const struct kg_problem *p, const struct kg_tensor *in,
                                         int factor) {
    const struct kg_tensor &t = in[2 + factor];
    struct view<__nv_fp8_e4m3> v = plain<__nv_fp8_e4m3>(in[factor]);
    v.scale = (const float *)t.data;
    v.scale_outer = t.rank > 1 ? t.stride[0] : 0;
    v.scale_inner = t.rank > 1 ? 1 : 0;
    v.scale_rows = op_of(p)->tensors[2 + factor].axes[0] == 'm';
    return v;
}

static cudaError_t
gemm_fp8(const struct kg_problem *p, const struct kg_tensor *in, double *const *out,
         cudaStream_t stream)
{
    const __nv_fp8_e4m3 *none = NULL;
    return enqueue_product(scaled(p, in, 0), scaled(p, in, 1), none, out[0], kg_size(p, "m"),
                           kg_size(p, "n"), kg_size(p, "k"), stream);
}

template <typename T>
static cudaError_t linear_relu(const struct kg_problem *p, const struct kg_tensor *in,
                               double *const *out, cudaStream_t stream)
{
    return enqueue_product(plain<T>(in[0]), plain<T>(in[1]), (const T *)in[2].data, out[0],
                           kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"), stream);
}

/* A block for each row; the order of its sums depends on n alone. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    norm_rows(struct view<T> x, const T *w, double *y, int64_t n, double eps)
{
    __shared__ double sums[THREADS];
    const int64_t row = blockIdx.x;
    double sum = 0.0;
    for (int64_t j = threadIdx.x; j < n; j += THREADS) {
        const double value = load(x.data + row * x.outer + j);
        sum = fma(value, value, sum);
    }
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    const double root = sqrt(sums[0] / (double)n + eps);
    for (int64_t j = threadIdx.x; j < n; j += THREADS)
        y[row * n + j] = load(x.data + row * x.outer + j) / root * load(w + j);
}

template <typename T>
static cudaError_t rmsnorm(const struct kg_problem *p, const struct kg_tensor *in,
                           double *const *out, cudaStream_t stream)
{
    if (!fits_grid(kg_size(p, "m")))
        return cudaErrorInvalidValue;
    norm_rows<T><<<(unsigned)kg_size(p, "m"), THREADS, 0, stream>>>(
        plain<T>(in[0]), (const T *)in[1].data, out[0], kg_size(p, "n"), kg_param(p, "eps"));
    return cudaGetLastError();
}

/* By the names of ops; the others are plain products. */
template <typename T>
static cudaError_t enqueue(const struct kg_problem *p, const struct kg_tensor *in,
                           double *const *out, cudaStream_t stream)
{
    static const struct {
        const char *op;
        cudaError_t (*enqueue)(const struct kg_problem *, const struct kg_tensor *, double *const *,
                               cudaStream_t);
    } references[] = {
        {"attention_fwd", attention_fwd<T>},
        {"attention_bwd", attention_bwd<T>},
        {"attention_paged", attention_paged<T>},
        {"grouped_gemm", grouped_gemm<T>},
        {"linear_relu", linear_relu<T>},
        {"linear_relu_bwd", linear_relu_bwd<T>},
        {"rmsnorm", rmsnorm<T>},
    };
    const struct op *op = op_of(p);
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        if (!strcmp(references[i].op, op->name))
            return references[i].enqueue(p, in, out, stream);
    return op->multilinear && op->n_tensors == 3 ? any_product<T>(p, in, out, stream)
                                                 : cudaErrorInvalidValue;
}

cudaError_t kg_reference_cuda(const struct kg_problem *p, const struct kg_tensor *in,
                              double *const *out, cudaStream_t stream)
{
#define ENQUEUE(T) return enqueue<T>(p, in, out, stream)
    KG_DISPATCH(p->dtype[0], ENQUEUE)
#undef ENQUEUE
    if (op_of(p)->only == KG_E4M3)
        return gemm_fp8(p, in, out, stream);
    return cudaErrorInvalidValue;
}
