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

struct seen {
    struct code code;
    struct document_timing timing;
};

static void see(struct seen *x, const struct machine_code *m, unsigned architecture,
                const struct device_kernels *kernels)
{
    fields_clear(&document_timing_shape, &x->timing);
    code_read(&x->code, kernels, 4, m, architecture, &x->timing);
}

static void see_in(struct seen *x, const struct cubin *cubin, const struct device_kernels *kernels)
{
    struct machine_code *m = cubin_read(cubin, 1);
    see(x, m, 90, kernels);
    machine_code_free(m);
}

static struct seen was, is;

TEST(the_same_twice)
{
    see_in(&was, &cubin_plain, &both);
    see_in(&is, &cubin_plain, &both);
    assert_int_equal(strlen(was.timing.code_sha256), 64);
    assert_true(code_is_same(&was.code, &is.code));
}

TEST(what_makes_another)
{
    struct cubin changed = cubin_plain;
    changed.second = "another code";
    see_in(&was, &cubin_plain, &both);
    see_in(&is, &changed, &both);
    assert_string_not_equal(was.code.sha256, is.code.sha256);
    assert_false(code_is_same(&was.code, &is.code));

    struct device_kernel wider[] = {two[0], two[1]};
    wider[1].grid[0] = 65;
    see_in(&is, &cubin_plain, &(struct device_kernels){wider, 2, 77, 0});
    assert_string_not_equal(was.code.sha256, is.code.sha256);

    see_in(&is, &cubin_plain, &(struct device_kernels){two, 2, 78, 0}); /* other arguments */
    assert_string_equal(was.code.sha256, is.code.sha256);
    assert_false(code_is_same(&was.code, &is.code));
}

/* A kernel that changed does not concern a replay that does without it. */
TEST(other_kernels_do_not_count)
{
    struct cubin changed = cubin_plain;
    changed.second = "another code";
    const struct device_kernels first = {two, 1, 5, 0};
    see_in(&was, &cubin_plain, &first);
    see_in(&is, &changed, &first);
    assert_true(code_is_same(&was.code, &is.code));
}

TEST(not_known_is_not_the_same)
{
    const struct device_kernel foreign[] = {{"vendor_kernel", {1, 1, 1}, {1, 1, 1}, 8, 0, 0, 1}};
    const struct device_kernels cases[] = {
        {foreign, 1, 77, 0}, /* in another file */
        {NULL, 0, 77, 0},    /* the driver does not tell */
        {two, 2, 0, 0},      /* its arguments are not known */
    };
    for (size_t i = 0; i < 3; i++) {
        see_in(&is, &cubin_plain, &cases[i]);
        assert_int_equal(is.timing.code_sha256 == NULL, i < 2);
        assert_false(code_is_same(&is.code, &is.code));
    }
    see(&is, NULL, 90, &both);
    assert_false(code_is_same(&is.code, &is.code));
}

/* The two cubins of a bundle may have kernels of one name. */
TEST(of_two_kernels_of_one_name_the_resources_are_not_known)
{
    struct cubin cubins[] = {cubin_plain, cubin_plain};
    cubins[1].first = "load sub store";
    struct machine_code *m = cubin_read(cubins, 2);
    see(&is, m, 90, &both);
    assert_int_equal(is.timing.kernels[0].code, -1);
    assert_true(is.timing.kernels[1].code > 0);
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
        see(&is, m, cases[i].architecture, &both);
        assert_int_equal(is.timing.kernels[0].code > 0, cases[i].known);
    }
    machine_code_free(m);
}

TEST(resources_are_the_most)
{
    see(&is, NULL, 90, &both);
    assert_int_equal(is.timing.registers, 96);
    assert_int_equal(is.timing.spill_bytes, 16);
    assert_int_equal(is.timing.shared_bytes, 65536);
    assert_int_equal(is.timing.n_kernels, 2);
    assert_string_equal(is.timing.kernels[1].name, two[1].name);
    assert_string_equal(is.timing.kernels[1].grid, "64 x 2 x 1");
    assert_int_equal(is.timing.kernels[0].launches, 3);  /* 12 by 4 calls */
    assert_int_equal(is.timing.kernels[1].launches, -1); /* 5 by 4 calls: not all launch the same */
    assert_int_equal(is.timing.kernels[1].registers, two[1].registers);
    assert_int_equal(is.timing.kernels[1].code, -1);
    see(&is, NULL, 90, &(struct device_kernels){NULL, 0, 0, 0});
    assert_int_equal(is.timing.registers, -1);
}

/* The text that is compared with another build's; NULL where not all of it is known. */
TEST(what_a_launch_runs)
{
    struct device_kernel kernels[] = {two[0], two[1]};
    struct device_kernels replay = {kernels, 1, 77, 0x1f};
    char text[300];
    see_in(&is, &cubin_plain, &replay);
    snprintf(text, sizeof text,
             "launches 3 code %s grid 132x1x1 block 128x1x1 shared 4096; order 000000000000001f",
             is.timing.kernels[0].code_sha256);
    assert_string_equal(is.timing.launches, text);
    free(is.code.launches);
    for (int lacks = 0; lacks < 3; lacks++) { /* the launches of a call, the order, the code */
        kernels[0].launches = lacks == 0 ? 5 : 12;
        replay.order = lacks == 1 ? 0 : 0x1f;
        kernels[0].name = lacks == 2 ? "another" : two[0].name;
        see_in(&is, &cubin_plain, &replay);
        assert_null(is.timing.launches);
    }
}
