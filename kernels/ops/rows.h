/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h: what the fp64 references of ops on the host are made of.
 *
 * Whole outputs: inputs are decoded into dense fp64 arrays, transposed where that makes the inner
 * loop walk along memory, and every output row is then a sum of scaled rows. Rows are split over
 * threads; a row is summed in one order by one thread, so the split can't change it.
 *
 * No blocking, no vector code of their own, and no code shared with the kernels that they judge but
 * the decoding of half.h. TF32 and the dtype change the rounding of the inputs alone; NaN and
 * infinity go through as IEEE arithmetic has it.
 */
#ifndef KG_OPS_ROWS_H
#define KG_OPS_ROWS_H

#include <stdint.h>

#include "kernels/kernel.h"

enum { ROWS_SHARES = 64 };

/* `share`: which of at most ROWS_SHARES pieces this is, to pick scratch memory by. */
typedef void (*rows_fn)(void *context, int share, int64_t first, int64_t end);

/* Calls fn over [0, n_rows) in `threads` pieces; a piece that gets no thread runs in the caller. */
void rows_for_each(int64_t n_rows, int threads, rows_fn fn, void *context);

/* Threads that are worth their start where each of so many elements takes some nanoseconds: no more
 * than the process may have processors. */
int rows_threads(int64_t elements);

/* The view as dense numbers, row by row. */
void rows_decode(const struct kg_tensor *t, double *to);

/* The same in an array of its own, NULL when out of memory. The caller frees it. */
double *rows_decoded(const struct kg_tensor *t);

/* [rows, columns] to [columns, rows], for each of `count` matrices. Takes `matrix` over and frees
 * it; NULL in, or out of memory, gives NULL. */
double *rows_transposed(double *matrix, int64_t count, int64_t rows, int64_t columns);

/* sum[i] += factor * row[i] */
void rows_add(double *sum, const double *row, double factor, int64_t n);

/* Keeps a NaN, so that a poisoned input cannot hide behind it. */
static inline double rows_relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* c[m, n] = a[m, k] b[k, n], all dense. */
struct rows_product {
    const double *a, *b;
    double *c;
    int64_t n, k;
};

void rows_multiply(int64_t m, int threads, struct rows_product product);

/* An element of a stored tensor, and where it is; places in axes that it does not have are 0. */
int64_t rows_place(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d);
double rows_at(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d);

/* All outputs of a built-in op as kernel.h defines them, in fp64, dense and not rounded at the end,
 * from the stored inputs in host memory, which may have any strides. The result does not depend on
 * `threads`. KG_LAUNCH_FAILED: there is no memory for fp64 copies of the inputs. */
enum kg_status rows_reference(const struct kg_problem *p, const struct kg_tensor *in,
                              double *const *out, int threads);

#endif
