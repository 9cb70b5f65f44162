/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right, but the launch waits for its own result, which a recorded launch cannot. */
#include <cuda_runtime.h>

#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    enum kg_status status = wrap_inner(p, args);
    return cudaStreamSynchronize((cudaStream_t)args->stream) == cudaSuccess ? status
                                                                            : KG_LAUNCH_FAILED;
}
