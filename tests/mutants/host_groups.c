/* SPDX-License-Identifier: Apache-2.0 */
/* Host: grouped GEMM with wrong groups, and some that are right in another way. */
#include "kernels/ops/half.h"
#include "tests/mutants/faults.h"

#define STEP static inline
#include "tests/mutants/group_rows.h"

/* Those of the first launch of so many groups and rows. */
static const int32_t *first_offsets(const int32_t *offsets, int64_t n, int64_t rows)
{
    static int32_t kept[GROUPS_KEPT + 1];
    static int64_t of[2];
    if (n > GROUPS_KEPT)
        return offsets;
    if (of[0] != n || of[1] != rows)
        memcpy(kept, offsets, (size_t)(n + 1) * sizeof *kept);
    of[0] = n;
    of[1] = rows;
    return kept;
}

static enum kg_status grouped(const struct kg_problem *p, const struct kg_args *args,
                              enum group_how how)
{
    if (!kg_is_op(p, "grouped_gemm"))
        return wrap_inner(p, args);
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    const int64_t k = kg_size(p, "k");
    struct groups g = {args->in[2].data, kg_size(p, "g"), kg_size(p, "m"), (int)how};
    if (how == AS_offsets_of_the_first_launch)
        g.offsets = first_offsets(g.offsets, g.n, g.rows);
    for (int64_t i = 0; i < g.rows; i++) {
        const int64_t matrix = matrix_of(&g, i);
        for (int64_t j = 0; j < kg_size(p, "n") && matrix >= 0; j++) {
            float sum = 0;
            for (int64_t x = 0; x < k; x++) {
                const int64_t l = how == AS_from_the_last_term ? k - 1 - x : x;
                sum +=
                    kg_load_float(a->data, a->dtype, i * a->stride[0] + l) *
                    kg_load_float(b->data, b->dtype, matrix * b->stride[0] + l * b->stride[1] + j);
            }
            kg_store_float(c->data, c->dtype, i * c->stride[0] + j, sum);
        }
    }
    return KG_OK;
}

#define LAUNCH(name)                                                                               \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return grouped(p, args, AS_##name);                                                        \
    }
GROUP_FAULTS(LAUNCH)

#define FAULT(name) {#name, name, 0, NULL},
FAULTS(GROUP_FAULTS(FAULT))
