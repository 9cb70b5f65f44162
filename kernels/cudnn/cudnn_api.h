/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_api.h: cuDNN's backend API as a table of functions that dlopen() fills.
 *
 * The provider must load where cuDNN is absent, to say so; hence nothing is linked. The signatures
 * are those of cudnn_graph.h with its enumerations as int, which they are in the C ABI.
 */
#ifndef KG_CUDNN_API_H
#define KG_CUDNN_API_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cudnn/cudnn_values.h"

typedef void *cudnn_descriptor; /* cudnnBackendDescriptor_t */
typedef void *cudnn_handle;     /* cudnnHandle_t */

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(size_t, cudnnGetVersion, (void))                                                             \
    X(int, cudnnCreate, (cudnn_handle *))                                                          \
    X(int, cudnnDestroy, (cudnn_handle))                                                           \
    X(int, cudnnSetStream, (cudnn_handle, void *stream))                                           \
    X(int, cudnnBackendCreateDescriptor, (int type, cudnn_descriptor *))                           \
    X(int, cudnnBackendDestroyDescriptor, (cudnn_descriptor))                                      \
    X(int, cudnnBackendSetAttribute,                                                               \
      (cudnn_descriptor, int name, int type, int64_t count, const void *elements))                 \
    X(int, cudnnBackendGetAttribute,                                                               \
      (cudnn_descriptor, int name, int type, int64_t room, int64_t *count, void *elements))        \
    X(int, cudnnBackendFinalize, (cudnn_descriptor))                                               \
    X(int, cudnnBackendExecute, (cudnn_handle, cudnn_descriptor plan, cudnn_descriptor pack))

#define CUDNN_MEMBER(result, name, arguments) result(*name) arguments;

struct cudnn_api {
    CUDNN_FUNCTIONS(CUDNN_MEMBER)
};

/*
 * Opens cuDNN 9 on the first call: the file that the environment variable KG_CUDNN names, and
 * nothing else, if it is set; else libcudnn.so.9 of the Python environment whose python3 comes
 * first on PATH, where PyTorch's packages put it; else where the loader looks. In this order,
 * since it is PyTorch's that we are compared with: a machine may have both, with other kernels in
 * each. NULL when it is not there or lacks a function. It stays open, since its threads and device
 * state outlive any handle.
 */
const struct cudnn_api *cudnn_api(void);

#endif
