/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_map.h: tensor maps, by which the copy engine (TMA) of compute capability 9.0 knows a
 * tensor.
 *
 * Maps are made at each launch and given to the kernel as __grid_constant__ parameters of their
 * own, so that nothing is kept between launches.
 */
#ifndef KG_TENSOR_MAP_H
#define KG_TENSOR_MAP_H

#include "kernels/kernel.h"

#include <cuda.h>

/* A tensor of up to 5 dimensions, innermost first, and the box of it that one copy moves. */
struct tensor_map_shape {
    int rank;
    int64_t size[5];   /* elements */
    int64_t stride[5]; /* elements; [0] is 1. That of a dimension of one is not looked at */
    int box[5];        /* elements; the innermost 128 bytes or less, the others 256 or less */
    int tf32; /* fp32 elements are rounded to TF32 on their way, to nearest, ties to even */
};

/* Finds the driver's function. For prepare(): KG_UNSUPPORTED where the driver has none. */
enum kg_status tensor_map_open(void);

/*
 * Makes the map of elements of `dtype` at `data`, aligned to 16 bytes. Shared memory gets the
 * 128-byte swizzle (descriptor.cuh). What lies outside of the tensor is read as zeros and not
 * written. KG_UNSUPPORTED for what TMA cannot do: strides that are no multiples of 16 bytes.
 */
enum kg_status tensor_map_encode(CUtensorMap *map, uint32_t dtype, const void *data,
                                 const struct tensor_map_shape *shape);

#endif
