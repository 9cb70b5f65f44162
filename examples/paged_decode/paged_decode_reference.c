/* SPDX-License-Identifier: Apache-2.0 */
/* paged_decode_reference.c: what paged_decode.op.json means. All tensors are dense doubles. */
#include <math.h>

#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    (void)p, (void)device;
    return 1;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t h = kg_size(p, "h"), t = kg_size(p, "t"), page = kg_size(p, "page"),
                  d = kg_size(p, "d");
    const double *table = args->in[3].data, *lengths = args->in[4].data;
    for (int64_t of = 0; of < kg_size(p, "b") * h; of++) {
        const double *q = (const double *)args->in[0].data + of * d;
        double *o = (double *)args->out[0].data + of * d, sum = 0;
        for (int64_t c = 0; c < d; c++)
            o[c] = 0;
        for (int64_t i = 0; i < (int64_t)lengths[of / h]; i++) {
            const int64_t block = (int64_t)table[of / h * t + i / page];
            const int64_t at = ((block * page + i % page) * h + of % h) * d;
            double score = 0;
            for (int64_t c = 0; c < d; c++)
                score += q[c] * ((const double *)args->in[1].data)[at + c];
            const double share = exp(score / sqrt((double)d));
            sum += share;
            for (int64_t c = 0; c < d; c++)
                o[c] += share * ((const double *)args->in[2].data)[at + c];
        }
        for (int64_t c = 0; c < d; c++)
            o[c] /= sum;
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "paged_decode", supports, launch)
