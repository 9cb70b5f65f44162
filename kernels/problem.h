/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h: what most kernels ask about a problem and its tensors. Header only, C11 and C++17.
 *
 *     static int supports(const struct kg_problem *p, const struct kg_device *d)
 *     {
 *         return d->kind == KG_DEVICE_CUDA && kg_is_op(p, "gemm") && kg_size(p, "k") % 8 == 0 &&
 *                kg_dtype(p) == KG_F16;
 *     }
 */
#ifndef KG_PROBLEM_H
#define KG_PROBLEM_H

#include <string.h>

#include "kernel.h"

static inline int kg_is_op(const struct kg_problem *p, const char *op)
{
    return p->struct_bytes >= sizeof(*p) && !strcmp(p->op, op);
}

/* The size of that name; 0: the op has none such. */
static inline int64_t kg_size(const struct kg_problem *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_sizes; i++)
        if (!strcmp(p->size[i].name, name))
            return p->size[i].value;
    return 0;
}

/* The parameter of that name; 0: the op has none such. */
static inline double kg_param(const struct kg_problem *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_params; i++)
        if (!strcmp(p->param[i].name, name))
            return p->param[i].value;
    return 0;
}

/* The dtype of all tensors; 0: they differ. */
static inline uint32_t kg_dtype(const struct kg_problem *p)
{
    for (uint32_t i = 1; i < p->n_in + p->n_out; i++)
        if (p->dtype[i] != p->dtype[0])
            return 0;
    return p->dtype[0];
}

/* Bits of an element; 0: an unknown dtype. */
static inline unsigned kg_dtype_bits(uint32_t dtype)
{
    switch (dtype) {
    case KG_E2M1:
    case KG_I4:
        return 4;
    case KG_E4M3:
    case KG_E5M2:
    case KG_E8M0:
    case KG_I8:
    case KG_BOOL:
        return 8;
    case KG_F16:
    case KG_BF16:
        return 16;
    case KG_F32:
    case KG_I32:
        return 32;
    case KG_F64:
    case KG_I64:
        return 64;
    default:
        return 0;
    }
}

/* Bytes of an element of 8 bits or more; 0: an unknown dtype, or one of 4 bits. */
static inline size_t kg_dtype_bytes(uint32_t dtype)
{
    return kg_dtype_bits(dtype) / 8;
}

static inline int64_t kg_elements(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

/* Row-major without gaps? The stride of an axis of one element says nothing. */
static inline int kg_is_dense(const struct kg_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t r = t->rank; r-- > 0;) {
        if (t->shape[r] > 1 && t->stride[r] != stride)
            return 0;
        stride *= t->shape[r];
    }
    return 1;
}

/* Do the tensor and all its rows begin at multiples of `bytes`? */
static inline int kg_is_aligned(const struct kg_tensor *t, size_t bytes)
{
    size_t all = (size_t)t->data;
    for (uint32_t r = 0; r + 1 < t->rank; r++)
        if (t->shape[r] > 1)
            all |= (size_t)t->stride[r] * kg_dtype_bits(t->dtype) / 8;
    return all % bytes == 0;
}

/* Is it memory of this dtype and rank, whose elements of a row are neighbours? */
static inline int kg_is_tensor(const struct kg_tensor *t, uint32_t dtype, uint32_t rank)
{
    return t->data && t->dtype == dtype && t->rank == rank && t->stride[rank - 1] == 1;
}

/* Does the call have the tensors of the problem, of its dtypes? */
static inline int kg_is_call(const struct kg_problem *p, const struct kg_args *args)
{
    if (args->struct_bytes < sizeof(*args) || args->n_in != p->n_in || args->n_out != p->n_out)
        return 0;
    for (uint32_t i = 0; i < p->n_in + p->n_out; i++) {
        const struct kg_tensor *t = i < p->n_in ? &args->in[i] : &args->out[i - p->n_in];
        if (!t->rank || t->rank > KG_MAX_RANK || !kg_is_tensor(t, p->dtype[i], t->rank))
            return 0;
    }
    return 1;
}

/* The file of that name among those that open() was given; NULL: there is none. */
static inline const struct kg_file *kg_file(const struct kg_file *files, const char *name)
{
    for (; files && files->name; files++)
        if (!strcmp(files->name, name))
            return files;
    return NULL;
}

/* A whole library of one kernel, as of a reference. */
#define KG_LIBRARY_OF_ONE(device, op, supports, launch)                                            \
    static const struct kg_kernel kg_the_kernel = {                                                \
        sizeof(struct kg_kernel), 0, op, op, supports, NULL, NULL, launch, NULL};                  \
    static const struct kg_kernel *const kg_the_kernels[] = {&kg_the_kernel};                      \
    static const struct kg_library kg_the_library = {sizeof(struct kg_library),                    \
                                                     KG_ABI_VERSION,                               \
                                                     "mine",                                       \
                                                     "1.0",                                        \
                                                     device,                                       \
                                                     1,                                            \
                                                     kg_the_kernels,                               \
                                                     NULL,                                         \
                                                     NULL};                                        \
    const struct kg_library *kg_library(void)                                                      \
    {                                                                                              \
        return &kg_the_library;                                                                    \
    }

/* In CUDA, code for each of the usual floating-point dtypes: KG_DISPATCH(dtype, launch_of) calls
 * launch_of(__half), launch_of(__nv_bfloat16) or launch_of(float), a macro of yours; the two
 * headers of CUDA that have these types come before. */
#define KG_DISPATCH(dtype, USE)                                                                    \
    switch (dtype) {                                                                               \
    case KG_F16:                                                                                   \
        USE(__half);                                                                               \
        break;                                                                                     \
    case KG_BF16:                                                                                  \
        USE(__nv_bfloat16);                                                                        \
        break;                                                                                     \
    case KG_F32:                                                                                   \
        USE(float);                                                                                \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

#endif
