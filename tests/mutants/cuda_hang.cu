/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right, and then a kernel that never ends. */
#include <cuda_runtime.h>

#include "tests/mutants/wrap.h"

static __global__ void never_ends(volatile int *word)
{
    while (*word != 0x5eed)
        continue;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    enum kg_status status = wrap_inner(p, args);
    never_ends<<<1, 1, 0, (cudaStream_t)args->stream>>>((volatile int *)args->in[0].data);
    return status;
}
