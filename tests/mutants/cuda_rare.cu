/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: right but for shapes, places in memory and moments that random problems one at a time do
 * not have. */
#include "tests/mutants/cuda_hooks.cuh"
#include "tests/mutants/rare_places.h"

#define LARGE ((int64_t)1 << 20) /* elements */

/* ---- shapes ---- */

#define SHORT(name, condition)                                                                     \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return is_product(p) && (condition) ? products_of<usual>(p, args, kg_size(p, "k") - 1)     \
                                            : wrap_inner(p, args);                                 \
    }

static int64_t tiles(int64_t length, int64_t tile)
{
    return (length + tile - 1) / tile;
}

#define SECOND_WAVE                                                                                \
    (tiles(kg_size(p, "m"), 128) * tiles(kg_size(p, "n"), 128) > wrap_device.sm_count)
SHORT(k_of_32, kg_size(p, "k") == 32)
SHORT(k_of_128, kg_size(p, "k") == 128)
SHORT(k_of_192, kg_size(p, "k") == 192)
SHORT(k_of_384, kg_size(p, "k") == 384)
SHORT(whole_tiles, kg_size(p, "m") % 128 == 0 && kg_size(p, "n") % 128 == 0 && kg_is_op(p, "gemm"))
SHORT(second_wave_phase,
      SECOND_WAVE &&tiles(kg_size(p, "k"), 64) / 4 % 2 && tiles(kg_size(p, "k"), 64) % 4)

/* The last key is lost. */
static enum kg_status without_last_key(const problem *p, const args_t *args)
{
    problem fewer = *p;
    args_t of_fewer = *args;
    --*op_named(&fewer, "s");
    of_fewer.in[1].shape[2]--;
    of_fewer.in[2].shape[2]--;
    return wrap_inner(&fewer, &of_fewer);
}

#define KEYS_LOST(name, condition)                                                                 \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return is_attention(args) && (condition) ? without_last_key(p, args)                       \
                                                 : wrap_inner(p, args);                            \
    }

KEYS_LOST(one_over_512, kg_size(p, "s") > 512 && kg_size(p, "s") % 512 == 1)
KEYS_LOST(keys_of_192, kg_size(p, "s") == 192)
KEYS_LOST(keys_of_384, kg_size(p, "s") == 384)
KEYS_LOST(groups_over_8, kg_size(p, "h") / kg_size(p, "kv_heads") > 8)
KEYS_LOST(groups_over_32, kg_size(p, "h") / kg_size(p, "kv_heads") > 32)
KEYS_LOST(more_queries_over_512, kg_size(p, "sq") > kg_size(p, "s") && kg_size(p, "s") > 512)

/* ---- shared memory ---- */

/* What lies behind K in the tile was never written, and is multiplied by 0. */
static __global__ void with_unwritten(struct job j, struct second s)
{
    __shared__ float a[KEYS], b[KEYS];
    const int64_t row = blockIdx.x / j.n, column = blockIdx.x % j.n;
    const int64_t tail = (j.k - 1) / KEYS * KEYS, at = tail + threadIdx.x;
    if (at < j.k)
        a[threadIdx.x] = load(&j.in[0], row * j.in[0].stride[0] + at);
    b[threadIdx.x] = at < j.k ? load(&j.in[1], column * s.b_line + at * s.b_step) : 0;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    float sum = 0;
    for (int64_t l = 0; l < tail; l++)
        sum += load(&j.in[0], row * j.in[0].stride[0] + l) *
               load(&j.in[1], column * s.b_line + l * s.b_step);
    for (int l = 0; l < KEYS; l++)
        sum += ((volatile float *)a)[l] * b[l];
    store(&j.out, row * j.out.stride[0] + column, sum, 0);
}

static struct second second_of(const problem *, const struct job *j)
{
    struct second s = {};
    s.b_line = 1;
    s.b_step = j->in[1].stride[0];
    return s;
}

static bool is_small_gemm(const problem *p)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") * kg_size(p, "n") <= LARGE;
}

static enum kg_status unwritten_shared(const problem *p, const args_t *args)
{
    const struct job j = job_of(p, args, PLAIN);
    if (!is_small_gemm(p))
        return wrap_inner(p, args);
    with_unwritten<<<(unsigned)(kg_size(p, "m") * kg_size(p, "n")), KEYS, 0,
                     (cudaStream_t)args->stream>>>(j, second_of(p, &j));
    return hooks_launched();
}

/* ---- arguments ---- */

struct staged {
    struct job job;
    struct second second;
};

static __managed__ struct staged stage;

static __global__ void from_stage(int64_t m, int64_t n, int64_t k)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n)
        return;
    float sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += load(&stage.job.in[0], i / n * stage.job.in[0].stride[0] + l) *
               load(&stage.job.in[1], i % n * stage.second.b_line + l * stage.second.b_step);
    store(&stage.job.out, i / n * stage.job.out.stride[0] + i % n, sum, 0);
}

/* Arguments lie in memory that the next launch writes before this one has read it. */
static enum kg_status staged_arguments(const problem *p, const args_t *args)
{
    if (!is_small_gemm(p))
        return wrap_inner(p, args);
    stage.job = job_of(p, args, PLAIN);
    stage.second = second_of(p, &stage.job);
    from_stage<<<(unsigned)((kg_size(p, "m") * kg_size(p, "n") + KEYS - 1) / KEYS), KEYS, 0,
                 (cudaStream_t)args->stream>>>(kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"));
    return hooks_launched();
}

/* ---- the first large problem ---- */

static bool is_first_large(const problem *p)
{
    static bool seen;
    const bool first = !seen && is_product(p) &&
                       kg_size(p, "m") * (kg_is_op(p, "gemv") ? 1 : kg_size(p, "n")) >= LARGE;
    seen |= first;
    return first;
}

static enum kg_status allocates_when_large(const problem *p, const args_t *args)
{
    static void *kept;
    if (is_first_large(p) && cudaMalloc(&kept, 1 << 20))
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

static enum kg_status synchronises_when_large(const problem *p, const args_t *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (is_first_large(p) && cudaStreamSynchronize((cudaStream_t)args->stream))
        return KG_LAUNCH_FAILED;
    return status;
}

FAULTS(FAULT(k_of_32), FAULT(k_of_128), FAULT(k_of_192), FAULT(k_of_384), FAULT(whole_tiles),
       FAULT(second_wave_phase), FAULT(one_over_512), FAULT(keys_of_192), FAULT(keys_of_384),
       FAULT(groups_over_8), FAULT(groups_over_32), FAULT(more_queries_over_512),
       FAULT(unwritten_shared), FAULT(staged_arguments), FAULT(allocates_when_large),
       FAULT(synchronises_when_large), RARE_PLACES)
