/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8.h: gemm_fp8 and gemm_fp8_block as their kernels see them: from the tensors of a call to
 * matrices and scales, with every check between.
 */
#ifndef KG_GEMM_FP8_H
#define KG_GEMM_FP8_H

#include "kernels/gemm/gemm_problem.h"

#define GEMM_FP8_BLOCK 128 /* of k, and of the columns of C, that have one scale */

struct gemm_fp8_sizes {
    int64_t m, n, k;
    bool blocks; /* scales of blocks, not of whole matrices */
};

struct gemm_fp8_call {
    int64_t m, n, k;
    struct gemm_matrix a, b, c, sa, sb; /* of whole matrices sa and sb have one element */
    bool tma_ab, tma_c;                 /* whether rows are and begin at multiples of 16 bytes */
    void *stream;
};

static inline bool read_sizes(const struct kg_problem *p, struct gemm_fp8_sizes *s)
{
    s->blocks = kg_is_op(p, "gemm_fp8_block");
    s->m = kg_size(p, "m");
    s->n = kg_size(p, "n");
    s->k = kg_size(p, "k");
    return (s->blocks || kg_is_op(p, "gemm_fp8")) && p->flags == 0 && p->n_in == 4 &&
           p->n_out == 1 && p->dtype[0] == KG_E4M3 && p->dtype[1] == KG_E4M3 &&
           p->dtype[2] == KG_F32 && p->dtype[3] == KG_F32 && p->dtype[4] == KG_BF16;
}

static inline enum kg_status gemm_fp8_call_of(const struct gemm_fp8_sizes *s,
                                              const struct kg_args *args,
                                              struct gemm_fp8_call *call)
{
    const int64_t blocks_n = gemm_blocks(s->n, GEMM_FP8_BLOCK);
    const int64_t blocks_k = gemm_blocks(s->k, GEMM_FP8_BLOCK);

    if (args->struct_bytes < sizeof *args || args->n_in != 4 || args->n_out != 1)
        return KG_BAD_ARGUMENT;
    call->m = s->m;
    call->n = s->n;
    call->k = s->k;
    call->stream = args->stream;
    const struct {
        const struct kg_tensor *tensor;
        uint32_t dtype;
        int64_t rows, columns;
        struct gemm_matrix *matrix;
    } matrices[] = {
        {&args->in[0], KG_E4M3, s->m, s->k, &call->a},
        {&args->in[1], KG_E4M3, s->n, s->k, &call->b},
        {&args->out[0], KG_BF16, s->m, s->n, &call->c},
        {&args->in[2], KG_F32, s->m, blocks_k, &call->sa},
        {&args->in[3], KG_F32, blocks_n, blocks_k, &call->sb},
    };
    for (int i = 0; i < (s->blocks ? 5 : 3); i++) {
        const enum kg_status status =
            gemm_check_matrix(matrices[i].tensor, matrices[i].dtype, matrices[i].rows,
                              matrices[i].columns, matrices[i].matrix);
        if (status != KG_OK)
            return status;
    }
    for (int i = 3; i < 5 && !s->blocks; i++) {
        const enum kg_status status = gemm_check_vector(matrices[i].tensor, KG_F32, 1);
        if (status != KG_OK)
            return status;
        *matrices[i].matrix = {matrices[i].tensor->data, 0};
    }
    call->tma_ab = kg_is_aligned(&args->in[0], 16) && kg_is_aligned(&args->in[1], 16);
    call->tma_c = kg_is_aligned(&args->out[0], 16) && s->n % 8 == 0;
    return KG_OK;
}

/* On FMA units: what TMA does not reach. */
enum kg_status gemm_fp8_plain(const struct gemm_fp8_call *call, bool blocks);

#endif
