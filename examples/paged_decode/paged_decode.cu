/* SPDX-License-Identifier: Apache-2.0 */
/* paged_decode.cu: the same for a GPU, a warp for each head of a sequence. */
#include "problem.h"

#define COLUMNS 4 /* of a lane, since d is at most 128 */

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_CUDA && p->dtype[0] == KG_F32;
}

static __device__ float over_warp(float value)
{
    for (int by = 16; by > 0; by /= 2)
        value += __shfl_xor_sync(~0u, value, by);
    return value;
}

/* A head of a sequence, in one pass over its keys. */
static __global__ void attend(kg_tensor q, kg_tensor k, kg_tensor v, kg_tensor table,
                              kg_tensor lengths, kg_tensor o)
{
    const int64_t s = blockIdx.x / q.shape[1], h = blockIdx.x % q.shape[1];
    const int64_t d = q.shape[2], page = k.shape[1];
    const int64_t length = ((const int32_t *)lengths.data)[s];
    const int32_t *row = (const int32_t *)table.data + s * table.stride[0];
    const float *query = (const float *)q.data + s * q.stride[0] + h * q.stride[1];
    float *out = (float *)o.data + s * o.stride[0] + h * o.stride[1];
    float most = -INFINITY, sum = 0, mine[COLUMNS] = {};
    for (int64_t i = 0; i < length; i++) {
        const int64_t block = row[i / page], at = i % page;
        const float *key =
            (const float *)k.data + block * k.stride[0] + at * k.stride[1] + h * k.stride[2];
        const float *value =
            (const float *)v.data + block * v.stride[0] + at * v.stride[1] + h * v.stride[2];
        float score = 0;
        for (int64_t c = threadIdx.x; c < d; c += 32)
            score += query[c] * key[c];
        score = over_warp(score) / sqrtf((float)d);
        const float now = fmaxf(most, score), old = expf(most - now), share = expf(score - now);
        for (int64_t n = 0, c = threadIdx.x; c < d; n++, c += 32)
            mine[n] = mine[n] * old + share * value[c];
        sum = sum * old + share;
        most = now;
    }
    for (int64_t n = 0, c = threadIdx.x; c < d; n++, c += 32)
        out[c] = mine[n] / sum;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const unsigned heads = (unsigned)(kg_size(p, "b") * kg_size(p, "h"));
    attend<<<heads, 32, 0, (cudaStream_t)args->stream>>>(args->in[0], args->in[1], args->in[2],
                                                         args->in[3], args->in[4], args->out[0]);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_CUDA, "paged_decode", supports, launch)
