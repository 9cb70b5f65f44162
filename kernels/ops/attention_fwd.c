/* SPDX-License-Identifier: Apache-2.0 */
/* attention_fwd.c: O = softmax(scale * Q K^T) V, by heads that may share keys and values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/attention_patterns.h"
#include "kernels/ops/draw.h"
#include "kernels/ops/rows.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AT(member) .at = offsetof(struct kg_problem, member)

/* From both ends: those with a tail behind a tile of 16, 32 or 64, and those that are not of whole
 * vectors. */
static const int64_t head_dims[] = {72, 40, 96, 80, 128, 64, 32, 256, 192, 16, 8, 160, 36, 33, 0};

enum { B, G, H, Q, S, D };

static const struct op_size sizes[] = {
    [B] = {"b", "b", 'b', OP_COUNT, AT(batch), .classes = 4, .few = 2},
    [G] = {"kv_heads", "kv", 'g', OP_COUNT, AT(kv_heads), .usual = 'h', .classes = 6, .few = 2},
    [H] = {"h", "h", 'h', OP_COUNT, AT(heads), .multiple_of = 'g', .classes = 64, .few = 4},
    [Q] = {"sq", "sq", 'q', OP_LENGTH, AT(seqlen_q), .usual = 's', .one_stays = true, .few = 7},
    [S] = {"s", "s", 's', OP_LENGTH, AT(seqlen_kv), .few = 9},
    [D] = {"d", "d", 'd', OP_GIVEN, AT(head_dim), .values = head_dims},
};

static double usual_scale(const struct kg_problem *p)
{
    return 1.0 / sqrt((double)p->head_dim);
}

static const struct op_param scale = {"scale", AT(scale), -1000, 1000, usual_scale};
static const struct op_flag causal = {"causal", KG_FLAG_CAUSAL, "causal", "full"};

static const struct op_tensor tensors[] = {
    {"q", "bhqd", OP_INPUT, NULL},
    {"k", "bgsd", OP_INPUT, NULL},
    {"v", "bgsd", OP_INPUT, NULL},
    {"o", "bhqd", OP_OUT, .whole = "qsd"},
};

/* Query-key pairs of one head that the mask lets through. */
static double visible_pairs(const struct kg_problem *p)
{
    double sq = (double)p->seqlen_q, skv = (double)p->seqlen_kv;
    if (!(p->flags & KG_FLAG_CAUSAL))
        return sq * skv;
    /* Query i sees i + 1 + skv - sq keys; with sq > skv the first sq - skv rows see none. */
    double rows = sq < skv ? sq : skv;
    return rows * (skv - rows) + rows * (rows + 1) / 2;
}

static double flops(const struct kg_problem *p)
{
    return 4.0 * (double)p->batch * (double)p->heads * (double)p->head_dim * visible_pairs(p);
}

/* A reference works on as many queries at a time, and takes as long for fewer; nor does a mask
 * spare it much. */
#define QUERIES_AT_ONCE 64

static double cost(const struct kg_problem *p)
{
    int64_t queries = p->seqlen_q < QUERIES_AT_ONCE ? QUERIES_AT_ONCE : p->seqlen_q;
    return 4.0 * (double)p->batch * (double)(p->heads * queries) * (double)p->seqlen_kv *
           (double)p->head_dim;
}

/* ---- shapes ---- */

/* Decoding; a single pair; half a tile of keys; more queries than keys; whole tiles, whose scale is
 * zero: all keys count the same then; as many queries as keys and heads as KV heads, so that Q, K
 * and V have one shape. */
static const struct op_shape closest[] = {
    {{[B] = 1, [G] = 1, [H] = 4, [Q] = 1, [S] = OP_OWN + 1}, false},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 1, [S] = 1}, false},
    {{[B] = 2, [G] = 3, [H] = 6, [Q] = 63, [S] = 97}, false},
    {{[B] = 1, [G] = 1, [H] = 3, [Q] = 203, [S] = 113}, false},
    {{[B] = 1, [G] = 2, [H] = 2, [Q] = 64, [S] = 128}, .no_scale = true},
    {{[B] = 2, [G] = 3, [H] = 3, [Q] = 72, [S] = 72}, false},
    /* Query heads of a KV head that fill a tile of 16, two of 16, and one and a half of 32; a key
     * more than tiles of 512; one, two and three tiles of 32, 64 and 128 keys, and of queries. */
    {{[B] = 1, [G] = 1, [H] = 48, [Q] = 1, [S] = 65}, false},
    {{[B] = 1, [G] = 2, [H] = 64, [Q] = 3, [S] = 33}, false},
    {{[B] = 1, [G] = 1, [H] = 16, [Q] = 17, [S] = 32}, false},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 1, [S] = 513}, false},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 5, [S] = 1025}, false},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 128, [S] = 128}, false},
    {{[B] = 1, [G] = 2, [H] = 2, [Q] = 16, [S] = 64}, false},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 9, [S] = 192}, false},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 15, [S] = 256}, false},
    {{[B] = 2, [G] = 1, [H] = 1, [Q] = 7, [S] = 384}, false},
};

#define OVER_GRID 65537 /* blocks that a grid's second and third dimension do not hold */

static const struct op_shape giant[] = {
    {{[B] = OVER_GRID, [G] = 1, [H] = 1, [Q] = 1, [S] = 3}, false},
    {{[B] = 129, [G] = 255, [H] = 510, [Q] = 2, [S] = 5}, false},
    {{[B] = 1, [G] = 1, [H] = 2, [Q] = 33, [S] = OVER_GRID + 32}, false},
    {{[B] = 2 * OVER_GRID, [G] = 8, [H] = 16, [Q] = 17, [S] = 3}, false},
};

/* Of tiles of 64 and 128 there is half a tile. A kernel that holds all keys of a head takes no more
 * than the problem has. */
static const struct op_shape tails[] = {
    {{[Q] = 1, [S] = 1}, false},   {{[S] = -33}, false}, {{[S] = 33}, false},
    {{[Q] = -1, [S] = -1}, false}, {{[Q] = 33}, false},
};

/* More queries than keys, and both more than a part of 256 or 512 has: with a mask some rows have
 * no keys in several parts. */
static const struct op_shape wide[] = {
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 280, [S] = 261}, false},
    {{[B] = 1, [G] = 1, [H] = 1, [Q] = 570, [S] = 530}, false},
};

#define LINES_MAX 32768 /* elements of Q */

static void draw(uint64_t *state, const struct kg_problem *own, struct kg_problem *p)
{
    static const int64_t batches[] = {1, 1, 1, 1, 2, 3}, kv_heads[] = {1, 1, 1, 2, 3, 5},
                         groups[] = {1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 48, 64};
    p->batch = draw_one(state, batches, COUNT(batches));
    p->kv_heads = draw_one(state, kv_heads, COUNT(kv_heads));
    p->heads = p->kv_heads * draw_one(state, groups, COUNT(groups));
    double lines = LINES_MAX / (double)(p->head_dim * p->batch * p->heads);
    double pairs = 2 * draw_products(state) / (double)(p->head_dim * p->batch * p->heads);
    bool decoding = own->seqlen_q == 1 && seed_next(state) % 2;
    double most = seed_next(state) % 4 ? 2 * sqrt(pairs) : pairs;
    p->seqlen_q = decoding ? 1 : draw_length(state, fmin(lines, most));
    p->seqlen_kv = draw_length(state, fmin(4 * lines, pairs / (double)p->seqlen_q));
    if (seed_next(state) % 4 == 0)
        p->flags ^= KG_FLAG_CAUSAL;
    uint64_t kind = seed_next(state) % 8;
    double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    p->scale = usual_scale(p) * (kind < 4 ? 1 : kind == 4 ? -drawn : drawn);
}

/* With a scale of zero those of Q and K do not. */
static bool inputs_count(const struct kg_problem *p)
{
    return p->scale != 0;
}

/* ---- the reference ---- */

/* Keys that query i sees: the first ones, this many. */
static int64_t visible_keys(const struct kg_problem *p, int64_t i)
{
    if (!(p->flags & KG_FLAG_CAUSAL))
        return p->seqlen_kv;
    int64_t visible = i + (p->seqlen_kv - p->seqlen_q) + 1;
    return visible < 0 ? 0 : visible;
}

struct attention {
    const struct kg_problem *p;
    const double *q;  /* [batch, heads, seqlen_q, head_dim] */
    const double *kt; /* [batch, kv_heads, head_dim, seqlen_kv] */
    const double *v;  /* [batch, kv_heads, seqlen_kv, head_dim] */
    double *scores;   /* [ROWS_SHARES, seqlen_kv]: the row that a share works on */
    double *o;        /* [batch, heads, seqlen_q, head_dim] */
    int64_t head;     /* batch * heads + head, the one at hand */
};

/* softmax of n scores in place. */
static void softmax(double *s, int64_t n)
{
    double max = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < n; j++)
        max = s[j] > max ? s[j] : max;
    for (int64_t j = 0; j < n; j++)
        sum += s[j] = exp(s[j] - max);
    for (int64_t j = 0; j < n; j++)
        s[j] /= sum;
}

static void attention_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct attention *a = context;
    const struct kg_problem *p = a->p;
    int64_t batch = a->head / p->heads, head = a->head % p->heads;
    int64_t kv = batch * p->kv_heads + head / (p->heads / p->kv_heads);
    const double *kt = a->kt + kv * p->head_dim * p->seqlen_kv;
    const double *v = a->v + kv * p->seqlen_kv * p->head_dim;

    for (int64_t i = first; i < end; i++) {
        const double *q = a->q + (a->head * p->seqlen_q + i) * p->head_dim;
        double *o = a->o + (a->head * p->seqlen_q + i) * p->head_dim;
        double *scores = a->scores + share * p->seqlen_kv;
        int64_t visible = visible_keys(p, i);

        memset(scores, 0, (size_t)p->seqlen_kv * sizeof(*scores));
        for (int64_t d = 0; d < p->head_dim; d++)
            rows_add(scores, kt + d * p->seqlen_kv, q[d] * p->scale, visible);
        softmax(scores, visible);

        memset(o, 0, (size_t)p->head_dim * sizeof(*o));
        for (int64_t j = 0; j < visible; j++)
            rows_add(o, v + j * p->head_dim, scores[j], p->head_dim);
    }
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    double *q = rows_decoded(&in[0]);
    double *kt =
        rows_transposed(rows_decoded(&in[1]), p->batch * p->kv_heads, p->seqlen_kv, p->head_dim);
    double *v = rows_decoded(&in[2]);
    double *scores = malloc((size_t)(ROWS_SHARES * p->seqlen_kv) * sizeof(*scores));
    enum kg_status status = KG_LAUNCH_FAILED;
    if (q && kt && v && scores) {
        struct attention a = {p, q, kt, v, scores, out[0], 0};
        for (a.head = 0; a.head < p->batch * p->heads; a.head++)
            rows_for_each(p->seqlen_q, threads, attention_rows, &a);
        status = KG_OK;
    }
    free(q);
    free(kt);
    free(v);
    free(scores);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                      int64_t flat)
{
    (void)out;
    int64_t d = flat % p->head_dim;
    int64_t i = flat / p->head_dim % p->seqlen_q;
    int64_t h = flat / p->head_dim / p->seqlen_q % p->heads;
    int64_t b = flat / p->head_dim / p->seqlen_q / p->heads;
    int64_t kv_head = h / (p->heads / p->kv_heads);
    int64_t visible = visible_keys(p, i);
    double max = -INFINITY, weights = 0.0, sum = 0.0;

    /* Two passes over the keys, so that no memory is needed: the largest score, then the sums. */
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t j = 0; j < visible; j++) {
            double score = 0.0;
            for (int64_t l = 0; l < p->head_dim; l++)
                score += rows_at(&in[0], b, h, i, l) * rows_at(&in[1], b, kv_head, j, l);
            score *= p->scale;
            if (pass == 0) {
                max = score > max ? score : max;
            } else {
                double weight = exp(score - max);
                weights += weight;
                sum += weight * rows_at(&in[2], b, kv_head, j, d);
            }
        }
    }
    return visible > 0 ? sum / weights : 0.0;
}

const struct op op_attention_fwd = {
    .code = KG_OP_ATTENTION_FWD,
    .name = "attention_fwd",
    .sizes = sizes,
    .n_sizes = COUNT(sizes),
    .param = &scale,
    .flag = &causal,
    .tensors = tensors,
    .n_tensors = COUNT(tensors),
    .id = "bhgqsd",
    .flops = flops,
    .cost = cost,
    .patterns = attention_patterns,
    .n_patterns = ATTENTION_PATTERNS,
    .sharpest = PROBE_RETRIEVAL,
    .change = attention_change,
    .inputs_count = inputs_count,
    .closest = {closest, COUNT(closest)},
    .giant = {giant, COUNT(giant)},
    .tails = {tails, COUNT(tails)},
    .wide = {wide, COUNT(wide)},
    .draw = draw,
    .reference = reference,
    .element = element,
};
