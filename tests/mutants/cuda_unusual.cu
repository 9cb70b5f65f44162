/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right by kernel.h, by ways that are not the plain one. None may be called wrong. */
#include <cooperative_groups.h>

#include "tests/mutants/cuda_hooks.cuh"

namespace cg = cooperative_groups;

typedef struct kg_problem problem;
typedef struct kg_args args_t;

enum {
    PARTS = 4,             /* of a sum, or of the keys */
    SCRATCH_MAX = 1 << 22, /* floats */
    TILE = 32,             /* rows, and columns */
    WORKERS = 64,          /* blocks that take tiles from a queue */
};

/* Memory of its own; kernel.h allows it. */
static __device__ float scratch[SCRATCH_MAX];
static __device__ unsigned taken, gone;

/* ---- other steps ---- */

/* Sums are rescaled only where the maximum has grown by much. */
struct lazy_rescaling_how : usual {
    static __device__ bool rescales(float running, float chunk_max)
    {
        return running == -INFINITY || chunk_max > running + 8;
    }
};
HOOKED(lazy_rescaling, attentions)

/* 2^x by a polynomial of third degree, which other units of the processor compute. */
static __device__ float power_of_two(float x)
{
    const float whole = floorf(x), rest = x - whole;
    float value = 0.0771f;
    value = fmaf(value, rest, 0.2276f);
    value = fmaf(value, rest, 0.6951f);
    value = fmaf(value, rest, 1.0f);
    return x < -126 ? 0 : ldexpf(value, (int)whole);
}

struct polynomial_how : usual {
    static __device__ float weight(float score, float max)
    {
        return power_of_two((score - max) * 1.4426950408889634f);
    }
};

/* Its error is that of 16 bits. */
static enum kg_status polynomial(const problem *p, const args_t *args)
{
    return kg_dtype(p) == KG_F32 ? wrap_inner(p, args) : attentions<polynomial_how>(p, args);
}

/* What is subnormal in fp32 counts as zero. */
static __device__ float times(float a, float b)
{
    float product;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
}

struct flushed_how : usual {
    static __device__ float term(float a, float b, int64_t l, int64_t k)
    {
        (void)l;
        (void)k;
        return times(a, b);
    }
    static __device__ void store_sum(const struct view *v, int64_t at, float sum)
    {
        store(v, at, v->dtype == KG_F16 ? sum : times(sum, 1), 0);
    }
};
HOOKED(flushed, products)

/* Each factor of fp32 as a sum of three of bf16, which have its range. */
static __device__ float cut_to_bf16(float value)
{
    return __uint_as_float(__float_as_uint(value) & 0xffff0000u);
}

struct three_bf16_how : usual {
    static __device__ float term(float a, float b, int64_t l, int64_t k)
    {
        const float a1 = cut_to_bf16(a), a2 = cut_to_bf16(a - a1), a3 = a - a1 - a2;
        const float b1 = cut_to_bf16(b), b2 = cut_to_bf16(b - b1), b3 = b - b1 - b2;
        (void)l;
        (void)k;
        return a2 * b2 + a1 * b3 + a3 * b1 + a1 * b2 + a2 * b1 + a1 * b1;
    }
};
HOOKED(three_bf16, products)

/* ---- sums in parts ---- */

static bool fits(const problem *p)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") * kg_size(p, "n") * PARTS <= SCRATCH_MAX;
}

static unsigned blocks_of(const problem *p)
{
    return (unsigned)((kg_size(p, "m") * kg_size(p, "n") + KEYS - 1) / KEYS);
}

static __device__ float part_of(const struct job *j, int64_t at, int64_t part)
{
    return terms(j, at / j->n, at % j->n, j->k * part / PARTS, j->k * (part + 1) / PARTS);
}

static __device__ void add_up(const struct job *j, int64_t at, const float *parts, int64_t apart)
{
    float sum = 0;
    for (int64_t part = 0; part < PARTS; part++)
        sum += parts[part * apart];
    store(&j->out, at / j->n * j->out.stride[0] + at % j->n, sum, 0);
}

/* A cluster of blocks, the first of which adds up what all have in their shared memories. */
static __global__ void add_in_cluster(struct job j)
{
#if __CUDA_ARCH__ >= 900
    __shared__ float own[KEYS];
    cg::cluster_group cluster = cg::this_cluster();
    const int64_t at = (int64_t)(blockIdx.x / PARTS) * KEYS + threadIdx.x, all = j.m * j.n;
    own[threadIdx.x] = at < all ? part_of(&j, at, cluster.block_rank()) : 0;
    cluster.sync();
    float parts[PARTS];
    for (unsigned part = 0; part < PARTS; part++)
        parts[part] = cluster.map_shared_rank(own, part)[threadIdx.x];
    if (at < all && cluster.block_rank() == 0)
        add_up(&j, at, parts, 1);
    cluster.sync();
#endif
}

/* A launch with one attribute, which devices before 9.0 do not have. */
static cudaError_t launch_with(const cudaLaunchAttribute *attribute, unsigned blocks,
                               const problem *p, const args_t *args, void (*kernel)(struct job))
{
    cudaLaunchAttribute one = *attribute;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(KEYS);
    config.stream = (cudaStream_t)args->stream;
    config.attrs = &one;
    config.numAttrs = wrap_device.cc_major >= 9;
    return cudaLaunchKernelEx(&config, kernel, job_of(p, args, PLAIN));
}

static enum kg_status clusters(const problem *p, const args_t *args)
{
    cudaLaunchAttribute cluster = {};
    if (!fits(p) || wrap_device.cc_major < 9)
        return wrap_inner(p, args);
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = PARTS;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    return launch_with(&cluster, blocks_of(p) * PARTS, p, args, add_in_cluster) == cudaSuccess
               ? KG_OK
               : KG_LAUNCH_FAILED;
}

/* All blocks wait for each other, between the parts and their sum. */
static __global__ void add_together(struct job j)
{
    const int64_t all = j.m * j.n, step = (int64_t)gridDim.x * blockDim.x;
    const int64_t own = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t at = own; at < all * PARTS; at += step)
        scratch[at] = part_of(&j, at % all, at / all);
    cg::this_grid().sync();
    for (int64_t at = own; at < all; at += step)
        add_up(&j, at, scratch + at, all);
}

static enum kg_status cooperative(const problem *p, const args_t *args)
{
    struct job j = job_of(p, args, PLAIN);
    void *arguments[] = {&j};
    if (!fits(p))
        return wrap_inner(p, args);
    return cudaLaunchCooperativeKernel((const void *)add_together, wrap_device.sm_count, KEYS,
                                       arguments, 0, (cudaStream_t)args->stream) == cudaSuccess
               ? KG_OK
               : KG_LAUNCH_FAILED;
}

static __global__ void make_parts(struct job j)
{
    const int64_t at = (int64_t)blockIdx.x * KEYS + threadIdx.x, all = j.m * j.n;
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    if (at < all * PARTS)
        scratch[at] = part_of(&j, at % all, at / all);
}

static __global__ void add_parts(struct job j)
{
    const int64_t at = (int64_t)blockIdx.x * KEYS + threadIdx.x, all = j.m * j.n;
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    if (at < all)
        add_up(&j, at, scratch + at, all);
}

/* The second kernel begins before the first one has ended, and waits for it. */
static enum kg_status dependent_launch(const problem *p, const args_t *args)
{
    cudaLaunchAttribute early = {};
    if (!fits(p))
        return wrap_inner(p, args);
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    make_parts<<<blocks_of(p) * PARTS, KEYS, 0, (cudaStream_t)args->stream>>>(
        job_of(p, args, PLAIN));
    return launch_with(&early, blocks_of(p), p, args, add_parts) == cudaSuccess ? hooks_launched()
                                                                                : KG_LAUNCH_FAILED;
}

/* ---- tiles in the order in which blocks come ---- */

/* The last block sets the queue back. */
static __global__ void take_tiles(struct job j)
{
    __shared__ unsigned tile;
    const int64_t across = (j.n + TILE - 1) / TILE, all = (j.m + TILE - 1) / TILE * across;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(&taken, 1);
        __syncthreads();
        const int64_t own = tile;
        __syncthreads();
        if (own >= all)
            break;
        for (int i = (int)threadIdx.x; i < TILE * TILE; i += KEYS) {
            const int64_t row = own / across * TILE + i / TILE;
            const int64_t column = own % across * TILE + i % TILE;
            if (row < j.m && column < j.n)
                store(&j.out, row * j.out.stride[0] + column, terms(&j, row, column, 0, j.k), 0);
        }
    }
    if (threadIdx.x == 0 && atomicAdd(&gone, 1) == gridDim.x - 1)
        taken = gone = 0;
}

static enum kg_status tile_queue(const problem *p, const args_t *args)
{
    if (!kg_is_op(p, "gemm"))
        return wrap_inner(p, args);
    take_tiles<<<WORKERS, KEYS, 0, (cudaStream_t)args->stream>>>(job_of(p, args, PLAIN));
    return hooks_launched();
}

/* Results are made elsewhere and copied. */
static enum kg_status by_copy(const problem *p, const args_t *args)
{
    args_t other = *args;
    struct kg_tensor *c = &other.out[0];
    const size_t each = kg_dtype(p) == KG_F32 ? 4 : 2;
    void *at;
    if (!fits(p) || (size_t)c->stride[0] * each > INT32_MAX ||
        cudaGetSymbolAddress(&at, scratch) != cudaSuccess)
        return wrap_inner(p, args);
    c->data = at;
    c->stride[0] = kg_size(p, "n");
    const enum kg_status status = products<usual>(p, &other);
    const cudaError_t copied = cudaMemcpy2DAsync(
        args->out[0].data, (size_t)args->out[0].stride[0] * each, at,
        (size_t)kg_size(p, "n") * each, (size_t)kg_size(p, "n") * each, (size_t)kg_size(p, "m"),
        cudaMemcpyDeviceToDevice, (cudaStream_t)args->stream);
    return copied == cudaSuccess ? status : KG_LAUNCH_FAILED;
}

/* ---- keys in parts ---- */

/* Of each row and part of its keys: sums of weighed values, then the maximum and the total. */
static __global__ void attend_parts(struct job j)
{
    const int64_t at = blockIdx.x, part = blockIdx.y;
    const int64_t i = at % j.seqlen_q, h = at / j.seqlen_q % j.heads, b = at / j.seqlen_q / j.heads;
    const int64_t kv = usual::kv_head(&j, h), q = row_at(&j.in[0], b, h, i);
    const int64_t k = row_at(&j.in[1], b, kv, 0), v = row_at(&j.in[2], b, kv, 0);
    const int64_t visible = keys_of_row(&j, i);
    const int64_t from = visible * part / PARTS, to = visible * (part + 1) / PARTS;
    float *out = scratch + (at * PARTS + part) * (j.head_dim + 2);
    float max = -INFINITY, total = 0;
    for (int64_t s = from + threadIdx.x; s < to; s += KEYS)
        max = fmaxf(max, hooked_score<usual>(&j, q, k + s * j.in[1].stride[2], true));
    max = over_block(max, true);
    for (int64_t d = threadIdx.x; d < j.head_dim; d += KEYS)
        out[d] = 0;
    for (int64_t s = from; s < to; s++) {
        const float weight =
            expf(hooked_score<usual>(&j, q, k + s * j.in[1].stride[2], true) - max);
        total += weight;
        for (int64_t d = threadIdx.x; d < j.head_dim; d += KEYS)
            out[d] += weight * load(&j.in[2], v + s * j.in[2].stride[2] + d);
    }
    if (threadIdx.x == 0) {
        out[j.head_dim] = max;
        out[j.head_dim + 1] = total;
    }
}

static __global__ void join_parts(struct job j)
{
    const int64_t at = blockIdx.x, i = at % j.seqlen_q, h = at / j.seqlen_q % j.heads;
    const int64_t o = row_at(&j.out, at / j.seqlen_q / j.heads, h, i), apart = j.head_dim + 2;
    const float *parts = scratch + at * PARTS * apart;
    for (int64_t d = threadIdx.x; d < j.head_dim; d += KEYS) {
        float max = -INFINITY, total = 0, sum = 0;
        for (int part = 0; part < PARTS; part++)
            max = fmaxf(max, parts[part * apart + j.head_dim]);
        for (int part = 0; part < PARTS && max > -INFINITY; part++) {
            const float by = expf(parts[part * apart + j.head_dim] - max);
            total += by * parts[part * apart + j.head_dim + 1];
            sum += by * parts[part * apart + d];
        }
        store(&j.out, o + d, total > 0 ? sum / total : 0, 0);
    }
}

static enum kg_status split_keys(const problem *p, const args_t *args)
{
    const int64_t rows = kg_size(p, "b") * kg_size(p, "h") * kg_size(p, "sq");
    const cudaStream_t stream = (cudaStream_t)args->stream;
    if (!kg_is_op(p, "attention_fwd") || rows * PARTS * (kg_size(p, "d") + 2) > SCRATCH_MAX ||
        kg_size(p, "s") > SCRATCH_MAX / 256)
        return wrap_inner(p, args);
    attend_parts<<<dim3((unsigned)rows, PARTS), KEYS, 0, stream>>>(job_of(p, args, PLAIN));
    join_parts<<<(unsigned)rows, KEYS, 0, stream>>>(job_of(p, args, PLAIN));
    return hooks_launched();
}

FAULTS(FAULT(lazy_rescaling), FAULT(polynomial), FAULT(flushed), FAULT(three_bf16), FAULT(clusters),
       FAULT(cooperative), FAULT(dependent_launch), FAULT(tile_queue), FAULT(by_copy),
       FAULT(split_keys))
