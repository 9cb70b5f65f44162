/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/problem.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_TENSOR_ELEMENTS ((int64_t)1 << 40)

static const struct {
    uint32_t op;
    const char *name;
} ops[] = {
    {KG_OP_ATTENTION_FWD, "attention_fwd"},
    {KG_OP_GEMM, "gemm"},
    {KG_OP_GEMV, "gemv"},
    {KG_OP_LINEAR_RELU, "linear_relu"},
    {KG_OP_LINEAR_RELU_BWD, "linear_relu_bwd"},
};

static const struct {
    const char *name;
    uint32_t dtype, flags;
    double error_limit;
} dtypes[PROBLEM_DTYPES] = {
    {"fp16", KG_F16, 0, 6e-4},
    {"bf16", KG_BF16, 0, 4e-3},
    {"fp32", KG_F32, 0, 1e-5},
    /* Products of factors with 10-bit mantissas: 3e-4 rounded, 6e-4 truncated. */
    {"tf32", KG_F32, KG_FLAG_TF32, 1e-3},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *problem_op_name(uint32_t op)
{
    for (size_t i = 0; i < COUNT(ops); i++)
        if (ops[i].op == op)
            return ops[i].name;
    return "unknown";
}

unsigned problem_dtype_index(const struct kg_problem *p)
{
    for (unsigned i = 0; i < PROBLEM_DTYPES; i++)
        if (dtypes[i].dtype == p->dtype && dtypes[i].flags == (p->flags & KG_FLAG_TF32))
            return i;
    return 0;
}

struct kg_problem problem_in_dtype(const struct kg_problem *p, unsigned i)
{
    struct kg_problem other = *p;
    other.dtype = dtypes[i].dtype;
    other.flags = (p->flags & ~(uint32_t)KG_FLAG_TF32) | dtypes[i].flags;
    return other;
}

const char *problem_dtype_name(const struct kg_problem *p)
{
    return dtypes[problem_dtype_index(p)].name;
}

/* The most terms that an element of an output is the sum of; an attention averages them. */
static int64_t longest_sum(const struct kg_problem *p)
{
    if (p->op == KG_OP_LINEAR_RELU_BWD)
        return p->m > p->n ? p->m : p->n;
    return p->op == KG_OP_ATTENTION_FWD ? 0 : p->k;
}

/* fp32 sums round at each step: about eps * sqrt(K), 4e-6 at K = 4096. */
#define FP32_SUM 16384      /* terms, from which on their limit grows like that, */
#define FP32_SUM_LIMIT 5e-5 /* up to here: TF32 shall not pass for fp32 */

double problem_error_limit(const struct kg_problem *p)
{
    const double limit = dtypes[problem_dtype_index(p)].error_limit;
    if (p->dtype != KG_F32 || p->flags & KG_FLAG_TF32 || longest_sum(p) <= FP32_SUM)
        return limit;
    return fmin(limit * sqrt((double)longest_sum(p) / FP32_SUM), FP32_SUM_LIMIT);
}

size_t problem_dtype_bytes(uint32_t dtype)
{
    return dtype == KG_F32 ? 4 : 2;
}

/* The size keys of a case and the ops that take them. */
enum {
    ATTENTION = 1u << KG_OP_ATTENTION_FWD,
    GEMM = 1u << KG_OP_GEMM,
    GEMV = 1u << KG_OP_GEMV,
    LINEAR = 1u << KG_OP_LINEAR_RELU | 1u << KG_OP_LINEAR_RELU_BWD
};

struct size_key {
    const char *key;
    unsigned ops;      /* that take the key */
    unsigned optional; /* of these, the ops that can do without */
    size_t from, to;   /* in the case and in the problem */
};

#define SIZE_KEY(key, ops, optional, member)                                                       \
    {                                                                                              \
#key, ops, optional, offsetof(struct case_file, key), offsetof(struct kg_problem, member)  \
    }
static const struct size_key size_keys[] = {
    SIZE_KEY(m, GEMM | GEMV | LINEAR, 0, m), SIZE_KEY(n, GEMM | LINEAR, 0, n),
    SIZE_KEY(k, GEMM | GEMV | LINEAR, 0, k), SIZE_KEY(b, ATTENTION, 0, batch),
    SIZE_KEY(h, ATTENTION, 0, heads),        SIZE_KEY(kv_heads, ATTENTION, ATTENTION, kv_heads),
    SIZE_KEY(s, ATTENTION, 0, seqlen_kv),    SIZE_KEY(sq, ATTENTION, ATTENTION, seqlen_q),
    SIZE_KEY(d, ATTENTION, 0, head_dim),
};

static enum gate_status read_sizes(const struct case_file *c, struct kg_problem *p,
                                   const char **key, struct gate_error *err)
{
    const char *op = problem_op_name(p->op);
    for (size_t i = 0; i < COUNT(size_keys); i++) {
        const struct size_key *k = &size_keys[i];
        int64_t value = *(const int64_t *)(const void *)((const char *)c + k->from);
        unsigned bit = 1u << p->op;
        *key = value < 0 ? NULL : k->key;
        if (value >= 0 && !(k->ops & bit))
            return gate_fail(err, GATE_USAGE, "'%s' takes no '%s'", op, k->key);
        if (value < 0 && (k->ops & ~k->optional & bit))
            return gate_fail(err, GATE_USAGE, "'%s' needs '%s'", op, k->key);
        if (value >= 0)
            *(int64_t *)(void *)((char *)p + k->to) = value;
    }
    return GATE_OK;
}

static double default_scale(const struct kg_problem *p)
{
    return 1.0 / sqrt((double)p->head_dim);
}

static enum gate_status check_attention(const struct case_file *c, struct kg_problem *p,
                                        const char **key, struct gate_error *err)
{
    if (!p->kv_heads)
        p->kv_heads = p->heads;
    if (!p->seqlen_q)
        p->seqlen_q = p->seqlen_kv;
    *key = "kv_heads";
    if (p->heads % p->kv_heads)
        return gate_fail(err, GATE_USAGE, "%lld query heads cannot share %lld KV heads evenly",
                         (long long)p->heads, (long long)p->kv_heads);
    p->scale = isnan(c->scale) ? default_scale(p) : c->scale;
    if (c->causal == YES)
        p->flags |= KG_FLAG_CAUSAL;
    return GATE_OK;
}

static enum gate_status check_elements(const struct kg_problem *p, struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    for (unsigned i = 0; i < n; i++) {
        double elements = 1;
        for (unsigned r = 0; r < tensors[i].rank; r++)
            elements *= (double)tensors[i].shape[r];
        if (elements > (double)MAX_TENSOR_ELEMENTS)
            return gate_fail(err, GATE_USAGE,
                             "tensor '%s' would have %.3g elements, more than 2^40",
                             tensors[i].name, elements);
    }
    return GATE_OK;
}

enum gate_status problem_of_case(const struct case_file *c, struct kg_problem *out,
                                 const char **key, struct gate_error *err)
{
    struct kg_problem p = {.struct_bytes = sizeof p};
    for (size_t i = 0; i < COUNT(ops); i++)
        if (!strcmp(ops[i].name, c->op))
            p.op = ops[i].op;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (!strcmp(dtypes[i].name, c->dtype)) {
            p.dtype = dtypes[i].dtype;
            p.flags = dtypes[i].flags;
        }
    *key = p.op ? "dtype" : "op";
    if (!p.op || !p.dtype)
        return gate_fail(err, GATE_USAGE, "unknown %s", *key);
    enum gate_status status = read_sizes(c, &p, key, err);
    if (status)
        return status;
    if (p.op == KG_OP_ATTENTION_FWD) {
        status = check_attention(c, &p, key, err);
        if (status)
            return status;
    }
    *key = "op";
    status = check_elements(&p, err);
    if (status)
        return status;
    *out = p;
    return GATE_OK;
}

/* Ids of sizes that problem_of_case() lets through fit. */
__attribute__((format(printf, 2, 3))) static void append(char id[PROBLEM_ID_MAX],
                                                         const char *format, ...)
{
    size_t used = strlen(id);
    va_list args;
    va_start(args, format);
    vsnprintf(id + used, PROBLEM_ID_MAX - used, format, args);
    va_end(args);
}

static void attention_id(const struct kg_problem *p, char id[PROBLEM_ID_MAX])
{
    id[0] = '\0';
    append(id, "attention_fwd/%s/b%lld-h%lld", problem_dtype_name(p), (long long)p->batch,
           (long long)p->heads);
    if (p->kv_heads != p->heads)
        append(id, "-kv%lld", (long long)p->kv_heads);
    if (p->seqlen_q == p->seqlen_kv)
        append(id, "-s%lld", (long long)p->seqlen_q);
    else
        append(id, "-sq%lld-s%lld", (long long)p->seqlen_q, (long long)p->seqlen_kv);
    append(id, "-d%lld/%s", (long long)p->head_dim, p->flags & KG_FLAG_CAUSAL ? "causal" : "full");
    if (p->scale != default_scale(p))
        append(id, "-scale%.9g", p->scale);
}

void problem_id(const struct kg_problem *p, char id[PROBLEM_ID_MAX])
{
    const char *op = problem_op_name(p->op), *dtype = problem_dtype_name(p);
    long long m = (long long)p->m, n = (long long)p->n, k = (long long)p->k;
    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        attention_id(p, id);
        break;
    case KG_OP_GEMM:
        snprintf(id, PROBLEM_ID_MAX, "%s/%s/m%lld-n%lld-k%lld", op, dtype, m, n, k);
        break;
    case KG_OP_GEMV:
        snprintf(id, PROBLEM_ID_MAX, "%s/%s/m%lld-k%lld", op, dtype, m, k);
        break;
    default: /* the order in which the shapes of linear layers are quoted */
        snprintf(id, PROBLEM_ID_MAX, "%s/%s/m%lld-k%lld-n%lld", op, dtype, m, k, n);
    }
}

static struct problem_tensor tensor1(const char *name, bool is_output, int64_t a)
{
    return (struct problem_tensor){name, is_output, 1, {a}};
}

static struct problem_tensor tensor2(const char *name, bool is_output, int64_t a, int64_t b)
{
    return (struct problem_tensor){name, is_output, 2, {a, b}};
}

static struct problem_tensor tensor4(const char *name, bool is_output, int64_t a, int64_t b,
                                     int64_t c, int64_t d)
{
    return (struct problem_tensor){name, is_output, 4, {a, b, c, d}};
}

unsigned problem_tensors(const struct kg_problem *p, struct problem_tensor out[PROBLEM_MAX_TENSORS])
{
    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        out[0] = tensor4("q", false, p->batch, p->heads, p->seqlen_q, p->head_dim);
        out[1] = tensor4("k", false, p->batch, p->kv_heads, p->seqlen_kv, p->head_dim);
        out[2] = tensor4("v", false, p->batch, p->kv_heads, p->seqlen_kv, p->head_dim);
        out[3] = tensor4("o", true, p->batch, p->heads, p->seqlen_q, p->head_dim);
        return 4;
    case KG_OP_GEMM:
        out[0] = tensor2("a", false, p->m, p->k);
        out[1] = tensor2("b", false, p->k, p->n);
        out[2] = tensor2("c", true, p->m, p->n);
        return 3;
    case KG_OP_GEMV:
        out[0] = tensor2("a", false, p->m, p->k);
        out[1] = tensor1("x", false, p->k);
        out[2] = tensor1("y", true, p->m);
        return 3;
    case KG_OP_LINEAR_RELU:
        out[0] = tensor2("x", false, p->m, p->k);
        out[1] = tensor2("w", false, p->n, p->k);
        out[2] = tensor1("b", false, p->n);
        out[3] = tensor2("y", true, p->m, p->n);
        return 4;
    case KG_OP_LINEAR_RELU_BWD:
        out[0] = tensor2("dy", false, p->m, p->n);
        out[1] = tensor2("x", false, p->m, p->k);
        out[2] = tensor2("w", false, p->n, p->k);
        out[3] = tensor2("y", false, p->m, p->n);
        out[4] = tensor2("dx", true, p->m, p->k);
        out[5] = tensor2("dw", true, p->n, p->k);
        out[6] = tensor1("db", true, p->n);
        return 7;
    default:
        return 0;
    }
}

int64_t problem_tensor_elements(const struct problem_tensor *t)
{
    int64_t n = 1;
    for (unsigned r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

struct kg_tensor problem_dense(const struct kg_problem *p, const struct problem_tensor *t,
                               void *data)
{
    struct kg_tensor view = {.data = data, .dtype = p->dtype, .rank = t->rank};
    int64_t stride = 1;
    for (unsigned r = t->rank; r-- > 0;) {
        view.shape[r] = t->shape[r];
        view.stride[r] = stride;
        stride *= t->shape[r];
    }
    return view;
}

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

double problem_flops(const struct kg_problem *p)
{
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        return 4.0 * (double)p->batch * (double)p->heads * (double)p->head_dim * visible_pairs(p);
    case KG_OP_GEMM:
    case KG_OP_LINEAR_RELU:
        return 2.0 * m * n * k;
    case KG_OP_GEMV:
        return 2.0 * m * k;
    case KG_OP_LINEAR_RELU_BWD:
        return 4.0 * m * n * k;
    default:
        return 0;
    }
}

double problem_bytes(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    double elements = 0;
    for (unsigned i = 0; i < n; i++)
        elements += (double)problem_tensor_elements(&tensors[i]);
    return elements * (double)problem_dtype_bytes(p->dtype);
}
