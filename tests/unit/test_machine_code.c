/* SPDX-License-Identifier: Apache-2.0 */
/* Library files are put together here section by section; what nvcc makes of real ones is seen
 * where nvcc is (libours.so). */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "tests/unit/cubin_file.h"
#include "gate/library/machine_code.h"
#include "tests/unit/unit.h"

/* The hash of a kernel of a library of these; "" when it is not known. */
static void hash_of(const struct cubin *cubins, size_t n, const char *name, char hex[65])
{
    struct machine_code *m = cubin_read(cubins, n);
    if (!machine_code_hash(m, name, hex))
        *hex = '\0';
    machine_code_free(m);
}

static void assert_kernel(const struct cubin *other, const char *name, bool same)
{
    char was[65], is[65];
    hash_of(&cubin_plain, 1, name, was);
    hash_of(other, 1, name, is);
    assert_int_equal(strlen(was), 64);
    assert_int_equal(strlen(is), 64);
    assert_true((strcmp(was, is) == 0) == same);
}

static void assert_nothing_known(const struct machine_code *m)
{
    char hex[65];
    assert_false(machine_code_hash(m, "one", hex));
    assert_false(machine_code_hash(m, "two", hex));
}

/* ---- tests ---- */

TEST(kernels_are_found)
{
    char one[65], two[65], none[65];
    struct cubin two_chips[] = {cubin_plain, cubin_plain};
    two_chips[1].architecture = 80;
    struct machine_code *m = cubin_read(two_chips, 2);
    assert_true(machine_code_hash(m, "one", one));
    assert_true(machine_code_hash(m, "two", two));
    assert_string_not_equal(one, two);
    assert_false(machine_code_hash(m, "helper", none));
    machine_code_free(m);
}

TEST(what_changes_a_kernel)
{
    struct cubin c = cubin_plain;
    assert_kernel(&c, "one", true);
    c.first = "load sub store";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", true);
    c = cubin_plain;
    c.first_constants = "4 9";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", true);
    c = cubin_plain;
    c.data = "4";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", false);
    c = cubin_plain;
    c.helper = "loop return";
    assert_kernel(&c, "one", false);
    c = cubin_plain;
    c.architecture = 80;
    assert_kernel(&c, "one", false);
}

TEST(names_are_no_code)
{
    char was[65], is[65];
    struct cubin c = cubin_plain;
    c.names = "\0one_of_another_path\0two";
    hash_of(&cubin_plain, 1, "one", was);
    hash_of(&c, 1, "one_of_another_path", is);
    assert_string_equal(was, is);
}

TEST(each_architecture_counts)
{
    char was[65], is[65];
    struct cubin chips[] = {cubin_plain, cubin_plain};
    chips[1].architecture = 80;
    hash_of(chips, 2, "one", was);
    chips[1].first = "load load store";
    hash_of(chips, 2, "one", is);
    assert_string_not_equal(was, is);
    hash_of(chips, 1, "one", is);
    assert_string_not_equal(was, is);
}

/* Which of them is launched is not known: the cubins of a bundle may have kernels of one name. */
TEST(two_kernels_of_one_name)
{
    char hex[65];
    struct cubin cubins[] = {cubin_plain, cubin_plain};
    hash_of(cubins, 2, "one", hex);
    assert_int_equal(strlen(hex), 64);
    cubins[1].first = "load sub store";
    hash_of(cubins, 2, "one", hex);
    assert_string_equal(hex, "");
    hash_of(cubins, 2, "two", hex);
    assert_int_equal(strlen(hex), 64);
}

TEST(compressed_code_is_the_same_code)
{
    struct cubin c = cubin_plain;
    c.compressed = true;
    assert_kernel(&c, "one", true);
    assert_kernel(&c, "two", true);
    c.first = "load sub store";
    assert_kernel(&c, "one", false);
}

/* A part that cannot be read may hold a kernel of the same name: then nothing is known. */
TEST(what_cannot_be_unpacked_is_not_known)
{
    static const struct {
        int offset; /* from the entry's header, which is 64 bytes */
        uint32_t value;
    } faults[] = {{40, 0x102011} /* LZ4 */, {16, 0},   {16, 1u << 30}, {56, 0},
                  {56, 1u << 30},           {56, 100}, {60, 1u << 30}, {64, 0}};
    struct cubin c = cubin_plain;
    c.compressed = true;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        struct buf file;
        cubin_put_library(&file, &c, 1);
        char *frame = memmem(file.data, file.len, "\x28\xb5\x2f\xfd", 4);
        assert_non_null(frame);
        memcpy(frame - 64 + faults[k].offset, &faults[k].value, sizeof faults[k].value);
        struct machine_code *m = cubin_read_bytes(file.data, file.len);
        assert_nothing_known(m);
        machine_code_free(m);
        buf_release(&file);
    }
}

/* Whatever a file says of itself, nothing outside of it is read: the sanitizers watch. */
TEST(broken_files)
{
    struct buf file;
    char hex[65];
    cubin_put_library(&file, &cubin_plain, 1);
    for (size_t n = 1; n < file.len; n += 7) /* an empty file is no library */
        machine_code_free(cubin_read_bytes(file.data, n));
    for (size_t i = 0; i < file.len; i++) {
        char was = file.data[i];
        file.data[i] = (char)(was ^ 0x80);
        struct machine_code *m = cubin_read_bytes(file.data, file.len);
        machine_code_hash(m, "one", hex);
        machine_code_free(m);
        file.data[i] = was;
    }
    buf_release(&file);
}

TEST(other_files)
{
    struct machine_code *m;
    struct gate_error err;
    assert_int_equal(machine_code_read("/nowhere/x.so", &m, &err), GATE_IO);
    m = cubin_read_bytes("#!/bin/sh\n", 10);
    assert_nothing_known(m);
    machine_code_free(m);
    assert_int_equal(machine_code_read("/proc/self/exe", &m, &err), GATE_OK);
    assert_nothing_known(m);
    machine_code_free(m);
}

/* How many sections of a file have the name of a kernel whose hash is known, in any architecture.
 */
static size_t count_known(const struct machine_code *m, const char *path)
{
    static const char section[] = ".text._Z";
    struct buf file;
    struct gate_error err;
    size_t n = 0;
    char hex[65];
    buf_init(&file, (size_t)1 << 30);
    assert_int_equal(file_read(path, &file, &err), GATE_OK);
    const char *at = file.data, *end = file.data + file.len;
    while ((at = memmem(at, (size_t)(end - at), section, sizeof section - 1)) != NULL)
        n += machine_code_hash(m, at++ + strlen(".text."), hex);
    buf_release(&file);
    return n;
}

TEST(what_nvcc_makes)
{
    char path[512];
    struct machine_code *m;
    struct gate_error err;
    snprintf(path, sizeof path, "%s/lib/kernel-gate/libours.so", getenv("KERNEL_GATE_BUILD"));
    if (access(path, R_OK))
        skip(); /* a build without CUDA */
    assert_int_equal(machine_code_read(path, &m, &err), GATE_OK);
    assert_true(count_known(m, path) >= 50);
    machine_code_free(m);
}
