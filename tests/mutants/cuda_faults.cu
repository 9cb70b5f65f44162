/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA: faults, tricks and unusual ways in plain kernels of a thread for each result. GEMM and
 * attention alone; what a fault does not touch goes to the original library.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/mutants/cuda_arithmetic.cuh"
#include "tests/mutants/faults.h"

enum { THREADS = 128 };

/* ---- launching ---- */

static enum kg_status launched(void)
{
    return cudaGetLastError() == cudaSuccess ? KG_OK : KG_LAUNCH_FAILED;
}

static cudaStream_t stream_of(const struct kg_args *args)
{
    return (cudaStream_t)args->stream;
}

static enum kg_status run(const struct kg_problem *p, const struct kg_args *args, enum how how,
                          int threads, cudaStream_t stream)
{
    const struct job j = job_of(p, args, how);
    if (kg_is_op(p, "gemm")) {
        product<<<(unsigned)((kg_size(p, "m") * kg_size(p, "n") + threads - 1) / threads), threads,
                  0, stream>>>(j);
        return launched();
    }
    if (!kg_is_op(p, "attention_fwd") || kg_size(p, "d") > 512)
        return wrap_inner(p, args);
    const int64_t rows = kg_size(p, "b") * kg_size(p, "h") * kg_size(p, "sq");
    attention<<<(unsigned)((rows + threads - 1) / threads), threads, 0, stream>>>(j);
    return launched();
}

static __global__ void clear_each(struct view v, int64_t rows, int64_t columns)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < rows * columns)
        store(&v, at / columns * v.stride[0] + at % columns, 0, 0);
}

/* Zeros in a matrix. CUDA's own way takes no rows that are over 2^31 - 1 bytes apart. */
static enum kg_status clear(const struct kg_tensor *t, cudaStream_t stream)
{
    const size_t each = t->dtype == KG_F32 ? 4 : 2;
    const int64_t rows = t->shape[0], columns = t->shape[1];
    if ((size_t)t->stride[0] * each <= INT32_MAX)
        return cudaMemset2DAsync(t->data, (size_t)t->stride[0] * each, 0, (size_t)columns * each,
                                 (size_t)rows, stream) == cudaSuccess
                   ? KG_OK
                   : KG_LAUNCH_FAILED;
    clear_each<<<(unsigned)((rows * columns + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        view_of(t), rows, columns);
    return launched();
}

#define COMPUTED(name, how)                                                                        \
    static enum kg_status name(const struct kg_problem *p, const struct kg_args *args)             \
    {                                                                                              \
        return run(p, args, how, THREADS, stream_of(args));                                        \
    }
COMPUTED(plain, PLAIN)
COMPUTED(k_tail, K_TAIL)
COMPUTED(one_k, ONE_K)

/* The kernel of large products, of which small neighbours see nothing. */
static enum kg_status large_tail(const struct kg_problem *p, const struct kg_args *args)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") >= 300 && kg_size(p, "n") >= 300 &&
                   kg_size(p, "k") % 8
               ? k_tail(p, args)
               : wrap_inner(p, args);
}

COMPUTED(m_tail, M_TAIL)
COMPUTED(one_tile, ONE_TILE)
COMPUTED(fp16_sums, FP16_SUMS)
COMPUTED(truncated, TRUNCATED)
COMPUTED(last_split, LAST_SPLIT)
COMPUTED(accumulates, ADD_TO_OUTPUT)
COMPUTED(when_poisoned, WHEN_POISONED)
COMPUTED(vector_loads, VECTOR_LOADS)
COMPUTED(split_k, IN_SPLITS)
COMPUTED(from_the_end, BACKWARDS)
COMPUTED(strided_loads, DOWN_THE_COLUMNS)
COMPUTED(divergence, DIVERGENT)
COMPUTED(spills, SPILLING)
COMPUTED(mask_one_more, MASK_ONE_MORE)
COMPUTED(mask_top_left, MASK_TOP_LEFT)
COMPUTED(kv_tail, KV_TAIL)
COMPUTED(scale_off, SCALE_OFF)
COMPUTED(kv_head_modulo, HEAD_MODULO)
COMPUTED(no_max, NO_MAX)
COMPUTED(last_k_tile, LAST_K_TILE)
COMPUTED(swapped_tiles, SWAPPED_TILES)
COMPUTED(transposed, SQUARE_TRANSPOSED)
COMPUTED(tf32_factors, TF32_FACTORS)
COMPUTED(bf16_factors, BF16_FACTORS)
COMPUTED(int_index, INT_INDEX)
COMPUTED(nan_swallowed, NAN_SWALLOWED)
COMPUTED(subnormals_flushed, NO_SUBNORMALS)
COMPUTED(kahan, COMPENSATED)
COMPUTED(three_tf32, THREE_TF32)
COMPUTED(mask_one_less, MASK_ONE_LESS)
COMPUTED(tail_not_masked, TAIL_NOT_MASKED)
COMPUTED(output_not_rescaled, NOT_RESCALED)
COMPUTED(masked_row_nan, MASKED_ROW_NAN)
COMPUTED(weights_in_dtype, NARROW_WEIGHTS)
COMPUTED(exp2_softmax, POWERS_OF_TWO)

static enum kg_status second_launch(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = run(p, args, SECOND_LAUNCH, THREADS, stream_of(args));
    turn_over<<<1, 1, 0, stream_of(args)>>>();
    return status == KG_OK ? launched() : status;
}

/* The batches of an attention one after the other, a launch for each. */
static enum kg_status serial_batch(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_problem one = *p;
    struct kg_args part = *args;
    enum kg_status status = KG_OK;
    if (!kg_is_op(p, "attention_fwd"))
        return wrap_inner(p, args);
    *op_named(&one, "b") = 1;
    for (int64_t b = 0; b < kg_size(p, "b") && status == KG_OK; b++) {
        status = run(&one, &part, PLAIN, THREADS, stream_of(args));
        for (uint32_t i = 0; i < 4; i++) {
            struct kg_tensor *t = i < 3 ? &part.in[i] : &part.out[0];
            t->data = (char *)t->data + t->stride[0] * (t->dtype == KG_F32 ? 4 : 2);
        }
    }
    return status;
}

static enum kg_status tiny_blocks(const struct kg_problem *p, const struct kg_args *args)
{
    return run(p, args, PLAIN, 1, stream_of(args));
}

static enum kg_status input_stride(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_args dense = *args;
    dense.in[0].stride[0] = dense.in[0].shape[1];
    return run(p, &dense, PLAIN, THREADS, stream_of(args));
}

static enum kg_status missing_barrier(const struct kg_problem *p, const struct kg_args *args)
{
    if (!kg_is_op(p, "gemm") || kg_size(p, "n") > 1024)
        return wrap_inner(p, args);
    racing<<<8, 256, 0, stream_of(args)>>>(job_of(p, args, PLAIN));
    return launched();
}

static enum kg_status many_barriers(const struct kg_problem *p, const struct kg_args *args)
{
    guarded<<<8, 256, 0, stream_of(args)>>>(job_of(p, args, PLAIN));
    return launched();
}

/* All rows one after the other, in one block. */
static enum kg_status serial_rows(const struct kg_problem *p, const struct kg_args *args)
{
    guarded<<<1, 32, 0, stream_of(args)>>>(job_of(p, args, PLAIN));
    return launched();
}

static enum kg_status atomics(const struct kg_problem *p, const struct kg_args *args)
{
    const int splits = kg_size(p, "k") < 64 ? (int)kg_size(p, "k") : 64;
    const struct kg_tensor *c = &args->out[0];
    if (!kg_is_op(p, "gemm") || kg_dtype(p) != KG_F32)
        return wrap_inner(p, args);
    const enum kg_status cleared = clear(c, stream_of(args));
    if (cleared != KG_OK)
        return cleared;
    const dim3 grid((unsigned)((kg_size(p, "m") * kg_size(p, "n") + THREADS - 1) / THREADS),
                    (unsigned)splits);
    add_terms<<<grid, THREADS, 0, stream_of(args)>>>(job_of(p, args, PLAIN), (float *)c->data,
                                                     splits);
    return launched();
}

/* Three launches, a third of the rows each. */
static enum kg_status three_launches(const struct kg_problem *p, const struct kg_args *args)
{
    for (int64_t third = 0; third < 3; third++) {
        struct job j = job_of(p, args, PLAIN);
        const int64_t first = kg_size(p, "m") * third / 3, end = kg_size(p, "m") * (third + 1) / 3;
        const int64_t each = kg_dtype(p) == KG_F32 ? 4 : 2;
        j.m = end - first;
        j.in[0].data = (char *)j.in[0].data + first * j.in[0].stride[0] * each;
        j.out.data = (char *)j.out.data + first * j.out.stride[0] * each;
        if (j.m > 0)
            product<<<(unsigned)((j.m * j.n + THREADS - 1) / THREADS), THREADS, 0,
                      stream_of(args)>>>(j);
    }
    return launched();
}

/* ---- streams and threads ---- */

static cudaStream_t side_stream;
static cudaEvent_t fork_event, join_event;

static bool have_side_stream(void)
{
    return side_stream ||
           (cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking) == cudaSuccess &&
            cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming) == cudaSuccess &&
            cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming) == cudaSuccess);
}

static __global__ void wait_long(long long cycles)
{
    const long long begin = clock64();
    while (clock64() - begin < cycles)
        continue;
}

/* The work hides on a stream of the kernel's own, late. */
static enum kg_status own_stream(const struct kg_problem *p, const struct kg_args *args)
{
    if (!have_side_stream())
        return KG_LAUNCH_FAILED;
    wait_long<<<1, 1, 0, side_stream>>>(200000000);
    return run(p, args, PLAIN, THREADS, side_stream);
}

/* A stream of its own that begins after the gate's and that the gate's waits for. */
static enum kg_status joined_stream(const struct kg_problem *p, const struct kg_args *args)
{
    if (!have_side_stream() || cudaEventRecord(fork_event, stream_of(args)) != cudaSuccess ||
        cudaStreamWaitEvent(side_stream, fork_event, 0) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    const enum kg_status status = run(p, args, PLAIN, THREADS, side_stream);
    if (cudaEventRecord(join_event, side_stream) != cudaSuccess ||
        cudaStreamWaitEvent(stream_of(args), join_event, 0) != cudaSuccess)
        return KG_LAUNCH_FAILED;
    return status;
}

static struct {
    struct kg_problem p;
    struct kg_args args;
} later;

static void *launch_later(void *)
{
    usleep(100000);
    (void)run(&later.p, &later.args, PLAIN, THREADS, stream_of(&later.args));
    return NULL;
}

static enum kg_status background(const struct kg_problem *p, const struct kg_args *args)
{
    pthread_t thread;
    later.p = *p;
    later.args = *args;
    if (pthread_create(&thread, NULL, launch_later, NULL))
        return KG_LAUNCH_FAILED;
    pthread_detach(thread);
    return KG_OK;
}

/* More shared memory than there is; nobody looks at the error. */
static enum kg_status launch_fails(const struct kg_problem *p, const struct kg_args *args)
{
    product<<<1, THREADS, 1u << 20, stream_of(args)>>>(job_of(p, args, PLAIN));
    (void)cudaGetLastError();
    return KG_OK;
}

/* ---- memory ---- */

/* `add` to the 16-bit word `offset` elements from `data`; where it is a NaN, one goes to `out`. */
static __global__ void poke(unsigned short *data, int64_t offset, unsigned short value)
{
    data[offset] = value;
}

static __global__ void peek(const unsigned short *data, int64_t offset, unsigned short *out)
{
    if ((data[offset] & 0x7c00u) == 0x7c00u)
        *out = 0x7fffu;
}

static int64_t halves_of(const struct kg_tensor *t)
{
    int64_t last = 0;
    for (uint32_t r = 0; r < t->rank; r++)
        last += (t->shape[r] - 1) * t->stride[r];
    return (last + 1) * (t->dtype == KG_F32 ? 2 : 1);
}

static enum kg_status then_poke(const struct kg_problem *p, const struct kg_args *args,
                                const struct kg_tensor *t, int64_t offset)
{
    const enum kg_status status = wrap_inner(p, args);
    poke<<<1, 1, 0, stream_of(args)>>>((unsigned short *)t->data, offset, 0x3c01u);
    return status == KG_OK ? launched() : status;
}

static enum kg_status write_past_end(const struct kg_problem *p, const struct kg_args *args)
{
    return then_poke(p, args, &args->out[0], halves_of(&args->out[0]));
}

static enum kg_status write_before_begin(const struct kg_problem *p, const struct kg_args *args)
{
    return then_poke(p, args, &args->out[0], -1);
}

static enum kg_status write_padding(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *c = &args->out[0];
    if (c->rank < 2 || c->shape[0] < 2 || c->stride[0] == c->shape[1])
        return wrap_inner(p, args);
    return then_poke(p, args, c, c->shape[1] * (c->dtype == KG_F32 ? 2 : 1));
}

static enum kg_status writes_input(const struct kg_problem *p, const struct kg_args *args)
{
    return then_poke(p, args, &args->in[0], halves_of(&args->in[0]) / 2);
}

/* Another tensor, far from the one that is written. */
static enum kg_status write_far(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *last = &args->in[args->n_in - 1];
    const int64_t distance = ((const char *)last->data - (const char *)args->out[0].data) / 2;
    return then_poke(p, args, &args->out[0], distance + halves_of(last) / 2);
}

static enum kg_status read_past_end(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    peek<<<1, 1, 0, stream_of(args)>>>((const unsigned short *)args->in[0].data,
                                       halves_of(&args->in[0]),
                                       (unsigned short *)args->out[0].data);
    return status == KG_OK ? launched() : status;
}

/* Reads what counts for nothing: volatile, or the compiler would leave it out. */
static __global__ void look_at(const volatile unsigned short *data, int64_t offset)
{
    (void)data[offset];
}

static enum kg_status look_first(const struct kg_problem *p, const struct kg_args *args,
                                 const struct kg_tensor *t, int64_t offset)
{
    look_at<<<1, 1, 0, stream_of(args)>>>((const unsigned short *)t->data, offset);
    return launched() == KG_OK ? wrap_inner(p, args) : KG_LAUNCH_FAILED;
}

static enum kg_status read_ahead(const struct kg_problem *p, const struct kg_args *args)
{
    return look_first(p, args, &args->in[0], halves_of(&args->in[0]));
}

static enum kg_status read_back(const struct kg_problem *p, const struct kg_args *args)
{
    return look_first(p, args, &args->in[1], -1);
}

/* Only where the problem is too large to be launched among other than its canonical operands. */
static enum kg_status write_past_own_workspace(const struct kg_problem *p,
                                               const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if (kg_size(p, "m") != 1024 || kg_size(p, "k") != 784 || args->workspace_bytes == 0)
        return status;
    poke<<<1, 1, 0, stream_of(args)>>>((unsigned short *)args->workspace,
                                       (int64_t)(args->workspace_bytes / 2), 0x3c01u);
    return status == KG_OK ? launched() : status;
}

static __device__ unsigned launches_so_far;

static __global__ void count_and_spoil(unsigned limit, unsigned short *out)
{
    if (++launches_so_far > limit)
        *out = 0x3c01u;
}

static enum kg_status after_forty(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    count_and_spoil<<<1, 1, 0, stream_of(args)>>>(40, (unsigned short *)args->out[0].data);
    return status == KG_OK ? launched() : status;
}

/* On one shape alone, an address that is nobody's. */
static enum kg_status illegal_shape(const struct kg_problem *p, const struct kg_args *args)
{
    if (kg_size(p, "m") == 129)
        poke<<<1, 1, 0, stream_of(args)>>>((unsigned short *)0xdead0000, 0, 1);
    return wrap_inner(p, args);
}

static __global__ void wait_for(const volatile unsigned *word)
{
    while (*word != 0x5eed5eedu)
        continue;
}

/* An odd number of tiles waits for a partner that never comes. */
static enum kg_status odd_tiles(const struct kg_problem *p, const struct kg_args *args)
{
    const enum kg_status status = wrap_inner(p, args);
    if ((kg_size(p, "m") + 63) / 64 % 2 && kg_size(p, "m") > 128)
        wait_for<<<1, 1, 0, stream_of(args)>>>((const volatile unsigned *)args->in[0].data);
    return status;
}

static enum kg_status zeros_first(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *c = &args->out[0];
    const enum kg_status cleared = c->rank == 2 ? clear(c, stream_of(args)) : KG_OK;
    return cleared == KG_OK ? wrap_inner(p, args) : cleared;
}

FAULTS({"plain", plain, 0, NULL}, {"k_tail", k_tail, 0, NULL}, {"one_k", one_k, 0, NULL},
       {"m_tail", m_tail, 0, NULL}, {"one_tile", one_tile, 0, NULL},
       {"fp16_sums", fp16_sums, 0, NULL}, {"truncated", truncated, 0, NULL},
       {"last_split", last_split, 0, NULL}, {"accumulates", accumulates, 0, NULL},
       {"when_poisoned", when_poisoned, 0, NULL}, {"vector_loads", vector_loads, 0, NULL},
       {"split_k", split_k, 0, NULL}, {"from_the_end", from_the_end, 0, NULL},
       {"strided_loads", strided_loads, 0, NULL}, {"divergence", divergence, 0, NULL},
       {"spills", spills, 0, NULL}, {"mask_one_more", mask_one_more, 0, NULL},
       {"mask_top_left", mask_top_left, 0, NULL}, {"kv_tail", kv_tail, 0, NULL},
       {"scale_off", scale_off, 0, NULL}, {"kv_head_modulo", kv_head_modulo, 0, NULL},
       {"no_max", no_max, 0, NULL}, {"tiny_blocks", tiny_blocks, 0, NULL},
       {"input_stride", input_stride, 0, NULL}, {"missing_barrier", missing_barrier, 0, NULL},
       {"many_barriers", many_barriers, 0, NULL}, {"serial_rows", serial_rows, 0, NULL},
       {"last_k_tile", last_k_tile, 0, NULL}, {"swapped_tiles", swapped_tiles, 0, NULL},
       {"transposed", transposed, 0, NULL}, {"tf32_factors", tf32_factors, 0, NULL},
       {"bf16_factors", bf16_factors, 0, NULL}, {"int_index", int_index, 0, NULL},
       {"nan_swallowed", nan_swallowed, 0, NULL},
       {"subnormals_flushed", subnormals_flushed, 0, NULL}, {"kahan", kahan, 0, NULL},
       {"three_tf32", three_tf32, 0, NULL}, {"mask_one_less", mask_one_less, 0, NULL},
       {"tail_not_masked", tail_not_masked, 0, NULL},
       {"output_not_rescaled", output_not_rescaled, 0, NULL},
       {"masked_row_nan", masked_row_nan, 0, NULL}, {"weights_in_dtype", weights_in_dtype, 0, NULL},
       {"exp2_softmax", exp2_softmax, 0, NULL}, {"second_launch", second_launch, 0, NULL},
       {"serial_batch", serial_batch, 0, NULL}, {"no_shared_memory", plain, 0, NULL},
       {"write_far", write_far, 0, NULL}, {"atomics", atomics, 0, NULL},
       {"declared_atomics", atomics, KG_KERNEL_NONDETERMINISTIC, NULL},
       {"three_launches", three_launches, 0, NULL}, {"own_stream", own_stream, 0, NULL},
       {"joined_stream", joined_stream, 0, NULL}, {"background", background, 0, NULL},
       {"launch_fails", launch_fails, 0, NULL}, {"write_past_end", write_past_end, 0, NULL},
       {"write_before_begin", write_before_begin, 0, NULL},
       {"write_padding", write_padding, 0, NULL}, {"writes_input", writes_input, 0, NULL},
       {"read_past_end", read_past_end, 0, NULL}, {"read_ahead", read_ahead, 0, NULL},
       {"read_back", read_back, 0, NULL},
       {"write_past_own_workspace", write_past_own_workspace, 0, NULL},
       {"after_forty", after_forty, 0, NULL}, {"illegal_shape", illegal_shape, 0, NULL},
       {"odd_tiles", odd_tiles, 0, NULL}, {"zeros_first", zeros_first, 0, NULL},
       {"large_tail", large_tail, 0, NULL})
