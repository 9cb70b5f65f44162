/*
 * schema.c: a JSON Schema becomes a tree of rules; see schema.h. A schema is a trusted input, a
 * value that is checked (schema_check.c) is not.
 */
#include "gate/base/schema_rules.h"

#include <math.h>
#include <stdlib.h>

#include "gate/base/embed.h"
#include "gate/base/json.h"

const struct schema_type schema_types[SCHEMA_N_TYPES] = {
    {"null", "null", TYPE_NULL},         {"boolean", "true or false", TYPE_BOOLEAN},
    {"number", "a number", TYPE_NUMBER}, {"integer", "an integer", TYPE_INTEGER},
    {"string", "a string", TYPE_STRING}, {"array", "an array", TYPE_ARRAY},
    {"object", "an object", TYPE_OBJECT}};

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
    for (size_t i = 0; cJSON_IsString(value) && i < SCHEMA_N_TYPES; i++) {
        if (strcmp(schema_types[i].name, value->valuestring) == 0) {
            r->type = schema_types[i].bit;
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

static void find_required_bits(struct rule *r)
{
    const cJSON *item;
    uint64_t bits = 0;
    cJSON_ArrayForEach (item, r->required) {
        size_t place = schema_place_of(r->properties, r->n_properties, item->valuestring, 0);
        if (place == r->n_properties || schema_bit_of(place) == 0)
            return;
        bits |= schema_bit_of(place);
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

/* A definition that is itself only a reference is refused: a ring of them would have no end. */
static bool resolve_references(struct schema *s, struct gate_error *err)
{
    for (struct rule *r = s->rules; r; r = r->next) {
        if (!r->reference)
            continue;
        r->target = schema_find_property(s->definitions, s->n_definitions, r->reference);
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
