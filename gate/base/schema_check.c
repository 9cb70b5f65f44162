/* schema_check.c: values are walked against the rules of a schema; see schema.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "gate/base/json.h"
#include "gate/base/schema_rules.h"
#include "gate/base/utf8.h"

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
    for (size_t i = 0; i < SCHEMA_N_TYPES; i++) {
        if (schema_types[i].bit == type)
            return schema_types[i].phrase;
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
                ? schema_same_text(item->valuestring, value->valuestring)
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
        size_t place = schema_place_of(r->properties, r->n_properties, item->string, guess);
        bool known = place < r->n_properties;
        if (!known && r->closed)
            return unknown_key(at, item->string, fault);
        const struct rule *rule = known ? r->properties[place].rule : r->additional;
        seen |= known ? schema_bit_of(place) : 0;
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

bool schema_check_definition(const struct schema *s, const char *name, const cJSON *value,
                             struct schema_fault *fault)
{
    const struct rule *r = schema_find_property(s->definitions, s->n_definitions, name);
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
    const char *colon = fault.pointer[0] ? ": " : "";
    bool found = json_locate(value, text, len, fault.pointer, fault.of_key, &line, &column);
    cJSON_Delete(value);
    if (!found)
        return gate_fail(err, status, "%s: %s%s%s", name, fault.pointer, colon, fault.message);
    return gate_fail(err, status, "%s:%u:%u: %s%s%s", name, first_line + line - 1, column,
                     fault.pointer, colon, fault.message);
}
