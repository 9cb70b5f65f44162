/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_attention_cuda.c: attention forward of our library and of the provider `cudnn` against the
 * fp64 reference where the gate's suites do not go: scales that are far from 1 / sqrt(D), rows
 * that end within a tile, dimensions of one with strides that say nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/library/library.h"
#include "tests/gpu/gpu_device.h"
#include "tests/unit/problem_tensors.h"

static struct library ours, cudnn;
static bool has_cudnn;

/* Three inputs, then the output. */
struct operands {
    struct kg_args args;
    struct device_memory memory[4], reference, workspace;
};

static struct kg_tensor new_tensor(const struct kg_problem *p, unsigned i,
                                   struct device_memory *memory)
{
    const struct kg_shape shape = op_shape_of(p, i);
    struct kg_tensor t = {.dtype = p->dtype[i], .rank = shape.rank};
    memcpy(t.shape, shape.size, sizeof(t.shape));
    lay_out_tensor(&t, LAYOUT_DENSE);
    *memory = new_memory(storage_span(&t));
    t.data = memory->data;
    return t;
}

/* Inputs of N(0,1), the output full of NaN. */
static void set_up(struct operands *o, const struct kg_problem *p)
{
    struct gate_error err;
    *o = (struct operands){.args = {.struct_bytes = sizeof(o->args), .n_in = 3, .n_out = 1}};
    CHECK(op_is_problem(p));
    for (uint32_t i = 0; i < 3; i++) {
        o->args.in[i] = new_tensor(p, i, &o->memory[i]);
        CHECK(is_ok(device_fill_normal(device, o->args.in[i].data, (enum kg_dtype)kg_dtype(p),
                                       tensor_span(&o->args.in[i]), (struct op_spread){0, 1}, i + 1,
                                       &err),
                    &err));
    }
    o->args.out[0] = new_tensor(p, 3, &o->memory[3]);
    CHECK(
        is_ok(device_fill_bytes(device, o->memory[3].data, 0xff, o->memory[3].bytes, &err), &err));
    o->reference = new_memory((size_t)pattern_elements(&o->args.out[0]) * sizeof(double));
}

static void tear_down(struct operands *o)
{
    for (int i = 0; i < 4; i++)
        device_free(device, &o->memory[i]);
    device_free(device, &o->reference);
    device_free(device, &o->workspace);
}

struct call {
    const struct kg_kernel *kernel;
    const struct kg_problem *problem;
    struct kg_args *args;
};

static enum kg_status launch(void *context, unsigned, void *stream)
{
    struct call *call = context;
    call->args->stream = stream;
    return call->kernel->launch(call->problem, call->args);
}

/* Twice the rounding of the output. Scores from 2^24 on are known to a power of two no better than
 * by half, so that two keys next to each other may be weighed differently. */
static double limit_of(const struct kg_problem *p)
{
    if (fabs(kg_param(p, "scale")) > 10)
        return 2e-2;
    return kg_dtype(p) == KG_F16 ? 5e-4 : 4e-3;
}

static void check_result(const struct kg_problem *p, const struct kg_kernel *kernel,
                         struct operands *o)
{
    double *reference[KG_MAX_TENSORS] = {o->reference.data};
    const struct device_part_rule rule = {0};
    struct device_comparison c;
    struct gate_error err;
    if (!CHECK(is_ok(device_reference(device, p, o->args.in, reference, &err), &err)) ||
        !CHECK(is_ok(device_compare(device, &o->args.out[0], o->reference.data, &rule, &c, &err),
                     &err)))
        return;
    const double error = sqrt(c.error_sq / c.reference_sq);
    if (!CHECK(c.nonfinite == 0) || !CHECK(error <= limit_of(p)))
        printf("# %s, dtype %u, flags %u, scale %g: %lld x %lld heads (%lld), %lld x %lld, D %lld: "
               "relative error %g, %lld not finite\n",
               kernel->name, kg_dtype(p), p->flags, kg_param(p, "scale"),
               (long long)kg_size(p, "b"), (long long)kg_size(p, "h"),
               (long long)kg_size(p, "kv_heads"), (long long)kg_size(p, "sq"),
               (long long)kg_size(p, "s"), (long long)kg_size(p, "d"), error,
               (long long)c.nonfinite);
}

/* `stride`: of dimensions of one; 0 leaves them alone. */
static void check(const struct library *library, const struct kg_problem *p, int64_t stride)
{
    const struct kg_device *chip = &device_info(device)->kg;
    const struct kg_kernel *kernel = library_choose(library, p, chip, NULL);
    struct operands o;
    struct gate_error err;
    void *plan = NULL;
    if (!CHECK(kernel != NULL) ||
        !CHECK(!kernel->prepare || kernel->prepare(p, chip, &plan) == KG_OK))
        return;
    set_up(&o, p);
    o.args.plan = plan;
    o.workspace =
        new_memory(kernel->workspace_bytes ? (size_t)kernel->workspace_bytes(p, chip, plan) : 0);
    o.args.workspace = o.workspace.data;
    o.args.workspace_bytes = o.workspace.bytes;
    struct kg_args dense = o.args;
    for (int i = 0; i < 4 && stride; i++) {
        struct kg_tensor *t = i < 3 ? &o.args.in[i] : &o.args.out[0];
        for (int d = 0; d < 3; d++)
            if (t->shape[d] == 1)
                t->stride[d] = stride;
    }
    struct call call = {kernel, p, &o.args};
    if (CHECK(is_ok(device_launch_checked(device, launch, &call, 0, &err), &err))) {
        dense.stream = o.args.stream;
        o.args = dense;
        check_result(p, kernel, &o);
    }
    if (kernel->release)
        kernel->release(plan);
    tear_down(&o);
}

struct attention_shape {
    int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
};

/* One or more for each kernel; query rows that end within a tile, and rows without keys where a
 * mask leaves them none. */
static const struct attention_shape shapes[] = {
    {1, 4, 4, 512, 512, 64},
    {3, 16, 16, 500, 512, 64},
    {9, 16, 4, 65, 500, 64},
    {9, 16, 16, 300, 512, 64},
    {9, 16, 16, 700, 400, 64},
    {2, 8, 8, 640, 600, 64},
    {2, 8, 8, 640, 600, 128},
    {3, 16, 2, 1, 900, 128},
    {1, 8, 2, 5, 900, 64},
    /* attention_fwd_short; _long with other head_dims, whose rows fill a tile in part; then _split:
     * parts of many blocks, whole row tiles, heads of several row tiles, rows without keys in a
     * part or at all. */
    {12, 16, 8, 130, 200, 64},
    {9, 16, 16, 200, 300, 80},
    {9, 16, 16, 200, 300, 96},
    {9, 16, 8, 200, 150, 192},
    {9, 16, 16, 200, 300, 256},
    {3, 48, 48, 140, 140, 24},
    {1, 64, 1, 3, 5000, 128},
    {150, 4, 1, 9, 300, 72},
    {1, 6, 2, 301, 2000, 128},
    {2, 6, 2, 301, 100, 192},
    {1, 7, 1, 40, 3000, 256},
    {1, 40, 5, 33, 4096, 64},
    {3, 4, 4, 1, 1111, 96},
    /* A warpgroup without rows beside one with more key tiles than there are stages. */
    {1, 6, 1, 200, 9000, 128},
    {1, 16, 1, 300, 9000, 64},
};

static struct kg_problem problem(const struct attention_shape *s, uint32_t dtype, uint32_t flags,
                                 double scale)
{
    struct kg_problem p = attention((enum kg_dtype)dtype, flags, s->heads, s->kv_heads, s->seqlen_q,
                                    s->seqlen_kv, s->head_dim);
    *op_named(&p, "b") = s->batch;
    *op_param_named(&p, "scale") = scale;
    return p;
}

static void check_scales(const double *scales, size_t n)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (uint32_t dtype = KG_F16; dtype <= KG_BF16; dtype++)
            for (uint32_t flags = 0; flags <= KG_FLAG_CAUSAL; flags += KG_FLAG_CAUSAL)
                for (size_t s = 0; s < n; s++) {
                    const struct kg_problem p = problem(&shapes[i], dtype, flags, scales[s]);
                    check(&ours, &p, 0);
                }
}

static void test_shapes(void)
{
    check_scales((const double[]){0.125}, 1);
}

static void test_large_scales(void)
{
    check_scales((const double[]){40, 1e5, 1e8, 1e12, 0x1p64}, 5);
}

/* Only the kernels for Hopper take what is not positive. */
static void test_scales_that_are_not_positive(void)
{
    const struct kg_device *chip = &device_info(device)->kg;
    if (chip->cc_major != 9) {
        tap_skip("not of compute capability 9.0");
        return;
    }
    check_scales((const double[]){-0.125, -1e8, 0, 1e-39, -1e-39, 1e-300}, 6);
}

/* A dimension of one element may have any stride, the largest too. */
static void test_strides_that_say_nothing(void)
{
    static const struct attention_shape ones[] = {
        {1, 1, 1, 512, 512, 64},
        {1, 1, 1, 1, 900, 128},
        {1, 1, 1, 1000, 1000, 128},
        {1, 8, 1, 1, 1, 64},
    };
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        const struct kg_problem p = problem(&ones[i], KG_F16, 0, 0.125);
        check(&ours, &p, INT64_MAX);
        if (has_cudnn)
            check(&cudnn, &p, INT64_MAX);
    }
}

/* One plan serves all scales. */
static void test_cudnn_scales(void)
{
    if (!has_cudnn) {
        tap_skip("cuDNN is not installed");
        return;
    }
    for (int i = 1; i <= 3; i++) {
        const struct kg_problem p = problem(&shapes[0], KG_F16, KG_FLAG_CAUSAL, 0.125 * i);
        check(&cudnn, &p, 0);
    }
}

static bool open_library(const char *name, struct library *out)
{
    const char *build = getenv("KERNEL_GATE_BUILD");
    struct gate_error err = {0};
    char path[4096];
    snprintf(path, sizeof(path), "%s/lib/kernel-gate/lib%s.so", build ? build : "build", name);
    return is_ok(library_open(path, KG_DEVICE_CUDA, false, out, &err), &err);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"shapes", test_shapes},
        {"large scales", test_large_scales},
        {"scales that are not positive", test_scales_that_are_not_positive},
        {"strides that say nothing", test_strides_that_say_nothing},
        {"cuDNN: scales", test_cudnn_scales},
    };
    struct gate_error err = {0};
    if (!is_ok(device_open("cuda:0", &device, &err), &err))
        return (int)err.status;
    if (!open_library("ours", &ours) || !open_library("cudnn_provider", &cudnn))
        return GATE_WRONG;
    has_cudnn = library_start(&cudnn, &device_info(device)->kg, NULL) == GATE_OK;
    const int status = tap_run(tests, sizeof(tests) / sizeof(tests[0]));
    library_close(&cudnn);
    library_close(&ours);
    device_close(device);
    return status;
}
