/* SPDX-License-Identifier: Apache-2.0 */
/* delta_rule_reference.c: what delta_rule.op.json means. in[5]: the state before. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p, (void)device;
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t K = kg_size(p, "k"), V = kg_size(p, "v");
    const double *q = args->in[0].data, *k = args->in[1].data, *v = args->in[2].data;
    const double *g = args->in[3].data, *beta = args->in[4].data, *before = args->in[5].data;
    double *after = args->out[0].data, *o = args->out[1].data;
    for (int64_t h = 0; h < kg_size(p, "h"); h++, q += K, k += K, before += K * V, after += K * V)
        for (int64_t j = 0; j < V; j++) {
            double known = 0, u;
            for (int64_t i = 0; i < K; i++)
                known += g[h] * before[i * V + j] * k[i];
            u = beta[h] * (v[h * V + j] - known);
            o[h * V + j] = 0;
            for (int64_t i = 0; i < K; i++) {
                after[i * V + j] = g[h] * before[i * V + j] + k[i] * u;
                o[h * V + j] += after[i * V + j] * q[i];
            }
        }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "delta_rule", supports, launch)
