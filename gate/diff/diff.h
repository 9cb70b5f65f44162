/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h: the kernels of two libraries side by side, without a GPU. */
#ifndef GATE_DIFF_DIFF_H
#define GATE_DIFF_DIFF_H

#include "gate/library/listing.h"
#include "gate/report/report.h"

enum diff_change { DIFF_SAME, DIFF_CHANGED, DIFF_ADDED, DIFF_REMOVED, DIFF_CHANGES };

struct diff_side {
    const struct machine_kernel *kernel; /* NULL: the library has none of that name */
    char sha256[65];
    struct resources resources;
    struct listing listing; /* once it was read */
};

/* One kernel for one architecture. */
struct diff_row {
    enum diff_change change;
    struct diff_side new, old;
    char shown[400];            /* the kernel's name for a reader; empty until diff_demangle() */
    char why[LISTING_WHY_SIZE]; /* its listings are not known; empty: they are, or were not asked
                                   for */
};

struct diff {
    struct diff_row *rows; /* by architecture and name */
    size_t n, count[DIFF_CHANGES];
    char why[400]; /* no listing is known */
};

/*
 * Kernels are the same when their machine code has the same hash. `architecture`: 0, or the one
 * that is looked at alone. The caller's (diff_release); it holds as long as both libraries.
 * GATE_USAGE: no kernel is left, or there are too many.
 */
enum gate_status diff_libraries(const struct machine_code *new, const struct machine_code *old,
                                unsigned architecture, struct diff *out, struct gate_error *err);
void diff_release(struct diff *d);

/* Reads the listings of kernels that are not the same, where `all` is true those of the others too
 * (as `new`). What cannot be had is said in `why`, and is no failure. */
enum gate_status diff_read_listings(struct diff *d, bool all, struct gate_error *err);

/* Puts C++ names in the form of their source, by cu++filt or c++filt; where neither is found they
 * stay as they are in the file. */
void diff_demangle(struct diff *d);

/* Kernels of the same code are counted and, where `all` is true, listed too. */
void diff_write(const struct diff *d, bool all, const struct report_style *style, struct buf *out);
/* Of each kernel whose listing was read, the instructions that occur more or less often and those
 * that make up its time, and with `sides` the changed lines, the old beside the new. Where
 * they are not known, why. */
void diff_write_instructions(const struct diff *d, bool sides, const struct report_style *style,
                             struct buf *out);
void diff_write_json(const struct diff *d, struct buf *out); /* always all */

#endif
