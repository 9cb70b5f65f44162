/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemv: y = A x, bound by the one read of A.
 *
 * A row belongs to one warp, or to 2, 4 or 8 warps of a block when there are few rows; when there
 * are fewer rows than blocks the GPU can hold, also to several blocks, which leave their sums in
 * the workspace for a second kernel. Each lane has IN_FLIGHT loads of 16 bytes under way, past L1,
 * so that x stays in L1. Every order of additions is fixed.
 *
 * Workspace: partial[M][splits] in fp32 where splits > 1.
 *
 * Block 256 threads, three or more an SM; 80 registers (56 for the unaligned kernel), 32 bytes of
 * static shared memory, no spills. Measured on an H200, of its memory bandwidth by data sheet:
 * 2048^2 fp16 4.2 us, 42 %, fp32 5.8 us, 60 %; 8192^2 fp16 32.8 us, 85 %, fp32 61.3 us, 91 %
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm_problem.h"

static const int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;
static const int IN_FLIGHT = 8;
static const int RUN_BYTES = 16;

struct gemv_arguments {
    const void *a, *x;
    void *y;
    float *partial; /* [m][splits], or NULL: the sums are final and go to y */
    int64_t leading;
    int m, k;
    int split_k;       /* elements of k for each block of a row; a multiple of a run */
    int warps_per_row; /* 1, 2, 4 or 8 */
};

/* COUNT neighbours of a row: 16 bytes, or one element where alignment forbids it. */
template <typename T, int COUNT> struct run {
    T value[COUNT];
};

template <typename T, int COUNT>
static __device__ __forceinline__ run<T, COUNT> load_matrix_run(const T *from)
{
    run<T, COUNT> r;
    if constexpr (COUNT > 1) {
        const uint4 bits = ptx::load_once_16(from);
        memcpy(&r, &bits, sizeof r);
    } else {
        r.value[0] = *from;
    }
    return r;
}

template <typename T, int COUNT>
static __device__ __forceinline__ run<T, COUNT> load_vector_run(const T *from)
{
    run<T, COUNT> r;
    if constexpr (COUNT > 1) {
        const uint4 bits = *(const uint4 *)from;
        memcpy(&r, &bits, sizeof r);
    } else {
        r.value[0] = *from;
    }
    return r;
}

template <typename T, int COUNT>
static __device__ __forceinline__ float dot(const run<T, COUNT> &a, const run<T, COUNT> &x)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sum = fmaf((float)a.value[i], (float)x.value[i], sum);
    return sum;
}

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    return sum;
}

/* The dot product of N runs that are `step` elements apart, all loads first. */
template <int N, typename T, int COUNT>
static __device__ __forceinline__ float dot_batch(const T *a, const T *x, int64_t step)
{
    run<T, COUNT> loaded[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        loaded[i] = load_matrix_run<T, COUNT>(a + i * step);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++)
        sum += dot(loaded[i], load_vector_run<T, COUNT>(x + i * step));
    return sum;
}

/* This lane's share of row . x over elements [begin, end): lane `first` of `stride` lanes. */
template <typename T, int COUNT>
static __device__ __forceinline__ float row_share(const T *row, const T *x, int begin, int end,
                                                  int first, int stride)
{
    const int runs = (end - begin) / COUNT;
    const int64_t step = stride * COUNT;
    const T *a = row + begin, *v = x + begin;
    const int rest = runs * COUNT + first; /* fewer than COUNT elements are left: one a lane */
    float sum = rest < end - begin ? (float)a[rest] * (float)v[rest] : 0.0f;

    a += first * COUNT;
    v += first * COUNT;
    int left = (runs - first + stride - 1) / stride; /* runs of this lane */
    for (; left >= IN_FLIGHT; left -= IN_FLIGHT) {
        sum += dot_batch<IN_FLIGHT, T, COUNT>(a, v, step);
        a += IN_FLIGHT * step;
        v += IN_FLIGHT * step;
    }
    if (left >= 4) {
        sum += dot_batch<4, T, COUNT>(a, v, step);
        a += 4 * step;
        v += 4 * step;
        left -= 4;
    }
    for (; left > 0; left--) {
        sum += dot_batch<1, T, COUNT>(a, v, step);
        a += step;
        v += step;
    }
    return sum;
}

template <typename T, int COUNT>
static __global__ void __launch_bounds__(THREADS, 3)
    gemv_kernel(const __grid_constant__ gemv_arguments p)
{
    __shared__ float share[WARPS];
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int rows_per_block = WARPS / p.warps_per_row;
    const int row = (int)blockIdx.x * rows_per_block + warp / p.warps_per_row;
    const int begin = (int)blockIdx.y * p.split_k, end = min(p.k - begin, p.split_k) + begin;

    float sum = 0.0f;
    if (row < p.m)
        sum = row_share<T, COUNT>((const T *)p.a + row * p.leading, (const T *)p.x, begin, end,
                                  warp % p.warps_per_row * LANES + lane, p.warps_per_row * LANES);
    sum = warp_sum(sum);
    if (lane == 0)
        share[warp] = sum;
    __syncthreads();

    const int mine = (int)blockIdx.x * rows_per_block + (int)threadIdx.x;
    if ((int)threadIdx.x >= rows_per_block || mine >= p.m)
        return;
    float total = 0.0f;
    for (int i = 0; i < p.warps_per_row; i++)
        total += share[(int)threadIdx.x * p.warps_per_row + i];
    if (p.partial != NULL)
        p.partial[mine * (int64_t)gridDim.y + blockIdx.y] = total;
    else
        ((T *)p.y)[mine] = T(total);
}

/* y[row] = the sum of partial[row][0 .. splits), one warp a row. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    gemv_sum_kernel(const float *partial, void *y, int m, int splits)
{
    const int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / LANES;
    if (row >= m)
        return;
    float sum = 0.0f;
    for (int i = (int)threadIdx.x % LANES; i < splits; i += LANES)
        sum += partial[row * (int64_t)splits + i];
    sum = warp_sum(sum);
    if (threadIdx.x % LANES == 0)
        ((T *)y)[row] = T(sum);
}

/* How the rows are cut. */
struct gemv_plan {
    int warps_per_row;
    int splits;
    int split_k;
};

/* Eight warps an SM keep 32 KB in flight, about what the memory needs; below that rows are cut, as
 * long as a lane keeps two runs. */
static struct gemv_plan plan_of(const struct product_sizes *problem, int64_t sms)
{
    const int64_t run = RUN_BYTES / (int64_t)gemm_element_bytes(problem->dtype);
    const int64_t runs = gemm_blocks(problem->k, run), m = problem->m;
    struct gemv_plan plan = {1, 1, (int)problem->k};

    while (plan.warps_per_row < WARPS && m * plan.warps_per_row < sms * 8 &&
           runs >= plan.warps_per_row * LANES * 4)
        plan.warps_per_row *= 2;

    if (plan.warps_per_row < WARPS || m >= sms)
        return plan;
    const int64_t wanted = 2 * sms / m, possible = runs / (THREADS * 2);
    const int64_t splits = wanted < possible ? wanted : possible;
    if (splits < 2)
        return plan;
    const int64_t runs_per_split = gemm_blocks(runs, splits);
    plan.split_k = (int)(runs_per_split * run);
    plan.splits = (int)gemm_blocks(problem->k, plan.split_k);
    return plan;
}

static uint64_t partial_bytes(const struct product_sizes *problem, const struct gemv_plan &plan)
{
    return plan.splits > 1 ? (uint64_t)problem->m * (uint64_t)plan.splits * sizeof(float) : 0;
}

template <typename T>
static enum kg_status enqueue(const gemv_arguments &p, const struct gemv_plan &plan, bool vector,
                              void *stream)
{
    constexpr int RUN = RUN_BYTES / (int)sizeof(T);
    const int64_t blocks = gemm_blocks(p.m, WARPS / plan.warps_per_row);
    const enum kg_status status =
        launch_kernel(vector ? gemv_kernel<T, RUN> : gemv_kernel<T, 1>,
                      dim3((unsigned)blocks, (unsigned)plan.splits), dim3(THREADS), 0, stream, p);
    if (status != KG_OK || plan.splits == 1)
        return status;
    return launch_kernel(gemv_sum_kernel<T>, dim3((unsigned)gemm_blocks(p.m, WARPS)), dim3(THREADS),
                         0, stream, (const float *)p.partial, p.y, p.m, plan.splits);
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "gemv") && (gemm_mma_dtype(problem) || gemm_simt_dtype(problem)) &&
           gemm_serves(device, problem->m, 1, problem->k);
}

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *device)
{
    return partial_bytes(problem, plan_of(problem, device->sm_count));
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    enum kg_status status = gemm_check_frame(problem, args, "gemv", 2, 1);
    if (status != KG_OK)
        return status;
    struct gemm_matrix a;
    status = gemm_check_matrix(&args->in[0], problem->dtype, problem->m, problem->k, &a);
    if (status == KG_OK)
        status = gemm_check_vector(&args->in[1], problem->dtype, problem->k);
    if (status == KG_OK)
        status = gemm_check_vector(&args->out[0], problem->dtype, problem->m);
    if (status != KG_OK)
        return status;

    int sms;
    status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const struct gemv_plan plan = plan_of(problem, sms);
    const uint64_t bytes = partial_bytes(problem, plan);
    if (bytes > 0 && (args->workspace == NULL || args->workspace_bytes < bytes))
        return KG_BAD_ARGUMENT;

    gemv_arguments p;
    p.a = a.data;
    p.x = args->in[1].data;
    p.y = args->out[0].data;
    p.partial = bytes > 0 ? (float *)args->workspace : NULL;
    p.leading = a.leading;
    p.m = (int)problem->m;
    p.k = (int)problem->k;
    p.split_k = plan.split_k;
    p.warps_per_row = plan.warps_per_row;
    const struct gemm_matrix x = {args->in[1].data, 0};
    const bool vector = gemm_aligned(&a, problem->dtype) && gemm_aligned(&x, problem->dtype);
    switch (problem->dtype) {
    case KG_F16:
        return enqueue<__half>(p, plan, vector, args->stream);
    case KG_BF16:
        return enqueue<__nv_bfloat16>(p, plan, vector, args->stream);
    case KG_F32:
        return enqueue<float>(p, plan, vector, args->stream);
    default:
        return KG_UNSUPPORTED;
    }
}

extern "C" const struct kg_kernel kg_gemv =
    kernel_of<product_sizes, supports, nullptr, workspace_bytes, launch>("gemv", "gemv");
