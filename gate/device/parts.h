/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h: what an element, a row and a tile add to a comparison; the same in C and in CUDA.
 */
#ifndef GATE_DEVICE_PARTS_H
#define GATE_DEVICE_PARTS_H

#include <math.h>

#include "gate/device/device.h"

#ifdef __CUDACC__
#define PARTS static inline __device__
#else
#define PARTS static inline
#endif

#define PARTS_NONE INT64_MAX

/* Of a row or a tile. */
struct part_sum {
    double error_sq, reference_sq;
};

/* The largest error so far, and whose it is: the first such. */
struct part_worst {
    double error;
    int64_t at;
};

/* What is found so far, as in device_comparison. */
struct parts {
    int64_t bad, nonfinite, swallowed, over_1e2, over_1e3;
    int64_t first_bad, first_nonfinite, first_swallowed; /* PARTS_NONE: none */
    struct part_sum all;
    double max_abs, bias;
    int64_t biased;
    struct part_worst row, tile;
};

PARTS struct parts parts_nothing(void)
{
    struct parts f = {0};
    f.first_bad = f.first_nonfinite = f.first_swallowed = PARTS_NONE;
    f.row.at = f.tile.at = PARTS_NONE;
    return f;
}

PARTS int64_t parts_first(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Those that are not finite, or must not be, are counted apart: one that is far off before them
 * would hide them. */
PARTS void parts_note_bad(struct parts *f, int64_t at, double value, double expected)
{
    f->bad++;
    f->first_bad = parts_first(f->first_bad, at);
    if (!isfinite(expected)) {
        f->swallowed++;
        f->first_swallowed = parts_first(f->first_swallowed, at);
    } else if (!isfinite(value)) {
        f->nonfinite++;
        f->first_nonfinite = parts_first(f->first_nonfinite, at);
    }
}

/* How far off it is whatever the rule. What is not finite is `right` or has no distance. */
PARTS void parts_note_distance(struct parts *f, double value, double reference, bool right)
{
    double difference = fabs(value - reference);
    const double size = isfinite(reference) ? fabs(reference) : 0.0;
    if (isfinite(difference))
        f->max_abs = fmax(f->max_abs, difference);
    else
        difference = right ? 0.0 : (double)INFINITY;
    f->over_1e2 += !(difference <= 1e-2 + 1e-2 * size);
    f->over_1e3 += !(difference <= 1e-3 + 1e-3 * size);
}

/* Must an element be what the reference comes to in its dtype, `expected`, to the bit? */
PARTS bool parts_is_exact(const struct device_part_rule *rule, double expected)
{
    return rule->exact || !isfinite(expected);
}

/* What is there, and what must be: exactly, and in the output's dtype. */
struct part_element {
    int64_t at;
    double value, reference, expected;
    double nearest; /* to the reference, of the numbers that are stored as the value */
};

/* True: the element has a distance, and `sum` is what it adds to its row and tile. */
PARTS bool parts_measure(const struct device_part_rule *rule, struct parts *f,
                         const struct part_element *e, struct part_sum *sum)
{
    sum->error_sq = sum->reference_sq = 0.0;
    if (parts_is_exact(rule, e->expected)) {
        /* fp64 does not overflow: an infinite reference has an input that is not finite. */
        const bool right = e->value == e->expected || (isnan(e->value) && !isfinite(e->reference));
        if (!right)
            parts_note_bad(f, e->at, e->value, e->expected);
        parts_note_distance(f, e->value, e->expected, right);
        return false;
    }
    const double error = e->nearest - e->reference;
    parts_note_distance(f, e->nearest, e->reference, false);
    if (!(fabs(error) <= rule->bad_share * (fabs(e->reference) + rule->bad_rms)))
        parts_note_bad(f, e->at, e->value, e->reference);
    if (!isfinite(e->value))
        return false;
    sum->error_sq = error * error;
    sum->reference_sq = e->reference * e->reference;
    return true;
}

/* Units of the last place away from zero that a number is from what its reference rounds to. */
PARTS void parts_note_bias(struct parts *f, double units)
{
    f->bias += fmax(-DEVICE_BIAS_MAX, fmin(DEVICE_BIAS_MAX, units));
    f->biased++;
}

PARTS void parts_add(struct part_sum *into, struct part_sum more)
{
    into->error_sq += more.error_sq;
    into->reference_sq += more.reference_sq;
}

PARTS void parts_take_worse(struct part_worst *into, struct part_worst other)
{
    if (other.error > into->error || (other.error == into->error && other.at < into->at))
        *into = other;
}

/* Of a row or tile of n elements; what is not off at all is nobody's worst. */
PARTS void parts_judge(const struct device_part_rule *rule, struct part_worst *into,
                       struct part_sum sum, int64_t n, int64_t at)
{
    const double least_sq = rule->least_rms * rule->least_rms * (double)n;
    const double norm_sq = fmax(sum.reference_sq, least_sq);
    const struct part_worst it = {norm_sq > 0.0 ? sqrt(sum.error_sq / norm_sq) : sqrt(sum.error_sq),
                                  at};
    if (it.error > 0.0)
        parts_take_worse(into, it);
}

PARTS void parts_merge(struct parts *into, const struct parts *from)
{
    into->bad += from->bad;
    into->nonfinite += from->nonfinite;
    into->swallowed += from->swallowed;
    into->over_1e2 += from->over_1e2;
    into->over_1e3 += from->over_1e3;
    into->max_abs = fmax(into->max_abs, from->max_abs);
    into->first_bad = parts_first(into->first_bad, from->first_bad);
    into->first_nonfinite = parts_first(into->first_nonfinite, from->first_nonfinite);
    into->first_swallowed = parts_first(into->first_swallowed, from->first_swallowed);
    parts_add(&into->all, from->all);
    into->bias += from->bias;
    into->biased += from->biased;
    parts_take_worse(&into->row, from->row);
    parts_take_worse(&into->tile, from->tile);
}

/* All but the elements that are told, and where bad ones are. */
static inline struct device_comparison parts_tell(const struct parts *f, int64_t elements,
                                                  int64_t columns)
{
    const int64_t tiles = (columns + DEVICE_TILE - 1) / DEVICE_TILE;
    const bool row = f->row.at != PARTS_NONE, tile = f->tile.at != PARTS_NONE;
    struct device_comparison out = {0};
    out.elements = elements;
    out.bad = f->bad;
    out.nonfinite = f->nonfinite;
    out.swallowed = f->swallowed;
    out.over_1e2 = f->over_1e2;
    out.over_1e3 = f->over_1e3;
    out.max_abs = f->max_abs;
    out.reference_sq = f->all.reference_sq;
    out.error_sq = f->all.error_sq;
    out.bias = f->bias;
    out.biased = f->biased;
    out.bad_rows[0] = out.bad_columns[0] = -1;
    out.worst_row = f->row.error;
    out.worst_tile = f->tile.error;
    out.worst_row_at = row ? f->row.at : -1;
    out.worst_tile_row = tile ? f->tile.at / tiles : -1;
    out.worst_tile_column = tile ? f->tile.at % tiles : -1;
    return out;
}

#endif
