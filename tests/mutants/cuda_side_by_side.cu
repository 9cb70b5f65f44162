/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right; what `cuda_in_a_row` is held to. */
#define SIDE_BY_SIDE true
#include "tests/mutants/cuda_halves.cuh"
