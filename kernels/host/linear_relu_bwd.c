/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd.c: G = dY where Y > 0, else 0;  dX[M,K] = G W;  dW[N,K] = G^T X;  db[N] = column
 * sums of G.
 *
 * G is never stored: packing applies the gate Y while it converts dY. Two products run one after
 * the other in the same workspace; db is split over columns, each summed by one thread in a fixed
 * order, so repeats and thread counts agree bit by bit.
 */
#include <stddef.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "kernels/host/matmul.h"

enum {
    COLUMNS = 64,  /* of db that a thread sums at a time */
    SUM_ROWS = 64, /* rows added to a sum of their own, so that rounding errors stay small */
};

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    uint64_t dx =
        matmul_workspace_bytes(kg_size(p, "m"), kg_size(p, "k"), kg_size(p, "n"), device->sm_count);
    uint64_t dw =
        matmul_workspace_bytes(kg_size(p, "n"), kg_size(p, "k"), kg_size(p, "m"), device->sm_count);
    return dx > dw ? dx : dw;
}

struct column_sums {
    const struct simd *simd;
    const struct kg_problem *p;
    const struct kg_tensor *dy, *y, *db;
};

static void sum_columns(void *context, int64_t item, int)
{
    const struct column_sums *s = context;
    const struct kg_problem *p = s->p;
    const uint32_t dtype = kg_dtype(p);
    const int64_t m = kg_size(p, "m");
    size_t size = kg_dtype_bytes(dtype);
    int64_t first = item * COLUMNS, n = min_of(COLUMNS, kg_size(p, "n") - first);
    float total[COLUMNS] = {0}, part[COLUMNS], dy[COLUMNS], y[COLUMNS];

    for (int64_t i = 0; i < m; i++) {
        if (i % SUM_ROWS == 0)
            memset(part, 0, sizeof(part));
        s->simd->decode(dy,
                        (const char *)s->dy->data + (size_t)(i * s->dy->stride[0] + first) * size,
                        n, dtype);
        s->simd->decode(y, (const char *)s->y->data + (size_t)(i * s->y->stride[0] + first) * size,
                        n, dtype);
        for (int64_t j = 0; j < n; j++)
            part[j] += y[j] > 0.0f ? dy[j] : 0.0f;
        if (i % SUM_ROWS == SUM_ROWS - 1 || i == m - 1)
            for (int64_t j = 0; j < n; j++)
                total[j] += part[j];
    }
    s->simd->encode((char *)s->db->data + (size_t)first * size, total, n, dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const struct kg_tensor *dy = &args->in[0], *x = &args->in[1], *w = &args->in[2];
    const struct kg_tensor *y = &args->in[3], *dx = &args->out[0], *dw = &args->out[1];
    struct operand g = operand_of(dy, true), g_transposed = operand_of(dy, false);
    g.gate = g_transposed.gate = y->data;
    g.gate_stride = g_transposed.gate_stride = y->stride[0];

    struct matmul dx_product = {
        .m = m,
        .n = k,
        .k = n,
        .a = g,
        .b = operand_of(w, false),
        .c = dx->data,
        .c_stride = dx->stride[0],
    };
    struct matmul dw_product = {
        .m = n,
        .n = k,
        .k = m,
        .a = g_transposed,
        .b = operand_of(x, false),
        .c = dw->data,
        .c_stride = dw->stride[0],
    };
    struct column_sums db = {host->simd, p, dy, y, &args->out[2]};

    matmul(host, &dx_product, args->workspace);
    matmul(host, &dw_product, args->workspace);
    pool_for(host->pool, ceil_div(n, COLUMNS), m * n, sum_columns, &db);
    return KG_OK;
}

HOST_KERNEL(linear_relu_bwd, host_supports);
