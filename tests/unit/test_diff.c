/* SPDX-License-Identifier: Apache-2.0 */
/* test_diff.c: kernels side by side, of files that are put together here; test_diff.py has those
 * that nvcc makes. */
#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "gate/diff/diff.h"
#include "tests/unit/cubin_file.h"
#include "tests/unit/unit.h"

#define TEXT_MAX ((size_t)1 << 20)

/* A store of 4 bytes to local memory, and a load of 16. */
#define STL "\x87\x13\x01\x01\x01\x01\x01\x01\x01\x09\x01\x01\x01\x01\x01\x01"
#define LDL "\x83\x19\x01\x01\x01\x01\x01\x01\x01\x0d\x01\x01\x01\x01\x01\x01"

/* Registers of both, and a frame, of "one" alone. */
static const uint32_t attributes[] = {0x082f04,           1, 40,  /* registers of "one" */
                                      0x082f04,           2, 168, /* of "two" */
                                      0x081104,           1, 32,  /* stack */
                                      0x014c02 | 3u << 16};       /* barriers */

static struct cubin full(void)
{
    struct cubin c = cubin_plain;
    c.first = STL STL LDL;
    c.info = attributes;
    c.info_bytes = sizeof attributes;
    c.shared_bytes = 4096;
    return c;
}

static const struct diff_row *find(const struct diff *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct diff_row *row = &d->rows[i];
        if (!strcmp((row->new.kernel ? row->new.kernel : row->old.kernel)->name, name))
            return row;
    }
    fail_msg("no row of %s", name);
    return NULL;
}

static enum gate_status compare(const struct cubin *new, const struct cubin *old, unsigned arch,
                                void (*check)(const struct diff *d))
{
    struct machine_code *a = cubin_read(new, 1), *b = cubin_read(old, 1);
    struct diff d;
    struct gate_error err = {0};
    enum gate_status status = diff_libraries(a, b, arch, &d, &err);
    if (!status)
        check(&d);
    diff_release(&d);
    machine_code_free(a);
    machine_code_free(b);
    return status;
}

static void check_figures(const struct diff *d)
{
    static const int64_t one[RESOURCE_COUNT] = {40, 32, 8, 16, 4096, 3, 48};
    const struct diff_row *row = find(d, "one");
    assert_int_equal(row->change, DIFF_CHANGED);
    assert_int_equal(row->new.resources.architecture, 90);
    for (int r = 0; r < RESOURCE_COUNT; r++)
        assert_int_equal(row->new.resources.of[r], one[r]);
    assert_int_equal(row->old.resources.of[RESOURCE_REGISTERS], -1);
    assert_int_equal(find(d, "two")->change, DIFF_SAME);
    assert_int_equal(find(d, "two")->new.resources.of[RESOURCE_REGISTERS], 168);
    assert_int_equal(find(d, "two")->new.resources.of[RESOURCE_STACK], -1);
}

TEST(figures)
{
    struct cubin c = full();
    assert_int_equal(compare(&c, &cubin_plain, 0, check_figures), GATE_OK);
    assert_int_equal(compare(&c, &cubin_plain, 90, check_figures), GATE_OK);
    assert_int_equal(compare(&c, &cubin_plain, 80, check_figures), GATE_USAGE);
}

static void check_added(const struct diff *d)
{
    assert_int_equal(d->n, 3);
    assert_int_equal(find(d, "one")->change, DIFF_REMOVED);
    assert_int_equal(find(d, "uno")->change, DIFF_ADDED);
    assert_int_equal(find(d, "two")->change, DIFF_SAME);
}

static void check_same(const struct diff *d)
{
    assert_int_equal(d->n, 2);
    assert_int_equal(d->count[DIFF_SAME], 2);
}

/* What the path of the source makes of a name is no difference, anything else is. */
TEST(names)
{
    struct cubin a = cubin_plain, b = cubin_plain;
    a.names = "\0uno\0two";
    assert_int_equal(compare(&a, &cubin_plain, 0, check_added), GATE_OK);
    a.names = "\0_ZN35_GLOBAL__N__acf329b6_4_a_cu3hid\0two";
    b.names = "\0_ZN35_GLOBAL__N__00c329b6_4_a_cu3hid\0two";
    assert_int_equal(compare(&a, &b, 0, check_same), GATE_OK);
}

/* A whole table of each kind, of whatever a damaged file makes of its kernels: the sanitizers
 * watch. */
static void write_all(const struct diff *d)
{
    const struct report_style style = {0}, markdown = {.markdown = true};
    RELEASED_BY(buf_release) struct buf text = buf_of(TEXT_MAX);
    diff_write(d, true, &style, &text);
    diff_write(d, true, &markdown, &text);
    diff_write_json(d, &text);
    diff_write_instructions(d, true, &markdown, &text);
    assert_false(text.failed);
}

TEST(broken_files)
{
    struct cubin c = full();
    struct buf file;
    cubin_put_library(&file, &c, 1);
    struct machine_code *whole = cubin_read_bytes(file.data, file.len);
    for (size_t i = 0; i < 2 * file.len; i++) {
        const char was = file.data[i / 2], masks[] = {(char)0x80, 0x05};
        file.data[i / 2] = (char)(was ^ masks[i % 2]);
        struct machine_code *m = cubin_read_bytes(file.data, file.len);
        struct diff d;
        struct gate_error err = {0};
        if (!diff_libraries(m, whole, 0, &d, &err))
            write_all(&d);
        diff_release(&d);
        machine_code_free(m);
        file.data[i / 2] = was;
    }
    machine_code_free(whole);
    buf_release(&file);
}

static void check_texts(const struct diff *d)
{
    const struct report_style style = {0}, markdown = {.markdown = true};
    RELEASED_BY(buf_release) struct buf text = buf_of(TEXT_MAX);
    diff_write(d, false, &style, &text);
    assert_non_null(strstr(text.data, "? -> 40"));
    assert_null(strstr(text.data, "two"));
    assert_non_null(strstr(text.data, "2 kernels: 1 with the same code, 1 changed"));
    buf_clear(&text);
    diff_write(d, true, &markdown, &text);
    assert_non_null(strstr(text.data, "| 90 | **changed** | **? -&gt; 40** |"));
    assert_non_null(strstr(text.data, "`two` |"));
    buf_clear(&text);
    diff_write_json(d, &text);
    assert_non_null(strstr(text.data, "\"local_loads\":"));
}

TEST(texts)
{
    struct cubin c = full();
    assert_int_equal(compare(&c, &cubin_plain, 0, check_texts), GATE_OK);
}

/* ---- listings ---- */

static void compare_lines(char **old, size_t n, char **new, size_t m, struct buf *out)
{
    const struct listing a = {.line = old, .n = n}, b = {.line = new, .n = m};
    buf_clear(out);
    assert_true(listing_compare(&a, &b, out));
}

/* What is left of both without what is shown has the same length. */
TEST(listings)
{
    static char *const words[] = {(char *)"ADD", (char *)"MUL", (char *)"LDG"};
    char *old[12], *new[12], opcode[8];
    RELEASED_BY(buf_release) struct buf out = buf_of(TEXT_MAX);
    for (uint64_t seed = 0; seed < 3000; seed++) {
        size_t n = seed_at(seed, 0) % 12, m = seed_at(seed, 1) % 12, gone = 0, come = 0;
        for (size_t i = 0; i < n; i++)
            old[i] = words[seed_at(seed, 2 + i) % 3];
        for (size_t i = 0; i < m; i++)
            new[i] = words[seed_at(seed, 20 + i) % 3];
        compare_lines(old, n, new, m, &out);
        for (const char *at = out.data; at && (at = strpbrk(at, "<>|")); at++) {
            gone += *at != '>';
            come += *at != '<';
        }
        assert_int_equal(n - gone, m - come);
    }
    char *a[] = {words[0], words[1], words[2], words[0]}, *b[] = {words[0], words[2], words[1]};
    compare_lines(a, 4, b, 3, &out);
    assert_non_null(strstr(out.data, "MUL "));
    assert_non_null(strstr(out.data, "...\nADD "));
    assert_non_null(strstr(out.data, " | MUL\n"));
    compare_lines(a, 4, a, 4, &out);
    assert_int_equal(out.len, 0);
    listing_opcode("@!P0 LDG.E R2, [R2]", opcode, sizeof opcode);
    assert_string_equal(opcode, "LDG");
    listing_opcode("EXIT ;", opcode, sizeof opcode);
    assert_string_equal(opcode, "EXIT");
}

/* ---- how often ---- */

static void expect_mix(char *const *new, size_t n, char *const *old, size_t m, const char *rows)
{
    struct listing a = {.line = (char **)new, .n = n}, b = {.line = (char **)old, .n = m};
    struct mix mix;
    RELEASED_BY(buf_release) struct buf found = buf_of(TEXT_MAX);
    mix_count(&a, old ? &b : NULL, &mix);
    for (size_t i = 0; i < mix.n; i++)
        buf_printf(&found, "%s%s %zu %zu",
                   i == 0               ? ""
                   : i == mix.n_changed ? " | "
                                        : ", ",
                   mix.rows[i].opcode, mix.rows[i].old, mix.rows[i].new);
    assert_string_equal(found.data, rows);
}

/* What changed comes first: work before the rest, larger changes before smaller ones. */
TEST(mix)
{
    char lines[][40] = {"LDG.E R2, [R2.64]", "@P0 BRA `(.L_x_1)", "NOP",         "MUFU.EX2 R1, R1",
                        "LOP3.LUT R1, R2",   "PREEXIT",           "STS [R0], R5"};
    char *old[] = {lines[0], lines[1], lines[2], lines[5], lines[6]};
    char *new[] = {lines[0], lines[1], lines[4], lines[4], lines[4],
                   lines[3], lines[3], lines[6], lines[2], lines[2]};
    expect_mix(new, 10, old, 5, "MUFU 0 2, PREEXIT 1 0, LOP3 0 3 | LDG 1 1, STS 1 1, BRA 1 1");
    expect_mix(old, 5, NULL, 0, "BRA 0 1, LDG 0 1, PREEXIT 0 1, STS 0 1");
}
