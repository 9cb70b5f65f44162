/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c: see fields.h. */
#include "gate/document/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/utf8.h"

#define FIELDS_MAX 64 /* of a shape: a bit each */

enum value_kind {
    VALUE_NULL,
    VALUE_FALSE,
    VALUE_TRUE,
    VALUE_NUMBER,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_OBJECT
};

struct value {
    enum value_kind kind;
    const char *key; /* in an object: of key_length bytes, without a final NUL */
    size_t key_length;
    double number;
    const char *text;
};

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

/* The same of a key. */
static bool is_wrong_key(struct field_fault *fault, const struct step *at, const char *what,
                         const char *why)
{
    fail(fault, at, "%s '%.100s'%s", what, at->key, why);
    fault->of_key = true;
    return false;
}

static bool is_unlike(struct field_fault *fault, const struct step *at, const char *expected,
                      const struct value *value)
{
    static const char *const kinds[] = {"null", "false", "true", "", "", "an array", "an object"};
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

bool field_refuse(struct field_fault *fault, const char *format, ...)
{
    char text[sizeof fault->pointer + sizeof fault->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *message = strstr(text, ": ");
    *fault = (struct field_fault){.of_key = false};
    snprintf(fault->pointer, sizeof fault->pointer, "%.*s", (int)(message - text), text);
    snprintf(fault->message, sizeof fault->message, "%s", message + strlen(": "));
    return false;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool fields_twice(const void *list, size_t n, size_t bytes, const char **twice)
{
    const char *from = list, **texts = calloc(n + 1, sizeof *texts);
    *twice = NULL;
    if (!texts)
        return false;
    for (size_t i = 0; i < n; i++, from += bytes)
        texts[i] = *(const char *const *)(const void *)from;
    qsort(texts, n, sizeof *texts, compare_texts);
    for (size_t i = 1; i < n && !*twice; i++)
        *twice = strcmp(texts[i - 1], texts[i]) ? NULL : texts[i];
    free(texts);
    return true;
}

/* ---- the values of a text ---- */

struct reader {
    struct json_scan scan;
    char *texts;               /* room for the strings: as many bytes as the text has */
    struct field_fault *fault; /* where the first one goes */
    size_t bytes;              /* of lists */
    bool passes_unknown;       /* keys of the whole object */
    bool no_memory;
};

static bool no_memory(struct reader *r)
{
    r->no_memory = true;
    r->scan.fault = "out of memory"; /* there are no more values */
    return false;
}

static const char *keep(struct reader *r, const char *s, size_t n)
{
    char *copy = r->texts;
    memcpy(copy, s, n);
    copy[n] = '\0';
    r->texts += n + 1;
    return copy;
}

/* The string that the cursor is at, as a text of its own; NULL: out of memory. */
static const char *keep_string(struct reader *r)
{
    const char *token = r->scan.text + r->scan.start;
    size_t n = r->scan.at - r->scan.start;
    if (!r->scan.escaped)
        return keep(r, token + 1, n - 2);
    cJSON *string = cJSON_ParseWithLength(token, n);
    const char *text = string ? keep(r, string->valuestring, strlen(string->valuestring)) : NULL;
    cJSON_Delete(string);
    if (!text)
        no_memory(r);
    return text;
}

/* The next value of the text, with the key before it in an object. False at the end of the list or
 * object, and at a fault. Each one is to be read or passed before the next. */
static bool next_value(struct reader *r, bool in_object, struct value *item)
{
    static const struct {
        char first;
        enum value_kind kind;
    } kinds[] = {{'{', VALUE_OBJECT}, {'[', VALUE_LIST},  {'"', VALUE_TEXT},
                 {'t', VALUE_TRUE},   {'f', VALUE_FALSE}, {'n', VALUE_NULL}};
    *item = (struct value){.kind = VALUE_NUMBER};
    if (!json_scan_next(&r->scan))
        return false;
    const char *token = r->scan.text + r->scan.start;
    if (*token == ']' || *token == '}')
        return false;
    if (in_object) {
        item->key = r->scan.escaped ? keep_string(r) : token + 1;
        item->key_length = !item->key        ? 0
                           : r->scan.escaped ? strlen(item->key)
                                             : r->scan.at - r->scan.start - 2;
        if (!json_scan_next(&r->scan))
            return false;
        token = r->scan.text + r->scan.start;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (*token == kinds[i].first)
            item->kind = kinds[i].kind;
    if (item->kind == VALUE_NUMBER)
        item->number = json_read_number(token, r->scan.at - r->scan.start);
    else if (item->kind == VALUE_TEXT)
        item->text = keep_string(r);
    return !r->scan.fault;
}

/* The key as a text of its own, which it is already if it was decoded. */
static const char *keep_key(struct reader *r, const struct value *item)
{
    return item->key[item->key_length] ? keep(r, item->key, item->key_length) : item->key;
}

/* Passes over what is inside a value. */
static void pass(struct reader *r, const struct value *value)
{
    struct value item;
    while (value->kind >= VALUE_LIST && next_value(r, value->kind == VALUE_OBJECT, &item))
        pass(r, &item);
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

static bool has_form(enum field_form form, const char *s)
{
    static const char uuid[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
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
        for (size_t i = 0; i < sizeof uuid - 1; i++)
            if (uuid[i] == '-' ? s[i] != '-' : !s[i] || !strchr("0123456789abcdef", s[i]))
                return false;
        return !s[sizeof uuid - 1];
    case FORM_BASE64:
        s += strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
        return !s[strspn(s, "=")];
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
        const char *before = i > first ? " " : f->words[first + 1] ? "one of " : "";
        snprintf(list + n, sizeof list - n, "%s'%s'", before, f->words[i]);
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

static bool read_field(struct reader *r, const struct field *f, struct value *value, char *out,
                       const struct step *at);
/* Into a struct that is clear, as those in it are. */
static bool read_object(struct reader *r, const struct shape *s, struct value *value, char *out,
                        const struct step *at);

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

/* A list of objects, or of numbers or texts where the field has no shape; or a map. */
static bool read_list(struct reader *r, const struct field *f, struct value *value, void **list,
                      size_t *n, const struct step *at)
{
    const bool texts = f->kind == FIELD_TEXTS, map = f->kind == FIELD_MAP;
    const double bound = f->each > 0 ? f->each : INFINITY;
    const double most = map && f->most <= 0 ? INFINITY : f->most;
    const struct field one = {.least = texts ? 1 : -bound, .most = bound};
    size_t bytes = f->shape ? f->shape->bytes : texts ? sizeof(char *) : sizeof(double);
    struct step step = {.parent = at};
    struct value item;
    if (value->kind != (map ? VALUE_OBJECT : VALUE_LIST))
        return is_unlike(r->fault, at, map ? "an object" : "an array", value);
    if (!grow(r, list, 0, bytes))
        return false;
    for (; next_value(r, map, &item); step.index++) {
        if ((double)step.index >= most) {
            pass(r, &item);
            continue;
        }
        if (!grow(r, list, *n, bytes))
            return false;
        char *next = (char *)*list + (*n)++ * bytes; /* is released with the rest */
        bool good = false;
        if (f->shape) {
            fields_clear(f->shape, next);
            if (map)
                *(const char **)(void *)next = step.key = keep_key(r, &item);
            if (map && (!has_form(f->form, step.key) || strlen(step.key) > bound))
                return is_wrong_key(r->fault, &step, "key", " is no name");
            good = map ? read_field(r, f->shape->fields, &item, next, &step)
                       : read_object(r, f->shape, &item, next, &step);
        } else {
            good = texts ? read_text(&one, &item, (const char **)(void *)next, &step, r->fault)
                         : read_number(&one, &item, (double *)(void *)next, &step, r->fault);
        }
        if (!good)
            return false;
    }
    if (map && (double)step.index <= most) {
        if (!fields_twice(*list, *n, bytes, &step.key))
            return no_memory(r);
        return !step.key || is_wrong_key(r->fault, &step, "key", " comes twice");
    }
    if ((double)step.index < f->least || (double)step.index > most)
        return fail(r->fault, at, "must have %.0f to %.0f items, has %zu", f->least, f->most,
                    step.index);
    void *exact = realloc(*list, (*n ? *n : 1) * bytes);
    *list = exact ? exact : *list;
    return true;
}

static bool read_field(struct reader *r, const struct field *f, struct value *value, char *out,
                       const struct step *at)
{
    struct field_fault *fault = r->fault;
    double number;
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
        if (value->kind == VALUE_NUMBER && value->number != floor(value->number))
            return is_unlike(fault, at, "an integer", value);
        if (!read_number(f, value, &number, at, fault))
            return false;
        *(int64_t *)to = (int64_t)number;
        return true;
    case FIELD_WORD:
        if (value->kind != VALUE_TEXT)
            return is_unlike(fault, at, "a string", value);
        *(int *)to = find_word(f->words, value->text);
        return *(int *)to >= (int)f->least || is_no_word(fault, at, f, value);
    case FIELD_OBJECT:
        if (f->beside != FIELD_NOWHERE)
            *(bool *)beside = true;
        return read_object(r, f->shape, value, to, at);
    default:
        return read_list(r, f, value, to, beside, at);
    }
}

/* A member that no other field names. */
static bool read_other(struct reader *r, const struct field *f, const struct value *value,
                       char *out, const struct step *at)
{
    void **list = (void **)(void *)(out + f->offset);
    size_t *n = (size_t *)(void *)(out + f->beside);
    const bool is_flag = value->kind == VALUE_TRUE || value->kind == VALUE_FALSE;
    if (!is_flag && value->kind != VALUE_NUMBER)
        return is_wrong_key(r->fault, at, "key",
                            " is unknown, or has a wrong value: a size is a number, a flag true or "
                            "false");
    if (!grow(r, list, *n, sizeof(struct field_other)))
        return false;
    struct field_other *others = *list;
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(others[i].key, at->key))
            return is_wrong_key(r->fault, at, "key", " comes twice");
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
    while (next_value(r, true, &item)) {
        size_t i = s->n;
        /* Documents have their members in about the order of the table. */
        for (size_t k = 0; k < s->n && i == s->n; k++) {
            const struct field *f = &s->fields[(next + k) % s->n];
            if (f->kind != FIELD_OTHERS && *f->key == *item.key &&
                !strncmp(f->key, item.key, item.key_length) && !f->key[item.key_length])
                i = (next + k) % s->n;
        }
        const bool known = i < s->n;
        if (!known && !at && r->passes_unknown) {
            pass(r, &item);
            continue;
        }
        const struct step step = {.parent = at,
                                  .key = known ? s->fields[i].key : keep_key(r, &item)};
        if (known && seen >> i & 1)
            return is_wrong_key(r->fault, &step, "key", " comes twice");
        if (!known && !others)
            return is_wrong_key(r->fault, &step, "unknown key", "");
        if (known ? !read_field(r, &s->fields[i], &item, out, &step)
                  : !read_other(r, others, &item, out, &step))
            return false;
        if (known) {
            seen |= (uint64_t)1 << i;
            next = i + 1;
        }
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].flags & FIELD_REQUIRED && !(seen >> i & 1))
            return fail(r->fault, at, "missing key '%s'", s->fields[i].key);
    return true;
}

/* A syntax error of JSON comes before all other faults, so the rest of a faulty text is scanned. */
static bool read_whole(const struct shape *s, bool passes_unknown, const char *text, size_t len,
                       void *out, struct fields_taken *taken, struct field_fault *fault)
{
    struct reader r = {.scan = json_scan_of(text, len),
                       .texts = malloc(len + 1),
                       .fault = fault,
                       .bytes = len + 1,
                       .passes_unknown = passes_unknown};
    struct value value;
    char *texts = r.texts;
    *fault = (struct field_fault){.of_key = false};
    fields_clear(s, out);
    bool good = texts ? s->n <= FIELDS_MAX && next_value(&r, false, &value) &&
                            read_object(&r, s, &value, out, NULL)
                      : no_memory(&r);
    while (json_scan_next(&r.scan))
        continue;
    if (r.no_memory) {
        *fault = (struct field_fault){.no_memory = true, .message = "out of memory"};
        good = false;
    } else if (r.scan.fault) {
        unsigned line, column;
        json_scan_place(&r.scan, &line, &column);
        good = fail(fault, NULL, "line %u, column %u: %s", line, column, r.scan.fault);
    }
    *taken = (struct fields_taken){.texts = good ? texts : NULL, .bytes = r.bytes};
    if (!good) {
        fields_release(s, out);
        free(texts);
    }
    return good;
}

bool fields_take(const struct shape *s, const char *text, size_t len, void *out,
                 struct fields_taken *taken, struct field_fault *fault)
{
    return read_whole(s, false, text, len, out, taken, fault);
}

bool fields_pick(const struct shape *s, const char *text, size_t len, void *out,
                 struct fields_taken *taken, struct field_fault *fault)
{
    return read_whole(s, true, text, len, out, taken, fault);
}

enum gate_status fields_parse(const struct shape *s, const char *name, unsigned first_line,
                              const char *text, size_t len, enum gate_status status, void *out,
                              struct fields_taken *taken, struct gate_error *err)
{
    struct field_fault fault;
    return fields_take(s, text, len, out, taken, &fault)
               ? GATE_OK
               : fields_fault(name, first_line, text, len, &fault, status, err);
}

enum gate_status fields_fault(const char *name, unsigned first_line, const char *text, size_t len,
                              const struct field_fault *fault, enum gate_status status,
                              struct gate_error *err)
{
    unsigned line = 1, column = 1;
    if (fault->no_memory)
        return gate_fail(err, GATE_INTERNAL, "%s: out of memory", name);
    TRY(json_check(name, first_line, text, len, status, err));
    json_locate(text, len, fault->pointer, fault->of_key, &line, &column);
    return gate_fail(err, status, "%s:%u:%u: %s%s%s", name, first_line + line - 1, column,
                     fault->pointer, fault->pointer[0] ? ": " : "", fault->message);
}
