/* SPDX-License-Identifier: Apache-2.0 */
/* Host: wrong backward passes of attention, and some that are right in another way. */
#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

#define STEP static inline
static inline float narrowed(uint32_t dtype, float x)
{
    float stored = 0;
    kg_store_float(&stored, dtype, 0, x);
    return kg_load_float(&stored, dtype, 0);
}
#include "tests/mutants/backward_steps.h"

enum { IN_Q, IN_K, IN_V, IN_O, IN_DO, IN_LSE };

/* A batch, decoded; and of all heads the weights and gradients of each query and key. */
struct pass {
    struct backward p;
    float *in[IN_LSE], *weight, *gradient, *row;
};

/* Rows of heads of a batch. */
static void decode(const struct pass *x, const struct kg_tensor *t, const struct kg_tensor *as,
                   int64_t b, float *to)
{
    for (int64_t h = 0; h < t->shape[1]; h++)
        for (int64_t s = 0; s < t->shape[2]; s++)
            for (int64_t l = 0; l < x->p.d; l++)
                *to++ =
                    kg_load_float(t->data, t->dtype,
                                  b * as->stride[0] + h * as->stride[1] + s * as->stride[2] + l);
}

static float dot(const float *a, const float *b, int64_t n, float factor)
{
    float lane[8] = {0};
    for (int64_t l = 0; l < n; l++)
        lane[l % 8] += a[l] * factor * b[l];
    return (lane[0] + lane[4]) + (lane[2] + lane[6]) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Of a query of a head, for its own sums or for those of the keys. */
static void weigh_keys(const struct pass *x, const float *lse, int64_t h, int64_t i, int of_keys)
{
    const struct backward *p = &x->p;
    const int64_t query = (h * p->queries + i) * p->d;
    const float *d_o = x->in[IN_DO] + query;
    const float delta = delta_as_used(p, dot(x->in[IN_O] + query, d_o, terms_of_delta(p), 1));
    for (int64_t j = 0; j < p->keys; j++) {
        const int64_t key = (kv_head_of(p, h) * p->keys + j) * p->d;
        x->weight[j] = x->gradient[j] = 0;
        if (!is_seen(p, i, j, of_keys))
            continue;
        const float score = dot(x->in[IN_Q] + query, x->in[IN_K] + key, p->d, query_factor(p));
        const float weight = weight_of(p, score, lse[i]);
        x->weight[j] = weight_as_used(p, weight);
        x->gradient[j] =
            gradient_of(p, weight, dot(d_o, x->in[IN_V] + key, p->d, 1), delta, of_keys);
    }
}

static void add_row(float *to, const float *row, float factor, int64_t n)
{
    for (int64_t l = 0; l < n; l++)
        to[l] += factor * row[l];
}

static void add_query(const struct pass *x, const float *lse, int64_t h, int64_t i, float *dk,
                      float *dv)
{
    const struct backward *p = &x->p;
    const int64_t query = (h * p->queries + i) * p->d;
    weigh_keys(x, lse, h, i, 1);
    for (int64_t j = 0; j < p->keys && counts(p, h, i); j++) {
        const int64_t key = (kv_head_of(p, h) * p->keys + j) * p->d;
        add_row(dk + key, x->in[IN_Q] + query, x->gradient[j], p->d);
        add_row(dv + key, x->in[IN_DO] + query, x->weight[j], p->d);
    }
}

static void put_query(const struct pass *x, const float *lse, const struct kg_tensor *dq, int64_t b,
                      int64_t h, int64_t i)
{
    const struct backward *p = &x->p;
    const int64_t n = keys_of_query(p);
    weigh_keys(x, lse, h, i, 0);
    memset(x->row, 0, (size_t)p->d * sizeof *x->row);
    for (int64_t at = 0; at < n; at++) {
        const int64_t j = in_order(p, at, n);
        add_row(x->row, x->in[IN_K] + (kv_head_of(p, h) * p->keys + j) * p->d, x->gradient[j],
                p->d);
    }
    for (int64_t l = 0; l < p->d; l++)
        set4(dq, b, h, i, l, finished_sum(p, x->row[l], 0));
}

static void pass_batch(const struct pass *x, const struct kg_args *args, int64_t b, float *dk,
                       float *dv)
{
    const struct backward *p = &x->p;
    const struct kg_tensor *const as = p->how == AS_strides_of_dout ? &args->in[IN_DO] : NULL;
    for (int i = IN_Q; i < IN_LSE; i++)
        decode(x, &args->in[i], as && i == IN_O ? as : &args->in[i], b, x->in[i]);
    for (int64_t at = 0; at < p->heads * p->queries; at++) {
        const int64_t row = in_order(p, at, p->heads * p->queries), h = row / p->queries;
        const struct kg_tensor *t = &args->in[IN_LSE];
        const float *lse = (const float *)t->data + b * t->stride[0] + h * t->stride[1];
        put_query(x, lse, &args->out[0], b, h, row % p->queries);
        add_query(x, lse, h, row % p->queries, dk, dv);
    }
    for (int64_t g = 0; g < p->kv_heads; g++)
        for (int64_t j = 0; j < p->keys; j++)
            for (int64_t l = 0; l < p->d; l++) {
                const int64_t at = (g * p->keys + j) * p->d + l;
                set4(&args->out[1], b, g, j, l, finished_sum(p, dk[at], 1));
                set4(&args->out[2], b, g, j, l, dv[at]);
            }
}

static enum kg_status backward(const struct kg_problem *problem, const struct kg_args *args,
                               enum backward_how how)
{
    if (!kg_is_op(problem, "attention_bwd"))
        return wrap_inner(problem, args);
    struct pass x = {.p = {.heads = kg_size(problem, "h"),
                           .kv_heads = kg_size(problem, "kv_heads"),
                           .queries = kg_size(problem, "sq"),
                           .keys = kg_size(problem, "s"),
                           .d = kg_size(problem, "d"),
                           .scale = (float)kg_param(problem, "scale"),
                           .dtype = problem->dtype[0],
                           .causal = (problem->flags & KG_FLAG_CAUSAL) != 0,
                           .how = (int)how}};
    const int64_t q = x.p.heads * x.p.queries * x.p.d, k = x.p.kv_heads * x.p.keys * x.p.d;
    float *memory = malloc((size_t)(3 * q + 4 * k + 2 * x.p.keys + x.p.d) * sizeof *memory);
    if (!memory)
        return KG_LAUNCH_FAILED;
    float *at = memory, *sums = memory + 3 * q + 2 * k;
    for (int i = IN_Q; i < IN_LSE; i++) {
        x.in[i] = at;
        at += i == IN_K || i == IN_V ? k : q;
    }
    x.weight = sums + 2 * k;
    x.gradient = x.weight + x.p.keys;
    x.row = x.gradient + x.p.keys;
    for (int64_t b = 0; b < kg_size(problem, "b"); b++) {
        memset(sums, 0, (size_t)(2 * k) * sizeof *sums);
        pass_batch(&x, args, b, sums, sums + k);
    }
    free(memory);
    return KG_OK;
}

#define LAUNCH(name)                                                                               \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return backward(p, args, AS_##name);                                                       \
    }
BACKWARD_FAULTS(LAUNCH)

#define FAULT(name) {#name, name, 0, NULL},
FAULTS(BACKWARD_FAULTS(FAULT))
