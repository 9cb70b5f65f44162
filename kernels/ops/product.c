/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/product.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/rows.h"

#define PRODUCT_RANK 4 /* of a tensor, at most */

const struct op_size product_sizes_mnk[3] = {OP_SIZE(0, m, 'm'), OP_SIZE(1, n, 'n'),
                                             OP_SIZE(2, k, 'k')};

double product_flops(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    double flops = 2;
    for (unsigned i = 0; i < op->n_sizes; i++)
        flops *= (double)op_size(p, &op->sizes[i]);
    return flops;
}

static const struct op_tensor *output_of(const struct op *op)
{
    return &op->tensors[op_inputs(op)];
}

/* Axes of a factor: those of the other one too, the others of the output, and that of the sum. */
struct factor {
    char batch[KG_MAX_RANK + 1], line[KG_MAX_RANK + 1];
};

static struct factor factor_of(const struct op *op, unsigned i)
{
    struct factor f = {{0}, {0}};
    for (const char *axis = op->tensors[i].axes; *axis; axis++) {
        if (strchr(output_of(op)->whole, *axis))
            continue;
        char *to = strchr(op->tensors[!i].axes, *axis) ? f.batch : f.line;
        to[strlen(to)] = *axis;
    }
    return f;
}

static int64_t length_of(const struct kg_problem *p, const char *axes)
{
    int64_t n = 1;
    for (; *axes; axes++)
        n *= op_length(p, *axes);
    return n;
}

/* A dense copy in fp64 with the axes in another order. */
static double *ordered(const struct kg_problem *p, const struct kg_tensor *t, const char *axes,
                       const char *batch, const char *outer, const char *inner)
{
    char order[KG_MAX_RANK + 1];
    int64_t length[PRODUCT_RANK] = {1, 1, 1, 1}, from[PRODUCT_RANK] = {0};
    const size_t first = PRODUCT_RANK - strlen(axes);
    double *dense = rows_decoded(t), *out = dense ? malloc((size_t)length_of(p, axes) * 8) : NULL;
    snprintf(order, sizeof order, "%s%s%s", batch, outer, inner);
    for (size_t i = 0; order[i]; i++) {
        length[first + i] = op_length(p, order[i]);
        from[first + i] = length_of(p, strchr(axes, order[i]) + 1);
    }
    double *to = out;
    for (int64_t a = 0; out && a < length[0]; a++)
        for (int64_t b = 0; b < length[1]; b++)
            for (int64_t c = 0; c < length[2]; c++)
                for (int64_t d = 0; d < length[3]; d++)
                    *to++ = dense[a * from[0] + b * from[1] + c * from[2] + d * from[3]];
    free(dense);
    return out;
}

enum kg_status product_reference(const struct kg_problem *p, const struct kg_tensor *in,
                                 double *const *out, int threads)
{
    const struct op *op = op_of(p);
    const struct factor a = factor_of(op, 0), b = factor_of(op, 1);
    const char *sum = output_of(op)->whole;
    const int64_t m = length_of(p, a.line), n = length_of(p, b.line), k = length_of(p, sum);
    double *left = ordered(p, &in[0], op->tensors[0].axes, a.batch, a.line, sum);
    double *right = ordered(p, &in[1], op->tensors[1].axes, a.batch, sum, b.line);
    enum kg_status status = left && right ? KG_OK : KG_LAUNCH_FAILED;
    for (int64_t i = 0, batches = length_of(p, a.batch); i < batches && status == KG_OK; i++)
        rows_multiply(m, threads,
                      (struct rows_product){.a = left + i * m * k,
                                            .b = right + i * k * n,
                                            .c = out[0] + i * m * n,
                                            .n = n,
                                            .k = k});
    free(left);
    free(right);
    return status;
}

double product_element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                       int64_t flat)
{
    const struct op *op = op_of(p);
    const struct op_tensor *c = output_of(op);
    const char sum = *c->whole;
    int64_t at[2][KG_MAX_RANK] = {{0}}, place[UCHAR_MAX + 1] = {0};
    double total = 0;
    for (size_t r = strlen(c->axes); r-- > 0;) {
        int64_t length = op_length(p, c->axes[r]);
        place[(unsigned char)c->axes[r]] = flat % length;
        flat /= length;
    }
    for (int64_t l = 0, k = op_length(p, sum); l < k; l++) {
        place[(unsigned char)sum] = l;
        for (unsigned i = 0; i < 2; i++)
            for (size_t r = 0; op->tensors[i].axes[r]; r++)
                at[i][r] = place[(unsigned char)op->tensors[i].axes[r]];
        total += rows_at(&in[0], at[0][0], at[0][1], at[0][2], at[0][3]) *
                 rows_at(&in[1], at[1][0], at[1][1], at[1][2], at[1][3]);
    }
    return total;
}
