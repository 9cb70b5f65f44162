#include "gate/verify/verify_pattern.h"

#include <math.h>

#include "kernels/reference/half.h"
#include "gate/base/seed.h"
#include "gate/launch/operands.h"

#define SAME_ENDS 64    /* elements at each end */
#define CONSTANT_END 16 /* the part of a tensor that is not constant is one of so many */
#define FEW_ELEMENTS 32 /* of an output */

/* Nats by which a query's own key leads on the others on average, times head_dim over 64. */
#define RETRIEVAL_SCORE 2.0
#define RAMP_SCORE 100.0
#define MASKED_SCORE 8.0

static const struct {
    const char *name;
    bool exact;
} probes[PROBES] = {
    [PROBE_NORMAL] = {"random normal", false},
    [PROBE_SAME_ENDS] = {"random with unchanged ends", false},
    [PROBE_UNIFORM] = {"random in [0, 1)", false},
    [PROBE_INTEGERS] = {"exact integers", true},
    [PROBE_CANCELLATION] = {"exact cancellation", true},
    [PROBE_SUBNORMAL] = {"exact subnormal", true},
    [PROBE_NAN] = {"NaN and infinity", false},
    [PROBE_CONSTANT] = {"constant until near the end", false},
    [PROBE_RETRIEVAL] = {"retrieval", false},
    [PROBE_RAMP] = {"score ramp", false},
    [PROBE_MASKED] = {"huge masked keys", false},
};

const char *probe_name(enum probe probe)
{
    return probes[probe].name;
}

bool probe_is_exact(enum probe probe)
{
    return probes[probe].exact;
}

/*
 * Does an output have so few elements that all of them may be small by chance? A sum of random
 * terms may nearly cancel, and what it lost to rounding is then no small share of it: in 3 or 4 of
 * 1,000 draws of a single sum in fp32, and in more with TF32. Among many elements that is lost.
 * 16-bit factors have products without rounding, and the rounding of the output goes by its size.
 */
static bool may_cancel(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    bool few = false;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        few |= tensors[i].is_output && problem_tensor_elements(&tensors[i]) < FEW_ELEMENTS;
    return few && p->dtype == KG_F32 && p->op != KG_OP_ATTENTION_FWD;
}

bool probe_applies(enum probe probe, const struct kg_problem *p)
{
    bool attention = p->op == KG_OP_ATTENTION_FWD, backward = p->op == KG_OP_LINEAR_RELU_BWD;
    switch (probe) {
    case PROBE_NORMAL:
    case PROBE_SAME_ENDS:
        return !may_cancel(p);
    case PROBE_UNIFORM:
    case PROBE_INTEGERS:
        return !attention;
    case PROBE_CANCELLATION:
        return !attention && !backward;
    case PROBE_SUBNORMAL:
        return !attention && !backward && p->dtype == KG_F16;
    case PROBE_NAN:
        return (p->op == KG_OP_GEMM || p->op == KG_OP_GEMV) && !may_cancel(p);
    case PROBE_CONSTANT:
        return true;
    case PROBE_MASKED:
        return attention && (p->flags & KG_FLAG_CAUSAL) && p->seqlen_kv > 1;
    default:
        return attention;
    }
}

/* ---- random numbers by counter ---- */

static double uniform(uint64_t seed, int64_t index)
{
    return ((double)(seed_at(seed, (uint64_t)index) >> 11) + 0.5) * 0x1p-53;
}

static int integer(uint64_t seed, int64_t index, int least, int most)
{
    return least + (int)(seed_at(seed, (uint64_t)index) % (uint64_t)(most - least + 1));
}

#define NORMALS 65536 /* a power of two */

static double normals[NORMALS];

/* Box and Muller. */
static void make_normals(void)
{
    for (int64_t i = 0; i < NORMALS; i++)
        normals[i] = sqrt(-2 * log(uniform(0, 2 * i))) * cos(2 * M_PI * uniform(0, 2 * i + 1));
}

/* N(0,1) out of a table: to draw each anew would take most of the time of a check. */
static double normal(uint64_t seed, int64_t index)
{
    return normals[seed_at(seed, (uint64_t)index) % NORMALS];
}

static double sign(uint64_t seed, int64_t index)
{
    return seed_at(seed, (uint64_t)index) & 1 ? 1 : -1;
}

/* ---- tensors ---- */

static int64_t elements_of(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

static int64_t offset_of(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return at;
}

static void put(const struct kg_tensor *t, int64_t flat, double value)
{
    kg_store_float(t->data, t->dtype, offset_of(t, flat), (float)value);
}

/* Value of element `flat` of tensor `i`; n is how many the tensor has. */
typedef double (*value_fn)(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed);

/* Fills tensor `i` row by row, whose elements are neighbours. */
static void fill_tensor(value_fn value, const struct kg_problem *p, const struct kg_tensor *t,
                        unsigned i, uint64_t seed)
{
    int64_t n = elements_of(t), columns = t->shape[t->rank - 1];
    for (int64_t first = 0; first < n; first += columns) {
        int64_t at = offset_of(t, first);
        for (int64_t c = 0; c < columns; c++)
            kg_store_float(t->data, t->dtype, at + c, (float)value(p, i, first + c, n, seed));
    }
}

static void fill_by(value_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                    unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        fill_tensor(value, p, &in[i], i, seed_at(seed, i));
}

/* ---- the GEMM family ---- */

static double value_normal(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return normal(seed, flat);
}

static double value_same_ends(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                              uint64_t seed)
{
    (void)p;
    (void)i;
    int64_t ends = n > 3 * SAME_ENDS ? SAME_ENDS : n / 3;
    bool inside = flat >= ends && flat < n - ends;
    return normal(inside ? ~seed : seed, flat);
}

static double value_uniform(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return uniform(seed, flat);
}

static double value_integer(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return integer(seed, flat, -4, 4);
}

/* Integers, so that sums of few terms do not nearly cancel; keys and values are as ever. */
static double value_constant(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                             uint64_t seed)
{
    if (p->op == KG_OP_ATTENTION_FWD && i > 0)
        return normal(seed, flat);
    bool at_end = flat >= n - (n + CONSTANT_END - 1) / CONSTANT_END;
    return at_end ? integer(seed, flat, -4, 4) : i > 0;
}

/* Step of the sum that an element of factor `i` (0 or 1) belongs to. */
static int64_t depth_of(const struct kg_problem *p, unsigned i, int64_t flat)
{
    return i == 1 && p->op == KG_OP_GEMM ? flat / p->n : flat % p->k;
}

/* The element in the first half of the sum that one in the second half mirrors. */
static int64_t mirrored(const struct kg_problem *p, unsigned i, int64_t flat, int64_t depth)
{
    int64_t step = i == 1 && p->op == KG_OP_GEMM ? p->n : 1;
    return flat + (p->k - 1 - 2 * depth) * step;
}

/*
 * The second half of the sum takes the first one back, but for what B's halves differ by: partial
 * sums of thousands of terms of 2^13 and more, results of some 2^12. All terms are multiples of 128
 * below 2^31, so fp32 sums them exactly in any order; the factors fit the mantissa of bf16.
 */
static double value_cancelling(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                               uint64_t seed)
{
    (void)n;
    if (i > 1) /* a bias */
        return 128 * integer(seed, flat, -4, 4);
    int64_t depth = depth_of(p, i, flat);
    bool second = depth >= (p->k + 1) / 2;
    int64_t source = second ? mirrored(p, i, flat, depth) : flat;
    if (i == 0)
        return (second ? -128.0 : 128.0) * integer(seed, source, -4, 4);
    double value = 64.0 * integer(seed, source, -1, 1);
    /* Alone, the middle of an odd sum has nothing that takes it back. */
    bool alone = p->k % 2 && depth == p->k / 2;
    return alone ? integer(seed, flat, -1, 1) : value + (second ? 0 : integer(~seed, flat, -1, 1));
}

/* Multiples of 2^-24, which fp16 has no normal numbers for, times multiples of 2^10. */
static double value_subnormal(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                              uint64_t seed)
{
    (void)p;
    (void)n;
    double value = integer(seed, flat, -4, 4);
    return i == 0 ? value * 0x1p-24 : i == 1 ? value * 0x1p10 : value * 0x1p-14;
}

static void fill_nan(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                     uint64_t seed)
{
    fill_by(value_normal, p, in, n_in, seed);
    int64_t n = elements_of(&in[0]);
    put(&in[0], integer(seed, 1, 0, (int)(n < 1 << 20 ? n - 1 : 1 << 20)), NAN);
    if (n > 1)
        put(&in[0], n - 1, INFINITY);
}

/* ---- attention ---- */

/* Key j of a KV head is the signs of code(j); V is integers, so that what was found is exact. */
static double code(uint64_t seed, int64_t kv_head, int64_t key, int64_t d)
{
    return sign(seed_at(seed, (uint64_t)kv_head), key * 1024 + d);
}

/* The key that query `row` looks for. */
static int64_t sought_key(const struct kg_problem *p, uint64_t seed, int64_t query, int64_t row)
{
    int64_t last = p->seqlen_kv - 1, diagonal = row + p->seqlen_kv - p->seqlen_q;
    int64_t border = last / 64 * 64, key;
    switch (seed_at(seed, (uint64_t)query) % 8) {
    case 0:
    case 1:
        key = diagonal;
        break;
    case 2: /* the first one that a causal mask hides */
        key = diagonal + 1;
        break;
    case 3:
        key = 0;
        break;
    case 4:
        key = last;
        break;
    case 5:
        key = border;
        break;
    case 6:
        key = border - 1;
        break;
    default:
        key = integer(~seed, query, 0, (int)last);
    }
    return key < 0 ? 0 : key > last ? last : key;
}

/* Heads of the query tensor share a KV head by kernel.h. */
static int64_t kv_head_of(const struct kg_problem *p, int64_t head)
{
    int64_t b = head / p->heads, h = head % p->heads;
    return b * p->kv_heads + h / (p->heads / p->kv_heads);
}

static double safe_scale(const struct kg_problem *p)
{
    double scale = fabs(p->scale);
    return scale > 1e-3 && scale < 1e3 ? p->scale : 1;
}

static double value_retrieval(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                              uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, query = flat / p->head_dim;
    if (i == 2)
        return integer(seed, flat, -8, 8);
    if (i == 1)
        return code(seed, query / p->seqlen_kv, query % p->seqlen_kv, d);
    int64_t head = query / p->seqlen_q, row = query % p->seqlen_q;
    int64_t key = sought_key(p, seed, query, row);
    return code(seed, kv_head_of(p, head), key, d) * round(RETRIEVAL_SCORE / safe_scale(p));
}

/* Score of key j: a straight line through the keys, falling in every other head. */
static double value_ramp(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                         uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, key = flat / p->head_dim;
    uint64_t shared = 0x72616d70; /* the direction that queries and keys have in common */
    if (i == 2)
        return normal(seed, flat);
    if (i == 0)
        return sign(shared, d) * 4;
    int64_t head = key / p->seqlen_kv, j = key % p->seqlen_kv;
    double at = p->seqlen_kv > 1 ? 2.0 * (double)j / (double)(p->seqlen_kv - 1) - 1 : 0;
    double score = RAMP_SCORE * (head % 2 ? -at : at);
    return sign(shared, d) * score / (4 * (double)p->head_dim * safe_scale(p));
}

/* The last keys have scores and values far above the others; most rows must not see them. */
static double value_masked(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, key = flat / p->head_dim % p->seqlen_kv;
    uint64_t shared = 0x6d61736b;
    if (i == 0)
        return sign(shared, d) + normal(seed, flat) / 8;
    bool late = key >= p->seqlen_kv - (p->seqlen_kv + 3) / 4;
    if (i == 2)
        return normal(seed, flat) * (late ? 64 : 1);
    double lead = MASKED_SCORE * (double)(p->seqlen_kv - key) / (double)p->seqlen_kv;
    double score = late ? 4 * MASKED_SCORE + MASKED_SCORE - lead : 0;
    return normal(seed, flat) / 8 + sign(shared, d) * score / ((double)p->head_dim * safe_scale(p));
}

/* Q and K of these probes are made from one seed, since they have to fit each other. */
static void fill_attention(value_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                           unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        fill_tensor(value, p, &in[i], i, seed);
}

void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                unsigned n_in, uint64_t seed)
{
    static const value_fn values[PROBES] = {
        [PROBE_NORMAL] = value_normal,
        [PROBE_SAME_ENDS] = value_same_ends,
        [PROBE_UNIFORM] = value_uniform,
        [PROBE_INTEGERS] = value_integer,
        [PROBE_CANCELLATION] = value_cancelling,
        [PROBE_SUBNORMAL] = value_subnormal,
        [PROBE_CONSTANT] = value_constant,
        [PROBE_RETRIEVAL] = value_retrieval,
        [PROBE_RAMP] = value_ramp,
        [PROBE_MASKED] = value_masked,
    };
    if (normals[0] == 0)
        make_normals();
    if (probe == PROBE_NAN)
        fill_nan(p, in, n_in, seed);
    else if (probe >= PROBE_RETRIEVAL)
        fill_attention(values[probe], p, in, n_in, seed);
    else
        fill_by(values[probe], p, in, n_in, seed);
}
