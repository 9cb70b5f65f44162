/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verify_limits_backward.c: no right backward pass of attention is called wrong, and wrong
 * ones are.
 *
 * Kernels that do all that kernel.h allows are called directly: sums in fp32 in several orders, the
 * scale before or after, powers of e or of two, P and dS rounded to the dtype, TF32 that rounds or
 * truncates.
 *
 * not sanitized: it computes hundreds of problems, none of them from outside
 * also runs long: a thousand seeds of each pattern, in place of 100
 */
#include <math.h>

#include "kernels/ops/seed.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/right_sums.h"
#include "tests/unit/unit.h"

#define LEAST_SHARE 0.02
#define LINES_MAX 256 /* queries of a KV head, keys */
#define HEAD_DIM_MAX 256

static const struct way right[] = {
    {.order = IN_ORDER}, /* naive */
    {.order = IN_ORDER, .truncates = true, .rounds_weights = true, .rounds_gradients = true},
    {.order = IN_LANES,
     .fused = true,
     .base2 = true,
     .rounds_weights = true,
     .rounds_gradients = true,
     .from_rounded = true},
    {.order = BACKWARD,
     .fused = true,
     .base2 = true,
     .scale_first = true,
     .rounds_gradients = true},
    {.order = IN_HALVES, .truncates = true, .rounds_weights = true, .from_rounded = true},
};

#define WAYS (sizeof right / sizeof *right)

enum { IN_Q, IN_K, IN_V, IN_O, IN_DO, IN_LSE };

static float rounded_factor(const struct kg_problem *p, const struct way *w, bool rounds, float x)
{
    return p->dtype[0] == KG_F32 || !rounds ? factor(p, w, x) : rounded_to(p->dtype[0], x);
}

/* The lines of a KV head: those of its query heads, and its keys. */
struct head {
    const struct kg_problem *p;
    const struct way *w;
    int d, keys, queries;
    float in[5][LINES_MAX][HEAD_DIM_MAX]; /* as factors, but for O and for dO in D */
    float weight[LINES_MAX][LINES_MAX], gradient[LINES_MAX][LINES_MAX]; /* of query and key */
};

static void load_lines(struct head *h, const struct kg_tensor *in, unsigned i, int64_t first, int n)
{
    for (int line = 0; line < n; line++)
        for (int l = 0; l < h->d; l++)
            h->in[i][line][l] = kg_load_float(in[i].data, in[i].dtype, (first + line) * h->d + l);
}

static int visible_keys(const struct head *h, int query)
{
    const int rows = (int)kg_size(h->p, "sq"), visible = query % rows + 1 + h->keys - rows;
    return !(h->p->flags & KG_FLAG_CAUSAL) ? h->keys : visible < 0 ? 0 : visible;
}

static void cut_factors(struct head *h, unsigned i, int n, float times)
{
    for (int line = 0; line < n; line++)
        for (int l = 0; l < h->d; l++)
            h->in[i][line][l] = factor(h->p, h->w, h->in[i][line][l]) * times;
}

/* P and dS of all pairs, as factors. */
static void weigh(struct head *h, const float *lse)
{
    const struct way *w = h->w;
    const float scale = (float)kg_param(h->p, "scale");
    static float delta[LINES_MAX];
    for (int i = 0; i < h->queries; i++) {
        delta[i] = dot(w, h->in[IN_O][i], h->in[IN_DO][i], h->d);
        delta[i] = w->rounds_sums ? rounded_to(h->p->dtype[0], delta[i]) : delta[i];
    }
    cut_factors(h, IN_Q, h->queries, 1);
    cut_factors(h, IN_DO, h->queries, 1);
    cut_factors(h, IN_K, h->keys, 1);
    cut_factors(h, IN_V, h->keys, 1);
    for (int i = 0; i < h->queries; i++) {
        const int seen = visible_keys(h, i) - w->loses_key;
        float q[HEAD_DIM_MAX];
        for (int l = 0; l < h->d; l++)
            q[l] = h->in[IN_Q][i][l] * scale;
        for (int j = 0; j < h->keys; j++) {
            float score = w->scale_first ? dot(w, q, h->in[IN_K][j], h->d)
                                         : dot(w, h->in[IN_Q][i], h->in[IN_K][j], h->d) * scale;
            float weight = weight_of(w, score, lse[i]);
            float used = rounded_factor(h->p, w, w->rounds_weights, weight);
            float dp = dot(w, h->in[IN_DO][i], h->in[IN_V][j], h->d);
            float gradient = (w->from_rounded && h->p->dtype[0] != KG_F32 ? used : weight) *
                             (dp - delta[i]) * (w->scale_first ? scale : 1);
            h->weight[i][j] = j < seen ? used : 0;
            h->gradient[i][j] =
                j < seen ? rounded_factor(h->p, w, w->rounds_gradients, gradient) : 0;
        }
    }
}

/* Rows of sums of factors with the lines of input i: factors lie `step` apart. */
static void multiply(const struct head *h, const float *factors, int step, unsigned i, int n,
                     float times, float *row)
{
    float a[LINES_MAX], b[LINES_MAX];
    for (int at = 0; at < n; at++)
        a[at] = factors[at * step];
    for (int l = 0; l < h->d; l++) {
        for (int at = 0; at < n; at++)
            b[at] = h->in[i][at][l];
        row[l] = dot(h->w, a, b, n) * times;
    }
}

static void run_kernel(const struct kg_problem *p, const struct way *w, const struct kg_tensor *in,
                       float *const *out)
{
    static struct head h;
    const int group = (int)(kg_size(p, "h") / kg_size(p, "kv_heads"));
    const float after = w->scale_first ? 1 : (float)kg_param(p, "scale");
    h.p = p;
    h.w = w;
    h.d = (int)kg_size(p, "d");
    h.keys = (int)kg_size(p, "s");
    h.queries = group * (int)kg_size(p, "sq");
    for (int kv = 0; kv < kg_size(p, "kv_heads"); kv++) {
        for (unsigned i = IN_Q; i < IN_LSE; i++) {
            const int lines = i == IN_K || i == IN_V ? h.keys : h.queries;
            load_lines(&h, in, i, (int64_t)kv * lines, lines);
        }
        weigh(&h, (const float *)in[IN_LSE].data + kv * h.queries);
        for (int i = 0; i < h.queries; i++)
            multiply(&h, h.gradient[i], 1, IN_K, h.keys, after,
                     out[0] + (kv * h.queries + i) * h.d);
        for (int j = 0; j < h.keys; j++) {
            multiply(&h, &h.gradient[0][j], LINES_MAX, IN_Q, h.queries, after,
                     out[1] + (kv * h.keys + j) * h.d);
            multiply(&h, &h.weight[0][j], LINES_MAX, IN_DO, h.queries, 1,
                     out[2] + (kv * h.keys + j) * h.d);
        }
    }
}

/* Rows of few keys and keys of few queries, more queries than keys, groups, and scales as
 * verification draws them (attention_fwd.c). */
static struct kg_problem draw_problem(const char *, const struct dtype *dtype, uint64_t *state)
{
    static const int head_dims[] = {8, 16, 40, 64, 128, 256}, keys[] = {1, 2, 3, 7, 16, 33, 64},
                     queries[] = {1, 2, 3, 5, 9, 17};
    const int d = head_dims[seed_next(state) % 6], kv_heads = 1 + (int)(seed_next(state) % 2);
    const int group = 1 + (int)(seed_next(state) % 3), all = keys[seed_next(state) % 7];
    const uint32_t causal = seed_next(state) % 2 ? KG_FLAG_CAUSAL : 0;
    struct kg_problem forward = attention(dtype->code, causal | dtype->flags, group * kv_heads,
                                          kv_heads, queries[seed_next(state) % 6], all, d);
    const uint64_t kind = seed_next(state) % 10;
    const double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    *op_param_named(&forward, "scale") *= kind < 4 ? 1 : kind == 4 ? -drawn : drawn;
    if (kind >= 8)
        *op_param_named(&forward, "scale") = (double)kind - 7;
    return attention_backward(&forward);
}

static const struct right_ways kernels = {run_kernel, right, WAYS, 100, LEAST_SHARE, draw_problem};

TEST(right_gradients)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (op_has_dtype(op_by_name("attention_bwd"), &dtypes[i]))
            right_check(&kernels, "attention_bwd", &dtypes[i]);
}

/* The limits are no wider than that. */
TEST(what_is_wrong_is_seen)
{
    static const struct {
        const char *dtype;
        enum probe probe;
        struct way way;
    } wrong[] = {
        {"fp16", PROBE_NORMAL, {.loses_key = true}},
        {"bf16", PROBE_NORMAL, {.loses_key = true}},
        {"fp32", PROBE_NORMAL, {.loses_key = true}},
        {"tf32", PROBE_NORMAL, {.loses_key = true}},
        {"fp32", PROBE_NORMAL, {.bits_lost = 12}},
        {"fp16", PROBE_RETRIEVAL, {.rounds_sums = true}},
        {"bf16", PROBE_RETRIEVAL, {.rounds_sums = true}},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct dtype *dtype = dtype_by_name(wrong[i].dtype);
        const struct kg_problem forward =
            attention(dtype->code, KG_FLAG_CAUSAL | dtype->flags, 2, 1, 9, 64, 128);
        const struct kg_problem p = attention_backward(&forward);
        unsigned seen = 0;
        for (uint64_t seed = 0; seed < 40; seed++) {
            char text[500];
            seen += right_share(&p, wrong[i].probe, run_kernel, &wrong[i].way, 2 * seed, text,
                                sizeof text) > 1;
        }
        assert_in_range(seen, 38, 40);
    }
}
