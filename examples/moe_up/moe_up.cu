/* SPDX-License-Identifier: Apache-2.0 */
/* moe_up.cu: the same for a GPU, a thread for each element of C. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_CUDA && p->dtype[0] == KG_F32;
}

static __global__ void multiply(kg_tensor a, kg_tensor b, kg_tensor ends, kg_tensor c)
{
    const int64_t i = (int64_t)blockIdx.x * 8 + threadIdx.y;
    const int64_t j = (int64_t)blockIdx.y * 32 + threadIdx.x;
    const int32_t *offsets = (const int32_t *)ends.data;
    if (i >= c.shape[0] || j >= c.shape[1])
        return;
    int64_t g = 0;
    while (offsets[g + 1] <= i)
        g++;
    const float *row = (const float *)a.data + i * a.stride[0];
    const float *column = (const float *)b.data + g * b.stride[0] + j;
    float sum = 0;
    for (int64_t l = 0; l < a.shape[1]; l++)
        sum += row[l] * column[l * b.stride[1]];
    ((float *)c.data)[i * c.stride[0] + j] = sum;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const dim3 block(32, 8),
        grid((unsigned)((kg_size(p, "m") + 7) / 8), (unsigned)((kg_size(p, "n") + 31) / 32));
    multiply<<<grid, block, 0, (cudaStream_t)args->stream>>>(args->in[0], args->in[1], args->in[2],
                                                             args->out[0]);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_CUDA, "moe_up", supports, launch)
