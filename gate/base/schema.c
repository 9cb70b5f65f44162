/*
 * schema.c: see schema.h.
 *
 * A schema is compiled once into a tree of rules, then values are walked against it. Every rule
 * of a schema hangs on the list schema.rules, which owns it; the other pointers between rules only
 * refer. A schema is a trusted input, a value is not.
 */
#include "base/schema.h"

#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/json.h"
#include "base/utf8.h"

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_NUMBER = 4,
    TYPE_INTEGER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
};

static const struct {
    const char *name, *phrase;
    unsigned bit;
} types[] = {{"null", "null", TYPE_NULL},         {"boolean", "true or false", TYPE_BOOLEAN},
             {"number", "a number", TYPE_NUMBER}, {"integer", "an integer", TYPE_INTEGER},
             {"string", "a string", TYPE_STRING}, {"array", "an array", TYPE_ARRAY},
             {"object", "an object", TYPE_OBJECT}};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

struct property {
    const char *name;
    const struct rule *rule;
};

struct rule {
    unsigned type; /* one of TYPE_*, 0: any */
    struct property *properties;
    size_t n_properties;
    const cJSON *required;  /* array of strings, or NULL */
    uint64_t required_bits; /* of its properties by their place, where all required ones have one */
    bool closed;            /* additionalProperties: false */
    const struct rule *additional;
    const struct rule *items;
    double min_items, max_items;
    double min_length, max_length;
    double minimum, exclusive_minimum, maximum;
    const cJSON *enumeration; /* array, or NULL */
    const cJSON *constant;
    regex_t pattern;
    const char *pattern_text; /* NULL: no pattern */
    const char *reference;    /* name below $defs, until `target` is known */
    const struct rule *target;
    const struct rule **one_of;
    size_t n_one_of;
    struct rule *next; /* in schema.rules */
};

struct schema {
    cJSON *text; /* the rules point into it */
    struct rule *rules;
    const struct rule *root;
    struct property *definitions;
    size_t n_definitions;
};

/* ---- compiling ---- */

static const struct rule *compile_rule(struct schema *s, const cJSON *from, struct gate_error *err);

static bool bad_schema(struct gate_error *err, const cJSON *at, const char *what)
{
    gate_fail(err, GATE_INTERNAL, "schema: %s: %s", at->string ? at->string : "(item)", what);
    return false;
}

static struct rule *new_rule(struct schema *s)
{
    struct rule *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->max_items = r->max_length = r->maximum = INFINITY;
    r->minimum = r->exclusive_minimum = -INFINITY;
    r->next = s->rules;
    s->rules = r;
    return r;
}

/* Compiles the members of `from`, an object of schemas. */
static bool compile_members(struct schema *s, const cJSON *from, struct property **members,
                            size_t *n, struct gate_error *err)
{
    const cJSON *item;
    if (!cJSON_IsObject(from))
        return bad_schema(err, from, "must be an object");
    *members = calloc((size_t)cJSON_GetArraySize(from) + 1, sizeof(**members));
    if (!*members)
        return bad_schema(err, from, "out of memory");
    cJSON_ArrayForEach (item, from) {
        const struct rule *rule = compile_rule(s, item, err);
        if (!rule)
            return false;
        (*members)[(*n)++] = (struct property){item->string, rule};
    }
    return true;
}

static bool compile_type(struct rule *r, const cJSON *value, struct gate_error *err)
{
    for (size_t i = 0; cJSON_IsString(value) && i < N_TYPES; i++) {
        if (strcmp(types[i].name, value->valuestring) == 0) {
            r->type = types[i].bit;
            return true;
        }
    }
    return bad_schema(err, value, "not the name of a type");
}

static bool compile_required(struct rule *r, const cJSON *value, struct gate_error *err)
{
    const cJSON *item;
    if (!cJSON_IsArray(value))
        return bad_schema(err, value, "must be an array");
    cJSON_ArrayForEach (item, value) {
        if (!cJSON_IsString(item))
            return bad_schema(err, value, "must hold strings");
    }
    r->required = value;
    return true;
}

static bool compile_additional(struct schema *s, struct rule *r, const cJSON *value,
                               struct gate_error *err)
{
    if (cJSON_IsBool(value)) {
        r->closed = cJSON_IsFalse(value);
        return true;
    }
    r->additional = compile_rule(s, value, err);
    return r->additional != NULL;
}

static bool compile_pattern(struct rule *r, const cJSON *value, struct gate_error *err)
{
    if (!cJSON_IsString(value) ||
        regcomp(&r->pattern, value->valuestring, REG_EXTENDED | REG_NOSUB) != 0)
        return bad_schema(err, value, "not a POSIX extended regular expression");
    r->pattern_text = value->valuestring;
    return true;
}

static bool compile_reference(struct rule *r, const cJSON *value, struct gate_error *err)
{
    static const char prefix[] = "#/$defs/";
    if (!cJSON_IsString(value) || strncmp(value->valuestring, prefix, strlen(prefix)) != 0)
        return bad_schema(err, value, "must begin with #/$defs/");
    r->reference = value->valuestring + strlen(prefix);
    return true;
}

static bool compile_one_of(struct schema *s, struct rule *r, const cJSON *value,
                           struct gate_error *err)
{
    const cJSON *item;
    if (!cJSON_IsArray(value) || !value->child)
        return bad_schema(err, value, "must be an array of schemas");
    r->one_of = calloc((size_t)cJSON_GetArraySize(value), sizeof(*r->one_of));
    if (!r->one_of)
        return bad_schema(err, value, "out of memory");
    cJSON_ArrayForEach (item, value) {
        const struct rule *rule = compile_rule(s, item, err);
        if (!rule)
            return false;
        r->one_of[r->n_one_of++] = rule;
    }
    return true;
}

static bool compile_enum(struct rule *r, const cJSON *value, struct gate_error *err)
{
    if (!cJSON_IsArray(value) || !value->child)
        return bad_schema(err, value, "must be an array of values");
    r->enumeration = value;
    return true;
}

static bool compile_limit(struct rule *r, const cJSON *value, struct gate_error *err)
{
    const struct {
        const char *name;
        double *limit;
    } limits[] = {
        {"minItems", &r->min_items},   {"maxItems", &r->max_items},
        {"minLength", &r->min_length}, {"maxLength", &r->max_length},
        {"minimum", &r->minimum},      {"exclusiveMinimum", &r->exclusive_minimum},
        {"maximum", &r->maximum},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (strcmp(limits[i].name, value->string) != 0)
            continue;
        if (!cJSON_IsNumber(value))
            return bad_schema(err, value, "must be a number");
        *limits[i].limit = value->valuedouble;
        return true;
    }
    return bad_schema(err, value, "unknown keyword");
}

static bool is_annotation(const char *keyword)
{
    static const char *const names[] = {"description", "title", "$schema", "$id"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], keyword) == 0)
            return true;
    }
    return false;
}

static bool compile_keyword(struct schema *s, struct rule *r, const cJSON *value,
                            struct gate_error *err)
{
    const char *keyword = value->string;
    if (is_annotation(keyword))
        return true;
    if (strcmp(keyword, "type") == 0)
        return compile_type(r, value, err);
    if (strcmp(keyword, "properties") == 0)
        return compile_members(s, value, &r->properties, &r->n_properties, err);
    if (strcmp(keyword, "required") == 0)
        return compile_required(r, value, err);
    if (strcmp(keyword, "additionalProperties") == 0)
        return compile_additional(s, r, value, err);
    if (strcmp(keyword, "items") == 0)
        return (r->items = compile_rule(s, value, err)) != NULL;
    if (strcmp(keyword, "pattern") == 0)
        return compile_pattern(r, value, err);
    if (strcmp(keyword, "$ref") == 0)
        return compile_reference(r, value, err);
    if (strcmp(keyword, "oneOf") == 0)
        return compile_one_of(s, r, value, err);
    if (strcmp(keyword, "enum") == 0)
        return compile_enum(r, value, err);
    if (strcmp(keyword, "const") == 0) {
        r->constant = value;
        return true;
    }
    if (strcmp(keyword, "$defs") == 0 &&
        value == cJSON_GetObjectItemCaseSensitive(s->text, "$defs"))
        return compile_members(s, value, &s->definitions, &s->n_definitions, err);
    return compile_limit(r, value, err);
}

/* Mostly the first character tells. */
static bool same_text(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

/* The place of a property, looked for from `guess` on and then from the start; n: there is none. */
static size_t place_of(const struct property *list, size_t n, const char *name, size_t guess)
{
    for (size_t i = guess; i < n; i++) {
        if (same_text(list[i].name, name))
            return i;
    }
    for (size_t i = 0; i < guess && i < n; i++) {
        if (same_text(list[i].name, name))
            return i;
    }
    return n;
}

/* The bit of a property's place; 0: it has none. */
static uint64_t bit_of(size_t place)
{
    return place < 64 ? (uint64_t)1 << place : 0;
}

static void find_required_bits(struct rule *r)
{
    const cJSON *item;
    uint64_t bits = 0;
    cJSON_ArrayForEach (item, r->required) {
        size_t place = place_of(r->properties, r->n_properties, item->valuestring, 0);
        if (place == r->n_properties || bit_of(place) == 0)
            return;
        bits |= bit_of(place);
    }
    r->required_bits = bits;
}

static const struct rule *compile_rule(struct schema *s, const cJSON *from, struct gate_error *err)
{
    const cJSON *item;
    if (!cJSON_IsObject(from)) {
        bad_schema(err, from, "must be a schema");
        return NULL;
    }
    struct rule *r = new_rule(s);
    if (!r) {
        bad_schema(err, from, "out of memory");
        return NULL;
    }
    cJSON_ArrayForEach (item, from) {
        if (!compile_keyword(s, r, item, err))
            return NULL;
    }
    find_required_bits(r);
    return r;
}

static const struct rule *find_property(const struct property *list, size_t n, const char *name)
{
    size_t i = place_of(list, n, name, 0);
    return i < n ? list[i].rule : NULL;
}

/* A definition that is itself only a reference is refused: a ring of them would have no end. */
static bool resolve_references(struct schema *s, struct gate_error *err)
{
    for (struct rule *r = s->rules; r; r = r->next) {
        if (!r->reference)
            continue;
        r->target = find_property(s->definitions, s->n_definitions, r->reference);
        if (!r->target || r->target->reference) {
            gate_fail(err, GATE_INTERNAL, "schema: $ref: no usable definition '%s'", r->reference);
            return false;
        }
    }
    return true;
}

struct schema *schema_compile(const char *text, size_t len, struct gate_error *fault)
{
    struct schema *s = calloc(1, sizeof(*s));
    if (!s) {
        gate_fail(fault, GATE_INTERNAL, "schema: out of memory");
        return NULL;
    }
    if (json_parse("schema", text, len, GATE_INTERNAL, &s->text, fault) != GATE_OK ||
        !(s->root = compile_rule(s, s->text, fault)) || !resolve_references(s, fault)) {
        schema_free(s);
        return NULL;
    }
    return s;
}

struct schema *schema_open(const char *name)
{
    for (size_t i = 0; i < embedded_schemas_count; i++) {
        const struct embedded_file *file = &embedded_schemas[i];
        if (strcmp(file->name, name) == 0)
            return schema_compile((const char *)file->data, file->size, NULL);
    }
    return NULL;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    while (s->rules) {
        struct rule *r = s->rules;
        s->rules = r->next;
        if (r->pattern_text)
            regfree(&r->pattern);
        free(r->properties);
        free(r->one_of);
        free(r);
    }
    free(s->definitions);
    cJSON_Delete(s->text);
    free(s);
}

/* ---- checking ---- */

/* The way from the root to the value at hand, as a chain on the stack. */
struct step {
    const struct step *parent;
    const char *key; /* NULL: an element of an array */
    size_t index;
};

static size_t escaped_length(const char *key)
{
    size_t n = 0;
    for (; *key; key++)
        n += *key == '~' || *key == '/' ? 2 : 1;
    return n;
}

/* Appends one token to the pointer; false when it does not fit, which leaves the pointer as is. */
static bool append_token(char *pointer, size_t size, const struct step *step)
{
    char index[24];
    size_t len = strlen(pointer);
    const char *key = step->key;
    if (!key) {
        snprintf(index, sizeof(index), "%zu", step->index);
        key = index;
    }
    if (len + 1 + escaped_length(key) >= size)
        return false;
    pointer[len++] = '/';
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            pointer[len++] = '~';
            pointer[len++] = *key == '~' ? '0' : '1';
        } else {
            pointer[len++] = *key;
        }
    }
    pointer[len] = '\0';
    return true;
}

static bool write_pointer(const struct step *step, char *pointer, size_t size)
{
    if (!step) {
        pointer[0] = '\0';
        return true;
    }
    return write_pointer(step->parent, pointer, size) && append_token(pointer, size, step);
}

/* Ends a message that was cut behind a whole character. */
static void finish_message(struct schema_fault *fault, int n)
{
    static const char dots[] = "...";
    if (n < 0 || (size_t)n < sizeof(fault->message))
        return;
    size_t len = sizeof(fault->message) - sizeof(dots);
    while (len > 0 && ((unsigned char)fault->message[len] & 0xc0) == 0x80)
        len--;
    memcpy(fault->message + len, dots, sizeof(dots));
}

static bool report(struct schema_fault *fault, const struct step *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Always false, for a caller's `return`. */
static bool report(struct schema_fault *fault, const struct step *at, const char *format, ...)
{
    va_list args;
    if (!fault)
        return false;
    fault->of_key = false;
    write_pointer(at, fault->pointer, sizeof(fault->pointer));
    va_start(args, format);
    finish_message(fault, vsnprintf(fault->message, sizeof(fault->message), format, args));
    va_end(args);
    return false;
}

/* cJSON's own questions are calls into a library, of which a document would take a million. */
static bool is(const cJSON *value, int kind)
{
    return (value->type & 0xff) == kind;
}

static bool has_type(const cJSON *value, unsigned type)
{
    switch (type) {
    case TYPE_NULL:
        return is(value, cJSON_NULL);
    case TYPE_BOOLEAN:
        return is(value, cJSON_True) || is(value, cJSON_False);
    case TYPE_NUMBER:
        return is(value, cJSON_Number) && isfinite(value->valuedouble);
    case TYPE_INTEGER:
        return is(value, cJSON_Number) && isfinite(value->valuedouble) &&
               value->valuedouble == floor(value->valuedouble);
    case TYPE_STRING:
        return is(value, cJSON_String);
    case TYPE_ARRAY:
        return is(value, cJSON_Array);
    default:
        return is(value, cJSON_Object);
    }
}

static const char *type_phrase(unsigned type)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (types[i].bit == type)
            return types[i].phrase;
    }
    return "a value";
}

/* What a value is, for a message: short, with the value itself where that is short. */
static const char *describe(const cJSON *value, char *out, size_t size)
{
    if (cJSON_IsNumber(value))
        snprintf(out, size, "%.15g", value->valuedouble);
    else if (cJSON_IsString(value) && strlen(value->valuestring) <= 60)
        snprintf(out, size, "'%s'", value->valuestring);
    else if (cJSON_IsString(value))
        snprintf(out, size, "a string of %zu characters", utf8_length(value->valuestring));
    else if (cJSON_IsBool(value))
        snprintf(out, size, "%s", cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNull(value))
        snprintf(out, size, "null");
    else
        snprintf(out, size, "%s", cJSON_IsArray(value) ? "an array" : "an object");
    return out;
}

static bool check_enum(const struct rule *r, const cJSON *value, const struct step *at,
                       struct schema_fault *fault)
{
    char found[128], choice[128];
    struct buf choices;
    const cJSON *item;

    cJSON_ArrayForEach (item, r->enumeration) {
        if (is(item, cJSON_String) && is(value, cJSON_String)
                ? same_text(item->valuestring, value->valuestring)
                : cJSON_Compare(item, value, true))
            return true;
    }
    if (!fault)
        return false;
    buf_init(&choices, sizeof(fault->message) - 1);
    cJSON_ArrayForEach (item, r->enumeration) {
        buf_printf(&choices, "%s%s", choices.len ? ", " : "",
                   describe(item, choice, sizeof(choice)));
    }
    report(fault, at, "must be one of %s; is %s", choices.data,
           describe(value, found, sizeof(found)));
    buf_release(&choices);
    return false;
}

static bool check_number(const struct rule *r, const cJSON *value, const struct step *at,
                         struct schema_fault *fault)
{
    double x = value->valuedouble;
    if (x < r->minimum)
        return report(fault, at, "must be at least %.15g, is %.15g", r->minimum, x);
    if (x <= r->exclusive_minimum)
        return report(fault, at, "must be more than %.15g, is %.15g", r->exclusive_minimum, x);
    if (x > r->maximum)
        return report(fault, at, "must be at most %.15g, is %.15g", r->maximum, x);
    return true;
}

static bool check_string(const struct rule *r, const cJSON *value, const struct step *at,
                         struct schema_fault *fault)
{
    char found[128];
    size_t len = utf8_length(value->valuestring);
    if ((double)len < r->min_length)
        return report(fault, at, "must have at least %.0f characters, has %zu", r->min_length, len);
    if ((double)len > r->max_length)
        return report(fault, at, "must have at most %.0f characters, has %zu", r->max_length, len);
    if (r->pattern_text && regexec(&r->pattern, value->valuestring, 0, NULL, 0) != 0)
        return report(fault, at, "must match %s, is %s", r->pattern_text,
                      describe(value, found, sizeof(found)));
    return true;
}

static bool check_rule(const struct rule *r, const cJSON *value, const struct step *at,
                       struct schema_fault *fault);

static bool check_array(const struct rule *r, const cJSON *value, const struct step *at,
                        struct schema_fault *fault)
{
    const cJSON *item;
    double n = cJSON_GetArraySize(value);
    if (n < r->min_items)
        return report(fault, at, "must have at least %.0f items, has %.0f", r->min_items, n);
    if (n > r->max_items)
        return report(fault, at, "must have at most %.0f items, has %.0f", r->max_items, n);
    if (!r->items)
        return true;
    struct step step = {.parent = at};
    cJSON_ArrayForEach (item, value) {
        if (!check_rule(r->items, item, &step, fault))
            return false;
        step.index++;
    }
    return true;
}

static bool unknown_key(const struct step *at, const char *key, struct schema_fault *fault)
{
    const struct step step = {.parent = at, .key = key};
    if (!fault)
        return false;
    report(fault, at, "unknown key '%s'", key);
    fault->of_key = write_pointer(&step, fault->pointer, sizeof(fault->pointer));
    return false;
}

static bool has_required(const struct rule *r, const cJSON *value, uint64_t seen,
                         const struct step *at, struct schema_fault *fault)
{
    const cJSON *item;
    if (r->required_bits != 0 && (r->required_bits & ~seen) == 0)
        return true;
    cJSON_ArrayForEach (item, r->required) {
        if (!cJSON_GetObjectItemCaseSensitive(value, item->valuestring))
            return report(fault, at, "missing key '%s'", item->valuestring);
    }
    return true;
}

/* Documents mostly have their keys in the order of the schema, so each is looked for from there. */
static bool check_object(const struct rule *r, const cJSON *value, const struct step *at,
                         struct schema_fault *fault)
{
    const cJSON *item;
    uint64_t seen = 0;
    size_t guess = 0;
    cJSON_ArrayForEach (item, value) {
        const struct step step = {.parent = at, .key = item->string};
        size_t place = place_of(r->properties, r->n_properties, item->string, guess);
        bool known = place < r->n_properties;
        if (!known && r->closed)
            return unknown_key(at, item->string, fault);
        const struct rule *rule = known ? r->properties[place].rule : r->additional;
        seen |= known ? bit_of(place) : 0;
        guess = known ? place + 1 : guess;
        if (rule && !check_rule(rule, item, &step, fault))
            return false;
    }
    return has_required(r, value, seen, at, fault);
}

static bool type_fits(const struct rule *r, const cJSON *value)
{
    unsigned type = r->target && r->target->type ? r->target->type : r->type;
    return !type || has_type(value, type);
}

/*
 * Of the alternatives that fail, the one of the value's type that came furthest tells most. When
 * none is of its type, each one's fault is told.
 */
static void report_none_of(const struct rule *r, const cJSON *value, const struct step *at,
                           struct schema_fault *fault)
{
    struct schema_fault each;
    struct buf reasons;
    size_t furthest = 0;
    bool typed = false;

    buf_init(&reasons, sizeof(fault->message) - 1);
    for (size_t i = 0; i < r->n_one_of; i++) {
        check_rule(r->one_of[i], value, at, &each);
        if (type_fits(r->one_of[i], value)) {
            size_t len = strlen(each.pointer);
            if (!typed || len > furthest) {
                *fault = each;
                furthest = len;
            }
            typed = true;
        } else {
            buf_printf(&reasons, "%s%s", reasons.len ? ", or " : "", each.message);
        }
    }
    if (!typed)
        report(fault, at, "%s", reasons.data);
    buf_release(&reasons);
}

/* Mostly one fits, and then it costs nothing to have no words for why the others do not. */
static bool check_one_of(const struct rule *r, const cJSON *value, const struct step *at,
                         struct schema_fault *fault)
{
    size_t matches = 0;
    for (size_t i = 0; i < r->n_one_of; i++)
        matches += check_rule(r->one_of[i], value, at, NULL);
    if (matches > 1)
        report(fault, at, "fits more than one of the allowed forms");
    else if (matches == 0 && fault)
        report_none_of(r, value, at, fault);
    return matches == 1;
}

static bool check_rule(const struct rule *r, const cJSON *value, const struct step *at,
                       struct schema_fault *fault)
{
    char found[128];
    if (r->target && !check_rule(r->target, value, at, fault))
        return false;
    if (r->type && !has_type(value, r->type))
        return fault && report(fault, at, "must be %s, is %s", type_phrase(r->type),
                               describe(value, found, sizeof(found)));
    if (r->constant && !cJSON_Compare(r->constant, value, true)) {
        char expected[128];
        return report(fault, at, "must be %s, is %s",
                      describe(r->constant, expected, sizeof(expected)),
                      describe(value, found, sizeof(found)));
    }
    if (r->enumeration && !check_enum(r, value, at, fault))
        return false;
    if (is(value, cJSON_Number) && !check_number(r, value, at, fault))
        return false;
    if (is(value, cJSON_String) && !check_string(r, value, at, fault))
        return false;
    if (is(value, cJSON_Array) && !check_array(r, value, at, fault))
        return false;
    if (is(value, cJSON_Object) && !check_object(r, value, at, fault))
        return false;
    return !r->one_of || check_one_of(r, value, at, fault);
}

bool schema_check(const struct schema *s, const cJSON *value, struct schema_fault *fault)
{
    return check_rule(s->root, value, NULL, fault);
}

bool schema_check_element(const struct schema *s, const char *key, size_t index,
                          const cJSON *element, struct schema_fault *fault)
{
    const struct rule *r = find_property(s->root->properties, s->root->n_properties, key);
    const struct step array = {.key = key}, at = {.parent = &array, .index = index};
    if (!r)
        return report(fault, NULL, "the schema has no '%s'", key);
    if ((double)index >= r->max_items)
        return report(fault, &array, "must have at most %.0f items, has more", r->max_items);
    return !r->items || check_rule(r->items, element, &at, fault);
}

bool schema_check_definition(const struct schema *s, const char *name, const cJSON *value,
                             struct schema_fault *fault)
{
    const struct rule *r = find_property(s->definitions, s->n_definitions, name);
    if (!r)
        return report(fault, NULL, "the schema defines no '%s'", name);
    return check_rule(r, value, NULL, fault);
}

enum gate_status schema_parse(const struct schema *s, const char *name, unsigned first_line,
                              const char *text, size_t len, enum gate_status status, cJSON **out,
                              struct gate_error *err)
{
    struct schema_fault fault;
    unsigned line, column;
    cJSON *value;

    enum gate_status parsed = json_parse_at(name, first_line, text, len, status, &value, err);
    if (parsed != GATE_OK)
        return parsed;
    if (schema_check(s, value, &fault)) {
        *out = value;
        return GATE_OK;
    }
    cJSON_Delete(value);
    const char *colon = fault.pointer[0] ? ": " : "";
    if (!json_locate(text, len, fault.pointer, fault.of_key, &line, &column))
        return gate_fail(err, status, "%s: %s%s%s", name, fault.pointer, colon, fault.message);
    return gate_fail(err, status, "%s:%u:%u: %s%s%s", name, first_line + line - 1, column,
                     fault.pointer, colon, fault.message);
}
