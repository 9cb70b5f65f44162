/* SPDX-License-Identifier: Apache-2.0 */
/* The growable buffer, fields of CSV in it, and the error texts. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/base/utf8.h"
#include "tests/unit/unit.h"

TEST(grows_and_terminates)
{
    struct buf b;
    buf_init(&b, 100000);
    assert_string_equal(b.data, "");
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%03d,", i);
    assert_int_equal(b.len, 4000);
    assert_int_equal(strlen(b.data), 4000);
    assert_memory_equal(b.data + 3996, "999,", 5);
    buf_release(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
}

TEST(maximum_is_exact)
{
    struct buf b;
    buf_init(&b, 8);
    buf_puts(&b, "12345678");
    assert_false(b.failed);
    buf_putc(&b, '9');
    assert_true(b.failed);
    assert_string_equal(b.data, "12345678");
    buf_release(&b);
}

TEST(written_in_place)
{
    struct buf b;
    buf_init(&b, 300);
    buf_puts(&b, "ab");
    for (int i = 0; i < 3; i++) {
        memcpy(buf_room(&b, 90), "cdef", 4);
        buf_used(&b, 2);
    }
    assert_string_equal(b.data, "abcdcdcd");
    assert_int_equal(b.len, 8);
    assert_null(buf_room(&b, 293));
    assert_true(b.failed);
    assert_string_equal(b.data, "abcdcdcd");
    buf_release(&b);
}

TEST(failure_sticks_until_cleared)
{
    struct buf b;
    buf_init(&b, 4);
    buf_puts(&b, "ab");
    buf_printf(&b, "%s", "too long");
    assert_true(b.failed);
    buf_puts(&b, "c");
    assert_string_equal(b.data, "ab");
    buf_clear(&b);
    buf_puts(&b, "c");
    assert_false(b.failed);
    assert_string_equal(b.data, "c");
    buf_release(&b);
}

TEST(binary)
{
    struct buf b;
    buf_init(&b, 16);
    buf_append(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b\0", 4);
    buf_release(&b);
}

TEST(detach)
{
    struct buf b;
    buf_init(&b, 4);
    char *s = buf_detach(&b);
    assert_string_equal(s, "");
    free(s);
    buf_puts(&b, "abcd");
    s = buf_detach(&b);
    assert_string_equal(s, "abcd");
    assert_int_equal(b.len, 0);
    free(s);
    buf_puts(&b, "abcde");
    assert_null(buf_detach(&b));
}

TEST(huge_maximum)
{
    struct buf b;
    buf_init(&b, SIZE_MAX);
    buf_puts(&b, "x");
    buf_append(&b, "y", SIZE_MAX - 1);
    assert_true(b.failed);
    assert_string_equal(b.data, "x");
    buf_release(&b);
}

TEST(error_text)
{
    struct gate_error err = {0};
    assert_int_equal(gate_fail(&err, GATE_IO, "cannot open '%s'", "a"), GATE_IO);
    assert_int_equal(gate_fail_context(&err, "suite %d", 3), GATE_IO);
    assert_int_equal(err.status, GATE_IO);
    assert_string_equal(err.message, "suite 3: cannot open 'a'");
    assert_int_equal(gate_fail(NULL, GATE_USAGE, "x"), GATE_USAGE);
}

TEST(error_is_cut_behind_a_character)
{
    struct gate_error err;
    char text[3001];
    for (size_t i = 0; i + 1 < sizeof(text); i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    text[3000] = '\0';
    gate_fail(&err, GATE_IO, "%s", text);
    size_t len = strlen(err.message);
    assert_true(len < sizeof(err.message));
    assert_string_equal(err.message + len - 3, "...");
    assert_int_equal((len - 3) % 3, 0);
    gate_fail_context(&err, "context");
    assert_memory_equal(err.message, "context: ", 9);
}

TEST(error_may_quote_itself)
{
    struct gate_error err;
    gate_fail(&err, GATE_IO, "inner");
    gate_fail(&err, GATE_USAGE, "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
}

/* The ends of each length, and bytes that are none. */
TEST(utf8)
{
    static const char text[] = "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
                               "\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xe2\x82";
    static const uint32_t codes[] = {1,      0x7f,   0x80,    0x7ff,    0x800,    0xd7ff,
                                     0xe000, 0xffff, 0x10000, 0x10ffff, UTF8_BAD, UTF8_BAD};
    static const char *const bad[] = {"\x80",         "\xc0\x80",         "\xc1\xbf",
                                      "\xe0\x80\x80", "\xed\xa0\x80",     "\xf0\x80\x80\x80",
                                      "\xff",         "\xf4\x90\x80\x80", "\xf8\x88\x80\x80"};
    const char *at = text;
    uint32_t code, decoded;
    for (size_t i = 0, n; i < sizeof codes / sizeof *codes; i++, at += n) {
        n = utf8_next(at, &code);
        assert_int_equal(code, codes[i]);
        assert_int_equal(utf8_decode(at, strlen(at), &decoded), code == UTF8_BAD ? 0 : n);
    }
    assert_int_equal(utf8_next(at, &code), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &code), 0);
        assert_int_equal(utf8_next(bad[i], &code), 1);
    }
    assert_int_equal(utf8_length("a\xe2\x82\xac"), 2);
}

TEST(utf8_trim)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t n = 0; n < sizeof text; n++) {
        char cut[sizeof text];
        snprintf(cut, sizeof cut, "%.*s", (int)n, text);
        assert_int_equal(strlen(utf8_trim(cut)), kept[n]);
        assert_memory_equal(cut, text, kept[n]);
        utf8_print(cut, sizeof cut, "%.*s", (int)n, text);
        assert_int_equal(strlen(cut), kept[n]);
        utf8_print(cut, n, "%s", text);
        assert_int_equal(n ? strlen(cut) : 0, n ? kept[n - 1] : 0);
    }
}

TEST(utf8_join)
{
    static const struct {
        const char *before, *put, *joined;
    } rows[] = {{"", "b", "b"}, {"a", "b", "a; b"}, {"a", "b\xc3\xa9", "a; b"}, {"a", "", "a; "}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[6];
        snprintf(text, sizeof text, "%s", rows[i].before);
        utf8_join(text, sizeof text, "; ", "%s", rows[i].put);
        assert_string_equal(text, rows[i].joined);
    }
}

/* ---- CSV ---- */

TEST(fields)
{
    static const char *const cases[][2] = {
        {"a b", "a b"},          {"", ""},
        {"a,b", "\"a,b\""},      {"say \"a\"", "\"say \"\"a\"\"\""},
        {"=1+1", "'=1+1"},       {"\n=1", "\"'\n=1\""},
        {"-1", "'-1"},           {"a-1", "a-1"},
        {"\uff1d1", "'\uff1d1"}, {";=1", ";'=1"},
        {"a;b", "a;b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out;
        buf_init(&out, 100);
        csv_put(cases[i][0], &out);
        assert_string_equal(out.data ? out.data : "", cases[i][1]);
        buf_release(&out);
    }
}
