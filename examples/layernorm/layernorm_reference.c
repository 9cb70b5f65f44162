/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm_reference.c: what layernorm.op.json means. All tensors are dense and of doubles. */
#include <math.h>

#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p, (void)device;
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n");
    const double *x = args->in[0].data, *gamma = args->in[1].data, *beta = args->in[2].data;
    double *y = args->out[0].data;
    for (int64_t i = 0; i < m; i++, x += n, y += n) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; j++)
            mean += x[j] / (double)n;
        for (int64_t j = 0; j < n; j++)
            variance += (x[j] - mean) * (x[j] - mean) / (double)n;
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) / sqrt(variance + kg_param(p, "eps")) * gamma[j] + beta[j];
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "layernorm", supports, launch)
