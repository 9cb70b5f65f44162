/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: attention of pages that is wrong in one step, and some that is right: a warp for a query of
 * a head. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "tests/mutants/faults.h"

enum paged_fault {
    NEXT_SEQUENCE,
    KEY_LESS,
    KEY_MORE,
    WHOLE_PAGE,
    TABLE_OF_FIRST,
    TABLE_BEFORE,
    IN_A_ROW,
    HEAD_MODULO,
    NO_MASK,
    DENSE_TABLE,
    BLOCK_IN_16_BITS,
    OFFSET_IN_31_BITS,
    BACKWARD,
    TWO_PASSES,
};

static __device__ float load(const kg_tensor &t, int64_t at)
{
    return t.dtype == KG_F16    ? __half2float(((const __half *)t.data)[at])
           : t.dtype == KG_BF16 ? __bfloat162float(((const __nv_bfloat16 *)t.data)[at])
                                : ((const float *)t.data)[at];
}

static __device__ void store(const kg_tensor &t, int64_t at, float value)
{
    if (t.dtype == KG_F16)
        ((__half *)t.data)[at] = __float2half_rn(value);
    else if (t.dtype == KG_BF16)
        ((__nv_bfloat16 *)t.data)[at] = __float2bfloat16_rn(value);
    else
        ((float *)t.data)[at] = value;
}

/* What an earlier launch with as many blocks had, on the device. */
#define KEPT_MAX 65536
static __device__ int32_t memory[2][KEPT_MAX];

struct row {
    kg_args args;
    paged_fault fault;
    int64_t blocks, t, page, group, kv_heads;
    const int32_t *rows;
    int64_t stride;
    float scale;
};

/* An element of row j of K or V. */
static __device__ int64_t at_of(const row &r, int tensor, int64_t b, int64_t j, int64_t length,
                                int64_t kv_head)
{
    const int64_t n = j / r.page, sequences = r.args.in[0].shape[0];
    const bool last = n > 0 && n == (length - 1) / r.page;
    const int64_t of = r.fault == NEXT_SEQUENCE && last ? (b + 1) % sequences : b;
    int64_t block = r.rows[of * r.stride + n];
    if (r.fault == IN_A_ROW)
        block = (r.rows[b * r.stride] + n) % r.blocks;
    if (r.fault == BLOCK_IN_16_BITS)
        block = (uint16_t)block;
    const kg_tensor &t = r.args.in[tensor];
    const int64_t at = block * t.stride[0] + j % r.page * t.stride[1] + kv_head * t.stride[2];
    return r.fault == OFFSET_IN_31_BITS ? at & INT32_MAX : at;
}

static __device__ float score_of(const row &r, int64_t q, int64_t k, int64_t d)
{
    float score = 0;
    for (int64_t c = threadIdx.x; c < d; c += 32)
        score += load(r.args.in[0], q + c) * load(r.args.in[1], k + c);
    for (int by = 16; by > 0; by /= 2)
        score += __shfl_xor_sync(~0u, score, by);
    return score * r.scale;
}

#define COLUMNS 16 /* of a lane: d is at most 512 */

static __global__ void attend(const row r)
{
    const kg_tensor &q = r.args.in[0], &o = r.args.out[0];
    const int64_t d = q.shape[3], sq = q.shape[1], heads = q.shape[2];
    const int64_t h = blockIdx.x % heads, i = blockIdx.x / heads % sq, b = blockIdx.x / heads / sq;
    const int64_t kv_head = r.fault == HEAD_MODULO ? h % r.kv_heads : h / r.group;
    const int64_t from = b * q.stride[0] + i * q.stride[1] + h * q.stride[2];
    int64_t length = ((const int32_t *)r.args.in[4].data)[b];
    if (r.fault == KEY_LESS && length > 1)
        length--;
    if (r.fault == KEY_MORE && length < r.t * r.page)
        length++;
    int64_t seen = length - (r.fault == NO_MASK ? 0 : sq - i - 1);
    if (r.fault == WHOLE_PAGE && i == sq - 1)
        seen = (length + r.page - 1) / r.page * r.page;
    float most = -INFINITY, sum = 0, mine[COLUMNS] = {};
    for (int64_t j = 0; j < seen && r.fault == TWO_PASSES; j++)
        most = fmaxf(most, score_of(r, from, at_of(r, 1, b, j, length, kv_head), d));
    for (int64_t n = 0; n < seen; n++) {
        const int64_t j = r.fault == BACKWARD ? seen - 1 - n : n;
        const int64_t v = at_of(r, 2, b, j, length, kv_head);
        const float score = score_of(r, from, at_of(r, 1, b, j, length, kv_head), d);
        const float now = fmaxf(most, score), old = expf(most - now), share = expf(score - now);
        for (int64_t c = threadIdx.x, e = 0; c < d; c += 32, e++)
            mine[e] = mine[e] * old + share * load(r.args.in[2], v + c);
        sum = sum * old + share;
        most = now;
    }
    for (int64_t c = threadIdx.x, e = 0; c < d; c += 32, e++)
        store(o, b * o.stride[0] + i * o.stride[1] + h * o.stride[2] + c,
              seen > 0 ? mine[e] / sum : 0);
}

static enum kg_status paged(const kg_problem *p, const kg_args *args, paged_fault fault)
{
    static int64_t held, now;
    if (!kg_is_op(p, "attention_paged"))
        return wrap_inner(p, args);
    const cudaStream_t stream = (cudaStream_t)args->stream;
    row r = {*args,
             fault,
             kg_size(p, "blocks"),
             kg_size(p, "t"),
             kg_size(p, "page"),
             kg_size(p, "h") / kg_size(p, "kv_heads"),
             kg_size(p, "kv_heads"),
             (const int32_t *)args->in[3].data,
             fault == DENSE_TABLE ? kg_size(p, "t") : args->in[3].stride[0],
             (float)kg_param(p, "scale")};
    const int64_t n = (kg_size(p, "b") - 1) * r.stride + r.t;
    if ((fault == TABLE_OF_FIRST || fault == TABLE_BEFORE) && n <= KEPT_MAX) {
        void *kept;
        cudaGetSymbolAddress(&kept, memory);
        now = fault == TABLE_BEFORE && held == n ? !now : now;
        if (fault == TABLE_BEFORE || held != n)
            cudaMemcpyAsync((int32_t *)kept + now * KEPT_MAX, r.rows, (size_t)n * 4,
                            cudaMemcpyDeviceToDevice, stream);
        r.rows =
            (const int32_t *)kept + (fault == TABLE_BEFORE && held == n ? !now : now) * KEPT_MAX;
        held = n;
    }
    const int64_t rows = kg_size(p, "b") * kg_size(p, "sq") * kg_size(p, "h");
    attend<<<(unsigned)rows, 32, 0, stream>>>(r);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#define PAGED(ROW)                                                                                 \
    ROW(page_of_the_next_sequence, NEXT_SEQUENCE)                                                  \
    ROW(one_key_less, KEY_LESS)                                                                    \
    ROW(one_key_more, KEY_MORE)                                                                    \
    ROW(whole_last_page, WHOLE_PAGE)                                                               \
    ROW(table_of_the_first_launch, TABLE_OF_FIRST)                                                 \
    ROW(table_of_the_launch_before, TABLE_BEFORE)                                                  \
    ROW(blocks_in_a_row, IN_A_ROW)                                                                 \
    ROW(kv_head_modulo, HEAD_MODULO)                                                               \
    ROW(new_keys_not_masked, NO_MASK)                                                              \
    ROW(dense_table, DENSE_TABLE)                                                                  \
    ROW(block_in_16_bits, BLOCK_IN_16_BITS)                                                        \
    ROW(offset_in_31_bits, OFFSET_IN_31_BITS)                                                      \
    ROW(from_the_last_key, BACKWARD)                                                               \
    ROW(two_passes, TWO_PASSES)

#define LAUNCH(name, fault)                                                                        \
    static enum kg_status name(const kg_problem *p, const kg_args *args)                           \
    {                                                                                              \
        return paged(p, args, fault);                                                              \
    }
PAGED(LAUNCH)

#define FAULT(name, fault) {#name, name, 0, NULL},
FAULTS(PAGED(FAULT))
