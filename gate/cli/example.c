/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/example.h"

struct example example_choose(bool has_gpu, bool has_nvcc)
{
    const char *host = "build/libmykernels.so", *cuda = "build/libmykernels_cuda.so";
    if (has_gpu && has_nvcc)
        return (struct example){cuda, ""};
    return (struct example){host, has_gpu ? " --device host" : ""};
}
