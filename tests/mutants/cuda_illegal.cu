/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: writes far outside of every allocation, which spoils the context. */
#include <cuda_runtime.h>

#include "tests/mutants/wrap.h"

static __global__ void write_outside(void)
{
    *(volatile int *)0xdead0000 = 1;
}

static enum kg_status wrap_launch(const struct kg_problem *, const struct kg_args *args)
{
    write_outside<<<1, 1, 0, (cudaStream_t)args->stream>>>();
    return KG_OK;
}
