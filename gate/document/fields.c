/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c: see fields.h. */
#include "gate/document/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/hex.h"
#include "gate/base/json.h"
#include "gate/base/utf8.h"

#define FIELDS_MAX 64 /* of a shape: a bit each */

/* Where a value is: a key, or the place in a list. */
struct step {
    const struct step *parent;
    const char *key;
    size_t index;
};

const char *const field_ops[] = {"attention_fwd",   "gemm", "gemv", "linear_relu",
                                 "linear_relu_bwd", NULL};
const char *const field_dtypes[] = {"fp16", "bf16", "fp32", "tf32", NULL};
const char *const field_actions[] = {"accept-new", "accept", "ratchet", "trend", "epoch", NULL};

/* ---- faults ---- */

/* Appends the pointer of a step and all before it; what does not fit is left out. */
static size_t put_pointer(const struct step *at, char *out, size_t size)
{
    if (!at)
        return 0;
    size_t n = put_pointer(at->parent, out, size);
    char token[24];
    const char *name = at->key ? at->key : token;
    snprintf(token, sizeof token, "%zu", at->index);
    if (n + 2 * strlen(name) + 2 > size)
        return n;
    out[n++] = '/';
    for (; *name; name++) {
        if (*name == '~' || *name == '/')
            out[n++] = '~';
        out[n++] = *name == '~' ? '0' : *name == '/' ? '1' : *name;
    }
    out[n] = '\0';
    return n;
}

/* Always false, for a caller's `return`. */
__attribute__((format(printf, 3, 4))) static bool
fail(struct field_fault *fault, const struct step *at, const char *format, ...)
{
    va_list args;
    *fault = (struct field_fault){.of_key = false};
    put_pointer(at, fault->pointer, sizeof fault->pointer);
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return false;
}

static bool is_unlike(struct field_fault *fault, const struct step *at, const char *expected,
                      const cJSON *value)
{
    char text[64], cut[48];
    const char *found = cJSON_IsString(value)   ? text
                        : cJSON_IsNumber(value) ? text
                        : cJSON_IsTrue(value)   ? "true"
                        : cJSON_IsFalse(value)  ? "false"
                        : cJSON_IsNull(value)   ? "null"
                        : cJSON_IsArray(value)  ? "an array"
                                                : "an object";
    if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.15g", value->valuedouble);
    else if (cJSON_IsString(value) && strlen(value->valuestring) < sizeof cut)
        snprintf(text, sizeof text, "'%s'", value->valuestring);
    else if (cJSON_IsString(value))
        snprintf(text, sizeof text, "a string of %zu characters", utf8_length(value->valuestring));
    return fail(fault, at, "must be %s, is %s", expected, found);
}

/* ---- reading ---- */

static bool is_name(const char *s, const char *marks)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    if (!*s || !strchr(plain, *s))
        return false;
    for (; *s; s++)
        if (!strchr(plain, *s) && !strchr(marks, *s))
            return false;
    return true;
}

static bool is_uuid(const char *s)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i = 0;
    for (; form[i] && s[i]; i++)
        if (form[i] == '-' ? s[i] != '-' : !strchr("0123456789abcdef", s[i]))
            return false;
    return !form[i] && !s[i];
}

static bool is_base64(const char *s)
{
    s += strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    return !s[strspn(s, "=")];
}

static bool has_form(enum field_form form, const char *s)
{
    switch (form) {
    case FORM_NAME:
        return is_name(s, "_.+-");
    case FORM_ID:
        return is_name(s, "_./+-");
    case FORM_COMMIT:
        return !*s || hex_is(s, 40);
    case FORM_SHA256:
        return hex_is(s, 64);
    case FORM_SEED:
        return hex_is(s, 16);
    case FORM_UUID:
        return is_uuid(s);
    case FORM_BASE64:
        return is_base64(s);
    case FORM_PERSON:
        return !strchr(s, '@');
    default:
        return true;
    }
}

static const char *form_name(enum field_form form)
{
    static const char *const names[] = {
        [FORM_ANY] = "a text",
        [FORM_NAME] = "a name of a-z, 0-9 and _.+-",
        [FORM_ID] = "an id of a-z, 0-9 and _./+-",
        [FORM_COMMIT] = "a commit of 40 hexadecimal digits, or empty",
        [FORM_SHA256] = "64 hexadecimal digits",
        [FORM_SEED] = "16 hexadecimal digits",
        [FORM_UUID] = "a uuid",
        [FORM_BASE64] = "base64",
        [FORM_PERSON] = "a name without '@'",
        [FORM_FRACTION] = "a fraction of up to 1, such as 0.05 for 5 %",
    };
    return names[form];
}

/* -1: none of them. */
static int find_word(const char *const *words, const char *s)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], s))
            return i;
    return -1;
}

static bool is_no_word(struct field_fault *fault, const struct step *at, const struct field *f,
                       const cJSON *value)
{
    char list[160] = "";
    size_t first = f->kind == FIELD_WORD ? (size_t)f->least : 0;
    for (size_t i = first; f->words[i]; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s'%s'",
                 i > first             ? " "
                 : f->words[first + 1] ? "one of "
                                       : "",
                 f->words[i]);
    }
    return is_unlike(fault, at, list, value);
}

static bool read_text(const struct field *f, const cJSON *value, const char **out,
                      const struct step *at, struct field_fault *fault)
{
    if (!cJSON_IsString(value))
        return is_unlike(fault, at, "a string", value);
    const char *s = value->valuestring;
    size_t n = utf8_length(s);
    *out = s;
    if (f->words)
        return find_word(f->words, s) >= 0 || is_no_word(fault, at, f, value);
    if ((double)n < f->least)
        return fail(fault, at, "must have at least %.0f characters, has %zu", f->least, n);
    if ((double)n > f->most)
        return fail(fault, at, "must have at most %.0f characters, has %zu", f->most, n);
    return has_form(f->form, s) || is_unlike(fault, at, form_name(f->form), value);
}

static bool read_number(const struct field *f, const cJSON *value, double *out,
                        const struct step *at, struct field_fault *fault)
{
    bool fraction = f->form == FORM_FRACTION;
    if (!cJSON_IsNumber(value))
        return is_unlike(fault, at, fraction ? form_name(f->form) : "a number", value);
    double x = *out = value->valuedouble;
    bool below = f->flags & FIELD_ABOVE ? x <= f->least : x < f->least;
    if (fraction && (below || x > f->most))
        return is_unlike(fault, at, form_name(f->form), value);
    if (below)
        return fail(fault, at, "must be %s %.15g, is %.15g",
                    f->flags & FIELD_ABOVE ? "more than" : "at least", f->least, x);
    return x <= f->most || fail(fault, at, "must be at most %.15g, is %.15g", f->most, x);
}

static bool read_count(const struct field *f, const cJSON *value, int64_t *out,
                       const struct step *at, struct field_fault *fault)
{
    double x;
    if (cJSON_IsNumber(value) && value->valuedouble != floor(value->valuedouble))
        return is_unlike(fault, at, "an integer", value);
    if (!read_number(f, value, &x, at, fault))
        return false;
    *out = (int64_t)x;
    return true;
}

static bool read_word(const struct field *f, const cJSON *value, int *out, const struct step *at,
                      struct field_fault *fault)
{
    if (!cJSON_IsString(value))
        return is_unlike(fault, at, "a string", value);
    *out = find_word(f->words, value->valuestring);
    return *out >= (int)f->least || is_no_word(fault, at, f, value);
}

static bool read_object(const struct shape *s, const cJSON *value, char *out, const struct step *at,
                        struct field_fault *fault);

/* A list of objects, or of numbers or texts where the field has no shape. */
static bool read_list(const struct field *f, const cJSON *value, void **list, size_t *n,
                      const struct step *at, struct field_fault *fault)
{
    const bool texts = f->kind == FIELD_TEXTS;
    const double bound = f->each > 0 ? f->each : INFINITY;
    const struct field one = {.least = texts ? 1 : -bound, .most = bound};
    size_t bytes = f->shape ? f->shape->bytes : texts ? sizeof(char *) : sizeof(double);
    struct step step = {.parent = at};
    const cJSON *item;
    if (!cJSON_IsArray(value))
        return is_unlike(fault, at, "an array", value);
    int size = cJSON_GetArraySize(value);
    if (size < f->least || size > f->most)
        return fail(fault, at, "must have %.0f to %.0f items, has %d", f->least, f->most, size);
    char *next = *list = calloc((size_t)size + 1, bytes);
    if (!next)
        return fail(fault, at, "out of memory");
    cJSON_ArrayForEach (item, value) {
        *n += 1; /* what is read so far is released with the rest */
        if (f->shape ? !read_object(f->shape, item, next, &step, fault)
            : texts  ? !read_text(&one, item, (const char **)(void *)next, &step, fault)
                     : !read_number(&one, item, (double *)(void *)next, &step, fault))
            return false;
        next += bytes;
        step.index++;
    }
    return true;
}

static bool read_map(const struct field *f, const cJSON *value, void **list, size_t *n,
                     const struct step *at, struct field_fault *fault);

static bool read_field(const struct field *f, const cJSON *value, char *out, const struct step *at,
                       struct field_fault *fault)
{
    void *to = out + f->offset, *beside = out + (f->beside == FIELD_NOWHERE ? 0 : f->beside);
    if (f->flags & FIELD_NULLABLE && cJSON_IsNull(value))
        return true;
    switch (f->kind) {
    case FIELD_TEXT:
        return read_text(f, value, to, at, fault);
    case FIELD_BOOL:
    case FIELD_YES_NO:
        if (!cJSON_IsBool(value))
            return is_unlike(fault, at, "true or false", value);
        if (f->kind == FIELD_BOOL)
            *(bool *)to = cJSON_IsTrue(value);
        else
            *(enum yes_no *)to = cJSON_IsTrue(value) ? YES : NO;
        return true;
    case FIELD_NUMBER:
        return read_number(f, value, to, at, fault);
    case FIELD_COUNT:
        return read_count(f, value, to, at, fault);
    case FIELD_WORD:
        return read_word(f, value, to, at, fault);
    case FIELD_OBJECT:
        if (f->beside != FIELD_NOWHERE)
            *(bool *)beside = true;
        return read_object(f->shape, value, to, at, fault);
    case FIELD_MAP:
        return read_map(f, value, to, beside, at, fault);
    default:
        return read_list(f, value, to, beside, at, fault);
    }
}

void fields_clear(const struct shape *s, void *to_clear)
{
    char *out = to_clear;
    memset(out, 0, s->bytes);
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        void *to = out + f->offset;
        if (f->kind == FIELD_NUMBER)
            *(double *)to = NAN;
        else if (f->kind == FIELD_COUNT)
            *(int64_t *)to = -1;
        else if (f->kind == FIELD_WORD)
            *(int *)to = -1;
        else if (f->kind == FIELD_OBJECT)
            fields_clear(f->shape, to);
    }
}

static bool read_map(const struct field *f, const cJSON *value, void **list, size_t *n,
                     const struct step *at, struct field_fault *fault)
{
    const cJSON *item;
    if (!cJSON_IsObject(value))
        return is_unlike(fault, at, "an object", value);
    char *next = *list = calloc((size_t)cJSON_GetArraySize(value) + 1, f->shape->bytes);
    if (!next)
        return fail(fault, at, "out of memory");
    cJSON_ArrayForEach (item, value) {
        const struct step step = {.parent = at, .key = item->string};
        *n += 1; /* what is read so far is released with the rest */
        fields_clear(f->shape, next);
        *(const char **)(void *)next = item->string;
        if (!read_field(f->shape->fields, item, next, &step, fault))
            return false;
        next += f->shape->bytes;
    }
    return true;
}

/* Documents have their members in about the order of the table. */
static size_t find_field(const struct shape *s, const char *key, size_t from)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t at = (from + i) % s->n;
        if (!strcmp(s->fields[at].key, key))
            return at;
    }
    return s->n;
}

static bool read_object(const struct shape *s, const cJSON *value, char *out, const struct step *at,
                        struct field_fault *fault)
{
    uint64_t seen = 0;
    size_t next = 0;
    const cJSON *item;
    fields_clear(s, out);
    if (!cJSON_IsObject(value))
        return is_unlike(fault, at, "an object", value);
    cJSON_ArrayForEach (item, value) {
        const struct step step = {.parent = at, .key = item->string};
        size_t i = find_field(s, item->string, next);
        if (i == s->n) {
            fail(fault, &step, "unknown key '%.100s'", item->string);
            fault->of_key = true;
            return false;
        }
        if (!read_field(&s->fields[i], item, out, &step, fault))
            return false;
        seen |= (uint64_t)1 << i;
        next = i + 1;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].flags & FIELD_REQUIRED && !(seen >> i & 1))
            return fail(fault, at, "missing key '%s'", s->fields[i].key);
    return true;
}

bool fields_read(const struct shape *s, const cJSON *value, void *out, struct field_fault *fault)
{
    bool good = s->n <= FIELDS_MAX && read_object(s, value, out, NULL, fault);
    if (!good)
        fields_release(s, out);
    return good;
}

bool fields_pick(const struct shape *s, const cJSON *object, void *out, struct field_fault *fault)
{
    bool good = true;
    fields_clear(s, out);
    for (size_t i = 0; i < s->n && good; i++) {
        const struct step step = {.key = s->fields[i].key};
        const cJSON *value = json_member(object, step.key);
        if (value)
            good = read_field(&s->fields[i], value, out, &step, fault);
        else if (s->fields[i].flags & FIELD_REQUIRED)
            good = fail(fault, NULL, "missing key '%s'", step.key);
    }
    if (!good)
        fields_release(s, out);
    return good;
}

static bool is_list(enum field_kind kind)
{
    return kind == FIELD_LIST || kind == FIELD_NUMBERS || kind == FIELD_TEXTS || kind == FIELD_MAP;
}

void fields_release(const struct shape *s, void *of)
{
    char *from = of;
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        if (f->kind == FIELD_OBJECT)
            fields_release(f->shape, from + f->offset);
        if (!is_list(f->kind))
            continue;
        char *list = *(char **)(void *)(from + f->offset);
        size_t *n = (size_t *)(void *)(from + f->beside);
        for (size_t j = 0; f->shape && j < *n; j++)
            fields_release(f->shape, list + j * f->shape->bytes);
        free(list);
        *(char **)(void *)(from + f->offset) = NULL;
        *n = 0;
    }
}

enum gate_status fields_parse(const struct shape *s, const char *name, unsigned first_line,
                              const char *text, size_t len, enum gate_status status, void *out,
                              cJSON **tree, struct gate_error *err)
{
    struct field_fault fault;
    enum gate_status parsed = json_parse_at(name, first_line, text, len, status, tree, err);
    if (parsed || fields_read(s, *tree, out, &fault))
        return parsed;
    fields_fault(name, first_line, text, len, *tree, &fault, status, err);
    cJSON_Delete(*tree);
    *tree = NULL;
    return status;
}

enum gate_status fields_fault(const char *name, unsigned first_line, const char *text, size_t len,
                              const cJSON *tree, const struct field_fault *fault,
                              enum gate_status status, struct gate_error *err)
{
    unsigned line = 1, column = 1;
    json_locate(tree, text, len, fault->pointer, fault->of_key, &line, &column);
    return gate_fail(err, status, "%s:%u:%u: %s%s%s", name, first_line + line - 1, column,
                     fault->pointer, fault->pointer[0] ? ": " : "", fault->message);
}
