/*
 * verify_look.h: an output and its fp64 reference, element by element, on the host.
 *
 * An output is a matrix: its last dimension are the columns, all others together the rows (a vector
 * is one row). The relative Frobenius error |x - ref| / |ref| is taken of the whole, of each tile
 * of LOOK_TILE x LOOK_TILE and of each row, because an error that fills one tile or one row is lost
 * in the norm of a large output. An exact look asks for the reference rounded once, bit by bit.
 * Where the rounded reference is not finite, the element must be the same infinity, or a NaN; where
 * the fp64 reference is an infinity, which then came from an input, a NaN will do (kernel.h).
 */
#ifndef GATE_VERIFY_VERIFY_LOOK_H
#define GATE_VERIFY_VERIFY_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "cases/problem.h"

#define LOOK_TILE 128
#define LOOK_PART_LIMIT 3.0 /* times the limit, for rows and tiles */

/* One that is not what it must be. */
struct look_element {
    int64_t at; /* flat index; -1: none */
    double got, expected;
};

struct look {
    const struct problem_tensor *about;
    uint32_t op, dtype;
    double limit;
    bool exact;
    double rms; /* of the reference, or what it is as a rule where it is less by chance: what rows
                   and tiles of small norm are measured by, and a product as a whole; 0: unknown */

    int64_t rows, columns;
    int64_t seen, bad;
    int64_t nonfinite; /* NaN or Inf where a number must be */
    int64_t swallowed; /* anything else where NaN or Inf must be */
    struct look_element first_bad, first_nonfinite, first_swallowed;
    double reference_sq, error_sq;
    double worst_row, worst_tile; /* relative errors */
    int64_t worst_row_at, worst_tile_row, worst_tile_column;
};

void look_start(struct look *look, const struct kg_problem *p, const struct problem_tensor *about,
                bool exact, double rms);

/* Looks at rows [first, first + n), dense in `got` and `reference`; `first` is a multiple of
 * LOOK_TILE. GATE_INTERNAL when memory is short. */
enum gate_status look_rows(struct look *look, const void *got, const double *reference,
                           int64_t first, int64_t n, struct gate_error *err);

/* Is all that was seen right? `text` says what is wrong; untouched when it is right. */
bool look_is_right(const struct look *look, char *text, size_t size);

/* "3, 17" of a flat index into a dense tensor. */
void look_index(const struct problem_tensor *t, int64_t index, char *text, size_t size);

#endif
