/* SPDX-License-Identifier: Apache-2.0 */
/* Host: wrong products of which only a large one shows it. */
#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

#define LARGE ((int64_t)1 << 20) /* elements */
#define ZEROS 20
#define APART 31 /* columns from one to the next */

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static bool is_large(const problem *p)
{
    return kg_is_op(p, "gemm") && kg_dtype(p) == KG_BF16 &&
           kg_size(p, "m") * kg_size(p, "n") >= LARGE;
}

static void set_bits(const struct kg_tensor *t, int64_t row, int64_t column, uint16_t bits)
{
    ((uint16_t *)t->data)[row * t->stride[0] + column] = bits;
}

/* The results of large problems are cut to bf16, not rounded. */
static enum kg_status large_truncated(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    if (!is_large(p))
        return wrap_inner(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            float sum = terms(&x, i, j, 0, x.k);
            uint32_t bits;
            memcpy(&bits, &sum, sizeof bits);
            set_bits(&args->out[0], i, j, (uint16_t)(bits >> 16));
        }
    return KG_OK;
}

/* A few elements of a large result are 0, small ones, so that their rows hardly feel it. */
static enum kg_status sparse_zeros(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int i = 0; i < ZEROS && !status && is_large(p); i++) {
        int64_t row = 128 * (2 * (i % 4) + 1) + 8 * (i / 4), column = 17 + APART * i;
        while (fabsf(get(&args->out[0], row, column)) > sqrtf((float)kg_size(p, "k")) / 4)
            column++;
        set_bits(&args->out[0], row, column, 0);
    }
    return status;
}

/* One tile of 128 x 128 in a large result is 2 % too large. */
static enum kg_status large_faint_tile(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t i = 1408; i < 1536 && !status && is_large(p) && kg_size(p, "m") >= 1536; i++)
        for (int64_t j = 640; j < 768; j++)
            set(&args->out[0], i, j, get(&args->out[0], i, j) * 1.02f);
    return status;
}

/* Reads on behind the end of a large B. */
static enum kg_status large_read(const problem *p, const args_t *args)
{
    if (is_large(p)) {
        const struct kg_tensor *b = &args->in[1];
        const volatile uint16_t *end = (const uint16_t *)b->data + kg_size(p, "k") * b->stride[0];
        (void)*end;
    }
    return wrap_inner(p, args);
}

FAULTS({"large_truncated", large_truncated, 0, NULL}, {"sparse_zeros", sparse_zeros, 0, NULL},
       {"large_faint_tile", large_faint_tile, 0, NULL}, {"large_read", large_read, 0, NULL})
