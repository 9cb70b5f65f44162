/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c: see matmul.h.
 *
 * Two passes over the threads. The first packs all of A and B to fp32 panels, cut at every
 * BLOCK_DEPTH, so that each element is converted once however many blocks of C need it. The second
 * deals out blocks of C: a block runs through the depth, panel of B by panel of A, so that
 * the panel of B (48 KB at most) is read from L1 or L2 and the panels of A from L2, and adds into
 * an fp32 block of its own, which is finished (bias, ReLU, rounding) row by row at the end. The sum
 * over a BLOCK_DEPTH is kept in registers, which also shortens the chain of fp32 roundings.
 */
#include "kernels/host/matmul.h"

#include <stddef.h>
#include <string.h>

#include "kernels/ops/half.h"

/* ---- packing ---- */

typedef float quad __attribute__((vector_size(16), may_alias));

/* n elements along memory from (line, at), converted, with the gate applied. */
static void read_line(const struct simd *simd, const struct operand *o, int64_t line, int64_t at,
                      int64_t n, float *to)
{
    float gate[PACK_MAX_DEPTH > PACK_MAX_EXTENT ? PACK_MAX_DEPTH : PACK_MAX_EXTENT];
    size_t size = kg_dtype_bytes(o->dtype);

    simd->decode(to, (const char *)o->data + (size_t)(line * o->stride + at) * size, n, o->dtype);
    if (!o->gate)
        return;
    simd->decode(gate, (const char *)o->gate + (size_t)(line * o->gate_stride + at) * size, n,
                 o->dtype);
    for (int64_t i = 0; i < n; i++)
        to[i] = gate[i] > 0.0f ? to[i] : 0.0f;
}

static quad load_quad(const float *from)
{
    quad x;
    memcpy(&x, from, sizeof(x));
    return x;
}

static void store_quad(float *to, quad x)
{
    memcpy(to, &x, sizeof(x));
}

/* to[d * width + i] = lines[i][d] for four lines. */
static void interleave(float lines[4][PACK_MAX_DEPTH], int64_t depth, int64_t width, float *to)
{
    int64_t d = 0;
    for (; d + 4 <= depth; d += 4) {
        quad a = load_quad(lines[0] + d), b = load_quad(lines[1] + d);
        quad c = load_quad(lines[2] + d), e = load_quad(lines[3] + d);
        quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
        quad ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
        quad be_low = __builtin_shufflevector(b, e, 0, 4, 1, 5);
        quad be_high = __builtin_shufflevector(b, e, 2, 6, 3, 7);
        store_quad(to + (d + 0) * width, __builtin_shufflevector(ac_low, be_low, 0, 4, 1, 5));
        store_quad(to + (d + 1) * width, __builtin_shufflevector(ac_low, be_low, 2, 6, 3, 7));
        store_quad(to + (d + 2) * width, __builtin_shufflevector(ac_high, be_high, 0, 4, 1, 5));
        store_quad(to + (d + 3) * width, __builtin_shufflevector(ac_high, be_high, 2, 6, 3, 7));
    }
    for (; d < depth; d++)
        for (int i = 0; i < 4; i++)
            to[d * width + i] = lines[i][d];
}

static void pack_along_depth(const struct simd *simd, const struct operand *o, int64_t first,
                             int64_t extent, int64_t from, int64_t depth, int64_t width, float *to)
{
    float lines[4][PACK_MAX_DEPTH];
    int64_t padded = (extent + width - 1) / width * width;

    for (int64_t e = 0; e < padded; e += 4) {
        for (int64_t i = 0; i < 4; i++) {
            if (e + i < extent)
                read_line(simd, o, first + e + i, from, depth, lines[i]);
            else
                memset(lines[i], 0, (size_t)depth * sizeof(lines[i][0]));
        }
        interleave(lines, depth, width, to + e / width * width * depth + e % width);
    }
}

static void pack_along_extent(const struct simd *simd, const struct operand *o, int64_t first,
                              int64_t extent, int64_t from, int64_t depth, int64_t width, float *to)
{
    float line[PACK_MAX_EXTENT + SIMD_MAX_TILE_COLUMNS];
    int64_t padded = (extent + width - 1) / width * width;

    memset(line + extent, 0, (size_t)(padded - extent) * sizeof(line[0]));
    for (int64_t d = 0; d < depth; d++) {
        read_line(simd, o, from + d, first, extent, line);
        for (int64_t e = 0; e < padded; e += width)
            memcpy(to + e * depth + d * width, line + e, (size_t)width * sizeof(line[0]));
    }
}

void pack(const struct simd *simd, const struct operand *operand, int64_t first, int64_t extent,
          int64_t from, int64_t depth, int64_t width, float *to)
{
    if (operand->depth_contiguous)
        pack_along_depth(simd, operand, first, extent, from, depth, width, to);
    else
        pack_along_extent(simd, operand, first, extent, from, depth, width, to);
}

/* ---- the product ---- */

enum {
    BLOCK_DEPTH = 256,
    /* Multiples of every tile's rows and columns. */
    BLOCK_ROWS = 96,
    BLOCK_COLUMNS = 192,
    PACK_EXTENT = 96,
};

_Static_assert((int)BLOCK_DEPTH <= (int)PACK_MAX_DEPTH, "pack() takes a block at once");
_Static_assert((int)PACK_EXTENT <= (int)PACK_MAX_EXTENT, "likewise");

struct job {
    const struct matmul *mm;
    const struct simd *simd;
    int64_t a_width, b_width;       /* panel widths: MR and NR */
    int64_t a_groups, b_groups;     /* pieces of PACK_EXTENT */
    int64_t a_padded, b_padded;     /* extents rounded up to PACK_EXTENT */
    int64_t block_rows, block_cols; /* of C; multiples of a_width and b_width */
    int64_t row_blocks;
    float *a, *b; /* [k / BLOCK_DEPTH][panel][depth][width] */
    float *block; /* [thread][BLOCK_ROWS][BLOCK_COLUMNS] */
};

/* Floats before the panel that starts at extent e, in the depth block that starts at l. */
static int64_t panel_offset(int64_t padded, int64_t l, int64_t depth, int64_t e)
{
    return l * padded + e * depth;
}

static void pack_item(void *context, int64_t item, int)
{
    const struct job *job = context;
    const struct matmul *mm = job->mm;

    int64_t groups = job->a_groups + job->b_groups;
    int64_t l = item / groups * BLOCK_DEPTH, group = item % groups;
    int64_t depth = min_of(BLOCK_DEPTH, mm->k - l);
    bool is_a = group < job->a_groups;
    int64_t e = (is_a ? group : group - job->a_groups) * PACK_EXTENT;
    int64_t extent = min_of(PACK_EXTENT, (is_a ? mm->m : mm->n) - e);
    int64_t padded = is_a ? job->a_padded : job->b_padded;

    pack(job->simd, is_a ? &mm->a : &mm->b, e, extent, l, depth, is_a ? job->a_width : job->b_width,
         (is_a ? job->a : job->b) + panel_offset(padded, l, depth, e));
}

/* Adds bias, applies ReLU and rounds one row of a block of C into place. */
static void finish_row(const struct matmul *mm, const struct simd *simd, int64_t row,
                       int64_t column, int64_t n, float *sums, const float *bias)
{
    size_t size = kg_dtype_bytes(mm->a.dtype);
    if (mm->bias)
        for (int64_t j = 0; j < n; j++)
            sums[j] += bias[j];
    if (mm->relu)
        for (int64_t j = 0; j < n; j++)
            sums[j] = sums[j] < 0.0f ? 0.0f : sums[j]; /* keeps a NaN */
    simd->encode((char *)mm->c + (size_t)(row * mm->c_stride + column) * size, sums, n,
                 mm->a.dtype);
}

static void block_item(void *context, int64_t item, int thread)
{
    const struct job *job = context;
    const struct matmul *mm = job->mm;
    const struct simd *simd = job->simd;
    float *block = job->block + (int64_t)thread * BLOCK_ROWS * BLOCK_COLUMNS;
    float bias[BLOCK_COLUMNS];

    int64_t row = item % job->row_blocks * job->block_rows;
    int64_t column = item / job->row_blocks * job->block_cols;
    int64_t rows = min_of(job->block_rows, mm->m - row);
    int64_t columns = min_of(job->block_cols, mm->n - column);

    memset(block, 0, (size_t)BLOCK_COLUMNS * BLOCK_ROWS * sizeof(*block));
    for (int64_t l = 0; l < mm->k; l += BLOCK_DEPTH) {
        int64_t depth = min_of(BLOCK_DEPTH, mm->k - l);
        for (int64_t j = 0; j < columns; j += job->b_width) {
            const float *b = job->b + panel_offset(job->b_padded, l, depth, column + j);
            for (int64_t i = 0; i < rows; i += job->a_width)
                simd->tile(depth, job->a + panel_offset(job->a_padded, l, depth, row + i), b,
                           simd->tile_vectors, block + i * BLOCK_COLUMNS + j, BLOCK_COLUMNS);
        }
    }

    if (mm->bias)
        simd->decode(bias, (const char *)mm->bias + (size_t)column * kg_dtype_bytes(mm->a.dtype),
                     columns, mm->a.dtype);
    for (int64_t i = 0; i < rows; i++)
        finish_row(mm, simd, row + i, column, columns, block + i * BLOCK_COLUMNS, bias);
}

/* Halves the blocks of a small C until every thread has a few, or they are one tile. The order
 * of summation within an element stays the same. */
static void choose_blocks(struct job *job, int threads)
{
    const struct matmul *mm = job->mm;
    job->block_rows = BLOCK_ROWS;
    job->block_cols = BLOCK_COLUMNS;
    while (ceil_div(mm->m, job->block_rows) * ceil_div(mm->n, job->block_cols) < 4 * threads) {
        if (job->block_cols % (2 * job->b_width) == 0 && job->block_cols >= job->block_rows)
            job->block_cols /= 2;
        else if (job->block_rows % (2 * job->a_width) == 0)
            job->block_rows /= 2;
        else
            break;
    }
    job->row_blocks = ceil_div(mm->m, job->block_rows);
}

static int64_t padded_extent(int64_t extent)
{
    return ceil_div(extent, PACK_EXTENT) * PACK_EXTENT;
}

uint64_t matmul_workspace_bytes(int64_t m, int64_t n, int64_t k, int threads)
{
    int64_t floats = host_line(padded_extent(m) * k) + host_line(padded_extent(n) * k) +
                     (int64_t)threads * BLOCK_ROWS * BLOCK_COLUMNS;
    return (uint64_t)floats * sizeof(float);
}

void matmul(const struct host *host, const struct matmul *mm, float *workspace)
{
    struct job job = {
        .mm = mm,
        .simd = host->simd,
        .a_width = host->simd->tile_rows,
        .b_width = (int64_t)host->simd->tile_vectors * host->simd->lanes,
        .a_groups = ceil_div(mm->m, PACK_EXTENT),
        .b_groups = ceil_div(mm->n, PACK_EXTENT),
        .a_padded = padded_extent(mm->m),
        .b_padded = padded_extent(mm->n),
    };
    job.a = workspace;
    job.b = job.a + host_line(job.a_padded * mm->k);
    job.block = job.b + host_line(job.b_padded * mm->k);
    choose_blocks(&job, pool_threads(host->pool));

    pool_for(host->pool, ceil_div(mm->k, BLOCK_DEPTH) * (job.a_groups + job.b_groups),
             (mm->m + mm->n) * mm->k, pack_item, &job);
    pool_for(host->pool, job.row_blocks * ceil_div(mm->n, job.block_cols),
             mm->m * mm->n * mm->k / POOL_STEP_PRODUCTS, block_item, &job);
}
