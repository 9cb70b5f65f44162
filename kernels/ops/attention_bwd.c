/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_bwd.c: dQ, dK and dV of attention, from what its forward pass left: O, and for each
 * query L, the log of its sum of exponentials.
 *
 *     P = exp(scale Q K^T - L)    dV = P^T dO    dS = P (dO V^T - sum over d of O dO)
 *     dQ = scale dS K             dK = scale dS^T Q
 *
 * O and L are inputs like the others. The patterns draw O at random: of the gradients of a real O
 * many cancel, and an error would hide there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/attention_patterns.h"
#include "kernels/ops/draw.h"
#include "kernels/ops/rows.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { IN_Q, IN_K, IN_V, IN_O, IN_DO, IN_LSE, INPUTS };

static const struct op_tensor tensors[] = {
    {"q", "bhqd", OP_INPUT, NULL},           {"k", "bgsd", OP_INPUT, NULL},
    {"v", "bgsd", OP_INPUT, NULL},           {"o", "bhqd", OP_INPUT, NULL},
    {"do", "bhqd", OP_INPUT, NULL},          {"lse", "bhq", OP_FP32, NULL},
    {"dq", "bhqd", OP_OUT, .whole = "qsd"},  {"dk", "bgsd", OP_OUT, .whole = "hqsd"},
    {"dv", "bgsd", OP_OUT, .whole = "hqsd"},
};

/* Five products where the forward pass has two. */
static double flops(const struct kg_problem *p)
{
    return 2.5 * op_attention_fwd.flops(p);
}

/* Scores and their gradients are computed twice: by rows and by columns. */
static double cost(const struct kg_problem *p)
{
    return 3.5 * op_attention_fwd.cost(p);
}

/* ---- the reference ---- */

struct backward {
    const struct kg_problem *p;
    double *in[INPUTS];     /* dense */
    double *turned[INPUTS]; /* those with a D, a matrix [d, rows] for each head */
    double *delta;          /* the sums of O dO */
    double *s, *dp;         /* lines of the shares */
    double *const *out;
    int64_t head; /* of dQ, or the KV head */
};

/* Keys that a query sees: the first ones, so many. */
static int64_t visible_keys(const struct kg_problem *p, int64_t i)
{
    int64_t visible = i + (p->size[S].value - p->size[Q].value) + 1;
    return !(p->flags & KG_FLAG_CAUSAL) ? p->size[S].value : visible < 0 ? 0 : visible;
}

/* line[j] = factor * (row . column j), of the first n columns of a turned matrix. */
static void multiply(double *line, const double *row, double factor, const double *turned,
                     int64_t columns, int64_t n, int64_t d)
{
    memset(line, 0, (size_t)n * sizeof *line);
    for (int64_t l = 0; l < d; l++)
        rows_add(line, turned + l * columns, row[l] * factor, n);
}

static void query_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct backward *a = context;
    const struct kg_problem *p = a->p;
    const int64_t d = p->size[D].value, keys = p->size[S].value, queries = p->size[Q].value;
    const int64_t heads = p->size[H].value, groups = p->size[G].value;
    const int64_t kv = a->head / heads * groups + a->head % heads / (heads / groups);
    double *s = a->s + share * keys, *dp = a->dp + share * keys;

    for (int64_t i = first; i < end; i++) {
        const int64_t row = a->head * queries + i, n = visible_keys(p, i);
        double *dq = a->out[0] + row * d;
        multiply(s, a->in[IN_Q] + row * d, p->param[0].value, a->turned[IN_K] + kv * d * keys, keys,
                 n, d);
        multiply(dp, a->in[IN_DO] + row * d, 1, a->turned[IN_V] + kv * d * keys, keys, n, d);
        memset(dq, 0, (size_t)d * sizeof *dq);
        for (int64_t j = 0; j < n; j++)
            rows_add(dq, a->in[IN_K] + (kv * keys + j) * d,
                     p->param[0].value * exp(s[j] - a->in[IN_LSE][row]) * (dp[j] - a->delta[row]),
                     d);
    }
}

static void key_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct backward *a = context;
    const struct kg_problem *p = a->p;
    const int64_t d = p->size[D].value, keys = p->size[S].value, queries = p->size[Q].value;
    const int64_t group = p->size[H].value / p->size[G].value;
    double *s = a->s + share * queries, *dp = a->dp + share * queries;

    for (int64_t j = first; j < end; j++) {
        const int64_t row = a->head * keys + j;
        double *dk = a->out[1] + row * d, *dv = a->out[2] + row * d;
        memset(dk, 0, (size_t)d * sizeof *dk);
        memset(dv, 0, (size_t)d * sizeof *dv);
        /* KV heads have their query heads one after the other, over the batches too. */
        for (int64_t h = a->head * group; h < (a->head + 1) * group; h++) {
            multiply(s, a->in[IN_K] + row * d, p->param[0].value, a->turned[IN_Q] + h * d * queries,
                     queries, queries, d);
            multiply(dp, a->in[IN_V] + row * d, 1, a->turned[IN_DO] + h * d * queries, queries,
                     queries, d);
            for (int64_t i = 0; i < queries; i++) {
                const int64_t query = h * queries + i;
                if (j >= visible_keys(p, i))
                    continue;
                const double weight = exp(s[i] - a->in[IN_LSE][query]);
                rows_add(dv, a->in[IN_DO] + query * d, weight, d);
                rows_add(dk, a->in[IN_Q] + query * d,
                         p->param[0].value * weight * (dp[i] - a->delta[query]), d);
            }
        }
    }
}

/* A copy of the input, turned. */
static double *turned_copy(const struct kg_tensor *t)
{
    return rows_transposed(rows_decoded(t), t->shape[0] * t->shape[1], t->shape[2], t->shape[3]);
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    const int64_t rows = p->size[B].value * p->size[H].value * p->size[Q].value;
    const int64_t d = p->size[D].value;
    const int64_t longest =
        p->size[Q].value > p->size[S].value ? p->size[Q].value : p->size[S].value;
    struct backward a = {.p = p, .out = out};
    enum kg_status status = KG_LAUNCH_FAILED;
    bool whole = true;

    for (int i = 0; i < INPUTS; i++) {
        whole = whole && (a.in[i] = rows_decoded(&in[i]));
        if (i != IN_O && i != IN_LSE)
            whole = whole && (a.turned[i] = turned_copy(&in[i]));
    }
    a.delta = malloc((size_t)rows * sizeof *a.delta);
    a.s = malloc((size_t)(ROWS_SHARES * longest) * sizeof *a.s);
    a.dp = malloc((size_t)(ROWS_SHARES * longest) * sizeof *a.dp);
    if (whole && a.delta && a.s && a.dp) {
        for (int64_t i = 0; i < rows; i++) {
            a.delta[i] = 0;
            for (int64_t l = 0; l < d; l++)
                a.delta[i] += a.in[IN_O][i * d + l] * a.in[IN_DO][i * d + l];
        }
        for (a.head = 0; a.head < p->size[B].value * p->size[H].value; a.head++)
            rows_for_each(p->size[Q].value, threads, query_rows, &a);
        for (a.head = 0; a.head < p->size[B].value * p->size[G].value; a.head++)
            rows_for_each(p->size[S].value, threads, key_rows, &a);
        status = KG_OK;
    }
    for (int i = 0; i < INPUTS; i++) {
        free(a.in[i]);
        free(a.turned[i]);
    }
    free(a.delta);
    free(a.s);
    free(a.dp);
    return status;
}

/* ---- one element ---- */

/* Of a query and a key: the weight, and with *gradient that of the score. */
static double weight_of(const struct kg_problem *p, const struct kg_tensor *in, int64_t b,
                        int64_t h, int64_t i, int64_t j, double *gradient)
{
    const int64_t g = h / (p->size[H].value / p->size[G].value);
    double score = 0, dp = 0, delta = 0;
    for (int64_t l = 0; l < p->size[D].value; l++) {
        const double dout = rows_at(&in[IN_DO], b, h, i, l);
        score += rows_at(&in[IN_Q], b, h, i, l) * rows_at(&in[IN_K], b, g, j, l);
        dp += dout * rows_at(&in[IN_V], b, g, j, l);
        delta += dout * rows_at(&in[IN_O], b, h, i, l);
    }
    const double weight = exp(score * p->param[0].value - rows_at(&in[IN_LSE], b, h, i, 0));
    *gradient = p->param[0].value * weight * (dp - delta);
    return weight;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t out,
                      int64_t flat)
{
    const int64_t of = out ? G : H, rows = p->size[out ? S : Q].value;
    const int64_t l = flat % p->size[D].value, row = flat / p->size[D].value % rows;
    const int64_t head = flat / p->size[D].value / rows % p->size[of].value;
    const int64_t b = flat / p->size[D].value / rows / p->size[of].value;
    const int64_t group = p->size[H].value / p->size[G].value;
    double sum = 0, gradient;

    if (out == 0) {
        for (int64_t j = 0; j < visible_keys(p, row); j++) {
            (void)weight_of(p, in, b, head, row, j, &gradient);
            sum += gradient * rows_at(&in[IN_K], b, head / group, j, l);
        }
        return sum;
    }
    for (int64_t h = head * group; h < (head + 1) * group; h++)
        for (int64_t i = 0; i < p->size[Q].value; i++) {
            if (row >= visible_keys(p, i))
                continue;
            const double weight = weight_of(p, in, b, h, i, row, &gradient);
            sum += out == 1 ? gradient * rows_at(&in[IN_Q], b, h, i, l)
                            : weight * rows_at(&in[IN_DO], b, h, i, l);
        }
    return sum;
}

/* ---- patterns ---- */

/* Deviation of the scores of normal Q and K. */
static double score_width(const struct kg_problem *p)
{
    return fabs(p->param[0].value) * sqrt((double)p->size[D].value);
}

/* About the log of the sum of exponentials of so many normal scores, so that the weights of a row
 * sum to about 1. */
static double value_of_row(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const double width = fmin(score_width(p), 1);
    int64_t visible = visible_keys(p, flat % p->size[Q].value);
    return log(visible > 0 ? (double)visible : 1) + width * width / 2 +
           pattern_normal(drawing->seed, flat) / 4;
}

/* Q keeps the scores at a width of 1 or less: of wider ones the sum of exponentials is the largest
 * alone, which cannot be told from the sizes, and with another L all weights are too small for the
 * normal numbers of fp16, to which a kernel may round them. */
static double value_normal(const struct drawing *drawing, int64_t flat)
{
    if (drawing->tensor == IN_LSE)
        return value_of_row(drawing, flat);
    return pattern_normal(drawing->seed, flat) /
           (drawing->tensor == IN_Q ? fmax(score_width(drawing->p), 1) : 1);
}

#define CONSTANT_END 16 /* the part of dO that is not zero is one of so many */

static double value_constant(const struct drawing *drawing, int64_t flat)
{
    const int64_t n = drawing->n;
    if (drawing->tensor == IN_DO && flat < n - (n + CONSTANT_END - 1) / CONSTANT_END)
        return 0;
    return value_normal(drawing, flat);
}

static void fill_normal(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                        uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(value_normal, p, &in[i], i, seed_at(seed, i));
}

static void fill_constant(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                          uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(value_constant, p, &in[i], i, seed_at(seed, i));
}

/* Each query finds one key, with a weight of 1. What it finds is integers. */
static double value_found(const struct drawing *drawing, int64_t flat)
{
    return drawing->tensor == IN_LSE
               ? attention_retrieval_score(drawing->p) * drawing->p->param[0].value
               : pattern_integer(drawing->seed, flat, -4, 4);
}

static void fill_retrieval(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                           uint64_t seed)
{
    attention_fill_codes(p, in, seed);
    for (unsigned i = IN_V; i < n_in; i++)
        pattern_fill(value_found, p, &in[i], i, seed_at(seed, i));
}

/*
 * A key that one query sees, or a query that sees one key, has a gradient of dO V^T less the sum of
 * O dO, which may cancel: what these sums lose, as scores do, is of the sums' size. Rows are
 * measured by LEAST_SHARE of an average one at least, and by three limits. 16 bits are wider.
 */
#define LEAST_SHARE 1e-3

static double slack(const struct kg_problem *p)
{
    const double loss = 0x1p-24 * (0.75 * sqrt((double)p->size[D].value) + 4);
    return attention_slack(p) + (p->dtype[0] == KG_F32 ? loss / LEAST_SHARE / 3 : 0);
}

static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, NULL, fill_normal, slack},
    {PROBE_CONSTANT, NULL, fill_constant, slack},
    {PROBE_RETRIEVAL, NULL, fill_retrieval, slack},
};

/* A key's values, or a gradient, become large. */
static void change(unsigned probe, const struct kg_problem *p, const struct kg_tensor *in,
                   unsigned n_in, uint64_t seed)
{
    const struct kg_tensor *t = &in[seed_at(seed, PATTERN_TRIES) % 2 ? IN_V : IN_DO];
    (void)probe;
    (void)p;
    (void)n_in;
    pattern_put(t, pattern_large_element(t, seed), 64);
}

const struct op op_attention_bwd = {
    .name = "attention_bwd",
    .sizes = attention_size_table,
    .n_sizes = ATTENTION_SIZES,
    .param = &attention_scale,
    .flag = &attention_causal,
    .tensors = tensors,
    .n_tensors = COUNT(tensors),
    .id = "bhgqsd",
    .flops = flops,
    .cost = cost,
    .rounds_inside = true,
    .patterns = patterns,
    .n_patterns = COUNT(patterns),
    .sharpest = PROBE_NORMAL,
    .change = change,
    .inputs_count = attention_inputs_count,
    .closest = {attention_closest, ATTENTION_CLOSEST},
    .tails = {attention_tails, ATTENTION_TAILS},
    .draw = attention_draw,
    .reference = reference,
    .element = element,
};
