/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: looking things up in a tree, and writing one; see json.h. */
#include "gate/base/json.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "gate/base/utf8.h"

const cJSON *json_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *json_string(const cJSON *object, const char *key, const char *otherwise)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(value) && value->valuestring ? value->valuestring : otherwise;
}

double json_number(const cJSON *object, const char *key, double otherwise)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : otherwise;
}

int64_t json_integer(const cJSON *object, const char *key, int64_t otherwise)
{
    double value = json_number(object, key, NAN);
    if (!(fabs(value) <= JSON_MAX_SAFE_INTEGER) || value != floor(value))
        return otherwise;
    return (int64_t)value;
}

bool json_bool(const cJSON *object, const char *key, bool otherwise)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsBool(value) ? cJSON_IsTrue(value) : otherwise;
}

/* Not 0: one of these eight bytes may need an escape, or is part of a longer character. */
static uint64_t special_bytes(uint64_t x)
{
    const uint64_t each = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = x ^ (each * '"'), backslash = x ^ (each * '\\'), delete = x ^ (each * 0x7f);
    return (x | (x - each * 0x20) | (quote - each) | (backslash - each) | (delete - each)) & high;
}

size_t json_plain_length(const char *s, size_t n)
{
    uint64_t word, special;
    for (size_t i = 0; i + sizeof(word) <= n; i += sizeof(word)) {
        memcpy(&word, s + i, sizeof(word));
        special = special_bytes(le64toh(word));
        if (special) /* whose lowest bit is of the first one */
            return i + (size_t)__builtin_ctzll(special) / 8;
    }
    return n - n % sizeof(word);
}

bool json_is_plain(const char *s, size_t n)
{
    const size_t plain = json_plain_length(s, n);
    uint64_t word = 0;
    memset(&word, 'x', sizeof(word));
    if (n - plain >= sizeof(word))
        return false;
    memcpy(&word, s + plain, n - plain);
    return special_bytes(word) == 0;
}

void json_escape(const char *s, struct buf *out)
{
    const size_t len = strlen(s);
    uint32_t code;
    if (json_is_plain(s, len)) {
        buf_append(out, s, len);
        return;
    }
    for (size_t n; (n = utf8_next(s, &code)); s += n)
        if (code == UTF8_BAD)
            buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (code == '"' || code == '\\')
            buf_printf(out, "\\%c", (char)code);
        else if (code == '\n')
            buf_puts(out, "\\n");
        else if (code == '\t')
            buf_puts(out, "\\t");
        else if (code < 0x20 || code == 0x7f)
            buf_printf(out, "\\u%04x", (unsigned)code);
        else
            buf_append(out, s, n);
}

static void write_string(const char *s, struct buf *out)
{
    buf_putc(out, '"');
    json_escape(s, out);
    buf_putc(out, '"');
}

static void new_line(unsigned level, struct buf *out)
{
    buf_printf(out, "\n%*s", (int)(2 * level), "");
}

static void write_value(const cJSON *value, bool indented, unsigned level, struct buf *out)
{
    if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
        bool object = cJSON_IsObject(value);
        const cJSON *item;
        buf_putc(out, object ? '{' : '[');
        cJSON_ArrayForEach (item, value) {
            if (indented)
                new_line(level + 1, out);
            if (object) {
                write_string(item->string, out);
                buf_puts(out, indented ? ": " : ":");
            }
            write_value(item, indented, level + 1, out);
            if (item->next)
                buf_putc(out, ',');
        }
        if (indented && value->child)
            new_line(level, out);
        buf_putc(out, object ? '}' : ']');
    } else if (cJSON_IsString(value)) {
        write_string(value->valuestring, out);
    } else if (cJSON_IsNumber(value)) {
        json_write_number(value->valuedouble, out);
    } else if (cJSON_IsBool(value)) {
        buf_puts(out, cJSON_IsTrue(value) ? "true" : "false");
    } else if (cJSON_IsNull(value)) {
        buf_puts(out, "null");
    } else {
        out->failed = true;
    }
}

void json_write(const cJSON *value, bool indented, struct buf *out)
{
    write_value(value, indented, 0, out);
    buf_putc(out, '\n');
}
