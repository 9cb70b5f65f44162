/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd.c: the backward pass of linear_relu, in three steps on one stream:
 *
 *   1. G = dY where Y > 0, else 0, and db = column sums of G: one kernel of ours (relu.cu)
 *   2. dX = G W      cuBLASLt
 *   3. dW = G^T X    cuBLASLt
 *
 * The mask is on an input of both products. cuBLASLt's DRELU epilogues mask an output, that is the
 * gradient of the layer before, with a bit mask that its own forward pass wrote, so they do not fit
 * this op. BGRADB could fuse db into step 3; here db costs nothing, since step 1 holds G in
 * registers anyway.
 *
 * Workspace: G, then the scratch of step 1, then that of the products, each from a multiple of 256.
 */
#include "kernels/cublas/provider.h"

struct regions {
    uint64_t scratch, products, end; /* offsets; G is at 0 */
};

static struct regions regions_of(const struct kg_problem *p)
{
    const uint64_t element = kg_dtype_bytes(kg_dtype(p));
    struct regions r;
    r.scratch = round_up((uint64_t)kg_size(p, "m") * (uint64_t)kg_size(p, "n") * element);
    r.products =
        r.scratch + round_up(relu_gradient_scratch_bytes(kg_size(p, "m"), kg_size(p, "n")));
    r.end = r.products + MATMUL_WORKSPACE_BYTES;
    return r;
}

/* dX = G W, or dW = G^T X. */
static struct matmul product_of(const struct kg_problem *p, bool is_dw, int64_t ldb, int64_t ldd)
{
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n");
    return (struct matmul){
        .dtype = kg_dtype(p),
        .tf32 = (p->flags & KG_FLAG_TF32) != 0,
        .transpose_a = is_dw,
        .m = is_dw ? n : m,
        .n = kg_size(p, "k"),
        .k = is_dw ? m : n,
        .lda = n,
        .ldb = ldb,
        .ldd = ldd,
    };
}

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *, void **plan)
{
    struct matmul_plan *plans = NULL;
    const struct matmul dx = product_of(p, false, kg_size(p, "k"), kg_size(p, "k")),
                        dw = product_of(p, true, kg_size(p, "k"), kg_size(p, "k"));
    enum kg_status status = matmul_prepare(&dx, &plans);
    if (status == KG_OK)
        status = matmul_prepare(&dw, &plans);
    if (status != KG_OK)
        matmul_release(plans);
    else
        *plan = plans;
    return status;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *, void *)
{
    return regions_of(p).end;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *dy = &args->in[0], *x = &args->in[1], *w = &args->in[2];
    const struct kg_tensor *y = &args->in[3];
    const struct kg_tensor *dx = &args->out[0], *dw = &args->out[1], *db = &args->out[2];
    const struct regions r = regions_of(p);
    char *workspace = args->workspace;
    if (args->n_in != 4 || args->n_out != 3 || args->workspace_bytes < r.end)
        return KG_BAD_ARGUMENT;
    if (!have_unit_columns(args->in, 4) || !have_unit_columns(args->out, 3))
        return KG_UNSUPPORTED;

    KG_TRY(relu_gradient(dy, y, workspace, workspace + r.scratch, db, args->stream));
    struct matmul_operands o = {.a = workspace,
                                .b = w->data,
                                .d = dx->data,
                                .workspace = workspace + r.products,
                                .stream = args->stream};
    const struct matmul to_dx = product_of(p, false, leading_of(w), leading_of(dx));
    KG_TRY(matmul_launch(&to_dx, args->plan, &o));
    o.b = x->data;
    o.d = dw->data;
    const struct matmul to_dw = product_of(p, true, leading_of(x), leading_of(dw));
    return matmul_launch(&to_dw, args->plan, &o);
}

CUBLASLT_KERNEL(linear_relu_bwd, is_served, workspace_bytes);
