/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ceiling.cuh: the tensor cores' part of the ceiling, see cuda_ceiling.cu.
 *
 * A block of CEILING_THREADS threads multiplies A, of CEILING_M rows, with the transposed B, of
 * CEILING_N rows, again and again. A row is CEILING_ROW_BYTES of one type; those of B follow those
 * of A. Each thread writes the sum of the elements of the product that it holds.
 */
#ifndef GATE_DEVICE_CUDA_CEILING_CUH
#define GATE_DEVICE_CUDA_CEILING_CUH

#include <cuda_runtime.h>

enum {
    CEILING_THREADS = 256,
    CEILING_M = 128,
    CEILING_N = 256,
    CEILING_ROW_BYTES = 128,
    CEILING_OPERAND_BYTES = (CEILING_M + CEILING_N) * CEILING_ROW_BYTES,
};

/* What T says: __half, __nv_bfloat16, or float for TF32. Only a device of capability 9.0 runs it:
 * A and B whole, `rounds` times. */
template <typename T>
cudaError_t ceiling_wgmma(const void *operands, unsigned rounds, unsigned blocks, float *sums,
                          cudaStream_t stream);

#endif
