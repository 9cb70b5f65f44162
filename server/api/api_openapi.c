/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_openapi.c: the description of this API, as OpenAPI.
 *
 * Lists are described by their statements (rows.h). The other addresses are in openapi_parts.json,
 * in a short form: `tags` is one; `parameters` are names of components; `codes` are statuses that
 * have a response of their own among the components; `answer` is the content of status 200. A
 * parameter may be "IN NAME SCHEMA: what it is", with `required` before the colon. A schema may be
 * "NAME: what it is", of a type of JSON, of a count, or of a schema of the document; "NAME null"
 * may be null, "[NAME]" is an array of them. {"object": {...}} has these members and no others, all
 * of them but those with a '?' behind their name; `columns` of a schema is a file of queries, whose
 * columns are members too. The token that an address takes is known to the table of routes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/embed.h"
#include "gate/base/json.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "server/request/auth.h"

static const struct {
    const char *code, *get, *other; /* the component: of a GET, of a write */
} answers[] = {
    {"304", "NotModified", ""},
    {"400", "BadRequest", "BadDocument"},
    {"401", "Unauthorized", "Unauthorized"},
    {"403", "", "Forbidden"},
    {"404", "NotFound", "NotFound"},
    {"409", "", "Conflict"},
    {"413", "", "TooLong"},
    {"415", "", "UnsupportedType"},
    {"422", "", "WrongHash"},
    {"429", "TooMany", "TooMany"},
    {"503", "Unavailable", "Unavailable"},
    {"507", "", "NoSpace"},
};

static cJSON *text_of(cJSON *object, const char *key, const char *text)
{
    return cJSON_AddStringToObject(object, key, text);
}

static cJSON *reference(const char *kind, const char *name)
{
    char path[80];
    cJSON *object = cJSON_CreateObject();
    snprintf(path, sizeof path, "#/components/%s/%s", kind, name);
    text_of(object, "$ref", path);
    return object;
}

static cJSON *typed(const char *type)
{
    cJSON *object = cJSON_CreateObject();
    text_of(object, "type", type);
    return object;
}

/* ---- the short form ---- */

static cJSON *schema_named(const char *name)
{
    if (rows_is_one_of(name, "string integer number boolean object null"))
        return typed(name);
    if (strcmp(name, "count") != 0)
        return reference("schemas", name);
    cJSON *count = typed("integer");
    cJSON_AddNumberToObject(count, "minimum", 0);
    cJSON_AddNumberToObject(count, "maximum", JSON_MAX_SAFE_INTEGER);
    return count;
}

static cJSON *or_null(cJSON *schema)
{
    cJSON *both = cJSON_CreateArray(), *type = cJSON_DetachItemFromObject(schema, "type");
    cJSON *out = type ? schema : cJSON_CreateObject();
    cJSON_AddItemToArray(both, type ? type : schema);
    cJSON_AddItemToArray(both, type ? cJSON_CreateString("null") : typed("null"));
    cJSON_AddItemToObject(out, type ? "type" : "oneOf", both);
    return out;
}

static cJSON *short_schema(const char *text)
{
    char name[40];
    bool is_array = text[0] == '[';
    const char *at = text + is_array, *doc = strstr(text, ": ");
    size_t n = strcspn(at, " ]:");
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    cJSON *schema = schema_named(name);
    if (!strncmp(at + n, " null", 5))
        schema = or_null(schema);
    if (is_array) {
        cJSON *array = typed("array");
        cJSON_AddItemToObject(array, "items", schema);
        schema = array;
    }
    if (doc)
        text_of(schema, "description", doc + 2);
    return schema;
}

static cJSON *short_parameter(const char *text)
{
    char in[8], name[24], schema[40];
    const char *doc = strstr(text, ": ");
    cJSON *parameter = cJSON_CreateObject();
    if (!doc || sscanf(text, "%7s %23s %39[^ :]", in, name, schema) != 3)
        return parameter;
    text_of(parameter, "name", name);
    text_of(parameter, "in", in);
    text_of(parameter, "description", doc + 2);
    cJSON_AddItemToObject(parameter, "schema", schema_named(schema));
    if (!strcmp(in, "path") || !strncmp(doc - 9, " required", 9))
        cJSON_AddTrueToObject(parameter, "required");
    return parameter;
}

/* What a text in a value of the short form says. */
enum place { PLAIN, SCHEMA, SCHEMAS };

static enum place place_of(const char *key)
{
    if (key && rows_is_one_of(key, "items schema"))
        return SCHEMA;
    return key && rows_is_one_of(key, "schemas properties oneOf anyOf object") ? SCHEMAS : PLAIN;
}

/* From {"object": ...}: the names of the members lose their '?'. */
static void add_object(cJSON *schema, cJSON *members)
{
    cJSON *member, *required = cJSON_CreateArray();
    text_of(schema, "type", "object");
    cJSON_ArrayForEach (member, members) {
        char *mark = strchr(member->string, '?');
        if (mark)
            *mark = '\0';
        else
            cJSON_AddItemToArray(required, cJSON_CreateString(member->string));
    }
    if (required->child)
        cJSON_AddItemToObject(schema, "required", required);
    else
        cJSON_Delete(required);
    cJSON_AddFalseToObject(schema, "additionalProperties");
    cJSON_AddItemToObject(schema, "properties", members);
}

/* The same in full. */
static cJSON *spell(const cJSON *in, enum place place)
{
    const cJSON *child;
    if (cJSON_IsString(in) && place == SCHEMA)
        return short_schema(in->valuestring);
    if (!cJSON_IsObject(in) && !cJSON_IsArray(in))
        return cJSON_Duplicate(in, true);
    cJSON *out = cJSON_IsArray(in) ? cJSON_CreateArray() : cJSON_CreateObject();
    cJSON_ArrayForEach (child, in) {
        cJSON *item = spell(child, place == SCHEMAS ? SCHEMA : place_of(child->string));
        if (cJSON_IsArray(in))
            cJSON_AddItemToArray(out, item);
        else if (place != SCHEMAS && !strcmp(child->string, "object"))
            add_object(out, item);
        else
            cJSON_AddItemToObject(out, child->string, item);
    }
    return out;
}

/* ---- what is common ---- */

static void add_codes(cJSON *operation, const char *method, const char *codes)
{
    cJSON *responses = cJSON_GetObjectItem(operation, "responses");
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (strstr(codes, answers[i].code))
            cJSON_AddItemToObject(
                responses, answers[i].code,
                reference("responses", !strcmp(method, "get") ? answers[i].get : answers[i].other));
    }
    if (!strstr(codes, "304"))
        return;
    cJSON *headers = cJSON_AddObjectToObject(cJSON_GetObjectItem(responses, "200"), "headers");
    cJSON *tag = cJSON_AddObjectToObject(headers, "ETag");
    text_of(tag, "description", "strong");
    cJSON_AddItemToObject(tag, "schema", typed("string"));
}

static void add_security(cJSON *operation, unsigned scope)
{
    char words[AUTH_MAX_SCOPES];
    if (scope == 0)
        return;
    cJSON *security = cJSON_AddArrayToObject(operation, "security");
    if (scope == TOKEN_READ)
        cJSON_AddItemToArray(security, cJSON_CreateObject());
    cJSON *way = cJSON_CreateObject();
    cJSON_AddItemToArray(security, way);
    auth_scope_text(scope, words);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(way, "token"), cJSON_CreateString(words));
}

/* ---- lists ---- */

static cJSON *schema_of(const struct rows_column *column)
{
    char text[280];
    snprintf(text, sizeof text, "%s%s: %.*s",
             column->type == ROWS_JSON   ? column->schema
             : column->type == ROWS_TEXT ? "string"
                                         : rows_type_names[column->type],
             column->is_nullable ? " null" : "", column->doc_len, column->doc);
    return short_schema(text);
}

static cJSON *object_schema(void)
{
    cJSON *object = typed("object");
    cJSON_AddFalseToObject(object, "additionalProperties");
    cJSON_AddObjectToObject(object, "properties");
    return object;
}

/* Adds the columns to an object's schema, each to the object that it is in. */
static void add_columns(cJSON *object, const struct rows_column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cJSON *at = cJSON_GetObjectItem(object, "properties");
        if (columns[i].is_hidden)
            continue;
        for (int depth = 0; depth < ROWS_MAX_NEST && columns[i].group[depth][0]; depth++) {
            cJSON *inner = cJSON_GetObjectItemCaseSensitive(at, columns[i].group[depth]);
            if (!inner) {
                inner = object_schema();
                cJSON_AddItemToObject(at, columns[i].group[depth], inner);
            }
            at = cJSON_GetObjectItem(inner, "properties");
        }
        cJSON_AddItemToObject(at, columns[i].name, schema_of(&columns[i]));
    }
}

static cJSON *add_parameter(cJSON *operation, const char *name, const char *doc, const char *type)
{
    cJSON *parameters = cJSON_GetObjectItem(operation, "parameters");
    cJSON *parameter = cJSON_CreateObject();
    cJSON_AddItemToArray(parameters, parameter);
    text_of(parameter, "name", name);
    text_of(parameter, "in", "query");
    text_of(parameter, "description", doc);
    cJSON *schema = typed(type);
    cJSON_AddItemToObject(parameter, "schema", schema);
    return schema;
}

static void add_words(cJSON *schema, const char *words)
{
    bool are_numbers = words[0] >= '0' && words[0] <= '9';
    cJSON *list = cJSON_AddArrayToObject(schema, "enum");
    cJSON_DeleteItemFromObject(schema, "type");
    for (const char *at = words; *at; at += strspn(at, " ")) {
        char word[32];
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        cJSON_AddItemToArray(list, are_numbers ? cJSON_CreateNumber(word[0] - '0')
                                               : cJSON_CreateString(word));
        at += n;
    }
}

static void add_lengths(cJSON *schema, int least, int most)
{
    cJSON_AddNumberToObject(schema, "minLength", least);
    cJSON_AddNumberToObject(schema, "maxLength", most);
}

static void add_own_parameter(cJSON *operation, const struct rows_parameter *p)
{
    char pattern[80];
    cJSON *schema = add_parameter(operation, p->name, p->doc, "string");
    if (p->words) {
        add_words(schema, p->words);
    } else if (p->more) {
        snprintf(pattern, sizeof pattern, "^[a-z0-9][a-z0-9%s]*$", p->more);
        text_of(schema, "pattern", pattern);
        add_lengths(schema, 1, (int)p->max);
    } else if (!strcmp(p->name, "commit")) {
        text_of(schema, "pattern", "^[0-9a-f]{7,40}$");
    } else if (!strcmp(p->name, "q")) {
        text_of(schema, "pattern", "^[a-z0-9_./+ -]*$");
        add_lengths(schema, 0, 160);
    } else {
        add_lengths(schema, strcmp(p->name, "branch") != 0, 400);
    }
    if (!strcmp(p->name, "branch"))
        add_words(add_parameter(operation, "main", "1: only runs of the main branch", "integer"),
                  "0 1");
}

static void add_parameters(cJSON *operation, const struct rows_query *q)
{
    cJSON *schema;
    cJSON_AddArrayToObject(operation, "parameters");
    for (size_t i = 0; i < q->n_parameters; i++)
        add_own_parameter(operation, q->parameters[i]);
    schema = add_parameter(operation, "columns", "members of a row, with commas between", "string");
    text_of(schema, "pattern", "^[a-z0-9_]+(,[a-z0-9_]+)*$");
    size_t i = 0;
    while (q->columns[i].is_hidden)
        i++;
    text_of(schema, "default", q->columns[i].name);
    if (q->most > 0) {
        schema = add_parameter(operation, "limit", "rows of a page", "integer");
        cJSON_AddNumberToObject(schema, "minimum", 1);
        cJSON_AddNumberToObject(schema, "maximum", q->most);
        cJSON_AddNumberToObject(schema, "default", q->usual);
    }
    if (q->n_keys > 0)
        add_lengths(add_parameter(operation, "after", "the `next` of an earlier page", "string"), 1,
                    400);
    add_words(add_parameter(operation, "format", "rows: the rows alone", "string"),
              "json rows csv");
}

static void add_rows(cJSON *operation, const struct rows_query *q)
{
    cJSON *responses = cJSON_AddObjectToObject(operation, "responses");
    cJSON *good = cJSON_AddObjectToObject(responses, "200");
    text_of(good, "description", "as asked");
    cJSON *content = cJSON_AddObjectToObject(good, "content");
    cJSON *json = cJSON_AddObjectToObject(content, "application/json");
    cJSON *forms = cJSON_AddArrayToObject(cJSON_AddObjectToObject(json, "schema"), "oneOf");
    cJSON *whole = object_schema(), *rows = typed("array");
    cJSON *members = cJSON_GetObjectItem(whole, "properties");
    cJSON_AddItemToArray(forms, whole);
    cJSON_AddItemToObject(rows, "items", reference("schemas", q->name));
    cJSON_AddItemToObject(members, q->name, cJSON_Duplicate(rows, true));
    add_columns(whole, q->members, q->n_members);
    if (q->n_keys > 0)
        cJSON_AddItemToObject(members, "next", reference("schemas", "next"));
    cJSON_AddItemToArray(forms, rows);
    cJSON *csv = cJSON_AddObjectToObject(content, "text/csv");
    cJSON_AddItemToObject(csv, "schema", typed("string"));
}

static void add_list(cJSON *document, const struct route *route)
{
    const struct rows_query *q = rows_query(route->query);
    cJSON *paths = cJSON_GetObjectItem(document, "paths"), *row = object_schema();
    cJSON *schemas = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "components"), "schemas");
    char id[40];
    if (!q) {
        cJSON_Delete(row);
        return;
    }
    cJSON *item = cJSON_GetObjectItemCaseSensitive(paths, route->path);
    if (!item)
        item = cJSON_AddObjectToObject(paths, route->path);
    cJSON *operation = cJSON_AddObjectToObject(item, "get");
    snprintf(id, sizeof id, "list_%s", q->name);
    text_of(operation, "operationId", id);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(operation, "tags"), cJSON_CreateString("lists"));
    text_of(operation, "summary", route->what);
    add_parameters(operation, q);
    add_rows(operation, q);
    add_codes(operation, "get", "304 400 401 429 503");
    add_security(operation, route->scope);
    add_columns(row, q->columns, q->n_columns);
    cJSON_AddItemToObject(schemas, q->name, row);
}

/* A schema whose `columns` name a file has the members of its rows too. */
static void add_columns_of_schemas(cJSON *schemas)
{
    cJSON *schema;
    cJSON_ArrayForEach (schema, schemas) {
        const struct rows_query *q = rows_query(json_string(schema, "columns", ""));
        if (q)
            add_columns(schema, q->columns, q->n_columns);
        cJSON_DeleteItemFromObject(schema, "columns");
    }
}

/* The columns of a trend, and their names. */
static void add_trend(cJSON *document)
{
    const struct rows_query *q = rows_query("trend_row.sql");
    cJSON *components = cJSON_GetObjectItem(document, "components");
    cJSON *schemas = cJSON_GetObjectItem(components, "schemas");
    cJSON *arrays = cJSON_GetObjectItem(cJSON_GetObjectItem(schemas, "TrendColumns"), "properties");
    cJSON *names = cJSON_GetObjectItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(components, "parameters"), "columns"), "schema");
    names = cJSON_GetObjectItem(cJSON_GetObjectItem(names, "items"), "enum");
    add_columns_of_schemas(schemas);
    for (size_t i = 0; q && i < q->n_columns; i++) {
        cJSON *array = typed("array");
        cJSON_AddItemToObject(array, "items", schema_of(&q->columns[i]));
        cJSON_AddItemToObject(arrays, q->columns[i].name, array);
        cJSON_AddItemToArray(names, cJSON_CreateString(q->columns[i].name));
    }
}

/* ---- the others ---- */

/* What of an operation the table of routes says, and those above. */
static void complete(cJSON *operation, const char *path)
{
    const char *method = operation->string, *rest;
    char upper[8] = "";
    cJSON *name, *names = cJSON_DetachItemFromObject(operation, "parameters");
    cJSON *parameters = names ? cJSON_AddArrayToObject(operation, "parameters") : NULL;
    cJSON_ArrayForEach (name, names)
        cJSON_AddItemToArray(parameters, reference("parameters", name->valuestring));
    cJSON_Delete(names);
    cJSON *answer = cJSON_DetachItemFromObject(operation, "answer"), *tags = cJSON_CreateArray();
    cJSON *codes = cJSON_DetachItemFromObject(operation, "codes");
    if (!cJSON_HasObjectItem(operation, "responses"))
        cJSON_AddObjectToObject(operation, "responses");
    if (answer) {
        cJSON *good = cJSON_AddObjectToObject(cJSON_GetObjectItem(operation, "responses"), "200");
        text_of(good, "description", "as asked");
        cJSON_AddItemToObject(good, "content", answer);
    }
    add_codes(operation, method, cJSON_GetStringValue(codes));
    cJSON_Delete(codes);
    cJSON_AddItemToArray(tags, cJSON_DetachItemFromObject(operation, "tags"));
    cJSON_AddItemToObject(operation, "tags", tags);
    for (size_t i = 0; method[i] && i < sizeof upper - 1; i++)
        upper[i] = (char)(method[i] - 'a' + 'A');
    const struct route *route = route_find(upper, path, &rest);
    add_security(operation, route ? route->scope : 0);
}

enum gate_status get_openapi(struct call *c)
{
    cJSON *parts = NULL, *path, *operation, *next;
    enum gate_status status = json_parse("openapi_parts.json", (const char *)embedded_api[0].data,
                                         embedded_api[0].size, GATE_INTERNAL, &parts, &c->err);
    if (status)
        return status;
    cJSON *document = spell(parts, PLAIN);
    cJSON_Delete(parts);
    cJSON_ArrayForEach (path, cJSON_GetObjectItem(document, "paths")) {
        cJSON_ArrayForEach (operation, path)
            complete(operation, path->string);
    }
    cJSON *named = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "components"), "parameters");
    for (cJSON *parameter = named ? named->child : NULL; parameter; parameter = next) {
        next = parameter->next;
        if (cJSON_IsString(parameter))
            cJSON_ReplaceItemInObjectCaseSensitive(named, parameter->string,
                                                   short_parameter(parameter->valuestring));
    }
    for (size_t i = 0; route_at(i); i++) {
        if (route_at(i)->query)
            add_list(document, route_at(i));
    }
    add_trend(document);
    json_write(document, false, c->emit.out);
    cJSON_Delete(document);
    return GATE_OK;
}
