/* SPDX-License-Identifier: Apache-2.0 */
/* values.c: see values.h. */
#include "gate/document/values.h"

#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"

/* ---- of a tree ---- */

struct value values_node(const cJSON *node)
{
    return (struct value){
        .kind = cJSON_IsString(node)   ? VALUE_TEXT
                : cJSON_IsNumber(node) ? VALUE_NUMBER
                : cJSON_IsTrue(node)   ? VALUE_TRUE
                : cJSON_IsFalse(node)  ? VALUE_FALSE
                : cJSON_IsArray(node)  ? VALUE_LIST
                : cJSON_IsObject(node) ? VALUE_OBJECT
                                       : VALUE_NULL,
        .key = node->string,
        .key_length = node->string ? strlen(node->string) : 0,
        .number = node->valuedouble,
        .text = node->valuestring,
        .node = node->child,
    };
}

/* ---- of a text ---- */

static const char *keep(struct values *v, const char *s, size_t n)
{
    char *copy = v->texts;
    memcpy(copy, s, n);
    copy[n] = '\0';
    v->texts += n + 1;
    return copy;
}

/* The string that the cursor is at, as a text of its own; NULL: out of memory. */
static const char *keep_string(struct values *v)
{
    const char *token = v->scan->text + v->scan->start;
    size_t n = v->scan->at - v->scan->start;
    if (!v->scan->escaped)
        return keep(v, token + 1, n - 2);
    cJSON *string = cJSON_ParseWithLength(token, n);
    const char *text = string ? keep(v, string->valuestring, strlen(string->valuestring)) : NULL;
    cJSON_Delete(string);
    return text;
}

static bool fail(struct values *v)
{
    v->no_memory = true;
    v->scan->fault = "out of memory"; /* there are no more values */
    return false;
}

static bool take_key(struct values *v, struct value *item)
{
    const char *token = v->scan->text + v->scan->start;
    item->key = token + 1;
    item->key_length = v->scan->at - v->scan->start - 2;
    if (!v->scan->escaped)
        return true;
    item->key = keep_string(v);
    item->key_length = item->key ? strlen(item->key) : 0;
    return item->key || fail(v);
}

static bool take_value(struct values *v, struct value *item)
{
    const char *token = v->scan->text + v->scan->start;
    switch (*token) {
    case '{':
        item->kind = VALUE_OBJECT;
        return true;
    case '[':
        item->kind = VALUE_LIST;
        return true;
    case '"':
        item->kind = VALUE_TEXT;
        item->text = keep_string(v);
        return item->text || fail(v);
    case 't':
        item->kind = VALUE_TRUE;
        return true;
    case 'f':
        item->kind = VALUE_FALSE;
        return true;
    case 'n':
        return true;
    default:
        item->kind = VALUE_NUMBER;
        item->number = json_read_number(token, v->scan->at - v->scan->start);
        return true;
    }
}

bool values_first(struct values *v, struct value *item)
{
    *item = (struct value){.kind = VALUE_NULL};
    return json_scan_next(v->scan) && take_value(v, item);
}

/* ---- both ---- */

bool values_next(struct values *v, struct value *of, struct value *item)
{
    *item = (struct value){.kind = VALUE_NULL};
    if (!v->scan) {
        if (!of->node)
            return false;
        *item = values_node(of->node);
        of->node = of->node->next;
        return true;
    }
    if (!json_scan_next(v->scan))
        return false;
    char first = v->scan->text[v->scan->start];
    if (first == ']' || first == '}')
        return false;
    if (of->kind == VALUE_OBJECT && (!take_key(v, item) || !json_scan_next(v->scan)))
        return false;
    return take_value(v, item);
}

void values_pass(struct values *v, struct value *value)
{
    struct value item;
    while ((value->kind == VALUE_LIST || value->kind == VALUE_OBJECT) &&
           values_next(v, value, &item))
        values_pass(v, &item);
}

const char *values_key(struct values *v, const struct value *item)
{
    bool in_text =
        v->scan && item->key >= v->scan->text && item->key < v->scan->text + v->scan->len;
    return in_text ? keep(v, item->key, item->key_length) : item->key;
}
