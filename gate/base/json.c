/*
 * json.c: see json.h.
 *
 * cJSON is lenient (trailing bytes, raw control characters, duplicate keys, numbers cut at 63
 * characters, a NUL that ends a string early) and reports no position. So a scanner of our own
 * decides what is JSON and where it is broken, and cJSON only builds the tree of a text that the
 * scanner has accepted. No program of this project calls setlocale(), on which strtod() and
 * printf() depend.
 */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_NUMBER 63 /* characters; cJSON cuts longer ones */

/* A key of an object that is still open, for the search for duplicates. */
struct key {
    size_t name; /* offset in scan.names */
    size_t at;   /* offset in the text */
};

struct scan {
    const char *text;
    size_t len;
    size_t at;
    unsigned depth;
    struct buf names; /* decoded keys of the open objects, each with its NUL */
    struct key *keys;
    size_t n_keys, cap_keys;
    const char *fault; /* NULL, or what is wrong at fault_at */
    size_t fault_at;
    bool out_of_memory;
};

static bool scan_value(struct scan *s);

static bool fault(struct scan *s, size_t at, const char *what)
{
    s->fault = what;
    s->fault_at = at;
    return false;
}

static bool no_memory(struct scan *s)
{
    s->out_of_memory = true;
    return false;
}

static void scan_start(struct scan *s, const char *text, size_t len)
{
    *s = (struct scan){.text = text, .len = len};
    buf_init(&s->names, len + 1); /* a decoded key and its NUL are shorter than the quoted key */
}

static void scan_release(struct scan *s)
{
    buf_release(&s->names);
    free(s->keys);
}

/* The byte at the cursor, -1 at the end. */
static int peek(const struct scan *s)
{
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static bool take(struct scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scan *s)
{
    for (;;) {
        int c = peek(s);
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
        s->at++;
    }
}

/* What to say of an unexpected byte: the end and bytes that no text holds have their own words. */
static bool unexpected(struct scan *s, const char *expected)
{
    int c = peek(s);
    if (c < 0)
        return fault(s, s->at, "the text ends too early");
    if (c == 0)
        return fault(s, s->at, "NUL byte");
    return fault(s, s->at, expected);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct scan *s)
{
    if (!is_digit(peek(s)))
        return unexpected(s, "malformed number");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(struct scan *s)
{
    size_t start = s->at;
    take(s, '-');
    if (take(s, '0')) {
        if (is_digit(peek(s)))
            return fault(s, start, "a number must not begin with 0");
    } else if (!skip_digits(s)) {
        return false;
    }
    if (take(s, '.') && !skip_digits(s))
        return false;
    bool scaled = peek(s) == 'e' || peek(s) == 'E';
    if (scaled) {
        s->at++;
        if (!take(s, '+'))
            take(s, '-');
        if (!skip_digits(s))
            return false;
    }
    if (s->at - start > MAX_NUMBER)
        return fault(s, start, "number of more than 63 characters");

    if (!scaled)
        return true; /* no 63 digits are out of range */
    char number[MAX_NUMBER + 1];
    memcpy(number, s->text + start, s->at - start);
    number[s->at - start] = '\0';
    if (!isfinite(strtod(number, NULL)))
        return fault(s, start, "number out of range");
    return true;
}

static bool scan_hex4(struct scan *s, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(s);
        uint32_t digit;
        if (is_digit(c))
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return unexpected(s, "\\u needs four hexadecimal digits");
        *code = *code << 4 | digit;
        s->at++;
    }
    return true;
}

/* The cursor is behind "\u". */
static bool scan_unicode_escape(struct scan *s, uint32_t *code)
{
    size_t start = s->at - 2;
    uint32_t low;
    if (!scan_hex4(s, code))
        return false;
    if (*code == 0)
        return fault(s, start, "\\u0000 in a string");
    if (*code < 0xd800 || *code > 0xdfff)
        return true;
    if (*code >= 0xdc00 || !take(s, '\\') || !take(s, 'u'))
        return fault(s, start, "half of a surrogate pair");
    if (!scan_hex4(s, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return fault(s, start, "half of a surrogate pair");
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static bool scan_escape(struct scan *s, uint32_t *code)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    s->at++;
    int c = peek(s);
    if (c == 'u') {
        s->at++;
        return scan_unicode_escape(s, code);
    }
    const char *name = c > 0 ? strchr(names, c) : NULL;
    if (!name)
        return unexpected(s, "unknown escape in a string");
    *code = (unsigned char)values[name - names];
    s->at++;
    return true;
}

/* Moves the cursor over ASCII that stands for itself, and appends it. */
static void scan_plain(struct scan *s, struct buf *decoded)
{
    size_t start = s->at;
    while (s->at < s->len) {
        unsigned char c = (unsigned char)s->text[s->at];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
            break;
        s->at++;
    }
    if (decoded)
        buf_append(decoded, s->text + start, s->at - start);
}

/* Reads the string at the cursor and appends its characters to `decoded`, which may be NULL. */
static bool scan_string(struct scan *s, struct buf *decoded)
{
    size_t start = s->at++;
    for (;;) {
        scan_plain(s, decoded);
        int c = peek(s);
        if (c == '"')
            break;
        if (c < 0)
            return fault(s, start, "string without an end");
        if (c < 0x20)
            return unexpected(s, "control character in a string (it must be escaped)");
        uint32_t code;
        if (c == '\\') {
            if (!scan_escape(s, &code))
                return false;
        } else {
            size_t n = utf8_decode(s->text + s->at, s->len - s->at, &code);
            if (n == 0)
                return fault(s, s->at, "invalid UTF-8");
            s->at += n;
        }
        if (decoded) {
            char bytes[4];
            buf_append(decoded, bytes, utf8_encode(code, bytes));
        }
    }
    s->at++;
    return decoded && decoded->failed ? no_memory(s) : true;
}

static bool scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return fault(s, s->at, "expected a value");
    s->at += n;
    return true;
}

static bool remember_key(struct scan *s, size_t name, size_t at)
{
    if (s->n_keys == s->cap_keys) {
        size_t cap = s->cap_keys ? 2 * s->cap_keys : 32;
        struct key *keys = realloc(s->keys, cap * sizeof(*keys));
        if (!keys)
            return no_memory(s);
        s->keys = keys;
        s->cap_keys = cap;
    }
    s->keys[s->n_keys++] = (struct key){.name = name, .at = at};
    return true;
}

static int compare_keys(const void *a, const void *b, void *names)
{
    const struct key *x = a, *y = b;
    int order = strcmp((const char *)names + x->name, (const char *)names + y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Refuses duplicates among the keys from `first` on, and forgets these keys. */
static bool close_object(struct scan *s, size_t first)
{
    size_t n = s->n_keys - first;
    if (n == 0)
        return true;
    struct key *keys = s->keys + first;
    size_t names_end = keys[0].name;
    size_t duplicate = SIZE_MAX;

    if (n > 1)
        qsort_r(keys, n, sizeof(*keys), compare_keys, s->names.data);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].name < names_end)
            names_end = keys[i].name;
        if (i > 0 && keys[i].at < duplicate &&
            strcmp(s->names.data + keys[i - 1].name, s->names.data + keys[i].name) == 0)
            duplicate = keys[i].at;
    }
    if (duplicate != SIZE_MAX)
        return fault(s, duplicate, "key that this object has already");
    s->n_keys = first;
    s->names.len = names_end;
    return true;
}

static bool scan_member(struct scan *s)
{
    size_t at = s->at, name = s->names.len;
    if (peek(s) != '"')
        return unexpected(s, "expected a key in double quotes");
    if (!scan_string(s, &s->names))
        return false;
    buf_append(&s->names, "", 1);
    if (s->names.failed)
        return no_memory(s);
    if (!remember_key(s, name, at))
        return false;
    skip_space(s);
    if (!take(s, ':'))
        return unexpected(s, "expected ':' after a key");
    return scan_value(s);
}

static bool scan_object(struct scan *s)
{
    size_t first = s->n_keys;
    s->at++;
    skip_space(s);
    if (take(s, '}'))
        return true;
    for (;;) {
        skip_space(s);
        if (!scan_member(s))
            return false;
        skip_space(s);
        if (take(s, '}'))
            return close_object(s, first);
        if (!take(s, ','))
            return unexpected(s, "expected ',' or '}'");
    }
}

static bool scan_array(struct scan *s)
{
    s->at++;
    skip_space(s);
    if (take(s, ']'))
        return true;
    for (;;) {
        if (!scan_value(s))
            return false;
        skip_space(s);
        if (take(s, ']'))
            return true;
        if (!take(s, ','))
            return unexpected(s, "expected ',' or ']'");
    }
}

static bool scan_nested(struct scan *s, bool object)
{
    if (s->depth == JSON_MAX_DEPTH)
        return fault(s, s->at, "nested too deeply");
    s->depth++;
    bool good = object ? scan_object(s) : scan_array(s);
    s->depth--;
    return good;
}

/* Reads one value, with the space before it. */
static bool scan_value(struct scan *s)
{
    skip_space(s);
    int c = peek(s);
    switch (c) {
    case '{':
    case '[':
        return scan_nested(s, c == '{');
    case '"':
        return scan_string(s, NULL);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        if (c == '-' || is_digit(c))
            return scan_number(s);
        return unexpected(s, "expected a value");
    }
}

static bool scan_document(struct scan *s)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (s->len >= 3 && memcmp(s->text, mark, 3) == 0)
        return fault(s, 0, "byte order mark (save the file without it)");
    skip_space(s);
    if (s->at == s->len)
        return fault(s, 0, "the text is empty");
    if (!scan_value(s))
        return false;
    skip_space(s);
    if (s->at < s->len)
        return unexpected(s, "more text after the end of the value");
    return true;
}

/* 1-based; the column counts characters. */
static void line_and_column(const char *text, size_t at, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

enum gate_status json_parse_at(const char *name, unsigned first_line, const char *text, size_t len,
                               enum gate_status status, cJSON **out, struct gate_error *err)
{
    struct scan s;
    scan_start(&s, text, len);
    bool good = scan_document(&s);
    scan_release(&s);
    if (!good && s.fault) {
        unsigned line, column;
        line_and_column(text, s.fault_at, &line, &column);
        return gate_fail(err, status, "%s:%u:%u: %s", name, first_line + line - 1, column, s.fault);
    }
    *out = good ? cJSON_ParseWithLength(text, len) : NULL;
    if (!*out)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
    return GATE_OK;
}

enum gate_status json_parse(const char *name, const char *text, size_t len, enum gate_status status,
                            cJSON **out, struct gate_error *err)
{
    return json_parse_at(name, 1, text, len, status, out, err);
}

/* Copies the first token of `pointer` to `token`, unescaped, and returns what follows it. */
static const char *first_token(const char *pointer, struct buf *token)
{
    const char *p = pointer + 1;
    buf_clear(token);
    for (; *p && *p != '/'; p++) {
        if (*p == '~' && (p[1] == '0' || p[1] == '1'))
            buf_putc(token, *++p == '0' ? '~' : '/');
        else
            buf_putc(token, *p);
    }
    return p;
}

/* Moves the cursor, on an object, to the value of `token`; *key_at is where its key is. */
static bool enter_member(struct scan *s, const char *token, size_t *key_at)
{
    struct buf key;
    bool found = false;

    buf_init(&key, s->len);
    s->at++;
    for (;;) {
        skip_space(s);
        *key_at = s->at;
        buf_clear(&key);
        if (peek(s) != '"' || !scan_string(s, &key))
            break;
        skip_space(s);
        if (!take(s, ':'))
            break;
        found = strcmp(key.data, token) == 0;
        if (found || !scan_value(s))
            break;
        skip_space(s);
        if (!take(s, ','))
            break;
    }
    buf_release(&key);
    return found;
}

/* The same for an array, where `token` is a decimal index. */
static bool enter_element(struct scan *s, const char *token)
{
    char *end;
    if (!is_digit((unsigned char)token[0]))
        return false;
    unsigned long index = strtoul(token, &end, 10);
    if (*end)
        return false;
    s->at++;
    for (unsigned long i = 0; i < index; i++) {
        if (!scan_value(s))
            return false;
        skip_space(s);
        if (!take(s, ','))
            return false;
    }
    skip_space(s);
    return peek(s) != ']';
}

bool json_locate(const char *text, size_t len, const char *pointer, bool of_key, unsigned *line,
                 unsigned *column)
{
    struct scan s;
    struct buf token;
    size_t key_at = 0;
    bool found = true, member = false;

    scan_start(&s, text, len);
    buf_init(&token, strlen(pointer) + 1);
    skip_space(&s);
    while (found && *pointer == '/') {
        pointer = first_token(pointer, &token);
        member = peek(&s) == '{';
        if (token.failed)
            found = false;
        else if (member)
            found = enter_member(&s, token.data, &key_at);
        else
            found = peek(&s) == '[' && enter_element(&s, token.data);
        skip_space(&s);
    }
    found = found && *pointer == '\0' && s.at < len;
    if (found)
        line_and_column(text, of_key && member ? key_at : s.at, line, column);
    buf_release(&token);
    scan_release(&s);
    return found;
}

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

void json_write_number(double value, struct buf *out)
{
    char text[48];
    if (!isfinite(value)) {
        out->failed = true;
        return;
    }
    if (value == floor(value) && fabs(value) <= JSON_MAX_SAFE_INTEGER) {
        buf_printf(out, "%.0f", value);
        return;
    }
    /* Any decimal of up to 15 digits survives a normal double, and %g drops final zeros, so fewer
     * digits need no try. Subnormal numbers hold less. */
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_puts(out, text);
}

/* Not 0: one of these eight bytes may need an escape, or is part of a longer character. */
static uint64_t special_bytes(uint64_t x)
{
    const uint64_t each = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = x ^ (each * '"'), backslash = x ^ (each * '\\'), delete = x ^ (each * 0x7f);
    return (x | (x - each * 0x20) | (quote - each) | (backslash - each) | (delete - each)) & high;
}

bool json_is_plain(const char *s, size_t n)
{
    uint64_t word = 0, special = 0;
    size_t i = 0;
    for (; i + sizeof(word) <= n; i += sizeof(word)) {
        memcpy(&word, s + i, sizeof(word));
        special |= special_bytes(word);
    }
    memset(&word, 'x', sizeof(word));
    memcpy(&word, s + i, n - i);
    return (special | special_bytes(word)) == 0;
}

void json_escape(const char *s, struct buf *out)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    size_t left = strlen(s);
    if (json_is_plain(s, left)) {
        buf_append(out, s, left);
        return;
    }
    while (left > 0) {
        uint32_t code;
        size_t n = utf8_decode(s, left, &code);
        if (n == 0)
            buf_puts(out, replacement);
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
        n = n ? n : 1;
        s += n;
        left -= n;
    }
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
