/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_reference.c: what softmax.op.json means. All tensors are dense and of doubles. */
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
    const double *x = args->in[0].data;
    double *y = args->out[0].data;
    for (int64_t i = 0; i < m; i++, x += n, y += n) {
        double most = x[0], sum = 0;
        for (int64_t j = 1; j < n; j++)
            most = fmax(most, x[j]);
        for (int64_t j = 0; j < n; j++)
            sum += y[j] = exp(x[j] - most);
        for (int64_t j = 0; j < n; j++)
            y[j] /= sum;
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "softmax", supports, launch)
