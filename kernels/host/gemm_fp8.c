/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8.c: gemm_fp8 and gemm_fp8_block, C[M,N] = A[M,K] B[N,K]^T of e4m3 with scales. Rows of
 * both factors are converted to fp32 and scaled, those of B once for all; an element of C is their
 * dot product.
 */
#include <stddef.h>

#include "kernels/host/host.h"
#include "kernels/ops/op.h"
#include "kernels/ops/storage.h"

#define CODES 256

/* In floats: all numbers of e4m3, rows of B, and a row of A and one of C for each thread. */
struct room {
    int64_t row_of_k, b, threads, of_thread;
};

static struct room room_of(const struct kg_problem *p)
{
    struct room r = {.row_of_k = host_line(kg_size(p, "k")), .b = CODES};
    r.threads = r.b + kg_size(p, "n") * r.row_of_k;
    r.of_thread = r.row_of_k + host_line(kg_size(p, "n"));
    return r;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    const struct room r = room_of(p);
    return (uint64_t)(r.threads + r.of_thread * device->sm_count) * sizeof(float);
}

struct job {
    const struct simd *simd;
    const struct kg_problem *p;
    const struct kg_args *args;
    struct room room;
    float *memory;
};

/* Row `line` of a factor in fp32, scaled; `scale`: its scales, one a block, or one alone. */
static void decode(const struct job *job, const struct kg_tensor *t, int64_t line,
                   const float *scale, int64_t apart, float *to)
{
    const uint8_t *codes = (const uint8_t *)t->data + line * t->stride[0];
    for (int64_t l = 0; l < t->shape[1]; l++)
        to[l] = job->memory[codes[l]] * scale[l / OP_BLOCK * apart];
}

/* The first scale of a row, where each row, or block of rows, has some. */
static const float *scales_of(const struct kg_tensor *t, int64_t row)
{
    return (const float *)t->data + (t->rank > 1 ? row * t->stride[0] : 0);
}

static void b_item(void *context, int64_t row, int)
{
    const struct job *job = context;
    const struct kg_tensor *sb = &job->args->in[3];
    decode(job, &job->args->in[1], row, scales_of(sb, row / OP_BLOCK), sb->rank > 1,
           job->memory + job->room.b + row * job->room.row_of_k);
}

static void c_item(void *context, int64_t row, int thread)
{
    const struct job *job = context;
    const struct kg_tensor *sa = &job->args->in[2], *c = &job->args->out[0];
    float *a = job->memory + job->room.threads + thread * job->room.of_thread;
    float *sums = a + job->room.row_of_k;
    decode(job, &job->args->in[0], row, scales_of(sa, row), sa->rank > 1, a);
    for (int64_t j = 0; j < c->shape[1]; j++)
        sums[j] = job->simd->dot(a, KG_F32, job->memory + job->room.b + j * job->room.row_of_k,
                                 kg_size(job->p, "k"));
    job->simd->encode((uint16_t *)c->data + row * c->stride[0], sums, c->shape[1], KG_BF16);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    if (!host)
        return KG_BAD_ARGUMENT;
    struct job job = {host->simd, p, args, room_of(p), args->workspace};
    for (int code = 0; code < CODES; code++) {
        const uint8_t byte = (uint8_t)code;
        job.memory[code] = (float)storage_get(&byte, KG_E4M3, 0);
    }
    pool_for(host->pool, n, n * k, b_item, &job);
    pool_for(host->pool, m, m * (k + n * k / POOL_STEP_PRODUCTS), c_item, &job);
    return KG_OK;
}

HOST_KERNEL(gemm_fp8, host_supports);
HOST_KERNEL(gemm_fp8_block, host_supports);
