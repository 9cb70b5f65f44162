/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_bwd.c: dQ, dK and dV of attention, from O and the log of each query's sum of
 * exponentials.
 *
 * All inputs are converted to fp32 once. A turn is BLOCK queries against all keys that they see,
 * for dQ, or BLOCK keys against all queries that see them, for dK and dV: scores are computed in
 * both, so that each sum belongs to one thread and has one order.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/ops/attention_sizes.h"
#include "kernels/host/host.h"

enum { BLOCK = 16, IN_Q = 0, IN_K, IN_V, IN_O, IN_DO, IN_LSE, DENSE };

struct job {
    const struct simd *simd;
    const struct attention_sizes *p;
    const struct kg_args *args;
    float *in[DENSE]; /* fp32, dense */
    float *delta;     /* the sums of O dO */
    float *lines;     /* of the threads: 2 of d */
};

static int64_t rows_of(const struct attention_sizes *p, int input)
{
    return input == IN_K || input == IN_V ? p->batch * p->kv_heads * p->seqlen_kv
                                          : p->batch * p->heads * p->seqlen_q;
}

static int64_t columns_of(const struct attention_sizes *p, int input)
{
    return input == IN_LSE ? 1 : p->head_dim;
}

/* Lays the workspace out from `base` on (NULL to measure). Returns its floats. */
static int64_t lay_out(struct job *job, float *base, int threads)
{
    int64_t at = 0;
    for (int i = 0; i < DENSE; i++) {
        job->in[i] = base ? base + at : NULL;
        at += host_line(rows_of(job->p, i) * columns_of(job->p, i));
    }
    job->delta = base ? base + at : NULL;
    at += host_line(rows_of(job->p, IN_Q));
    job->lines = base ? base + at : NULL;
    return at + threads * 2 * host_line(job->p->head_dim);
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    const struct attention_sizes sizes = attention_sizes_of(p);
    struct job job = {.p = &sizes};
    return (uint64_t)lay_out(&job, NULL, device->sm_count) * sizeof(float);
}

/* Where row `row` of [batch, heads, rows, ..] lies in a view. */
static char *row_at(const struct kg_tensor *t, int64_t row)
{
    const int64_t rows = t->shape[2], heads = t->shape[1];
    return (char *)t->data +
           (size_t)(row / rows / heads * t->stride[0] + row / rows % heads * t->stride[1] +
                    row % rows * t->stride[2]) *
               kg_dtype_bytes(t->dtype);
}

/* Converts a row of all inputs; of K and V those that there are. */
static void convert_row(void *context, int64_t row, int)
{
    const struct job *job = context;
    for (int i = 0; i < DENSE; i++) {
        const int64_t n = columns_of(job->p, i);
        if (row < rows_of(job->p, i))
            job->simd->decode(job->in[i] + row * n, row_at(&job->args->in[i], row), n,
                              job->args->in[i].dtype);
    }
    if (row < rows_of(job->p, IN_Q))
        job->delta[row] = job->simd->dot(job->in[IN_O] + row * job->p->head_dim, KG_F32,
                                         job->in[IN_DO] + row * job->p->head_dim, job->p->head_dim);
}

/* Does query i see key j? */
static int is_seen(const struct attention_sizes *p, int64_t i, int64_t j)
{
    return !(p->flags & KG_FLAG_CAUSAL) || j <= i + p->seqlen_kv - p->seqlen_q;
}

static void add_row(float *sum, float factor, const float *row, int64_t n)
{
    for (int64_t l = 0; l < n; l++)
        sum[l] += factor * row[l];
}

/* The weight of a query and a key, of all heads and batches, and the gradient of their score. */
static float weigh(const struct job *job, int64_t query, int64_t key, float *gradient)
{
    const int64_t d = job->p->head_dim;
    const float score =
        job->simd->dot(job->in[IN_Q] + query * d, KG_F32, job->in[IN_K] + key * d, d);
    const float dp = job->simd->dot(job->in[IN_DO] + query * d, KG_F32, job->in[IN_V] + key * d, d);
    const float weight = expf(score * (float)job->p->scale - job->in[IN_LSE][query]);
    *gradient = weight * (dp - job->delta[query]);
    return weight;
}

static void query_item(void *context, int64_t item, int thread)
{
    const struct job *job = context;
    const struct attention_sizes *p = job->p;
    const int64_t d = p->head_dim, end = min_of((item + 1) * BLOCK, rows_of(p, IN_Q));
    const struct kg_tensor *to = &job->args->out[0];
    float *dq = job->lines + thread * 2 * host_line(d), gradient;

    for (int64_t query = item * BLOCK; query < end; query++) {
        const int64_t kv = query / p->seqlen_q / (p->heads / p->kv_heads);
        memset(dq, 0, (size_t)d * sizeof(*dq));
        for (int64_t j = 0; j < p->seqlen_kv && is_seen(p, query % p->seqlen_q, j); j++) {
            (void)weigh(job, query, kv * p->seqlen_kv + j, &gradient);
            add_row(dq, gradient, job->in[IN_K] + (kv * p->seqlen_kv + j) * d, d);
        }
        for (int64_t l = 0; l < d; l++)
            dq[l] *= (float)p->scale;
        job->simd->encode(row_at(to, query), dq, d, to->dtype);
    }
}

static void key_item(void *context, int64_t item, int thread)
{
    const struct job *job = context;
    const struct attention_sizes *p = job->p;
    const int64_t d = p->head_dim, end = min_of((item + 1) * BLOCK, rows_of(p, IN_K));
    const int64_t queries = p->heads / p->kv_heads * p->seqlen_q; /* of a KV head */
    const struct kg_tensor *to_k = &job->args->out[1], *to_v = &job->args->out[2];
    float *dk = job->lines + thread * 2 * host_line(d), *dv = dk + host_line(d), gradient;

    for (int64_t key = item * BLOCK; key < end; key++) {
        const int64_t first = key / p->seqlen_kv * queries;
        memset(dk, 0, (size_t)d * sizeof(*dk));
        memset(dv, 0, (size_t)d * sizeof(*dv));
        for (int64_t query = first; query < first + queries; query++) {
            if (!is_seen(p, query % p->seqlen_q, key % p->seqlen_kv))
                continue;
            const float weight = weigh(job, query, key, &gradient);
            add_row(dv, weight, job->in[IN_DO] + query * d, d);
            add_row(dk, gradient, job->in[IN_Q] + query * d, d);
        }
        for (int64_t l = 0; l < d; l++)
            dk[l] *= (float)p->scale;
        job->simd->encode(row_at(to_k, key), dk, d, to_k->dtype);
        job->simd->encode(row_at(to_v, key), dv, d, to_v->dtype);
    }
}

static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    const struct host *host = host_enter(problem, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    const struct attention_sizes p = attention_sizes_of(problem);
    struct job job = {.simd = host->simd, .p = &p, .args = args};
    const int64_t queries = rows_of(&p, IN_Q), keys = rows_of(&p, IN_K);
    (void)lay_out(&job, args->workspace, pool_threads(host->pool));
    const int64_t products = queries * p.seqlen_kv * p.head_dim;
    pool_for(host->pool, queries > keys ? queries : keys, (queries + keys) * p.head_dim,
             convert_row, &job);
    pool_for(host->pool, ceil_div(queries, BLOCK), products, query_item, &job);
    pool_for(host->pool, ceil_div(keys, BLOCK), products, key_item, &job);
    return KG_OK;
}

HOST_KERNEL(attention_bwd, host_supports);
