/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_ops.cuh: kernels of ops of one's own in one library; the one that $GATE_MUTANT names is in
 * force.
 *
 * The including file lists them as KERNELS(ROW), with ROW(function that launches it, name), after
 * OPS(ROW), with ROW(op, dtype of its first input, such a function).
 */
#ifndef TESTS_MUTANTS_OWN_OPS_CUH
#define TESTS_MUTANTS_OWN_OPS_CUH

#include <stdio.h>
#include <stdlib.h>

#include "kernels/problem.h"

#define OWN_NUMBER(launch, name) AS_##name,
enum own_how { KERNELS(OWN_NUMBER) };

typedef void own_launch_fn(const kg_problem *, const kg_args *, own_how, cudaStream_t);

#define OWN_DECLARED(op, dtype, launch) static own_launch_fn launch;
OPS(OWN_DECLARED)

struct own_named {
    const char *name;
    own_launch_fn *launch;
    uint32_t dtype;
};

#define OWN_OF(launch, name) {#name, launch, 0},
static const own_named own_kernels[] = {KERNELS(OWN_OF)};

#define OWN_OP(op, dtype, launch) {#op, launch, dtype},
static const own_named own_ops[] = {OPS(OWN_OP)};

#define OWN_COUNT(array) (sizeof(array) / sizeof *(array))

static own_how own_chosen(void)
{
    const char *name = getenv("GATE_MUTANT");
    for (size_t i = 0; i < OWN_COUNT(own_kernels) && name; i++)
        if (!strcmp(own_kernels[i].name, name))
            return (own_how)i;
    fprintf(stderr, "mutant: GATE_MUTANT names no kernel of this library\n");
    abort();
}

/* Has the kernel that is in force this op? */
static int own_supports(const kg_problem *p, const kg_device *device)
{
    for (size_t i = 0; i < OWN_COUNT(own_ops); i++)
        if (kg_is_op(p, own_ops[i].name))
            return device->kind == KG_DEVICE_CUDA && p->dtype[0] == own_ops[i].dtype &&
                   own_ops[i].launch == own_kernels[own_chosen()].launch;
    return 0;
}

static kg_status own_launch(const kg_problem *p, const kg_args *args)
{
    const own_how how = own_chosen();
    own_kernels[how].launch(p, args, how, (cudaStream_t)args->stream);
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

const struct kg_library *kg_library(void)
{
    static kg_kernel kernels[OWN_COUNT(own_ops)];
    static const kg_kernel *table[OWN_COUNT(own_ops)];
    static const struct kg_library library = {sizeof(library), KG_ABI_VERSION, "mutant",
                                              "1.0",           KG_DEVICE_CUDA, OWN_COUNT(table),
                                              table,           NULL,           NULL};
    for (size_t i = 0; i < OWN_COUNT(own_ops); i++) {
        const char *op = own_ops[i].name;
        kernels[i] = {sizeof(kg_kernel), 0, op, op, own_supports, NULL, NULL, own_launch, NULL};
        table[i] = &kernels[i];
    }
    return &library;
}

static __device__ const float *row_of(const kg_tensor &t, int64_t i)
{
    return (const float *)t.data + i * t.stride[0];
}

#endif
