/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right, and slower than `cuda_side_by_side`, whose machine code it has. */
#define SIDE_BY_SIDE false
#include "tests/mutants/cuda_halves.cuh"
