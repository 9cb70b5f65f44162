/* SPDX-License-Identifier: Apache-2.0 */
/* delta_rule.cu: the same for a GPU, a thread for each column of a head's state. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_CUDA && kg_dtype(p) == KG_F32;
}

/* Row h of a tensor. */
static __device__ float *row(const kg_tensor &t, int64_t h)
{
    return (float *)t.data + h * t.stride[0];
}

static __global__ void step(kg_tensor q, kg_tensor key, kg_tensor value, kg_tensor gate,
                            kg_tensor rate, kg_tensor state, kg_tensor out)
{
    const int64_t h = blockIdx.x, j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    const float *k = row(key, h), g = ((float *)gate.data)[h], beta = ((float *)rate.data)[h];
    if (j >= value.shape[1])
        return;
    float *s = row(state, h) + j, known = 0, o = 0;
    for (int64_t i = 0; i < key.shape[1]; i++)
        known += s[i * state.stride[1]] * k[i];
    const float u = beta * (row(value, h)[j] - g * known);
    for (int64_t i = 0; i < key.shape[1]; i++, s += state.stride[1]) {
        *s = g * *s + k[i] * u;
        o += *s * row(q, h)[i];
    }
    row(out, h)[j] = o;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const dim3 grid((unsigned)kg_size(p, "h"), (unsigned)((kg_size(p, "v") + 127) / 128));
    step<<<grid, 128, 0, (cudaStream_t)args->stream>>>(args->in[0], args->in[1], args->in[2],
                                                       args->in[3], args->in[4], args->out[0],
                                                       args->out[1]);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_CUDA, "delta_rule", supports, launch)
