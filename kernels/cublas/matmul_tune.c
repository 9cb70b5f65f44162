/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_tune.c: see provider.h. */
#include "kernels/cublas/provider.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cublas/cublas_api.h"

#define ROTATED_BYTES ((size_t)192 << 20) /* over three times the L2 of an H200 */
#define FILL_BYTES ((size_t)4 << 20)      /* of values, repeated */
#define REPLAY_MS 1.0f
#define WORTH_IT 0.99f /* of the first one's time: less of a gain may be noise */

enum { LAUNCHES_MAX = 400, ROUNDS = 7 };

#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        if ((call) != cudaSuccess) {                                                               \
            (void)cudaGetLastError();                                                              \
            return KG_LAUNCH_FAILED;                                                               \
        }                                                                                          \
    } while (0)

struct candidate {
    cudaGraphExec_t graph; /* NULL: it was refused */
    unsigned n_launches;
    float rounds_ms[ROUNDS]; /* time of a launch */
    float ms;                /* median of these */
};

struct bench {
    const struct matmul *m;
    matmul_candidate run;
    void *context;
    char *memory; /* sets of A, B, bias and D, the scales of both factors, the workspace */
    size_t a_bytes, b_bytes, bias_bytes, set_bytes, n_sets, scale_bytes;
    cudaStream_t stream;
    cudaEvent_t start, end;
};

static size_t bytes_of(int64_t elements, uint32_t dtype)
{
    return round_up((uint64_t)elements * kg_dtype_bytes(dtype));
}

static void plan_memory(struct bench *b)
{
    const struct matmul *m = b->m;
    const int64_t others = m->batches > 1 ? m->batches - 1 : 0;
    b->a_bytes = bytes_of(m->lda * (m->transpose_a ? m->k : m->m) + others * m->stride_a, m->dtype);
    b->b_bytes = bytes_of(m->ldb * (m->transpose_b ? m->n : m->k) + others * m->stride_b, m->dtype);
    b->bias_bytes = bytes_of(m->n, m->dtype);
    b->set_bytes = b->a_bytes + b->b_bytes + b->bias_bytes +
                   bytes_of(m->ldd * m->m + others * m->stride_d, matmul_result(m));
    b->scale_bytes = m->scales == MATMUL_NO_SCALES
                         ? 0
                         : round_up(matmul_scale_a_bytes(m)) + round_up(matmul_scale_b_bytes(m));
    b->n_sets = ROTATED_BYTES / b->set_bytes + 1;
}

/* x in e4m3, cut off; below its normal numbers zero. */
static uint8_t to_e4m3(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    const int exponent = (int)(bits >> 23 & 0xff) - 127;
    const uint32_t sign = bits >> 31 << 7;
    return (uint8_t)(exponent < -6 ? sign
                                   : sign | (uint32_t)(exponent + 7) << 3 | (bits >> 20 & 7));
}

/* Values in (-1, 1), since what is multiplied decides how much power a product takes, and so its
 * time. The generator is Knuth's. */
static void fill(char *to, size_t bytes, uint32_t dtype)
{
    uint64_t state = 1;
    for (size_t at = 0; at < bytes; at += kg_dtype_bytes(dtype)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const float x = (float)((double)(int64_t)state / 9223372036854775808.0);
        const _Float16 half = (_Float16)x;
        const uint8_t byte = to_e4m3(x);
        uint32_t bits;
        memcpy(&bits, &x, 4);
        const uint16_t upper = (uint16_t)(bits >> 16);
        const void *value = dtype == KG_F16    ? (const void *)&half
                            : dtype == KG_BF16 ? (const void *)&upper
                            : dtype == KG_E4M3 ? (const void *)&byte
                                               : (const void *)&x;
        memcpy(to + at, value, kg_dtype_bytes(dtype));
    }
}

static enum kg_status fill_memory(struct bench *b)
{
    const size_t all = b->n_sets * b->set_bytes;
    size_t done = all < FILL_BYTES ? all : FILL_BYTES;
    char *values = malloc(done);
    if (!values)
        return KG_LAUNCH_FAILED;
    fill(values, done, b->m->dtype);
    const cudaError_t copied = cudaMemcpy(b->memory, values, done, cudaMemcpyHostToDevice);
    free(values);
    CUDA_TRY(copied);
    for (; done < all; done *= 2)
        CUDA_TRY(cudaMemcpy(b->memory + done, b->memory, done < all - done ? done : all - done,
                            cudaMemcpyDeviceToDevice));
    CUDA_TRY(cudaMemset(b->memory + all, 0x3f, b->scale_bytes)); /* 0.75 each, nearly */
    return KG_OK;
}

/* Takes fewer sets where there is less memory, and none where one does not fit. */
static void take_memory(struct bench *b)
{
    plan_memory(b);
    for (; b->n_sets > 0; b->n_sets /= 2) {
        const size_t bytes = b->n_sets * b->set_bytes + b->scale_bytes + MATMUL_WORKSPACE_BYTES;
        if (cudaMalloc((void **)&b->memory, bytes) == cudaSuccess)
            return;
        (void)cudaGetLastError();
    }
}

static enum kg_status set_up(struct bench *b)
{
    KG_TRY(fill_memory(b));
    CUDA_TRY(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreate(&b->start));
    CUDA_TRY(cudaEventCreate(&b->end));
    CUDA_TRY(cudaDeviceSynchronize());
    return KG_OK;
}

static void drop(struct candidate *c)
{
    if (c->graph)
        (void)cudaGraphExecDestroy(c->graph);
    c->graph = NULL;
}

static void tear_down(struct bench *b, struct candidate *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        drop(&c[i]);
    if (b->end)
        (void)cudaEventDestroy(b->end);
    if (b->start)
        (void)cudaEventDestroy(b->start);
    if (b->stream)
        (void)cudaStreamDestroy(b->stream);
    (void)cudaFree(b->memory);
}

static enum kg_status launch(const struct bench *b, unsigned i, unsigned set)
{
    char *at = b->memory + set % b->n_sets * b->set_bytes;
    char *bias = at + b->a_bytes + b->b_bytes;
    char *scales = b->memory + b->n_sets * b->set_bytes;
    return b->run(
        b->context, i,
        &(struct matmul_operands){.a = at,
                                  .b = at + b->a_bytes,
                                  .bias = bias,
                                  .scale_a = scales,
                                  .scale_b = scales + round_up(matmul_scale_a_bytes(b->m)),
                                  .d = bias + b->bias_bytes,
                                  .workspace = scales + b->scale_bytes,
                                  .stream = b->stream});
}

static enum kg_status record(const struct bench *b, unsigned i, struct candidate *c)
{
    cudaGraph_t graph = NULL;
    enum kg_status status = KG_OK;
    CUDA_TRY(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
    for (unsigned set = 0; set < c->n_launches && status == KG_OK; set++)
        status = launch(b, i, set);
    CUDA_TRY(cudaStreamEndCapture(b->stream, &graph));
    /* What was recorded of a candidate that failed is shorter than the others, and would win. */
    const cudaError_t made =
        status == KG_OK ? cudaGraphInstantiate(&c->graph, graph, 0) : cudaSuccess;
    (void)cudaGraphDestroy(graph);
    CUDA_TRY(made);
    return status;
}

static enum kg_status replay(const struct bench *b, cudaGraphExec_t graph, float *ms)
{
    CUDA_TRY(cudaEventRecord(b->start, b->stream));
    CUDA_TRY(cudaGraphLaunch(graph, b->stream));
    CUDA_TRY(cudaEventRecord(b->end, b->stream));
    CUDA_TRY(cudaEventSynchronize(b->end));
    CUDA_TRY(cudaEventElapsedTime(ms, b->start, b->end));
    return KG_OK;
}

/* One launch to load the code, a second one for the time of it, then as many as REPLAY_MS take. */
static enum kg_status get_ready(const struct bench *b, unsigned i, struct candidate *c)
{
    float ms = 0;
    KG_TRY(launch(b, i, 0));
    CUDA_TRY(cudaEventRecord(b->start, b->stream));
    KG_TRY(launch(b, i, 1));
    CUDA_TRY(cudaEventRecord(b->end, b->stream));
    CUDA_TRY(cudaEventSynchronize(b->end));
    CUDA_TRY(cudaEventElapsedTime(&ms, b->start, b->end));
    c->n_launches = ms * LAUNCHES_MAX < REPLAY_MS ? LAUNCHES_MAX : 1 + (unsigned)(REPLAY_MS / ms);
    KG_TRY(record(b, i, c));
    return replay(b, c->graph, &ms);
}

/* Half as long as the work, as the gate does, so that it is not the power limit that chooses. */
static void rest(float ms)
{
    const long ns = (long)(ms * 1e6f);
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static int compare_ms(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum kg_status time_all(const struct bench *b, struct candidate *c, unsigned n)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < n; i++) {
            float ms = 0;
            if (!c[i].graph)
                continue;
            KG_TRY(replay(b, c[i].graph, &ms));
            rest(ms / 2);
            c[i].rounds_ms[round] = ms / (float)c[i].n_launches;
        }
    for (unsigned i = 0; i < n; i++) {
        qsort(c[i].rounds_ms, ROUNDS, sizeof(c[i].rounds_ms[0]), compare_ms);
        c[i].ms = c[i].rounds_ms[ROUNDS / 2];
    }
    return KG_OK;
}

/* The first one stands where it is about as fast as the fastest. */
static unsigned choose(const struct candidate *c, unsigned n)
{
    unsigned fastest = 0;
    while (!c[fastest].graph)
        fastest++;
    const unsigned first = fastest;
    for (unsigned i = first + 1; i < n; i++)
        if (c[i].graph && c[i].ms < c[fastest].ms)
            fastest = i;
    return c[fastest].ms < c[first].ms * WORTH_IT ? fastest : first;
}

enum kg_status matmul_tune(const struct matmul *m, matmul_candidate run, void *context, unsigned n,
                           unsigned *fastest)
{
    struct bench b = {.m = m, .run = run, .context = context};
    struct candidate c[MATMUL_CANDIDATES_MAX] = {0};
    enum kg_status status, refused = KG_OK;
    unsigned good = 0;
    *fastest = 0;
    take_memory(&b);
    if (b.n_sets == 0)
        return KG_OK;
    status = set_up(&b);
    for (unsigned i = 0; i < n && status == KG_OK; i++) {
        const enum kg_status ready = get_ready(&b, i, &c[i]);
        if (ready == KG_OK) {
            good++;
        } else {
            refused = ready;
            drop(&c[i]);
        }
    }
    if (status == KG_OK)
        status = good ? time_all(&b, c, n) : refused;
    if (status == KG_OK)
        *fastest = choose(c, n);
    tear_down(&b, c, n);
    return status;
}
