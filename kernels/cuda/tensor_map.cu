/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_map.cu: the tensor maps of launch.cuh. */
#include "kernels/cuda/launch.cuh"
#include "kernels/problem.h"

#include <cudaTypedefs.h>

/* Found once, then only read: libcuda is not linked, the runtime knows where it is. */
static PFN_cuTensorMapEncodeTiled_v12000 encode_tiled;

enum kg_status tensor_map_open(void)
{
    cudaDriverEntryPointQueryResult found;
    void *function = NULL;

    if (encode_tiled != NULL)
        return KG_OK;
#if CUDART_VERSION >= 12050
    CUDA_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &found));
#else
    CUDA_TRY(
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess)
        return KG_UNSUPPORTED;
    encode_tiled = (PFN_cuTensorMapEncodeTiled_v12000)function;
    return KG_OK;
}

static CUtensorMapDataType type_of(uint32_t dtype, int tf32)
{
    return dtype == KG_E4M3   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
           : dtype == KG_F16  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
           : dtype == KG_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
           : tf32             ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                              : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

enum kg_status tensor_map_encode(CUtensorMap *map, uint32_t dtype, const void *data,
                                 const struct tensor_map_shape *shape)
{
    const int64_t element = (int64_t)kg_dtype_bytes(dtype);
    const int64_t longest = (int64_t)1 << 40; /* bytes, of a stride */
    cuuint64_t size[5], stride[5];
    cuuint32_t box[5], step[5];

    if (encode_tiled == NULL)
        return KG_UNSUPPORTED;
    for (int i = 0; i < shape->rank; i++) {
        size[i] = (cuuint64_t)shape->size[i];
        box[i] = (cuuint32_t)shape->box[i];
        step[i] = 1;
        if (i == 0)
            continue;
        if (shape->size[i] == 1) { /* its stride is never used, but is checked */
            stride[i - 1] = 16;
        } else {
            if (shape->stride[i] < 0 || shape->stride[i] >= longest / element ||
                shape->stride[i] * element % 16 != 0)
                return KG_UNSUPPORTED;
            stride[i - 1] = (cuuint64_t)(shape->stride[i] * element);
        }
    }
    /* Rows of 256 bytes, K and V at D = 128, are read whole: 0.1 to 0.6 % faster with the larger
     * promotion. All else gains by the smaller one, 3.4 % at 1024 x 2048 x 784, or does not mind.
     */
    const CUtensorMapL2promotion promotion = shape->size[0] * element == 256
                                                 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                                 : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return encode_tiled(map, type_of(dtype, shape->tf32), (cuuint32_t)shape->rank, (void *)data,
                        size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                        CU_TENSOR_MAP_SWIZZLE_128B, promotion,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
               ? KG_OK
               : KG_UNSUPPORTED;
}
