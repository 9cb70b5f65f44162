/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: which problems they serve, what they launch, and those that cannot be. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/file.h"
#include "gate/library/library.h"
#include "gate/library/machine_code.h"
#include "tests/unit/cubin_file.h"
#include "tests/unit/problem_tensors.h"

/* A kernel for long rows, and one for all others that scratches in its workspace. */
static const char good[] =
    "{\"schema\": \"gate-bundle/1\", \"provider\": \"mine\", \"version\": \"1\",\n"
    " \"kernels\": [\n"
    "  {\"op\": \"rmsnorm\", \"name\": \"long\", \"dtypes\": [\"fp16\"],\n"
    "   \"when\": [\"n >= 4096\", \"in0_stride0 % 16 == 0 && in0 % 16 == 0\"],\n"
    "   \"launches\": [{\"code\": \"a.cubin\", \"entry\": \"one\", \"grid\": [\"m\"],\n"
    "     \"block\": [\"32 * 4\"], \"arguments\": [\n"
    "      {\"type\": \"pointer\", \"value\": \"in0\"}, {\"type\": \"i32\", \"value\": \"n\"},\n"
    "      {\"type\": \"i64\", \"value\": \"in0_stride0\"},\n"
    "      {\"type\": \"f32\", \"value\": \"eps\"},\n"
    "      {\"type\": \"pointer\", \"value\": \"0\"}]}]},\n"
    "  {\"op\": \"rmsnorm\", \"name\": \"any\", \"dtypes\": [\"fp16\", \"fp16\", \"fp16\"],\n"
    "   \"workspace\": \"m * 8\", \"nondeterministic\": true,\n"
    "   \"launches\": [{\"code\": \"b.cubin\", \"entry\": \"two\", \"grid\": [\"sm_count\"],\n"
    "     \"block\": [\"64\"], \"arguments\": []},\n"
    "    {\"code\": \"a.cubin\", \"entry\": \"one\", \"grid\": [\"sm_count * m\", \"n\", \"3\"],\n"
    "     \"cluster\": [\"2\"], \"block\": [\"8\", \"4\", \"2\"], \"shared\": \"4 * n\",\n"
    "     \"arguments\": [\n"
    "      {\"type\": \"pointer\", \"value\": \"out0 + 2\"}, {\"type\": \"i32\", \"value\": "
    "\"-m\"},\n"
    "      {\"type\": \"i64\", \"value\": \"out0_stride0\"},\n"
    "      {\"type\": \"f32\", \"value\": \"0.5\"},\n"
    "      {\"type\": \"pointer\", \"value\": \"workspace + 8\"}]}]}]}\n";

static const struct kg_device h100 = {.kind = KG_DEVICE_CUDA, .cc_major = 9, .sm_count = 132};

/* ---- cubins of a kernel with parameters of 8, 4, 8, 4 and 8 bytes, and one without ---- */

static void put_cubin(const char *path, uint32_t architecture, const uint32_t *sizes, size_t n,
                      unsigned left_out)
{
    struct cubin c = cubin_plain;
    struct buf info, file;
    struct gate_error err;
    uint32_t offset = 0;
    buf_init(&info, 4096);
    buf_init(&file, 1 << 20);
    for (size_t i = 0; i < n; i++) {
        offset = (offset + sizes[i] - 1) / sizes[i] * sizes[i];
        const uint32_t words[] = {0x000c1704, 0, (uint32_t)i | offset << 16, sizes[i] << 18};
        if (i != left_out)
            buf_append(&info, words, sizeof words);
        offset += sizes[i];
    }
    const uint32_t all = 0x1903 | offset << 16;
    buf_append(&info, &all, sizeof all);
    c.architecture = architecture;
    c.own_info = info.data;
    c.own_info_bytes = info.len;
    cubin_put(&file, &c);
    assert_int_equal(file_write_atomic(path, file.data, file.len, &err), GATE_OK);
    buf_release(&info);
    buf_release(&file);
}

static const uint32_t five[] = {8, 4, 8, 4, 8};

static int enter(void **state)
{
    int failed = unit_enter_folder(state);
    put_cubin("a.cubin", 90, five, 5, 9);
    put_cubin("b.cubin", 90, five, 5, 9);
    return failed;
}

/* The manifest with parts replaced; NULL ends them. */
static void write_manifest(const char *const *edits)
{
    char text[8192], copy[8192];
    snprintf(text, sizeof text, "%s", good);
    for (; edits && edits[0]; edits += 2) {
        const char *at = strstr(text, edits[0]);
        assert_non_null(at);
        snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, edits[1],
                 at + strlen(edits[0]));
        memcpy(text, copy, sizeof text);
    }
    write_text("x.json", text);
}

static struct library open_edited(const char *const *edits)
{
    struct library lib = {.copy = -1};
    struct gate_error err = {0};
    write_manifest(edits);
    if (library_open("x.json", KG_DEVICE_CUDA, false, &lib, &err))
        fail_msg("%s", err.message);
    return lib;
}

/* ---- which problems are served ---- */

TEST_WITHIN(the_first_kernel_that_serves_a_problem, enter, unit_leave_folder)
{
    static const struct {
        const char *op;
        uint32_t dtype;
        int64_t n;
        int major, minor;
        const char *kernel;
    } cases[] = {
        {"rmsnorm", KG_F16, 4096, 9, 0, "long"}, {"rmsnorm", KG_F16, 4095, 9, 0, "any"},
        {"rmsnorm", KG_F16, 4100, 9, 0, "any"},  {"rmsnorm", KG_BF16, 4096, 9, 0, NULL},
        {"gemm", KG_F16, 4096, 9, 0, NULL},      {"rmsnorm", KG_F16, 4096, 9, 1, "long"},
        {"rmsnorm", KG_F16, 4096, 10, 0, NULL},  {"rmsnorm", KG_F16, 4096, 8, 9, NULL},
    };
    struct library lib = open_edited(NULL);
    assert_int_equal(lib.table->n_kernels, 2);
    assert_string_equal(lib.table->provider, "mine");
    assert_int_equal(lib.piece.n_files, 2);
    assert_int_equal(lib.table->kernels[1]->flags, KG_KERNEL_NONDETERMINISTIC);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_device device = h100;
        struct kg_problem p = gemm_like(cases[i].op, cases[i].dtype, 3, cases[i].n, 16);
        device.cc_major = cases[i].major;
        device.cc_minor = cases[i].minor;
        const struct kg_kernel *k = library_choose(&lib, &p, &device, NULL);
        assert_int_equal(k != NULL, cases[i].kernel != NULL);
        if (k)
            assert_string_equal(k->name, cases[i].kernel);
    }
    library_close(&lib);
}

TEST_WITHIN(an_op_that_is_not_known_is_not_served, enter, unit_leave_folder)
{
    static const char *const edits[] = {"rmsnorm", "unheard", NULL};
    struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, 4096, 0);
    struct library lib = open_edited(edits);
    assert_string_equal(library_choose(&lib, &p, &h100, NULL)->name, "any");
    library_close(&lib);
}

TEST_WITHIN(flags_of_a_problem, enter, unit_leave_folder)
{
    static const char *const edits[] = {"n >= 4096", "tf32 == 1", "fp16", "fp32", NULL};
    struct kg_problem p = gemm_like("rmsnorm", KG_F32, 3, 16, 0);
    struct library lib = open_edited(edits);
    assert_null(library_choose(&lib, &p, &h100, NULL));
    p.flags = KG_FLAG_TF32;
    assert_string_equal(library_choose(&lib, &p, &h100, NULL)->name, "long");
    library_close(&lib);
}

TEST_WITHIN(the_flag_of_an_op, enter, unit_leave_folder)
{
    static const char *const edits[] = {"rmsnorm", "attention_fwd", "n >= 4096", "flag == 1",
                                        "\"m\"",   "\"1\"",         "\"n\"",     "\"1\"",
                                        "\"eps\"", "\"1\"",         NULL};
    struct library lib = open_edited(edits);
    for (uint32_t flags = 0; flags <= KG_FLAG_CAUSAL; flags += KG_FLAG_CAUSAL) {
        struct kg_problem p = op_problem(op_by_name("attention_fwd"), KG_F16, flags);
        assert_int_equal(library_choose(&lib, &p, &h100, NULL) != NULL, flags != 0);
    }
    library_close(&lib);
}

/* ---- what is launched ---- */

/* As fake_cuda.c has it. */
struct noted {
    struct {
        unsigned grid[3], block[3], shared;
        void *stream;
        const void *attributes;
        unsigned n_attributes;
    } config;
    unsigned cluster[3], n_launches, n_loaded;
    int allowed, refuses_clusters;
    const char *function;
    size_t n_arguments, sizes[8];
    unsigned char arguments[8][8];
};

static struct noted *fake(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/tools/fake_cuda.so", getenv("KERNEL_GATE_BUILD"));
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    struct noted *noted = dlsym(library, "fake_cuda_noted");
    *noted = (struct noted){.n_arguments = 5, .sizes = {8, 4, 8, 4, 8}};
    return noted;
}

static struct kg_args args_of(const struct kg_problem *p, int64_t stride)
{
    static char memory[4096];
    struct kg_args args = {.struct_bytes = sizeof args,
                           .n_in = p->n_in,
                           .n_out = p->n_out,
                           .workspace = memory + 256,
                           .workspace_bytes = 1024,
                           .stream = memory + 1};
    const struct kg_tensor x = {
        .data = (void *)0x10000, .dtype = KG_F16, .rank = 2, .stride = {stride, 1}};
    args.in[0] = args.in[1] = args.out[0] = x;
    return args;
}

static int64_t argument(const struct noted *n, size_t at)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, n->arguments[at], sizeof narrow);
    memcpy(&wide, n->arguments[at], sizeof wide);
    return n->sizes[at] == 4 ? narrow : wide;
}

TEST_WITHIN(arguments_and_shapes_of_launches, enter, unit_leave_folder)
{
    struct noted *noted = fake();
    struct gate_error err = {0};
    struct library lib = open_edited(NULL);
    struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, 48, 0);
    struct kg_args args = args_of(&p, 64);
    const struct kg_kernel *any = lib.table->kernels[1];
    assert_int_equal(library_start(&lib, &h100, &err), GATE_OK);
    assert_int_equal(noted->n_loaded, 2);
    assert_true(library_serves(any, &p, &h100));
    assert_int_equal(library_prepare(any, &p, &h100, &args.plan), KG_OK);
    assert_int_equal(noted->allowed, 4 * 48);
    assert_int_equal(any->workspace_bytes(&p, &h100, args.plan), 24);
    assert_int_equal(any->launch(&p, &args), KG_OK);
    assert_int_equal(noted->n_launches, 2);
    assert_string_equal(noted->function, "one");
    static const unsigned grid[] = {396, 48, 3}, block[] = {8, 4, 2}, cluster[] = {2, 1, 1};
    assert_memory_equal(noted->config.grid, grid, sizeof grid);
    assert_memory_equal(noted->config.block, block, sizeof block);
    assert_memory_equal(noted->cluster, cluster, sizeof cluster);
    assert_int_equal(noted->config.shared, 4 * 48);
    assert_ptr_equal(noted->config.stream, args.stream);
    assert_int_equal(argument(noted, 0), 0x10002);
    assert_int_equal(argument(noted, 1), -3);
    assert_int_equal(argument(noted, 2), 64);
    float half;
    memcpy(&half, noted->arguments[3], sizeof half);
    assert_true(half == 0.5f);
    assert_int_equal(argument(noted, 4), (int64_t)(uintptr_t)args.workspace + 8);
    library_close(&lib);
    assert_int_equal(noted->n_loaded, 0);
}

TEST_WITHIN(a_layout_is_refused_where_a_condition_on_it_fails, enter, unit_leave_folder)
{
    static const char *const edits[] = {"pointer\", \"value\": \"0\"", "f64\", \"value\": \"eps\"",
                                        NULL};
    struct noted *noted = fake();
    struct gate_error err = {0};
    struct library lib = open_edited(edits);
    struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, 4096, 0);
    const struct kg_kernel *k = lib.table->kernels[0];
    assert_int_equal(library_start(&lib, &h100, &err), GATE_OK);
    for (int odd = 0; odd < 2; odd++) {
        struct kg_args args = args_of(&p, 4112 + odd);
        p.param[0].value = 1e-5;
        assert_int_equal(library_prepare(k, &p, &h100, &args.plan), KG_OK);
        assert_int_equal(k->launch(&p, &args), odd ? KG_UNSUPPORTED : KG_OK);
    }
    float eps;
    memcpy(&eps, noted->arguments[3], sizeof eps);
    assert_true(eps == 1e-5f);
    double wide;
    memcpy(&wide, noted->arguments[4], sizeof wide);
    assert_true(wide == 1e-5);
    assert_int_equal(noted->n_launches, 1);
    assert_int_equal(noted->config.n_attributes, 0);
    library_close(&lib);
}

/* A smaller problem may be prepared behind a larger one, which still runs. */
TEST_WITHIN(shared_memory_of_several_problems, enter, unit_leave_folder)
{
    struct noted *noted = fake();
    struct gate_error err = {0};
    struct library lib = open_edited(NULL);
    const struct kg_kernel *any = lib.table->kernels[1];
    assert_int_equal(library_start(&lib, &h100, &err), GATE_OK);
    for (int64_t n = 96; n >= 48; n -= 48) {
        struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, n, 0);
        void *plan;
        assert_int_equal(library_prepare(any, &p, &h100, &plan), KG_OK);
        assert_int_equal(noted->allowed, 4 * 96);
    }
    library_close(&lib);
}

/* All of it is machine code that counts. */
TEST_WITHIN(its_hashes, enter, unit_leave_folder)
{
    static const char *const edits[] = {"n >= 4096", "n >= 8192", NULL};
    char hex[3][65], other[160];
    struct gate_error err = {0};
    for (int i = 0; i < 3; i++) {
        write_manifest(i == 1 ? edits : NULL);
        if (i == 2)
            put_cubin("b.cubin", 80, five, 5, 9);
        assert_int_equal(machine_code_of_file("x.json", hex[i], &err), GATE_OK);
    }
    assert_string_not_equal(hex[0], hex[1]);
    assert_string_not_equal(hex[0], hex[2]);
    assert_int_equal(piece_hash_file("x.json", hex[0], other, &err), GATE_OK);
    assert_string_equal(other, "");
}

/* The candidate and the baseline, of which each is there twice. */
TEST_WITHIN(several_bundles_at_once, enter, unit_leave_folder)
{
    static const char *const edits[] = {"n >= 4096", "n >= 8192", NULL};
    struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, 4096, 0);
    struct library one = open_edited(NULL), two = open_edited(edits), copy;
    struct gate_error err = {0};
    assert_int_equal(library_open("x.json", KG_DEVICE_CUDA, true, &copy, &err), GATE_OK);
    assert_string_not_equal(one.sha256, two.sha256);
    assert_string_equal(copy.sha256, two.sha256);
    assert_string_equal(library_choose(&one, &p, &h100, NULL)->name, "long");
    assert_string_equal(library_choose(&two, &p, &h100, NULL)->name, "any");
    library_close(&one);
    assert_string_equal(library_choose(&copy, &p, &h100, NULL)->name, "any");
    library_close(&two);
    library_close(&copy);
}

TEST_WITHIN(code_for_another_gpu, enter, unit_leave_folder)
{
    struct gate_error err = {0};
    fake();
    put_cubin("a.cubin", 80, five, 5, 9);
    struct library lib = open_edited(NULL);
    assert_int_equal(library_start(&lib, &h100, &err), GATE_WRONG);
    assert_string_equal(err.message, "kernel library 'x.json': its machine code is for sm_80, and "
                                     "this GPU is sm_90");
    library_close(&lib);
}

static enum kg_status open_in_vain(const struct kg_device *, const struct kg_file *)
{
    return KG_UNSUPPORTED;
}

TEST(a_library_that_cannot_start_says_why)
{
    const struct kg_library table = {sizeof table, KG_ABI_VERSION, "p", "1", KG_DEVICE_CUDA, 0,
                                     NULL,         open_in_vain,   NULL};
    struct library lib = {.table = &table, .file = "x.so"};
    struct gate_error err = {0};
    assert_int_equal(library_start(&lib, &h100, &err), GATE_WRONG);
    assert_string_equal(err.message,
                        "kernel library 'x.so': open() returned 'unsupported': what it "
                        "needs is not here");
}

/* ---- what cannot be ---- */

TEST_WITHIN(values_that_a_problem_makes_impossible, enter, unit_leave_folder)
{
    static const struct {
        const char *old, *new, *says;
    } cases[] = {
        {"n >= 4096", "1 / (n - 4096)",
         "manifest:4:13: /kernels/0/when/0: it divides by zero for this problem"},
        {"\"m\"", "\"m - 3\"",
         "manifest:5:62: /kernels/0/launches/0/grid/0: must be from 1 to 2147483647, is 0 for"},
        {"32 * 4", "n", "/block/0: must be from 1 to 1024, is 4096"},
        {"32 * 4", "n * n * n * n * n * n", "/block/0: its value does not fit in 63 bits for this"},
        {"[\"32 * 4\"]", "[\"n / 4\", \"2\"]", "/block: must be at most 1024 threads, are 2048"},
        {"\"block\"", "\"cluster\": [\"2\"], \"block\"",
         "/cluster/0: must divide the grid, which is 3 for"},
        {"\"n\"", "\"n * n * n\"", "arguments/1/value: must be from -2147483648 to 2147483647"},
        {"\"block\"", "\"shared\": \"64 * n\", \"block\"",
         "shared: the driver refuses 262144 bytes of shared memory: CUDA_ERROR_INVALID_VALUE"},
        {"\"grid\": [\"m\"]", "\"cluster\": [\"16\"], \"grid\": [\"16 * m\"]",
         "/launches/0/cluster: the driver refuses a cluster of 16 blocks: "
         "CUDA_ERROR_INVALID_VALUE"},
        {"\"launches\"", "\"workspace\": \"-1\", \"launches\"", "/kernels/0/workspace: must be"},
    };
    fake()->refuses_clusters = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const edits[] = {cases[i].old, cases[i].new, NULL};
        struct kg_problem p = gemm_like("rmsnorm", KG_F16, 3, 4096, 0);
        struct library lib = open_edited(edits);
        struct gate_error err = {0};
        void *plan;
        assert_int_equal(library_start(&lib, &h100, &err), GATE_OK);
        const struct kg_kernel *k = library_choose(&lib, &p, &h100, NULL);
        assert_string_equal(k->name, "long");
        assert_int_equal(library_prepare(k, &p, &h100, &plan), KG_UNSUPPORTED);
        if (!strstr(library_fault(k), cases[i].says))
            fail_msg("expected '%s', got '%s'", cases[i].says, library_fault(k));
        library_close(&lib);
    }
}

TEST_WITHIN(manifests_that_cannot_be_have_a_place, enter, unit_leave_folder)
{
    static const struct {
        const char *old, *new, *says;
    } cases[] = {
        {"gate-bundle/1", "gate-bundle/2", "manifest:1:12: /schema: must be"},
        {"\"n >= 4096\"", "\"q >= 4096\"",
         "manifest:4:13: /kernels/0/when/0: at character 1: no size has this name"},
        {"\"in0_stride0\"", "\"in0_stride9\"", "/arguments/2/value: at character 1: no size"},
        {"\"m\"", "\"m +\"", "/launches/0/grid/0: at character 4"},
        {"\"grid\": [\"m\"]", "\"grid\": [\"m\", \"1\", \"1\", \"1\"]", "grid: must have"},
        {"\"eps\"", "\"mu\"", "arguments/3/value: must be a number or a parameter of rmsnorm"},
        {"[\"fp16\"]", "[\"fp17\"]", "/kernels/0/dtypes/0: no dtype is named 'fp17'"},
        {"[\"fp16\"]", "[\"fp16\", \"fp16\"]",
         "dtypes: must be one dtype, or one for each of the "
         "3 tensors of rmsnorm"},
        {"\"one\"", "\"three\"", "/launches/0/entry: no kernel of 'a.cubin' has this name"},
        {"\"two\"", "\"three\"", "/kernels/1/launches/0/entry: no kernel of 'b.cubin' has this"},
        {"\"two\"", "\"one\"",
         "/kernels/1/launches/0/arguments: 'b.cubin' has a kernel of 5 "
         "parameters, and here are 0"},
        {"i32", "i64", "/arguments/1/type: the kernel takes 4 bytes there, and 'i64' has 8"},
        {"i32", "i33", "/arguments/1/type: must be"},
        {"a.cubin", "../a.cubin", "names the file '../a.cubin', which is no name of a file"},
        {"a.cubin", "none.cubin", "of the file 'none.cubin', which belongs to it"},
        {"a.cubin", "x.json", "/launches/0/entry: no kernel of 'x.json' has this name, or that"},
        {"\"any\"", "\"long\"", "two kernels are named 'long'"},
        {"\"provider\"", "\"author\"", "manifest:1:29: /author: unknown key 'author'"},
        {"]}]}]}\n", "]}]}]", "manifest:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const edits[] = {cases[i].old, cases[i].new, NULL};
        struct library lib;
        struct gate_error err = {0};
        write_manifest(edits);
        enum gate_status status = library_open("x.json", KG_DEVICE_CUDA, false, &lib, &err);
        if ((status != GATE_WRONG && status != GATE_IO) || !strstr(err.message, cases[i].says))
            fail_msg("expected '%s', got %d '%s'", cases[i].says, status, err.message);
    }
}

TEST_WITHIN(cubins_that_do_not_tell_their_parameters, enter, unit_leave_folder)
{
    struct library lib;
    struct gate_error err = {0};
    write_manifest(NULL);
    for (unsigned left_out = 0; left_out < 5; left_out++) {
        put_cubin("a.cubin", 90, five, 5, left_out);
        assert_int_equal(library_open("x.json", KG_DEVICE_CUDA, false, &lib, &err), GATE_WRONG);
        assert_non_null(strstr(err.message, "what the kernel takes cannot be read in 'a.cubin'"));
    }
}
