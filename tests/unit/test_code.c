/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay runs, of kernels that a file of nvcc's is not needed for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cubin_file.h"
#include "gate/launch/arm.h"
#include "tests/unit/unit.h"

static const struct device_kernel two[] = {
    {"one", {132, 1, 1}, {128, 1, 1}, 96, 0, 4096, 12},
    {"two", {64, 2, 1}, {256, 1, 1}, 40, 16, 65536, 5},
};

static const struct device_kernels both = {two, 2, 77, 0};

static struct code code_in(const struct cubin *cubin, const struct device_kernels *kernels)
{
    struct machine_code *m = cubin_read(cubin, 1);
    struct code code = code_of(kernels, 4, m, 90);
    machine_code_free(m);
    return code;
}

TEST(the_same_twice)
{
    struct code a = code_in(&cubin_plain, &both), b = code_in(&cubin_plain, &both);
    assert_int_equal(strlen(a.sha256), 64);
    assert_true(code_is_same(&a, &b));
}

TEST(what_makes_another)
{
    struct code was = code_in(&cubin_plain, &both), is;
    struct cubin changed = cubin_plain;
    changed.second = "another code";
    is = code_in(&changed, &both);
    assert_string_not_equal(was.sha256, is.sha256);
    assert_false(code_is_same(&was, &is));

    struct device_kernel wider[] = {two[0], two[1]};
    wider[1].grid[0] = 65;
    is = code_in(&cubin_plain, &(struct device_kernels){wider, 2, 77, 0});
    assert_string_not_equal(was.sha256, is.sha256);

    is = code_in(&cubin_plain, &(struct device_kernels){two, 2, 78, 0}); /* other arguments */
    assert_string_equal(was.sha256, is.sha256);
    assert_false(code_is_same(&was, &is));
}

/* A kernel that changed does not concern a replay that does without it. */
TEST(other_kernels_do_not_count)
{
    struct cubin changed = cubin_plain;
    changed.second = "another code";
    const struct device_kernels first = {two, 1, 5, 0};
    struct code a = code_in(&cubin_plain, &first), b = code_in(&changed, &first);
    assert_true(code_is_same(&a, &b));
}

TEST(not_known_is_not_the_same)
{
    const struct device_kernel foreign[] = {{"vendor_kernel", {1, 1, 1}, {1, 1, 1}, 8, 0, 0, 1}};
    const struct device_kernels cases[] = {
        {foreign, 1, 77, 0}, /* in another file */
        {NULL, 0, 77, 0},    /* the driver does not tell */
    };
    for (size_t i = 0; i < 2; i++) {
        struct code code = code_in(&cubin_plain, &cases[i]);
        assert_string_equal(code.sha256, "");
        assert_false(code_is_same(&code, &code));
    }
    struct code code = code_of(&both, 4, NULL, 90);
    assert_false(code_is_same(&code, &code));
    /* Its arguments are not. */
    code = code_in(&cubin_plain, &(struct device_kernels){two, 2, 0, 0});
    assert_false(code_is_same(&code, &code));
}

/* The two cubins of a bundle may have kernels of one name. */
TEST(of_two_kernels_of_one_name_the_resources_are_not_known)
{
    struct cubin cubins[] = {cubin_plain, cubin_plain};
    cubins[1].first = "load sub store";
    struct machine_code *m = cubin_read(cubins, 2);
    struct code code = code_of(&both, 4, m, 90);
    assert_int_equal(code.kernels[0].resources.of[RESOURCE_CODE], -1);
    assert_true(code.kernels[1].resources.of[RESOURCE_CODE] > 0);
    machine_code_free(m);
}

TEST(resources_are_of_the_code_that_the_gpu_takes)
{
    static const struct {
        unsigned architecture;
        bool known;
    } cases[] = {{86, true}, {89, true}, {80, false}, {90, false}};
    struct cubin cubin = cubin_plain;
    cubin.architecture = 86;
    struct machine_code *m = cubin_read(&cubin, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct code code = code_of(&both, 4, m, cases[i].architecture);
        assert_int_equal(code.kernels[0].resources.of[RESOURCE_CODE] > 0, cases[i].known);
    }
    machine_code_free(m);
}

TEST(resources_are_the_most)
{
    struct code code = code_of(&both, 4, NULL, 90);
    assert_true(code.has_resources);
    assert_int_equal(code.registers, 96);
    assert_int_equal(code.spill_bytes, 16);
    assert_int_equal(code.shared_bytes, 65536);
    assert_int_equal(code.n_kernels, 2);
    assert_string_equal(code.kernels[1].name, two[1].name);
    assert_int_equal(code.kernels[0].launches, 3); /* 12 by 4 calls */
    assert_int_equal(code.kernels[1].launches, 0); /* 5 by 4 calls: not all launch the same */
    assert_int_equal(code.kernels[1].resources.of[RESOURCE_REGISTERS], two[1].registers);
    assert_int_equal(code.kernels[1].resources.of[RESOURCE_CODE], -1);
    code = code_of(&(struct device_kernels){NULL, 0, 0, 0}, 4, NULL, 90);
    assert_false(code.has_resources);
}
