/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_hash.cu: one hash over device memory, so that a look for changed bytes copies none of them.
 *
 * Each word is mixed with its place and all are added up, which comes to the same in any order.
 */
#include "gate/device/cuda_device.cuh"

enum { THREADS = 256, BLOCKS = 2048, WARP = 32 };

/* The up to seven bytes before or behind the whole words, as a word, below their number. */
static __device__ uint64_t odd_word(const unsigned char *bytes, int n)
{
    uint64_t word = (uint64_t)n;
    for (int i = 0; i < n; i++)
        word = word << 8 | bytes[i];
    return word;
}

/* Adds the hash of `words` whole words, `head` bytes before and `rest` bytes behind them to *sum.
 */
static __global__ void __launch_bounds__(THREADS)
    hash_words(const uint64_t *data, int64_t words, int head, int rest, unsigned long long *sum)
{
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned long long mine = 0;
    for (int64_t i = first; i < words; i += (int64_t)gridDim.x * THREADS)
        mine += seed_at(data[i], (uint64_t)i);
    if (first == 0 && rest > 0)
        mine += seed_at(odd_word((const unsigned char *)(data + words), rest), (uint64_t)words);
    if (first == 0 && head > 0)
        mine += seed_at(odd_word((const unsigned char *)data - head, head), (uint64_t)words + 1);
    for (int lane = WARP / 2; lane > 0; lane /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, lane);
    if (threadIdx.x % WARP == 0)
        atomicAdd(sum, mine);
}

static enum gate_status start_hash(struct cuda_device *d, const struct device_span *span,
                                   unsigned long long *sum, struct gate_error *err)
{
    const size_t odd = (size_t)((uintptr_t)span->data % sizeof(uint64_t));
    const size_t before = odd ? sizeof(uint64_t) - odd : 0;
    const size_t head = before < span->bytes ? before : span->bytes;
    const size_t bytes = span->bytes - head;
    const int64_t words = (int64_t)(bytes / sizeof(uint64_t));
    const int64_t blocks = (words + THREADS) / THREADS;
    hash_words<<<(unsigned)(blocks < BLOCKS ? blocks : BLOCKS), THREADS, 0, d->stream>>>(
        (const uint64_t *)((const unsigned char *)span->data + head), words, (int)head,
        (int)(bytes % sizeof(uint64_t)), sum);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

enum gate_status cuda_hash(struct device *device, const struct device_span *spans, size_t n,
                           uint64_t *hashes, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    unsigned long long *const sums = (unsigned long long *)d->compare_scratch;
    const size_t room = cuda_compare_scratch_bytes() / sizeof *sums;
    for (size_t first = 0; first < n; first += room) {
        const size_t some = n - first < room ? n - first : room;
        CUDA_TRY(cudaMemsetAsync(sums, 0, some * sizeof *sums, d->stream), err);
        for (size_t i = 0; i < some; i++)
            TRY(start_hash(d, &spans[first + i], sums + i, err));
        CUDA_TRY(cudaMemcpyAsync(hashes + first, sums, some * sizeof *sums, cudaMemcpyDeviceToHost,
                                 d->stream),
                 err);
        CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    }
    return GATE_OK;
}
