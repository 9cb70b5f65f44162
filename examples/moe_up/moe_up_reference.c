/* SPDX-License-Identifier: Apache-2.0 */
/* moe_up_reference.c: what moe_up.op.json means. All tensors are dense doubles. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p, (void)device;
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const double *a = args->in[0].data, *b = args->in[1].data, *offsets = args->in[2].data;
    double *c = args->out[0].data;
    for (int64_t i = 0, g = 0; i < m; i++) {
        while ((double)i >= offsets[g + 1])
            g++;
        for (int64_t j = 0; j < n; j++) {
            c[i * n + j] = 0;
            for (int64_t l = 0; l < k; l++)
                c[i * n + j] += a[i * k + l] * b[(g * k + l) * n + j];
        }
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "moe_up", supports, launch)
