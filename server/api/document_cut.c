/* SPDX-License-Identifier: Apache-2.0 */
/* document_cut.c: see document_cut.h. */
#include "server/api/document_cut.h"

#include <string.h>

struct span {
    const char *at, *end;
};

static const char *skip_blank(struct span s)
{
    while (s.at < s.end && strchr(" \t\r\n", *s.at) && *s.at)
        s.at++;
    return s.at;
}

/* From the opening quote to behind the closing one. */
static const char *skip_string(struct span s)
{
    for (s.at++; s.at < s.end && *s.at != '"'; s.at++)
        s.at += *s.at == '\\';
    return s.at < s.end ? s.at + 1 : s.end;
}

/* Behind a value; of a number or a word, where the next delimiter is. */
static const char *skip_value(struct span s)
{
    size_t depth = 0;
    while (s.at < s.end) {
        char c = *s.at;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (depth == 0 && (closes || c == ',' || skip_blank(s) > s.at))
            return s.at;
        depth += opens;
        depth -= closes;
        s.at = c == '"' ? skip_string(s) : s.at + 1;
        if (depth == 0 && (closes || c == '"'))
            return s.at;
    }
    return s.end;
}

/* The next element or member behind `s.at`, which is at an opening bracket or a comma; false: there
 * is none. */
static bool next_value(struct span *s, struct span *value)
{
    s->at = skip_blank((struct span){s->at + 1, s->end});
    *value = (struct span){s->at, skip_value(*s)};
    return value->at < value->end;
}

/* To the comma behind a value; false: it was the last one. */
static bool go_on(struct span *s, const char *end)
{
    s->at = skip_blank((struct span){end, s->end});
    return s->at < s->end && *s->at == ',';
}

static bool is_text(struct span s, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(s.end - s.at) == n + 2 && *s.at == '"' && !memcmp(s.at + 1, text, n);
}

static bool find_member(struct span object, const char *key, struct span *value)
{
    struct span name;
    if (object.at == object.end || *object.at != '{')
        return false;
    do {
        if (!next_value(&object, &name))
            return false;
        object.at = skip_blank((struct span){name.end, object.end});
        if (object.at == object.end || *object.at != ':' || !next_value(&object, value))
            return false;
        if (is_text(name, key))
            return true;
    } while (go_on(&object, value->end));
    return false;
}

static bool is_other(struct span item, const char *case_id)
{
    struct span id;
    return find_member(item, "id", &id) && *id.at == '"' &&
           !memchr(id.at, '\\', (size_t)(id.end - id.at)) && !is_text(id, case_id);
}

bool document_cut(const char *text, size_t len, const char *case_id, struct buf *out)
{
    struct span whole = {text, text + len}, cases, item;
    size_t n = 0;
    whole.at = skip_blank(whole);
    if (!find_member(whole, "cases", &cases) || *cases.at != '[')
        return false;
    const char *end = cases.end;
    buf_append(out, text, (size_t)(cases.at + 1 - text));
    while (next_value(&cases, &item)) {
        if (!is_other(item, case_id)) {
            buf_puts(out, n++ > 0 ? "," : "");
            buf_append(out, item.at, (size_t)(item.end - item.at));
        }
        if (!go_on(&cases, item.end))
            break;
    }
    buf_append(out, end - 1, (size_t)(text + len - (end - 1)));
    return !out->failed;
}
