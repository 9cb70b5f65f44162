/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_host.c: the fp64 reference of every op, see reference.h.
 *
 * Whole outputs: inputs are decoded into dense fp64 arrays, transposed where that makes the inner
 * loop walk along memory, and every output row is then a sum of scaled rows. Rows are split over
 * threads; a row is summed in one order by one thread, so the split can't change it.
 *
 * Single elements: the formula, read straight from the stored tensors.
 */
#include "kernels/reference/reference.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference/half.h"
#include "kernels/reference/signature.h"

/* ---- rows over threads ---- */

enum { MAX_SHARES = 64 };

/* `share`: which of at most MAX_SHARES pieces this is, to pick scratch memory by. */
typedef void (*rows_fn)(void *context, int share, int64_t first, int64_t end);

struct share {
    rows_fn fn;
    void *context;
    int index;
    int64_t first, end;
    pthread_t thread;
    int started;
};

static void *run_share(void *argument)
{
    struct share *s = argument;
    s->fn(s->context, s->index, s->first, s->end);
    return NULL;
}

/* Calls fn over [0, n_rows) in `threads` pieces; a piece that gets no thread runs in the caller. */
static void for_rows(int64_t n_rows, int threads, rows_fn fn, void *context)
{
    struct share shares[MAX_SHARES];
    int n = threads < MAX_SHARES ? threads : MAX_SHARES;

    for (int i = 0; i < n; i++) {
        shares[i] = (struct share){fn, context, i, n_rows * i / n, n_rows * (i + 1) / n, 0, 0};
        if (i > 0)
            shares[i].started = pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) == 0;
    }
    for (int i = 0; i < n; i++) {
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
        else
            run_share(&shares[i]);
    }
}

/* ---- inputs as dense fp64 ---- */

/* Address of row `row` of a view, rows counted over all dimensions but the last. */
static const void *row_of(const struct kg_tensor *t, int64_t row)
{
    int64_t offset = 0;
    for (int d = (int)t->rank - 2; d >= 0; d--) {
        offset += row % t->shape[d] * t->stride[d];
        row /= t->shape[d];
    }
    return (const char *)t->data + (size_t)offset * kg_dtype_bytes(t->dtype);
}

/* The view as a dense row-major array, NULL when out of memory. The caller frees it. */
static double *decoded(const struct kg_tensor *t)
{
    int64_t columns = t->shape[t->rank - 1], rows = 1;
    for (uint32_t d = 0; d + 1 < t->rank; d++)
        rows *= t->shape[d];

    double *dense = malloc((size_t)(rows * columns) * sizeof(*dense));
    if (!dense)
        return NULL;
    for (int64_t r = 0; r < rows; r++) {
        const void *row = row_of(t, r);
        for (int64_t c = 0; c < columns; c++)
            dense[r * columns + c] = (double)kg_load_float(row, t->dtype, c);
    }
    return dense;
}

/* [rows, columns] to [columns, rows], for each of `count` matrices. Takes `matrix` over and frees
 * it; NULL in, or out of memory, gives NULL. */
static double *transposed(double *matrix, int64_t count, int64_t rows, int64_t columns)
{
    double *turned = matrix ? malloc((size_t)(count * rows * columns) * sizeof(*turned)) : NULL;
    for (int64_t i = 0; turned && i < count; i++) {
        const double *from = matrix + i * rows * columns;
        double *to = turned + i * rows * columns;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                to[c * rows + r] = from[r * columns + c];
    }
    free(matrix);
    return turned;
}

/* sum[i] += factor * row[i] */
static void add_scaled(double *sum, const double *row, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * row[i];
}

static double relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* ---- GEMM family ---- */

/* c[m, n] = a[m, k] b[k, n], plus bias[n] and ReLU when there is a bias. All dense. */
struct product {
    const double *a, *b, *bias;
    double *c;
    int64_t n, k;
};

static void product_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct product *p = context;
    (void)share;
    for (int64_t i = first; i < end; i++) {
        double *row = p->c + i * p->n;
        memset(row, 0, (size_t)p->n * sizeof(*row));
        for (int64_t l = 0; l < p->k; l++)
            add_scaled(row, p->b + l * p->n, p->a[i * p->k + l], p->n);
        for (int64_t j = 0; p->bias && j < p->n; j++)
            row[j] = relu(row[j] + p->bias[j]);
    }
}

static enum kg_status multiply(const struct kg_problem *p, const struct kg_tensor *in, double *out,
                               int threads)
{
    int64_t n = p->op == KG_OP_GEMV ? 1 : p->n;
    double *a = decoded(&in[0]);
    double *b = decoded(&in[1]);
    enum kg_status status = KG_LAUNCH_FAILED;
    if (a && b) {
        for_rows(p->m, threads, product_rows, &(struct product){a, b, NULL, out, n, p->k});
        status = KG_OK;
    }
    free(a);
    free(b);
    return status;
}

static enum kg_status linear_relu(const struct kg_problem *p, const struct kg_tensor *in,
                                  double *out, int threads)
{
    double *x = decoded(&in[0]);
    double *wt = transposed(decoded(&in[1]), 1, p->n, p->k);
    double *bias = decoded(&in[2]);
    enum kg_status status = KG_LAUNCH_FAILED;
    if (x && wt && bias) {
        for_rows(p->m, threads, product_rows, &(struct product){x, wt, bias, out, p->n, p->k});
        status = KG_OK;
    }
    free(x);
    free(wt);
    free(bias);
    return status;
}

static enum kg_status linear_relu_bwd(const struct kg_problem *p, const struct kg_tensor *in,
                                      double *dx, double *dw, double *db, int threads)
{
    double *g = decoded(&in[0]);
    double *x = decoded(&in[1]);
    double *w = decoded(&in[2]);
    double *y = decoded(&in[3]);
    enum kg_status status = KG_LAUNCH_FAILED;
    if (!g || !x || !w || !y)
        goto out;
    for (int64_t i = 0; i < p->m * p->n; i++)
        g[i] = y[i] > 0.0 ? g[i] : 0.0;

    for_rows(p->m, threads, product_rows, &(struct product){g, w, NULL, dx, p->k, p->n});
    memset(db, 0, (size_t)p->n * sizeof(*db));
    for (int64_t i = 0; i < p->m; i++)
        add_scaled(db, g + i * p->n, 1.0, p->n);

    g = transposed(g, 1, p->m, p->n);
    if (!g)
        goto out;
    for_rows(p->n, threads, product_rows, &(struct product){g, x, NULL, dw, p->k, p->m});
    status = KG_OK;
out:
    free(g);
    free(x);
    free(w);
    free(y);
    return status;
}

/* ---- attention ---- */

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
    double *scores;   /* [MAX_SHARES, seqlen_kv]: the row that a share works on */
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
            add_scaled(scores, kt + d * p->seqlen_kv, q[d] * p->scale, visible);
        softmax(scores, visible);

        memset(o, 0, (size_t)p->head_dim * sizeof(*o));
        for (int64_t j = 0; j < visible; j++)
            add_scaled(o, v + j * p->head_dim, scores[j], p->head_dim);
    }
}

static enum kg_status attention_fwd(const struct kg_problem *p, const struct kg_tensor *in,
                                    double *out, int threads)
{
    double *q = decoded(&in[0]);
    double *kt = transposed(decoded(&in[1]), p->batch * p->kv_heads, p->seqlen_kv, p->head_dim);
    double *v = decoded(&in[2]);
    double *scores = malloc((size_t)(MAX_SHARES * p->seqlen_kv) * sizeof(*scores));
    enum kg_status status = KG_LAUNCH_FAILED;
    if (q && kt && v && scores) {
        struct attention a = {p, q, kt, v, scores, out, 0};
        for (a.head = 0; a.head < p->batch * p->heads; a.head++)
            for_rows(p->seqlen_q, threads, attention_rows, &a);
        status = KG_OK;
    }
    free(q);
    free(kt);
    free(v);
    free(scores);
    return status;
}

enum kg_status kg_reference_host(const struct kg_problem *p, const struct kg_tensor *in,
                                 uint32_t n_in, double *const *out, int threads)
{
    struct kg_signature s;
    if (!kg_signature_of(p, &s) || n_in != s.n_in || threads < 1)
        return KG_BAD_ARGUMENT;
    for (uint32_t i = 0; i < n_in; i++)
        if (!kg_tensor_fits(&in[i], p->dtype, &s.in[i]))
            return KG_BAD_ARGUMENT;
    for (uint32_t i = 0; i < s.n_out; i++)
        if (!out[i])
            return KG_BAD_ARGUMENT;

    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        return attention_fwd(p, in, out[0], threads);
    case KG_OP_GEMM:
    case KG_OP_GEMV:
        return multiply(p, in, out[0], threads);
    case KG_OP_LINEAR_RELU:
        return linear_relu(p, in, out[0], threads);
    case KG_OP_LINEAR_RELU_BWD:
        return linear_relu_bwd(p, in, out[0], out[1], out[2], threads);
    }
    return KG_BAD_ARGUMENT;
}

/* ---- single elements ---- */

static double at1(const struct kg_tensor *t, int64_t i)
{
    return (double)kg_load_float(t->data, t->dtype, i * t->stride[0]);
}

static double at2(const struct kg_tensor *t, int64_t i, int64_t j)
{
    return (double)kg_load_float(t->data, t->dtype, i * t->stride[0] + j * t->stride[1]);
}

static double at4(const struct kg_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return (double)kg_load_float(t->data, t->dtype,
                                 b * t->stride[0] + h * t->stride[1] + s * t->stride[2] +
                                     d * t->stride[3]);
}

static double gemm_element(const struct kg_problem *p, const struct kg_tensor *in, int64_t flat)
{
    int64_t i = flat / p->n, j = flat % p->n;
    double sum = 0.0;
    for (int64_t l = 0; l < p->k; l++)
        sum += at2(&in[0], i, l) * at2(&in[1], l, j);
    return sum;
}

static double gemv_element(const struct kg_problem *p, const struct kg_tensor *in, int64_t i)
{
    double sum = 0.0;
    for (int64_t l = 0; l < p->k; l++)
        sum += at2(&in[0], i, l) * at1(&in[1], l);
    return sum;
}

static double linear_relu_element(const struct kg_problem *p, const struct kg_tensor *in,
                                  int64_t flat)
{
    int64_t i = flat / p->n, j = flat % p->n;
    double sum = at1(&in[2], j);
    for (int64_t l = 0; l < p->k; l++)
        sum += at2(&in[0], i, l) * at2(&in[1], j, l);
    return relu(sum);
}

/* G = dY where Y > 0, else 0 */
static double gradient(const struct kg_tensor *in, int64_t i, int64_t j)
{
    return at2(&in[3], i, j) > 0.0 ? at2(&in[0], i, j) : 0.0;
}

static double linear_relu_bwd_element(const struct kg_problem *p, const struct kg_tensor *in,
                                      uint32_t out_index, int64_t flat)
{
    int64_t row = flat / p->k, column = flat % p->k;
    double sum = 0.0;
    if (out_index == 0)
        for (int64_t j = 0; j < p->n; j++)
            sum += gradient(in, row, j) * at2(&in[2], j, column);
    else if (out_index == 1)
        for (int64_t i = 0; i < p->m; i++)
            sum += gradient(in, i, row) * at2(&in[1], i, column);
    else
        for (int64_t i = 0; i < p->m; i++)
            sum += gradient(in, i, flat);
    return sum;
}

static double attention_element(const struct kg_problem *p, const struct kg_tensor *in,
                                int64_t flat)
{
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
                score += at4(&in[0], b, h, i, l) * at4(&in[1], b, kv_head, j, l);
            score *= p->scale;
            if (pass == 0) {
                max = score > max ? score : max;
            } else {
                double weight = exp(score - max);
                weights += weight;
                sum += weight * at4(&in[2], b, kv_head, j, d);
            }
        }
    }
    return visible > 0 ? sum / weights : 0.0;
}

double kg_reference_host_element(const struct kg_problem *p, const struct kg_tensor *in,
                                 uint32_t out_index, int64_t flat_index)
{
    struct kg_signature s;
    if (!kg_signature_of(p, &s) || out_index >= s.n_out || flat_index < 0 ||
        flat_index >= kg_shape_elements(&s.out[out_index]))
        return NAN;
    for (uint32_t i = 0; i < s.n_in; i++)
        if (!kg_tensor_fits(&in[i], p->dtype, &s.in[i]))
            return NAN;

    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        return attention_element(p, in, flat_index);
    case KG_OP_GEMM:
        return gemm_element(p, in, flat_index);
    case KG_OP_GEMV:
        return gemv_element(p, in, flat_index);
    case KG_OP_LINEAR_RELU:
        return linear_relu_element(p, in, flat_index);
    case KG_OP_LINEAR_RELU_BWD:
        return linear_relu_bwd_element(p, in, out_index, flat_index);
    }
    return NAN;
}
