/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_paged.c: attention of sequences of any length, whose keys and values lie in blocks of
 * `page` of them, in the order in which the sequence's row of a table names the blocks. The queries
 * of a sequence are at the end of its keys.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/ops/attention_sizes.h"
#include "kernels/ops/attention_patterns.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sizes, the first four as those of attention: blocks of the table, all blocks, keys of one. */
enum { TABLE = Q + 1, BLOCKS, PAGE, DIM, SIZES };
enum { IN_Q, IN_K, IN_V, IN_TABLE, IN_LENGTHS, INPUTS };

#define KEYS_MAX ((int64_t)1 << 30) /* of a sequence, which has to be an int32 */

static const int64_t head_dims[] = {72, 96, 80, 128, 64, 256, 40, 0};
static const int64_t pages[] = {64, 16, 0};

static const struct op_size sizes[SIZES] = {
    [B] = {"b", "b", 'b', OP_COUNT, .at = B, .classes = 4, .few = 2},
    [G] = {"kv_heads", "kv", 'g', OP_COUNT, .at = G, .usual = 'h', .classes = 6, .few = 2},
    [H] = {"h", "h", 'h', OP_COUNT, .at = H, .multiple_of = 'g', .classes = 64, .few = 4},
    [Q] = {"sq", "sq", 'q', OP_LENGTH, .at = Q, .one_stays = true, .few = 3},
    [TABLE] = {"t", "t", 't', OP_LENGTH, .at = TABLE, .few = 3},
    [BLOCKS] = {"blocks", "blocks", 'n', OP_LENGTH, .at = BLOCKS, .few = 7},
    [PAGE] = {"page", "page", 'p', OP_GIVEN, .at = PAGE, .values = pages},
    [DIM] = {"d", "d", 'd', OP_GIVEN, .at = DIM, .values = head_dims},
};

static double usual_scale(const struct kg_problem *p)
{
    return 1.0 / sqrt((double)p->size[DIM].value);
}

static const struct op_param scale = {"scale", 0, -1000, 1000, usual_scale};

static const struct op_tensor tensors[] = {
    {"q", "bqhd", OP_INPUT, NULL},    {"k", "npgd", OP_INPUT, NULL},
    {"v", "npgd", OP_INPUT, NULL},    {"table", "bt", OP_INPUT, NULL},
    {"lengths", "b", OP_INPUT, NULL}, {"o", "bqhd", OP_OUT, .whole = "qntpd"},
};

static int64_t most_keys(const struct kg_problem *p)
{
    return p->size[TABLE].value * p->size[PAGE].value;
}

static bool fit(struct kg_problem *p)
{
    const int64_t most = KEYS_MAX / p->size[PAGE].value;
    if (p->size[TABLE].value > most)
        p->size[TABLE].value = most;
    return most > 0;
}

/* ---- the table and the lengths ---- */

/* Of the timed case: from five eighths of what there is room for to all of it. The id says all that
 * they come from, and so does the problem. */
static int64_t timed_length(const struct kg_problem *p, int64_t sequence)
{
    const int64_t most = most_keys(p), least = (5 * most + 7) / 8;
    const uint64_t random =
        seed_at(seed_at((uint64_t)most, (uint64_t)p->size[B].value), (uint64_t)sequence);
    return least + (int64_t)(random % (uint64_t)(most - least + 1));
}

/* A key, one of a page and its neighbours, all; of one sequence at least half. */
static int64_t any_length(const struct kg_problem *p, int64_t sequence, uint64_t seed)
{
    const int64_t most = most_keys(p), page = p->size[PAGE].value, half = (most + 1) / 2;
    const uint64_t random = seed_at(seed, (uint64_t)sequence);
    const int64_t some = 1 + (int64_t)(random / 16 % (uint64_t)most);
    const int64_t of[] = {1, page, page + 1, page - 1, most, most - 1, some, some};
    if (sequence == (int64_t)(seed % (uint64_t)p->size[B].value))
        return half + (int64_t)(random / 16 % (uint64_t)(most - half + 1));
    const int64_t length = of[random % COUNT(of)];
    return length < 1 ? 1 : length > most ? most : length;
}

/* Blocks in a random order, each for one sequence as long as there are enough; varied: as often in
 * their order, or those of the first half the same for all sequences. */
static void fill_table(const struct kg_problem *p, const struct kg_tensor *to, bool varied,
                       uint64_t seed)
{
    enum { RISING = 1, SHARED, WAYS = 6 };
    const int64_t blocks = p->size[BLOCKS].value, t = p->size[TABLE].value;
    const unsigned way = varied ? (unsigned)(seed % WAYS) : WAYS;
    int32_t *order = malloc((size_t)blocks * sizeof *order);
    for (int64_t i = 0; order && i < blocks; i++) {
        const int64_t other =
            way == RISING ? i : (int64_t)(seed_at(seed, (uint64_t)i) % (uint64_t)(i + 1));
        order[i] = order[other];
        order[other] = (int32_t)i;
    }
    for (int64_t i = 0; i < p->size[B].value * t; i++) {
        const int64_t at = (way == SHARED && i % t < t / 2 ? i % t : i) % blocks;
        pattern_put(to, i, order ? order[at] : (double)at);
    }
    free(order);
}

static bool fill(const struct kg_problem *p, unsigned tensor, const struct kg_tensor *to,
                 int64_t count, const char *id, uint64_t seed)
{
    if (tensor < IN_TABLE || !count)
        return tensor >= IN_TABLE;
    if (id)
        seed = seed_at(seed_at((uint64_t)most_keys(p), (uint64_t)p->size[BLOCKS].value), tensor);
    if (tensor == IN_TABLE)
        fill_table(p, to, !id, seed);
    for (int64_t i = 0; tensor == IN_LENGTHS && i < p->size[B].value; i++)
        pattern_put(to, i, (double)(id ? timed_length(p, i) : any_length(p, i, seed)));
    return true;
}

/* Keys of a sequence, and those that its query i sees: the first ones, so many. */
static int64_t length_of(const struct kg_tensor *in, int64_t sequence)
{
    return (int64_t)rows_at(&in[IN_LENGTHS], sequence, 0, 0, 0);
}

static int64_t visible(const struct kg_problem *p, int64_t length, int64_t i)
{
    const int64_t keys = length - p->size[Q].value + i + 1;
    return keys < 0 ? 0 : keys;
}

/* In elements, of a row of K or V. */
static int64_t row_of_key(const struct kg_problem *p, const struct kg_tensor *in, unsigned tensor,
                          int64_t sequence, int64_t key, int64_t kv_head)
{
    const int64_t page = p->size[PAGE].value;
    const int64_t block = (int64_t)rows_at(&in[IN_TABLE], sequence, key / page, 0, 0);
    const struct kg_tensor *t = &in[tensor];
    return block * t->stride[0] + key % page * t->stride[1] + kv_head * t->stride[2];
}

/* ---- how much work ---- */

/* Of the timed case. */
static double flops(const struct kg_problem *p)
{
    double pairs = 0;
    for (int64_t i = 0; i < p->size[B].value; i++) {
        const double keys = (double)timed_length(p, i), sq = (double)p->size[Q].value,
                     rows = fmin(sq, keys);
        pairs += rows * (keys - rows) + rows * (rows + 1) / 2;
    }
    return 4.0 * (double)(p->size[H].value * p->size[DIM].value) * pairs;
}

static double bytes(const struct kg_problem *p)
{
    double keys = 0, each = (double)dtype_of(p)->bytes;
    for (int64_t i = 0; i < p->size[B].value; i++)
        keys += (double)timed_length(p, i);
    keys = fmin(keys, (double)(p->size[BLOCKS].value * p->size[PAGE].value));
    return 2 * each * (double)p->size[DIM].value *
               (keys * (double)p->size[G].value +
                (double)(p->size[B].value * p->size[Q].value * p->size[H].value)) +
           4.0 * (double)(p->size[B].value * (p->size[TABLE].value + 1));
}

static double cost(const struct kg_problem *p)
{
    return 4.0 * (double)(p->size[B].value * p->size[H].value * p->size[Q].value) *
           (double)most_keys(p) * (double)p->size[DIM].value;
}

/* ---- shapes ---- */

/* Decoding; one pair; more queries than a tile; many keys; more sequences than there are blocks
 * for; heads of a KV head that fill tiles of 16; more queries than keys. */
static const struct op_shape closest[] = {
    {{1, 1, 4, 1, 8, 9}, OP_SCALE_OWN},
    {{1, 1, 1, 1, 1, 1}, OP_SCALE_OWN},
    {{2, 3, 6, 9, 7, 16}, OP_SCALE_OWN},
    {{1, 1, 16, 1, 33, 40}, OP_SCALE_OWN},
    {{5, 2, 4, 1, 2, 10}, OP_SCALE_OWN},
    {{4, 8, 8, 2, 5, 20}, OP_SCALE_OWN},
    {{1, 1, 48, 1, 5, 6}, OP_SCALE_OWN},
    {{1, 2, 64, 3, 3, 4}, OP_SCALE_OWN},
    {{3, 1, 2, 17, 4, 5}, OP_SCALE_OWN},
    {{2, 1, 2, 70, 6, 14}, OP_SCALE_OWN},
    {{6, 2, 2, 1, 3, 7}, OP_SCALE_OWN},
    {{1, 1, 2, 1, 130, 140}, OP_SCALE_OWN},
    {{1, 2, 2, 16, 8, 9}, OP_SCALE_0},
    {{2, 1, 24, 33, 2, 5}, OP_SCALE_2},
    {{1, 1, 3, 203, 7, 8}, OP_SCALE_OWN},
    {{2, 1, 4, 1, 3, 8, [PAGE] = 64}, OP_SCALE_OWN},
    {{3, 2, 8, 7, 6, 19, [PAGE] = 16}, OP_SCALE_1},
};

#define OVER_GRID 65537 /* blocks that a grid's second and third dimension do not hold */

static const struct op_shape giant[] = {
    {{OVER_GRID, 1, 1, 1, 1, 70001}, OP_SCALE_OWN},
    {{129, 255, 510, 2, 1, 40}, OP_SCALE_OWN},
    {{1, 1, 2, 1, 4099, 4099}, OP_SCALE_OWN},
    {{1, 8, 8, 1, 200, 200003, [PAGE] = 16}, OP_SCALE_OWN},
};

static const struct op_shape tails[] = {
    {{[TABLE] = -1}, OP_SCALE_OWN},
    {{[Q] = 1, [TABLE] = 1}, OP_SCALE_OWN},
    {{[BLOCKS] = 1}, OP_SCALE_OWN},
    {{[Q] = 33}, OP_SCALE_OWN},
};

#define LINES_MAX 32768 /* elements of Q */

static void draw(uint64_t *state, const struct kg_problem *own, struct kg_problem *p)
{
    static const int64_t batches[] = {1, 2, 2, 3, 4, 6}, kv_heads[] = {1, 1, 1, 2, 3, 4, 8},
                         groups[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 48, 64},
                         rests[] = {0, 0, 1, 5};
    p->size[B].value = draw_one(state, batches, COUNT(batches));
    p->size[G].value = draw_one(state, kv_heads, COUNT(kv_heads));
    p->size[H].value = p->size[G].value * draw_one(state, groups, COUNT(groups));
    if (seed_next(state) % 4 == 0)
        p->size[PAGE].value = draw_one(state, pages, COUNT(pages) - 1);
    const double d = (double)(p->size[DIM].value * p->size[B].value * p->size[H].value);
    const double lines = LINES_MAX / d, pairs = 4 * draw_products(state) / d;
    const bool decoding = own->size[Q].value == 1 && seed_next(state) % 2;
    p->size[Q].value = decoding ? 1 : draw_length(state, fmin(lines, sqrt(pairs)));
    const int64_t keys = draw_length(state, fmax(1, pairs / (double)p->size[Q].value));
    p->size[TABLE].value = (keys + p->size[PAGE].value - 1) / p->size[PAGE].value;
    const int64_t wanted = p->size[B].value * p->size[TABLE].value;
    p->size[BLOCKS].value =
        seed_next(state) % 4 ? wanted + draw_one(state, rests, COUNT(rests)) : (wanted + 1) / 2;
    const uint64_t kind = seed_next(state) % 8;
    const double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    p->param[0].value = usual_scale(p) * (kind < 4 ? 1 : kind == 4 ? -drawn : drawn);
}

/* ---- inputs ---- */

/* A sequence by itself as a problem of attention. */
static struct kg_problem sequence_of(const struct kg_problem *p, int64_t length)
{
    struct kg_problem a =
        op_problem(&op_attention_fwd, p->dtype[IN_Q], KG_FLAG_CAUSAL | (p->flags & KG_FLAG_TF32));
    a.size[B].value = 1;
    a.size[G].value = p->size[G].value;
    a.size[H].value = p->size[H].value;
    a.size[Q].value = p->size[Q].value;
    a.size[S].value = length;
    a.size[D].value = p->size[DIM].value;
    a.param[0].value = p->param[0].value;
    return a;
}

static struct kg_tensor rows_tensor(const struct kg_problem *a, unsigned i, void *data)
{
    const struct kg_shape shape = op_shape_of(a, i);
    struct kg_tensor t = {.data = data, .dtype = a->dtype[i], .rank = shape.rank};
    int64_t stride = 1;
    for (unsigned r = t.rank; r-- > 0; stride *= t.shape[r]) {
        t.shape[r] = shape.size[r];
        t.stride[r] = stride;
    }
    return t;
}

/* Fills what a sequence sees as a pattern of attention has it. */
static void fill_sequence(const struct probing *x, enum probe probe, int64_t sequence)
{
    const struct kg_problem *p = x->p;
    const int64_t length = length_of(x->in, sequence), d = p->size[DIM].value;
    const struct kg_problem a = sequence_of(p, length);
    const struct kg_tensor *q = &x->in[IN_Q];
    struct kg_tensor in[3] = {*q};
    in[0].data = (char *)q->data + sequence * q->stride[0] * (int64_t)kg_dtype_bytes(q->dtype);
    in[0].shape[0] = 1;
    in[0].shape[1] = q->shape[2];
    in[0].shape[2] = q->shape[1];
    in[0].stride[1] = q->stride[2];
    in[0].stride[2] = q->stride[1];
    for (unsigned i = IN_K; i <= IN_V; i++) {
        const size_t each = kg_dtype_bytes(p->dtype[i]);
        in[i] = rows_tensor(&a, i, malloc((size_t)(p->size[G].value * length * d) * each));
    }
    if (in[IN_K].data && in[IN_V].data)
        probe_fill(probe, &a, in, seed_at(x->seed, INPUTS + (uint64_t)sequence));
    for (unsigned i = IN_K; i <= IN_V; i++) {
        for (int64_t row = 0; in[i].data && row < p->size[G].value * length; row++) {
            const int64_t to = row_of_key(p, x->in, i, sequence, row % length, row / length);
            for (int64_t c = 0; c < d; c++)
                storage_put(x->in[i].data, x->in[i].dtype, to + c,
                            storage_get(in[i].data, in[i].dtype, row * d + c));
        }
        free(in[i].data);
    }
}

/* Where sequences share a block the last one says what is in it. Numbers that lead to scores of a
 * known size would not, then; those of these two patterns are good for any. */
static void finish(const struct probing *x)
{
    const struct kg_problem *p = x->p;
    enum probe probe = x->probe;
    fill(p, IN_TABLE, &x->in[IN_TABLE], 1, NULL, seed_at(x->seed, IN_TABLE));
    fill(p, IN_LENGTHS, &x->in[IN_LENGTHS], 1, NULL, seed_at(x->seed, IN_LENGTHS));
    if (probe != PROBE_RETRIEVAL) {
        char *used = calloc((size_t)p->size[BLOCKS].value, 1);
        for (int64_t i = 0; i < p->size[B].value * p->size[TABLE].value; i++) {
            const int64_t block = (int64_t)pattern_get(&x->in[IN_TABLE], i);
            if (!used || used[block]++)
                probe = PROBE_NORMAL;
        }
        free(used);
    }
    for (int64_t i = 0; i < p->size[B].value; i++)
        fill_sequence(x, probe, i);
}

/* What no query sees leads, if it is read. A change may let a query see it. */
static double value_leading(const struct drawing *d, int64_t flat)
{
    return 8 * pattern_normal(d->seed, flat);
}

/* What no query ever sees: a weight of 0 does not take it away. */
static double value_unseen(const struct drawing *d, int64_t)
{
    return d->tensor == IN_K || d->tensor == IN_V ? NAN : 0;
}

#define PATTERNS(PATTERN)                                                                          \
    PATTERN(CONSTANT)                                                                              \
    PATTERN(RETRIEVAL)                                                                             \
    PATTERN(RAMP)                                                                                  \
    PATTERN(MASKED)                                                                                \
    PATTERN(SHIFTED)                                                                               \
    PATTERN(STRETCHED)                                                                             \
    PATTERN(FAINT)                                                                                 \
    PATTERN(LOW)                                                                                   \
    PATTERN(ZERO_FIRST)                                                                            \
    PATTERN(ZERO_SECOND)                                                                           \
    PATTERN(ZERO_THIRD)                                                                            \
    PATTERN(ZERO_PARTS)                                                                            \
    PATTERN(ONE_VALUE)

#define SLACK(name)                                                                                \
    static double slack_##name(const struct kg_problem *p)                                         \
    {                                                                                              \
        const struct kg_problem a = sequence_of(p, most_keys(p));                                  \
        return probe_slack(PROBE_##name, &a);                                                      \
    }
SLACK(NORMAL)
PATTERNS(SLACK)

#define ROW(its) {PROBE_##its, .value = value_unseen, .finish = finish, .slack = slack_##its},
static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, .value = value_leading, .finish = finish, .slack = slack_NORMAL}, PATTERNS(ROW)};

/* A value that a sequence's last query sees; of random numbers as often the length of a sequence,
 * or which block one of its pages is. */
static void change(const struct probing *x)
{
    const struct kg_problem *p = x->p;
    const uint64_t random = seed_at(x->seed, PATTERN_TRIES), at = seed_at(random, 1);
    const int64_t sequence = (int64_t)(seed_at(random, 2) % (uint64_t)p->size[B].value);
    const int64_t length = length_of(x->in, sequence), key = (int64_t)(at % (uint64_t)length);
    const int64_t page = key / p->size[PAGE].value, blocks = p->size[BLOCKS].value;
    const unsigned way = x->probe == PROBE_NORMAL ? (unsigned)(random % 3) : 0;
    if (way == 1 && most_keys(p) > 1) {
        pattern_put(&x->in[IN_LENGTHS], sequence,
                    (double)(length < most_keys(p) ? length + 1 : length - 1));
    } else if (way == 2 && blocks > 1) {
        const int64_t flat = sequence * p->size[TABLE].value + page;
        const int64_t block = (int64_t)pattern_get(&x->in[IN_TABLE], flat);
        pattern_put(
            &x->in[IN_TABLE], flat,
            (double)((block + 1 + (int64_t)(random / 3 % (uint64_t)(blocks - 1))) % blocks));
    } else {
        const int64_t kv_head = (int64_t)(seed_at(random, 3) % (uint64_t)p->size[G].value);
        const int64_t column = (int64_t)(seed_at(random, 4) % (uint64_t)p->size[DIM].value);
        storage_put(x->in[IN_V].data, x->in[IN_V].dtype,
                    row_of_key(p, x->in, IN_V, sequence, key, kv_head) + column, 64);
    }
}

/* ---- the reference ---- */

struct paged {
    const struct kg_problem *p;
    const struct kg_tensor *in;
    double *o;
    bool failed;
};

/* All queries of a KV head of a sequence: [length, d] of K and V, a query, and its scores. */
static void attend(const struct paged *a, int64_t sequence, int64_t kv_head, double *memory)
{
    const struct kg_problem *p = a->p;
    const int64_t length = length_of(a->in, sequence), d = p->size[DIM].value,
                  group = p->size[H].value / p->size[G].value;
    double *k = memory, *v = k + length * d, *q = v + length * d, *weight = q + d;
    for (int64_t j = 0; j < length; j++) {
        const int64_t at[] = {row_of_key(p, a->in, IN_K, sequence, j, kv_head),
                              row_of_key(p, a->in, IN_V, sequence, j, kv_head)};
        for (int64_t c = 0; c < d; c++) {
            k[j * d + c] = storage_get(a->in[IN_K].data, a->in[IN_K].dtype, at[0] + c);
            v[j * d + c] = storage_get(a->in[IN_V].data, a->in[IN_V].dtype, at[1] + c);
        }
    }
    for (int64_t row = 0; row < p->size[Q].value * group; row++) {
        const int64_t i = row / group, head = kv_head * group + row % group;
        const int64_t seen = visible(p, length, i);
        double *o = a->o + ((sequence * p->size[Q].value + i) * p->size[H].value + head) * d;
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < d; c++) {
            q[c] = rows_at(&a->in[IN_Q], sequence, i, head, c) * p->param[0].value;
            o[c] = 0;
        }
        for (int64_t j = 0; j < seen; j++) {
            weight[j] = 0;
            for (int64_t c = 0; c < d; c++)
                weight[j] += q[c] * k[j * d + c];
            most = fmax(most, weight[j]);
        }
        for (int64_t j = 0; j < seen; j++)
            sum += weight[j] = exp(weight[j] - most);
        for (int64_t j = 0; j < seen; j++)
            rows_add(o, v + j * d, weight[j] / sum, d);
    }
}

static void attend_rows(void *context, int, int64_t first, int64_t end)
{
    struct paged *a = context;
    const int64_t kv_heads = a->p->size[G].value, d = a->p->size[DIM].value;
    for (int64_t i = first; i < end; i++) {
        const int64_t length = length_of(a->in, i / kv_heads);
        double *memory = malloc((size_t)(length * (2 * d + 1) + d) * sizeof *memory);
        if (memory)
            attend(a, i / kv_heads, i % kv_heads, memory);
        else
            a->failed = true;
        free(memory);
    }
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    struct paged a = {p, in, out[0], false};
    rows_for_each(p->size[B].value * p->size[G].value, threads, attend_rows, &a);
    return a.failed ? KG_LAUNCH_FAILED : KG_OK;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                      int64_t flat)
{
    const int64_t d = p->size[DIM].value, c = flat % d, h = flat / d % p->size[H].value;
    const int64_t i = flat / d / p->size[H].value % p->size[Q].value;
    const int64_t b = flat / d / p->size[H].value / p->size[Q].value;
    const int64_t kv_head = h / (p->size[H].value / p->size[G].value);
    const int64_t page = p->size[PAGE].value, seen = visible(p, length_of(in, b), i);
    double most = -INFINITY, weights = 0, sum = 0;
    for (int64_t j = 0; j < seen; j++) {
        const int64_t block = (int64_t)rows_at(&in[IN_TABLE], b, j / page, 0, 0);
        double score = 0;
        for (int64_t l = 0; l < d; l++)
            score +=
                rows_at(&in[IN_Q], b, i, h, l) * rows_at(&in[IN_K], block, j % page, kv_head, l);
        score *= p->param[0].value;
        const double now = fmax(most, score), old = exp(most - now), weight = exp(score - now);
        weights = weights * old + weight;
        sum = sum * old + weight * rows_at(&in[IN_V], block, j % page, kv_head, c);
        most = now;
    }
    return seen > 0 ? sum / weights : 0;
}

const struct op op_attention_paged = {
    .name = "attention_paged",
    .sizes = sizes,
    .n_sizes = SIZES,
    .param = &scale,
    .tensors = tensors,
    .n_tensors = COUNT(tensors),
    .id = "bhgqtnpd",
    .flops = flops,
    .bytes = bytes,
    .cost = cost,
    .patterns = patterns,
    .n_patterns = COUNT(patterns),
    .sharpest = PROBE_RETRIEVAL,
    .change = change,
    .inputs_count = attention_inputs_count,
    .fixed = {[IN_TABLE] = KG_I32, [IN_LENGTHS] = KG_I32},
    .closest = {closest, COUNT(closest)},
    .giant = {giant, COUNT(giant)},
    .tails = {tails, COUNT(tails)},
    .draw = draw,
    .reference = reference,
    .element = element,
    .fit = fit,
    .fill = fill,
};
