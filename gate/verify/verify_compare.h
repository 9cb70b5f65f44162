/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_compare.h: an output and its fp64 reference, by elements, rows and tiles.
 *
 * An output is a matrix: its last dimension are the columns, all others together the rows (a vector
 * is one row). The relative Frobenius error |x - ref| / |ref| is taken of the whole, of each tile
 * and of each row, because an error that fills one tile or one row is lost in the norm of a large
 * output; and no element of a product may be off by many times what its own size and the rms
 * explain, because a few are lost in the norm of a long row. Results of random inputs that are
 * rounded to nearest are as often too large as too small: the mean error in units of the last place
 * shows what is cut off instead. An exact look asks for the reference
 * rounded once, bit by bit. Where the rounded reference is not finite, the element must be the same
 * infinity, or a NaN; where the fp64 reference is an infinity, which then came from an input, a NaN
 * will do (kernel.h).
 */
#ifndef GATE_VERIFY_VERIFY_COMPARE_H
#define GATE_VERIFY_VERIFY_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/cases/problem.h"
#include "gate/device/device.h"
#include "kernels/ops/pattern.h"

struct look {
    const struct kg_problem *problem;
    const struct problem_tensor *about;
    double limit;
    double rms; /* of the reference, or what it is as a rule where it is less by chance: what rows
                   and tiles of small norm are measured by, and a product as a whole; 0: unknown */
    bool whole; /* rows, tiles and elements by themselves are not asked */
    bool unbiased; /* random inputs: sums are off by no sign in common */
    struct device_part_rule rule;
    struct device_comparison found;
};

/* What the elements of an output come to as a root mean square where the inputs are random: sums of
 * products. 0: not known, or the rows of an attention, which are averages. */
double compare_usual_rms(const struct kg_problem *p, const struct problem_tensor *about);

/* Half of that, for inputs of PROBE_NORMAL; 0 for others. All elements of an output may be less by
 * chance: where they are few sums that nearly cancel, or a bias that they share leaves few of them
 * above zero. What their terms lost to rounding is no small share of them then. */
double compare_least_rms(enum probe probe, const struct kg_problem *p,
                         const struct problem_tensor *about);

/* Of inputs like those of `probe`: with what right arithmetic may lose of them. */
void compare_start(struct look *look, const struct kg_problem *p,
                   const struct problem_tensor *about, enum probe probe, double rms);
double compare_limit(const struct kg_problem *p, enum probe probe);

/* Looks at all of `got` in memory of the device (in that of the host, host_parts() does). Where the
 * reference comes to more than the look's rms, which a first pass finds, elements, rows and tiles
 * are measured by that. */
enum gate_status compare_on_device(struct device *d, struct look *look, const struct kg_tensor *got,
                                   const double *reference, struct gate_error *err);

/* The relative Frobenius error of the whole; NaN where an element is not finite. */
double compare_whole_error(const struct look *look);

/* Is all of it right? `text` says what is wrong; untouched when it is right. */
bool compare_is_right(const struct look *look, char *text, size_t size);

/* "3, 17" of a flat index into a dense tensor. */
void compare_index(const struct problem_tensor *t, int64_t index, char *text, size_t size);

#endif
