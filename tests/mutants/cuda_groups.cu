/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: grouped GEMM with wrong groups, and some that are right in another way; a thread for each
 * element of C. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/mutants/faults.h"

#define STEP static __device__
#include "tests/mutants/group_rows.h"

static __device__ float load(const kg_tensor &t, int64_t at)
{
    return t.dtype == KG_F16    ? __half2float(((const __half *)t.data)[at])
           : t.dtype == KG_BF16 ? __bfloat162float(((const __nv_bfloat16 *)t.data)[at])
                                : ((const float *)t.data)[at];
}

static __device__ void store(const kg_tensor &t, int64_t at, float value)
{
    if (t.dtype == KG_F16)
        ((__half *)t.data)[at] = __float2half_rn(value);
    else if (t.dtype == KG_BF16)
        ((__nv_bfloat16 *)t.data)[at] = __float2bfloat16_rn(value);
    else
        ((float *)t.data)[at] = value;
}

/* Those of the first launch of so many groups and rows. */
static __device__ int32_t kept[GROUPS_KEPT + 1];
static __device__ int64_t kept_of[2];

static __global__ void keep_first(const int32_t *offsets, int64_t n, int64_t rows)
{
    if (kept_of[0] == n && kept_of[1] == rows)
        return;
    for (int64_t i = 0; i <= n; i++)
        kept[i] = offsets[i];
    kept_of[0] = n;
    kept_of[1] = rows;
}

static __global__ void multiply(const kg_tensor a, const kg_tensor b, const kg_tensor c,
                                struct groups g)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t n = c.shape[1], k = a.shape[1], i = at / n, j = at % n;
    float sum = 0;
    if (i >= g.rows)
        return;
    if (g.how == AS_offsets_of_the_first_launch && g.n <= GROUPS_KEPT)
        g.offsets = kept;
    const int64_t matrix = matrix_of(&g, i);
    if (matrix < 0)
        return;
    for (int64_t x = 0; x < k; x++) {
        const int64_t l = g.how == AS_from_the_last_term ? k - 1 - x : x;
        sum += load(a, i * a.stride[0] + l) * load(b, matrix * b.stride[0] + l * b.stride[1] + j);
    }
    store(c, i * c.stride[0] + j, sum);
}

static enum kg_status grouped(const struct kg_problem *p, const struct kg_args *args,
                              enum group_how how)
{
    if (!kg_is_op(p, "grouped_gemm"))
        return wrap_inner(p, args);
    const struct groups g = {(const int32_t *)args->in[2].data, kg_size(p, "g"), kg_size(p, "m"),
                             (int)how};
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (how == AS_offsets_of_the_first_launch && g.n <= GROUPS_KEPT)
        keep_first<<<1, 1, 0, stream>>>(g.offsets, g.n, g.rows);
    multiply<<<(unsigned)((g.rows * kg_size(p, "n") + 255) / 256), 256, 0, stream>>>(
        args->in[0], args->in[1], args->out[0], g);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

#define LAUNCH(name)                                                                               \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return grouped(p, args, AS_##name);                                                        \
    }
GROUP_FAULTS(LAUNCH)

#define FAULT(name) {#name, name, 0, NULL},
FAULTS(GROUP_FAULTS(FAULT))
