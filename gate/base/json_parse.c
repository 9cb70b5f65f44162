/*
 * json_parse.c: what is JSON, and where a text is broken; see json.h.
 *
 * cJSON's parser is lenient (trailing bytes, raw control characters, duplicate keys, numbers cut at
 * 63 characters, a NUL that ends a string early) and reports no position. So this scanner reads the
 * text, and makes cJSON's tree of it as it goes (json_tree.h). No program of this project calls
 * setlocale(), on which strtod() and printf() depend.
 */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_keys.h"
#include "base/json_tree.h"
#include "base/utf8.h"

#define MAX_NUMBER 63 /* characters */

struct scan {
    const char *text;
    size_t len;
    size_t at;
    unsigned depth;
    struct json_keys keys;
    struct buf decoded;                   /* the last string that is a value */
    struct json_pool *pool;               /* of the tree; NULL: on the heap */
    const struct json_elements *elements; /* to be handed over, or NULL */
    const cJSON *root, *array;            /* that they are in, once it is met */
    struct json_pool element;             /* of the tree of one of them */
    const char *fault;                    /* NULL, or what is wrong at fault_at */
    size_t fault_at;
    bool out_of_memory;
};

/* Reads one value, with the space before it, into a new node; NULL: it is only looked at. */
static bool scan_value(struct scan *s, cJSON *into);

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
    /* What is decoded is shorter than it was in its quotes, its NUL included. */
    json_keys_init(&s->keys, len + 1);
    buf_init(&s->decoded, len + 1);
}

static void scan_release(struct scan *s)
{
    json_keys_release(&s->keys);
    buf_release(&s->decoded);
    json_pool_release(&s->element);
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

static bool scan_number(struct scan *s, cJSON *into)
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

    if (!into && !scaled)
        return true; /* no 63 digits are out of range */
    double value = json_number_value(s->text + start, s->at - start);
    if (!isfinite(value))
        return fault(s, start, "number out of range");
    if (into)
        json_set_number(into, value);
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

static bool scan_text(struct scan *s, cJSON *into)
{
    buf_clear(&s->decoded);
    if (!scan_string(s, into ? &s->decoded : NULL))
        return false;
    if (!into)
        return true;
    into->type = cJSON_String;
    into->valuestring = json_keep(s->pool, s->decoded.data, s->decoded.len);
    return into->valuestring ? true : no_memory(s);
}

static bool scan_word(struct scan *s, const char *word, int type, cJSON *into)
{
    size_t n = strlen(word);
    if (s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return fault(s, s->at, "expected a value");
    s->at += n;
    if (into)
        json_set_word(into, type);
    return true;
}

/* A node behind the others of `parent`; *item is NULL where there is to be no tree. */
static bool add_item(struct scan *s, cJSON *parent, cJSON **item)
{
    *item = parent ? json_add_node(s->pool, parent) : NULL;
    return !parent || *item ? true : no_memory(s);
}

static bool scan_member(struct scan *s, cJSON *object)
{
    size_t at = s->at, start = s->keys.names.len;
    cJSON *item;
    if (peek(s) != '"')
        return unexpected(s, "expected a key in double quotes");
    if (!scan_string(s, &s->keys.names))
        return false;
    if (!json_keys_add(&s->keys, start, at) || !add_item(s, object, &item))
        return no_memory(s);
    if (item && !(item->string = json_keep_key(s->pool, json_keys_last(&s->keys))))
        return no_memory(s);
    if (s->depth == 1 && s->elements && strcmp(item->string, s->elements->key) == 0)
        s->array = item;
    skip_space(s);
    if (!take(s, ':'))
        return unexpected(s, "expected ':' after a key");
    return scan_value(s, item);
}

/* Refuses duplicates among the keys from `first` on, and forgets these keys. */
static bool close_object(struct scan *s, size_t first)
{
    size_t duplicate = json_keys_close(&s->keys, first);
    if (duplicate != SIZE_MAX)
        return fault(s, duplicate, "key that this object has already");
    return true;
}

static bool scan_object(struct scan *s, cJSON *into)
{
    size_t first = s->keys.n;
    s->at++;
    skip_space(s);
    if (take(s, '}'))
        return true;
    for (;;) {
        skip_space(s);
        if (!scan_member(s, into))
            return false;
        skip_space(s);
        if (take(s, '}'))
            return close_object(s, first);
        if (!take(s, ','))
            return unexpected(s, "expected ',' or '}'");
    }
}

/* One that is handed over: the next one uses its memory again. */
static bool scan_element(struct scan *s)
{
    struct json_pool *pool = s->pool;
    json_pool_clear(&s->element);
    cJSON *element = json_new_node(&s->element);
    if (!element)
        return no_memory(s);
    s->pool = &s->element;
    bool good = scan_value(s, element);
    s->pool = pool;
    if (good)
        s->elements->take(s->elements->context, s->root, element);
    return good;
}

static bool are_taken(const struct scan *s, const cJSON *array)
{
    return array && array == s->array && json_member(s->root, s->elements->after);
}

static bool scan_item(struct scan *s, cJSON *array)
{
    cJSON *item;
    return add_item(s, array, &item) && scan_value(s, item);
}

static bool scan_array(struct scan *s, cJSON *into)
{
    bool taken = are_taken(s, into);
    s->at++;
    skip_space(s);
    if (take(s, ']'))
        return true;
    for (;;) {
        if (!(taken ? scan_element(s) : scan_item(s, into)))
            return false;
        skip_space(s);
        if (take(s, ']'))
            return true;
        if (!take(s, ','))
            return unexpected(s, "expected ',' or ']'");
    }
}

static bool scan_nested(struct scan *s, bool object, cJSON *into)
{
    if (s->depth == JSON_MAX_DEPTH)
        return fault(s, s->at, "nested too deeply");
    s->depth++;
    if (into)
        into->type = object ? cJSON_Object : cJSON_Array;
    bool good = object ? scan_object(s, into) : scan_array(s, into);
    s->depth--;
    return good;
}

static bool scan_value(struct scan *s, cJSON *into)
{
    skip_space(s);
    int c = peek(s);
    switch (c) {
    case '{':
    case '[':
        return scan_nested(s, c == '{', into);
    case '"':
        return scan_text(s, into);
    case 't':
        return scan_word(s, "true", cJSON_True, into);
    case 'f':
        return scan_word(s, "false", cJSON_False, into);
    case 'n':
        return scan_word(s, "null", cJSON_NULL, into);
    default:
        if (c == '-' || is_digit(c))
            return scan_number(s, into);
        return unexpected(s, "expected a value");
    }
}

static bool scan_document(struct scan *s, cJSON *into)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (s->len >= 3 && memcmp(s->text, mark, 3) == 0)
        return fault(s, 0, "byte order mark (save the file without it)");
    skip_space(s);
    if (s->at == s->len)
        return fault(s, 0, "the text is empty");
    if (!scan_value(s, into))
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

static enum gate_status tell(const struct scan *s, const char *name, unsigned first_line,
                             enum gate_status status, struct gate_error *err)
{
    unsigned line, column;
    if (!s->fault)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
    line_and_column(s->text, s->fault_at, &line, &column);
    return gate_fail(err, status, "%s:%u:%u: %s", name, first_line + line - 1, column, s->fault);
}

enum gate_status json_parse_at(const char *name, unsigned first_line, const char *text, size_t len,
                               enum gate_status status, cJSON **out, struct gate_error *err)
{
    cJSON *root = json_new_node(NULL);
    struct scan s;
    if (!root)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
    scan_start(&s, text, len);
    bool good = scan_document(&s, root);
    scan_release(&s);
    if (!good) {
        cJSON_Delete(root);
        return tell(&s, name, first_line, status, err);
    }
    *out = root;
    return GATE_OK;
}

enum gate_status json_parse(const char *name, const char *text, size_t len, enum gate_status status,
                            cJSON **out, struct gate_error *err)
{
    return json_parse_at(name, 1, text, len, status, out, err);
}

enum gate_status json_parse_elements(const char *name, const char *text, size_t len,
                                     enum gate_status status, struct json_pool *pool,
                                     const struct json_elements *elements, const cJSON **out,
                                     struct gate_error *err)
{
    cJSON *root = json_new_node(pool);
    struct scan s;
    if (!root)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
    scan_start(&s, text, len);
    s.pool = pool;
    s.elements = elements;
    s.root = root;
    s.element.max_bytes = pool->max_bytes;
    bool good = scan_document(&s, root);
    pool->full |= s.element.full;
    scan_release(&s);
    if (!good)
        return tell(&s, name, 1, status, err);
    *out = root;
    return GATE_OK;
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
        if (found || !scan_value(s, NULL))
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
        if (!scan_value(s, NULL))
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
