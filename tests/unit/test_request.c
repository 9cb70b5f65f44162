/* SPDX-License-Identifier: Apache-2.0 */
/* test_request.c: the target of a request, its bytes, and the tags and JSON of answers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/text/emit.h"
#include "server/request/reply.h"
#include "server/request/request.h"
#include "tests/unit/unit.h"

TEST(path_and_parameters)
{
    struct request r;
    request_parse(&r, "/api/v1/trends?case=gemm%2Ffp16%2fa+b&device=x&empty=");
    assert_int_equal(r.fault_status, 0);
    assert_string_equal(r.path, "/api/v1/trends");
    assert_int_equal(r.n_parameters, 3);
    assert_string_equal(request_parameter(&r, "case"), "gemm/fp16/a+b");
    assert_string_equal(request_parameter(&r, "device"), "x");
    assert_string_equal(request_parameter(&r, "empty"), "");
    assert_null(request_parameter(&r, "none"));

    request_parse(&r, "/caf%C3%A9?");
    assert_int_equal(r.fault_status, 0);
    assert_string_equal(r.path, "/caf\xc3\xa9");
    assert_int_equal(r.n_parameters, 0);

    /* An escaped separator separates nothing. */
    request_parse(&r, "/a%3Fb?x=1%262%3D3");
    assert_string_equal(r.path, "/a?b");
    assert_int_equal(r.n_parameters, 1);
    assert_string_equal(request_parameter(&r, "x"), "1&2=3");
}

TEST(refused_targets)
{
    static const char *const bad[] = {
        "",      "x",      "*",         "http://a/",   "/%",      "/%1",        "/%1g", "/%00",
        "/\x01", "/\x7f",  "/%ff",      "/\xff",       "/%c0%80", "/%ed%a0%80", "/?a",  "/?=1",
        "/?&",   "/?a=%0", "/?a=1&a=2", "/?a=1&%61=2", "/?a=%00", "/?a=%C3",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct request r;
        request_parse(&r, bad[i]);
        if (r.fault_status != 400)
            fail_msg("'%s' was let in", bad[i]);
        assert_non_null(r.fault);
        assert_string_equal(r.path, "/");
    }
}

TEST(limits)
{
    char target[REQUEST_MAX_TARGET + 2];
    struct request r;
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    target[REQUEST_MAX_TARGET] = '\0';
    request_parse(&r, target);
    assert_int_equal(r.fault_status, 0);
    assert_int_equal(strlen(r.path), REQUEST_MAX_TARGET);
    target[REQUEST_MAX_TARGET] = 'a';
    target[REQUEST_MAX_TARGET + 1] = '\0';
    request_parse(&r, target);
    assert_int_equal(r.fault_status, 414);

    char many[8 * (REQUEST_MAX_PARAMETERS + 1) + 3] = "/?";
    for (int i = 0; i <= REQUEST_MAX_PARAMETERS; i++) {
        char one[8];
        snprintf(one, sizeof(one), "%sp%c=1", i ? "&" : "", 'a' + i);
        memcpy(many + strlen(many), one, strlen(one) + 1);
        request_parse(&r, many);
        assert_int_equal(r.fault_status, i < REQUEST_MAX_PARAMETERS ? 0 : 400);
    }
}

/* ---- each byte is of the kinds that it should be of ---- */

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Of that kind are the bytes that `is_of` says, and no other. */
static void assert_kind(enum byte_kind kind, bool (*is_of)(int))
{
    for (int c = 1; c < 256; c++) {
        char text[] = {(char)c, '\0'};
        if (bytes_span(text, kind) != (size_t)is_of(c))
            fail_msg("kind %d: byte %d", (int)kind, c);
    }
}

static bool is_of_name(int c)
{
    return strchr("!#$%&'*+-.^_`|~" LETTERS_AND_DIGITS, c) != NULL;
}

static bool is_of_value(int c)
{
    return c == '\t' || (c >= ' ' && c != 0x7f);
}

static bool is_of_host(int c)
{
    return strchr("-._~!$&'()*+,;=%:[]" LETTERS_AND_DIGITS, c) != NULL;
}

static bool is_plain(int c)
{
    return c >= ' ' && c < 0x7f && c != '%';
}

TEST(kinds)
{
    assert_kind(BYTE_OF_NAME, is_of_name);
    assert_kind(BYTE_OF_VALUE, is_of_value);
    assert_kind(BYTE_OF_HOST, is_of_host);
    assert_kind(BYTE_PLAIN, is_plain);
}

TEST(span)
{
    assert_int_equal(bytes_span("", BYTE_OF_VALUE), 0);
    assert_int_equal(bytes_span("a b", BYTE_OF_NAME), 1);
    assert_int_equal(bytes_span("a b", BYTE_OF_VALUE), 3);
    assert_int_equal(bytes_span("a/b%2Fc", BYTE_PLAIN), 3);
}

/* ---- answers ---- */

TEST(tags)
{
    struct etag a = etag_of("abc", 3);
    struct etag b = etag_of("abd", 3);
    struct etag none = {""};
    /* The first half of the SHA-256 of "abc". */
    assert_string_equal(a.text, "\"ba7816bf8f01cfea\"");
    assert_string_not_equal(a.text, b.text);
    assert_true(etag_matches(&a, "\"ba7816bf8f01cfea\""));
    assert_true(etag_matches(&a, "W/\"x\", W/\"ba7816bf8f01cfea\""));
    assert_false(etag_matches(&a, "ba7816bf8f01cfea"));
    assert_false(etag_matches(&a, b.text));
    assert_true(etag_matches(&a, "*"));
    assert_false(etag_matches(&a, NULL));
    assert_false(etag_matches(&none, ""));
}

TEST(json)
{
    struct buf out;
    buf_init(&out, 4096);
    struct emit e = {.out = &out};
    emit_open(&e, '{');
    emit_string_member(&e, "text", "a\"\\\n\x01\xe2\x82\xac</script>");
    emit_key(&e, "list");
    emit_open(&e, '[');
    emit_integer(&e, INT64_MIN);
    emit_real(&e, 0.1);
    emit_real(&e, 1.0 / 0.0);
    emit_real(&e, 1e300);
    emit_open(&e, '{');
    emit_close(&e, '}');
    emit_null(&e);
    emit_close(&e, ']');
    emit_known_string(&e, "none", "");
    emit_bool_member(&e, "yes", true);
    emit_close(&e, '}');
    assert_string_equal(out.data,
                        "{\"text\":\"a\\\"\\\\\\n\\u0001\xe2\x82\xac</script>\",\"list\":["
                        "-9223372036854775808,0.1,null,1e+300,{},null],"
                        "\"none\":null,\"yes\":true}");
    buf_release(&out);
}

static void assert_real(double value)
{
    struct buf out;
    char text[40];
    buf_init(&out, 64);
    struct emit e = {.out = &out};
    emit_real(&e, value);
    snprintf(text, sizeof text, "%.9g", value);
    assert_string_equal(out.data, text);
    buf_release(&out);
}

/* As printf() writes them, whatever their size and wherever they are rounded. */
TEST(reals)
{
    for (int power = -7; power < 12; power++) {
        double unit = pow(10, power);
        for (int i = 0; i < 2000; i++) {
            double value = unit * (1 + i * 9.0 / 2000 + 1e-9 * i);
            for (int k = 0; k < 4; k++)
                assert_real((k % 2 ? -1 : 1) * nextafter(value, k < 2 ? 0 : 1e300));
            assert_real(round(value * 8e8 / unit) / 8e8 * unit); /* of ten digits, some end in 5 */
            assert_real(10 * unit * (1 - i * 1e-10));
        }
    }
    for (int64_t i = 99999995; i < 100000005; i++) /* half of a unit of the ninth digit */
        assert_real((double)i + 0.5);
    assert_real(999999999.5);
    assert_real(0.0);
    assert_real(-0.0);
}
