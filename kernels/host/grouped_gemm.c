/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_gemm.c: C = A B[g] in the rows of each group, a blocked product of matmul.c each. */
#include <stddef.h>

#include "kernels/host/matmul.h"

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    return matmul_workspace_bytes(kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"),
                                  device->sm_count);
}

/* That of a row, or of a group's matrix. */
static void *place(const struct kg_tensor *t, int64_t at)
{
    return (char *)t->data + (size_t)(at * t->stride[0]) * kg_dtype_bytes(t->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    const int32_t *offsets = args->in[2].data;
    struct matmul mm = {
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .a = operand_of(a, true),
        .b = operand_of(b, false),
        .c_stride = c->stride[0],
    };
    for (int64_t g = 0; g < kg_size(p, "g"); g++) {
        mm.m = offsets[g + 1] - offsets[g];
        mm.a.data = place(a, offsets[g]);
        mm.b.data = place(b, g);
        mm.c = place(c, offsets[g]);
        if (mm.m > 0)
            matmul(host, &mm, args->workspace);
    }
    return KG_OK;
}

HOST_KERNEL(grouped_gemm, host_supports);
