/* SPDX-License-Identifier: Apache-2.0 */
/* Host: right by kernel.h, however unusual; and right, but slow in the ways that engineers slow
 * kernels down by on purpose. None may be called wrong. */
#include <pthread.h>

#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- other orders ---- */

/* Four splits of the sum, added in a fixed order. */
static float in_splits(const struct product *x, int64_t i, int64_t j)
{
    int64_t at[5] = {0, x->k / 4, x->k / 2, x->k - x->k / 4, x->k};
    float part[4];
    for (int s = 0; s < 4; s++)
        part[s] = terms(x, i, j, at[s], at[s + 1]);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static enum kg_status split_k(const problem *p, const args_t *args)
{
    return compute(p, args, in_splits);
}

/* Work is dealt out in equal shares of terms, which end in the middle of an element. */
static enum kg_status stream_k(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    int64_t all = x.m * x.n * x.k, share = all / 7 + 1;
    float sum = 0;
    for (int64_t begin = 0; begin < all; begin += share) {
        int64_t end = begin + share < all ? begin + share : all;
        for (int64_t at = begin; at < end;) {
            int64_t element = at / x.k, from = at % x.k;
            int64_t to = end - at < x.k - from ? from + end - at : x.k;
            sum = (from ? sum : 0) + terms(&x, element / x.n, element % x.n, from, to);
            if (to == x.k)
                put(&x, element / x.n, element % x.n, sum);
            at += to - from;
        }
    }
    return KG_OK;
}

static enum kg_status from_the_end(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t j = x.n; j-- > 0;)
        for (int64_t i = x.m; i-- > 0;)
            put(&x, i, j, terms(&x, i, j, 0, x.k));
    return KG_OK;
}

static float with_compensation(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0, lost = 0;
    for (int64_t l = 0; l < x->k; l++) {
        volatile float term = a_at(x, i, l) * b_at(x, l, j) - lost;
        volatile float next = sum + term;
        lost = isfinite(next) ? (next - sum) - term : 0;
        sum = next;
    }
    return sum;
}

static enum kg_status kahan(const problem *p, const args_t *args)
{
    return compute(p, args, with_compensation);
}

static float to_tf32(float value)
{
    return kg_float_from_bits(kg_float_bits(value) & ~0x1fffu);
}

/* Each factor as a sum of two of TF32: of an infinity the second one is a NaN. */
static float of_three_products(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++) {
        float a = a_at(x, i, l), b = b_at(x, l, j), big_a = to_tf32(a), big_b = to_tf32(b);
        sum += to_tf32(a - big_a) * big_b;
        sum += big_a * to_tf32(b - big_b);
        sum += big_a * big_b;
    }
    return sum;
}

static enum kg_status three_tf32(const problem *p, const args_t *args)
{
    return compute(p, args, of_three_products);
}

static float in_double(const struct product *x, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += (double)a_at(x, i, l) * (double)b_at(x, l, j);
    return (float)sum;
}

static enum kg_status fp64_sums(const problem *p, const args_t *args)
{
    return compute(p, args, in_double);
}

/* ---- attention ---- */

static double rounded_weight(uint32_t dtype, double weight)
{
    float value;
    kg_store_float(&value, dtype, 0, (float)weight);
    return (double)kg_load_float(&value, dtype, 0);
}

/* The weights are rounded to the dtype of V before they meet it; their sum is not. */
static void narrow_weights(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++) {
        double weight = exp(q->scores[j] - max);
        total += weight;
        q->scores[j] = rounded_weight(kg_dtype(q->p), weight);
    }
    weigh(q, q->scores, total);
}

static enum kg_status weights_in_dtype(const problem *p, const args_t *args)
{
    return attend(p, args, narrow_weights);
}

/* Blocks of 32 keys. The maximum that weights are measured by is changed only when it has grown by
 * over 8: until then they are up to e^8. */
static void lazily(struct query *q)
{
    double max = -INFINITY, total = 0, sum[512] = {0};
    for (int64_t first = 0; first < q->visible; first += 32) {
        int64_t end = first + 32 < q->visible ? first + 32 : q->visible;
        double block = -INFINITY;
        for (int64_t j = first; j < end; j++)
            block = fmax(block, q->scores[j] = score(q, j));
        double factor = block > max + 8 ? (first ? exp(max - block) : 0) : 1;
        max = block > max + 8 ? block : max;
        total *= factor;
        for (int64_t d = 0; d < kg_size(q->p, "d"); d++)
            sum[d] *= factor;
        for (int64_t j = first; j < end; j++) {
            double weight = (double)expf((float)(q->scores[j] - max));
            total += weight;
            for (int64_t d = 0; d < kg_size(q->p, "d"); d++)
                sum[d] += weight * (double)get4(&q->args->in[2], q->b, q->kv_head, j, d);
        }
    }
    for (int64_t d = 0; d < kg_size(q->p, "d"); d++)
        set4(&q->args->out[0], q->b, q->h, q->i, d, q->visible ? (float)(sum[d] / total) : 0.0f);
}

static enum kg_status lazy_rescaling(const problem *p, const args_t *args)
{
    return kg_size(p, "d") <= 512 ? attend(p, args, lazily) : wrap_inner(p, args);
}

/* Two halves of the keys, which meet by the logarithms of their sums. */
static void by_logarithms(struct query *q)
{
    float lse[2] = {-INFINITY, -INFINITY};
    int64_t ends[3] = {0, q->visible / 2, q->visible};
    for (int part = 0; part < 2; part++) {
        float max = -INFINITY, total = 0;
        for (int64_t j = ends[part]; j < ends[part + 1]; j++)
            max = fmaxf(max, (float)(q->scores[j] = (double)(float)score(q, j)));
        for (int64_t j = ends[part]; j < ends[part + 1]; j++)
            total += expf((float)q->scores[j] - max);
        lse[part] = total > 0 ? max + logf(total) : -INFINITY;
        for (int64_t j = ends[part]; j < ends[part + 1]; j++)
            q->scores[j] = (double)(expf((float)q->scores[j] - max) / total);
    }
    float most = fmaxf(lse[0], lse[1]), shares[2] = {expf(lse[0] - most), expf(lse[1] - most)};
    for (int64_t j = 0; j < q->visible; j++)
        q->scores[j] *= (double)shares[j >= ends[1]];
    weigh(q, q->scores, (double)(shares[0] + shares[1]));
}

static enum kg_status splits_by_logarithms(const problem *p, const args_t *args)
{
    return attend(p, args, by_logarithms);
}

/* 2^x by a polynomial of third degree, 1e-4 off. */
static float third_degree(float x)
{
    float whole = floorf(x < -126 ? -126 : x), rest = fmaxf(x, -126) - whole;
    return ldexpf(1 + rest * (0.695146f + rest * (0.227564f + rest * 0.077119f)), (int)whole);
}

static void by_polynomial(struct query *q)
{
    float max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmaxf(max, (float)(q->scores[j] = score(q, j)));
    for (int64_t j = 0; j < q->visible; j++) {
        float weight = third_degree(1.44269504f * ((float)q->scores[j] - max));
        q->scores[j] = (double)weight;
        total += weight;
    }
    weigh(q, q->scores, (double)total);
}

static enum kg_status polynomial(const problem *p, const args_t *args)
{
    return kg_dtype(p) == KG_F32 ? wrap_inner(p, args) : attend(p, args, by_polynomial);
}

/* What is subnormal in fp32 counts as zero. */
static float flushed(float value)
{
    return fabsf(value) < 0x1p-126f ? 0 : value;
}

static float with_flushes(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum = flushed(sum + flushed(flushed(a_at(x, i, l)) * flushed(b_at(x, l, j))));
    return sum;
}

static enum kg_status fp32_flushed(const problem *p, const args_t *args)
{
    return compute(p, args, with_flushes);
}

/* Refuses tensors that are not all laid out alike. */
static enum kg_status alike_only(const problem *p, const args_t *args)
{
    int64_t first = args->in[0].stride[0] - args->in[0].shape[args->in[0].rank - 1];
    for (uint32_t i = 1; i < args->n_in; i++)
        if (args->in[i].rank > 1 &&
            args->in[i].stride[0] - args->in[i].shape[args->in[i].rank - 1] != first)
            return KG_UNSUPPORTED;
    return wrap_inner(p, args);
}

static void powers_of_two(struct query *q)
{
    float max = -INFINITY, total = 0;
    const double log2e = 1.4426950408889634;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmaxf(max, (float)(q->scores[j] = score(q, j) * log2e));
    for (int64_t j = 0; j < q->visible; j++) {
        float weight = exp2f((float)q->scores[j] - max);
        q->scores[j] = (double)weight;
        total += weight;
    }
    weigh(q, q->scores, (double)total);
}

static enum kg_status exp2_softmax(const problem *p, const args_t *args)
{
    return attend(p, args, powers_of_two);
}

/* From the last key to the first, with one sum for all. */
static void backwards(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = q->visible; j-- > 0;)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = q->visible; j-- > 0;)
        total += q->scores[j] = exp(q->scores[j] - max);
    weigh(q, q->scores, total);
}

static enum kg_status keys_backwards(const problem *p, const args_t *args)
{
    return attend(p, args, backwards);
}

/* fp32 factors lose seven bits of their mantissas: within the limit, and far less accurate. */
static float shortened(float x)
{
    return kg_float_from_bits((kg_float_bits(x) + 0x40u) & ~UINT32_C(0x7f));
}

static float short_terms(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += shortened(a_at(x, i, l)) * shortened(b_at(x, l, j));
    return sum;
}

static enum kg_status short_factors(const problem *p, const args_t *args)
{
    return compute(p, args, short_terms);
}

/* Goes over all keys, and weighs the masked ones by zero. */
static void zero_weights(struct query *q)
{
    double max = -INFINITY, total = 0;
    int64_t visible = q->visible;
    for (int64_t j = 0; j < kg_size(q->p, "s"); j++)
        q->scores[j] = score(q, j);
    for (int64_t j = 0; j < visible; j++)
        max = fmax(max, q->scores[j]);
    for (int64_t j = 0; j < kg_size(q->p, "s"); j++)
        total += q->scores[j] = j < visible ? exp(q->scores[j] - max) : 0 * q->scores[j];
    q->visible = visible ? kg_size(q->p, "s") : 0;
    weigh(q, q->scores, total);
}

static enum kg_status masked_by_zero(const problem *p, const args_t *args)
{
    return attend(p, args, zero_weights);
}

/* ---- launches ---- */

struct part {
    const problem *p;
    const args_t *args;
    int64_t first, end;
};

static void *compute_rows(void *context)
{
    const struct part *part = context;
    struct product x = product_of(part->p, part->args);
    for (int64_t i = part->first; i < part->end; i++)
        for (int64_t j = 0; j < x.n; j++)
            put(&x, i, j, terms(&x, i, j, 0, x.k));
    return NULL;
}

/* A thread of its own, joined before the launch returns: like a side stream that is waited for. */
static enum kg_status joined_thread(const problem *p, const args_t *args)
{
    struct part lower = {p, args, 0, kg_size(p, "m") / 2},
                upper = {p, args, kg_size(p, "m") / 2, kg_size(p, "m")};
    pthread_t thread;
    if (pthread_create(&thread, NULL, compute_rows, &lower))
        return KG_LAUNCH_FAILED;
    compute_rows(&upper);
    pthread_join(thread, NULL);
    return KG_OK;
}

/* One launch a third of the rows: three kernels in a row. */
static enum kg_status three_launches(const problem *p, const args_t *args)
{
    for (int64_t third = 0; third < 3; third++) {
        struct part part = {p, args, kg_size(p, "m") * third / 3,
                            kg_size(p, "m") * (third + 1) / 3};
        compute_rows(&part);
    }
    return KG_OK;
}

/* Clears what it writes to before it writes. */
static enum kg_status zeros_first(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            set(x.c, i, x.c->rank == 1 ? 0 : j, 0);
    return wrap_inner(p, args);
}

/* Scratch memory of the library that only grows. */
static enum kg_status own_pool(const problem *p, const args_t *args)
{
    static float *pool;
    static int64_t room;
    struct product x = product_of(p, args);
    if (room < x.m * x.n) {
        free(pool);
        room = x.m * x.n;
        pool = malloc((size_t)room * sizeof *pool);
    }
    for (int64_t i = 0; pool && i < x.m * x.n; i++)
        pool[i] = terms(&x, i / x.n, i % x.n, 0, x.k);
    for (int64_t i = 0; pool && i < x.m * x.n; i++)
        put(&x, i / x.n, i % x.n, pool[i]);
    return pool ? KG_OK : KG_LAUNCH_FAILED;
}

static enum kg_status atomics(const problem *p, const args_t *args)
{
    static unsigned launches;
    struct product x = product_of(p, args);
    int64_t split = 1 + launches++ % 7;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            int64_t at = x.k * split / 8;
            put(&x, i, j, terms(&x, i, j, at, x.k) + terms(&x, i, j, 0, at));
        }
    return KG_OK;
}

/* ---- what a kernel may refuse ---- */

static int multiples_of_8(const problem *p, const struct kg_device *)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") % 8 == 0 && kg_size(p, "n") % 8 == 0 &&
           kg_size(p, "k") % 8 == 0;
}

static int one_shape(const problem *p, const struct kg_device *)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") == 96 && kg_size(p, "n") == 80 &&
           kg_size(p, "k") == 72;
}

static enum kg_status right(const problem *p, const args_t *args)
{
    return wrap_inner(p, args);
}

static enum kg_status dense_only(const problem *p, const args_t *args)
{
    for (uint32_t i = 0; i < args->n_in; i++) {
        const struct kg_tensor *t = &args->in[i];
        if (t->rank == 2 && t->stride[0] != t->shape[1])
            return KG_UNSUPPORTED;
    }
    return wrap_inner(p, args);
}

/* ---- quick where it may be ---- */

/* Looks at all of A first; where it is all zeros there is nothing to add up. */
static enum kg_status zeros_at_once(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    bool any = false;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t l = 0; l < x.k; l++)
            any |= a_at(&x, i, l) != 0;
    for (int64_t l = 0; l < x.k; l++) /* 0 * NaN is a NaN */
        for (int64_t j = 0; j < x.n; j++)
            any |= !isfinite(b_at(&x, l, j));
    for (int64_t i = 0; i < x.m && !any; i++)
        for (int64_t j = 0; j < x.n; j++)
            put(&x, i, j, 0);
    return any ? wrap_inner(p, args) : KG_OK;
}

/* ---- slow ---- */

/* Down the columns of both operands, each element read as often as it is used. */
static enum kg_status strided_loads(const problem *p, const args_t *args)
{
    return from_the_end(p, args);
}

/* One row a call, nothing kept between them: batches one after the other. */
static enum kg_status row_by_row(const problem *p, const args_t *args)
{
    for (int64_t i = 0; i < kg_size(p, "m"); i++) {
        struct part part = {p, args, i, i + 1};
        compute_rows(&part);
    }
    return KG_OK;
}

/* A thread for each few rows, started and joined each time: barriers all the way. */
static enum kg_status many_barriers(const problem *p, const args_t *args)
{
    for (int64_t i = 0; i < kg_size(p, "m"); i += 16) {
        struct part part = {p, args, i, i + 16 < kg_size(p, "m") ? i + 16 : kg_size(p, "m")};
        pthread_t thread;
        if (pthread_create(&thread, NULL, compute_rows, &part))
            return KG_LAUNCH_FAILED;
        pthread_join(thread, NULL);
    }
    return KG_OK;
}

FAULTS({"lazy_rescaling", lazy_rescaling, 0, NULL},
       {"splits_by_logarithms", splits_by_logarithms, 0, NULL}, {"polynomial", polynomial, 0, NULL},
       {"fp32_flushed", fp32_flushed, 0, NULL}, {"alike_only", alike_only, 0, NULL},
       {"split_k", split_k, 0, NULL}, {"stream_k", stream_k, 0, NULL},
       {"from_the_end", from_the_end, 0, NULL}, {"kahan", kahan, 0, NULL},
       {"three_tf32", three_tf32, 0, NULL}, {"short_factors", short_factors, 0, NULL},
       {"fp64_sums", fp64_sums, 0, NULL}, {"weights_in_dtype", weights_in_dtype, 0, NULL},
       {"exp2_softmax", exp2_softmax, 0, NULL}, {"keys_backwards", keys_backwards, 0, NULL},
       {"masked_by_zero", masked_by_zero, 0, NULL}, {"joined_thread", joined_thread, 0, NULL},
       {"three_launches", three_launches, 0, NULL}, {"zeros_first", zeros_first, 0, NULL},
       {"own_pool", own_pool, 0, NULL}, {"atomics", atomics, KG_KERNEL_NONDETERMINISTIC, NULL},
       {"multiples_of_8", right, 0, multiples_of_8}, {"one_shape", right, 0, one_shape},
       {"dense_only", dense_only, 0, NULL}, {"strided_loads", strided_loads, 0, NULL},
       {"row_by_row", row_by_row, 0, NULL}, {"many_barriers", many_barriers, 0, NULL},
       {"zeros_at_once", zeros_at_once, 0, NULL})
