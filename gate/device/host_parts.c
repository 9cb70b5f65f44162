/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/device/parts.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

/* What is found, and the first and the last row and column with a bad element. */
struct found {
    struct parts parts;
    int64_t rows[2], columns[2];
};

/* A comparison. Threads share its bands of DEVICE_TILE rows. */
struct walk {
    const struct kg_tensor *out;
    const double *reference;
    const struct device_part_rule *rule;
    const struct storage *stored;
    const struct dtype *counted; /* of 16 bits, whose bias is counted; NULL: of another one */
    double least;                /* its smallest normal number */
    int64_t rows, columns, n_tiles;
    struct found *found; /* in each band */
};

static void note_place(int64_t places[2], int64_t place)
{
    if (places[0] < 0 || place < places[0])
        places[0] = place;
    if (place > places[1])
        places[1] = place;
}

/* The reference as the output's dtype has it. */
static double rounded(const struct walk *w, double reference)
{
    unsigned char bytes[sizeof(float)];
    storage_put(bytes, w->out->dtype, 0, reference);
    return storage_get(bytes, w->out->dtype, 0);
}

/* A unit of the last place; 0: of no normal number, or one that is not counted. */
static double unit_of(const struct walk *w, double reference)
{
    if (!w->counted || !(fabs(reference) >= w->least))
        return 0;
    uint64_t bits;
    memcpy(&bits, &reference, sizeof bits);
    bits = ((bits >> 52 & 0x7ff) - w->counted->mantissa) << 52; /* the exponent alone */
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}

static struct part_sum measure(const struct walk *w, struct found *f, int64_t at)
{
    const double value = storage_get(w->out->data, w->out->dtype, at);
    const double reference = w->reference[at];
    const int64_t bad = f->parts.bad;
    struct part_element e = {at, value, reference, reference, value};
    struct part_sum sum;
    /* Rounding takes its time, and the rest asks whether the result is finite. */
    if (w->rule->exact || !(fabs(reference) < w->stored->most))
        e.expected = rounded(w, reference);
    if (kg_dtype_bits(w->out->dtype) == 8 && !parts_is_exact(w->rule, e.expected))
        e.nearest = storage_nearest(w->out->dtype, value, reference);
    if (parts_measure(w->rule, &f->parts, &e, &sum)) {
        /* From the number that is nearest to the reference: what rounding itself takes off has a
         * sign where the results of a problem share a factor. No rint(): a kernel may have changed
         * the rounding mode. */
        double unit = unit_of(w, reference);
        double units = unit > 0 ? e.nearest / unit - roundeven(reference / unit) : 0;
        if (unit > 0)
            parts_note_bias(&f->parts, reference < 0 ? -units : units);
    }
    if (f->parts.bad > bad) {
        note_place(f->rows, at / w->columns);
        note_place(f->columns, at % w->columns);
    }
    return sum;
}

static void walk_bands(void *context, int, int64_t first, int64_t last)
{
    const struct walk *w = context;
    struct part_sum *tiles = xcalloc((size_t)w->n_tiles, sizeof *tiles);
    for (int64_t band = first; band < last; band++) {
        const int64_t end = parts_first(w->rows, (band + 1) * DEVICE_TILE);
        struct found *f = &w->found[band];
        *f = (struct found){parts_nothing(), {-1, -1}, {-1, -1}};
        memset(tiles, 0, (size_t)w->n_tiles * sizeof *tiles);
        for (int64_t row = band * DEVICE_TILE; row < end; row++) {
            struct part_sum sum = {0};
            for (int64_t column = 0; column < w->columns; column++) {
                struct part_sum more = measure(w, f, row * w->columns + column);
                parts_add(&sum, more);
                parts_add(&tiles[column / DEVICE_TILE], more);
            }
            parts_judge(w->rule, &f->parts.row, sum, w->columns, row);
            parts_add(&f->parts.all, sum);
        }
        for (int64_t t = 0; t < w->n_tiles; t++) {
            const int64_t width = parts_first(w->columns - t * DEVICE_TILE, DEVICE_TILE);
            parts_judge(w->rule, &f->parts.tile, tiles[t], (end - band * DEVICE_TILE) * width,
                        band * w->n_tiles + t);
        }
    }
    free(tiles);
}

/* What is told of an element that is not what it must be. */
static struct device_element element_at(const struct walk *w, int64_t at)
{
    if (at == PARTS_NONE)
        return (struct device_element){.at = -1};
    const double reference = w->reference[at], expected = rounded(w, reference);
    return (struct device_element){at, storage_get(w->out->data, w->out->dtype, at),
                                   parts_is_exact(w->rule, expected) ? expected : reference};
}

/* Sums are added in the order of the bands, whichever thread had them. */
void host_parts(const struct kg_tensor *out, const double *reference,
                const struct device_part_rule *rule, struct device_comparison *result)
{
    struct walk w = {.out = out,
                     .reference = reference,
                     .rule = rule,
                     .stored = storage_of(out->dtype),
                     .rows = 1,
                     .columns = out->shape[out->rank - 1]};
    if (kg_dtype_bits(out->dtype) == 16) {
        w.counted = dtype_stored(out->dtype);
        w.least = ldexp(1, w.counted->least);
    }
    for (uint32_t r = 0; r + 1 < out->rank; r++)
        w.rows *= out->shape[r];
    const int64_t n_bands = (w.rows + DEVICE_TILE - 1) / DEVICE_TILE;
    struct found all = {parts_nothing(), {-1, -1}, {-1, -1}};
    w.n_tiles = (w.columns + DEVICE_TILE - 1) / DEVICE_TILE;
    w.found = xcalloc((size_t)n_bands, sizeof *w.found);
    rows_for_each(n_bands, rows_threads(w.rows * w.columns), walk_bands, &w);
    for (int64_t band = 0; band < n_bands; band++) {
        const struct found *f = &w.found[band];
        parts_merge(&all.parts, &f->parts);
        for (int i = 0; i < 2 && f->parts.bad; i++) {
            note_place(all.rows, f->rows[i]);
            note_place(all.columns, f->columns[i]);
        }
    }
    free(w.found);
    *result = parts_tell(&all.parts, w.rows * w.columns, w.columns);
    result->first_bad = element_at(&w, all.parts.first_bad);
    result->first_nonfinite = element_at(&w, all.parts.first_nonfinite);
    result->first_swallowed = element_at(&w, all.parts.first_swallowed);
    memcpy(result->bad_rows, all.rows, sizeof all.rows);
    memcpy(result->bad_columns, all.columns, sizeof all.columns);
}
