/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_api.h: cuDNN's backend API: its numbers, a table of functions that dlopen() fills, and the
 * making of descriptors, which are many for one operation.
 *
 * The provider must load where cuDNN is absent, to say so; hence nothing is linked. The signatures
 * are those of cudnn_graph.h with its enumerations as int, which they are in the C ABI.
 */
#ifndef KG_CUDNN_API_H
#define KG_CUDNN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

/*
 * The numbers that this provider uses, and no others. No distribution packages cuDNN's headers, so
 * they are written down here, under NVIDIA's names with a K in front. They are part of its ABI
 * since cuDNN 9.0, the node of attention since 9.13; where the compiler finds the real header,
 * cudnn_api.c compares each with it.
 */
#define CUDNN_VALUES(X)                                                                            \
    X(CUDNN_STATUS_SUCCESS, 0)                                                                     \
    X(CUDNN_DATA_FLOAT, 0)                                                                         \
    X(CUDNN_DATA_HALF, 2)                                                                          \
    X(CUDNN_DATA_INT32, 4)                                                                         \
    X(CUDNN_DATA_BFLOAT16, 9)                                                                      \
    X(CUDNN_DATA_BOOLEAN, 11)                                                                      \
    X(CUDNN_TYPE_HANDLE, 0)                                                                        \
    X(CUDNN_TYPE_DATA_TYPE, 1)                                                                     \
    X(CUDNN_TYPE_BOOLEAN, 2)                                                                       \
    X(CUDNN_TYPE_INT64, 3)                                                                         \
    X(CUDNN_TYPE_VOID_PTR, 6)                                                                      \
    X(CUDNN_TYPE_HEUR_MODE, 8)                                                                     \
    X(CUDNN_TYPE_POINTWISE_MODE, 14)                                                               \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                                           \
    X(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)                                                      \
    X(CUDNN_HEUR_MODE_A, 3)                                                                        \
    X(CUDNN_POINTWISE_ADD, 0)                                                                      \
    X(CUDNN_POINTWISE_MUL, 1)                                                                      \
    X(CUDNN_POINTWISE_DIV, 6)                                                                      \
    X(CUDNN_POINTWISE_SUB, 9)                                                                      \
    X(CUDNN_POINTWISE_EXP, 13)                                                                     \
    X(CUDNN_POINTWISE_LOG, 15)                                                                     \
    X(CUDNN_POINTWISE_IDENTITY, 21)                                                                \
    X(CUDNN_POINTWISE_CMP_GE, 303)                                                                 \
    X(CUDNN_POINTWISE_GEN_INDEX, 501)                                                              \
    X(CUDNN_POINTWISE_BINARY_SELECT, 601)                                                          \
    X(CUDNN_REDUCE_TENSOR_ADD, 0)                                                                  \
    X(CUDNN_REDUCE_TENSOR_MAX, 3)                                                                  \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                                       \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                       \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                                      \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                                  \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                                            \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                                 \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                                   \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                         \
    X(CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                                                         \
    X(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                                               \
    X(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                                                      \
    X(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                                            \
    X(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                                              \
    X(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, 41)                                             \
    X(CUDNN_ATTR_POINTWISE_MODE, 0)                                                                \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                                           \
    X(CUDNN_ATTR_POINTWISE_AXIS, 9)                                                                \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                                             \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                                                  \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                                          \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                                       \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                                               \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                           \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)                                                   \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                                       \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                                          \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                                       \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                                            \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                                           \
    X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                                              \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                                            \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                                           \
    X(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                                                          \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                                    \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                                                 \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                     \
    X(CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                                                           \
    X(CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                                                     \
    X(CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                                                     \
    X(CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                                                     \
    X(CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)                                                      \
    X(CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                                                         \
    X(CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)                                                        \
    X(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)                                                  \
    X(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)                                                  \
    X(CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)                                                   \
    X(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                                                    \
    X(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)                                                    \
    X(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, 2800)                                                   \
    X(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, 2801)                                                   \
    X(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, 2802)                                                   \
    X(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, 2803)                                                   \
    X(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, 2805)

enum {
#define DECLARE(name, value) K##name = (value),
    CUDNN_VALUES(DECLARE)
#undef DECLARE
};

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

/*
 * A list owns the descriptors that are made with it. The first call that cuDNN refuses is kept in
 * `status`, and all calls after it do nothing, so that a caller looks once, at the end.
 */
enum { DESCRIPTORS_MAX = 128 }; /* of a masked backward plan with fewer KV heads: 98 */

struct descriptors {
    int status; /* of cuDNN */
    unsigned count;
    cudnn_descriptor all[DESCRIPTORS_MAX];
};

cudnn_descriptor descriptor_new(struct descriptors *list, int type);
void descriptor_set(struct descriptors *list, cudnn_descriptor d, int name, int type, int64_t count,
                    const void *elements);
void descriptor_set_int(struct descriptors *list, cudnn_descriptor d, int name, int type,
                        int value);
void descriptor_link(struct descriptors *list, cudnn_descriptor d, int name,
                     cudnn_descriptor other);
void descriptor_finish(struct descriptors *list, cudnn_descriptor d);

void descriptors_free(struct descriptors *list);

/* What cuDNN answered, as kernel.h says it. */
enum kg_status descriptors_status(const struct descriptors *list);

#endif
