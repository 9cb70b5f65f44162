/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax_sm90.cuh: scores to probabilities in the registers of a warpgroup, 64 rows x KEYS keys.
 *
 * P = 2^(factor * S - reference) with a reference a row that is fixed by the row's first 32 keys
 * and then stays, unless the sum of a tile in some lane passes 2^15, half of what fp16 holds. So a
 * tile takes no maximum at all, its exponentials start with the first score, and O is rescaled only
 * for rows that outgrow their first keys by far. Those take the long way: their scores, which the
 * exponentials overwrote, are computed again by mma.sync, by the warp alone.
 *
 * A share of the exponentials is done by a polynomial on the FMA pipe: at D = 64 the special
 * function unit (16 a clock) would take as long as the tensor core.
 *
 * Layouts are those of wgmma_sm90.cuh: a thread holds rows g = lane / 4 and g + 8 of its warp's 16,
 * s[4 j + i] is column 8 j + 2 (lane % 4) + i % 2 of row g + 8 (i / 2).
 */
#ifndef KG_ATTENTION_FWD_SOFTMAX_SM90_CUH
#define KG_ATTENTION_FWD_SOFTMAX_SM90_CUH

#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/attention_fwd/problem.cuh"

#include <math.h>

/* Per row of the thread. Scores are in powers of two, that is times `factor`. */
struct softmax_rows {
    float reference[2]; /* -inf while the row has seen no key */
    float sum[2];       /* of P over this lane's columns, until finish_sums() */
};

constexpr float SOFTMAX_LARGEST_SUM = 32768.0f;
/* From here on factor * S differs by more than one between rounded, as in a reference, and not. */
constexpr float SOFTMAX_LARGEST_REFERENCE = 8388608.0f;

__device__ __forceinline__ void clear_rows(struct softmax_rows &rows)
{
    rows.reference[0] = rows.reference[1] = -INFINITY;
    rows.sum[0] = rows.sum[1] = 0.0f;
}

/* -inf - -inf is NaN: a row that has seen no key takes 0 for its reference and gets P = 0. */
__device__ __forceinline__ float finite_reference(float reference)
{
    return reference == -INFINITY ? 0.0f : reference;
}

/* Hides the keys from limit[half] on of the thread's two rows. `key` is the tile's first. */
template <int R>
__device__ __forceinline__ void mask_tile(float (&s)[R], const int (&limit)[2], int key)
{
    key += threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < R; i++)
        if (i / 4 * 8 + i % 2 >= limit[i % 4 / 2] - key)
            s[i] = -INFINITY;
}

/* Hides the keys that the rows of the warpgroup, `row` and on, do not see. */
template <int R>
__device__ __forceinline__ void mask_tile(float (&s)[R], const struct attention_sm90 &a, int row,
                                          int key)
{
    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const int limit[2] = {visible_keys(a, row), visible_keys(a, row + 8)};
    mask_tile(s, limit, key);
}

/*
 * 2^x from y = (x + 127) / 255 clamped to 0..1, on the FMA pipe: a whole and a fraction part, a
 * polynomial for the fraction, the whole part into the exponent. Relative error below 9e-5, less
 * than the rounding of P. Below 2^-127 the result is 0, from 2^128 on it is infinity.
 */
__device__ __forceinline__ float exp2_polynomial(float y)
{
    constexpr float WHOLE = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded to whole */
    const float shifted = __fmaf_rd(y, 255.0f, WHOLE - 127.0f);
    const float f = fmaf(y, 255.0f, (WHOLE - 127.0f) - shifted);
    const float p = fmaf(fmaf(fmaf(0.0771190897f, f, 0.2275643945f), f, 0.6951461434f), f, 1.0f);
    return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

template <int R> __device__ __forceinline__ void add_up(const float (&s)[R], float (&sum)[2])
{
    sum[0] = sum[1] = 0.0f;
#pragma unroll
    for (int j = 0; j < R / 4; j++) {
        sum[0] += s[4 * j] + s[4 * j + 1];
        sum[1] += s[4 * j + 2] + s[4 * j + 3];
    }
}

/* S becomes P; adds up sums of this lane. Of EVERY blocks of 8 columns the last takes the
 * polynomial (0: none does). A row whose reference is too large gets no finite sum, nor does one
 * that has seen no key. */
template <int EVERY, int R>
__device__ __forceinline__ void exponentials(float (&s)[R], const float (&reference)[2],
                                             float factor, float (&sum)[2])
{
    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        shift[half] =
            fabsf(reference[half]) <= SOFTMAX_LARGEST_REFERENCE ? -reference[half] : INFINITY;
#pragma unroll
    for (int i = 0; i < R; i++) {
        const float x = fmaf(s[i], factor, shift[i % 4 / 2]);
        if (EVERY != 0 && i / 4 % (EVERY ? EVERY : 1) == EVERY - 1)
            s[i] = exp2_polynomial(__saturatef(fmaf(x, 1.0f / 255.0f, 127.0f / 255.0f)));
        else
            s[i] = ptx::exp2_approx(x);
    }
    add_up(s, sum);
}

/* The same for any reference, slower: factor * S is rounded as the reference was. */
template <int R>
__device__ __forceinline__ void exponentials_of_any(float (&s)[R], const float (&reference)[2],
                                                    float factor, float (&sum)[2])
{
#pragma unroll
    for (int i = 0; i < R; i++)
        s[i] = ptx::exp2_approx(__fmul_rn(s[i], factor) - finite_reference(reference[i % 4 / 2]));
    add_up(s, sum);
}

/* Takes the maximum of each row into its reference. Returns by what O and sums must be multiplied.
 */
template <int R>
__device__ __forceinline__ void raise_references(const float (&s)[R], float factor,
                                                 struct softmax_rows &rows, float (&shrink)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = s[2 * half];
#pragma unroll
        for (int j = 0; j < R / 4; j++)
            top = fmaxf(top, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        const float reference = fmaxf(rows.reference[half], top * factor);
        shrink[half] = ptx::exp2_approx(rows.reference[half] - finite_reference(reference));
        rows.reference[half] = reference;
        rows.sum[half] *= shrink[half];
    }
}

/* Where a warpgroup finds its operands: addresses of its first row of Q and of the tile's first
 * key, and the rows of the panels that these lie in. */
struct score_operands {
    uint32_t q, k;
    int q_rows, k_rows;
};

/* The scores of the warp's 16 rows again, by the warp alone. */
template <typename T, int D, int R>
__device__ __forceinline__ void score_again(float (&s)[R], const struct score_operands &from)
{
    /* A: lane i has row i % 16, chunk i / 16. B: row i % 8, chunk i / 8 % 2. Both rows are i % 8 to
     * the swizzle. */
    const int row = threadIdx.x % 8;
    const uint32_t q = from.q + threadIdx.x % 128 / 32 * (16 * PANEL_ROW_BYTES) +
                       threadIdx.x % 16 * PANEL_ROW_BYTES;
#pragma unroll
    for (int i = 0; i < R; i++)
        s[i] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < D / 16; t++) {
        uint32_t a[4], b[2];
        ptx::ldmatrix_x4(a, q + t / 4 * from.q_rows * PANEL_ROW_BYTES +
                                ((t % 4 * 2 + threadIdx.x / 16 % 2) ^ row) * 16);
        const uint32_t k = from.k + (t / 4 * from.k_rows + row) * PANEL_ROW_BYTES +
                           ((t % 4 * 2 + threadIdx.x / 8 % 2) ^ row) * 16;
#pragma unroll
        for (int n = 0; n < R / 4; n++) {
            ptx::ldmatrix_x2(b, k + n * 8 * PANEL_ROW_BYTES);
            ptx::mma_m16n8k16(*(float(*)[4])(s + 4 * n), a, b[0], b[1], T());
        }
    }
    ptx::fence_async_shared(); /* the copy engine may overwrite what was read here */
}

/* The references of rows that begin: the maximum over the first 32 keys. A row that sees a key sees
 * the first one. */
template <int R>
__device__ __forceinline__ void start_references(const float (&s)[R], float factor,
                                                 struct softmax_rows &rows)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = fmaxf(s[2 * half], s[2 * half + 1]);
#pragma unroll
        for (int j = 1; j < 4; j++)
            top = fmaxf(top, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        rows.reference[half] = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2)) * factor;
    }
}

/*
 * S becomes P. `first` tiles set the references. hide(s) masks the tile: scores that are computed
 * again have to be masked again. settle(shrink) is called where rows of the warp have outgrown
 * their references: O of the tiles before is to be multiplied. While some of that is in the tensor
 * cores, settle must leave it for later, since a warp cannot wait for them alone.
 */
template <typename T, int D, int EVERY, int R, typename Hide, typename Settle>
__device__ __forceinline__ void softmax_tile(float (&s)[R], struct softmax_rows &rows, float factor,
                                             bool first, const struct score_operands &from,
                                             Hide hide, Settle settle)
{
    float sum[2];

    hide(s);
    if (first)
        start_references(s, factor, rows);
    exponentials<EVERY>(s, rows.reference, factor, sum);
    if (__any_sync(0xffffffffu,
                   !(sum[0] <= SOFTMAX_LARGEST_SUM && sum[1] <= SOFTMAX_LARGEST_SUM))) {
        float shrink[2];
        score_again<T, D>(s, from);
        hide(s);
        raise_references(s, factor, rows, shrink);
        settle(shrink);
        exponentials_of_any(s, rows.reference, factor, sum);
    }
    rows.sum[0] += sum[0];
    rows.sum[1] += sum[1];
}

/* Turns the sign of a warpgroup's 64 rows of Q, in panels of q_rows rows. A barrier of the
 * warpgroup must follow. */
template <int Q_ROWS, int D> __device__ __forceinline__ void turn_signs(uint32_t q)
{
    for (int i = threadIdx.x % 128; i < 64 * D / 8; i += 128) {
        const uint32_t at = q + i / 512 * (Q_ROWS * PANEL_ROW_BYTES) + i % 512 * 16;
        uint32_t r[4];
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(at),
                     "r"(r[0] ^ 0x80008000u), "r"(r[1] ^ 0x80008000u), "r"(r[2] ^ 0x80008000u),
                     "r"(r[3] ^ 0x80008000u)
                     : "memory");
    }
    ptx::fence_async_shared();
}

/* P as the A operands of the next product. */
template <typename T, int R>
__device__ __forceinline__ void pack_tile(uint32_t (&p)[R / 2], const float (&s)[R], T tag)
{
#pragma unroll
    for (int i = 0; i < R / 2; i++)
        p[i] = ptx::pack(s[2 * i], s[2 * i + 1], tag);
}

template <int R> __device__ __forceinline__ void scale_rows(float (&o)[R], const float (&by)[2])
{
#pragma unroll
    for (int i = 0; i < R; i++)
        o[i] *= by[i % 4 / 2];
}

/* Sums of the whole rows, from those of the lanes. */
__device__ __forceinline__ void add_up_lanes(struct softmax_rows &rows)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        rows.sum[half] += __shfl_xor_sync(0xffffffffu, rows.sum[half], 1);
        rows.sum[half] += __shfl_xor_sync(0xffffffffu, rows.sum[half], 2);
    }
}

/* 1 / sum of whole rows. A row that saw no key has sum 0 and gets 0; a NaN stays one. */
__device__ __forceinline__ void invert_sums(const struct softmax_rows &rows, float (&inverse)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++)
        inverse[half] = rows.sum[half] == 0.0f ? 0.0f : __fdividef(1.0f, rows.sum[half]);
}

__device__ __forceinline__ void finish_sums(struct softmax_rows &rows, float (&inverse)[2])
{
    add_up_lanes(rows);
    invert_sums(rows, inverse);
}

/* S = Q K^T. The low words of the descriptors of Q and K, in panels of Q_ROWS and K_ROWS rows. */
template <typename T, int D, int Q_ROWS, int K_ROWS, int R>
__device__ __forceinline__ void issue_scores(float (&s)[R], uint32_t q, uint32_t k)
{
#pragma unroll
    for (int t = 0; t < D / 16; t++)
        ptx::wgmma_ss<0, 0>(
            s, descriptor(q + t / 4 * (Q_ROWS * PANEL_ROW_BYTES / 16) + t % 4 * DESCRIPTOR_K_STEP),
            descriptor(k + t / 4 * (K_ROWS * PANEL_ROW_BYTES / 16) + t % 4 * DESCRIPTOR_K_STEP),
            t > 0, T());
}

/* O += P V, or O = P V where `accumulate` is 0. The low word of V's descriptor. */
template <typename T, int O, int P>
__device__ __forceinline__ void issue_output(float (&o)[O], const uint32_t (&p)[P], uint32_t v,
                                             int accumulate)
{
#pragma unroll
    for (int t = 0; t < P / 4; t++) {
        const uint32_t a[4] = {p[4 * t], p[4 * t + 1], p[4 * t + 2], p[4 * t + 3]};
        ptx::wgmma_rs<1>(o, a, descriptor(v + t * DESCRIPTOR_MN_STEP), t > 0 ? 1 : accumulate, T());
    }
}

#endif
