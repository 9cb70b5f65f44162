/* SPDX-License-Identifier: Apache-2.0 */
/* scales.cu: see provider.h. */
#include "kernels/cublas/provider.h"
#include "kernels/cuda/launch.cuh"

/* SA[m, K] to a[K, m]; SB[N, K] to b[N, K] with rows of a multiple of four, which are zeros. */
static __global__ void arrange(const float *sa, int64_t leading_a, int64_t m, const float *sb,
                               int64_t leading_b, int64_t n, int64_t k, float *a, float *b)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, row = (k + 3) / 4 * 4;
    if (at < m * k)
        a[at] = sa[at % m * leading_a + at / m];
    if (at < n * row)
        b[at] = at % row < k ? sb[at / row * leading_b + at % row] : 0.0f;
}

enum kg_status arrange_scales(const struct kg_tensor *sa, const struct kg_tensor *sb, float *a,
                              float *b, void *stream)
{
    const int64_t m = sa->shape[0], n = sb->shape[0], k = sa->shape[1];
    const int64_t of_a = m * k, of_b = n * ((k + 3) / 4 * 4), all = of_a > of_b ? of_a : of_b;
    return launch_kernel(arrange, dim3((unsigned)((all + 255) / 256)), dim3(256), 0, stream,
                         (const float *)sa->data, leading_of(sa), m, (const float *)sb->data,
                         leading_of(sb), n, k, a, b);
}
