/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/suite.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/cases/suite_file.h"

#define SUITE_MAX_BYTES ((size_t)16 << 20)

const cJSON *suite_case_values(const struct suite_case *c, const char *group, const char *name)
{
    const cJSON *literals = cJSON_GetObjectItemCaseSensitive(c->object, group);
    return cJSON_GetObjectItemCaseSensitive(literals, name);
}

/* Each literal must name a tensor of its group and have as many values as that has elements. */
static enum gate_status check_literals(const struct suite_case *c, const char *group,
                                       bool is_output, char *pointer, size_t pointer_size,
                                       struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(&c->problem, tensors);
    const cJSON *literal;
    cJSON_ArrayForEach (literal, cJSON_GetObjectItemCaseSensitive(c->object, group)) {
        snprintf(pointer, pointer_size, "/%s/%s", group, literal->string);
        const struct problem_tensor *found = NULL;
        for (unsigned i = 0; i < n; i++)
            if (tensors[i].is_output == is_output && !strcmp(tensors[i].name, literal->string))
                found = &tensors[i];
        if (!found)
            return gate_fail(err, GATE_USAGE, "'%s' has no %s '%s'", problem_op_name(c->problem.op),
                             is_output ? "output" : "input", literal->string);
        if (cJSON_GetArraySize(literal) != problem_tensor_elements(found))
            return gate_fail(err, GATE_USAGE, "'%s' has %lld elements, here are %d values",
                             literal->string, (long long)problem_tensor_elements(found),
                             cJSON_GetArraySize(literal));
    }
    return GATE_OK;
}

enum gate_status suite_case_read(const cJSON *object, struct suite_case *out, char *pointer,
                                 size_t pointer_size, struct gate_error *err)
{
    const char *key = NULL;
    *out = (struct suite_case){.object = object, .threshold = json_number(object, "threshold", 0)};
    enum gate_status status = problem_from_json(object, &out->problem, &key, err);
    if (status) {
        snprintf(pointer, pointer_size, "%s%s",
                 cJSON_GetObjectItemCaseSensitive(object, key) ? "/" : "",
                 cJSON_GetObjectItemCaseSensitive(object, key) ? key : "");
        return status;
    }
    problem_id(&out->problem, out->id);
    status = check_literals(out, "inputs", false, pointer, pointer_size, err);
    if (!status)
        status = check_literals(out, "expect", true, pointer, pointer_size, err);
    return status;
}

struct source {
    const char *path;
    const struct buf *text;
    const cJSON *document;
};

static enum gate_status fail_at(const struct source *src, const char *pointer, bool of_key,
                                struct gate_error *err)
{
    unsigned line = 1, column = 1;
    json_locate(src->document, src->text->data, src->text->len, pointer, of_key, &line, &column);
    return gate_fail_context(err, "%s:%u:%u", src->path, line, column);
}

static int compare_ids(const void *a, const void *b)
{
    const struct suite_case *x = *(const struct suite_case *const *)a;
    const struct suite_case *y = *(const struct suite_case *const *)b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x > y) - (x < y);
}

static enum gate_status check_duplicates(const struct suite *s, const struct source *src,
                                         struct gate_error *err)
{
    const struct suite_case **sorted = malloc(s->n_cases * sizeof *sorted);
    if (!sorted)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < s->n_cases; i++)
        sorted[i] = &s->cases[i];
    qsort(sorted, s->n_cases, sizeof *sorted, compare_ids);
    enum gate_status status = GATE_OK;
    for (size_t i = 1; i < s->n_cases && !status; i++) {
        if (strcmp(sorted[i - 1]->id, sorted[i]->id) != 0)
            continue;
        char pointer[64];
        snprintf(pointer, sizeof pointer, "/cases/%zu", (size_t)(sorted[i] - s->cases));
        gate_fail(err, GATE_USAGE, "case '%s' is there already; remove one of the two",
                  sorted[i]->id);
        status = fail_at(src, pointer, false, err);
    }
    free(sorted);
    return status;
}

static enum gate_status read_cases(struct suite *s, const struct source *src,
                                   struct gate_error *err)
{
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(s->document, "cases");
    s->cases = calloc((size_t)cJSON_GetArraySize(cases), sizeof *s->cases);
    if (!s->cases)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    const cJSON *object;
    cJSON_ArrayForEach (object, cases) {
        char inner[256] = "", pointer[320];
        enum gate_status status =
            suite_case_read(object, &s->cases[s->n_cases], inner, sizeof inner, err);
        if (status) {
            snprintf(pointer, sizeof pointer, "/cases/%zu%s", s->n_cases, inner);
            return fail_at(src, pointer, false, err);
        }
        s->n_cases++;
    }
    return check_duplicates(s, src, err);
}

enum gate_status suite_load(const char *path, struct suite *out, struct gate_error *err)
{
    struct suite s = {0};
    struct buf text;
    buf_init(&text, SUITE_MAX_BYTES);
    struct source src = {.path = path, .text = &text};
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status =
            fields_parse(&suite_file, path, 1, text.data, text.len, GATE_USAGE, &s.document, err);
    src.document = s.document;
    if (!status)
        status = read_cases(&s, &src, err);
    buf_release(&text);
    if (status) {
        suite_free(&s);
        return status;
    }
    s.name = json_string(s.document, "name", "");
    *out = s;
    return GATE_OK;
}

void suite_free(struct suite *s)
{
    cJSON_Delete(s->document);
    free(s->cases);
    *s = (struct suite){0};
}

size_t suite_filter(struct suite *s, const char *pattern)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_cases; i++)
        if (!fnmatch(pattern, s->cases[i].id, 0))
            s->cases[kept++] = s->cases[i];
    return s->n_cases = kept;
}
