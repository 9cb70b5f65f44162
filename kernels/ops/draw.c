/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/draw.h"

#include <math.h>

#include "kernels/ops/rows.h"
#include "kernels/ops/seed.h"
#include "kernels/ops/storage.h"

#define NORMALS 65536 /* a power of two */

static double normals[NORMALS];

double pattern_normal(uint64_t seed, int64_t index)
{
    for (int64_t i = NORMALS; normals[0] == 0 && i-- > 0;) /* Box and Muller */
        normals[i] = sqrt(-2 * log(pattern_uniform(0, 2 * i))) *
                     cos(2 * M_PI * pattern_uniform(0, 2 * i + 1));
    return normals[seed_at(seed, (uint64_t)index) % NORMALS];
}

int64_t pattern_elements(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

int64_t pattern_offset(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return at;
}

void pattern_put(const struct kg_tensor *t, int64_t flat, double value)
{
    storage_put(t->data, t->dtype, pattern_offset(t, flat), value);
}

struct drawn_rows {
    pattern_fn *value;
    const struct drawing *d;
    const struct kg_tensor *t;
    int64_t columns;
};

/* Row by row, whose elements are neighbours. */
static void draw_rows(void *context, int share, int64_t first, int64_t end)
{
    const struct drawn_rows *r = context;
    (void)share;
    for (int64_t row = first; row < end; row++) {
        const int64_t flat = row * r->columns, at = pattern_offset(r->t, flat);
        for (int64_t c = 0; c < r->columns; c++)
            storage_put(r->t->data, r->t->dtype, at + c, r->value(r->d, flat + c));
    }
}

void pattern_draw(pattern_fn *value, const struct drawing *d, const struct kg_tensor *t)
{
    struct drawn_rows rows = {value, d, t, t->shape[t->rank - 1]};
    /* Two numbers of 4 bits share a byte, and rows of them may. */
    const int threads = kg_dtype_bits(t->dtype) < 8 ? 1 : rows_threads(d->n);
    (void)pattern_normal(0, 0); /* the table, before threads use it */
    rows_for_each(d->n / rows.columns, threads, draw_rows, &rows);
}

double pattern_get(const struct kg_tensor *t, int64_t flat)
{
    return storage_get(t->data, t->dtype, pattern_offset(t, flat));
}

int64_t pattern_large_element(const struct kg_tensor *t, uint64_t seed)
{
    int64_t n = pattern_elements(t), found = 0;
    for (int64_t i = 0; i < PATTERN_TRIES; i++) {
        int64_t at = (int64_t)(seed_at(seed, (uint64_t)i) % (uint64_t)n);
        if (i == 0 || fabs(pattern_get(t, at)) > fabs(pattern_get(t, found)))
            found = at;
    }
    return found;
}

/* ---- shapes ---- */

/* A shape's reference and launches are on the host as often as not: products, most often much
 * fewer. */
#define PRODUCTS_MAX 0x1p20
#define LENGTH_MAX 4096
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int64_t draw_one(uint64_t *state, const int64_t *of, size_t n)
{
    return of[seed_next(state) % n];
}

double draw_products(uint64_t *state)
{
    return PRODUCTS_MAX / exp2((double)(seed_next(state) % 5));
}

int64_t draw_length(uint64_t *state, double most)
{
    static const int64_t tiles[] = {8, 16, 32, 64, 128, 256, 512},
                         counts[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9};
    if (most > LENGTH_MAX)
        most = LENGTH_MAX;
    for (unsigned tries = 0; tries < 8; tries++) {
        int64_t tile = draw_one(state, tiles, COUNT(tiles));
        const int64_t rests[] = {0, 1, tile - 1, tile / 2,
                                 (int64_t)(seed_next(state) % 512) % tile};
        int64_t n =
            tile * draw_one(state, counts, COUNT(counts)) + draw_one(state, rests, COUNT(rests));
        if (n >= 1 && (double)n <= most)
            return n;
    }
    return 1 + (int64_t)(seed_next(state) % (uint64_t)(most < 1 ? 1 : most));
}
