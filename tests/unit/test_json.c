/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON: hostile texts, positions, and numbers that survive the round trip. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "tests/unit/unit.h"

static void assert_refused(const char *text, size_t len, const char *message)
{
    struct gate_error err = {0};
    cJSON *value = NULL;
    enum gate_status status = json_parse("t", text, len, GATE_USAGE, &value, &err);
    if (status == GATE_OK)
        fail_msg("accepted: %.*s", (int)len, text);
    assert_int_equal(status, GATE_USAGE);
    assert_string_equal(err.message, message);
}

static cJSON *parse(const char *text)
{
    struct gate_error err = {0};
    cJSON *value = NULL;
    if (json_parse("t", text, strlen(text), GATE_IO, &value, &err) != GATE_OK)
        fail_msg("%s: %s", text, err.message);
    return value;
}

TEST(refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t:1:1: the text is empty"},
        {" \n ", "t:1:1: the text is empty"},
        {"{", "t:1:2: the text ends too early"},
        {"[1,", "t:1:4: the text ends too early"},
        {"[1,]", "t:1:4: expected a value"},
        {"{\"a\":1,}", "t:1:8: expected a key in double quotes"},
        {"{\"a\" 1}", "t:1:6: expected ':' after a key"},
        {"{a:1}", "t:1:2: expected a key in double quotes"},
        {"[1 2]", "t:1:4: expected ',' or ']'"},
        {"{\"a\":1 \"b\":2}", "t:1:8: expected ',' or '}'"},
        {"[1] x", "t:1:5: more text after the end of the value"},
        {"1 1", "t:1:3: more text after the end of the value"},
        {"{}\n{}", "t:2:1: more text after the end of the value"},
        {"nul", "t:1:1: expected a value"},
        {"NaN", "t:1:1: expected a value"},
        {"-Infinity", "t:1:2: malformed number"},
        {"'a'", "t:1:1: expected a value"},
        {"// c\n1", "t:1:1: expected a value"},
        {"\"abc", "t:1:1: string without an end"},
        {"\"a\tb\"", "t:1:3: control character in a string (it must be escaped)"},
        {"\"\\x\"", "t:1:3: unknown escape in a string"},
        {"\"\\u12g4\"", "t:1:6: \\u needs four hexadecimal digits"},
        {"\"\\u0000\"", "t:1:2: \\u0000 in a string"},
        {"\"\\ud800\"", "t:1:2: half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "t:1:2: half of a surrogate pair"},
        {"\"\\udc00\"", "t:1:2: half of a surrogate pair"},
        {"\"\xff\"", "t:1:2: invalid UTF-8"},
        {"\"\xed\xa0\x80\"", "t:1:2: invalid UTF-8"},
        {"\"\xc0\x80\"", "t:1:2: invalid UTF-8"},
        {"\xef\xbb\xbf{}", "t:1:1: byte order mark (save the file without it)"},
        {"01", "t:1:1: a number must not begin with 0"},
        {"-01", "t:1:1: a number must not begin with 0"},
        {"+1", "t:1:1: expected a value"},
        {".5", "t:1:1: expected a value"},
        {"[1.]", "t:1:4: malformed number"},
        {"[1e]", "t:1:4: malformed number"},
        {"1e", "t:1:3: the text ends too early"},
        {"1e999", "t:1:1: number out of range"},
        {"[-1e999]", "t:1:2: number out of range"},
        {"0x10", "t:1:2: more text after the end of the value"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "t:1:14: key that this object has already"},
        {"{\"a\":1,\n \"\\u0061\":3}", "t:2:2: key that this object has already"},
        {"{\"\":{\"x\":1,\"x\":2}}", "t:1:12: key that this object has already"},
        {"{\"a\":1,\"b\":2,\"b\":3,\"a\":4}", "t:1:14: key that this object has already"},
        {"{\"a\":{\"c\":0},\"b\":[{\"d\":0,\"d\":1}],\"a\":0}",
         "t:1:26: key that this object has already"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].message);
}

TEST(nul_bytes)
{
    assert_refused("{}\0", 3, "t:1:3: NUL byte");
    assert_refused("\0", 1, "t:1:1: NUL byte");
    assert_refused("\"a\0b\"", 5, "t:1:3: NUL byte");
}

TEST(depth)
{
    enum { HUGE_DEPTH = 200000 };
    char *text = malloc(2 * HUGE_DEPTH);
    assert_non_null(text);
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    text[2 * JSON_MAX_DEPTH] = '\0';
    cJSON_Delete(parse(text));
    memset(text, '[', HUGE_DEPTH);
    memset(text + HUGE_DEPTH, ']', HUGE_DEPTH);
    assert_refused(text, 2 * HUGE_DEPTH, "t:1:33: nested too deeply");
    free(text);
}

TEST(long_number)
{
    char text[100];
    memset(text, '1', 63);
    text[63] = '\0';
    cJSON_Delete(parse(text));
    text[63] = '1';
    assert_refused(text, 64, "t:1:1: number of more than 63 characters");
}

/* Every prefix of a valid object is refused, and none reads past its end (run with a sanitizer). */
TEST(truncated)
{
    static const char text[] = "{\"a\\u00e9\\ud83d\\ude00\": [1.5e-3, true, null, "
                               "\"\xe2\x82\xac\"], \"b\": {\"c\": -0.25}}";
    size_t len = strlen(text);
    for (size_t n = 0; n <= len; n++) {
        char *exact = malloc(n + (n == 0));
        assert_non_null(exact);
        memcpy(exact, text, n);
        cJSON *value = NULL;
        enum gate_status status = json_parse("t", exact, n, GATE_IO, &value, NULL);
        assert_int_equal(status, n == len ? GATE_OK : GATE_IO);
        if (status == GATE_OK)
            cJSON_Delete(value);
        free(exact);
    }
}

TEST(many_keys)
{
    struct gate_error err = {0};
    cJSON *value = NULL;
    RELEASED_BY(buf_release) struct buf b = buf_of(1 << 24);
    buf_putc(&b, '{');
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "\"k%d\":{\"k\":0},", i);
    size_t at = b.len;
    buf_puts(&b, "\"k77777\":0}");
    assert_int_equal(json_parse("t", b.data, b.len, GATE_IO, &value, &err), GATE_IO);
    char expected[100];
    snprintf(expected, sizeof(expected), "t:1:%zu: key that this object has already", at + 1);
    assert_string_equal(err.message, expected);
}

TEST(too_many_values)
{
    RELEASED_BY(buf_release) struct buf b = buf_of(4 * JSON_MAX_VALUES);
    buf_putc(&b, '[');
    for (size_t i = 0; i + 2 < JSON_MAX_VALUES; i++)
        buf_puts(&b, "1,");
    size_t len = b.len;
    buf_puts(&b, "1]");
    cJSON_Delete(parse(b.data));
    char expected[100];
    b.len = len;
    buf_puts(&b, "1,1]");
    snprintf(expected, sizeof(expected), "t:1:%zu: too many values", len + 3);
    assert_refused(b.data, b.len, expected);
}

TEST(accepted)
{
    cJSON *v =
        parse(" {\"a\": [0, -0.5, 1E+2], \"b\": \"\\u20ac\\ud83d\\ude00\\/\", \"A\": {}} \n");
    assert_string_equal(json_string(v, "b", ""), "\xe2\x82\xac\xf0\x9f\x98\x80/");
    assert_null(json_string(v, "a", NULL));
    assert_string_equal(json_string(v, "none", "x"), "x");
    cJSON_Delete(v);
}

TEST(first_line)
{
    struct gate_error err = {0};
    assert_int_equal(json_check("f", 17, "{\"a\":}", 6, GATE_IO, &err), GATE_IO);
    assert_string_equal(err.message, "f:17:6: expected a value");
}

TEST(look_ups)
{
    cJSON *v = parse("{\"i\": 12, \"f\": 1.5, \"big\": 9007199254740992, \"t\": true}");
    assert_int_equal(json_integer(v, "i", -1), 12);
    assert_int_equal(json_integer(v, "f", -1), -1);
    assert_int_equal(json_integer(v, "big", -1), -1);
    assert_int_equal(json_integer(v, "t", -1), -1);
    assert_int_equal(json_integer(NULL, "i", -1), -1);
    cJSON_Delete(v);
}

TEST(numbers_round_trip)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-17, "-17"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {9007199254740991.0, "9007199254740991"},
        {1e300, "1e+300"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {11700.25, "11700.25"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf b;
        buf_init(&b, 100);
        json_write_number(cases[i].value, &b);
        assert_string_equal(b.data, cases[i].text);
        cJSON *back = parse(b.data);
        assert_true(back->valuedouble == cases[i].value);
        cJSON_Delete(back);
        buf_release(&b);
    }
    /* And a walk over the exponents with full mantissas. */
    uint64_t bits = 0x0008123456789abdull;
    for (int i = 0; i < 2000; i++, bits += 0x000ff98765432101ull) {
        double x;
        struct buf b;
        uint64_t positive = bits & INT64_MAX;
        memcpy(&x, &positive, sizeof(x));
        if (!isfinite(x))
            continue;
        buf_init(&b, 100);
        json_write_number(x, &b);
        assert_true(strtod(b.data, NULL) == x);
        buf_release(&b);
    }
}

/* The number in the fewest of 15 to 17 digits that read back, by printf(). */
static void put_by_printf(double value, char out[48])
{
    if (value == floor(value) && fabs(value) <= JSON_MAX_SAFE_INTEGER) {
        snprintf(out, 48, "%.0f", value);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 48, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

TEST(numbers_are_as_printf_writes_them)
{
    uint64_t r = 88172645463325252u;
    RELEASED_BY(buf_release) struct buf b = buf_of(100);
    for (int i = 0; i < 200000; i++) {
        char text[48];
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        double scale = pow(10, (double)(r >> 32) / 0x1p32 * 22);
        double x = i % 4 == 0   ? (double)(r % 2000000000000000u) / scale
                   : i % 4 == 1 ? (double)(r % 100000) / scale
                   : i % 4 == 2 ? nextafter(pow(10, (double)(r % 24) - 6), i % 8 ? 0 : INFINITY)
                                : (double)(r >> 11) / scale;
        x = i % 3 ? x : -x;
        put_by_printf(x, text);
        buf_clear(&b);
        json_write_number(x, &b);
        assert_string_equal(b.data, text);
    }
}

TEST(no_json_for_nan)
{
    cJSON *v = cJSON_CreateArray();
    cJSON_AddItemToArray(v, cJSON_CreateNumber(NAN));
    RELEASED_BY(buf_release) struct buf b = buf_of(100);
    json_write(v, false, &b);
    assert_true(b.failed);
    cJSON_Delete(v);
}

TEST(write)
{
    cJSON *v = parse("{\"a\":[1,\"x\\n\\u0001\\\"\"],\"b\":{},\"c\":[],\"d\":null}");
    RELEASED_BY(buf_release) struct buf b = buf_of(1000);
    json_write(v, false, &b);
    assert_string_equal(b.data, "{\"a\":[1,\"x\\n\\u0001\\\"\"],\"b\":{},\"c\":[],\"d\":null}\n");
    buf_clear(&b);
    json_write(v, true, &b);
    assert_string_equal(b.data,
                        "{\n  \"a\": [\n    1,\n    \"x\\n\\u0001\\\"\"\n  ],\n  \"b\": {},\n"
                        "  \"c\": [],\n  \"d\": null\n}\n");
    buf_clear(&b);
    json_escape("a\xff\xc3\xa9", &b);
    assert_string_equal(b.data, "a\xef\xbf\xbd\xc3\xa9");
    cJSON_Delete(v);
}

/* Also where no other byte before it is escaped. */
TEST(each_byte_is_read_as_it_was_written)
{
    RELEASED_BY(buf_release) struct buf b = buf_of(100);
    for (int byte = 1; byte < 0x80; byte++) {
        const char text[] = {'a', (char)byte, 'b', '\0'};
        buf_clear(&b);
        buf_putc(&b, '"');
        json_escape(text, &b);
        buf_putc(&b, '"');
        cJSON *back = parse(b.data);
        assert_string_equal(back->valuestring, text);
        assert_null(strchr(b.data, 0x7f));
        cJSON_Delete(back);
    }
}

TEST(control_characters_are_escaped)
{
    char text[] = "\"ab\"";
    for (text[2] = 1; text[2] < 0x20; text[2]++)
        assert_refused(text, 4, "t:1:3: control character in a string (it must be escaped)");
}

static void assert_located(const char *text, const char *pointer, bool of_key, unsigned line,
                           unsigned column)
{
    unsigned l = 0, c = 0;
    assert_true(json_locate(text, strlen(text), pointer, of_key, &l, &c));
    assert_int_equal(l, line);
    assert_int_equal(c, column);
}

TEST(locate)
{
    static const char text[] =
        "{\n  \"cases\": [\n    {\"m\": 1}, {\"\xe2\x82\xac\": 2, \"m\": -3}\n"
        "  ],\n  \"a/b~\": {\"\\u0078\": [ ]}\n}\n";
    unsigned line, column;
    assert_located(text, "", false, 1, 1);
    assert_located(text, "/cases", false, 2, 12);
    assert_located(text, "/cases", true, 2, 3);
    assert_located(text, "/cases/0", false, 3, 5);
    assert_located(text, "/cases/1/m", false, 3, 29);
    assert_located(text, "/cases/1/m", true, 3, 24);
    assert_located(text, "/a~1b~0/x", false, 5, 22);
    assert_false(json_locate(text, strlen(text), "/cases/2", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "/cases/-1", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "/cases/1x", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "/none", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "/a~1b~0/x/0", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "/cases/0/m/deeper", false, &line, &column));
    assert_false(json_locate(text, strlen(text), "cases", false, &line, &column));
    assert_located("{\"a\": 1, \"b\": [2], \"a\": 3}", "/a", true, 1, 20); /* the second one */
    assert_located("{\"b\": {\"a\": 1}, \"\\u0061\": [2]}", "/a/0", false, 1, 28);
}
