/* SPDX-License-Identifier: Apache-2.0 */
/* attention_paged.c: a query of a head at a time, in one pass over its keys, summed in fp64. */
#include <math.h>
#include <string.h>

#include "kernels/host/host.h"

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    return (uint64_t)(device->sm_count * 4 * host_line(kg_size(p, "d"))) * sizeof(float);
}

struct job {
    const struct simd *simd;
    const struct kg_args *args;
    int64_t group, page, sq, heads, d;
    float scale;
    float *lines; /* of the threads: a query, a key or a value, and the sum, of fp64 */
};

static char *row_at(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c)
{
    return (char *)t->data + (size_t)(a * t->stride[0] + b * t->stride[1] + c * t->stride[2]) *
                                 kg_dtype_bytes(t->dtype);
}

static void query_item(void *context, int64_t item, int thread)
{
    const struct job *job = context;
    const struct kg_tensor *in = job->args->in, *o = &job->args->out[0];
    const int64_t h = item % job->heads, i = item / job->heads % job->sq,
                  b = item / job->heads / job->sq, d = job->d;
    const int32_t *table = (const int32_t *)in[3].data + b * in[3].stride[0];
    const int64_t seen = ((const int32_t *)in[4].data)[b] - job->sq + i + 1;
    float *q = job->lines + thread * 4 * host_line(d), *line = q + host_line(d), most = -INFINITY;
    double *sum = (double *)(line + host_line(d)), weights = 0;

    job->simd->decode(q, row_at(&in[0], b, i, h), d, in[0].dtype);
    memset(sum, 0, (size_t)d * sizeof(*sum));
    for (int64_t j = 0; j < seen; j++) {
        const int64_t block = table[j / job->page], at = j % job->page;
        job->simd->decode(line, row_at(&in[1], block, at, h / job->group), d, in[1].dtype);
        const float score = job->simd->dot(line, KG_F32, q, d) * job->scale;
        const float now = fmaxf(most, score), old = expf(most - now), weight = expf(score - now);
        job->simd->decode(line, row_at(&in[2], block, at, h / job->group), d, in[2].dtype);
        for (int64_t c = 0; c < d; c++)
            sum[c] = sum[c] * (double)old + (double)(weight * line[c]);
        weights = weights * (double)old + (double)weight;
        most = now;
    }
    for (int64_t c = 0; c < d; c++)
        line[c] = seen > 0 ? (float)(sum[c] / weights) : 0;
    job->simd->encode(row_at(o, b, i, h), line, d, o->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    const int64_t queries = kg_size(p, "b") * kg_size(p, "sq") * kg_size(p, "h");
    struct job job = {host->simd,
                      args,
                      kg_size(p, "h") / kg_size(p, "kv_heads"),
                      kg_size(p, "page"),
                      kg_size(p, "sq"),
                      kg_size(p, "h"),
                      kg_size(p, "d"),
                      (float)kg_param(p, "scale"),
                      args->workspace};
    pool_for(host->pool, queries, queries * kg_size(p, "t") * job.page * job.d / 4, query_item,
             &job);
    return KG_OK;
}

HOST_KERNEL(attention_paged, host_supports);
