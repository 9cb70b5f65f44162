/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cublas_provider.c: every kernel of the provider `cublas` against the fp64 reference, and its
 * launches recorded. The library is the argument, or that of the build folder.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/library/library.h"
#include "tests/unit/problem_tensors.h"
#include "tests/gpu/gpu_device.h"

static struct library library;
static bool is_absent; /* cuBLAS is not there */

/* A problem with its operands on the device. */
struct call {
    struct kg_problem problem;
    const struct kg_kernel *kernel;
    struct kg_args args;
    struct device_memory in[KG_MAX_TENSORS], out[KG_MAX_TENSORS], reference[KG_MAX_TENSORS];
    struct device_memory workspace;
};

static enum kg_status launch(void *context, unsigned, void *stream)
{
    struct call *call = context;
    call->args.stream = stream;
    return call->kernel->launch(&call->problem, &call->args);
}

static struct kg_tensor new_tensor(const struct kg_problem *p, unsigned i, enum layout layout,
                                   struct device_memory *memory)
{
    const struct kg_shape shape = op_shape_of(p, i);
    struct kg_tensor t = {.dtype = p->dtype[i], .rank = shape.rank};
    memcpy(t.shape, shape.size, sizeof(t.shape));
    lay_out_tensor(&t, layout);
    *memory = new_memory(storage_span(&t));
    t.data = memory->data;
    if (t.rank == 2 && t.shape[0] == 1)
        t.stride[0] = 1; /* may be anything */
    return t;
}

/* Inputs in the layout and filled with N(0,1), gaps too; outputs dense and full of NaN. */
static void set_up(struct call *call, enum layout layout)
{
    const struct kg_problem *p = &call->problem;
    struct gate_error err;
    call->args = (struct kg_args){.struct_bytes = sizeof(call->args)};
    call->args.n_in = p->n_in;
    call->args.n_out = p->n_out;
    for (uint32_t i = 0; i < p->n_in; i++) {
        struct kg_tensor *t = &call->args.in[i];
        *t = new_tensor(p, i, layout, &call->in[i]);
        CHECK(is_ok(device_fill_normal(device, t->data, (enum kg_dtype)t->dtype, tensor_span(t),
                                       (struct op_spread){0, 1}, i + 1, &err),
                    &err));
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        struct kg_tensor *t = &call->args.out[i];
        *t = new_tensor(p, p->n_in + i, LAYOUT_DENSE, &call->out[i]);
        CHECK(is_ok(device_fill_bytes(device, t->data, 0xff, call->out[i].bytes, &err), &err));
        call->reference[i] = new_memory((size_t)pattern_elements(t) * sizeof(double));
    }
}

static void tear_down(struct call *call)
{
    for (uint32_t i = 0; i < KG_MAX_TENSORS; i++) {
        device_free(device, &call->in[i]);
        device_free(device, &call->out[i]);
        device_free(device, &call->reference[i]);
    }
    device_free(device, &call->workspace);
}

/* About twice the rounding of the output; fp32 sums lose a few bits more. */
static double limit_of(const struct kg_problem *p)
{
    if (kg_dtype(p) == KG_F32)
        return p->flags & KG_FLAG_TF32 ? 1e-3 : 2e-6;
    return kg_dtype(p) == KG_F16 ? 6e-4 : 4e-3;
}

static bool outputs_are_right(struct call *call)
{
    double *reference[KG_MAX_TENSORS];
    struct gate_error err;
    bool right = true;
    for (uint32_t i = 0; i < call->args.n_out; i++)
        reference[i] = call->reference[i].data;
    if (!CHECK(
            is_ok(device_reference(device, &call->problem, call->args.in, reference, &err), &err)))
        return false;
    for (uint32_t i = 0; i < call->args.n_out; i++) {
        const struct device_part_rule rule = {0};
        struct device_comparison c;
        right &= CHECK(
            is_ok(device_compare(device, &call->args.out[i], reference[i], &rule, &c, &err), &err));
        const double error = sqrt(c.error_sq / c.reference_sq);
        right &= CHECK(c.nonfinite == 0);
        right &= CHECK(error <= limit_of(&call->problem));
        if (!right)
            printf("# output %u: relative error %g, %lld not finite\n", i, error,
                   (long long)c.nonfinite);
    }
    return right;
}

static bool records(struct call *call)
{
    struct device_replay *replay = NULL;
    struct device_time time;
    struct gate_error err;
    if (!is_ok(device_replay_record(device, launch, call, 5, false, &replay, &err), &err))
        return false;
    bool good = is_ok(device_replay_run(device, replay, &time, &err), &err);
    device_replay_free(device, replay);
    return good;
}

/* cuBLASLt does, with a bias and 16-bit rows that are no multiples of 16 bytes. */
static bool rounds_twice(const struct kg_problem *p, enum layout layout)
{
    return kg_is_op(p, "linear_relu") && kg_dtype(p) != KG_F32 &&
           (layout != LAYOUT_DENSE || kg_size(p, "k") % 8 || kg_size(p, "n") % 8);
}

static void check_call(const struct kg_problem *p, enum layout layout)
{
    const struct kg_device *chip = &device_info(device)->kg;
    struct call call = {.problem = *p};
    struct gate_error err;
    call.kernel = library_choose(&library, p, chip, NULL);
    if (!CHECK(call.kernel && op_is_problem(p)))
        return;
    void *plan = NULL;
    bool good = !call.kernel->prepare || CHECK(call.kernel->prepare(p, chip, &plan) == KG_OK);
    set_up(&call, layout);
    call.args.plan = plan;
    call.workspace = new_memory((size_t)call.kernel->workspace_bytes(p, chip, plan));
    call.args.workspace = call.workspace.data;
    call.args.workspace_bytes = call.workspace.bytes;
    if (rounds_twice(p, layout)) {
        good = good && CHECK(call.kernel->launch(p, &call.args) == KG_UNSUPPORTED);
    } else {
        good = good && CHECK(is_ok(device_launch_checked(device, launch, &call, 0, &err), &err));
        good = good && outputs_are_right(&call);
        good = good && CHECK(records(&call));
    }
    if (!good)
        printf("# %s, dtype %u, flags %u, layout %d: m %lld n %lld k %lld\n", call.kernel->name,
               kg_dtype(p), p->flags, (int)layout, (long long)kg_size(p, "m"),
               (long long)kg_size(p, "n"), (long long)kg_size(p, "k"));
    if (call.kernel->release)
        call.kernel->release(plan);
    tear_down(&call);
}

/* Served where its shape alone does not make cuBLASLt round twice. */
static void check_problem(const struct kg_problem *p, enum layout layout)
{
    const struct kg_device *chip = &device_info(device)->kg;
    if (rounds_twice(p, LAYOUT_DENSE))
        CHECK(library_choose(&library, p, chip, NULL) == NULL);
    else
        check_call(p, layout);
}

static void check_op(const char *op)
{
    static const int64_t sizes[][3] = {
        {1, 64, 32},     {48, 1, 33},     {3, 5, 7},        {64, 128, 32},
        {129, 257, 100}, {256, 512, 784}, {1000, 24, 4096},
    };
    if (is_absent) {
        tap_skip("cuBLAS is not installed");
        return;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t dtype = KG_F16; dtype <= KG_F32; dtype++)
            for (int layout = LAYOUT_DENSE; layout <= LAYOUT_PADDED; layout++) {
                const int64_t n = sizes[i][1];
                struct kg_problem p =
                    gemm_like(op, (enum kg_dtype)dtype, sizes[i][0], n, sizes[i][2]);
                check_problem(&p, (enum layout)layout);
                p.flags = KG_FLAG_TF32;
                if (dtype == KG_F32)
                    check_problem(&p, (enum layout)layout);
            }
}

static void test_gemm(void)
{
    check_op("gemm");
}

static void test_gemv(void)
{
    check_op("gemv");
}

static void test_linear_relu(void)
{
    check_op("linear_relu");
}

static void test_linear_relu_bwd(void)
{
    check_op("linear_relu_bwd");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"gemm", test_gemm},
        {"gemv", test_gemv},
        {"linear_relu", test_linear_relu},
        {"linear_relu_bwd", test_linear_relu_bwd},
    };
    const char *build = getenv("KERNEL_GATE_BUILD");
    struct gate_error err = {0};
    char path[4096];
    snprintf(path, sizeof(path), "%s/lib/kernel-gate/libcublas_provider.so",
             build ? build : "build");
    if (!is_ok(device_open("cuda:0", &device, &err), &err) ||
        !is_ok(library_open(argc > 1 ? argv[1] : path, KG_DEVICE_CUDA, false, &library, &err),
               &err))
        return (int)err.status;
    const enum gate_status started = library_start(&library, &device_info(device)->kg, &err);
    printf("# %s, open(): %s\n", library.table->version, started ? err.message : "ok");
    is_absent = started && strstr(err.message, "'unsupported'");
    if (!is_absent && started)
        return GATE_WRONG;
    const int status = tap_run(tests, sizeof(tests) / sizeof(tests[0]));
    library_close(&library);
    device_close(device);
    return status;
}
