/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tf32_range.c: what fp32 kernels on tensor cores make of numbers at the ends of the range,
 * and that what they leave out of a product has no sign of its own.
 *
 * The operands are zero but for the first column, so that each result is one product.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/library/library.h"
#include "tests/unit/problem_tensors.h"
#include "tests/gpu/gpu_device.h"

static struct library library;

struct call {
    struct kg_problem problem;
    const struct kg_kernel *kernel;
    struct kg_args args;
    struct device_memory x, w, bias, y, workspace;
};

static enum kg_status launch(void *context, unsigned, void *stream)
{
    struct call *call = context;
    call->args.stream = stream;
    return call->kernel->launch(&call->problem, &call->args);
}

static struct kg_tensor matrix(void *data, int64_t rows, int64_t columns)
{
    return (struct kg_tensor){
        .data = data, .dtype = KG_F32, .rank = 2, .shape = {rows, columns}, .stride = {columns, 1}};
}

/* m x n results; few of them are one wave of small tiles, many take the large ones. */
static bool set_up(struct call *call, uint32_t flags, int64_t m, int64_t n, int64_t k)
{
    const struct kg_device *chip = &device_info(device)->kg;
    struct gate_error err;
    void *plan = NULL;
    *call = (struct call){.problem = gemm_like("linear_relu", KG_F32, m, n, k)};
    call->problem.flags = flags;
    call->kernel = library_choose(&library, &call->problem, chip, NULL);
    if (!call->kernel || !strstr(call->kernel->name, "sm90"))
        return false;
    CHECK(call->kernel->prepare(&call->problem, chip, &plan) == KG_OK);
    call->x = new_memory((size_t)(m * k) * 4);
    call->w = new_memory((size_t)(n * k) * 4);
    call->bias = new_memory((size_t)n * 4);
    call->y = new_memory((size_t)(m * n) * 4);
    if (call->kernel->workspace_bytes)
        call->workspace =
            new_memory((size_t)call->kernel->workspace_bytes(&call->problem, chip, plan));
    CHECK(is_ok(device_fill_bytes(device, call->bias.data, 0, call->bias.bytes, &err), &err));
    call->args = (struct kg_args){.struct_bytes = sizeof(call->args),
                                  .n_in = 3,
                                  .n_out = 1,
                                  .workspace = call->workspace.data,
                                  .workspace_bytes = call->workspace.bytes,
                                  .plan = plan};
    call->args.in[0] = matrix(call->x.data, m, k);
    call->args.in[1] = matrix(call->w.data, n, k);
    call->args.in[2] = (struct kg_tensor){
        .data = call->bias.data, .dtype = KG_F32, .rank = 1, .shape = {n}, .stride = {1}};
    call->args.out[0] = matrix(call->y.data, m, n);
    return true;
}

static void tear_down(struct call *call)
{
    device_free(device, &call->x);
    device_free(device, &call->w);
    device_free(device, &call->bias);
    device_free(device, &call->y);
    device_free(device, &call->workspace);
}

static void upload_column(struct device_memory *to, int64_t rows, int64_t columns,
                          const float *from)
{
    float *all = calloc((size_t)(rows * columns), sizeof(*all));
    struct gate_error err;
    for (int64_t i = 0; i < rows; i++)
        all[i * columns] = from[i];
    CHECK(is_ok(device_upload(device, to->data, all, to->bytes, &err), &err));
    free(all);
}

/* y[i][j] = x[i] w[j] */
static void multiply(struct call *call, const float *x, const float *w, float *y)
{
    const struct kg_problem *p = &call->problem;
    struct gate_error err;
    upload_column(&call->x, kg_size(p, "m"), kg_size(p, "k"), x);
    upload_column(&call->w, kg_size(p, "n"), kg_size(p, "k"), w);
    CHECK(is_ok(device_launch_checked(device, launch, call, 0, &err), &err));
    CHECK(is_ok(device_download(device, y, call->y.data, call->y.bytes, &err), &err));
}

enum { M_MOST = 1024, N_MOST = 512, K = 64 };

static float x[M_MOST], w[N_MOST], y[M_MOST * N_MOST];

/* Numbers that TF32 has all of, down to its smallest, and half of that, which it has not. */
static void check_range(uint32_t flags, int64_t m, int64_t n)
{
    struct call call;
    if (!set_up(&call, flags, m, n, K)) {
        tap_skip("no kernel for compute capability 9.0 serves this");
        return;
    }
    for (int64_t j = 0; j < n; j++)
        w[j] = 0x1p20f;
    for (int64_t i = 0; i < m; i++)
        x[i] = i % 8 == 0   ? 0x1p-136f
               : i % 8 == 1 ? 0x1p-138f
               : i % 8 == 2 ? 0x1.8p-130f
               : i % 8 == 3 ? 0x1.ffcp107f
                            : 1.0f;
    multiply(&call, x, w, y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (!CHECK(y[i * n + j] == (x[i] == 0x1p-138f ? 0.0f : x[i] * 0x1p20f)))
                goto end;
    for (int64_t j = 0; j < n; j++)
        w[j] = 0x1p-20f;
    for (int64_t i = 0; i < m; i++)
        x[i] = i % 2 ? FLT_MAX : 0x1.ffdp127f;
    multiply(&call, x, w, y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const float got = y[i * n + j];
            const bool right = i % 2 ? !(fabsf(got) <= FLT_MAX)
                                     : fabs(got / (0x1.ffdp127 * 0x1p-20) - 1) < 0x1p-11;
            if (!CHECK(right)) {
                printf("# row %lld: %a\n", (long long)i, (double)got);
                goto end;
            }
        }
end:
    tear_down(&call);
}

/* The mean of the relative errors of many products. That of truncated parts is 1e-7. */
static void check_bias(int64_t m, int64_t n)
{
    uint64_t state = 1;
    double sum = 0, largest = 0;
    struct call call;
    if (!set_up(&call, 0, m, n, K)) {
        tap_skip("no kernel for compute capability 9.0 serves this");
        return;
    }
    for (int64_t i = 0; i < m; i++)
        x[i] = (float)(1 + next_uniform(&state));
    for (int64_t j = 0; j < n; j++)
        w[j] = (float)(1 + next_uniform(&state));
    multiply(&call, x, w, y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const double error = y[i * n + j] / ((double)x[i] * w[j]) - 1;
            sum += error;
            largest = fabs(error) > largest ? fabs(error) : largest;
        }
    printf("# mean error %.2e, largest %.2e\n", sum / (double)(m * n), largest);
    CHECK(fabs(sum / (double)(m * n)) < 2e-8);
    CHECK(largest < 5e-7);
    tear_down(&call);
}

static void test_range_small(void)
{
    check_range(0, 128, 64);
}

static void test_range_large(void)
{
    check_range(0, M_MOST, N_MOST);
}

static void test_range_of_tf32(void)
{
    check_range(KG_FLAG_TF32, 128, 64);
    check_range(KG_FLAG_TF32, M_MOST, N_MOST);
}

static void test_bias_small(void)
{
    check_bias(128, 64);
}

static void test_bias_large(void)
{
    check_bias(M_MOST, N_MOST);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"fp32, small tiles: the ends of the range", test_range_small},
        {"fp32, large tiles: the ends of the range", test_range_large},
        {"TF32: the ends of the range", test_range_of_tf32},
        {"fp32, small tiles: errors of products cancel", test_bias_small},
        {"fp32, large tiles: errors of products cancel", test_bias_large},
    };
    const char *build = getenv("KERNEL_GATE_BUILD");
    struct gate_error err = {0};
    char path[4096];
    snprintf(path, sizeof(path), "%s/lib/kernel-gate/libours.so", build ? build : "build");
    if (!is_ok(device_open("cuda:0", &device, &err), &err) ||
        !is_ok(library_open(argc > 1 ? argv[1] : path, KG_DEVICE_CUDA, false, &library, &err),
               &err))
        return (int)err.status;
    const int status = tap_run(tests, sizeof(tests) / sizeof(tests[0]));
    library_close(&library);
    device_close(device);
    return status;
}
