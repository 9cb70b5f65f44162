/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_shapes.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/cases/problem.h"
#include "kernels/reference/signature.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- classes ---- */

/* Of a length: what it leaves modulo each of these, 0, 1, all but 1, half or something else, if it
 * is no shorter; and how many tiles of 32 it has. */
static const int64_t moduli[] = {8, 16, 32, 64, 128, 256, 512};
#define REST_CLASSES 6
static const int64_t size_ends[] = {2,   17,  33,  65,  97,  129,  161,      193,
                                    225, 257, 289, 385, 513, 1025, INT64_MAX};
#define LENGTH_CLASSES (COUNT(moduli) * REST_CLASSES + COUNT(size_ends))

#define CLASSES_MAX 176
#define FEATURES_MAX 25 /* of a shape */
#define ALONE 15        /* pairs that a class is worth which no shape had before */

/* The classes of a shape, each with the dimension that it is of. */
struct classes {
    unsigned n, end; /* `end`: one more than the last class there could be */
    struct {
        unsigned char dimension, class;
    } of[FEATURES_MAX];
};

static void add_class(struct classes *c, unsigned dimension, size_t class)
{
    c->of[c->n].dimension = (unsigned char)dimension;
    c->of[c->n++].class = (unsigned char)(c->end + class);
}

static size_t rest_class(int64_t length, int64_t modulus)
{
    int64_t rest = length % modulus;
    return length < modulus      ? 5
           : rest == 0           ? 0
           : rest == 1           ? 1
           : rest == modulus - 1 ? 2
           : rest == modulus / 2 ? 3
                                 : 4;
}

static void add_length(struct classes *c, unsigned dimension, int64_t length)
{
    size_t size = 0;
    for (size_t i = 0; i < COUNT(moduli); i++)
        add_class(c, dimension, i * REST_CLASSES + rest_class(length, moduli[i]));
    while (length >= size_ends[size])
        size++;
    add_class(c, dimension, COUNT(moduli) * REST_CLASSES + size);
    c->end += (unsigned)LENGTH_CLASSES;
}

static void add_count(struct classes *c, unsigned dimension, int64_t count, unsigned most)
{
    add_class(c, dimension, (size_t)(count < most ? count : most) - 1);
    c->end += most;
}

static double default_scale(const struct kg_problem *p)
{
    return 1 / sqrt((double)p->head_dim);
}

static struct classes classes_of(const struct kg_problem *p)
{
    struct classes c = {0};
    if (p->op != KG_OP_ATTENTION_FWD) {
        add_length(&c, 0, p->m);
        add_length(&c, 1, p->k);
        if (p->op != KG_OP_GEMV)
            add_length(&c, 2, p->n);
        add_class(&c, 3, problem_dtype_index(p));
        return c;
    }
    double scale = p->scale / default_scale(p);
    add_length(&c, 0, p->seqlen_q);
    add_length(&c, 1, p->seqlen_kv);
    add_count(&c, 2, p->batch, 4);
    add_count(&c, 3, p->kv_heads, 6);
    add_count(&c, 4, p->heads / p->kv_heads, 8);
    add_count(&c, 5, p->flags & KG_FLAG_CAUSAL ? 2 : 1, 2);
    add_count(&c, 6, scale < 0 ? 1 : scale == 0 ? 5 : scale < 1 ? 2 : scale > 1 ? 3 : 4, 5);
    add_class(&c, 7, problem_dtype_index(p));
    return c;
}

/* Which classes have met. */
struct meetings {
    bool met[CLASSES_MAX][CLASSES_MAX];
};

/* How many pairs of classes of different dimensions are new, and classes by themselves; they are
 * noted if `note`. */
static unsigned new_pairs(struct meetings *all, const struct kg_problem *p, bool note)
{
    struct classes c = classes_of(p);
    unsigned n = 0;
    for (unsigned i = 0; i < c.n; i++)
        for (unsigned j = 0; j <= i; j++) {
            bool *met = &all->met[c.of[i].class][c.of[j].class];
            if ((i != j && c.of[i].dimension == c.of[j].dimension) || *met)
                continue;
            n += i == j ? ALONE : 1;
            *met = note;
        }
    return n;
}

/* Pairs that there are: of each two classifications of different dimensions all classes. */
static unsigned all_pairs(const struct kg_problem *p, unsigned dtypes)
{
    const unsigned attention[] = {dtypes, LENGTH_CLASSES, LENGTH_CLASSES, 4, 6, 8, 2, 5};
    const unsigned product[] = {dtypes, LENGTH_CLASSES, LENGTH_CLASSES, LENGTH_CLASSES};
    const unsigned *of = p->op == KG_OP_ATTENTION_FWD ? attention : product;
    const size_t dimensions = p->op == KG_OP_ATTENTION_FWD ? COUNT(attention)
                              : p->op == KG_OP_GEMV        ? COUNT(product) - 1
                                                           : COUNT(product);
    unsigned n = 0;
    for (size_t i = 0; i < dimensions; i++)
        for (size_t j = 0; j < i; j++)
            n += of[i] * of[j];
    return n;
}

/* ---- candidates ---- */

/* A shape's reference and launches are on the host as often as not: products, most often much
 * fewer, and elements of a tensor. */
#define PRODUCTS_MAX 0x1p20
#define ELEMENTS_MAX 32768

#define LENGTH_MAX 4096
#define CANDIDATES 32
#define FIXED_SEED 0x6669786564u

static int64_t pick(uint64_t *state, const int64_t *of, size_t n)
{
    return of[seed_next(state) % n];
}

static double draw_products(uint64_t *state)
{
    return PRODUCTS_MAX / exp2((double)(seed_next(state) % 5));
}

/* Some tiles of a usual size, and a rest. */
static int64_t draw_length(uint64_t *state, double most)
{
    static const int64_t tiles[] = {8, 16, 32, 64, 128, 256, 512},
                         counts[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9};
    if (most > LENGTH_MAX)
        most = LENGTH_MAX;
    for (unsigned tries = 0; tries < 8; tries++) {
        int64_t tile = pick(state, tiles, COUNT(tiles));
        const int64_t rests[] = {0, 1, tile - 1, tile / 2,
                                 (int64_t)(seed_next(state) % 512) % tile};
        int64_t n = tile * pick(state, counts, COUNT(counts)) + pick(state, rests, COUNT(rests));
        if (n >= 1 && (double)n <= most)
            return n;
    }
    return 1 + (int64_t)(seed_next(state) % (uint64_t)(most < 1 ? 1 : most));
}

/* The sizes of a product in any order: the first is the freest, and leaves room for the others. */
static void draw_product(uint64_t *state, struct kg_problem *p)
{
    int64_t *sizes[3] = {&p->m, &p->k, &p->n};
    unsigned n = p->op == KG_OP_GEMV ? 2 : 3, first = (unsigned)(seed_next(state) % n);
    double products = draw_products(state), elements = ELEMENTS_MAX;
    for (unsigned i = 0; i < n; i++) {
        int64_t *size = sizes[(first + i) % n];
        double most = i == 0 ? products / 64 : i + 1 < n ? 2 * sqrt(products) : products;
        *size = draw_length(state, fmin(most, elements));
        products /= (double)*size;
        elements = fmin(elements, ELEMENTS_MAX / (double)*size);
    }
}

static void draw_attention(uint64_t *state, const struct kg_problem *own, struct kg_problem *p)
{
    static const int64_t batches[] = {1, 1, 1, 1, 2, 3}, kv_heads[] = {1, 1, 1, 2, 3, 5},
                         groups[] = {1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8};
    p->batch = pick(state, batches, COUNT(batches));
    p->kv_heads = pick(state, kv_heads, COUNT(kv_heads));
    p->heads = p->kv_heads * pick(state, groups, COUNT(groups));
    double lines = ELEMENTS_MAX / (double)(p->head_dim * p->batch * p->heads);
    double pairs = 2 * draw_products(state) / (double)(p->head_dim * p->batch * p->heads);
    bool decoding = own->seqlen_q == 1 && seed_next(state) % 2;
    double most = seed_next(state) % 4 ? 2 * sqrt(pairs) : pairs;
    p->seqlen_q = decoding ? 1 : draw_length(state, fmin(lines, most));
    p->seqlen_kv = draw_length(state, fmin(4 * lines, pairs / (double)p->seqlen_q));
    if (seed_next(state) % 4 == 0)
        p->flags ^= KG_FLAG_CAUSAL;
    uint64_t kind = seed_next(state) % 8;
    double drawn = exp2(6 * (double)(seed_next(state) % 1024) / 1024 - 4);
    p->scale = default_scale(p) * (kind < 4 ? 1 : kind == 4 ? -drawn : drawn);
}

static struct kg_problem draw(uint64_t *state, const struct kg_problem *own)
{
    struct kg_problem p = *own;
    if (p.op == KG_OP_ATTENTION_FWD)
        draw_attention(state, own, &p);
    else
        draw_product(state, &p);
    return p;
}

/* The candidate that brings the most new pairs together. */
static struct kg_problem choose(struct meetings *met, uint64_t *state, const struct kg_problem *own)
{
    struct kg_problem best = draw(state, own);
    unsigned most = new_pairs(met, &best, false);
    for (unsigned i = 1; i < CANDIDATES; i++) {
        struct kg_problem other = draw(state, own);
        unsigned n = new_pairs(met, &other, false);
        if (n > most) {
            most = n;
            best = other;
        }
    }
    new_pairs(met, &best, true);
    return best;
}

/* ---- the problem's own sizes ---- */

/* As far as it is not too long to be looked at closely. */
#define OWN_MAX 4096

static int64_t own(int64_t size, int64_t more)
{
    return (size < OWN_MAX ? size : OWN_MAX) + more;
}

static unsigned add_own_products(const struct kg_problem *p, struct kg_problem *out)
{
    const struct {
        int64_t m, n, k;
    } sizes[] = {{own(p->m, 1), 40, 72},
                 {40, own(p->n, 1), 40},
                 {65, 136, own(p->k, 8)},
                 {1, 1, 1},
                 {64, 64, 64}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        out[i] = *p;
        out[i].m = sizes[i].m;
        out[i].n = p->op == KG_OP_GEMV ? p->n : sizes[i].n;
        out[i].k = sizes[i].k;
    }
    return COUNT(sizes);
}

/* Decoding; a single pair; half a tile of keys; more queries than keys; whole tiles, whose scale is
 * zero: all keys count the same then; as many queries as keys and heads as KV heads, so that Q, K
 * and V have one shape. */
static unsigned add_own_attentions(const struct kg_problem *p, struct kg_problem *out)
{
    const int64_t sizes[][5] = {{1, 4, 1, 1, own(p->seqlen_kv, 1)},
                                {1, 1, 1, 1, 1},
                                {2, 6, 3, 63, 97},
                                {1, 3, 1, 203, 113},
                                {1, 2, 2, 64, 128},
                                {2, 3, 3, 72, 72}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        out[i] = *p;
        out[i].batch = sizes[i][0];
        out[i].heads = sizes[i][1];
        out[i].kv_heads = sizes[i][2];
        out[i].seqlen_q = sizes[i][3];
        out[i].seqlen_kv = sizes[i][4];
        if (out[i].seqlen_kv == 128)
            out[i].scale = 0;
    }
    return COUNT(sizes);
}

/* Half a tile behind a whole one in each size, which the fixed ones have of K alone. */
static struct kg_problem half_tiles(const struct kg_problem *p)
{
    struct kg_problem half = *p;
    half.m = half.k = 96;
    if (p->op != KG_OP_GEMV)
        half.n = 96;
    return half;
}

/* Longer ones than are drawn, with a tail: where a kernel may split them. */
#define LONG_SUM (8192 + 513)

static struct kg_problem long_sums(const struct kg_problem *p)
{
    struct kg_problem longer = *p;
    bool over_rows = p->op == KG_OP_LINEAR_RELU_BWD;
    longer.m = over_rows ? LONG_SUM : 3;
    longer.k = over_rows ? 3 : LONG_SUM;
    if (p->op != KG_OP_GEMV)
        longer.n = 5;
    return longer;
}

/* In each of the other dtypes in turn; returns their number. */
static unsigned add_others(struct meetings *met, uint64_t *state, const struct kg_problem *p,
                           unsigned others, unsigned each, struct kg_problem *out, unsigned most)
{
    unsigned n = 0;
    for (unsigned turn = 0; turn < each; turn++)
        for (unsigned i = 0; i < PROBLEM_DTYPES && n < most; i++) {
            const struct kg_problem other = problem_in_dtype(p, i);
            if (others >> i & 1)
                out[n++] = choose(met, state, &other);
        }
    return n;
}

unsigned shapes_designed(const struct kg_problem *p, unsigned others, uint64_t seed,
                         struct shapes_plan plan, struct kg_problem out[SHAPES_MAX])
{
    struct meetings met = {0};
    uint64_t fixed = FIXED_SEED, drawn = seed;
    unsigned n =
        p->op == KG_OP_ATTENTION_FWD ? add_own_attentions(p, out) : add_own_products(p, out);
    for (unsigned i = 0; i < n; i++)
        new_pairs(&met, &out[i], true);
    for (unsigned i = 0; i < plan.fixed && n < SHAPES_MAX; i++)
        out[n++] = choose(&met, &fixed, p);
    if (p->op != KG_OP_ATTENTION_FWD && n + 2 <= SHAPES_MAX) {
        out[n++] = half_tiles(p);
        out[n++] = long_sums(p);
        new_pairs(&met, &out[n - 2], true);
        new_pairs(&met, &out[n - 1], true);
    }
    n += add_others(&met, &fixed, p, others, plan.fixed_other, out + n, SHAPES_MAX - n);
    for (unsigned i = 0; i < plan.drawn && n < SHAPES_MAX; i++)
        out[n++] = choose(&met, &drawn, p);
    return n + add_others(&met, &drawn, p, others, plan.drawn_other, out + n, SHAPES_MAX - n);
}

/* From both ends: those with a tail behind a tile of 16, 32 or 64, and those that are not of whole
 * vectors. */
static const int64_t head_dims[] = {72, 40, 96, 80, 128, 64, 32, 256, 192, 16, 8, 160, 36, 33};

_Static_assert(COUNT(head_dims) == SHAPES_HEAD_DIMS, "the header has their number");

#define KEYS_LEAST 16 /* with one key alone the scores do not matter */

struct kg_problem shapes_head_dim(const struct kg_problem *p, unsigned i, uint64_t seed)
{
    struct meetings met = {0};
    struct kg_problem other = *p;
    other.head_dim = head_dims[i];
    other.scale = default_scale(&other);
    struct kg_problem found = choose(&met, &seed, &other);
    for (unsigned tries = 0; tries < CANDIDATES && found.seqlen_kv < KEYS_LEAST; tries++)
        found = choose(&met, &seed, &other);
    return found;
}

struct shapes_cover shapes_cover(const struct kg_problem *p, unsigned others,
                                 const struct kg_problem *shapes, unsigned n)
{
    struct meetings met = {0};
    struct shapes_cover cover = {.of = all_pairs(p, 1 + (unsigned)__builtin_popcount(others))};
    for (unsigned i = 0; i < n; i++)
        new_pairs(&met, &shapes[i], true);
    for (unsigned i = 0; i < CLASSES_MAX; i++)
        for (unsigned j = 0; j < i; j++)
            cover.pairs += met.met[i][j];
    return cover;
}

/* ---- giants ---- */

#define OVER_GRID 65537 /* blocks that a grid's second and third dimension do not hold */

unsigned shapes_giant(const struct kg_problem *p, bool huge,
                      struct kg_problem out[SHAPES_GIANT_MAX])
{
    const struct {
        int64_t m, n, k;
    } products[] = {{OVER_GRID + 2, 3, 8},
                    {3, OVER_GRID + 6, 8},
                    {5, 9, OVER_GRID + 30},
                    {OVER_GRID + 1, OVER_GRID / 2 + 9, 8}};
    const struct {
        int64_t batch, kv_heads, group, seqlen_q, seqlen_kv;
    } attentions[] = {{OVER_GRID, 1, 1, 1, 3},
                      {129, 255, 2, 2, 5},
                      {1, 1, 2, p->seqlen_q == 1 ? 1 : 33, OVER_GRID + 32},
                      {2 * OVER_GRID, 8, 2, 17, 3}};
    unsigned n = huge ? 4 : 3;
    bool attention = p->op == KG_OP_ATTENTION_FWD;
    for (unsigned i = 0; i < n; i++) {
        out[i] = *p;
        if (attention) {
            out[i].batch = attentions[i].batch;
            out[i].kv_heads = attentions[i].kv_heads;
            out[i].heads = attentions[i].kv_heads * attentions[i].group;
            out[i].seqlen_q = p->seqlen_q == 1 && i < 3 ? 1 : attentions[i].seqlen_q;
            out[i].seqlen_kv = attentions[i].seqlen_kv;
            continue;
        }
        out[i].m = products[i].m;
        out[i].n = p->op == KG_OP_GEMV ? p->n : products[i].n;
        out[i].k = p->op == KG_OP_GEMV && i == 3 ? OVER_GRID / 2 + 9 : products[i].k;
    }
    return n;
}

/* ---- as large as the problem ---- */

/* What is added to M, N and K. A kernel that loads by TMA takes rows of whole 16 bytes only: the
 * tails of 8 are for it. */
static const struct {
    int64_t m, n, k;
} product_tails[] = {{1, 1, 1}, {1, 8, 8}, {0, 0, 1}, {-1, -1, -1}, {-1, 1, 0}, {-1, -8, -8}};

/* What is added to the lengths of queries and keys: of tiles of 64 and 128 there is half a tile. A
 * kernel that holds all keys of a head takes no more than the problem has. */
static const struct {
    int64_t queries, keys;
} sequence_tails[] = {{1, 1}, {0, -33}, {0, 33}, {-1, -1}, {33, 0}};

/* A reference works on as many queries at a time, and takes as long for fewer. */
#define QUERIES_AT_ONCE 64

static int64_t longer(int64_t size, int64_t by)
{
    return size + by < 1 ? 1 : size + by;
}

/* No more of the whole than `budget` pays for; at least one. */
static int64_t affordable(double budget, double each, int64_t whole)
{
    double n = budget / each;
    return n >= (double)whole ? whole : n < 1 ? 1 : (int64_t)n;
}

static void cut_terms(struct kg_problem *p, double flops)
{
    double products = p->op == KG_OP_LINEAR_RELU_BWD ? 2 : 1;
    double n = p->op == KG_OP_GEMV ? 1 : (double)p->n;
    int64_t k = affordable(flops, 2 * products * (double)p->m * n, p->k);
    if (k == p->k)
        return;
    k = k / SHAPES_K_LEAST * SHAPES_K_LEAST;
    k = (k ? k : SHAPES_K_LEAST) + p->k % SHAPES_K_LEAST;
    p->k = k < p->k ? k : p->k;
}

static void cut_heads(struct kg_problem *p, double flops)
{
    int64_t group = p->heads / p->kv_heads;
    int64_t queries = p->seqlen_q < QUERIES_AT_ONCE ? QUERIES_AT_ONCE : p->seqlen_q;
    double each = 4.0 * (double)(group * queries) * (double)p->seqlen_kv * (double)p->head_dim;
    p->batch = affordable(flops, each * (double)p->kv_heads, p->batch);
    p->kv_heads = affordable(flops, each * (double)p->batch, p->kv_heads);
    p->heads = p->kv_heads * group;
}

static void cut(struct kg_problem *p, double flops)
{
    if (p->op == KG_OP_ATTENTION_FWD)
        cut_heads(p, flops);
    else
        cut_terms(p, flops);
}

/* As where one query stays one, or nothing is less than 1. */
static bool has_sizes_of(const struct kg_problem *a, const struct kg_problem *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->seqlen_q == b->seqlen_q &&
           a->seqlen_kv == b->seqlen_kv;
}

unsigned shapes_of_own_size(const struct kg_problem *p, double flops,
                            struct kg_problem out[SHAPES_OWN_SIZE_MAX])
{
    struct kg_signature unused;
    bool attention = p->op == KG_OP_ATTENTION_FWD;
    unsigned n = 0;
    for (size_t i = 0; i < (attention ? COUNT(sequence_tails) : COUNT(product_tails)); i++) {
        out[n] = *p;
        if (attention) {
            if (p->seqlen_q > 1)
                out[n].seqlen_q = longer(p->seqlen_q, sequence_tails[i].queries);
            out[n].seqlen_kv = longer(p->seqlen_kv, sequence_tails[i].keys);
        } else {
            out[n].m = longer(p->m, product_tails[i].m);
            if (p->op != KG_OP_GEMV)
                out[n].n = longer(p->n, product_tails[i].n);
            out[n].k = longer(p->k, product_tails[i].k);
        }
        if (has_sizes_of(p, &out[n]) || !kg_signature_of(&out[n], &unused))
            continue;
        cut(&out[n++], flops);
    }
    return n;
}
