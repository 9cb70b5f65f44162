/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/pattern.h"
#include "kernels/ops/op.h"
#include "kernels/ops/storage.h"

struct share {
    rows_fn fn;
    void *context;
    int index;
    int64_t first, end;
    pthread_t thread;
    int started;
};

static void *run_share(void *argument)
{
    struct share *s = argument;
    s->fn(s->context, s->index, s->first, s->end);
    return NULL;
}

void rows_for_each(int64_t n_rows, int threads, rows_fn fn, void *context)
{
    struct share shares[ROWS_SHARES];
    int n = threads < ROWS_SHARES ? threads : ROWS_SHARES;
    n = n_rows < n ? (int)n_rows : n;
    for (int i = 0; i < n; i++) {
        shares[i] = (struct share){fn, context, i, n_rows * i / n, n_rows * (i + 1) / n, 0, 0};
        if (i > 0)
            shares[i].started = pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) == 0;
    }
    for (int i = 0; i < n; i++) {
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
        else
            run_share(&shares[i]);
    }
}

#define ELEMENTS_OF_THREAD 8192
#define THREADS_MAX 8

int rows_threads(int64_t elements)
{
    cpu_set_t set;
    const int processors = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    const int most = processors < THREADS_MAX ? processors : THREADS_MAX;
    const int64_t n = elements / ELEMENTS_OF_THREAD;
    return n < 1 ? 1 : n < most ? (int)n : most;
}

void rows_decode(const struct kg_tensor *t, double *to)
{
    const int64_t columns = t->shape[t->rank - 1], n = pattern_elements(t);
    for (int64_t first = 0; first < n; first += columns) {
        const int64_t at = pattern_offset(t, first);
        for (int64_t c = 0; c < columns; c++)
            to[first + c] = storage_get(t->data, t->dtype, at + c);
    }
}

double *rows_decoded(const struct kg_tensor *t)
{
    double *dense = malloc((size_t)pattern_elements(t) * sizeof *dense);
    if (dense)
        rows_decode(t, dense);
    return dense;
}

double *rows_transposed(double *matrix, int64_t count, int64_t rows, int64_t columns)
{
    double *turned = matrix ? malloc((size_t)(count * rows * columns) * sizeof(*turned)) : NULL;
    for (int64_t i = 0; turned && i < count; i++) {
        const double *from = matrix + i * rows * columns;
        double *to = turned + i * rows * columns;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                to[c * rows + r] = from[r * columns + c];
    }
    free(matrix);
    return turned;
}

void rows_add(double *sum, const double *row, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * row[i];
}

static void product_rows(void *context, int, int64_t first, int64_t end)
{
    const struct rows_product *p = context;
    for (int64_t i = first; i < end; i++) {
        double *row = p->c + i * p->n;
        memset(row, 0, (size_t)p->n * sizeof(*row));
        for (int64_t l = 0; l < p->k; l++)
            rows_add(row, p->b + l * p->n, p->a[i * p->k + l], p->n);
    }
}

void rows_multiply(int64_t m, int threads, struct rows_product product)
{
    rows_for_each(m, threads, product_rows, &product);
}

int64_t rows_place(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t at[] = {a, b, c, d};
    int64_t place = 0;
    for (uint32_t r = 0; r < t->rank; r++)
        place += at[r] * t->stride[r];
    return place;
}

double rows_at(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return storage_get(t->data, t->dtype, rows_place(t, a, b, c, d));
}

/* ---- any op ---- */

/* A reference of less work is done before a thread of its own has begun. */
#define THREADED_FLOPS 2e7

enum kg_status rows_reference(const struct kg_problem *p, const struct kg_tensor *in,
                              double *const *out, int threads)
{
    const struct op *op = op_of(p);
    return op->reference(p, in, out, op->flops(p) < THREADED_FLOPS ? 1 : threads);
}
