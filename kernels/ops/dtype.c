/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/dtype.h"

#include <stddef.h>
#include <string.h>

#include "kernels/ops/op.h"

const struct dtype dtypes[DTYPES] = {
    {"fp16", KG_F16, 0, 2, 10, 10, -14, 65504, 6e-4, RATE_FP16, 100},
    {"bf16", KG_BF16, 0, 2, 7, 7, -126, 0x1.fep127, 4e-3, RATE_BF16, 100},
    {"fp32", KG_F32, 0, 4, 23, 23, -126, 0x1.fffffep127, 1e-5, RATE_FP32, 8},
    /* Products of factors with 10-bit mantissas: 3e-4 rounded, 6e-4 truncated. */
    {"tf32", KG_F32, KG_FLAG_TF32, 4, 23, 10, -126, 0x1.fffffep127, 1e-3, RATE_TF32, 50},
    {"e4m3", KG_E4M3, 0, 1, 3, 3, -6, 448, 6e-2, RATE_FP8, 200},
    {"e5m2", KG_E5M2, 0, 1, 2, 2, -14, 57344, 1.2e-1, RATE_FP8, 200},
};

const struct dtype *dtype_of(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    const uint32_t code = op_dtype(p);
    for (unsigned i = 0; op && i < op->n_rows; i++)
        if (!(p->flags & KG_FLAG_TF32) &&
            !memcmp(p->dtype, op->row_dtypes[i], op->n_tensors * sizeof *p->dtype))
            return &op->rows[i];
    if (op && op->rows)
        return NULL;
    for (unsigned i = 0; i < DTYPES; i++)
        if (dtypes[i].code == code && dtypes[i].flags == (p->flags & KG_FLAG_TF32))
            return &dtypes[i];
    return NULL;
}

const struct dtype *dtype_by_name(const char *name)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (!strcmp(dtypes[i].name, name))
            return &dtypes[i];
    return NULL;
}

const struct dtype *dtype_stored(uint32_t code)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (dtypes[i].code == code)
            return &dtypes[i];
    return NULL;
}
