/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h: elements of every dtype of kernel.h as numbers: a row each.
 *
 * Loading is exact, for 64-bit integers below 2^53. Storing rounds to nearest, ties to even. What
 * is too large becomes infinity, or the largest number where a dtype has no infinity. E8M0 rounds
 * down to a power of two. A NaN stays one where the dtype has it; else it becomes 0.
 */
#ifndef KG_OPS_STORAGE_H
#define KG_OPS_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops/half.h"

struct storage {
    const char *name; /* in suites and files of ops */
    uint32_t code;    /* enum kg_dtype */
    bool is_float;
    double least, most; /* finite numbers */
};

#define STORAGES 13

extern const struct storage storages[STORAGES];

/* NULL: there is none. */
const struct storage *storage_of(uint32_t code);
const struct storage *storage_by_name(const char *name);

/* Bytes of n elements. */
static inline size_t storage_bytes(uint32_t code, int64_t n)
{
    return ((size_t)n * kg_dtype_bits(code) + 7) / 8;
}

/* Bytes from the first element of a view to its last one. */
size_t storage_span(const struct kg_tensor *t);

/* Element `index` of an array of a dtype that half.h has not. */
double storage_load(const void *data, uint32_t code, int64_t index);
void storage_store(void *data, uint32_t code, int64_t index, double value);

/* Of the numbers that are stored as `value`, the one nearest to `reference`: what rounding to a
 * dtype of 8 bits takes away is large, and no error. Of other dtypes it is the value. */
double storage_nearest(uint32_t code, double value, double reference);

/* Of any dtype. What becomes fp16 or bf16 is rounded to fp32 first. */
static inline void storage_put(void *data, uint32_t code, int64_t index, double value)
{
    if (code <= KG_F32)
        kg_store_float(data, code, index, (float)value);
    else
        storage_store(data, code, index, value);
}

static inline double storage_get(const void *data, uint32_t code, int64_t index)
{
    return code <= KG_F32 ? (double)kg_load_float(data, code, index)
                          : storage_load(data, code, index);
}

#endif
