#include "gate/verify/verify_shapes.h"

#include <stddef.h>
#include <stdint.h>

#include "kernels/reference/signature.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The problem's own size, as far as it is not too long to be looked at closely. */
#define OWN_MAX 4096

static int64_t own(int64_t size, int64_t more)
{
    return (size < OWN_MAX ? size : OWN_MAX) + more;
}

/* Negative: the problem's own size of that dimension, plus -1 - size. */
struct product_shape {
    int64_t m, n, k;
};

static const struct product_shape product_shapes[] = {
    {1, 136, 72},  {129, 127, 65},  {127, 129, 63}, {136, 264, 72}, {61, 67, 71},
    {257, 1, 129}, {65, 136, -9},   {-2, 40, 72},   {40, -2, 40},   {255, 257, 8},
    {131, 136, 1}, {192, 136, 200}, {64, 64, 64},   {1, 1, 1},
};

/* One below, at and above the tiles that kernels have. */
static const int64_t tile_edges[] = {1,  7,  8,  15, 16,  17,  31,  32,  33,  63,
                                     64, 65, 96, 97, 127, 128, 129, 255, 256, 257};

struct attention_shape {
    int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv; /* seqlen_kv 0: the problem's own + 1 */
};

static const struct attention_shape attention_shapes[] = {
    {2, 4, 2, 63, 65},   {1, 2, 2, 113, 203}, {1, 3, 1, 203, 113}, {2, 2, 1, 128, 129},
    {1, 4, 4, 129, 127}, {1, 8, 2, 1, 131},   {1, 1, 1, 1, 1},     {1, 6, 2, 64, 256},
    {3, 2, 2, 3, 7},     {1, 2, 1, 65, 64},   {1, 1, 1, 257, 255}, {1, 4, 1, 1, 0},
    {1, 2, 2, 131, 1},
};

static const int64_t sequence_edges[] = {1,  2,  3,   15,  16,  17,  31,  33, 63,
                                         64, 65, 127, 128, 129, 191, 193, 257};

static int64_t size_or_own(int64_t size, int64_t of_problem)
{
    return size < 0 ? own(of_problem, -1 - size) : size;
}

static unsigned add_products(const struct kg_problem *p, struct kg_problem *out)
{
    unsigned n = 0;
    for (size_t i = 0; i < COUNT(product_shapes); i++) {
        out[n] = *p;
        out[n].m = size_or_own(product_shapes[i].m, p->m);
        out[n].n = p->op == KG_OP_GEMV ? p->n : size_or_own(product_shapes[i].n, p->n);
        out[n].k = size_or_own(product_shapes[i].k, p->k);
        n++;
    }
    return n;
}

/* Three walks through the same list, out of step, so that all pairs of neighbours meet. */
static unsigned add_tile_edges(const struct kg_problem *p, struct kg_problem *out, unsigned n)
{
    for (size_t walk = 0; walk < 3; walk++)
        for (size_t i = 0; i < COUNT(tile_edges) && n < SHAPES_MAX; i++) {
            out[n] = *p;
            out[n].m = tile_edges[i];
            out[n].n = p->op == KG_OP_GEMV ? p->n : tile_edges[(i * 3 + walk) % COUNT(tile_edges)];
            out[n].k = tile_edges[(i * 7 + 2 * walk + 1) % COUNT(tile_edges)];
            n++;
        }
    return n;
}

static unsigned add_attentions(const struct kg_problem *p, struct kg_problem *out)
{
    unsigned n = 0;
    for (size_t i = 0; i < COUNT(attention_shapes); i++) {
        const struct attention_shape *s = &attention_shapes[i];
        out[n] = *p;
        out[n].batch = s->batch;
        out[n].heads = s->heads;
        out[n].kv_heads = s->kv_heads;
        out[n].seqlen_q = s->seqlen_q;
        out[n].seqlen_kv = s->seqlen_kv ? s->seqlen_kv : own(p->seqlen_kv, 1);
        n++;
    }
    return n;
}

static unsigned add_sequence_edges(const struct kg_problem *p, struct kg_problem *out, unsigned n)
{
    for (size_t walk = 0; walk < 3; walk++)
        for (size_t i = 0; i < COUNT(sequence_edges) && n < SHAPES_MAX; i++) {
            out[n] = *p;
            out[n].batch = 1 + (int64_t)walk % 2;
            out[n].kv_heads = 1 + (int64_t)(i % 2);
            out[n].heads = out[n].kv_heads * (1 + (int64_t)(i % 4));
            out[n].seqlen_q = sequence_edges[i];
            out[n].seqlen_kv = sequence_edges[(i * 5 + walk) % COUNT(sequence_edges)];
            n++;
        }
    return n;
}

/* One query a head is a kernel of its own (decoding); its neighbours stay so, but for the first. */
static void keep_decoding(const struct kg_problem *p, struct kg_problem *out, unsigned n)
{
    if (p->op != KG_OP_ATTENTION_FWD || p->seqlen_q != 1)
        return;
    for (unsigned i = 0; i < n; i += 2)
        out[i].seqlen_q = 1;
}

unsigned shapes_around(const struct kg_problem *p, bool all, struct kg_problem out[SHAPES_MAX])
{
    bool attention = p->op == KG_OP_ATTENTION_FWD;
    unsigned n = attention ? add_attentions(p, out) : add_products(p, out);
    keep_decoding(p, out, n);
    if (all)
        n = attention ? add_sequence_edges(p, out, n) : add_tile_edges(p, out, n);
    return n;
}

/* ---- as large as the problem ---- */

/* What is added to M, N and K. A kernel that loads by TMA takes rows of whole 16 bytes only: the
 * tails of 8 are for it. */
static const struct product_shape product_tails[] = {{1, 1, 1},    {1, 8, 8},  {0, 0, 1},
                                                     {-1, -1, -1}, {-1, 1, 0}, {-1, -8, -8}};

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
