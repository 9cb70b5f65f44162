/* SPDX-License-Identifier: Apache-2.0 */
/* attention_fwd.c: O = softmax(scale * Q K^T) V, by heads that may share keys and values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/attention_patterns.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* From both ends: those with a tail behind a tile of 16, 32 or 64, and those that are not of whole
 * vectors. */
static const int64_t head_dims[] = {72, 40, 96, 80, 128, 64, 32, 256, 192, 16, 8, 160, 36, 33, 0};

const struct op_size attention_size_table[ATTENTION_SIZES] = {
    [B] = {"b", "b", 'b', OP_COUNT, .at = B, .classes = 4, .few = 2},
    [G] = {"kv_heads", "kv", 'g', OP_COUNT, .at = G, .usual = 'h', .classes = 6, .few = 2},
    [H] = {"h", "h", 'h', OP_COUNT, .at = H, .multiple_of = 'g', .classes = 64, .few = 4},
    [Q] = {"sq", "sq", 'q', OP_LENGTH, .at = Q, .usual = 's', .one_stays = true, .few = 7},
    [S] = {"s", "s", 's', OP_LENGTH, .at = S, .few = 9},
    [D] = {"d", "d", 'd', OP_GIVEN, .at = D, .values = head_dims},
};

static double usual_scale(const struct kg_problem *p)
{
    return 1.0 / sqrt((double)p->size[D].value);
}

const struct op_param attention_scale = {"scale", 0, -1000, 1000, usual_scale};
const struct op_flag attention_causal = {"causal", KG_FLAG_CAUSAL, "causal", "full"};

static const struct op_tensor tensors[] = {
    {"q", "bhqd", OP_INPUT, NULL},
    {"k", "bgsd", OP_INPUT, NULL},
    {"v", "bgsd", OP_INPUT, NULL},
    {"o", "bhqd", OP_OUT, .whole = "qsd"},
};

/* For each query-key pair of a head that the mask lets through. */
static double flops(const struct kg_problem *p)
{
    const double sq = (double)p->size[Q].value, skv = (double)p->size[S].value;
    /* Query i sees i + 1 + skv - sq keys; with sq > skv the first sq - skv rows see none. */
    const double rows = sq < skv ? sq : skv;
    const double pairs =
        p->flags & KG_FLAG_CAUSAL ? rows * (skv - rows) + rows * (rows + 1) / 2 : sq * skv;
    return 4.0 * (double)p->size[B].value * (double)p->size[H].value * (double)p->size[D].value *
           pairs;
}

/* A reference works on as many queries at a time, and takes as long for fewer; nor does a mask
 * spare it much. */
#define QUERIES_AT_ONCE 64

static double cost(const struct kg_problem *p)
{
    int64_t queries = p->size[Q].value < QUERIES_AT_ONCE ? QUERIES_AT_ONCE : p->size[Q].value;
    return 4.0 * (double)p->size[B].value * (double)(p->size[H].value * queries) *
           (double)p->size[S].value * (double)p->size[D].value;
}

/* ---- shapes ---- */

/* Decoding; a single pair; half a tile of keys; more queries than keys; whole tiles, whose scale is
 * zero: all keys count the same then; as many queries as keys and heads as KV heads, so that Q, K
 * and V have one shape. */
const struct op_shape attention_closest[ATTENTION_CLOSEST] = {
    {{[B] = 1, [G] = 1, [H] = 4, [Q] = 1, [S] = OP_OWN + 1}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 1, [S] = 1}, OP_SCALE_OWN},
    {{[B] = 2, [G] = 3, [H] = 6, [Q] = 63, [S] = 97}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 3, [Q] = 203, [S] = 113}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 2, [H] = 2, [Q] = 64, [S] = 128}, OP_SCALE_0},
    {{[B] = 2, [G] = 3, [H] = 3, [Q] = 72, [S] = 72}, OP_SCALE_OWN},
    /* Query heads of a KV head that fill a tile of 16, two of 16, and one and a half of 32; a key
     * more than tiles of 512; one, two and three tiles of 32, 64 and 128 keys, and of queries. */
    {{[B] = 1, [G] = 1, [H] = 48, [Q] = 1, [S] = 65}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 2, [H] = 64, [Q] = 3, [S] = 33}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 16, [Q] = 17, [S] = 32}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 1, [S] = 513}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 5, [S] = 1025}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 128, [S] = 128}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 2, [H] = 2, [Q] = 16, [S] = 64}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 3, [S] = 96}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 9, [S] = 192}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 15, [S] = 256}, OP_SCALE_OWN},
    {{[B] = 2, [G] = 1, [H] = 1, [Q] = 7, [S] = 384}, OP_SCALE_OWN},
    /* Four batches of eight KV heads; a group of one and a half tiles of 16, and one row more than
     * keys; decoding of batches, and of more keys than any other; more queries than any other; a
     * tile of queries without keys, of four KV heads. */
    {{[B] = 4, [G] = 8, [H] = 8, [Q] = 2, [S] = 65}, OP_SCALE_1},
    {{[B] = 1, [G] = 1, [H] = 24, [Q] = 18, [S] = 17}, OP_SCALE_2},
    {{[B] = 5, [G] = 2, [H] = 4, [Q] = 1, [S] = 255}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 1, [S] = 2113}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 1031, [S] = 24}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 4, [H] = 4, [Q] = 128, [S] = 64}, OP_SCALE_OWN},
};

#define OVER_GRID 65537 /* blocks that a grid's second and third dimension do not hold */

static const struct op_shape giant[] = {
    {{[B] = OVER_GRID, [G] = 1, [H] = 1, [Q] = 1, [S] = 3}, OP_SCALE_OWN},
    {{[B] = 129, [G] = 255, [H] = 510, [Q] = 2, [S] = 5}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 33, [S] = OVER_GRID + 32}, OP_SCALE_OWN},
    {{[B] = 2 * OVER_GRID, [G] = 8, [H] = 16, [Q] = 17, [S] = 3}, OP_SCALE_OWN},
};

/* Of tiles of 64 and 128 there is half a tile. A kernel that holds all keys of a head takes no more
 * than the problem has. */
const struct op_shape attention_tails[ATTENTION_TAILS] = {
    {{[Q] = 1, [S] = 1}, OP_SCALE_OWN},   {{[S] = -33}, OP_SCALE_OWN}, {{[S] = 33}, OP_SCALE_OWN},
    {{[Q] = -1, [S] = -1}, OP_SCALE_OWN}, {{[Q] = 33}, OP_SCALE_OWN},
};

/* More queries than keys, and both more than a part of 256 or 512 has: with a mask some rows have
 * no keys in several parts. */
static const struct op_shape wide[] = {
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 280, [S] = 261}, OP_SCALE_OWN},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 570, [S] = 530}, OP_SCALE_OWN},
};

#define LINES_MAX 32768 /* elements of Q */

void attention_draw(uint64_t *state, const struct kg_problem *own, struct kg_problem *p)
{
    static const int64_t batches[] = {1, 1, 1, 1, 2, 3, 4, 6},
                         kv_heads[] = {1, 1, 1, 2, 3, 4, 5, 8},
                         groups[] = {1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 40, 48, 64};
    p->size[B].value = draw_one(state, batches, COUNT(batches));
    p->size[G].value = draw_one(state, kv_heads, COUNT(kv_heads));
    p->size[H].value = p->size[G].value * draw_one(state, groups, COUNT(groups));
    double lines = LINES_MAX / (double)(p->size[D].value * p->size[B].value * p->size[H].value);
    double pairs =
        2 * draw_products(state) / (double)(p->size[D].value * p->size[B].value * p->size[H].value);
    bool decoding = own->size[Q].value == 1 && seed_next(state) % 2;
    double most = seed_next(state) % 4 ? 2 * sqrt(pairs) : pairs;
    p->size[Q].value = decoding ? 1 : draw_length(state, fmin(lines, most));
    p->size[S].value = draw_length(state, fmin(4 * lines, pairs / (double)p->size[Q].value));
    if (seed_next(state) % 4 == 0)
        p->flags ^= KG_FLAG_CAUSAL;
    uint64_t kind = seed_next(state) % 8;
    double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    p->param[0].value = usual_scale(p) * (kind < 4 ? 1 : kind == 4 ? -drawn : drawn);
}

/* With a scale of zero those of Q and K do not. */
bool attention_inputs_count(const struct kg_problem *p)
{
    return p->param[0].value != 0;
}

/* ---- the reference ---- */

struct attention {
    const struct kg_problem *p;
    const double *q;  /* [batch, heads, seqlen_q, head_dim] */
    const double *kt; /* [batch, kv_heads, head_dim, seqlen_kv] */
    const double *v;  /* [batch, kv_heads, seqlen_kv, head_dim] */
    double *scores;   /* [ROWS_SHARES, seqlen_kv]: the row that a share works on */
    double *o;        /* [batch, heads, seqlen_q, head_dim] */
    int64_t head;     /* batch * heads + head, the one at hand */
};

static void attention_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct attention *a = context;
    const struct kg_problem *p = a->p;
    int64_t batch = a->head / p->size[H].value, head = a->head % p->size[H].value;
    int64_t kv = batch * p->size[G].value + head / (p->size[H].value / p->size[G].value);
    const double *kt = a->kt + kv * p->size[D].value * p->size[S].value;
    const double *v = a->v + kv * p->size[S].value * p->size[D].value;

    for (int64_t i = first; i < end; i++) {
        const double *q = a->q + (a->head * p->size[Q].value + i) * p->size[D].value;
        double *o = a->o + (a->head * p->size[Q].value + i) * p->size[D].value;
        double *scores = a->scores + share * p->size[S].value;
        int64_t visible = attention_visible(p, i);

        memset(scores, 0, (size_t)p->size[S].value * sizeof(*scores));
        for (int64_t d = 0; d < p->size[D].value; d++)
            rows_add(scores, kt + d * p->size[S].value, q[d] * p->param[0].value, visible);
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < visible; j++)
            max = fmax(max, scores[j]);
        for (int64_t j = 0; j < visible; j++)
            sum += scores[j] = exp(scores[j] - max);

        memset(o, 0, (size_t)p->size[D].value * sizeof(*o));
        for (int64_t j = 0; j < visible; j++)
            rows_add(o, v + j * p->size[D].value, scores[j] / sum, p->size[D].value);
    }
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    double *q = rows_decoded(&in[0]);
    double *kt = rows_transposed(rows_decoded(&in[1]), p->size[B].value * p->size[G].value,
                                 p->size[S].value, p->size[D].value);
    double *v = rows_decoded(&in[2]);
    double *scores = malloc((size_t)(ROWS_SHARES * p->size[S].value) * sizeof(*scores));
    enum kg_status status = KG_LAUNCH_FAILED;
    if (q && kt && v && scores) {
        struct attention a = {p, q, kt, v, scores, out[0], 0};
        for (a.head = 0; a.head < p->size[B].value * p->size[H].value; a.head++)
            rows_for_each(p->size[Q].value, threads, attention_rows, &a);
        status = KG_OK;
    }
    free(q);
    free(kt);
    free(v);
    free(scores);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                      int64_t flat)
{
    int64_t d = flat % p->size[D].value;
    int64_t i = flat / p->size[D].value % p->size[Q].value;
    int64_t h = flat / p->size[D].value / p->size[Q].value % p->size[H].value;
    int64_t b = flat / p->size[D].value / p->size[Q].value / p->size[H].value;
    int64_t kv_head = h / (p->size[H].value / p->size[G].value);
    int64_t visible = attention_visible(p, i), query = rows_place(&in[0], b, h, i, 0);
    double max = -INFINITY, weights = 0.0, sum = 0.0;

    /* One pass over the keys: a score above all before it scales down what was summed. */
    for (int64_t j = 0; j < visible; j++) {
        double score = 0.0;
        int64_t key = rows_place(&in[1], b, kv_head, j, 0);
        for (int64_t l = 0; l < p->size[D].value; l++) /* elements of a row are neighbours */
            score += storage_get(in[0].data, in[0].dtype, query + l) *
                     storage_get(in[1].data, in[1].dtype, key + l);
        score *= p->param[0].value;
        if (score > max) {
            weights *= exp(max - score);
            sum *= exp(max - score);
            max = score;
        }
        double weight = exp(score - max);
        weights += weight;
        sum += weight * rows_at(&in[2], b, kv_head, j, d);
    }
    return visible > 0 ? sum / weights : 0.0;
}

const struct op op_attention_fwd = {
    .name = "attention_fwd",
    .sizes = attention_size_table,
    .n_sizes = ATTENTION_SIZES,
    .param = &attention_scale,
    .flag = &attention_causal,
    .tensors = tensors,
    .n_tensors = COUNT(tensors),
    .id = "bhgqsd",
    .flops = flops,
    .cost = cost,
    .patterns = attention_patterns,
    .n_patterns = ATTENTION_PATTERNS,
    .sharpest = PROBE_RETRIEVAL,
    .change = attention_change,
    .inputs_count = attention_inputs_count,
    .closest = {attention_closest, ATTENTION_CLOSEST},
    .giant = {giant, COUNT(giant)},
    .tails = {attention_tails, ATTENTION_TAILS},
    .wide = {wide, COUNT(wide)},
    .draw = attention_draw,
    .reference = reference,
    .element = element,
};
