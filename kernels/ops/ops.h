/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: the list of all ops. */
#ifndef KG_OPS_OPS_H
#define KG_OPS_OPS_H

#include "kernels/ops/op.h"

extern const struct op op_attention_fwd, op_gemm, op_gemv, op_linear_relu, op_linear_relu_bwd;

static const struct op *const ops[] = {
    &op_attention_fwd, &op_gemm, &op_gemv, &op_linear_relu, &op_linear_relu_bwd, NULL,
};

#endif
