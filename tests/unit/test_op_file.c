/* SPDX-License-Identifier: Apache-2.0 */
/* test_op_file.c: ops of a user's: expressions, files that cannot be, sizes that fit, and values.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/cases/problem.h"
#include "gate/verify/verify_shapes.h"
#include "gate/worker/worker.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"
#include "tests/unit/own_ops.h"

/* ---- files ---- */

#define IN_PLACE(name) "{'name': '" name "', 'role': 'inout', 'axes': ['h', 'd']},\n"
#define MANY_IN_PLACE IN_PLACE("a") IN_PLACE("b") IN_PLACE("c") IN_PLACE("d") IN_PLACE("e")

#define INTEGERS "'fill': 'integers', 'least': -3, 'most': 8"

#define FLOPS "'flops'"
#define VARIANTS(these) "'variants': {" these "}, 'flops'"
#define ALL(dtype) "'x': '" dtype "', 'u': 'fp32', 'y': 'fp32'"

static const char good[] = "{'schema': 'gate-op/1', 'name': 'pick', 'reference': 'r.so',\n"
                           " 'sizes': [{'name': 'kv', 'kind': 'count'},"
                           " {'name': 'h', 'kind': 'count'},\n"
                           "  {'name': 'n', 'kind': 'length', 'least': 20, 'most': 5000},\n"
                           "  {'name': 'd', 'kind': 'given', 'values': [64, 128]}],\n"
                           " 'constraints': ['n % 16 == 0', 'n % 12 == 0', 'h % kv == 0'],\n"
                           " 'parameter': {'name': 'eps', 'usual': 0.5, 'least': 0, 'most': 1},\n"
                           " 'flag': {'name': 'masked', 'yes': 'masked', 'no': 'full'},\n"
                           " 'tensors': [{'name': 'x', 'role': 'in', 'axes': ['h', 'n', 'd']},\n"
                           "  {'name': 'at', 'role': 'in', 'axes': ['n'], 'dtype': 'int32',\n"
                           "   " INTEGERS "},\n"
                           "  {'name': 'u', 'role': 'in', 'axes': ['n'], 'fill': 'uniform',\n"
                           "   'least': 2, 'most': 3},\n"
                           "  {'name': 'y', 'role': 'out', 'axes': ['h', 'd'], 'whole': ['n']}],\n"
                           " 'flops': '2 * h * n * d', 'error_limits': {'bf16': 0.01}}\n";

/* The file with a part replaced. */
static const char *edited(const char *old, const char *new)
{
    static char text[4096];
    const char *at = strstr(good, old);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
    return text;
}

/* A part of the file, what stands there in its place, and what is said. */
static const struct {
    const char *old, *new, *what;
} faulty[] = {
    {"'pick'", "'gemm'", ":1:33: /name: 'gemm' is the name of an op that is built in"},
    {"'pick'", "'a+b'", "is no name of an op"},
    {"'pick'", "'foreign'", "/name: 'foreign' stands for what other tools measured"},
    {"'reference': 'r.so',", "", "reference"},
    {"'name': 'n',", "'name': 'h',", ":3:12: /sizes/2/name: 'h' is taken"},
    {"'name': 'n',", "'name': 'dtype',", "/sizes/2/name: 'dtype' is taken"},
    {"'name': 'n',", "'name': '9n',", "letters, digits"},
    {"'least': 20", "'least': 6000", "/sizes/2/least: must be at most 5000"},
    {"'least': 20", "'least': 0", "/sizes/2/least"},
    {"'values': [64, 128]", "'most': 8", "a 'given' size has 'values'"},
    {"[64, 128]", "[64.5]", "must be integers"},
    {"[64, 128]", "[64, 128], 'most': 100", "/sizes/3/values: must be integers from 1 to 100"},
    {"'most': 5000", "'most': 40", "/constraints: the gate finds no sizes"},
    {"'length', 'least': 20, 'most': 5000", "'count'", "1 to 3 of kind 'length'"},
    {"n % 16 == 0", "n % 16 == x", "/constraints/0: at character 11: no size has this name"},
    {"n % 16 == 0", "n % 4096 == 1", "/constraints: the gate finds no sizes"},
    {"n % 16 == 0", "n / (n - n) == 1", "/constraints: the gate finds no sizes"},
    {"n % 16 == 0", "n % 2000000 == 0", "/constraints/0: sizes go up by more"},
    {"2 * h * n * d", "-n", "the gate finds no sizes"},
    {"2 * h * n * d", "2 * h * z", ":14:11: /flops: at character 9"},
    {"'usual': 0.5", "'usual': 2", "/parameter/usual: must be from"},
    {"'eps'", "'kv'", "/parameter/name: 'kv' is taken"},
    {"'masked', 'yes'", "'eps', 'yes'", "/flag/name: 'eps' is taken"},
    {"'no': 'full'", "'no': 'masked'", "/flag/no"},
    {"['h', 'n', 'd']", "['h', 'w']", "/tensors/0/axes/1: no size is named 'w'"},
    {"['h', 'n', 'd']", "['h', 'h']", "/tensors/0/axes/1: 'h' is there twice"},
    {"['h', 'n', 'd']", "['h', 'n + w']",
     "/tensors/0/axes/1: at character 5: no size has this name"},
    {"['h', 'n', 'd']", "['n + 1', 'n + 1']", "/tensors/0/axes/1: 'n + 1' is there twice"},
    {"['h', 'n', 'd']", "['h', 'n - n']", "/tensors: the gate finds no sizes"},
    {"['h', 'n', 'd']", "[]", "/tensors/0/axes: must be one or more"},
    {"'name': 'at'", "'name': 'x'", "/tensors/1/name: 'x' is there already"},
    {"'int32'", "'int3'", "/tensors/1/dtype: no dtype has this name"},
    {"'int32'", "'e8m0'", "'integers' is not for e8m0"},
    {"'int32'", "'int32', 'nan': true", "/tensors/1/nan: int32 has none"},
    {INTEGERS, "'fill': 'quantised'", "/tensors/1/dtype: 'quantised' is for e4m3"},
    {"'int32',\n   'fill': 'integers'", "'int4', 'fill': 'permutation'", "needs no other key"},
    {"'fill': 'uniform',\n   'least': 2", "'fill': 'scales',\n   'least': 0",
     "/tensors/2/least: must be above 0"},
    {"'fill': 'uniform'", "'dtype': 'e8m0', 'fill': 'uniform'",
     "/tensors/2/least: must be powers of two in e8m0"},
    {"'fill': 'integers',", "'fill': 'uniform',",
     "/tensors/1/dtype: 'uniform' is for floating point"},
    {"'least': -3", "'least': -3.5", "/tensors/1/least: must be integers"},
    {"'least': -3", "'least': -3e9", "must be numbers of int32"},
    {"'least': -3, 'most': 8", "'least': 1", "needs 'least', and 'most' or 'end'"},
    {"'least': 2, 'most': 3", "'least': 4, 'most': 3", "the least one first"},
    {"'least': 2, 'most': 3", "'least': 4, 'most': 1e5", "must be numbers of fp16"},
    {"'most': 8}", "'most': 8, 'end': 'n'}", "needs 'least', and 'most' or 'end'"},
    {"'most': 8}", "'end': 'z'}", "/tensors/1/end: at character 1: no size"},
    {"'most': 8}", "'end': '-n - 9'}", "/tensors/1/end: the gate finds no sizes that meet all"},
    {"'most': 8}", "'end': 'n / (n - n)'}", "it divides by zero"},
    {INTEGERS, "'fill': 'offsets'", "/tensors/1: the fill 'offsets' needs 'end'"},
    {INTEGERS, "'fill': 'table', 'end': '20'", "numbers below 20"},
    {INTEGERS, "'fill': 'mask'", "/tensors/1/dtype: 'mask' is for bool"},
    {"'int32',\n   " INTEGERS, "'int8', 'fill': 'offsets', 'end': '1000'",
     "/tensors/1/end: the gate finds no sizes"},
    {"'fill': 'uniform',\n   'least': 2, 'most': 3", "'fill': 'permutation'",
     "/tensors/2/fill: 'permutation' is for int8, int32 and int64"},
    {"'whole': ['n']", "'end': 'n'", "/tensors/3/end: is for inputs alone"},
    {"'out', 'axes'", "'in', 'axes'", "/tensors/3/whole: is for outputs alone"},
    {"'whole': ['n']", "'fill': 'any'", "/tensors/3/fill: is for inputs alone"},
    {"'x', 'role': 'in'", "'x', 'role': 'inout'", "/tensors/1/role: 'in' comes before 'inout'"},
    {"'out', 'axes': ['h', 'd']", "'inout', 'axes': ['h', 'd'], 'dtype': 'int32'",
     "/tensors/3/dtype: must be fp16"},
    {"'out', 'axes'", "'out', 'dtype': 'fp64', 'axes'", "/tensors/3/dtype: must be fp16"},
    {"'int32',\n   'fill': 'integers', 'least': -3",
     "'int64',\n   'fill': 'integers', 'least': -9007199254740994",
     "/tensors/1/least: must be numbers of int64"},
    {"{'name': 'y'", MANY_IN_PLACE "{'name': 'y'", "/tensors: are more than 12"},
    {"'flops'", "'multilinear': true, 'flops'", "/multilinear: is for two inputs"},
    {"'flops'", "'id': ['n'], 'flops'", "/id: must name each size once"},
    {"'bf16': 0.01", "'bf16': 1.5", "/error_limits/bf16"},
    {"'bf16': 0.01", "'fp8': 0.01", ":14:52: /error_limits/fp8: no case has this dtype"},
    {FLOPS, VARIANTS("'A': {}"), "/variants: must be at most 6, with names"},
    {FLOPS, VARIANTS("'v': {'z': 'fp16'}"), "/variants/v/z: no tensor without"},
    {FLOPS, VARIANTS("'v': {'at': 'int8'}"), "/variants/v/at: no tensor without"},
    {FLOPS, VARIANTS("'v': {'x': 'fp9'}"), "/variants/v/x: no dtype has this name"},
    {FLOPS, VARIANTS("'v': {'y': 'int4'}"), "/variants/v/y: must be fp16"},
    {FLOPS, VARIANTS("'v': {'x': 'fp16', 'u': 'fp16'}"), "/variants/v: 'y' has no dtype"},
    {FLOPS, VARIANTS("'v': {" ALL("fp16") "}, 'w': {" ALL("fp16") "}"),
     "/variants/w: has the dtypes of 'v'"},
    {FLOPS, VARIANTS("'v': {" ALL("fp16") "}, 'w': {" ALL("int8") "}"),
     "/tensors/0: the fill 'integers' needs"},
    {FLOPS, "'multilinear': true, " VARIANTS("'v': {" ALL("fp32") "}"),
     "/multilinear: is for two inputs"},
};

TEST(files_that_cannot_be_have_a_place)
{
    unsigned faults = 0;
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++) {
        struct own_op *own;
        struct gate_error err = {0};
        const char *text = double_quoted(edited(faulty[i].old, faulty[i].new));
        if (!own_op_parse("pick.op.json", text, strlen(text), &own, &err))
            own_op_free(own);
        if (strncmp(err.message, "pick.op.json:", 13) != 0 || !strstr(err.message, faulty[i].what))
            print_error("'%s': expected '%s', got '%s'\n", faulty[i].new, faulty[i].what,
                        err.message),
                faults++;
    }
    assert_int_equal(faults, 0);
}

/* ---- the op ---- */

/* What it computes is not known: nothing may be remembered of it. */
TEST_WITHIN(a_reference_that_is_not_there_may_need_others, unit_enter_folder, unit_leave_folder)
{
    struct gate_error err = {0};
    write_text("pick.op.json", double_quoted(good));
    if (own_op_use("pick.op.json", &err))
        fail_msg("%s", err.message);
    assert_null(own_op_at(0)->op.sha256);
    assert_true(own_op_at(0)->op.needs_others);
    op_use(NULL, 0);
}

static struct own_op *use(const char *old, const char *new)
{
    return use_op(edited(old, new));
}

static struct kg_problem problem(const struct own_op *own, int64_t kv, int64_t h, int64_t n,
                                 int64_t d)
{
    struct kg_problem p = op_problem(&own->op, KG_BF16, KG_FLAG_OWN);
    const int64_t sizes[] = {kv, h, n, d};
    for (unsigned i = 0; i < 4; i++)
        op_set_size(&p, &own->op.sizes[i], sizes[i]);
    op_set_param(&p, own->op.param, 0.25);
    return p;
}

/* TF32 may truncate (product_patterns.c). */
TEST(short_sums_of_products_may_lose_what_those_of_a_built_in_op_may)
{
    static const char dot[] = "{'schema': 'gate-op/1', 'name': 'dots', 'reference': 'r.so',\n"
                              " 'sizes': [{'name': 'm', 'kind': 'length'},"
                              "  {'name': 'k', 'kind': 'length'}], 'multilinear': true,\n"
                              " 'tensors': [{'name': 'a', 'role': 'in', 'axes': ['m', 'k']},\n"
                              "  {'name': 'b', 'role': 'in', 'axes': ['m', 'k']},\n"
                              "  {'name': 'c', 'role': 'out', 'axes': ['m'], 'whole': ['k']}],\n"
                              " 'flops': '2 * m * k'%s}\n";
    static const enum probe random[] = {PROBE_NORMAL, PROBE_UNIFORM, PROBE_ZERO_PARTS};
    for (unsigned limited = 0; limited < 2; limited++) {
        char text[1024];
        snprintf(text, sizeof text, dot, limited ? ", 'error_limits': {'tf32': 0.001}" : "");
        struct own_op *own = use_op(text);
        struct kg_problem p = op_problem(&own->op, KG_F32, KG_FLAG_TF32);
        op_set_size(&p, &own->op.sizes[0], 40);
        op_set_size(&p, &own->op.sizes[1], 1);
        for (unsigned i = 0; i < 3; i++) {
            const double slack = probe_slack(random[i], &p);
            assert_true(limited ? slack == 0 : problem_error_limit(&p) + slack >= 0x1p-9);
        }
        end(own);
    }
}

TEST(an_op_says_what_a_built_in_one_says)
{
    struct own_op *own = use("", "");
    const struct kg_problem p = problem(own, 2, 4, 48, 64);
    char id[PROBLEM_ID_MAX];
    problem_id(&p, id);
    assert_string_equal(id, "pick/bf16/kv2-h4-n48-d64/masked-eps0.25");
    assert_true(problem_flops(&p) == 2 * 4 * 48 * 64);
    assert_true(problem_bytes(&p) == 2 * 4 * 48 * 64 + 4 * 48 + 2 * 48 + 2 * 4 * 64);
    assert_true(problem_error_limit(&p) == 0.01);
    assert_true(op_is_problem(&p) && p.n_in == 3 && p.n_out == 1);
    assert_int_equal(p.dtype[0], KG_BF16);
    assert_int_equal(p.dtype[1], KG_I32);
    assert_ptr_equal(op_by_name("pick"), &own->op);
    end(own);
    assert_null(op_by_name("pick"));
}

TEST(the_limit_allows_for_the_rounding_of_each_output)
{
    static const struct {
        uint32_t dtype;
        const char *output;
        double limit, rate;
    } cases[] = {{KG_F32, "fp32", 1e-5, 2}, {KG_F32, "bf16", 4e-3, 8}, {KG_BF16, "fp32", 4e-3, 8}};
    const struct device_peaks peaks = {
        .fp32_flops = 2, .tf32_flops = 4, .fp16_flops = 8, .bytes_per_s = 1e30};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char output[40];
        snprintf(output, sizeof output, "'out', 'dtype': '%s'", cases[i].output);
        struct own_op *own = use("'out'", output);
        own->file.n_error_limits = 0;
        struct kg_problem p = problem(own, 2, 4, 48, 64);
        op_set_dtype(&p, cases[i].dtype);
        assert_true(problem_error_limit(&p) == cases[i].limit);
        assert_true(measure_floor_ns(&p, &peaks) == problem_flops(&p) / cases[i].rate * 1e9);
        end(own);
    }
}

TEST(what_is_updated_in_place_is_an_input_and_an_output)
{
    struct problem_tensor t[PROBLEM_MAX_TENSORS];
    struct own_op *own = use("{'name': 'y'", IN_PLACE("s") "{'name': 'y'");
    const struct kg_problem p = problem(own, 2, 4, 48, 64);
    assert_int_equal(problem_tensors(&p, t), 6);
    assert_int_equal(p.n_in, 4);
    for (unsigned i = 0; i < 6; i++) {
        assert_string_equal(t[i].name, ((const char *[]){"x", "at", "u", "s", "s", "y"})[i]);
        assert_int_equal(t[i].is_updated, i == 3);
        assert_int_equal(t[i].begins, i == 4 ? 4 : 0);
    }
    assert_true(problem_bytes(&p) == 2 * 4 * 48 * 64 + 4 * 48 + 2 * 48 + 3 * 2 * 4 * 64);
    end(own);
}

TEST(sizes_are_those_that_it_allows)
{
    struct own_op *own = use("", "");
    static const int64_t cases[][8] = {
        {1, 1, 1, 64, 1, 1, 48, 64},         {3, 4, 100, 128, 3, 6, 96, 128},
        {2, 1, 9999, 7, 2, 2, 4992, 64},     {5, 5, 48, 64, 5, 5, 48, 64},
        {4, 9, 4991, 128, 4, 12, 4944, 128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *c = cases[i];
        struct kg_problem p = problem(own, c[0], c[1], c[2], c[3]);
        assert_true(op_fit(&own->op, &p));
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(op_size(&p, &own->op.sizes[k]), c[4 + k]);
        assert_true(op_allows(&p));
    }
    end(own);
}

/* None of the shapes that verification draws is one that a kernel may refuse to know. */
TEST(shapes_are_allowed)
{
    struct own_op *own = use("", "");
    const struct kg_problem p = problem(own, 2, 4, 96, 64);
    static struct kg_problem shapes[SHAPES_MAX];
    const struct shapes_plan plan = {14, 10, 1, 1};
    unsigned n = shapes_designed(&p, 0, 1, plan, shapes), lengths = 0;
    for (unsigned i = 0; i < n; i++) {
        assert_true(op_allows(&shapes[i]));
        lengths += kg_size(&shapes[i], "n") != 96;
    }
    assert_true(n > 20 && lengths > 10);
    n = shapes_of_own_size(&p, 1e9, shapes);
    n += shapes_wide(&p, 8, true, shapes + n);
    n += shapes_giant(&p, true, shapes + n);
    for (unsigned i = 0; i < n; i++)
        assert_true(op_allows(&shapes[i]));
    end(own);
}

TEST(shapes_are_not_large_where_one_size_has_several_axes)
{
    static struct kg_problem shapes[SHAPES_MAX];
    const struct shapes_plan plan = {14, 10, 1, 1};
    struct own_op *own = use("['h', 'n', 'd']", "['h', 'n', 'n + 1']");
    const struct kg_problem p = problem(own, 1, 1, 96, 64);
    const unsigned n = shapes_designed(&p, 0, 1, plan, shapes);
    unsigned longer = 0;
    for (unsigned i = 0; i < n; i++) {
        assert_true(op_allows(&shapes[i]) && problem_bytes(&shapes[i]) <= 0x1p23);
        longer += kg_size(&shapes[i], "n") > 1000;
    }
    assert_true(n > 20 && longer > 0);
    assert_true(shapes_wide(&p, 132, true, shapes) > 0);
    assert_true(problem_bytes(&shapes[0]) <= 0x1p26);
    end(own);
}

/* As of a cache of pages, or of experts without rows. */
TEST(what_reads_by_indices_has_no_least_time)
{
    const struct device_peaks peaks = {.fp16_flops = 1, .bytes_per_s = 1};
    for (unsigned indices = 0; indices < 2; indices++) {
        struct own_op *own = use("'most': 8", indices ? "'end': '8'" : "'most': 8");
        const struct kg_problem p = problem(own, 1, 2, 48, 64);
        assert_int_equal(measure_floor_ns(&p, &peaks) > 0, !indices);
        end(own);
    }
}

/* Of a built-in op with groups the work is known, and what is read of their matrices is not. */
TEST(groups_have_the_least_time_of_their_products)
{
    const struct device_peaks peaks = {.fp16_flops = 1e3, .bytes_per_s = 1};
    struct kg_problem p = op_problem(op_by_name("grouped_gemm"), KG_F16, 0);
    for (unsigned i = 0; i < p.n_sizes; i++)
        p.size[i].value = 10;
    assert_true(measure_floor_ns(&p, &peaks) == problem_flops(&p) / peaks.fp16_flops * 1e9);
    assert_true(problem_flops(&p) == 2000);
}

/* It is what makes them large, and it has no other value. */
TEST(shapes_have_other_lengths_where_the_given_size_is_large)
{
    static const struct {
        const char *old, *new;
        int64_t d;
    } cases[] = {
        {"[64, 128]", "[4096]", 4096},
        {"[64, 128]", "[64, 4096]", 4096},
        {"['n'], 'fill'", "['64 * d', '32 * d'], 'fill'", 64},
    };
    static struct kg_problem shapes[SHAPES_MAX];
    const struct shapes_plan plan = {14, 10, 1, 1};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct own_op *own = use(cases[i].old, cases[i].new);
        const struct kg_problem p = problem(own, 1, 1, 48, cases[i].d);
        const unsigned n = shapes_designed(&p, 0, 1, plan, shapes);
        assert_true(n > 20);
        for (unsigned j = 0; j < n; j++) {
            assert_true(memcmp(shapes[j].size, p.size, sizeof p.size) != 0);
            assert_int_equal(kg_size(&shapes[j], "d"), cases[i].d);
            assert_true(problem_bytes(&shapes[j]) <= 0x1p26);
        }
        end(own);
    }
}

/* What counts as a giant is one. */
TEST(giants_are_not_shortened)
{
    static const char *const values[] = {"[64]", "[65536]"};
    static struct kg_problem shapes[SHAPES_GIANT_MAX];
    for (unsigned large = 0; large < 2; large++) {
        unsigned giants = 0;
        struct own_op *own = use("[64, 128]", values[large]);
        const struct kg_problem p = problem(own, 1, 1, 48, large ? 65536 : 64);
        const unsigned n = shapes_giant(&p, false, shapes);
        for (unsigned i = 0; i < n; i++)
            giants += kg_size(&shapes[i], "n") > 48;
        assert_int_equal(giants, !large);
        end(own);
    }
}

/* The inputs of problem(own, 1, 2, 48, 64). */
static uint16_t given_x[2 * 48 * 64], given_u[48];
static int32_t given_at[48];
static const struct kg_tensor given[] = {
    {.data = given_x,
     .dtype = KG_BF16,
     .rank = 3,
     .shape = {2, 48, 64},
     .stride = {48 * 64, 64, 1}},
    {.data = given_at, .dtype = KG_I32, .rank = 1, .shape = {48}, .stride = {1}},
    {.data = given_u, .dtype = KG_BF16, .rank = 1, .shape = {48}, .stride = {1}},
};

/* Whatever the pattern, an input has the values that its file allows. */
TEST(values_are_allowed)
{
    struct own_op *own = use("", "");
    const struct kg_problem p = problem(own, 1, 2, 48, 64);
    unsigned patterns = 0;
    for (unsigned i = 0; i < 3; i++) /* of no elements: it is asked which inputs it fills */
        assert_int_equal(own->op.fill(&p, i, NULL, 0, NULL, 0), i > 0);
    for (int probe = 0; probe < PROBES; probe++) {
        if (!probe_applies((enum probe)probe, &p))
            continue;
        patterns++;
        for (uint64_t seed = 0; seed < 20; seed++) {
            probe_fill((enum probe)probe, &p, given, seed);
            probe_change((enum probe)probe, &p, given, seed);
            for (unsigned i = 0; i < 48; i++) {
                const double value = storage_get(given_u, KG_BF16, i);
                assert_true(given_at[i] >= -3 && given_at[i] <= 8);
                assert_true(value >= 2 && value <= 3);
            }
        }
    }
    assert_int_equal(patterns, 7);
    end(own);
}

/* What is bounded is not one of its ends alone where another input is all zeros. */
TEST(beside_zeros_values_are_the_usual_ones)
{
    struct own_op *own = use("", "");
    const struct kg_problem p = problem(own, 1, 2, 48, 64);
    probe_fill(PROBE_ZERO_FIRST, &p, given, 5);
    for (unsigned i = 0; i < 2; i++) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (int64_t n = 0; n < 48; n++) {
            least = fmin(least, pattern_get(&given[1 + i], n));
            most = fmax(most, pattern_get(&given[1 + i], n));
        }
        assert_true(most - least > (i ? 0.5 : 8));
    }
    for (int64_t n = 0; n < pattern_elements(&given[0]); n++)
        assert_true(pattern_get(&given[0], n) == 0);
    probe_fill(PROBE_ZERO_SECOND, &p, given, 5);
    for (int64_t n = 0; n < 48; n++)
        assert_true(pattern_get(&given[1], n) == 0);
    end(own);
}

/* Of a right kernel that sums in fp32, in order, terms that are not few bits. */
static double error_of_a_sum(const struct kg_tensor *in, int64_t n)
{
    const float *x = in[0].data, *u = in[2].data;
    double off = 0, of = 0;
    for (int64_t j = 0; j < 64; j++) {
        float sum = 0;
        double wanted = 0;
        for (int64_t i = 0; i < n; i++) {
            const float term = expf(fmaxf(fminf(x[i * 64 + j], 8), -8)) * expf(u[i]);
            sum += term;
            wanted += term;
        }
        off += pow(sum - wanted, 2);
        of += wanted * wanted;
    }
    return sqrt(off / of);
}

TEST(sums_of_terms_that_are_alike_may_lose_more)
{
    struct own_op *own = use("", "");
    enum { N = 4992 };
    struct kg_problem p = problem(own, 1, 1, N, 64);
    static float x[N * 64], u[N];
    static int32_t at[N];
    const struct kg_tensor in[] = {
        {.data = x, .dtype = KG_F32, .rank = 3, .shape = {1, N, 64}, .stride = {N * 64, 64, 1}},
        {.data = at, .dtype = KG_I32, .rank = 1, .shape = {N}, .stride = {1}},
        {.data = u, .dtype = KG_F32, .rank = 1, .shape = {N}, .stride = {1}},
    };
    double worst = 0;
    op_set_dtype(&p, KG_F32);
    for (int probe = 0; probe < PROBES; probe++)
        for (uint64_t seed = 0; probe_applies((enum probe)probe, &p) && seed < 4; seed++) {
            probe_fill((enum probe)probe, &p, in, seed);
            const double error = error_of_a_sum(in, N), limit = problem_error_limit(&p);
            worst = fmax(worst, error / limit);
            if (error > limit + probe_slack((enum probe)probe, &p))
                fail_msg("%s: %g", probe_name((enum probe)probe), error);
        }
    assert_true(worst > 1);
    end(own);
}
