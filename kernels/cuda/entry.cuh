/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.cuh: functions of a kernel table from functions that take the sizes as members.
 *
 *     const struct kg_kernel my_kernel = {
 *         sizeof(struct kg_kernel), 0, "gemm", "my_kernel", supports_as<product_sizes, supports>,
 *         NULL, NULL, launch_as<product_sizes, launch>, NULL,
 *     };
 */
#ifndef KG_CUDA_ENTRY_CUH
#define KG_CUDA_ENTRY_CUH

#include "kernels/ops/attention_sizes.h"
#include "kernels/ops/product_sizes.h"

static inline bool read_sizes(const struct kg_problem *p, struct attention_sizes *s)
{
    *s = attention_sizes_of(p);
    return kg_is_op(p, "attention_fwd") || kg_is_op(p, "attention_bwd");
}

static inline bool read_sizes(const struct kg_problem *p, struct product_sizes *s)
{
    *s = product_sizes_of(p);
    return p->struct_bytes >= sizeof(*p);
}

template <typename S, int F(const S *, const struct kg_device *)>
int supports_as(const struct kg_problem *p, const struct kg_device *device)
{
    S s;
    return read_sizes(p, &s) && F(&s, device);
}

template <typename S, enum kg_status F(const S *, const struct kg_device *)>
enum kg_status prepare_as(const struct kg_problem *p, const struct kg_device *device, void **)
{
    S s;
    return read_sizes(p, &s) ? F(&s, device) : KG_BAD_ARGUMENT;
}

template <typename S, uint64_t F(const S *, const struct kg_device *)>
uint64_t workspace_as(const struct kg_problem *p, const struct kg_device *device, void *)
{
    S s;
    return read_sizes(p, &s) ? F(&s, device) : 0;
}

template <typename S, enum kg_status F(const S *, const struct kg_args *)>
enum kg_status launch_as(const struct kg_problem *p, const struct kg_args *args)
{
    S s;
    return read_sizes(p, &s) ? F(&s, args) : KG_BAD_ARGUMENT;
}

#endif
