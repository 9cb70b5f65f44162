/* SPDX-License-Identifier: Apache-2.0 */
/* edits.c: see edits.h. */
#include "tests/fuzz/edits.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/json.h"

#define MAX_EDITS 32
#define MAX_VALUES 4000 /* so that copies of copies end */

/* Values that programs stumble over. */
static const char *const words[] = {
    "null",
    "true",
    "0",
    "-1",
    "1",
    "1e-320",
    "1e308",
    "-1e308",
    "0.1",
    "2147483648",
    "9007199254740991",
    "9007199254740992",
    "-9223372036854775808",
    "18446744073709551616",
    "\"\"",
    "\"%s%n\"",
    "\"a/b\"",
    "\"../x\"",
    "\"\\u20ac\\ud83d\\ude00\"",
    "\"=1+1,\\\"\\r\\n\"",
    "\"<a>&\"",
    "{}",
    "[]",
    "[[]]",
    "[0,0]",
};

struct place {
    cJSON *item, *parent;
};

/* Counts down to the value. */
static bool find(cJSON *item, cJSON *parent, size_t *left, struct place *out)
{
    if ((*left)-- == 0) {
        *out = (struct place){item, parent};
        return true;
    }
    for (cJSON *child = item->child; child; child = child->next) {
        if (find(child, item, left, out))
            return true;
    }
    return false;
}

static size_t count(const cJSON *item)
{
    size_t n = 1;
    for (const cJSON *child = item->child; child; child = child->next)
        n += count(child);
    return n;
}

static struct place place_of(cJSON *document, size_t index)
{
    struct place place = {document, NULL};
    index %= count(document);
    find(document, NULL, &index, &place);
    return place;
}

/* The place keeps its name; `value` is taken. */
static void become(cJSON *item, cJSON *value)
{
    if (!value)
        return;
    cJSON_Delete(item->child);
    cJSON_free(item->valuestring);
    item->type = value->type;
    item->child = value->child;
    item->valuestring = value->valuestring;
    item->valueint = value->valueint;
    item->valuedouble = value->valuedouble;
    value->child = NULL;
    value->valuestring = NULL;
    cJSON_Delete(value);
}

struct input {
    const uint8_t *data;
    size_t size;
};

static unsigned take(struct input *in, size_t n)
{
    unsigned value = 0;
    for (; n > 0; n--) {
        value = value << 8 | (in->size > 0 ? in->data[0] : 0);
        if (in->size > 0) {
            in->data++;
            in->size--;
        }
    }
    return value;
}

static cJSON *take_string(struct input *in, size_t n)
{
    char text[256];
    n = n % sizeof(text) < in->size ? n % sizeof(text) : in->size;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)take(in, 1);
    text[n] = '\0';
    return cJSON_CreateString(text);
}

static cJSON *take_double(struct input *in)
{
    uint64_t bits = (uint64_t)take(in, 4) << 32;
    double value;
    bits |= take(in, 4);
    memcpy(&value, &bits, sizeof(value));
    return cJSON_CreateNumber(value);
}

static void edit(cJSON *document, struct input *in)
{
    unsigned what = take(in, 1);
    struct place at = place_of(document, take(in, 2));
    unsigned argument = take(in, 2);
    switch (what % 8) {
    case 0:
        if (at.parent)
            cJSON_Delete(cJSON_DetachItemViaPointer(at.parent, at.item));
        break;
    case 1:
        become(at.item, cJSON_Parse(words[argument % (sizeof(words) / sizeof(words[0]))]));
        break;
    case 2:
        become(at.item, cJSON_Duplicate(place_of(document, argument).item, true));
        break;
    case 3: /* once more; in an object that is a key twice */
        if (cJSON_IsArray(at.parent))
            cJSON_AddItemToArray(at.parent, cJSON_Duplicate(at.item, true));
        else if (at.parent)
            cJSON_AddItemToObject(at.parent, at.item->string, cJSON_Duplicate(at.item, true));
        break;
    case 4: /* these keep the type, so that more documents are let in */
        if (cJSON_IsNumber(at.item))
            become(at.item, take_double(in));
        break;
    case 5:
        if (cJSON_IsString(at.item))
            become(at.item, take_string(in, argument));
        break;
    case 6:
        if (cJSON_IsNumber(at.item))
            become(at.item, cJSON_CreateNumber((double)argument - 256));
        break;
    default:
        if (cJSON_IsNumber(at.item))
            become(at.item, cJSON_CreateNumber(at.item->valuedouble * (argument / 4096.0)));
        break;
    }
}

void edits_text(const cJSON *good, const uint8_t *data, size_t size, struct buf *out)
{
    struct input in = {data, size};
    if (size > 0 && data[0] == '{') {
        buf_append(out, data, size);
        return;
    }
    cJSON *document = cJSON_Duplicate(good, true);
    for (int i = 0; i < MAX_EDITS && in.size > 0 && count(document) < MAX_VALUES; i++)
        edit(document, &in);
    json_write(document, false, out);
    if (out->failed) /* a number that JSON has no word for */
        buf_clear(out);
    cJSON_Delete(document);
}

void fuzz_expect(int good, const char *what, const char *found)
{
    if (good)
        return;
    fprintf(stderr, "fuzz: expected %s, found: %s\n", what, found);
    abort();
}

static char folder[256], file[512];

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[600];
        snprintf(name, sizeof(name), "%s%s", file, ends[i]);
        unlink(name);
    }
    rmdir(folder);
}

const char *fuzz_file(const char *name)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/fuzz.XXXXXX", parent ? parent : "/tmp");
    fuzz_expect(mkdtemp(folder) != NULL, "a folder for temporary files", folder);
    snprintf(file, sizeof(file), "%s/%s", folder, name);
    atexit(remove_files);
    return file;
}
