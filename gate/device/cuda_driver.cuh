/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_driver.cuh: what is asked of the driver about kernel nodes (cuda_kernels.cu).
 */
#ifndef GATE_DEVICE_CUDA_DRIVER_CUH
#define GATE_DEVICE_CUDA_DRIVER_CUH

#include "gate/device/cuda_device.cuh"

#include <cuda.h>

struct cuda_driver {
    CUresult (*node)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *);
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                    const CUDA_KERNEL_NODE_PARAMS_v2 *);
    CUresult (*copy_settings)(CUgraphNode, CUgraphNode);
    CUresult (*function)(CUfunction *, CUkernel);
    CUresult (*name)(const char **, CUfunction);
    CUresult (*attribute)(int *, CUfunction_attribute, CUfunction);
    CUresult (*parameter)(CUfunction, size_t, size_t *, size_t *);
    CUresult (*setting)(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue *);
    CUresult (*pointer)(void *, CUpointer_attribute, CUdeviceptr);
};

/* False: this driver has not all of it. */
bool cuda_driver_load(struct cuda_driver *d);

/* What a kernel node launches, `func` filled in. */
bool cuda_driver_node(const struct cuda_driver *d, cudaGraphNode_t node,
                      CUDA_KERNEL_NODE_PARAMS_v2 *p);

#endif
