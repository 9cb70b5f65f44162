/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: what cuda_nodes.cu is slower than. */
#define PLAIN 1
#include "tests/mutants/cuda_nodes.cu"
