/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reference_cuda.c: the reference on a GPU against the one on the host.
 *
 * Without arguments it runs the tests; `time` times the two largest references instead.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/ops/rows.h"
#include "tests/unit/problem_tensors.h"
#include "tests/gpu/gpu_device.h"

static struct kg_tensor upload_tensor(const struct kg_tensor *host, struct device_memory *memory)
{
    struct kg_tensor t = *host;
    struct gate_error err;
    *memory = new_memory(storage_span(host));
    CHECK(is_ok(device_upload(device, memory->data, host->data, memory->bytes, &err), &err));
    t.data = memory->data;
    return t;
}

static bool same_number(double x, double y)
{
    return fabs(x - y) <= 1e-12 + 1e-11 * fabs(y) || (isnan(x) && isnan(y)) || x == y;
}

static bool same_output(const struct device_memory *on_device, const double *expected)
{
    struct gate_error err;
    const size_t n = on_device->bytes / sizeof(double);
    double *got = malloc(on_device->bytes);
    bool same = is_ok(device_download(device, got, on_device->data, on_device->bytes, &err), &err);
    for (size_t i = 0; i < n && same; i++) {
        same = same_number(got[i], expected[i]);
        if (!same)
            printf("# element %zu is %.17g, expected %.17g\n", i, got[i], expected[i]);
    }
    free(got);
    return same;
}

/* Computes `p` by both references from the same inputs. */
static void check_reference(const struct kg_problem *p, const struct kg_tensor *in)
{
    struct gate_error err;
    struct kg_tensor on_device[KG_MAX_TENSORS];
    struct device_memory in_memory[KG_MAX_TENSORS], out_memory[KG_MAX_TENSORS];
    double *expected[KG_MAX_TENSORS], *out[KG_MAX_TENSORS];
    for (uint32_t i = 0; i < p->n_in; i++)
        on_device[i] = upload_tensor(&in[i], &in_memory[i]);
    for (uint32_t i = 0; i < p->n_out; i++) {
        const struct kg_shape shape = op_shape_of(p, p->n_in + i);
        const size_t bytes = (size_t)kg_shape_elements(&shape) * sizeof(double);
        out_memory[i] = new_memory(bytes);
        out[i] = out_memory[i].data;
        expected[i] = malloc(bytes);
        CHECK(is_ok(device_fill_bytes(device, out[i], 0xff, bytes, &err), &err));
    }
    bool good = CHECK(rows_reference(p, in, expected, 1) == KG_OK);
    good &= CHECK(is_ok(device_reference(device, p, on_device, out, &err), &err));
    for (uint32_t i = 0; i < p->n_out; i++)
        good &= CHECK(same_output(&out_memory[i], expected[i]));
    if (!good)
        printf(
            "# op %s dtype %u flags %u: m %lld n %lld k %lld, heads %lld/%lld, seqlen %lld/%lld, "
            "dim %lld\n",
            p->op, p->dtype[0], p->flags, (long long)kg_size(p, "m"), (long long)kg_size(p, "n"),
            (long long)kg_size(p, "k"), (long long)kg_size(p, "h"),
            (long long)kg_size(p, "kv_heads"), (long long)kg_size(p, "sq"),
            (long long)kg_size(p, "s"), (long long)kg_size(p, "d"));
    for (uint32_t i = 0; i < p->n_in; i++)
        device_free(device, &in_memory[i]);
    for (uint32_t i = 0; i < p->n_out; i++) {
        device_free(device, &out_memory[i]);
        free(expected[i]);
    }
}

/* `poison`: the last element of the last input is a NaN. */
static void check_problem(const struct kg_problem *p, enum layout layout, bool poison)
{
    static uint64_t random = 88172645463325252u;
    struct kg_tensor in[KG_MAX_TENSORS];
    if (!CHECK(op_is_problem(p)))
        return;
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = tensor_new(p, i, layout, 0xff);
        tensor_fill_normal(&in[i], &random);
    }
    if (poison)
        tensor_set(&in[p->n_in - 1], pattern_elements(&in[p->n_in - 1]) - 1, NAN);
    check_reference(p, in);
    for (uint32_t i = 0; i < p->n_in; i++)
        free(in[i].data);
}

static void check_everywhere(struct kg_problem p, bool poison)
{
    for (uint32_t dtype = KG_F16; dtype <= KG_F32; dtype++)
        for (int layout = 0; layout < N_LAYOUTS; layout++) {
            op_set_dtype(&p, dtype);
            check_problem(&p, (enum layout)layout, poison);
        }
}

static void test_reference_of_the_gemm_family(void)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {3, 5, 7}, {64, 64, 16}, {65, 63, 17}, {1, 130, 40}, {131, 70, 33},
    };
    static const char *const ops[] = {"gemm", "gemv", "linear_relu", "linear_relu_bwd"};
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            const int64_t n = sizes[i][1];
            check_everywhere(gemm_like(ops[o], KG_F16, sizes[i][0], n, sizes[i][2]), false);
        }
    check_everywhere(gemm_like("linear_relu", KG_F16, 5, 9, 6), true);
}

static void test_reference_of_fp8(void)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 129, 127}, {130, 260, 300}, {129, 5, 256}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int layout = 0; layout < N_LAYOUTS; layout++)
            for (int blocks = 0; blocks < 2; blocks++) {
                const struct kg_problem p =
                    gemm_like(blocks ? "gemm_fp8_block" : "gemm_fp8", KG_E4M3, sizes[i][0],
                              sizes[i][1], sizes[i][2]);
                check_problem(&p, (enum layout)layout, false);
                check_problem(&p, (enum layout)layout, true);
            }
}

/* Tables and lengths are drawn as verification draws them. */
static void test_reference_of_pages(void)
{
    static const int64_t sizes[][8] = {/* b, kv_heads, h, sq, t, blocks, page, d */
                                       {1, 1, 1, 1, 1, 1, 16, 8},
                                       {3, 2, 4, 1, 20, 61, 16, 64},
                                       {2, 1, 3, 9, 5, 7, 64, 130},
                                       {2, 2, 2, 70, 1, 2, 64, 40},
                                       {1, 1, 2, 3, 3, 5, 7, 300}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t dtype = KG_F16; dtype <= KG_F32; dtype++)
            for (int layout = 0; layout < N_LAYOUTS; layout++) {
                struct kg_problem p = op_problem(op_by_name("attention_paged"), dtype, 0);
                struct kg_tensor in[KG_MAX_TENSORS];
                static const char *const names[] = {"b", "kv_heads", "h",    "sq",
                                                    "t", "blocks",   "page", "d"};
                for (int k = 0; k < 8; k++)
                    *op_named(&p, names[k]) = sizes[i][k];
                *op_param_named(&p, "scale") = 0.125;
                if (!CHECK(op_is_problem(&p)))
                    return;
                for (uint32_t k = 0; k < p.n_in; k++)
                    in[k] = tensor_new(&p, k, (enum layout)layout, 0xff);
                probe_fill(PROBE_NORMAL, &p, in, 8 * i + dtype);
                check_reference(&p, in);
                for (uint32_t k = 0; k < p.n_in; k++)
                    free(in[k].data);
            }
}

static void test_reference_of_attention(void)
{
    static const struct {
        int64_t heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
    } sizes[] = {
        {1, 1, 1, 1, 1},    {2, 1, 3, 5, 8},     {4, 2, 64, 64, 16}, {2, 2, 65, 129, 40},
        {3, 1, 70, 33, 64}, {2, 2, 5, 200, 130}, {6, 2, 1, 77, 128},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t flags = 0; flags <= KG_FLAG_CAUSAL; flags += KG_FLAG_CAUSAL) {
            struct kg_problem p =
                attention(KG_F16, flags, sizes[i].heads, sizes[i].kv_heads, sizes[i].seqlen_q,
                          sizes[i].seqlen_kv, sizes[i].head_dim);
            *op_named(&p, "b") = 2;
            check_everywhere(p, false);
            check_everywhere(p, true);
            check_everywhere(attention_backward(&p), false);
        }
}

/* ---- `time`: how long the largest references take ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void time_reference(const char *name, const struct kg_problem *p)
{
    struct gate_error err;
    struct kg_tensor in[KG_MAX_TENSORS] = {0};
    struct device_memory in_memory[KG_MAX_TENSORS], out_memory;
    if (!op_is_problem(p))
        return;
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i].dtype = kg_dtype(p);
        const struct kg_shape shape = op_shape_of(p, i);
        in[i].rank = shape.rank;
        memcpy(in[i].shape, shape.size, sizeof(in[i].shape));
        lay_out_tensor(&in[i], LAYOUT_DENSE);
        in_memory[i] = new_memory(storage_span(&in[i]));
        in[i].data = in_memory[i].data;
        is_ok(device_fill_normal(device, in[i].data, (enum kg_dtype)kg_dtype(p),
                                 pattern_elements(&in[i]), (struct op_spread){0, 1}, i, &err),
              &err);
    }
    const struct kg_shape result = op_shape_of(p, p->n_in);
    out_memory = new_memory((size_t)kg_shape_elements(&result) * sizeof(double));
    double *out = out_memory.data;
    is_ok(device_synchronize(device, &err), &err);
    const double begin = seconds();
    is_ok(device_reference(device, p, in, &out, &err), &err);
    printf("# %s: %.3f s\n", name, seconds() - begin);
    device_free(device, &out_memory);
    for (uint32_t i = 0; i < p->n_in; i++)
        device_free(device, &in_memory[i]);
}

static int time_references(void)
{
    struct gate_error err = {0};
    if (device_open("cuda:0", &device, &err) != GATE_OK) {
        printf("%s\n", err.message);
        return (int)err.status;
    }
    struct kg_problem gemm = gemm_like("gemm", KG_F16, 8192, 8192, 8192);
    struct kg_problem gemv = gemm_like("gemv", KG_F16, 8192, 0, 8192);
    struct kg_problem sdpa = attention(KG_F16, 0, 32, 32, 8192, 8192, 128);
    *op_named(&sdpa, "b") = 2;
    time_reference("warm-up", &gemm);
    time_reference("gemm 8192^3", &gemm);
    time_reference("gemv 8192^2", &gemv);
    time_reference("attention B=2 H=32 S=8192 D=128", &sdpa);
    sdpa.flags = KG_FLAG_CAUSAL;
    time_reference("the same, causal", &sdpa);
    device_close(device);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"reference of the GEMM family", test_reference_of_the_gemm_family},
        {"reference of fp8", test_reference_of_fp8},
        {"reference of attention", test_reference_of_attention},
        {"reference of pages", test_reference_of_pages},
    };
    if (argc > 1 && strcmp(argv[1], "time") == 0)
        return time_references();
    return run_on_device(tests, sizeof(tests) / sizeof(tests[0]));
}
