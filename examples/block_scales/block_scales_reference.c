/* SPDX-License-Identifier: Apache-2.0 */
/* block_scales_reference.c: what block_scales.op.json means. All tensors are dense doubles. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p, (void)device;
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const double *x = args->in[0].data, *q = args->in[1].data, *s = args->in[2].data;
    double *y = args->out[0].data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            y[i * n + j] = 0;
            for (int64_t l = 0; l < k; l++)
                y[i * n + j] += x[i * k + l] * q[j * k + l] * s[(j * k + l) / 32];
        }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "block_scales", supports, launch)
