#include "verify_look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/reference/half.h"

/* An element is called bad when it is further off than its own size and the rms explain; the
 * norms judge, this says where to look. */
#define BAD_FACTOR 8.0

/* Rows and tiles are measured by their own norm, or by this share of what a row of average size
 * would have. A product's rows are alike, and short ones may cancel; those of an attention are not,
 * and no sum of many columns cancels. */
#define PRODUCT_NORM_SHARE 1.0
#define ATTENTION_NORM_SHARE 1e-3

void look_index(const struct problem_tensor *t, int64_t index, char *text, size_t size)
{
    int64_t at[KG_MAX_RANK];
    for (unsigned r = t->rank; r-- > 0;) {
        at[r] = index % t->shape[r];
        index /= t->shape[r];
    }
    size_t used = 0;
    for (unsigned r = 0; r < t->rank && used < size; r++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", r ? ", " : "", (long long)at[r]);
}

void look_start(struct look *look, const struct kg_problem *p, const struct problem_tensor *about,
                bool exact, double rms)
{
    *look = (struct look){.about = about,
                          .op = p->op,
                          .dtype = p->dtype,
                          .limit = problem_error_limit(p),
                          .exact = exact,
                          .rms = rms,
                          .columns = about->shape[about->rank - 1],
                          .first_bad.at = -1,
                          .first_nonfinite.at = -1,
                          .first_swallowed.at = -1,
                          .worst_row_at = -1};
    look->rows = problem_tensor_elements(about) / look->columns;
}

/* The reference as the output's dtype has it. */
static double rounded(const struct look *look, double reference)
{
    unsigned char bytes[sizeof(float)];
    float value = (float)reference;
    kg_store_float(bytes, look->dtype, 0, value);
    return (double)kg_load_float(bytes, look->dtype, 0);
}

static void note_first(struct look_element *first, int64_t index, double got, double expected)
{
    if (first->at < 0 || index < first->at)
        *first = (struct look_element){index, isnan(got) ? NAN : got, expected};
}

/* Those that are not finite, or must not be, are counted apart: one that is far off before them
 * would hide them. */
static void note_bad(struct look *look, int64_t index, double got, double expected)
{
    look->bad++;
    note_first(&look->first_bad, index, got, expected);
    if (!isfinite(expected)) {
        look->swallowed++;
        note_first(&look->first_swallowed, index, got, expected);
    } else if (!isfinite(got)) {
        look->nonfinite++;
        note_first(&look->first_nonfinite, index, got, expected);
    }
}

/* Adds an element; its squared error goes to *error_sq, the reference's square to *reference_sq. */
static void add(struct look *look, int64_t index, double got, double reference, double *error_sq,
                double *reference_sq)
{
    double expected = rounded(look, reference);
    *error_sq = *reference_sq = 0;
    look->seen++;
    if (!isfinite(expected) || look->exact) {
        /* fp64 does not overflow: an infinite reference has an input that is not finite. */
        bool right = got == expected || (isnan(got) && !isfinite(reference));
        if (!right)
            note_bad(look, index, got, expected);
        return;
    }
    if (!isfinite(got)) {
        note_bad(look, index, got, reference);
        return;
    }
    double error = got - reference;
    *error_sq = error * error;
    *reference_sq = reference * reference;
    if (!(fabs(error) <= BAD_FACTOR * look->limit * (fabs(reference) + look->rms)))
        note_bad(look, index, got, reference);
}

/* Relative error of a part of `n` elements. */
static double part_error(const struct look *look, double error_sq, double reference_sq, int64_t n)
{
    double share = look->op == KG_OP_ATTENTION_FWD ? ATTENTION_NORM_SHARE : PRODUCT_NORM_SHARE;
    double least = share * share * look->rms * look->rms * (double)n;
    double norm_sq = reference_sq > least ? reference_sq : least;
    return norm_sq > 0 ? sqrt(error_sq / norm_sq) : sqrt(error_sq);
}

struct tile_sum {
    double error_sq, reference_sq;
    int64_t n;
};

static void end_row(struct look *look, int64_t row, double error_sq, double reference_sq)
{
    double error = part_error(look, error_sq, reference_sq, look->columns);
    if (error > look->worst_row) {
        look->worst_row = error;
        look->worst_row_at = row;
    }
    look->error_sq += error_sq;
    look->reference_sq += reference_sq;
}

static void end_tiles(struct look *look, struct tile_sum *tiles, int64_t n_tiles, int64_t tile_row)
{
    for (int64_t t = 0; t < n_tiles; t++) {
        double error = part_error(look, tiles[t].error_sq, tiles[t].reference_sq, tiles[t].n);
        if (error > look->worst_tile) {
            look->worst_tile = error;
            look->worst_tile_row = tile_row;
            look->worst_tile_column = t;
        }
    }
    memset(tiles, 0, (size_t)n_tiles * sizeof *tiles);
}

enum gate_status look_rows(struct look *look, const void *got, const double *reference,
                           int64_t first, int64_t n, struct gate_error *err)
{
    int64_t n_tiles = (look->columns + LOOK_TILE - 1) / LOOK_TILE;
    struct tile_sum *tiles = calloc((size_t)n_tiles, sizeof *tiles);
    if (!tiles)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (int64_t row = first; row < first + n; row++) {
        double row_error_sq = 0, row_reference_sq = 0;
        for (int64_t column = 0; column < look->columns; column++) {
            int64_t at = (row - first) * look->columns + column;
            double error_sq, reference_sq;
            add(look, row * look->columns + column, (double)kg_load_float(got, look->dtype, at),
                reference[at], &error_sq, &reference_sq);
            row_error_sq += error_sq;
            row_reference_sq += reference_sq;
            struct tile_sum *tile = &tiles[column / LOOK_TILE];
            tile->error_sq += error_sq;
            tile->reference_sq += reference_sq;
            tile->n++;
        }
        end_row(look, row, row_error_sq, row_reference_sq);
        if ((row + 1) % LOOK_TILE == 0 || row + 1 == first + n)
            end_tiles(look, tiles, n_tiles, row / LOOK_TILE);
    }
    free(tiles);
    return GATE_OK;
}

static double whole_error(const struct look *look)
{
    if (look->nonfinite)
        return NAN;
    return part_error(look, look->error_sq, look->reference_sq, look->seen);
}

/* "; first bad element [3, 17], row 3, tile (0, 0): expected 1, got 2" */
static void say_first(const struct look *look, const struct look_element *first, char *text,
                      size_t size)
{
    char where[96];
    if (first->at < 0)
        return;
    look_index(look->about, first->at, where, sizeof where);
    int64_t row = first->at / look->columns, column = first->at % look->columns;
    snprintf(text, size,
             "; first bad element [%s], in row %lld and tile (%lld, %lld): expected %.9g, got %.9g",
             where, (long long)row, (long long)(row / LOOK_TILE), (long long)(column / LOOK_TILE),
             first->expected, first->got);
}

bool look_is_right(const struct look *look, char *text, size_t size)
{
    char first[256] = "";
    const char *name = look->about->name;
    long long bad = (long long)look->bad, seen = (long long)look->seen;
    double whole = whole_error(look), part = LOOK_PART_LIMIT * look->limit;
    say_first(look,
              look->nonfinite   ? &look->first_nonfinite
              : look->swallowed ? &look->first_swallowed
                                : &look->first_bad,
              first, sizeof first);
    if (look->nonfinite) {
        snprintf(text, size,
                 "output '%s': %lld of %lld elements are NaN, Inf or were never written%s", name,
                 (long long)look->nonfinite, seen, first);
    } else if (look->swallowed) {
        snprintf(text, size,
                 "output '%s': %lld of %lld elements are not the NaN or infinity that they must "
                 "be%s",
                 name, (long long)look->swallowed, seen, first);
    } else if (look->exact && look->bad) {
        snprintf(text, size,
                 "output '%s': %lld of %lld elements are not exactly what they must be%s", name,
                 bad, seen, first);
    } else if (!(whole <= look->limit)) {
        snprintf(
            text, size,
            "output '%s': relative error %.3g is over the limit of %.3g; %lld of %lld elements "
            "are far off%s",
            name, whole, look->limit, bad, seen, first);
    } else if (!(look->worst_row <= part)) {
        snprintf(
            text, size,
            "output '%s': relative error %.3g of row %lld is over the limit of %.3g for a row; "
            "%lld of %lld elements are far off%s",
            name, look->worst_row, (long long)look->worst_row_at, part, bad, seen, first);
    } else if (!(look->worst_tile <= part)) {
        snprintf(text, size,
                 "output '%s': relative error %.3g of tile (%lld, %lld) is over the limit of %.3g "
                 "for a tile; %lld of %lld elements are far off%s",
                 name, look->worst_tile, (long long)look->worst_tile_row,
                 (long long)look->worst_tile_column, part, bad, seen, first);
    } else {
        return true;
    }
    return false;
}
