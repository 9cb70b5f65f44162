/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/device/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

/* Of a row or a tile. */
struct part_sum {
    double error_sq, reference_sq;
    int64_t n;
};

/* A comparison under way. */
struct part_walk {
    const struct kg_tensor *out;
    const struct device_part_rule *rule;
    struct device_comparison found;
    struct part_sum *tiles; /* of the tiles that the row in hand crosses */
    int64_t rows, columns, n_tiles;
};

/* Indices come in rising order. */
static void note_first(struct device_element *first, int64_t index, double value, double reference)
{
    if (first->at < 0)
        *first = (struct device_element){index, value, reference};
}

static void note_place(int64_t places[2], int64_t place)
{
    if (places[0] < 0 || place < places[0])
        places[0] = place;
    if (place > places[1])
        places[1] = place;
}

/* Those that are not finite, or must not be, are counted apart: one that is far off before them
 * would hide them. */
static void note_bad(struct part_walk *w, int64_t index, double value, double expected)
{
    struct device_comparison *found = &w->found;
    found->bad++;
    note_place(found->bad_rows, index / w->columns);
    note_place(found->bad_columns, index % w->columns);
    note_first(&found->first_bad, index, value, expected);
    if (!isfinite(expected)) {
        found->swallowed++;
        note_first(&found->first_swallowed, index, value, expected);
    } else if (!isfinite(value)) {
        found->nonfinite++;
        note_first(&found->first_nonfinite, index, value, expected);
    }
}

/* A unit of the last place of a normal number of 16 bits; 0 of any other. */
static double unit_of(uint32_t code, double reference)
{
    const struct dtype *dtype = kg_dtype_bits(code) == 16 ? dtype_stored(code) : NULL;
    if (!dtype || fabs(reference) < ldexp(1, dtype->least))
        return 0;
    uint64_t bits;
    memcpy(&bits, &reference, sizeof bits);
    bits = ((bits >> 52 & 0x7ff) - dtype->mantissa) << 52; /* the exponent alone */
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}

/* Measured from the number that is nearest to the reference: what rounding itself takes off has a
 * sign where the results of a problem share a factor. No rint(): a kernel may have changed the
 * rounding mode. */
static void note_bias(struct device_comparison *found, double value, double reference, double unit)
{
    if (unit == 0 || reference == 0)
        return;
    double units = value / unit - roundeven(reference / unit);
    units = reference < 0 ? -units : units;
    found->bias += fmax(-DEVICE_BIAS_MAX, fmin(DEVICE_BIAS_MAX, units));
    found->biased++;
}

/* How far off it is whatever the rule. What is not finite is `right` or has no distance. */
static void note_distance(struct device_comparison *found, double value, double reference,
                          bool right)
{
    double difference = fabs(value - reference);
    const double size = isfinite(reference) ? fabs(reference) : 0;
    if (isfinite(difference))
        found->max_abs = fmax(found->max_abs, difference);
    else
        difference = right ? 0 : INFINITY;
    found->over_1e2 += !(difference <= 1e-2 + 1e-2 * size);
    found->over_1e3 += !(difference <= 1e-3 + 1e-3 * size);
}

/* What an element adds to the sums of its row and tile. */
static struct part_sum measure(struct part_walk *w, int64_t index, double value, double reference)
{
    const struct device_part_rule *rule = w->rule;
    unsigned char bytes[sizeof(float)];
    storage_put(bytes, w->out->dtype, 0, reference); /* as the output's dtype has it */
    double expected = storage_get(bytes, w->out->dtype, 0);
    if (!isfinite(expected) || rule->exact) {
        /* fp64 does not overflow: an infinite reference has an input that is not finite. */
        bool right = value == expected || (isnan(value) && !isfinite(reference));
        if (!right)
            note_bad(w, index, value, expected);
        note_distance(&w->found, value, expected, right);
        return (struct part_sum){0, 0, 1};
    }
    double nearest = storage_nearest(w->out->dtype, value, reference), error = nearest - reference;
    note_distance(&w->found, nearest, reference, false);
    if (!(fabs(error) <= rule->bad_share * (fabs(reference) + rule->bad_rms)))
        note_bad(w, index, value, reference);
    if (!isfinite(value))
        return (struct part_sum){0, 0, 1};
    note_bias(&w->found, nearest, reference, unit_of(w->out->dtype, reference));
    return (struct part_sum){error * error, reference * reference, 1};
}

static void add(struct part_sum *into, struct part_sum more)
{
    into->error_sq += more.error_sq;
    into->reference_sq += more.reference_sq;
    into->n += more.n;
}

static double relative_error(const struct device_part_rule *rule, const struct part_sum *s)
{
    double norm_sq = fmax(s->reference_sq, rule->least_rms * rule->least_rms * (double)s->n);
    return norm_sq > 0 ? sqrt(s->error_sq / norm_sq) : sqrt(s->error_sq);
}

static void end_tiles(struct part_walk *w, int64_t tile_row)
{
    for (int64_t t = 0; t < w->n_tiles; t++) {
        double error = relative_error(w->rule, &w->tiles[t]);
        if (error > w->found.worst_tile) {
            w->found.worst_tile = error;
            w->found.worst_tile_row = tile_row;
            w->found.worst_tile_column = t;
        }
    }
    memset(w->tiles, 0, (size_t)w->n_tiles * sizeof *w->tiles);
}

static void walk_row(struct part_walk *w, const double *reference, int64_t row)
{
    struct part_sum sum = {0};
    for (int64_t column = 0; column < w->columns; column++) {
        int64_t at = row * w->columns + column;
        double value = storage_get(w->out->data, w->out->dtype, at);
        struct part_sum more = measure(w, at, value, reference[at]);
        add(&sum, more);
        add(&w->tiles[column / DEVICE_TILE], more);
    }
    double error = relative_error(w->rule, &sum);
    if (error > w->found.worst_row) {
        w->found.worst_row = error;
        w->found.worst_row_at = row;
    }
    w->found.error_sq += sum.error_sq;
    w->found.reference_sq += sum.reference_sq;
}

/* Bands of DEVICE_TILE rows, which threads share. */
struct bands {
    struct part_walk start;
    const double *reference;
    struct device_comparison *found; /* in each */
};

static void walk_bands(void *context, int share, int64_t first, int64_t end)
{
    const struct bands *b = context;
    struct part_walk w = b->start;
    (void)share;
    w.tiles = xcalloc((size_t)w.n_tiles, sizeof *w.tiles);
    for (int64_t band = first; band < end; band++) {
        w.found = b->start.found;
        for (int64_t row = band * DEVICE_TILE; row < w.rows && row < (band + 1) * DEVICE_TILE;
             row++)
            walk_row(&w, b->reference, row);
        end_tiles(&w, band);
        b->found[band] = w.found;
    }
    free(w.tiles);
}

static void take_first(struct device_element *first, const struct device_element *more)
{
    if (first->at < 0)
        *first = *more;
}

static void take_places(int64_t places[2], const int64_t more[2])
{
    if (more[0] < 0)
        return;
    note_place(places, more[0]);
    note_place(places, more[1]);
}

/* What was found in the band behind all that is in `f`. */
static void take_band(struct device_comparison *f, const struct device_comparison *more)
{
    f->bad += more->bad;
    f->nonfinite += more->nonfinite;
    f->swallowed += more->swallowed;
    take_first(&f->first_bad, &more->first_bad);
    take_first(&f->first_nonfinite, &more->first_nonfinite);
    take_first(&f->first_swallowed, &more->first_swallowed);
    take_places(f->bad_rows, more->bad_rows);
    take_places(f->bad_columns, more->bad_columns);
    f->reference_sq += more->reference_sq;
    f->error_sq += more->error_sq;
    f->max_abs = fmax(f->max_abs, more->max_abs);
    f->over_1e2 += more->over_1e2;
    f->over_1e3 += more->over_1e3;
    f->bias += more->bias;
    f->biased += more->biased;
    if (more->worst_row > f->worst_row) {
        f->worst_row = more->worst_row;
        f->worst_row_at = more->worst_row_at;
    }
    if (more->worst_tile > f->worst_tile) {
        f->worst_tile = more->worst_tile;
        f->worst_tile_row = more->worst_tile_row;
        f->worst_tile_column = more->worst_tile_column;
    }
}

/* Sums are added in the order of the bands, whichever thread had them. */
void host_parts(const struct kg_tensor *out, const double *reference,
                const struct device_part_rule *rule, struct device_comparison *result)
{
    struct part_walk w = {.out = out,
                          .rule = rule,
                          .found = {.first_bad.at = -1,
                                    .first_nonfinite.at = -1,
                                    .first_swallowed.at = -1,
                                    .bad_rows = {-1, -1},
                                    .bad_columns = {-1, -1},
                                    .worst_row_at = -1,
                                    .worst_tile_row = -1,
                                    .worst_tile_column = -1},
                          .rows = 1,
                          .columns = out->shape[out->rank - 1]};
    for (uint32_t r = 0; r + 1 < out->rank; r++)
        w.rows *= out->shape[r];
    w.found.elements = w.rows * w.columns;
    w.n_tiles = (w.columns + DEVICE_TILE - 1) / DEVICE_TILE;
    const int64_t n_bands = (w.rows + DEVICE_TILE - 1) / DEVICE_TILE;
    struct bands bands = {w, reference, xcalloc((size_t)n_bands, sizeof *bands.found)};
    rows_for_each(n_bands, rows_threads(w.found.elements), walk_bands, &bands);
    *result = w.found;
    for (int64_t band = 0; band < n_bands; band++)
        take_band(result, &bands.found[band]);
    free(bands.found);
}
