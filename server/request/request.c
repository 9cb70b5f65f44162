/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: see request.h. */
#include "server/request/request.h"

#include <string.h>

#include "gate/base/utf8.h"

#define N BYTE_OF_NAME
#define V BYTE_OF_VALUE
#define H BYTE_OF_HOST
#define P BYTE_PLAIN
#define ALL (N | V | H | P)

static const unsigned char kinds[256] = {
    ['\t'] = V,          [' '] = V | P,       ['!'] = ALL,       ['"'] = V | P,
    ['#'] = N | V | P,   ['$'] = ALL,         ['%'] = N | V | H, ['&'] = ALL,
    ['\''] = ALL,        ['('] = V | H | P,   [')'] = V | H | P, ['*'] = ALL,
    ['+'] = ALL,         [','] = V | H | P,   ['-'] = ALL,       ['.'] = ALL,
    ['/'] = V | P,       ['0' ... '9'] = ALL, [':'] = V | H | P, [';'] = V | H | P,
    ['<'] = V | P,       ['='] = V | H | P,   ['>'] = V | P,     ['?'] = V | P,
    ['@'] = V | P,       ['A' ... 'Z'] = ALL, ['['] = V | H | P, ['\\'] = V | P,
    [']'] = V | H | P,   ['^'] = N | V | P,   ['_'] = ALL,       ['`'] = N | V | P,
    ['a' ... 'z'] = ALL, ['{'] = V | P,       ['|'] = N | V | P, ['}'] = V | P,
    ['~'] = ALL,         [0x80 ... 0xff] = V,
};

size_t bytes_span(const char *text, enum byte_kind kind)
{
    const char *end = text;
    while (kinds[(unsigned char)*end] & kind)
        end++;
    return (size_t)(end - text);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void refuse(struct request *r, unsigned status, const char *why)
{
    if (r->fault_status == 0) {
        r->fault_status = status;
        r->fault = why;
    }
}

static bool is_utf8(const char *s, size_t len)
{
    uint32_t code;
    while (len > 0) {
        size_t n = (unsigned char)*s < 0x80 ? 1 : utf8_decode(s, len, &code);
        if (n == 0)
            return false;
        s += n;
        len -= n;
    }
    return true;
}

/* The byte that *s stands for, and moves behind it; -1: it was refused. */
static int decode_byte(struct request *r, const char **s)
{
    int c = (unsigned char)*(*s)++;
    if (c == '%') {
        int high = hex_digit((*s)[0]);
        int low = high < 0 ? -1 : hex_digit((*s)[1]);
        if (low < 0) {
            refuse(r, 400, "The address has a '%' without two hexadecimal digits.");
            return -1;
        }
        c = high * 16 + low;
        *s += 2;
    }
    if (c < 0x20 || c == 0x7f) {
        refuse(r, 400, "The address has a control character.");
        return -1;
    }
    return c;
}

/* Unescapes `text` in place; it never grows. */
static void unescape(struct request *r, char *text)
{
    const char *s = text;
    char *out = text;
    bool is_ascii = true;
    for (;;) {
        size_t n_plain = bytes_span(s, BYTE_PLAIN);
        memmove(out, s, n_plain);
        s += n_plain;
        out += n_plain;
        if (*s == '\0')
            break;
        int c = decode_byte(r, &s);
        if (c < 0)
            return;
        is_ascii &= c < 0x80;
        *out++ = (char)c;
    }
    *out = '\0';
    if (!is_ascii && !is_utf8(text, (size_t)(out - text)))
        refuse(r, 400, "The address is not UTF-8.");
}

static void add_parameter(struct request *r, char *text)
{
    if (r->n_parameters == REQUEST_MAX_PARAMETERS) {
        refuse(r, 400, "The address has too many parameters.");
        return;
    }
    char *value = strchr(text, '=');
    if (!value || value == text) {
        refuse(r, 400, "A parameter of the address is not of the form name=value.");
        return;
    }
    *value++ = '\0';
    unescape(r, text);
    unescape(r, value);
    if (r->fault_status != 0)
        return;
    if (request_parameter(r, text)) {
        refuse(r, 400, "The address has a parameter twice.");
        return;
    }
    r->parameters[r->n_parameters++] = (struct query_parameter){text, value};
}

void request_parse(struct request *r, const char *target)
{
    size_t len = strnlen(target, REQUEST_MAX_TARGET + 1);
    r->fault_status = 0;
    r->fault = NULL;
    r->n_parameters = 0;
    r->path = "/";
    if (len > REQUEST_MAX_TARGET) {
        memcpy(r->target, target, REQUEST_MAX_TARGET);
        r->target[REQUEST_MAX_TARGET] = '\0';
        refuse(r, 414, "The address is too long.");
        return;
    }
    memcpy(r->target, target, len + 1);
    memcpy(r->bytes, target, len + 1);
    if (target[0] != '/') {
        refuse(r, 400, "The address is not a path.");
        return;
    }
    char *query = strchr(r->bytes, '?');
    if (query)
        *query++ = '\0';
    unescape(r, r->bytes);
    for (char *next; query && *query && r->fault_status == 0; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        add_parameter(r, query);
    }
    if (r->fault_status == 0)
        r->path = r->bytes;
}

const char *request_parameter(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_parameters; i++) {
        const char *other = r->parameters[i].name;
        if (other[0] == name[0] && !strcmp(other, name))
            return r->parameters[i].value;
    }
    return NULL;
}
