/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: ops of one's own that read indices, and one whose state is updated in place: the kernels of
 * examples/moe_up, paged_decode and delta_rule with a fault, or otherwise right. */
#define OPS(ROW)                                                                                   \
    ROW(moe_up, KG_F32, moe_up)                                                                    \
    ROW(paged_decode, KG_F32, paged_decode)                                                        \
    ROW(delta_rule, KG_F32, delta_rule)

/* Of each op first those that are wrong. */
#define KERNELS(ROW)                                                                               \
    ROW(moe_up, stops_at_an_empty_group)                                                           \
    ROW(moe_up, counts_groups_that_have_rows)                                                      \
    ROW(moe_up, equal_groups)                                                                      \
    ROW(moe_up, no_more_than_a_tile_of_rows)                                                       \
    ROW(moe_up, groups_begin_at_tiles)                                                             \
    ROW(moe_up, offsets_in_8_bits)                                                                 \
    ROW(moe_up, stride_of_the_weights_ignored)                                                     \
    ROW(moe_up, groups_by_search)                                                                  \
    ROW(moe_up, from_the_last_term)                                                                \
    ROW(paged_decode, table_off_at_the_ends_of_blocks)                                             \
    ROW(paged_decode, all_positions_of_the_last_block)                                             \
    ROW(paged_decode, no_last_position)                                                            \
    ROW(paged_decode, table_of_the_first_sequence)                                                 \
    ROW(paged_decode, all_lengths)                                                                 \
    ROW(paged_decode, block_0_is_none)                                                             \
    ROW(paged_decode, sum_is_not_scaled)                                                           \
    ROW(paged_decode, from_the_last_key)                                                           \
    ROW(paged_decode, two_passes)                                                                  \
    ROW(delta_rule, old_state_forgotten)                                                           \
    ROW(delta_rule, not_written_back)                                                              \
    ROW(delta_rule, output_of_the_old_state)                                                       \
    ROW(delta_rule, gate_of_the_neighbour)                                                         \
    ROW(delta_rule, neighbour_decays_too)                                                          \
    ROW(delta_rule, updated_twice)                                                                 \
    ROW(delta_rule, state_taken_for_dense)                                                         \
    ROW(delta_rule, sums_in_double)                                                                \
    ROW(delta_rule, state_by_the_input)

#include "tests/mutants/own_ops.cuh"

/* ---- grouped GEMM: a thread for each element of C ---- */

static __device__ int64_t end_of(const int32_t *offsets, int64_t g, own_how how)
{
    return how == AS_offsets_in_8_bits ? (int8_t)offsets[g + 1] : offsets[g + 1];
}

/* The group of row i of m. */
static __device__ int64_t group_of(const int32_t *offsets, int64_t groups, int64_t i, int64_t m,
                                   own_how how)
{
    int64_t g = 0, used = 0, least = 0, most = groups - 1;
    if (how == AS_equal_groups)
        return i * groups / m;
    if (how == AS_groups_by_search) {
        while (least < most) {
            const int64_t middle = (least + most) / 2;
            if (offsets[middle + 1] <= i)
                least = middle + 1;
            else
                most = middle;
        }
        return least;
    }
    if (how == AS_groups_begin_at_tiles)
        i = i / 8 * 8;
    for (; g + 1 < groups && end_of(offsets, g, how) <= i; g++) {
        if (how == AS_stops_at_an_empty_group && offsets[g + 1] == offsets[g])
            break;
        used += offsets[g + 1] > offsets[g];
    }
    return how == AS_counts_groups_that_have_rows ? used : g;
}

static __global__ void multiply(kg_tensor a, kg_tensor b, kg_tensor ends, kg_tensor c, own_how how)
{
    const int64_t i = (int64_t)blockIdx.x * 8 + threadIdx.y;
    const int64_t j = (int64_t)blockIdx.y * 32 + threadIdx.x, k = a.shape[1];
    const int32_t *offsets = (const int32_t *)ends.data;
    if (i >= c.shape[0] || j >= c.shape[1])
        return;
    const int64_t g = group_of(offsets, b.shape[0], i, c.shape[0], how);
    const int64_t stride = how == AS_stride_of_the_weights_ignored ? c.shape[1] : b.stride[1];
    const float *row = row_of(a, i), *column = row_of(b, g) + j;
    float sum = 0;
    if (how == AS_no_more_than_a_tile_of_rows && i >= offsets[g] + 16)
        return;
    for (int64_t l = 0; l < k; l++) {
        const int64_t of = how == AS_from_the_last_term ? k - 1 - l : l;
        sum += row[of] * column[of * stride];
    }
    ((float *)c.data)[i * c.stride[0] + j] = sum;
}

static void moe_up(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    const dim3 block(32, 8),
        grid((unsigned)((kg_size(p, "m") + 7) / 8), (unsigned)((kg_size(p, "n") + 31) / 32));
    multiply<<<grid, block, 0, stream>>>(args->in[0], args->in[1], args->in[2], args->out[0], how);
}

/* ---- paged decode: a warp for each head of a sequence ---- */

struct pages {
    kg_tensor q, k, v, table, lengths, o;
};

static __device__ float over_warp(float value)
{
    for (int by = 16; by > 0; by /= 2)
        value += __shfl_xor_sync(~0u, value, by);
    return value;
}

/* Where the keys, or the values, of a position of sequence s begin. */
static __device__ const float *position(const pages &p, const kg_tensor &t, int64_t s, int64_t h,
                                        int64_t i, own_how how)
{
    const int64_t page = p.k.shape[1];
    const int64_t of = how == AS_table_of_the_first_sequence ? 0 : s;
    const int32_t *row = (const int32_t *)p.table.data + of * p.table.stride[0];
    int64_t block = row[(how == AS_table_off_at_the_ends_of_blocks && i ? i - 1 : i) / page];
    if (how == AS_block_0_is_none && block == 0)
        block = row[0];
    return row_of(t, block) + i % page * t.stride[1] + h * t.stride[2];
}

static __device__ float score(const pages &p, int64_t s, int64_t h, int64_t i, own_how how)
{
    const float *query = row_of(p.q, s) + h * p.q.stride[1];
    const float *key = position(p, p.k, s, h, i, how);
    float sum = 0;
    for (int64_t c = threadIdx.x; c < p.q.shape[2]; c += 32)
        sum += query[c] * key[c];
    return over_warp(sum) / sqrtf((float)p.q.shape[2]);
}

static __device__ int64_t length_of(const pages &p, int64_t s, own_how how)
{
    const int64_t page = p.k.shape[1], length = ((const int32_t *)p.lengths.data)[s];
    switch (how) {
    case AS_all_positions_of_the_last_block:
        return (length + page - 1) / page * page;
    case AS_no_last_position:
        return length > 1 ? length - 1 : 1;
    case AS_all_lengths:
        return p.table.shape[1] * page;
    default:
        return length;
    }
}

static __global__ void attend(const pages p, own_how how)
{
    const int64_t s = blockIdx.x / p.q.shape[1], h = blockIdx.x % p.q.shape[1];
    const int64_t d = p.q.shape[2], length = length_of(p, s, how);
    float *out = (float *)p.o.data + s * p.o.stride[0] + h * p.o.stride[1];
    float most = -INFINITY, sum = 0, mine[4] = {};
    for (int64_t i = 0; i < length && how == AS_two_passes; i++)
        most = fmaxf(most, score(p, s, h, i, how));
    for (int64_t i = 0; i < length; i++) {
        const int64_t at = how == AS_from_the_last_key ? length - 1 - i : i;
        const float of_key = score(p, s, h, at, how), now = fmaxf(most, of_key);
        const float old = expf(most - now), share = expf(of_key - now);
        const float *value = position(p, p.v, s, h, at, how);
        for (int64_t n = 0, c = threadIdx.x; c < d; n++, c += 32)
            mine[n] = mine[n] * old + share * value[c];
        sum = (how == AS_sum_is_not_scaled ? sum : sum * old) + share;
        most = now;
    }
    for (int64_t n = 0, c = threadIdx.x; c < d; n++, c += 32)
        out[c] = mine[n] / sum;
}

static void paged_decode(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    const unsigned heads = (unsigned)(kg_size(p, "b") * kg_size(p, "h"));
    const kg_tensor *in = args->in;
    const pages all = {in[0], in[1], in[2], in[3], in[4], args->out[0]};
    attend<<<heads, 32, 0, stream>>>(all, how);
}

/* ---- delta rule: a thread for each column of a head's state ---- */

struct heads {
    kg_tensor q, k, v, gate, rate, state, o;
};

template <typename Sum>
static __device__ void step(const heads &p, int64_t h, int64_t j, own_how how)
{
    const int64_t n = p.k.shape[1], of = how == AS_gate_of_the_neighbour ? h / 2 * 2 : h;
    const int64_t stride = how == AS_state_taken_for_dense ? p.v.shape[1] : p.state.stride[1];
    const float *k = row_of(p.k, h), *q = row_of(p.q, h);
    const float g = ((const float *)p.gate.data)[of], beta = ((const float *)p.rate.data)[h];
    float *state = (float *)row_of(p.state, h) + j;
    Sum known = 0, o = 0;
    for (int64_t i = 0; i < n; i++)
        known += (Sum)state[i * stride] * k[i];
    const Sum u = beta * (row_of(p.v, h)[j] - g * known);
    for (int64_t i = 0; i < n; i++) {
        const Sum old = state[i * stride];
        const Sum fresh = (how == AS_old_state_forgotten ? 0 : g * old) + k[i] * u;
        if (how != AS_not_written_back)
            state[i * stride] = (float)fresh;
        o += (how == AS_output_of_the_old_state ? old : fresh) * q[i];
    }
    if (how == AS_neighbour_decays_too && h == 0 && j == 0)
        *state *= 0.999f;
    ((float *)row_of(p.o, h))[j] = (float)o;
}

static __global__ void step_of_all(const heads p, own_how how)
{
    const int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    if (j >= p.v.shape[1])
        return;
    if (how == AS_sums_in_double)
        step<double>(p, blockIdx.x, j, how);
    else
        step<float>(p, blockIdx.x, j, how);
    if (how == AS_updated_twice)
        step<float>(p, blockIdx.x, j, how);
}

static void delta_rule(const kg_problem *p, const kg_args *args, own_how how, cudaStream_t stream)
{
    const dim3 grid((unsigned)kg_size(p, "h"), (unsigned)((kg_size(p, "v") + 127) / 128));
    const kg_tensor *in = args->in, *out = args->out;
    const heads all = {
        in[0], in[1], in[2], in[3], in[4], how == AS_state_by_the_input ? in[5] : out[0], out[1]};
    step_of_all<<<grid, 128, 0, stream>>>(all, how);
}
