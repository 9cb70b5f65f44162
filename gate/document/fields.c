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
#include "gate/document/values.h"

#define FIELDS_MAX 64 /* of a shape: a bit each */

/* Where a value is: a key, or the place in a list. */
struct step {
    const struct step *parent;
    const char *key;
    size_t index;
};

const char *const field_actions[] = {"accept-new", "accept", "ratchet", "trend",
                                     "epoch",      "retire", NULL};

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
                      const struct value *value)
{
    static const char *const kinds[] = {[VALUE_NULL] = "null",
                                        [VALUE_FALSE] = "false",
                                        [VALUE_TRUE] = "true",
                                        [VALUE_LIST] = "an array",
                                        [VALUE_OBJECT] = "an object"};
    char text[64], cut[48];
    const char *found = text;
    if (value->kind == VALUE_NUMBER)
        snprintf(text, sizeof text, "%.15g", value->number);
    else if (value->kind != VALUE_TEXT)
        found = kinds[value->kind];
    else if (strlen(value->text) < sizeof cut)
        snprintf(text, sizeof text, "'%s'", value->text);
    else
        snprintf(text, sizeof text, "a string of %zu characters", utf8_length(value->text));
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
                       const struct value *value)
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

static bool read_text(const struct field *f, const struct value *value, const char **out,
                      const struct step *at, struct field_fault *fault)
{
    if (value->kind != VALUE_TEXT)
        return is_unlike(fault, at, "a string", value);
    const char *s = value->text;
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

static bool read_number(const struct field *f, const struct value *value, double *out,
                        const struct step *at, struct field_fault *fault)
{
    bool fraction = f->form == FORM_FRACTION;
    if (value->kind != VALUE_NUMBER)
        return is_unlike(fault, at, fraction ? form_name(f->form) : "a number", value);
    double x = *out = value->number;
    bool below = f->flags & FIELD_ABOVE ? x <= f->least : x < f->least;
    if (fraction && (below || x > f->most))
        return is_unlike(fault, at, form_name(f->form), value);
    if (below)
        return fail(fault, at, "must be %s %.15g, is %.15g",
                    f->flags & FIELD_ABOVE ? "more than" : "at least", f->least, x);
    return x <= f->most || fail(fault, at, "must be at most %.15g, is %.15g", f->most, x);
}

static bool read_count(const struct field *f, const struct value *value, int64_t *out,
                       const struct step *at, struct field_fault *fault)
{
    double x;
    if (value->kind == VALUE_NUMBER && value->number != floor(value->number))
        return is_unlike(fault, at, "an integer", value);
    if (!read_number(f, value, &x, at, fault))
        return false;
    *out = (int64_t)x;
    return true;
}

static bool read_word(const struct field *f, const struct value *value, int *out,
                      const struct step *at, struct field_fault *fault)
{
    if (value->kind != VALUE_TEXT)
        return is_unlike(fault, at, "a string", value);
    *out = find_word(f->words, value->text);
    return *out >= (int)f->least || is_no_word(fault, at, f, value);
}

/* What reads, and where the first fault goes. */
struct reader {
    struct values values;
    struct field_fault *fault;
    size_t bytes; /* of lists */
};

/* Into a struct that is clear, as those in it are. */
static bool read_object(struct reader *r, const struct shape *s, struct value *value, char *out,
                        const struct step *at);

static bool no_memory(struct reader *r)
{
    *r->fault = (struct field_fault){.no_memory = true, .message = "out of memory"};
    return false;
}

/* Makes room for one more element of a list that has n, by powers of two. */
static bool grow(struct reader *r, void **list, size_t n, size_t bytes)
{
    bool full = n < 2 ? n == 0 : !(n & (n - 1));
    size_t room = n < 2 ? 2 : 2 * n;
    void *more = full ? realloc(*list, room * bytes) : *list;
    if (!more)
        return no_memory(r);
    r->bytes += full ? (room - n) * bytes : 0;
    *list = more;
    return true;
}

/* A list of objects, or of numbers or texts where the field has no shape. */
static bool read_list(struct reader *r, const struct field *f, struct value *value, void **list,
                      size_t *n, const struct step *at)
{
    const bool texts = f->kind == FIELD_TEXTS;
    const double bound = f->each > 0 ? f->each : INFINITY;
    const struct field one = {.least = texts ? 1 : -bound, .most = bound};
    size_t bytes = f->shape ? f->shape->bytes : texts ? sizeof(char *) : sizeof(double);
    struct step step = {.parent = at};
    struct value item;
    if (value->kind != VALUE_LIST)
        return is_unlike(r->fault, at, "an array", value);
    if (!grow(r, list, 0, bytes))
        return false;
    for (; values_next(&r->values, value, &item); step.index++) {
        if ((double)step.index >= f->most) {
            values_pass(&r->values, &item);
            continue;
        }
        if (!grow(r, list, *n, bytes))
            return false;
        char *next = (char *)*list + (*n)++ * bytes; /* is released with the rest */
        if (f->shape)
            fields_clear(f->shape, next);
        if (f->shape ? !read_object(r, f->shape, &item, next, &step)
            : texts  ? !read_text(&one, &item, (const char **)(void *)next, &step, r->fault)
                     : !read_number(&one, &item, (double *)(void *)next, &step, r->fault))
            return false;
    }
    if ((double)step.index < f->least || (double)step.index > f->most)
        return fail(r->fault, at, "must have %.0f to %.0f items, has %zu", f->least, f->most,
                    step.index);
    void *exact = realloc(*list, (*n ? *n : 1) * bytes);
    *list = exact ? exact : *list;
    return true;
}

static bool read_map(struct reader *r, const struct field *f, struct value *value, void **list,
                     size_t *n, const struct step *at);

static bool read_field(struct reader *r, const struct field *f, struct value *value, char *out,
                       const struct step *at)
{
    struct field_fault *fault = r->fault;
    void *to = out + f->offset, *beside = out + (f->beside == FIELD_NOWHERE ? 0 : f->beside);
    if (f->flags & FIELD_NULLABLE && value->kind == VALUE_NULL)
        return true;
    switch (f->kind) {
    case FIELD_TEXT:
        return read_text(f, value, to, at, fault);
    case FIELD_BOOL:
    case FIELD_YES_NO:
        if (value->kind != VALUE_TRUE && value->kind != VALUE_FALSE)
            return is_unlike(fault, at, "true or false", value);
        if (f->kind == FIELD_BOOL)
            *(bool *)to = value->kind == VALUE_TRUE;
        else
            *(enum yes_no *)to = value->kind == VALUE_TRUE ? YES : NO;
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
        return read_object(r, f->shape, value, to, at);
    case FIELD_MAP:
        return read_map(r, f, value, to, beside, at);
    default:
        return read_list(r, f, value, to, beside, at);
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

static bool read_map(struct reader *r, const struct field *f, struct value *value, void **list,
                     size_t *n, const struct step *at)
{
    struct value item;
    if (value->kind != VALUE_OBJECT)
        return is_unlike(r->fault, at, "an object", value);
    if (!grow(r, list, 0, f->shape->bytes))
        return false;
    while (values_next(&r->values, value, &item)) {
        const struct step step = {.parent = at, .key = item.key};
        if (!grow(r, list, *n, f->shape->bytes))
            return false;
        char *next = (char *)*list + (*n)++ * f->shape->bytes; /* is released with the rest */
        fields_clear(f->shape, next);
        *(const char **)(void *)next = step.key;
        if (!read_field(r, f->shape->fields, &item, next, &step))
            return false;
    }
    return true;
}

/* Documents have their members in about the order of the table. */
static size_t find_field(const struct shape *s, const struct value *member, size_t from)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t at = (from + i) % s->n;
        const char *key = s->fields[at].key;
        if (s->fields[at].kind != FIELD_OTHERS && *key == *member->key &&
            !strncmp(key, member->key, member->key_length) && !key[member->key_length])
            return at;
    }
    return s->n;
}

static bool read_other(struct reader *r, const struct field *f, const struct value *value,
                       char *out, const struct step *at)
{
    void **list = (void **)(void *)(out + f->offset);
    size_t *n = (size_t *)(void *)(out + f->beside);
    const bool is_flag = value->kind == VALUE_TRUE || value->kind == VALUE_FALSE;
    if (!is_flag && value->kind != VALUE_NUMBER) {
        fail(r->fault, at, "unknown key '%.100s' (a size is a number, a flag true or false)",
             at->key);
        r->fault->of_key = true;
        return false;
    }
    if (!grow(r, list, *n, sizeof(struct field_other)))
        return false;
    struct field_other *others = *list;
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(others[i].key, at->key)) {
            fail(r->fault, at, "key '%.100s' comes twice", at->key);
            r->fault->of_key = true;
            return false;
        }
    others[(*n)++] =
        (struct field_other){at->key, is_flag ? value->kind == VALUE_TRUE : value->number, is_flag};
    return true;
}

static bool read_object(struct reader *r, const struct shape *s, struct value *value, char *out,
                        const struct step *at)
{
    const struct field *others =
        s->n && s->fields[s->n - 1].kind == FIELD_OTHERS ? &s->fields[s->n - 1] : NULL;
    uint64_t seen = 0;
    size_t next = 0;
    struct value item;
    if (value->kind != VALUE_OBJECT)
        return is_unlike(r->fault, at, "an object", value);
    while (values_next(&r->values, value, &item)) {
        size_t i = find_field(s, &item, next);
        const char *key = i < s->n ? s->fields[i].key : values_key(&r->values, &item);
        const struct step step = {.parent = at, .key = key};
        if (i == s->n && others) {
            if (!read_other(r, others, &item, out, &step))
                return false;
            continue;
        }
        if (i == s->n || seen >> i & 1) {
            fail(r->fault, &step, i == s->n ? "unknown key '%.100s'" : "key '%.100s' comes twice",
                 step.key);
            r->fault->of_key = true;
            return false;
        }
        if (!read_field(r, &s->fields[i], &item, out, &step))
            return false;
        seen |= (uint64_t)1 << i;
        next = i + 1;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].flags & FIELD_REQUIRED && !(seen >> i & 1))
            return fail(r->fault, at, "missing key '%s'", s->fields[i].key);
    return true;
}

static bool read_whole(struct reader *r, const struct shape *s, struct value *value, void *out)
{
    fields_clear(s, out);
    bool good = s->n <= FIELDS_MAX && read_object(r, s, value, out, NULL);
    if (!good)
        fields_release(s, out);
    return good;
}

bool fields_read(const struct shape *s, const cJSON *tree, void *out, struct field_fault *fault)
{
    struct reader r = {.fault = fault};
    struct value value = values_node(tree);
    return read_whole(&r, s, &value, out);
}

/* Scans what is left of a text that has been read, or was not because of a fault. */
static bool is_json(struct reader *r)
{
    struct json_scan *scan = r->values.scan;
    unsigned line, column;
    while (json_scan_next(scan))
        ;
    if (!scan->fault)
        return true;
    json_scan_place(scan, &line, &column);
    return fail(r->fault, NULL, "line %u, column %u: %s", line, column, scan->fault);
}

static bool read_text_whole(struct reader *r, const struct shape *s, void *out)
{
    struct value value;
    bool good = values_first(&r->values, &value) && read_whole(r, s, &value, out);
    if (r->values.no_memory || r->fault->no_memory)
        return no_memory(r);
    return is_json(r) && good;
}

bool fields_take(const struct shape *s, const char *text, size_t len, void *out,
                 struct fields_taken *taken, struct field_fault *fault)
{
    struct json_scan scan = json_scan_of(text, len);
    struct reader r = {.values = {.scan = &scan}, .fault = fault, .bytes = len + 1};
    *fault = (struct field_fault){.of_key = false};
    *taken = (struct fields_taken){.texts = malloc(len + 1)};
    r.values.texts = taken->texts;
    fields_clear(s, out);
    bool good = taken->texts ? read_text_whole(&r, s, out) : no_memory(&r);
    taken->bytes = r.bytes;
    if (!good) {
        fields_release(s, out);
        free(taken->texts);
        taken->texts = NULL;
    }
    return good;
}

bool fields_pick(const struct shape *s, const cJSON *object, void *out, struct field_fault *fault)
{
    bool good = true;
    struct reader r = {.fault = fault};
    fields_clear(s, out);
    for (size_t i = 0; i < s->n && good; i++) {
        const struct step step = {.key = s->fields[i].key};
        const cJSON *node = json_member(object, step.key);
        struct value value = node ? values_node(node) : (struct value){.kind = VALUE_NULL};
        if (node)
            good = read_field(&r, &s->fields[i], &value, out, &step);
        else if (s->fields[i].flags & FIELD_REQUIRED)
            good = fail(fault, NULL, "missing key '%s'", step.key);
    }
    if (!good)
        fields_release(s, out);
    return good;
}

static bool is_list(enum field_kind kind)
{
    return kind == FIELD_LIST || kind == FIELD_NUMBERS || kind == FIELD_TEXTS ||
           kind == FIELD_MAP || kind == FIELD_OTHERS;
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
    cJSON_Delete(*tree);
    *tree = NULL;
    return fields_fault(name, first_line, text, len, &fault, status, err);
}

enum gate_status fields_fault(const char *name, unsigned first_line, const char *text, size_t len,
                              const struct field_fault *fault, enum gate_status status,
                              struct gate_error *err)
{
    unsigned line = 1, column = 1;
    cJSON *tree = NULL;
    enum gate_status parsed = json_parse_at(name, first_line, text, len, status, &tree, err);
    if (parsed)
        return parsed;
    json_locate(tree, text, len, fault->pointer, fault->of_key, &line, &column);
    cJSON_Delete(tree);
    return gate_fail(err, status, "%s:%u:%u: %s%s%s", name, first_line + line - 1, column,
                     fault->pointer, fault->pointer[0] ? ": " : "", fault->message);
}
