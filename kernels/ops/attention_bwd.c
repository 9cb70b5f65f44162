/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_bwd.c: dQ, dK and dV of attention, from what its forward pass left: O, and for each
 * query L, the log of its sum of exponentials.
 *
 *     P = exp(scale Q K^T - L)    dV = P^T dO    dS = P (dO V^T - sum over d of O dO)
 *     dQ = scale dS K             dK = scale dS^T Q
 *
 * O and L are inputs like the others, and not what a forward pass leaves: of the gradients of a
 * real O many cancel, and an error would hide there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/attention_patterns.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/rows.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { IN_Q, IN_K, IN_V, IN_O, IN_DO, IN_LSE, INPUTS };

static const struct op_tensor tensors[] = {
    {"q", "bhqd", OP_INPUT, NULL},           {"k", "bgsd", OP_INPUT, NULL},
    {"v", "bgsd", OP_INPUT, NULL},           {"o", "bhqd", OP_INPUT, NULL},
    {"do", "bhqd", OP_INPUT, NULL},          {"lse", "bhq", OP_INPUT, NULL},
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
        const int64_t row = a->head * queries + i, n = attention_visible(p, i);
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
                if (j >= attention_visible(p, i))
                    continue;
                const double weight = exp(s[i] - a->in[IN_LSE][query]);
                rows_add(dv, a->in[IN_DO] + query * d, weight, d);
                rows_add(dk, a->in[IN_Q] + query * d,
                         p->param[0].value * weight * (dp[i] - a->delta[query]), d);
            }
        }
    }
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
            whole = whole && (a.turned[i] = rows_transposed(rows_decoded(&in[i]),
                                                            in[i].shape[0] * in[i].shape[1],
                                                            in[i].shape[2], in[i].shape[3]));
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
        for (int64_t j = 0; j < attention_visible(p, row); j++) {
            (void)weight_of(p, in, b, head, row, j, &gradient);
            sum += gradient * rows_at(&in[IN_K], b, head / group, j, l);
        }
        return sum;
    }
    for (int64_t h = head * group; h < (head + 1) * group; h++)
        for (int64_t i = 0; i < p->size[Q].value; i++) {
            if (row >= attention_visible(p, i))
                continue;
            const double weight = weight_of(p, in, b, h, i, row, &gradient);
            sum += out == 1 ? gradient * rows_at(&in[IN_Q], b, h, i, l)
                            : weight * rows_at(&in[IN_DO], b, h, i, l);
        }
    return sum;
}

/* ---- limits ---- */

/*
 * What a right kernel may be off, to first order in the unit roundoff u (Higham, Accuracy and
 * Stability of Numerical Algorithms, chapters 2 and 3).
 *
 * A row of dQ is the sum of the vectors dS_ij K_j, a row of dK that of dS_ij Q_i, one of dV that of
 * P_ij dO_i. Where each term is off by at most e of itself, the sum is off by at most e times the
 * sum of the terms' sizes. So the limit is e plus the rounding of the result, and the patterns keep
 * the size of a sum near that of its terms: K, Q and dO point anywhere, so that their squares add
 * up, as those of their errors do; where they are all one vector, as in the retrieval, no two
 * dS_ij differ in sign.
 *
 * 16 bits: P and then dS = P (dP - D) are rounded, each by up to u. A row, or an output, may have
 * one term that counts: it is off by 2u in all its elements, and the rounding of these adds u /
 * sqrt(3) at most as a root mean square: 2.08 u. Sums in fp32 add 2^-13 of that.
 *
 * fp32: the losses of sums, of scores of a few nats and of dP - D are within the limit of the
 * dtype. But dP - D may not be a small part of dP and D, whose losses would be any multiple of it:
 * spread() sees to it.
 *
 * TF32 may truncate, which takes 2^-11 of a factor on average and 2^-10 at most: of Q and K, and so
 * 2^-10 of the score, which adds as much to P for each nat (4 for the largest weights, of scores
 * of a deviation of 1); of dO and V, and so of dP, which is a small part of dP - D; and of P or dS
 * and of the vector that it multiplies.
 */
#define ROUNDINGS 2.25
#define LARGE_SCORE 4

/* Deviation of the scores of normal Q and K. */
static double score_width(const struct kg_problem *p)
{
    return fabs(p->param[0].value) * sqrt((double)p->size[D].value);
}

static double limit(const struct kg_problem *p)
{
    const struct dtype *d = dtype_of(p);
    if (d->mantissa < 23)
        return ROUNDINGS * ldexp(1, -(int)d->mantissa - 1);
    const double factors = 1 + LARGE_SCORE * fmin(score_width(p), 1);
    return d->error_limit + (dtype_is_full(d) ? 0 : 0x1p-10 * factors);
}

/* ---- patterns ---- */

/*
 * Q and K keep the scores at a width of 1 or less: of wider ones the largest alone counts. L is an
 * input like the others, and such that P is in the normal numbers of fp16, and dS within its range.
 *
 * In fp32 dP - D may not cancel: dO and O have a mean, so that D is 6 deviations of dP - D, or
 * more, below zero from D = 16 on. 16 bits have no need of it, since dP and D are sums in fp32.
 */
static struct op_spread spread(const struct kg_problem *p, unsigned tensor)
{
    const bool is_fp32 = p->dtype[IN_Q] == KG_F32;
    struct op_spread s = {0, 1};
    if (tensor == IN_LSE)
        s = (struct op_spread){2, 0.25};
    else if (tensor == IN_Q || tensor == IN_K)
        s.deviation = 1 / sqrt(fmax(score_width(p), 1));
    else if (is_fp32 && tensor != IN_V)
        s.mean = tensor == IN_DO ? 2 : -4;
    return s;
}

static double value_normal(const struct drawing *drawing, int64_t flat)
{
    const struct op_spread s = spread(drawing->p, drawing->tensor);
    return s.mean + s.deviation * pattern_normal(drawing->seed, flat);
}

#define CONSTANT_END 16 /* the rows of dO that are not zero are one of so many */

static double value_constant(const struct drawing *drawing, int64_t flat)
{
    const int64_t d = drawing->p->size[D].value, rows = drawing->n / d;
    const bool at_end = flat / d >= rows - (rows + CONSTANT_END - 1) / CONSTANT_END;
    return drawing->tensor == IN_DO && !at_end ? 0 : value_normal(drawing, flat);
}

/* Each query finds one key, with a weight of 1. V and O have a large part in common, of which dP -
 * D has nothing: a D that was rounded shows. The rest is positive in dP - D, and exact. dO is
 * large, so that in fp16 weights of 1e-6 make no subnormal dS, of which rounding takes much. */
static double value_found(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const bool is_v = drawing->tensor == IN_V;
    if (drawing->tensor == IN_LSE)
        return attention_retrieval_score(p) * p->param[0].value;
    if (drawing->tensor == IN_DO)
        return pattern_integer(drawing->seed, flat, 0, 3) == 0 ? 8 : 0;
    const int steps = p->dtype[IN_Q] == KG_BF16 ? 1 : 8; /* in a half, of a mantissa that has 64 */
    return 64 * pattern_sign(0x636f6d6d6f6e, flat % p->size[D].value) +
           0.5 / steps * pattern_integer(drawing->seed, flat, is_v ? 0 : -steps, is_v ? steps : 0);
}

static double value_no_queries(const struct drawing *d, int64_t flat)
{
    return d->tensor == IN_Q ? 0 : value_normal(d, flat);
}

static double value_no_keys(const struct drawing *d, int64_t flat)
{
    return d->tensor == IN_K ? 0 : value_normal(d, flat);
}

static double value_no_values(const struct drawing *d, int64_t flat)
{
    return d->tensor == IN_V ? 0 : value_normal(d, flat);
}

/* The sought score is L, so that what is lost of it is lost of the weight. */
static double slack_retrieval(const struct kg_problem *p)
{
    return attention_score_loss(fabs(attention_retrieval_score(p) * p->param[0].value), p);
}

static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, .value = value_normal},
    {PROBE_CONSTANT, .value = value_constant},
    {PROBE_ZERO_FIRST, .value = value_no_queries},
    {PROBE_ZERO_SECOND, .value = value_no_keys},
    {PROBE_ZERO_THIRD, .value = value_no_values},
    {PROBE_RETRIEVAL, .value = value_found, .finish = attention_finish_codes,
     .slack = slack_retrieval},
};

/* A weight becomes e^2 times as large, or an element of the others: O moves D from zero. */
static void change(const struct probing *x)
{
    const unsigned i = (unsigned)(seed_at(x->seed, PATTERN_TRIES) % INPUTS);
    const int64_t at = pattern_large_element(&x->in[i], x->seed);
    const double value = pattern_get(&x->in[i], at);
    pattern_put(&x->in[i], at,
                i == IN_LSE              ? value - 2
                : i != IN_Q && i != IN_K ? copysign(fmax(8, 2 * fabs(value)), value)
                : value == 0             ? 1
                                         : 2 * value);
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
    .spread = spread,
    .limit = limit,
    .fixed = {[IN_LSE] = KG_F32},
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
