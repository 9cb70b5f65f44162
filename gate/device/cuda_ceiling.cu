/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ceiling.cu: kernels of the gate's own that do one thing as fast as the device can.
 *
 * Read and copy stream over memory of many times the L2. Matrix products run from shared memory by
 * wgmma where the device has it (cuda_ceiling_sm90.cu), else from registers by mma.sync; fp32 is
 * independent chains of multiply-adds. All operands are N(0,1): constants would cost less power and
 * so give a higher clock than any real kernel has. Each result is checked after its run, so that
 * neither a compiler nor a device can have left work out.
 *
 * Measured   H200, 700 W: read 4,638 GB/s, copy 3,846; fp16 858, bf16 878, TF32 456, fp32 65.3
 *            TFLOP/s. The control's copies, of 256 MiB, take about 4,200 GB/s; it is not known what
 *            holds these of 1.9 GiB back.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "gate/device/cuda_ceiling.cuh"
#include "gate/device/cuda_device.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/ops/half.h"

enum {
    BATCH = 4, /* loads in flight of a thread */
    MEMORY_BLOCKS_PER_SM = 8,
    L2_MULTIPLE = 64, /* what is read is so many times the L2, ... */
    L2_LEAST = 8,     /* ... and less only where memory is short */
    CHAINS = 8,
    CHAIN_STEPS = 64, /* of a round */
    CHAIN_BLOCKS_PER_SM = 4,
    WARP_M = 64, /* of a warp's tile by mma.sync */
    WARP_N = 64,
    TYPES = 3,
};

/* x = x * FACTOR + TERM leads from 2 towards 1. */
static constexpr double FACTOR = 1.0 - 1.0 / 16384, TERM = 1.0 / 16384;

static const double TOLERANCE = 0.01; /* tensor cores cut off what they add up */

struct cuda_ceiling {
    char *memory; /* two halves of half_bytes, the second a copy but for its end */
    size_t half_bytes;
    char *operands; /* of fp16, bf16 and TF32 */
    uint32_t *results;
    double round_sum[TYPES]; /* what a round adds to the sum of a block's results */
    uint32_t odd_one;        /* the halves are equal but for this, XORed */
};

static const enum kg_dtype dtypes[TYPES] = {KG_F16, KG_BF16, KG_F32};

/* ---- kernels ---- */

/* Threads and blocks as cuda_control.cu has them; `count` is a multiple of BATCH * blockDim.x. */
template <bool Copy>
static __global__ void __launch_bounds__(CEILING_THREADS)
    stream(uint4 *__restrict__ to, const uint4 *__restrict__ from, size_t count, uint32_t *results)
{
    const size_t tile = (size_t)BATCH * CEILING_THREADS;
    uint32_t all = 0;
    for (size_t i = blockIdx.x * tile + threadIdx.x; i < count; i += gridDim.x * tile) {
        uint4 batch[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++)
            batch[j] = from[i + (size_t)j * CEILING_THREADS];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            if (Copy)
                to[i + (size_t)j * CEILING_THREADS] = batch[j];
            else
                all ^= batch[j].x ^ batch[j].y ^ batch[j].z ^ batch[j].w;
        }
    }
    if (!Copy)
        results[blockIdx.x * CEILING_THREADS + threadIdx.x] = all;
}

static __global__ void __launch_bounds__(CEILING_THREADS)
    chains(unsigned rounds, float factor, float term, float *sums)
{
    float x[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        x[i] = 2.0f;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; round++)
#pragma unroll
        for (int step = 0; step < CHAIN_STEPS; step++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++)
                asm volatile("fma.rn.f32 %0, %0, %1, %2;\n" : "+f"(x[i]) : "f"(factor), "f"(term));
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    sums[blockIdx.x * CEILING_THREADS + threadIdx.x] = sum;
}

template <typename T>
static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4],
                                           const uint32_t (&b)[2], T tag)
{
    ptx::mma_m16n8k16(c, a, b[0], b[1], tag);
}

static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4],
                                           const uint32_t (&b)[2], float)
{
    ptx::mma_m16n8k8_tf32(c, a, b[0], b[1]);
}

/* Of each row the first 32 bytes, four times a round: as much work as ceiling_wgmma() does. Each
 * warp has a tile of the product in registers. */
template <typename T>
static __global__ void __launch_bounds__(CEILING_THREADS, 1)
    multiply(const uint32_t *operands, unsigned rounds, float *sums)
{
    constexpr int ROW = CEILING_ROW_BYTES / 4, MS = WARP_M / 16, NS = WARP_N / 8;
    const int warp = (int)threadIdx.x / 32, group = (int)threadIdx.x % 32 / 4;
    const int pair = (int)threadIdx.x % 4;
    const uint32_t *from_a = operands + (warp / 4 * WARP_M + group) * ROW + pair;
    const uint32_t *from_b = operands + (CEILING_M + warp % 4 * WARP_N + group) * ROW + pair;
    uint32_t a[MS][4], b[NS][2];
    float d[MS][NS][4];
    static_assert(CEILING_THREADS / 32 == CEILING_M / WARP_M * (CEILING_N / WARP_N), "all of it");
#pragma unroll
    for (int i = 0; i < MS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            a[i][j] = from_a[(16 * i + 8 * (j % 2)) * ROW + 4 * (j / 2)];
#pragma unroll
    for (int i = 0; i < NS; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            b[i][j] = from_b[8 * i * ROW + 4 * j];
#pragma unroll
    for (int i = 0; i < MS * NS * 4; i++)
        d[i / (NS * 4)][i / 4 % NS][i % 4] = 0.0f;
#pragma unroll 1
    for (unsigned step = 0; step < 4 * rounds; step++)
#pragma unroll
        for (int i = 0; i < MS; i++)
#pragma unroll
            for (int j = 0; j < NS; j++)
                mma(d[i][j], a[i], b[j], T());
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < MS * NS * 4; i++)
        sum += d[i / (NS * 4)][i / 4 % NS][i % 4];
    sums[blockIdx.x * CEILING_THREADS + threadIdx.x] = sum;
}

/* ---- a run ---- */

struct run {
    enum device_ceiling which;
    unsigned rounds;
};

static bool has_wgmma(const struct cuda_device *d)
{
    return d->base.info.kg.cc_major == 9;
}

static unsigned blocks_of(const struct cuda_device *d, enum device_ceiling which)
{
    const unsigned sms = (unsigned)d->base.info.kg.sm_count;
    return which == CEILING_READ || which == CEILING_COPY ? sms * MEMORY_BLOCKS_PER_SM
           : which == CEILING_FP32                        ? sms * CHAIN_BLOCKS_PER_SM
                                                          : sms;
}

static void enqueue_memory(struct cuda_device *d, bool copies)
{
    const struct cuda_ceiling *c = d->ceiling;
    const unsigned blocks = blocks_of(d, CEILING_READ);
    uint4 *const first = (uint4 *)c->memory, *const second = (uint4 *)(c->memory + c->half_bytes);
    const size_t half = c->half_bytes / sizeof(uint4);
    if (copies)
        stream<true><<<blocks, CEILING_THREADS, 0, d->stream>>>(second, first, half, c->results);
    else
        stream<false><<<blocks, CEILING_THREADS, 0, d->stream>>>(NULL, first, 2 * half, c->results);
}

template <typename T> static void enqueue_products(struct cuda_device *d, const struct run *r)
{
    const struct cuda_ceiling *c = d->ceiling;
    const char *operands = c->operands + (r->which - CEILING_FP16) * CEILING_OPERAND_BYTES;
    const unsigned blocks = blocks_of(d, r->which);
    float *const sums = (float *)c->results;
    if (has_wgmma(d))
        (void)ceiling_wgmma<T>(operands, r->rounds, blocks, sums, d->stream);
    else
        multiply<T><<<blocks, CEILING_THREADS, 0, d->stream>>>((const uint32_t *)operands,
                                                               r->rounds, sums);
}

static enum gate_status enqueue_run(struct cuda_device *d, const void *run, struct gate_error *err)
{
    const struct run *r = (const struct run *)run;
    if (r->which == CEILING_READ || r->which == CEILING_COPY)
        for (unsigned i = 0; i < r->rounds; i++)
            enqueue_memory(d, r->which == CEILING_COPY);
    else if (r->which == CEILING_FP16)
        enqueue_products<__half>(d, r);
    else if (r->which == CEILING_BF16)
        enqueue_products<__nv_bfloat16>(d, r);
    else if (r->which == CEILING_TF32)
        enqueue_products<float>(d, r);
    else
        chains<<<blocks_of(d, r->which), CEILING_THREADS, 0, d->stream>>>(
            r->rounds, (float)FACTOR, (float)TERM, (float *)d->ceiling->results);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static double work_of_round(const struct cuda_device *d, enum device_ceiling which)
{
    const double blocks = blocks_of(d, which);
    const double k = CEILING_ROW_BYTES / (which == CEILING_TF32 ? 4 : 2);
    if (which == CEILING_READ || which == CEILING_COPY)
        return 2.0 * (double)d->ceiling->half_bytes;
    if (which == CEILING_FP32)
        return 2.0 * blocks * CEILING_THREADS * CHAINS * CHAIN_STEPS;
    return 2.0 * blocks * CEILING_M * CEILING_N * k;
}

/* ---- what it must come to ---- */

static double element(const void *row, enum kg_dtype dtype, int k)
{
    const uint16_t half = ((const uint16_t *)row)[dtype == KG_F32 ? 0 : k];
    if (dtype == KG_F32) /* TF32 drops these bits */
        return kg_float_from_bits(((const uint32_t *)row)[k] & 0xffffe000u);
    return dtype == KG_F16 ? kg_f16_to_float(half) : kg_bf16_to_float(half);
}

/* Of all elements of the product, of which a round adds `times` the first `columns` of k. */
static double sum_of_product(const char *rows, enum kg_dtype dtype, int columns, int times)
{
    double sum = 0.0;
    for (int k = 0; k < columns; k++) {
        double a = 0.0, b = 0.0;
        for (int row = 0; row < CEILING_M + CEILING_N; row++)
            *(row < CEILING_M ? &a : &b) += element(rows + row * CEILING_ROW_BYTES, dtype, k);
        sum += a * b;
    }
    return times * sum;
}

static uint32_t xor_of(const uint32_t *words, size_t n)
{
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++)
        all ^= words[i];
    return all;
}

static enum gate_status fail_check(enum device_ceiling which, struct gate_error *err)
{
    return gate_fail(err, GATE_ENVIRONMENT, "kernel %d of the ceiling has a wrong result",
                     (int)which);
}

/* All blocks do the same. */
static enum gate_status check_sums(const struct cuda_device *d, const struct run *r,
                                   const float *sums, struct gate_error *err)
{
    double wanted = 0.0, scale;
    if (r->which == CEILING_FP32) {
        wanted = CEILING_THREADS * CHAINS * (1.0 + pow(FACTOR, (double)r->rounds * CHAIN_STEPS));
        scale = wanted;
    } else {
        wanted = r->rounds * d->ceiling->round_sum[r->which - CEILING_FP16];
        scale = r->rounds * sqrt((double)CEILING_M * CEILING_N * 64);
    }
    for (unsigned block = 0; block < blocks_of(d, r->which); block++) {
        double sum = 0.0;
        for (int i = 0; i < CEILING_THREADS; i++)
            sum += (double)*sums++;
        if (!(fabs(sum - wanted) <= TOLERANCE * scale))
            return fail_check(r->which, err);
    }
    return GATE_OK;
}

/* After a copy the halves are equal; then they get their difference back. */
static enum gate_status check_copy(struct cuda_device *d, struct gate_error *err)
{
    const struct cuda_ceiling *c = d->ceiling;
    CUDA_TRY(cudaMemsetAsync(c->memory + 2 * c->half_bytes - 16, 0, 16, d->stream), err);
    enqueue_memory(d, false);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static enum gate_status check(struct cuda_device *d, const struct run *r, struct gate_error *err)
{
    const size_t n = (size_t)blocks_of(d, r->which) * CEILING_THREADS;
    if (r->which == CEILING_COPY)
        TRY(check_copy(d, err));
    uint32_t *results = (uint32_t *)xcalloc(n, sizeof(*results));
    enum gate_status status =
        device_download(&d->base, results, d->ceiling->results, n * sizeof(*results), err);
    const bool memory = r->which == CEILING_READ || r->which == CEILING_COPY;
    if (!status && !memory)
        status = check_sums(d, r, (const float *)results, err);
    else if (!status && xor_of(results, n) != d->ceiling->odd_one)
        status = fail_check(r->which, err);
    free(results);
    return status;
}

/* ---- set-up ---- */

static enum gate_status allocate(struct cuda_device *d, struct gate_error *err)
{
    struct cuda_ceiling *c = d->ceiling;
    const size_t l2 = (size_t)d->base.info.kg.l2_bytes, tile = (size_t)16 * BATCH * CEILING_THREADS;
    const size_t results = (size_t)blocks_of(d, CEILING_READ) * CEILING_THREADS * sizeof(uint32_t);
    size_t free_bytes, total_bytes;
    CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes), err);
    const size_t most = free_bytes / 2, wanted = L2_MULTIPLE * l2;
    c->half_bytes = (wanted < most ? wanted : most) / 2 / tile * tile;
    if (!c->half_bytes || 2 * c->half_bytes < L2_LEAST * l2 - 2 * tile)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "%zu MiB of device memory are free: too little beside an L2 of %zu MiB",
                         free_bytes >> 20, l2 >> 20);
    CUDA_TRY(cudaMalloc((void **)&c->memory,
                        2 * c->half_bytes + TYPES * CEILING_OPERAND_BYTES + results),
             err);
    c->operands = c->memory + 2 * c->half_bytes;
    c->results = (uint32_t *)(c->operands + TYPES * CEILING_OPERAND_BYTES);
    return GATE_OK;
}

static enum gate_status fill_operands(struct cuda_device *d, int type, struct gate_error *err)
{
    static char rows[CEILING_OPERAND_BYTES];
    char *const operands = d->ceiling->operands + type * CEILING_OPERAND_BYTES;
    const int columns = CEILING_ROW_BYTES / (dtypes[type] == KG_F32 ? 4 : 2);
    const int times = has_wgmma(d) ? 1 : 4;
    TRY(cuda_fill_normal(&d->base, operands, dtypes[type], (CEILING_M + CEILING_N) * columns,
                         {0, 1}, (uint64_t)type, err));
    TRY(device_download(&d->base, rows, operands, sizeof(rows), err));
    d->ceiling->round_sum[type] = sum_of_product(rows, dtypes[type], columns / times, times);
    return GATE_OK;
}

static enum gate_status fill(struct cuda_device *d, struct gate_error *err)
{
    struct cuda_ceiling *c = d->ceiling;
    uint32_t end[4];
    TRY(cuda_fill_normal(&d->base, c->memory, KG_F32, (int64_t)(c->half_bytes / 4), {0, 1}, 0,
                         err));
    TRY(device_download(&d->base, end, c->memory + c->half_bytes - sizeof(end), sizeof(end), err));
    c->odd_one = xor_of(end, 4);
    for (int type = 0; type < TYPES; type++)
        TRY(fill_operands(d, type, err));
    return GATE_OK;
}

/* The copy comes first here: the second half has its contents by it. */
static enum gate_status prepare(struct cuda_device *d, struct gate_error *err)
{
    static const enum device_ceiling all[] = {CEILING_COPY, CEILING_READ, CEILING_FP16,
                                              CEILING_BF16, CEILING_TF32, CEILING_FP32};
    if (d->ceiling)
        return GATE_OK;
    d->ceiling = (struct cuda_ceiling *)xcalloc(1, sizeof(*d->ceiling));
    TRY(allocate(d, err));
    TRY(fill(d, err));
    for (size_t i = 0; i < CEILINGS; i++) { /* loads the code as well, see cuda_time() */
        const struct run once = {all[i], 1};
        TRY(enqueue_run(d, &once, err));
        TRY(check(d, &once, err));
    }
    return GATE_OK;
}

void cuda_ceiling_free(struct cuda_device *d)
{
    if (d->ceiling)
        (void)cudaFree(d->ceiling->memory);
    free(d->ceiling);
    d->ceiling = NULL;
}

enum gate_status cuda_ceiling_run(struct device *device, enum device_ceiling which, unsigned rounds,
                                  struct device_ceiling_run *out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const struct run run = {which, rounds};
    struct device_time t;
    const enum gate_status prepared = prepare(d, err);
    if (prepared) {
        cuda_ceiling_free(d);
        return prepared;
    }
    TRY(cuda_time(d, enqueue_run, &run, &t, err));
    TRY(check(d, &run, err));
    out->device_ns = t.device_ns;
    out->work = rounds * work_of_round(d, which);
    return GATE_OK;
}
