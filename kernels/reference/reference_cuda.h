/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_cuda.h: the fp64 reference of every op, on the device.
 */
#ifndef KG_REFERENCE_CUDA_H
#define KG_REFERENCE_CUDA_H

#include "kernels/kernel.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Enqueues on `stream` the computation of all outputs of `p` as kernel.h defines them, in fp64 from
 * the stored inputs and not rounded at the end. in[]: device memory in the order of kernel.h, any
 * strides whose last one is 1, all of p->dtype. out[i]: device memory for output i, dense
 * row-major, 8 bytes an element. The order of all sums depends on the sizes alone, so repeats are
 * equal to the last bit.
 *
 * cudaErrorInvalidValue: an op without a reference, or of more blocks than a grid has; otherwise
 * the error of a launch. Errors of the execution show up at the next synchronisation.
 */
cudaError_t kg_reference_cuda(const struct kg_problem *p, const struct kg_tensor *in,
                              double *const *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
