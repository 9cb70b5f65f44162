/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_gemm.c: C = A B[g] in the rows of group g, as of the experts of a mixture. */
#include <stdlib.h>

#include "kernels/ops/offsets.h"
#include "kernels/ops/product.h"
#include "kernels/ops/rows.h"

enum { A, B, OFFSETS }; /* inputs */
enum { PLACE_G, PLACE_M };

static const struct op_size sizes[] = {
    {.key = "g", .id = "g", .axis = 'g', .kind = OP_COUNT, .at = PLACE_G, .classes = 4, .few = 5},
    OP_SIZE(PLACE_M, m, 'm'),
    OP_SIZE(2, n, 'n'),
    OP_SIZE(3, k, 'k'),
};

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL},
    {"b", "gkn", OP_FACTOR, NULL},
    {"offsets", "G", OP_INDICES, .whole = "m"},
    {"c", "mn", OP_OUT, .whole = "k"},
};

static int64_t length(const struct kg_problem *p, char axis)
{
    return axis == 'G' ? kg_size(p, "g") + 1 : 1;
}

static double flops(const struct kg_problem *p)
{
    return 2.0 * (double)kg_size(p, "m") * (double)kg_size(p, "n") * (double)kg_size(p, "k");
}

/* Those of a part of the rows, and of a suite's own offsets, may lie outside. */
static int64_t offset_of(const struct kg_problem *p, const struct kg_tensor *in, int64_t group)
{
    const int64_t m = kg_size(p, "m"), at = (int64_t)pattern_get(&in[OFFSETS], group);
    return at < 0 ? 0 : at < m ? at : m;
}

static int64_t group_of(const struct kg_problem *p, const struct kg_tensor *in, int64_t row)
{
    int64_t group = 0;
    while (group < kg_size(p, "g") - 1 && offset_of(p, in, group + 1) <= row)
        group++;
    return group;
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    const int64_t n = kg_size(p, "n"), k = kg_size(p, "k");
    double *a = rows_decoded(&in[A]), *b = rows_decoded(&in[B]);
    const enum kg_status status = a && b ? KG_OK : KG_LAUNCH_FAILED;
    for (int64_t g = 0; g < kg_size(p, "g") && status == KG_OK; g++) {
        const int64_t from = offset_of(p, in, g), to = offset_of(p, in, g + 1);
        rows_multiply(
            to > from ? to - from : 0, threads,
            (struct rows_product){
                .a = a + from * k, .b = b + g * k * n, .c = out[0] + from * n, .n = n, .k = k});
    }
    free(a);
    free(b);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                      int64_t flat)
{
    const int64_t n = kg_size(p, "n"), row = flat / n, group = group_of(p, in, row);
    double total = 0;
    for (int64_t l = 0; l < kg_size(p, "k"); l++)
        total += rows_at(&in[A], row, l, 0, 0) * rows_at(&in[B], group, l, flat % n, 0);
    return total;
}

static uint64_t seed_of(const char *id)
{
    uint64_t seed = 0;
    for (; *id; id++)
        seed = seed_at(seed, (unsigned char)*id);
    return seed;
}

static bool fill(const struct kg_problem *p, unsigned tensor, const struct kg_tensor *to, int64_t,
                 const char *id, uint64_t seed)
{
    if (tensor != OFFSETS)
        return false;
    if (to)
        offsets_draw(to, 0, kg_size(p, "g") + 1, kg_size(p, "m"), !id, id ? seed_of(id) : seed);
    return true;
}

/* A row lies in one group. */
static void meet(const struct kg_problem *p, const struct kg_tensor *in, int64_t *place)
{
    place[PLACE_G] = group_of(p, in, place[PLACE_M]);
}

/* What is in B for an empty group does not count. */
static void change(const struct probing *x)
{
    const int64_t row = (int64_t)(seed_at(x->seed, 2) % (uint64_t)kg_size(x->p, "m"));
    struct kg_tensor in[] = {x->in[A], x->in[B], x->in[OFFSETS]}, *b = &in[B];
    if (x->seed % 2 && offsets_change(&x->in[OFFSETS], 0, kg_size(x->p, "g") + 1, x->seed))
        return;
    b->data =
        (char *)b->data + group_of(x->p, x->in, row) * b->stride[0] * kg_dtype_bytes(b->dtype);
    b->shape[0] = 1;
    product_change(&(struct probing){x->probe, x->p, in, x->seed});
}

const struct op op_grouped_gemm = {
    .name = "grouped_gemm",
    .sizes = sizes,
    .n_sizes = sizeof sizes / sizeof sizes[0],
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof tensors[0],
    .id = "gmnk",
    .multilinear = true,
    .flops = flops,
    .cut = 'k',
    .patterns = product_patterns,
    .n_patterns = PRODUCT_PATTERNS_SPECIAL,
    .sharpest = PROBE_INTEGERS,
    .change = change,
    .fixed = {[OFFSETS] = KG_I32},
    .reference = reference,
    .element = element,
    .fill = fill,
    .meet = meet,
    .length = length,
};
