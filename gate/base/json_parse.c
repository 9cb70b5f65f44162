/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_parse.c: what is JSON, and where a text is broken; see json.h.
 *
 * cJSON makes the tree. It is lenient (raw control characters, duplicate keys, numbers like 01, a
 * NUL that ends a string early, any bytes for UTF-8) and tells no position, so the text is checked
 * first. No program of this project calls setlocale(), on which strtod() and printf() depend.
 */
#include "gate/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"

/* ---- the text ---- */

_Static_assert(JSON_MAX_DEPTH < 64, "a bit for each open value");

struct json_scan json_scan_of(const char *text, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf";
    bool marked = len >= 3 && memcmp(text, mark, 3) == 0;
    return (struct json_scan){
        .text = text,
        .len = len,
        .stop_key = SIZE_MAX,
        .fault = marked ? "byte order mark (save the file without it)" : NULL,
    };
}

static bool fault(struct json_scan *s, size_t at, const char *what)
{
    s->fault = what;
    s->fault_at = at;
    return false;
}

/* The byte at the cursor, -1 at the end. */
static int peek(const struct json_scan *s)
{
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static bool take(struct json_scan *s, char c)
{
    bool there = peek(s) == c;
    s->at += there;
    return there;
}

/* What to say of an unexpected byte: the end and bytes that no text holds have their own words. */
static bool unexpected(struct json_scan *s, const char *expected)
{
    int c = peek(s);
    return fault(s, s->at, c < 0 ? "the text ends too early" : c ? expected : "NUL byte");
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct json_scan *s)
{
    if (!is_digit(peek(s)))
        return unexpected(s, "malformed number");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool check_number(struct json_scan *s)
{
    size_t start = s->at;
    take(s, '-');
    bool zero = take(s, '0');
    if (zero && is_digit(peek(s)))
        return fault(s, start, "a number must not begin with 0");
    if (!zero && !skip_digits(s))
        return false;
    if (take(s, '.') && !skip_digits(s))
        return false;
    bool scaled = take(s, 'e') || take(s, 'E');
    if (scaled && !take(s, '+'))
        take(s, '-');
    if (scaled && !skip_digits(s))
        return false;
    size_t n = s->at - start;
    if (n > JSON_MAX_NUMBER)
        return fault(s, start, "number of more than 63 characters");
    return (!scaled || isfinite(json_read_number(s->text + start, n))) ||
           fault(s, start, "number out of range");
}

static bool read_hex4(struct json_scan *s, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        int c = peek(s);
        const char *digit = c > 0 ? strchr(digits, c) : NULL;
        if (!digit)
            return unexpected(s, "\\u needs four hexadecimal digits");
        *code = *code << 4 | (unsigned)((digit - digits) % 16);
    }
    return true;
}

/* The cursor is behind the backslash. */
static bool check_escape(struct json_scan *s)
{
    size_t start = s->at - 1;
    unsigned high, low;
    int c = peek(s);
    if (c <= 0 || !strchr("\"\\/bfnrtu", c))
        return unexpected(s, "unknown escape in a string");
    s->at++;
    if (c != 'u')
        return true;
    if (!read_hex4(s, &high))
        return false;
    if (high == 0)
        return fault(s, start, "\\u0000 in a string");
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high >= 0xdc00 || !take(s, '\\') || !take(s, 'u'))
        return fault(s, start, "half of a surrogate pair");
    if (!read_hex4(s, &low))
        return false;
    return (low >= 0xdc00 && low <= 0xdfff) || fault(s, start, "half of a surrogate pair");
}

static bool check_string(struct json_scan *s)
{
    size_t start = s->at++;
    s->escaped = false;
    for (;;) {
        uint32_t code;
        int c = peek(s);
        while (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            s->at++;
            c = peek(s);
        }
        if (c < 0)
            return fault(s, start, "string without an end");
        if (c < 0x20)
            return unexpected(s, "control character in a string (it must be escaped)");
        size_t n = c < 0x80 ? 1 : utf8_decode(s->text + s->at, s->len - s->at, &code);
        if (n == 0)
            return fault(s, s->at, "invalid UTF-8");
        s->at += n;
        if (c == '"')
            return true;
        s->escaped |= c == '\\';
        if (c == '\\' && !check_escape(s))
            return false;
    }
}

static bool check_word(struct json_scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return fault(s, s->at, "expected a value");
    s->at += n;
    return true;
}

static bool check_value(struct json_scan *s)
{
    int c = peek(s);
    if (s->n_values++ == JSON_MAX_VALUES)
        return fault(s, s->at, "too many values");
    if (c == '{' || c == '[') {
        if (s->depth == JSON_MAX_DEPTH)
            return fault(s, s->at, "nested too deeply");
        uint64_t bit = (uint64_t)1 << ++s->depth;
        s->objects = c == '{' ? s->objects | bit : s->objects & ~bit;
        s->state = c == '{' ? JSON_KEY_OR_END : JSON_VALUE_OR_END;
        s->at++;
        return true;
    }
    s->state = s->depth ? JSON_COMMA_OR_END : JSON_END;
    return c == '"'                  ? check_string(s)
           : c == 't'                ? check_word(s, "true")
           : c == 'f'                ? check_word(s, "false")
           : c == 'n'                ? check_word(s, "null")
           : c == '-' || is_digit(c) ? check_number(s)
                                     : unexpected(s, "expected a value");
}

static bool check_key(struct json_scan *s)
{
    if (peek(s) != '"')
        return unexpected(s, "expected a key in double quotes");
    if (s->n_keys++ == s->stop_key)
        return fault(s, s->at, "key that this object has already");
    s->state = JSON_COLON;
    return check_string(s);
}

static bool close_value(struct json_scan *s)
{
    s->at++;
    s->state = --s->depth ? JSON_COMMA_OR_END : JSON_END;
    return true;
}

static bool is_object(const struct json_scan *s)
{
    return s->objects >> s->depth & 1;
}

static bool check_token(struct json_scan *s)
{
    bool object = is_object(s);
    bool ends = peek(s) == (object ? '}' : ']');
    switch (s->state) {
    case JSON_KEY_OR_END:
        return ends ? close_value(s) : check_key(s);
    case JSON_KEY:
        return check_key(s);
    case JSON_COMMA_OR_END:
        return ends ? close_value(s)
                    : unexpected(s, object ? "expected ',' or '}'" : "expected ',' or ']'");
    case JSON_VALUE_OR_END:
        return ends ? close_value(s) : check_value(s);
    case JSON_VALUE:
        return s->at == s->len && !s->depth ? fault(s, 0, "the text is empty") : check_value(s);
    default:
        return unexpected(s, "more text after the end of the value");
    }
}

static void skip_space(struct json_scan *s)
{
    for (int c = peek(s); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek(s))
        s->at++;
}

bool json_scan_next(struct json_scan *s)
{
    if (s->fault) /* its place is kept */
        return false;
    skip_space(s);
    if (s->state == JSON_COLON) {
        if (!take(s, ':'))
            return unexpected(s, "expected ':' after a key");
        s->state = JSON_VALUE;
    } else if (s->state == JSON_COMMA_OR_END && take(s, ',')) {
        s->state = is_object(s) ? JSON_KEY : JSON_VALUE;
    }
    skip_space(s);
    s->start = s->at;
    return !(s->state == JSON_END && s->at == s->len) && check_token(s);
}

static bool check_text(struct json_scan *s)
{
    while (json_scan_next(s))
        ;
    return !s->fault;
}

/* ---- the tree ---- */

/* A key, and which one of the text it is. */
struct key {
    const char *name;
    size_t place;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The place of the first key that its object has already; SIZE_MAX: none. `keys` has room for as
 * many as the value has; *n of them are met, in the order of the text. */
static size_t find_duplicate(const cJSON *value, struct key *keys, size_t *n)
{
    size_t first = SIZE_MAX, own = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, value) {
        struct key key = {item->string, *n};
        *n += cJSON_IsObject(value);
        size_t inside = find_duplicate(item, keys + own, n);
        first = inside < first ? inside : first;
        if (cJSON_IsObject(value))
            keys[own++] = key;
    }
    qsort(keys, own, sizeof *keys, compare_keys);
    for (size_t i = 1; i < own; i++)
        if (keys[i].place < first && !strcmp(keys[i - 1].name, keys[i].name))
            first = keys[i].place;
    return first;
}

/* False, with the fault, where memory is short or a key comes twice; `s` is behind the text. */
static bool check_keys(struct json_scan *s, const cJSON *value)
{
    struct key *keys = calloc(s->n_keys + 1, sizeof *keys);
    size_t n = 0, duplicate = keys ? find_duplicate(value, keys, &n) : 0;
    free(keys);
    if (!keys)
        return false;
    if (duplicate == SIZE_MAX)
        return true;
    *s = json_scan_of(s->text, s->len);
    s->stop_key = duplicate;
    return check_text(s);
}

void json_scan_place(const struct json_scan *s, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < s->fault_at; i++) {
        if (s->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)s->text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static enum gate_status fail(const char *name, unsigned first_line, const struct json_scan *s,
                             enum gate_status status, struct gate_error *err)
{
    unsigned line, column;
    json_scan_place(s, &line, &column);
    return gate_fail(err, status, "%s:%u:%u: %s", name, first_line + line - 1, column, s->fault);
}

enum gate_status json_check(const char *name, unsigned first_line, const char *text, size_t len,
                            enum gate_status status, struct gate_error *err)
{
    struct json_scan s = json_scan_of(text, len);
    return check_text(&s) ? GATE_OK : fail(name, first_line, &s, status, err);
}

enum gate_status json_parse(const char *name, const char *text, size_t len, enum gate_status status,
                            cJSON **out, struct gate_error *err)
{
    struct json_scan s = json_scan_of(text, len);
    cJSON *value = check_text(&s) ? cJSON_ParseWithLength(text, len) : NULL;
    if (value && check_keys(&s, value)) {
        *out = value;
        return GATE_OK;
    }
    cJSON_Delete(value);
    return s.fault ? fail(name, 1, &s, status, err)
                   : gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
}

/* ---- places ---- */

/* Is the key, or the element number `index`, that the cursor is behind, what the first token of
 * the pointer names? */
static bool is_named(const struct json_scan *s, bool is_key, size_t index, const char *pointer)
{
    const char *token = s->text + s->start, *name = token + 1;
    char number[24];
    size_t n = s->at - s->start - 2;
    cJSON *decoded = is_key && s->escaped ? cJSON_ParseWithLength(token, n + 2) : NULL;
    if (decoded) {
        name = decoded->valuestring;
        n = strlen(name);
    } else if (!is_key) {
        name = number;
        n = (size_t)snprintf(number, sizeof number, "%zu", index);
    }
    bool same = true;
    for (pointer++; n && same; name++, n--, pointer++) {
        char c = *pointer == '~'   ? *++pointer == '0' ? '~' : '/'
                 : *pointer == '/' ? '\0'
                                   : *pointer;
        same = c && c == *name;
    }
    cJSON_Delete(decoded);
    return same && (!*pointer || *pointer == '/');
}

bool json_locate(const char *text, size_t len, const char *pointer, bool of_key, unsigned *line,
                 unsigned *column)
{
    struct json_scan s = json_scan_of(text, len);
    if (!json_scan_next(&s))
        return false;
    size_t place = s.start;
    for (; *pointer == '/'; pointer += 1 + strcspn(pointer + 1, "/")) {
        const bool object = text[s.start] == '{';
        const unsigned depth = s.depth;
        struct json_scan found = {.text = NULL};
        if (!object && text[s.start] != '[')
            return false;
        for (size_t i = 0; json_scan_next(&s) && s.depth >= depth; i++) {
            const size_t key = s.start;
            const bool named = is_named(&s, object, i, pointer);
            if (object)
                json_scan_next(&s);
            if (named) {
                found = s;
                place = object && of_key ? key : s.start;
            }
            while (s.depth > depth && json_scan_next(&s))
                continue; /* what is in it */
        }
        if (!found.text)
            return false;
        s = found;
    }
    s.fault_at = place;
    json_scan_place(&s, line, column);
    return !*pointer;
}
