/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublas_api.h: cuBLAS and cuBLASLt as a table of functions that dlopen() fills.
 *
 * The provider must load where cuBLAS is absent, to say so; hence nothing is linked. The types come
 * from cuBLAS's own headers, so that a changed signature does not compile.
 */
#ifndef KG_CUBLAS_API_H
#define KG_CUBLAS_API_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdbool.h>

#include "kernels/kernel.h"

/* The headers map some names to versioned ones by macros (cublasCreate is cublasCreate_v2). Members
 * and symbols are made from the mapped names, so they are the version that the headers describe. */
#define CUBLAS_FUNCTIONS(X)                                                                        \
    X(cublasCreate)                                                                                \
    X(cublasDestroy)                                                                               \
    X(cublasSetStream)                                                                             \
    X(cublasSetWorkspace)                                                                          \
    X(cublasSetMathMode)                                                                           \
    X(cublasGemmEx)                                                                                \
    X(cublasSgemv)

#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtMatmul)                                                                              \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulDescInit_internal)                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatmulPreferenceInit_internal)                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatrixLayoutInit_internal)                                                           \
    X(cublasLtMatrixLayoutSetAttribute)

#define CUBLAS_MEMBER(name) __typeof__(&name) name;

/* A call reads api->cublasCreate(...): the header's macro makes the member's name of that as well.
 */
struct cublas_api {
    CUBLAS_FUNCTIONS(CUBLAS_MEMBER)
    CUBLASLT_FUNCTIONS(CUBLAS_MEMBER)
};

/* Opens the libraries on the first call: by soname, major version 13 before 12, wherever the
 * loader looks, then in the toolkit's usual folder. NULL when they are not there or lack a
 * function. They stay open, since their threads and device state outlive any handle. */
const struct cublas_api *cublas_api(void);

/* What cuBLAS answers, as kernel.h says it. */
enum kg_status cublas_status(cublasStatus_t status);

/* Returns from the calling function when `call` fails. The one way to call cuBLAS here. */
#define CUBLAS_TRY(call)                                                                           \
    do {                                                                                           \
        const cublasStatus_t cublas_try_status_ = (call);                                          \
        if (cublas_try_status_ != CUBLAS_STATUS_SUCCESS)                                           \
            return cublas_status(cublas_try_status_);                                              \
    } while (0)

#endif
