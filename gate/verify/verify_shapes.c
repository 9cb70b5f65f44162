/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_shapes.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops/pattern.h"
#include "gate/cases/problem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- what fits ---- */

/* Bytes of a problem of such an op whose image is looked at, and of another one: several axes of
 * one size make it large before any length is. */
#define IMAGE_BYTES_MAX 0x1p23
#define LARGE_BYTES_MAX 0x1p26

/* Halves the longest size that can be shorter; false: none can. */
static bool shorten(struct kg_problem *p)
{
    const struct op *op = op_of(p);
    struct kg_problem shorter = *p;
    int64_t longest = 0;
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const int64_t size = op_size(p, &op->sizes[i]);
        struct kg_problem other = *p;
        op_set_size(&other, &op->sizes[i], size / 2);
        if (size <= longest || op->sizes[i].kind == OP_GIVEN || !op_fit(op, &other) ||
            problem_bytes(&other) >= problem_bytes(p))
            continue;
        longest = size;
        shorter = other;
    }
    *p = shorter;
    return longest > 0;
}

/* Takes the nearest sizes that the op allows, and of one whose reference takes long shorter ones
 * while it has more than `most` bytes, and than twice its least; false: there are none. */
static bool fit(const struct kg_problem *own, struct kg_problem *p, double most)
{
    const struct op *op = op_of(p);
    if (!op_fit(op, p))
        return false;
    if (!op->reference_apart)
        return true;
    struct kg_problem least = *p; /* the size that is given may be large */
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind != OP_GIVEN)
            op_set_size(&least, &op->sizes[i], 1);
    if (op_fit(op, &least))
        most = fmax(most, 2 * problem_bytes(&least));
    while (problem_bytes(p) > most)
        if (!shorten(p))
            return problem_bytes(p) <= problem_bytes(own);
    return true;
}

static bool fit_large(const struct kg_problem *own, struct kg_problem *p)
{
    return fit(own, p, fmax(LARGE_BYTES_MAX, 2 * problem_bytes(own)));
}

/* ---- candidates ---- */

/* Of a tensor: references and launches are on the host as often as not. */
#define ELEMENTS_MAX 32768
#define CANDIDATES 32
#define FIXED_SEED 0x6669786564u

/* The axes of a kind, as places among the op's sizes; returns their number. */
static unsigned sizes_of_kind(const struct op *op, enum op_size_kind kind,
                              const struct op_size *out[OP_SIZES_MAX])
{
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind == kind)
            out[n++] = &op->sizes[i];
    return n;
}

/* Few repetitions, most often one; and lengths in any order: the first is the freest, and leaves
 * room for the others. */
static void draw_sizes(uint64_t *state, struct kg_problem *p)
{
    static const int64_t counts[] = {1, 1, 1, 1, 2, 3, 5};
    const struct op_size *sizes[OP_SIZES_MAX];
    unsigned n = sizes_of_kind(op_of(p), OP_COUNT, sizes);
    double repeats = 1;
    for (unsigned i = 0; i < n; i++) {
        int64_t count = draw_one(state, counts, COUNT(counts));
        op_set_size(p, sizes[i], count);
        repeats *= (double)count;
    }
    n = sizes_of_kind(op_of(p), OP_LENGTH, sizes);
    const unsigned first = (unsigned)(seed_next(state) % n);
    double products = draw_products(state) / repeats, elements = ELEMENTS_MAX / repeats;
    for (unsigned i = 0; i < n; i++) {
        double most = i == 0 ? products / 64 : i + 1 < n ? 2 * sqrt(products) : products;
        int64_t size = draw_length(state, fmin(most, elements));
        op_set_size(p, sizes[(first + i) % n], size);
        products /= (double)size;
        elements = fmin(elements, ELEMENTS_MAX / repeats / (double)size);
    }
}

static struct kg_problem draw(uint64_t *state, const struct kg_problem *own)
{
    struct kg_problem p = *own;
    if (op_of(own)->draw) {
        op_of(own)->draw(state, own, &p);
    } else {
        const struct op_param *param = op_of(own)->param;
        draw_sizes(state, &p);
        /* Another value in half of the candidates, so that a kernel that knows one alone shows. All
         * orders of magnitude of a positive one are as likely. */
        if (param && seed_next(state) % 2 == 0) {
            const double share = pattern_uniform(seed_next(state), 0), least = param->least;
            op_set_param(&p, param,
                         least > 0 ? least * pow(param->most / least, share)
                                   : least + share * (param->most - least));
        }
    }
    return fit(own, &p, IMAGE_BYTES_MAX) ? p : *own;
}

/* The candidate that brings the most new pairs together. */
static struct kg_problem choose(struct meetings *met, uint64_t *state, const struct kg_problem *own)
{
    struct kg_problem best = draw(state, own);
    unsigned most = classes_new_pairs(met, &best, false);
    for (unsigned i = 1; i < CANDIDATES; i++) {
        struct kg_problem other = draw(state, own);
        unsigned n = classes_new_pairs(met, &other, false);
        if (n > most) {
            most = n;
            best = other;
        }
    }
    classes_new_pairs(met, &best, true);
    return best;
}

/* ---- lists of shapes ---- */

/* As far as it is not too long to be looked at closely. */
#define OWN_MAX 4096

#define OVER_GRID 65537 /* blocks that a grid's second and third dimension do not hold */
/* Longer than are drawn, with a tail: where a kernel may split sums. */
#define LONG_SUM (8192 + 513)

/*
 * For ops without lists of their own: columns are for the op's lengths in their order, the last one
 * for its last length. Counts are few.
 */
#define COLUMNS 3
#define ROWS 23
struct list {
    int64_t rows[ROWS][COLUMNS];
    unsigned n;
};

/* Sums of one stage, of two, three and five tiles of 64 and 128, of three and four of 256; whole
 * tiles of all; each length a multiple of every power of two up to 512, and past 4096; tails of all
 * below 8. Every third one is looked at in dense tensors alone. */
static const struct list closest = {{{OP_OWN + 1, 40, 72},
                                     {40, OP_OWN + 1, 40},
                                     {65, 136, OP_OWN + 8},
                                     {1, 1, 1},
                                     {64, 64, 64},
                                     {512, 40, 16},
                                     {33, 512, 32},
                                     {128, 128, 64},
                                     {40, 72, 128},
                                     {129, 33, 192},
                                     {17, 128, 256},
                                     {128, 40, 384},
                                     {9, 24, 512},
                                     {128, 256, 128},
                                     {4099, 8, 48},
                                     {9, 4104, 16},
                                     {66, 67, 12},
                                     {24, 24, 160},
                                     {33, 16, 320},
                                     {40, 24, 640},
                                     {24, 40, 768},
                                     {17, 24, 1024},
                                     {9, 1, 7}},
                                    23};

/* The last one has over 2^31 elements, and as many columns in the other lengths of each. */
static const struct list giant = {{{OVER_GRID + 2, 3, 8},
                                   {3, OVER_GRID + 6, 8},
                                   {5, 9, OVER_GRID + 30},
                                   {OVER_GRID + 1, OVER_GRID / 2 + 9, 8}},
                                  4};

/* What is added to the problem's own. A kernel that loads by TMA takes rows of whole 16 bytes only:
 * the tails of 8 are for it. */
static const struct list tails = {
    {{1, 1, 1}, {1, 8, 8}, {0, 0, 1}, {-1, -1, -1}, {-1, 1, 0}, {-1, -8, -8}}, 6};

/* A shape as one of the op's own would be. */
static struct op_shape shape_of(const struct op *op, const struct list *list, unsigned row)
{
    const struct op_size *lengths[OP_SIZES_MAX];
    const unsigned n = sizes_of_kind(op, OP_LENGTH, lengths);
    struct op_shape shape = {{0}, OP_SCALE_OWN};
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_COUNT && list != &tails)
            shape.size[i] = list == &giant ? 1 : op->sizes[i].few;
    for (unsigned i = 0; i < n; i++) {
        /* Of two lengths the huge ones are both. */
        bool huge = list == &giant && row == 3 && i < 2;
        const unsigned column = i + 1 == n ? COLUMNS - 1 : i % (COLUMNS - 1);
        shape.size[lengths[i] - op->sizes] = list->rows[row][huge ? i : column];
    }
    return shape;
}

/* How many an op has, of its own or from a list; one of them. */
static unsigned count_of(const struct op_shapes *own, const struct list *list)
{
    return own->n ? own->n : list->n;
}

static struct op_shape shape_at(const struct op *op, const struct op_shapes *own,
                                const struct list *list, unsigned row)
{
    return own->n ? own->shapes[row] : shape_of(op, list, row);
}

static void set_shape(struct kg_problem *p, const struct op_shape *shape)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_sizes; i++) {
        int64_t size = shape->size[i], own = op_size(p, &op->sizes[i]);
        if (size > OP_OWN / 2)
            size += (own < OWN_MAX ? own : OWN_MAX) - OP_OWN;
        if (size)
            op_set_size(p, &op->sizes[i], size);
    }
    if (op->param && shape->scale != OP_SCALE_OWN)
        op_set_param(p, op->param, (double)shape->scale - OP_SCALE_0);
}

/* One value for all lengths. */
static struct kg_problem with_lengths(const struct kg_problem *p, int64_t value)
{
    const struct op *op = op_of(p);
    struct kg_problem other = *p;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_LENGTH)
            op_set_size(&other, &op->sizes[i], value);
        else if (op->sizes[i].kind == OP_COUNT)
            op_set_size(&other, &op->sizes[i], op->sizes[i].few);
    return fit(p, &other, IMAGE_BYTES_MAX) ? other : *p;
}

/* Half a tile behind a whole one in each size, which the fixed ones have of one alone. */
#define HALF_TILES 96

/* In each of the other dtypes in turn; returns their number. */
static unsigned add_others(struct meetings *met, uint64_t *state, const struct kg_problem *p,
                           unsigned others, unsigned each, struct kg_problem *out, unsigned most)
{
    unsigned n = 0;
    for (unsigned turn = 0; turn < each; turn++)
        for (unsigned i = 0; i < problem_dtypes(p) && n < most; i++) {
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
    const struct op *op = op_of(p);
    unsigned n = 0;
    for (unsigned i = 0; i < count_of(&op->closest, &closest); i++) {
        const struct op_shape shape = shape_at(op, &op->closest, &closest, i);
        out[n] = *p;
        set_shape(&out[n], &shape);
        if (fit(p, &out[n], IMAGE_BYTES_MAX))
            classes_new_pairs(&met, &out[n++], true);
    }
    for (unsigned i = 0; i < plan.fixed && n < SHAPES_MAX; i++)
        out[n++] = choose(&met, &fixed, p);
    if (!op->closest.n && n + 2 <= SHAPES_MAX) {
        out[n++] = with_lengths(p, HALF_TILES);
        /* Sums as long as one of its outputs has, all else short. */
        struct kg_problem longer = with_lengths(p, 5);
        const char *sum = op->tensors[op->n_tensors - 1].whole;
        for (unsigned i = 0; i < op->n_sizes; i++)
            if (op->sizes[i].kind == OP_LENGTH)
                op_set_size(&longer, &op->sizes[i],
                            strchr(sum, op->sizes[i].axis) ? LONG_SUM : 3 + 2 * (i & 1));
        out[n++] = fit(p, &longer, IMAGE_BYTES_MAX) ? longer : *p;
        classes_new_pairs(&met, &out[n - 2], true);
        classes_new_pairs(&met, &out[n - 1], true);
    }
    n += add_others(&met, &fixed, p, others, plan.fixed_other, out + n, SHAPES_MAX - n);
    for (unsigned i = 0; i < plan.drawn && n < SHAPES_MAX; i++)
        out[n++] = choose(&met, &drawn, p);
    return n + add_others(&met, &drawn, p, others, plan.drawn_other, out + n, SHAPES_MAX - n);
}

static bool has_tails(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_LENGTH &&
            (op_size(p, &op->sizes[i]) < 8 || op_size(p, &op->sizes[i]) % 8 == 0))
            return false;
    return true;
}

const struct kg_problem *shapes_third(const struct kg_problem *shapes, unsigned n_shapes,
                                      unsigned n)
{
    unsigned tailed = 0, left = n / 2;
    for (unsigned i = 0; i < n_shapes; i++)
        tailed += has_tails(&shapes[i]);
    if (n % 2 || !tailed)
        return &shapes[3 * n];
    left %= tailed;
    for (unsigned i = 0;; i++)
        if (has_tails(&shapes[i]) && left-- == 0)
            return &shapes[i];
}

/* ---- given sizes ---- */

static const struct op_size *given_of(const struct kg_problem *p)
{
    const struct op_size *given[OP_SIZES_MAX];
    return sizes_of_kind(op_of(p), OP_GIVEN, given) ? given[0] : NULL;
}

unsigned shapes_values(const struct kg_problem *p)
{
    const struct op_size *given = given_of(p);
    unsigned n = 0;
    while (given && given->values[n] && n < SHAPES_VALUES_MAX)
        n++;
    return n;
}

bool shapes_have_values_of(const struct kg_problem *a, const struct kg_problem *b)
{
    const struct op_size *given = given_of(a);
    return !given || op_size(a, given) == op_size(b, given);
}

#define LAST_LENGTH_LEAST 16 /* with one key alone the scores do not matter */

struct kg_problem shapes_value(const struct kg_problem *p, unsigned i, uint64_t seed)
{
    const struct op *op = op_of(p);
    const struct op_size *lengths[OP_SIZES_MAX];
    const unsigned n = sizes_of_kind(op, OP_LENGTH, lengths);
    struct meetings met = {0};
    struct kg_problem other = *p;
    op_set_size(&other, given_of(p), given_of(p)->values[i]);
    if (op->param)
        op_set_param(&other, op->param, op->param->usual(&other));
    struct kg_problem found = choose(&met, &seed, &other);
    for (unsigned tries = 0;
         tries < CANDIDATES && op_size(&found, lengths[n - 1]) < LAST_LENGTH_LEAST; tries++)
        found = choose(&met, &seed, &other);
    return found;
}

struct shapes_cover shapes_cover(const struct kg_problem *p, unsigned others,
                                 const struct kg_problem *shapes, unsigned n)
{
    struct meetings met = {0};
    struct shapes_cover cover = {
        .of = classes_all_pairs(p, 1 + (unsigned)__builtin_popcount(others))};
    for (unsigned i = 0; i < n; i++)
        classes_new_pairs(&met, &shapes[i], true);
    for (unsigned i = 0; i < CLASSES_MAX; i++)
        for (unsigned j = 0; j < i; j++)
            cover.pairs += met.met[i][j];
    return cover;
}

/* ---- giants ---- */

/* What is 1 and means another kind of work stays so, as the query of a decoding step. */
static void keep_ones(const struct kg_problem *p, struct kg_problem *other)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].one_stays && op_size(p, &op->sizes[i]) == 1)
            op_set_size(other, &op->sizes[i], 1);
}

unsigned shapes_giant(const struct kg_problem *p, bool huge,
                      struct kg_problem out[SHAPES_GIANT_MAX])
{
    const struct op *op = op_of(p);
    const unsigned rows = count_of(&op->giant, &giant) - !huge; /* the last one is huge */
    unsigned n = 0;
    for (unsigned i = 0; i < rows; i++) {
        const struct op_shape shape = shape_at(op, &op->giant, &giant, i);
        out[n] = *p;
        set_shape(&out[n], &shape);
        if (!huge || i + 1 < rows)
            keep_ones(p, &out[n]);
        if (!op_fit(op, &out[n]))
            continue;
        const struct kg_problem whole = out[n]; /* a shorter one is no giant */
        n += fit_large(p, &out[n]) && !memcmp(&whole, &out[n], sizeof whole);
    }
    return n;
}

/* ---- as large as the problem ---- */

static double cost_of(const struct kg_problem *p)
{
    return op_of(p)->cost ? op_of(p)->cost(p) : op_of(p)->flops(p);
}

/* What the reference would take for all of `whole`, and so how many of it `flops` pay for; at least
 * one. */
static int64_t affordable(const struct kg_problem *p, double flops, int64_t whole)
{
    const double n = flops / (cost_of(p) / (double)whole);
    return n >= (double)whole ? whole : n < 1 ? 1 : (int64_t)n;
}

/* Leaves out repetitions, with the members of their groups, where that saves something, and then
 * terms of sums. */
static void cut(struct kg_problem *p, double flops)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *count = &op->sizes[i];
        const int64_t whole = op_size(p, count);
        if (count->kind != OP_COUNT || count->multiple_of)
            continue;
        const int64_t left = affordable(p, flops, whole);
        struct kg_problem fewer = *p;
        for (unsigned k = 0; k < op->n_sizes; k++)
            if (op->sizes[k].multiple_of == count->axis)
                op_set_size(&fewer, &op->sizes[k], op_size(p, &op->sizes[k]) / whole * left);
        op_set_size(&fewer, count, left);
        if (cost_of(&fewer) < cost_of(p))
            *p = fewer;
    }
    if (!op->cut)
        return;
    const struct op_size *sum = op_axis(op, op->cut);
    const int64_t whole = op_size(p, sum);
    int64_t k = affordable(p, flops, whole);
    if (k == whole)
        return;
    k = k / SHAPES_K_LEAST * SHAPES_K_LEAST;
    k = (k ? k : SHAPES_K_LEAST) + whole % SHAPES_K_LEAST;
    op_set_size(p, sum, k < whole ? k : whole);
}

unsigned shapes_of_own_size(const struct kg_problem *p, double flops,
                            struct kg_problem out[SHAPES_OWN_SIZE_MAX])
{
    const struct op *op = op_of(p);
    unsigned n = 0;
    for (unsigned row = 0; row < count_of(&op->tails, &tails); row++) {
        const struct op_shape tail = shape_at(op, &op->tails, &tails, row);
        out[n] = *p;
        for (unsigned i = 0; i < op->n_sizes; i++) {
            int64_t size = op_size(p, &op->sizes[i]) + tail.size[i];
            op_set_size(&out[n], &op->sizes[i], size < 1 ? 1 : size);
        }
        keep_ones(p, &out[n]);
        /* As where one query stays one, or nothing is less than 1. */
        if (!fit_large(p, &out[n]) || !memcmp(p, &out[n], sizeof *p) || !op_is_problem(&out[n]))
            continue;
        cut(&out[n], flops);
        n += op_fit(op, &out[n]);
    }
    return n;
}

/* ---- wide ---- */

#define WAVE_TILE 128
#define WAVE_STEPS 5 /* tiles of 64 in the last length: odd, and past a ring of four stages */
#define WAVE_STEPS_OF_GROUPS 3

/* At least so many tiles, of heads or of outputs, of which the last ones are not whole; or `whole`
 * ones, and exactly as many. */
static bool make_wave(const struct kg_problem *p, int64_t tiles, bool whole, struct kg_problem *out)
{
    const struct op *op = op_of(p);
    const struct op_size *lengths[OP_SIZES_MAX];
    const unsigned n_lengths = sizes_of_kind(op, OP_LENGTH, lengths);
    int64_t rows = n_lengths > 2 ? (int64_t)ceil(sqrt((double)tiles)) : tiles;
    while (whole && tiles % rows)
        rows++;
    bool grouped = false;
    *out = *p;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].kind == OP_COUNT) {
            grouped |= op->sizes[i].multiple_of != 0;
            op_set_size(out, &op->sizes[i], op->sizes[i].multiple_of ? tiles : 1);
        }
    for (unsigned i = 0; i + 1 < n_lengths; i++) {
        const int64_t side = whole && i ? tiles / rows : rows;
        op_set_size(out, lengths[i],
                    grouped || whole ? WAVE_TILE * (grouped ? 1 : side)
                                     : WAVE_TILE * (side - 1) + 8);
    }
    op_set_size(out, lengths[n_lengths - 1], 64 * (grouped ? WAVE_STEPS_OF_GROUPS : WAVE_STEPS));
    return fit_large(p, out);
}

unsigned shapes_wide(const struct kg_problem *p, int64_t processors, bool all,
                     struct kg_problem out[SHAPES_WIDE_MAX])
{
    const struct op *op = op_of(p);
    unsigned n = make_wave(p, processors * (all ? 5 : 3) / 2, false, &out[0]);
    if (all)
        n += make_wave(p, processors, true, &out[n]);
    for (unsigned i = 0; i < op->wide.n && (all || i + 1 < op->wide.n); i++) {
        out[n] = *p;
        set_shape(&out[n++], &op->wide.shapes[i]);
    }
    return n;
}
