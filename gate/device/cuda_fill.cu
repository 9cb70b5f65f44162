/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fill.cu: normal random numbers, and integers, from a counter.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) turns
 * (seed, i / 4) into four words, Box-Muller two words into two normals. No state, so the result
 * depends neither on the grid nor on what was drawn before.
 */
#include "gate/device/cuda_device.cuh"
#include "kernels/ops/dtype.cuh"

static __device__ uint4 philox_round(uint4 counter, uint2 key)
{
    const uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
    uint4 next;
    next.x = __umulhi(m1, counter.z) ^ counter.y ^ key.x;
    next.y = m1 * counter.z;
    next.z = __umulhi(m0, counter.x) ^ counter.w ^ key.y;
    next.w = m0 * counter.x;
    return next;
}

static __device__ uint4 philox(uint64_t seed, uint64_t index)
{
    uint4 counter = make_uint4((uint32_t)index, (uint32_t)(index >> 32), 0, 0);
    uint2 key = make_uint2((uint32_t)seed, (uint32_t)(seed >> 32));
    for (int round = 0; round < 10; round++) {
        counter = philox_round(counter, key);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

/* (0, 1): never 0, whose logarithm is infinite. The step is 2^-32, so the tail reaches 6.7. */
static __device__ float to_unit(uint32_t word)
{
    return fmaf((float)word, 0x1p-32f, 0x1p-33f);
}

static __device__ float2 box_muller(uint32_t a, uint32_t b)
{
    const float radius = sqrtf(-2.0f * logf(to_unit(a)));
    float sine, cosine;
    sincospif(2.0f * to_unit(b), &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

template <typename T>
static __global__ void fill_normal(T *to, int64_t count, float mean, float deviation, uint64_t seed)
{
    const int64_t quads = (count + 3) / 4;
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t q = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; q < quads; q += stride) {
        const uint4 word = philox(seed, (uint64_t)q);
        const float2 low = box_muller(word.x, word.y);
        const float2 high = box_muller(word.z, word.w);
        const float normal[4] = {low.x, low.y, high.x, high.y};
        for (int lane = 0; lane < 4 && 4 * q + lane < count; lane++)
            store(to + 4 * q + lane, fmaf(deviation, normal[lane], mean));
    }
}

template <typename T>
static __global__ void fill_integers(T *to, int64_t count, int largest, uint64_t seed)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        store(to + i, (float)seed_factor(seed_at(seed, (uint64_t)i), largest));
}

enum { THREADS = 256, EACH = 4 };

static unsigned grid_of(int64_t count)
{
    const int64_t blocks = (count + EACH * THREADS - 1) / (EACH * THREADS);
    return (unsigned)(blocks < 8192 ? blocks : 8192);
}

/* What fills `count` elements from a seed; `largest` is 0 for normal numbers. */
template <typename T>
static enum gate_status fill(struct cuda_device *d, void *to, int64_t count, int largest,
                             struct op_spread spread, uint64_t seed, struct gate_error *err)
{
    const unsigned grid = grid_of(count);
    if (largest)
        fill_integers<T><<<grid, THREADS, 0, d->stream>>>((T *)to, count, largest, seed);
    else
        fill_normal<T><<<grid, THREADS, 0, d->stream>>>((T *)to, count, (float)spread.mean,
                                                        (float)spread.deviation, seed);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static enum gate_status fill_dtype(struct device *device, void *to, enum kg_dtype dtype,
                                   int64_t count, int largest, struct op_spread spread,
                                   uint64_t seed, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    if (count <= 0)
        return GATE_OK;
#define FILL(T) return fill<T>(d, to, count, largest, spread, seed, err)
    KG_DISPATCH(dtype, FILL)
    if (dtype == KG_E4M3)
        FILL(__nv_fp8_e4m3);
    if (dtype == KG_E5M2)
        FILL(__nv_fp8_e5m2);
#undef FILL
    return gate_fail(err, GATE_INTERNAL, "cannot fill elements of unknown dtype %d", (int)dtype);
}

enum gate_status cuda_fill_normal(struct device *device, void *to, enum kg_dtype dtype,
                                  int64_t count, struct op_spread spread, uint64_t seed,
                                  struct gate_error *err)
{
    return fill_dtype(device, to, dtype, count, 0, spread, seed, err);
}

enum gate_status cuda_fill_integers(struct device *device, void *to, enum kg_dtype dtype,
                                    int64_t count, int largest, uint64_t seed,
                                    struct gate_error *err)
{
    return fill_dtype(device, to, dtype, count, largest, {}, seed, err);
}

static __global__ void poison_shared(int words)
{
    extern __shared__ volatile uint32_t word[];
    for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x)
        word[i] = ~0u; /* a NaN of any dtype */
}

#define POISON_ROUNDS 4 /* blocks a processor, of which each has room for one at a time */

enum gate_status cuda_poison_shared(struct device *device, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    int bytes = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                    d->base.info.kg.ordinal),
             err);
    CUDA_TRY(
        cudaFuncSetAttribute(poison_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        err);
    poison_shared<<<(unsigned)(POISON_ROUNDS * d->base.info.kg.sm_count), 1024, (size_t)bytes,
                    d->stream>>>(bytes / 4);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}
