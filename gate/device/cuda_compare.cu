/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_compare.cu: one pass over an output and its fp64 reference.
 *
 * Two levels: each of a fixed number of blocks reduces its elements to one part, then one block
 * reduces the parts. The order of all additions is fixed by the sizes alone, so equal outputs give
 * equal figures to the last bit.
 */
#include "gate/device/cuda_device.cuh"
#include "kernels/ops/dtype.cuh"
#include "kernels/ops/dtype.h"

enum { THREADS = 256, BLOCKS = 1024 };

#define NO_INDEX INT64_MAX

struct comparison_part {
    int64_t nonfinite, over_1e2, over_1e3;
    int64_t first_bad; /* NO_INDEX: none */
    double reference_sq, error_sq, max_abs;
};

struct comparison_result {
    struct comparison_part sum;
    double first_bad_value, first_bad_reference;
};

static __device__ struct comparison_part nothing(void)
{
    struct comparison_part part = {};
    part.first_bad = NO_INDEX;
    return part;
}

static __device__ bool within(double difference, double reference, double tolerance)
{
    return difference <= tolerance + tolerance * fabs(reference); /* false for a NaN */
}

static __device__ void count_bad(struct comparison_part *part, int64_t index)
{
    part->over_1e2++;
    part->first_bad = min(part->first_bad, index);
}

/* Where the reference itself is not finite there is no distance: the element is right when it is
 * the same infinity, or a NaN where a NaN is due, and enters no sum. */
static __device__ void add_without_distance(struct comparison_part *part, double value,
                                            double reference, int64_t index)
{
    if (value == reference || (isnan(value) && isnan(reference)))
        return;
    part->over_1e3++;
    count_bad(part, index);
}

static __device__ void add(struct comparison_part *part, double value, double reference,
                           int64_t index)
{
    if (!isfinite(reference)) {
        add_without_distance(part, value, reference, index);
        return;
    }
    const double difference = fabs(value - reference);
    part->reference_sq += reference * reference;
    if (isfinite(value)) {
        part->error_sq += difference * difference;
        part->max_abs = fmax(part->max_abs, difference);
    } else {
        part->nonfinite++;
    }
    if (!within(difference, reference, 1e-3))
        part->over_1e3++;
    if (!within(difference, reference, 1e-2))
        count_bad(part, index);
}

static __device__ void merge(struct comparison_part *into, const struct comparison_part *from)
{
    into->nonfinite += from->nonfinite;
    into->over_1e2 += from->over_1e2;
    into->over_1e3 += from->over_1e3;
    into->first_bad = min(into->first_bad, from->first_bad);
    into->reference_sq += from->reference_sq;
    into->error_sq += from->error_sq;
    into->max_abs = fmax(into->max_abs, from->max_abs);
}

/* Leaves the block's sum in part[0]. */
static __device__ void reduce_block(struct comparison_part *part)
{
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            merge(&part[threadIdx.x], &part[threadIdx.x + width]);
    }
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    compare_elements(const T *value, const double *reference, int64_t count,
                     struct comparison_part *out)
{
    __shared__ struct comparison_part part[THREADS];
    struct comparison_part mine = nothing();
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (int64_t i = first; i < count; i += (int64_t)BLOCKS * THREADS)
        add(&mine, load(value + i), reference[i], i);
    part[threadIdx.x] = mine;
    reduce_block(part);
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    compare_parts(const struct comparison_part *in, const T *value, const double *reference,
                  struct comparison_result *out)
{
    __shared__ struct comparison_part part[THREADS];
    struct comparison_part mine = nothing();
    for (int i = (int)threadIdx.x; i < BLOCKS; i += THREADS)
        merge(&mine, &in[i]);
    part[threadIdx.x] = mine;
    reduce_block(part);
    if (threadIdx.x != 0)
        return;
    const int64_t bad = part[0].first_bad;
    out->sum = part[0];
    out->first_bad_value = bad == NO_INDEX ? 0.0 : load(value + bad);
    out->first_bad_reference = bad == NO_INDEX ? 0.0 : reference[bad];
}

template <typename T>
static enum gate_status compare(struct cuda_device *d, const void *data, const double *reference,
                                int64_t count, struct comparison_result *result,
                                struct gate_error *err)
{
    const T *value = (const T *)data;
    struct comparison_part *parts = (struct comparison_part *)d->compare_scratch;
    struct comparison_result *on_device = (struct comparison_result *)(parts + BLOCKS);
    compare_elements<T><<<BLOCKS, THREADS, 0, d->stream>>>(value, reference, count, parts);
    CUDA_TRY(cudaGetLastError(), err);
    compare_parts<T><<<1, THREADS, 0, d->stream>>>(parts, value, reference, on_device);
    CUDA_TRY(cudaGetLastError(), err);
    CUDA_TRY(cudaMemcpyAsync(result, on_device, sizeof(*result), cudaMemcpyDeviceToHost, d->stream),
             err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

bool cuda_is_dense(const struct kg_tensor *t, int64_t *count)
{
    *count = 1;
    if (t->rank < 1 || t->rank > KG_MAX_RANK)
        return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->shape[i] > 1 && t->stride[i] != *count)
            return false;
        *count *= t->shape[i];
    }
    return true;
}

size_t cuda_compare_scratch_bytes(void)
{
    return BLOCKS * sizeof(struct comparison_part) + sizeof(struct comparison_result);
}

enum gate_status cuda_compare(struct device *device, const struct kg_tensor *out,
                              const double *reference, struct device_comparison *result,
                              struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    struct comparison_result r = {};
    int64_t count;
    if (!cuda_is_dense(out, &count))
        return gate_fail(err, GATE_INTERNAL, "only a dense output can be compared");
    if (!dtype_stored(out->dtype))
        return gate_fail(err, GATE_INTERNAL, "cannot compare elements of unknown dtype %u",
                         out->dtype);
#define COMPARE(T) GATE_TRY(compare<T>(d, out->data, reference, count, &r, err))
    DTYPE_SWITCH(out->dtype, COMPARE)
#undef COMPARE
    result->elements = count;
    result->nonfinite = r.sum.nonfinite;
    result->reference_sq = r.sum.reference_sq;
    result->error_sq = r.sum.error_sq;
    result->max_abs = r.sum.max_abs;
    result->first_bad = r.sum.first_bad == NO_INDEX ? -1 : r.sum.first_bad;
    result->first_bad_value = r.first_bad_value;
    result->first_bad_reference = r.first_bad_reference;
    result->over_1e2 = r.sum.over_1e2;
    result->over_1e3 = r.sum.over_1e3;
    return GATE_OK;
}
