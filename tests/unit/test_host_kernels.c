/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_host_kernels.c: every kernel of the host library against the fp64 reference, in every dtype
 * and layout, at sizes that leave tails everywhere, for every instruction set of this machine.
 *
 * Outputs are poisoned with two patterns: the same result bit by bit means that every element
 * was written, and gaps between rows that still hold the pattern that nothing else was.
 */
#include "kernels/host/simd.h"
#include "kernels/ops/rows.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

static const char *const isas[] = {"generic", "avx2", "avx512"};
static const enum kg_dtype dtypes[] = {KG_F16, KG_BF16, KG_F32};
static const int thread_counts[] = {1, 4}, poisons[] = {0xff, 0x55}; /* 0xff: NaN in every dtype */

enum { N_ISAS = 3, N_DTYPES = 3, RED_ZONE = 256 };

static struct kg_device host_device(int threads)
{
    return (struct kg_device){
        .struct_bytes = sizeof(struct kg_device), .kind = KG_DEVICE_HOST, .sm_count = threads};
}

/* Limits of the relative Frobenius error: twice the rounding of the result, or so. */
static double limit_of(uint32_t dtype)
{
    return dtype == KG_F16 ? 6e-4 : dtype == KG_BF16 ? 4e-3 : 2e-6;
}

static const struct kg_kernel *kernel_for(const struct kg_problem *p)
{
    const struct kg_library *library = kg_library();
    struct kg_device device = host_device(1);
    for (uint32_t i = 0; i < library->n_kernels; i++)
        if (kg_is_op(p, library->kernels[i]->op) && library->kernels[i]->supports(p, &device))
            return library->kernels[i];
    return NULL;
}

/* ---- one problem ---- */

struct trial {
    struct kg_problem p;
    enum layout layout;
    const struct kg_kernel *kernel;
    struct kg_tensor in[KG_MAX_TENSORS];
    void *in_copy[KG_MAX_TENSORS];
    double *expected[KG_MAX_TENSORS];
    void *first[KG_MAX_TENSORS]; /* elements of the first result, in float, dense */
};

static void *copy_of(const void *from, size_t bytes)
{
    void *to = malloc(bytes);
    assert_non_null(to);
    return memcpy(to, from, bytes);
}

static void begin(struct trial *t, const struct kg_problem *p, enum layout layout)
{
    uint64_t random = 1 + p->op[0];
    memset(t, 0, sizeof(*t));
    t->p = *p;
    t->layout = layout;
    t->kernel = kernel_for(p);
    assert_non_null(t->kernel);
    assert_true(op_is_problem(p));
    for (uint32_t i = 0; i < t->p.n_in; i++) {
        t->in[i] = tensor_new(p, i, layout, 0xff);
        if (op_of(p)->tensors[i].role == OP_INDICES)
            op_of(p)->fill(p, i, &t->in[i], 0, NULL, (uint64_t)kg_size(p, "n"));
        else
            tensor_fill_normal(&t->in[i], &random);
        t->in_copy[i] = copy_of(t->in[i].data, storage_span(&t->in[i]));
    }
    for (uint32_t i = 0; i < t->p.n_out; i++)
        t->expected[i] = doubles_for(p, p->n_in + i);
    assert_int_equal(rows_reference(p, t->in, t->expected, 1), KG_OK);
}

/* The next result is the first one, of other instructions, which round otherwise. */
static void forget_first(struct trial *t)
{
    for (uint32_t i = 0; i < t->p.n_out; i++) {
        free(t->first[i]);
        t->first[i] = NULL;
    }
}

static void end(struct trial *t)
{
    forget_first(t);
    for (uint32_t i = 0; i < t->p.n_in; i++) {
        free(t->in[i].data);
        free(t->in_copy[i]);
    }
    for (uint32_t i = 0; i < t->p.n_out; i++)
        free(t->expected[i]);
}

static void check_error(const struct trial *t, uint32_t i, const struct kg_tensor *out)
{
    double error = 0.0, norm = 0.0;
    for (int64_t j = 0; j < pattern_elements(out); j++) {
        double expected = t->expected[i][j], got = (double)tensor_get(out, j);
        error += (got - expected) * (got - expected);
        norm += expected * expected;
    }
    if (!(sqrt(error) <= limit_of(t->p.dtype[0]) * sqrt(norm))) {
        print_error("op %s dtype %u out %u, m %lld n %lld k %lld, Sq %lld Skv %lld D %lld: %.3g\n",
                    t->p.op, t->p.dtype[0], i, (long long)kg_size(&t->p, "m"),
                    (long long)kg_size(&t->p, "n"), (long long)kg_size(&t->p, "k"),
                    (long long)kg_size(&t->p, "sq"), (long long)kg_size(&t->p, "s"),
                    (long long)kg_size(&t->p, "d"), sqrt(error / norm));
        fail();
    }
}

/* The gaps of `out` still hold the poison: a tensor that holds its elements and poison is equal. */
static void check_gaps(const struct kg_tensor *out, int poison)
{
    struct kg_tensor clean = *out;
    size_t size = kg_dtype_bytes(out->dtype);
    clean.data = malloc(storage_span(out));
    assert_non_null(clean.data);
    memset(clean.data, poison, storage_span(out));
    for (int64_t j = 0; j < pattern_elements(out); j++) {
        size_t at = (size_t)pattern_offset(out, j) * size;
        memcpy((char *)clean.data + at, (char *)out->data + at, size);
    }
    assert_memory_equal(out->data, clean.data, storage_span(out));
    free(clean.data);
}

/* The same bits as the first result of this trial. */
static void check_same(struct trial *t, uint32_t i, const struct kg_tensor *out)
{
    size_t bytes = (size_t)pattern_elements(out) * sizeof(float);
    float *dense = malloc(bytes);
    assert_non_null(dense);
    for (int64_t j = 0; j < pattern_elements(out); j++)
        dense[j] = tensor_get(out, j);
    if (t->first[i]) {
        assert_memory_equal(dense, t->first[i], bytes);
        free(dense);
    } else {
        t->first[i] = dense;
    }
}

static void launch_and_check(struct trial *t, int threads, int poison)
{
    struct kg_device device = host_device(threads);
    struct kg_args args = {.struct_bytes = sizeof(args), .n_in = t->p.n_in, .n_out = t->p.n_out};
    memcpy(args.in, t->in, sizeof(args.in));
    for (uint32_t i = 0; i < t->p.n_out; i++)
        args.out[i] = tensor_new(&t->p, t->p.n_in + i, t->layout, poison);

    args.workspace_bytes = t->kernel->workspace_bytes(&t->p, &device, NULL);
    unsigned char *workspace =
        aligned_alloc(256, (args.workspace_bytes + 255 + RED_ZONE) & ~255ull);
    assert_non_null(workspace);
    memset(workspace, poison, args.workspace_bytes + RED_ZONE);
    args.workspace = workspace;

    assert_int_equal(t->kernel->launch(&t->p, &args), KG_OK);

    for (uint64_t i = 0; i < RED_ZONE; i++)
        assert_int_equal(workspace[args.workspace_bytes + i], poison);
    for (uint32_t i = 0; i < t->p.n_in; i++)
        assert_memory_equal(t->in[i].data, t->in_copy[i], storage_span(&t->in[i]));
    for (uint32_t i = 0; i < t->p.n_out; i++) {
        if (!t->first[i]) /* the others have its bits */
            check_error(t, i, &args.out[i]);
        check_gaps(&args.out[i], poison);
        check_same(t, i, &args.out[i]);
        free(args.out[i].data);
    }
    free(workspace);
}

static void open_library(const char *isa, int threads)
{
    struct kg_device device = host_device(threads);
    assert_int_equal(setenv("KG_HOST_ISA", isa, 1), 0);
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
}

/* All layouts of a problem, every instruction set, 1 and 4 threads, each with its own poison. */
static void check_problem(const struct kg_problem *p)
{
    for (int layout = 0; layout < N_LAYOUTS; layout++) {
        struct trial t;
        begin(&t, p, (enum layout)layout);
        for (int isa = 0; isa < N_ISAS; isa++) {
            if (!simd_select(isas[isa]))
                continue;
            forget_first(&t);
            for (int c = 0; c < 2; c++) {
                open_library(isas[isa], thread_counts[c]);
                launch_and_check(&t, thread_counts[c], poisons[c]);
                kg_library()->close();
            }
        }
        end(&t);
    }
}

/* ---- the ops ---- */

/* M, N, K: ones, primes, whole tiles and blocks, and one past them; the last three are large enough
 * for a pool that leaves short jobs to one thread: as a product, a matrix and sums of columns. */
static const int64_t sizes[][3] = {
    {1, 1, 1},     {1, 1, 300},  {3, 5, 7},     {1, 50, 65},     {67, 1, 33},   {8, 48, 256},
    {13, 49, 257}, {96, 192, 8}, {97, 193, 31}, {101, 211, 523}, {257, 3, 300}, {300, 233, 5},
};

static void check_sizes(const char *op)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int d = 0; d < N_DTYPES; d++) {
            struct kg_problem p = gemm_like(op, dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2]);
            check_problem(&p);
        }
}

TEST(gemm)
{
    check_sizes("gemm");
}

TEST(gemv)
{
    check_sizes("gemv");
}

TEST(linear_relu)
{
    check_sizes("linear_relu");
}

TEST(linear_relu_bwd)
{
    check_sizes("linear_relu_bwd");
}

/* More groups than rows, one, and some of each size. */
TEST(grouped_gemm)
{
    static const int64_t groups[] = {1, 3, 9};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int d = 0; d < N_DTYPES; d++) {
            struct kg_problem p =
                gemm_like("grouped_gemm", dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2]);
            *op_named(&p, "g") = groups[i % 3];
            check_problem(&p);
        }
}

TEST(tf32_is_served_by_fp32)
{
    static const char *const ops[] = {"gemm", "gemv", "linear_relu", "linear_relu_bwd",
                                      "grouped_gemm"};
    for (int i = 0; i < 5; i++) {
        struct kg_problem p = gemm_like(ops[i], KG_F32, 17, 19, 23);
        p.flags = KG_FLAG_TF32;
        check_problem(&p);
    }
}

TEST(attention)
{
    static const struct {
        int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
    } shapes[] = {
        {1, 1, 1, 1, 1, 1},      {1, 2, 1, 7, 13, 17}, /* all odd */
        {2, 4, 2, 33, 70, 64},                         /* grouped heads, more keys */
        {1, 2, 2, 130, 65, 40},  /* more queries: rows that see no key when causal */
        {2, 8, 2, 1, 129, 128},  /* a decode step */
        {1, 3, 3, 257, 257, 32}, /* more than a turn of rows, for every tile */
        {1, 1, 1, 5, 200, 512},  /* the largest head_dim */
        {1, 2, 2, 96, 128, 8},   /* whole panels and blocks */
        {1, 6, 1, 50, 64, 16},   /* a panel that spans two heads */
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int d = 0; d < N_DTYPES; d++)
            for (uint32_t causal = 0; causal <= 1; causal++) {
                struct kg_problem p = attention(
                    dtypes[d], causal ? KG_FLAG_CAUSAL : 0, shapes[i].heads, shapes[i].kv_heads,
                    shapes[i].seqlen_q, shapes[i].seqlen_kv, shapes[i].head_dim);
                *op_named(&p, "b") = shapes[i].batch;
                check_problem(&p);
                const struct kg_problem backward = attention_backward(&p);
                check_problem(&backward);
            }
}

/* Scores in the hundreds, of both signs: most weights vanish, and maxima jump between blocks. The
 * fp32 rounding of such scores is seen in the weights, hence bf16, whose limit covers it. */
TEST(attention_steep_softmax)
{
    for (int sign = -1; sign <= 1; sign++) {
        struct kg_problem p = attention(KG_BF16, KG_FLAG_CAUSAL, 2, 2, 70, 140, 16);
        *op_param_named(&p, "scale") = 50.0 * sign;
        check_problem(&p);
    }
}

/* A row that sees no key is zero, bit by bit. */
TEST(fully_masked_rows_are_zero)
{
    struct kg_problem p = attention(KG_F16, KG_FLAG_CAUSAL, 1, 1, 9, 4, 8);
    struct trial t;
    struct kg_device device = host_device(2);
    struct kg_args args = {.struct_bytes = sizeof(args), .n_in = 3, .n_out = 1};

    begin(&t, &p, LAYOUT_DENSE);
    memcpy(args.in, t.in, sizeof(args.in));
    args.out[0] = tensor_new(&t.p, t.p.n_in, LAYOUT_DENSE, 0xff);
    args.workspace_bytes = t.kernel->workspace_bytes(&p, &device, NULL);
    args.workspace = aligned_alloc(256, (args.workspace_bytes + 255) & ~255ull);
    assert_non_null(args.workspace);
    unsetenv("KG_HOST_ISA");
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
    assert_int_equal(t.kernel->launch(&p, &args), KG_OK);
    for (int64_t i = 0; i < 9 * 8; i++)
        assert_int_equal(((uint16_t *)args.out[0].data)[i] == 0, i < 5 * 8);
    kg_library()->close();
    free(args.workspace);
    free(args.out[0].data);
    end(&t);
}

TEST(nan_is_not_hidden)
{
    struct kg_device device = host_device(1);
    unsetenv("KG_HOST_ISA");
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
    struct kg_problem problems[] = {
        gemm_like("gemm", KG_F16, 2, 2, 2),
        gemm_like("gemv", KG_F32, 2, 0, 2),
        gemm_like("linear_relu", KG_BF16, 2, 2, 2),
        attention(KG_F16, 0, 1, 1, 2, 2, 2),
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        struct trial t;
        struct kg_args args = {.struct_bytes = sizeof(args)};
        begin(&t, &problems[i], LAYOUT_DENSE);
        tensor_set(&t.in[0], 0, NAN);
        args.n_in = t.p.n_in;
        args.n_out = t.p.n_out;
        memcpy(args.in, t.in, sizeof(args.in));
        args.out[0] = tensor_new(&t.p, t.p.n_in, LAYOUT_DENSE, 0);
        args.workspace_bytes = t.kernel->workspace_bytes(&problems[i], &device, NULL);
        args.workspace = aligned_alloc(256, (args.workspace_bytes + 255) & ~255ull);
        assert_non_null(args.workspace);
        assert_int_equal(t.kernel->launch(&problems[i], &args), KG_OK);
        assert_true(isnan(tensor_get(&args.out[0], 0)));
        assert_false(isnan(tensor_get(&args.out[0], pattern_elements(&args.out[0]) - 1)));
        free(args.workspace);
        free(args.out[0].data);
        end(&t);
    }
    kg_library()->close();
}

/* ---- the inner loops ---- */

TEST(conversions_match_half)
{
    enum { N = 65536 };
    static uint16_t codes[N], encoded[N];
    static float decoded[N], between[N];

    for (int isa = 0; isa < N_ISAS; isa++) {
        const struct simd *simd = simd_select(isas[isa]);
        for (int d = 0; simd && d < 2; d++) {
            for (uint32_t i = 0; i < N; i++)
                codes[i] = (uint16_t)i;
            simd->decode(decoded, codes, N, dtypes[d]);
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = kg_float_bits(kg_load_float(codes, dtypes[d], i));
                assert_int_equal(kg_float_bits(decoded[i]), bits);
                /* the code itself, just past it, and half-way to the next */
                bits += i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : dtypes[d] == KG_F16 ? 0x1000 : 0x8000;
                between[i] = kg_float_from_bits(bits);
            }
            simd->encode(encoded, between, N, dtypes[d]);
            for (uint32_t i = 0; i < N; i++) {
                uint16_t expected = dtypes[d] == KG_F16 ? kg_float_to_f16(between[i])
                                                        : kg_float_to_bf16(between[i]);
                assert_int_equal(encoded[i], expected);
            }
        }
    }
}

/* The weights of two keys with scores 0 and x are 1 and 2^x. */
TEST(exponential)
{
    enum { WIDTH = 16, HEAD_DIM = 1 };
    for (int isa = 0; isa < N_ISAS; isa++) {
        const struct simd *simd = simd_select(isas[isa]);
        double worst = 0.0;
        for (float x = 0.0f; simd && x > -125.0f; x -= 0.0137f * WIDTH) {
            float scores[2 * WIDTH], max[WIDTH], sum[WIDTH] = {0}, out[WIDTH] = {0};
            for (int i = 0; i < WIDTH; i++) {
                scores[i] = 0.0f;
                scores[WIDTH + i] = x - 0.0137f * (float)i;
                max[i] = -INFINITY;
            }
            float given[WIDTH];
            memcpy(given, scores + WIDTH, sizeof(given));
            simd->softmax(
                &(struct softmax_panel){WIDTH, 2, 0, 1.0f, NULL, scores, max, sum, out, HEAD_DIM});
            for (int i = 0; i < WIDTH; i++) {
                double exact = exp2((double)given[i]);
                double error = fabs((double)scores[WIDTH + i] - exact) / exact;
                assert_true(scores[i] == 1.0f);
                worst = error > worst ? error : worst;
            }
        }
        if (simd)
            print_message("2^x, %s: worst relative error %.3g\n", isas[isa], worst);
        assert_true(worst < 1e-7);
    }
}

/* ---- the rules of the ABI ---- */

TEST(library_table)
{
    const struct kg_library *library = kg_library();
    assert_int_equal(library->struct_bytes, sizeof(*library));
    assert_int_equal(library->abi_version, KG_ABI_VERSION);
    assert_string_equal(library->provider, "host");
    assert_int_equal(library->device_kind, KG_DEVICE_HOST);
    size_t ops = 0; /* each has a kernel */
    while (op_at(ops))
        ops++;
    assert_int_equal(library->n_kernels, ops);
    for (uint32_t i = 0; i < library->n_kernels; i++) {
        assert_int_equal(library->kernels[i]->struct_bytes, sizeof(struct kg_kernel));
        assert_non_null(library->kernels[i]->supports);
        assert_non_null(library->kernels[i]->launch);
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(library->kernels[i]->name, library->kernels[j]->name);
    }
}

TEST(supports)
{
    struct kg_problem gemm = gemm_like("gemm", KG_F16, 4, 4, 4), wide, bad;
    struct kg_device device = host_device(1), cuda = device, none = device;
    const struct kg_kernel *kernel = kernel_for(&gemm);

    assert_non_null(kernel);
    assert_string_equal(kernel->op, "gemm");
    cuda.kind = KG_DEVICE_CUDA;
    assert_false(kernel->supports(&gemm, &cuda));
    none.sm_count = 0;
    assert_false(kernel->supports(&gemm, &none));
    bad = gemm;
    bad.flags = KG_FLAG_TF32;
    assert_false(kernel->supports(&bad, &device));
    bad = gemm;
    *op_named(&bad, "m") = 0;
    assert_false(kernel->supports(&bad, &device));

    wide = attention(KG_F16, 0, 1, 1, 1, 1, 512);
    assert_non_null(kernel_for(&wide));
    *op_named(&wide, "d") = 513;
    assert_null(kernel_for(&wide));
}

TEST(open)
{
    struct kg_device device = host_device(2), bad = device;
    bad.sm_count = 0;
    unsetenv("KG_HOST_ISA");
    assert_int_equal(kg_library()->open(&bad, NULL), KG_BAD_ARGUMENT);
    bad = device;
    bad.kind = KG_DEVICE_CUDA;
    assert_int_equal(kg_library()->open(&bad, NULL), KG_BAD_ARGUMENT);
    assert_int_equal(setenv("KG_HOST_ISA", "mmx", 1), 0);
    assert_int_equal(kg_library()->open(&device, NULL), KG_UNSUPPORTED);
    unsetenv("KG_HOST_ISA");
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
    bad = host_device(3); /* whoever shares it takes the threads that are there */
    assert_int_equal(kg_library()->open(&bad, NULL), KG_BAD_ARGUMENT);
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
    kg_library()->close();
    assert_int_equal(kg_library()->open(&bad, NULL), KG_BAD_ARGUMENT); /* one of the two is left */
    kg_library()->close();
    assert_int_equal(kg_library()->open(&bad, NULL), KG_OK);
    kg_library()->close();
}

TEST(launch_refuses)
{
    struct kg_problem p = gemm_like("gemm", KG_F32, 4, 5, 6), other;
    struct kg_device device = host_device(2);
    struct trial t;
    struct kg_args good = {.struct_bytes = sizeof(good), .n_in = 2, .n_out = 1}, args;

    begin(&t, &p, LAYOUT_PADDED);
    memcpy(good.in, t.in, sizeof(good.in));
    good.out[0] = tensor_new(&t.p, t.p.n_in, LAYOUT_PADDED, 0);
    good.workspace_bytes = t.kernel->workspace_bytes(&p, &device, NULL);
    good.workspace = aligned_alloc(256, (good.workspace_bytes + 255) & ~255ull);
    assert_non_null(good.workspace);

    assert_int_equal(t.kernel->launch(&p, &good), KG_BAD_ARGUMENT); /* not open */
    unsetenv("KG_HOST_ISA");
    assert_int_equal(kg_library()->open(&device, NULL), KG_OK);
    assert_int_equal(t.kernel->launch(&p, &good), KG_OK);

#define REFUSES(change)                                                                            \
    do {                                                                                           \
        args = good;                                                                               \
        args.change;                                                                               \
        assert_int_equal(t.kernel->launch(&p, &args), KG_BAD_ARGUMENT);                            \
    } while (0)
    REFUSES(struct_bytes = 16);
    REFUSES(n_in = 1);
    REFUSES(n_out = 2);
    REFUSES(workspace_bytes -= 1);
    REFUSES(workspace = NULL);
    REFUSES(in[0].data = NULL);
    REFUSES(in[0].dtype = KG_F16);
    REFUSES(in[1].shape[0] = 7);
    REFUSES(in[1].stride[1] = 2);
    REFUSES(out[0].stride[0] = args.out[0].rank = 1);
    REFUSES(out[0].stride[0] = -5);

    other = p;
    other.op = "linear_relu";
    assert_int_equal(t.kernel->launch(&other, &good), KG_BAD_ARGUMENT);
    other = p;
    *op_named(&other, "m") = INT64_MAX;
    assert_int_equal(t.kernel->launch(&other, &good), KG_BAD_ARGUMENT);

    kg_library()->close();
    free(good.workspace);
    free(good.out[0].data);
    end(&t);
}
