/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: what cuda_pathologies_sm90.cu is slower than. */
#define PLAIN 1
#include "tests/mutants/cuda_pathologies_sm90.cu"
