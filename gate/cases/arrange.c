/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c: inputs whose elements have to fit each other: offsets, tables, permutations, masks.
 *
 * A row is drawn in one of several ways, so that what seldom happens by chance comes often: blocks
 * in order, rows that are masked as a whole; for offsets see kernels/ops/offsets.h. The first way
 * is the usual one.
 */
#include "gate/cases/op_file.h"
#include "kernels/ops/offsets.h"
#include "kernels/ops/pattern.h"

struct row {
    const struct kg_tensor *t;
    int64_t number, first, n; /* elements by their number in row-major order */
    int64_t end;
    bool varied;
    uint64_t seed, all; /* of the row; of the tensor */
};

enum { WAY, ONE, START, STEP, DRAWS = 5 }; /* what is drawn of a row, before its elements */

static uint64_t random_of(const struct row *r, unsigned what, uint64_t n)
{
    return seed_at(r->seed, what) % n;
}

static unsigned way_of(const struct row *r, unsigned ways)
{
    return r->varied ? (unsigned)random_of(r, WAY, ways) : 0;
}

static void put(const struct row *r, int64_t at, int64_t value)
{
    pattern_put(r->t, r->first + at, (double)value);
}

static int64_t get(const struct row *r, int64_t at)
{
    return (int64_t)pattern_get(r->t, r->first + at);
}

/* ---- different numbers ---- */

int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One by which to go from number to number, below `end`, and come to all. */
static int64_t stride_over(int64_t end, uint64_t seed)
{
    int64_t step = 1 + (int64_t)(seed % (uint64_t)end);
    while (common_divisor(step, end) != 1)
        step = step % end + 1;
    return step;
}

static void shuffle(const struct row *r)
{
    for (int64_t i = r->n - 1; i > 0; i--) {
        const int64_t other = (int64_t)(seed_at(r->seed, DRAWS + (uint64_t)i) % (uint64_t)(i + 1));
        const int64_t value = get(r, i);
        put(r, i, get(r, other));
        put(r, other, value);
    }
}

/* Usually no row has a number of another one, if there are enough. */
static void arrange_table(const struct row *r)
{
    enum { ANY_ORDER, AS_BEFORE = 3, RISING, FALLING, NEXT_TO_EACH_OTHER, TABLE_WAYS };
    const unsigned way = way_of(r, TABLE_WAYS);
    int64_t step = 1, start = 0, from = 0;
    if (way < AS_BEFORE) {
        step = stride_over(r->end, seed_at(r->all, STEP));
        start = (int64_t)(seed_at(r->all, START) % (uint64_t)r->end);
        from = r->number % r->end * r->n % r->end;
    } else if (way == FALLING) {
        step = start = r->end - 1;
    } else if (way == NEXT_TO_EACH_OTHER) {
        start = (int64_t)random_of(r, START, (uint64_t)r->end);
    }
    for (int64_t i = 0; i < r->n; i++)
        put(r, i,
            way == AS_BEFORE && r->number ? get(r, i - r->n)
                                          : (start + (from + i) % r->end * step) % r->end);
    if (way < AS_BEFORE)
        shuffle(r);
}

/* ---- masks ---- */

static void arrange_mask(const struct row *r)
{
    enum { HALF, NONE, ALL, FEW, UP_TO, MASK_WAYS };
    const uint64_t of_all = seed_at(r->all, WAY);
    const unsigned way =
        r->varied && of_all % 2 ? (unsigned)(of_all / 2 % MASK_WAYS) : way_of(r, MASK_WAYS);
    const int64_t length = (int64_t)random_of(r, ONE, (uint64_t)r->n + 1);
    for (int64_t i = 0; i < r->n; i++) {
        const uint64_t random = seed_at(r->seed, DRAWS + (uint64_t)i);
        put(r, i,
            way == UP_TO  ? i < length
            : way == FEW  ? random % 16 == 0
            : way == HALF ? random % 2 == 0
                          : way == ALL);
    }
}

/* ---- all ---- */

void arrange_fill(enum own_fill fill, const struct kg_tensor *t, int64_t end, bool varied,
                  uint64_t seed)
{
    struct row r = {.t = t, .n = t->shape[t->rank - 1], .end = end, .varied = varied, .all = seed};
    for (const int64_t all = pattern_elements(t); r.first < all; r.first += r.n, r.number++) {
        r.seed = seed_at(seed, DRAWS + (uint64_t)r.number);
        if (fill == FILL_OFFSETS)
            offsets_draw(t, r.first, r.n, end, varied, r.seed);
        else if (fill == FILL_MASK)
            arrange_mask(&r);
        else
            arrange_table(&r);
    }
}

bool arrange_change(enum own_fill fill, const struct kg_tensor *t, int64_t end, uint64_t seed)
{
    struct row r = {.t = t, .n = t->shape[t->rank - 1], .end = end, .seed = seed};
    r.first = (int64_t)random_of(&r, WAY, (uint64_t)(pattern_elements(t) / r.n)) * r.n;
    const int64_t at = (int64_t)random_of(&r, ONE, (uint64_t)r.n), next = (at + 1) % r.n;
    const int64_t value = get(&r, at), other = get(&r, next);
    if (fill == FILL_OFFSETS)
        return offsets_change(t, r.first, r.n, seed);
    if (fill == FILL_MASK) {
        put(&r, at, !value);
    } else if (r.n > 1) {
        put(&r, at, other);
        put(&r, next, value);
    } else if (fill == FILL_TABLE && end > 1) {
        put(&r, at, (value + 1) % end);
    } else {
        return false;
    }
    return true;
}
