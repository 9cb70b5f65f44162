/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_openapi.c: the description of this API, as OpenAPI.
 *
 * Lists are described by their statements (rows.h). The other addresses are in openapi_parts.json,
 * in a short form: `parameters` are names of components; `codes` are statuses that
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

#include "gate/base/alloc.h"
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

static cJSON *short_schema(const char *text)
{
    char name[40];
    bool is_array = text[0] == '[';
    const char *at = text + is_array, *doc = strstr(text, ": ");
    size_t n = strcspn(at, " ]:");
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    cJSON *schema = schema_named(name);
    if (!strncmp(at + n, " null", 5)) {
        cJSON *both = cJSON_CreateArray(), *type = cJSON_DetachItemFromObject(schema, "type");
        cJSON_AddItemToArray(both, type ? type : schema);
        cJSON_AddItemToArray(both, type ? cJSON_CreateString("null") : typed("null"));
        schema = type ? schema : cJSON_CreateObject();
        cJSON_AddItemToObject(schema, type ? "type" : "oneOf", both);
    }
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
enum place { PLAIN, SCHEMA, SCHEMAS, PARAMETERS };

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
        bool is_parameter = place == PARAMETERS && cJSON_IsString(child);
        const char *key = child->string ? child->string : "";
        enum place inner = place == SCHEMAS || rows_is_one_of(key, "items schema") ? SCHEMA
                           : !strcmp(key, "parameters")                            ? PARAMETERS
                           : rows_is_one_of(key, "schemas properties oneOf anyOf object") ? SCHEMAS
                                                                                          : PLAIN;
        cJSON *item = is_parameter && cJSON_IsArray(in)
                          ? reference("parameters", child->valuestring)
                      : is_parameter ? short_parameter(child->valuestring)
                                     : spell(child, inner);
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

/* ---- lists, in the short form ---- */

/* "TYPE null: what it is" */
static void column_text(const struct rows_column *column, char out[280])
{
    snprintf(out, 280, "%s%s: %.*s",
             column->type == ROWS_JSON   ? column->schema
             : column->type == ROWS_TEXT ? "string"
                                         : rows_type_names[column->type],
             column->is_nullable ? " null" : "", column->doc_len, column->doc);
}

/* Adds the columns to the members of an {"object": ...}, each to the object that it is in. */
static void add_columns(cJSON *object, const struct rows_column *columns, size_t n)
{
    char name[40], text[280];
    for (size_t i = 0; i < n; i++) {
        cJSON *at = cJSON_GetObjectItem(object, "object");
        if (columns[i].is_hidden)
            continue;
        for (int depth = 0; depth < ROWS_MAX_NEST && columns[i].group[depth][0]; depth++) {
            snprintf(name, sizeof name, "%s?", columns[i].group[depth]);
            cJSON *inner = cJSON_GetObjectItemCaseSensitive(at, name);
            if (!inner)
                inner = cJSON_AddObjectToObject(at, name);
            at = cJSON_GetObjectItem(inner, "object");
            if (!at)
                at = cJSON_AddObjectToObject(inner, "object");
        }
        snprintf(name, sizeof name, "%s?", columns[i].name);
        column_text(&columns[i], text);
        text_of(at, name, text);
    }
}

static void put_parameter(struct buf *out, const char *name, const char *doc, const char *schema)
{
    buf_printf(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"description\":\"%s\",\"schema\":{%s}}",
               out->data[out->len - 1] == '[' ? "" : ",", name, doc, schema);
}

/* "a b" as "\"enum\":["a","b"]", and digits as numbers. */
static void put_words(struct buf *out, const char *words)
{
    const char *quote = words[0] >= '0' && words[0] <= '9' ? "" : "\"";
    buf_puts(out, "\"enum\":[");
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
        buf_printf(out, "%s%s%.*s%s", at == words ? "" : ",", quote, (int)strcspn(at, " "), at,
                   quote);
    buf_putc(out, ']');
}

static void put_own_parameter(struct buf *out, const struct rows_parameter *p)
{
    RELEASED_BY(buf_release) struct buf schema = buf_of(1000);
    if (p->words)
        put_words(&schema, p->words);
    else if (p->more)
        buf_printf(&schema,
                   "\"type\":\"string\",\"pattern\":\"^[a-z0-9][a-z0-9%s]*$\",\"minLength\":1,"
                   "\"maxLength\":%zu",
                   p->more, p->max);
    else
        buf_printf(&schema, "\"type\":\"string\",%s", p->schema);
    put_parameter(out, p->name, p->doc, schema.data);
    if (!strcmp(p->name, "branch"))
        put_parameter(out, "main", "1: only runs of the main branch", "\"enum\":[0,1]");
}

static void put_parameters(struct buf *out, const struct rows_query *q)
{
    char schema[120];
    size_t i = 0;
    for (size_t k = 0; k < q->n_parameters; k++)
        put_own_parameter(out, q->parameters[k]);
    while (q->columns[i].is_hidden)
        i++;
    snprintf(schema, sizeof schema,
             "\"type\":\"string\",\"pattern\":\"^[a-z0-9_]+(,[a-z0-9_]+)*$\",\"default\":\"%s\"",
             q->columns[i].name);
    put_parameter(out, "columns", "members of a row, with commas between", schema);
    snprintf(schema, sizeof schema,
             "\"type\":\"integer\",\"minimum\":1,\"maximum\":%d,\"default\":%d", q->most, q->usual);
    if (q->most > 0)
        put_parameter(out, "limit", "rows of a page", schema);
    if (q->n_keys > 0)
        put_parameter(out, "after", "the `next` of an earlier page",
                      "\"type\":\"string\",\"minLength\":1,\"maxLength\":400");
    put_parameter(out, "format", "rows: the rows alone", "\"enum\":[\"json\",\"rows\",\"csv\"]");
}

/* The operation of a list; the schema of its rows has the columns of its file. */
static enum gate_status add_list(cJSON *paths, cJSON *schemas, const struct route *route,
                                 struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 16);
    const struct rows_query *q = rows_query(route->query);
    cJSON *operation = NULL, *row, *item = cJSON_GetObjectItemCaseSensitive(paths, route->path);
    if (!q)
        return GATE_OK;
    buf_printf(&text, "{\"operationId\":\"list_%s\",\"tags\":[\"lists\"],\"parameters\":[",
               q->name);
    put_parameters(&text, q);
    buf_printf(&text,
               "],\"answer\":{\"application/json\":{\"schema\":{\"oneOf\":[{\"object\":{\"%s?\":"
               "\"[%s]\"}},\"[%s]\"]}},\"text/csv\":{\"schema\":\"string\"}},"
               "\"codes\":\"304 400 401 429 503\"}",
               q->name, q->name, q->name);
    TRY(json_parse(route->query, text.data, text.len, GATE_INTERNAL, &operation, err));
    text_of(operation, "summary", route->what);
    cJSON *json = cJSON_GetObjectItem(cJSON_GetObjectItem(operation, "answer"), "application/json");
    cJSON *whole = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "schema"), "oneOf")->child;
    add_columns(whole, q->members, q->n_members);
    if (q->n_keys > 0)
        text_of(cJSON_GetObjectItem(whole, "object"), "next?", "next");
    cJSON_AddItemToObject(item ? item : cJSON_AddObjectToObject(paths, route->path), "get",
                          operation);
    row = cJSON_AddObjectToObject(schemas, q->name);
    cJSON_AddObjectToObject(row, "object");
    text_of(row, "columns", route->query);
    return GATE_OK;
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
static void add_trend(cJSON *components, cJSON *schemas)
{
    const struct rows_query *q = rows_query("trend_row.sql");
    cJSON *arrays = cJSON_GetObjectItem(cJSON_GetObjectItem(schemas, "TrendColumns"), "object");
    cJSON *names = cJSON_GetObjectItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(components, "parameters"), "columns"), "schema");
    names = cJSON_GetObjectItem(cJSON_GetObjectItem(names, "items"), "enum");
    for (size_t i = 0; q && i < q->n_columns; i++) {
        char name[40], text[280];
        snprintf(name, sizeof name, "%s?", q->columns[i].name);
        column_text(&q->columns[i], text);
        cJSON *array = cJSON_AddObjectToObject(arrays, name);
        text_of(array, "type", "array");
        text_of(array, "items", text);
        cJSON_AddItemToArray(names, cJSON_CreateString(q->columns[i].name));
    }
}

/* ---- in full ---- */

/* What of an operation the table of routes says, and those above. */
static void complete(cJSON *operation, const char *path)
{
    const char *method = operation->string, *rest;
    char upper[8] = "";
    cJSON *answer = cJSON_DetachItemFromObject(operation, "answer");
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
    for (size_t i = 0; method[i] && i < sizeof upper - 1; i++)
        upper[i] = (char)(method[i] - 'a' + 'A');
    const struct route *route = route_find(upper, path, &rest);
    add_security(operation, route ? route->scope : 0);
}

enum gate_status get_openapi(struct call *c)
{
    cJSON *parts = NULL, *path, *operation;
    TRY(json_parse("openapi_parts.json", (const char *)embedded_api[0].data, embedded_api[0].size,
                   GATE_INTERNAL, &parts, &c->err));
    cJSON *components = cJSON_GetObjectItem(parts, "components");
    cJSON *schemas = cJSON_GetObjectItem(components, "schemas");
    enum gate_status status = GATE_OK;
    for (size_t i = 0; route_at(i) && !status; i++) {
        if (route_at(i)->query)
            status = add_list(cJSON_GetObjectItem(parts, "paths"), schemas, route_at(i), &c->err);
    }
    add_columns_of_schemas(schemas);
    add_trend(components, schemas);
    cJSON *document = spell(parts, PLAIN);
    cJSON_Delete(parts);
    cJSON_ArrayForEach (path, cJSON_GetObjectItem(document, "paths")) {
        cJSON_ArrayForEach (operation, path)
            complete(operation, path->string);
    }
    json_write(document, false, c->emit.out);
    cJSON_Delete(document);
    return status;
}
