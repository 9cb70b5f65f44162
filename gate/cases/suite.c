/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/suite.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/cases/op_file.h"
#include "gate/cases/suite_file.h"

#define SUITE_MAX_BYTES ((size_t)16 << 20)

static const struct case_values *find_values(const struct case_values *list, size_t n,
                                             const char *tensor)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].tensor, tensor))
            return &list[i];
    return NULL;
}

const struct case_values *suite_case_input(const struct suite_case *c, const char *name)
{
    return c->file ? find_values(c->file->inputs, c->file->n_inputs, name) : NULL;
}

const struct case_values *suite_case_expected(const struct suite_case *c, const char *name)
{
    return c->file ? find_values(c->file->expect, c->file->n_expect, name) : NULL;
}

/* Literal values must name a tensor of the op and be as many as that has elements. */
static enum gate_status check_literals(const struct suite_case *c, const struct case_values *v,
                                       bool is_output, struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(&c->problem, tensors);
    const struct problem_tensor *found = NULL;
    char names[PROBLEM_MAX_TENSORS * 24] = "";
    for (unsigned i = 0; i < n; i++) {
        if (tensors[i].is_output != is_output)
            continue;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", tensors[i].name);
        if (!strcmp(tensors[i].name, v->tensor))
            found = &tensors[i];
    }
    if (!found)
        return gate_fail(err, GATE_USAGE, "'%s' has no %s '%s'; it has %s",
                         problem_op_name(&c->problem), is_output ? "output" : "input", v->tensor,
                         names);
    if ((int64_t)v->n_values != problem_tensor_elements(found))
        return gate_fail(err, GATE_USAGE, "'%s' has %lld elements, here are %zu values", v->tensor,
                         (long long)problem_tensor_elements(found), v->n_values);
    return GATE_OK;
}

enum gate_status suite_case_read(const struct case_file *file, struct suite_case *out,
                                 char *pointer, size_t pointer_size, struct gate_error *err)
{
    const char *key = NULL;
    *out = (struct suite_case){.file = file,
                               .threshold = isnan(file->threshold) ? 0 : file->threshold};
    enum gate_status status = problem_of_case(file, &out->problem, &key, err);
    if (status) {
        snprintf(pointer, pointer_size, "%s%s", key ? "/" : "", key ? key : "");
        return status;
    }
    problem_id(&out->problem, out->id);
    for (size_t i = 0; i < file->n_inputs && !status; i++) {
        snprintf(pointer, pointer_size, "/inputs/%s", file->inputs[i].tensor);
        status = check_literals(out, &file->inputs[i], false, err);
    }
    for (size_t i = 0; i < file->n_expect && !status; i++) {
        snprintf(pointer, pointer_size, "/expect/%s", file->expect[i].tensor);
        status = check_literals(out, &file->expect[i], true, err);
    }
    return status;
}

struct source {
    const char *path;
    const struct buf *text;
    const cJSON *tree;
};

static enum gate_status fail_at(const struct source *src, const char *pointer, bool of_key,
                                struct gate_error *err)
{
    unsigned line = 1, column = 1;
    json_locate(src->tree, src->text->data, src->text->len, pointer, of_key, &line, &column);
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
    s->cases = calloc(s->file.n_cases, sizeof *s->cases);
    if (!s->cases)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (; s->n_cases < s->file.n_cases; s->n_cases++) {
        char inner[256] = "", pointer[320];
        enum gate_status status = suite_case_read(&s->file.cases[s->n_cases], &s->cases[s->n_cases],
                                                  inner, sizeof inner, err);
        if (status) {
            snprintf(pointer, sizeof pointer, "/cases/%zu%s", s->n_cases, inner);
            return fail_at(src, pointer, false, err);
        }
    }
    return check_duplicates(s, src, err);
}

/* Files are as seen from the suite's folder. */
static enum gate_status use_ops(const struct suite *s, const struct source *src, const char *place,
                                struct gate_error *err)
{
    const char *slash = strrchr(place, '/');
    for (size_t i = 0; i < s->file.n_ops; i++) {
        const int folder = slash && s->file.ops[i][0] != '/' ? (int)(slash - place) + 1 : 0;
        char path[PATHS_MAX], pointer[32];
        int n = snprintf(path, sizeof path, "%.*s%s", folder, place, s->file.ops[i]);
        enum gate_status status = (size_t)n < sizeof path
                                      ? own_op_use(path, err)
                                      : gate_fail(err, GATE_USAGE, "the path is too long");
        snprintf(pointer, sizeof pointer, "/ops/%zu", i);
        if (status)
            return status == GATE_IO ? fail_at(src, pointer, false, err) : status;
    }
    return GATE_OK;
}

enum gate_status suite_load(const char *path, struct suite *out, struct gate_error *err)
{
    return suite_load_copy(path, path, out, err);
}

enum gate_status suite_load_copy(const char *path, const char *place, struct suite *out,
                                 struct gate_error *err)
{
    struct suite s = {0};
    struct buf text;
    buf_init(&text, SUITE_MAX_BYTES);
    struct source src = {.path = path, .text = &text};
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status = fields_parse(&suite_file, path, 1, text.data, text.len, GATE_USAGE, &s.file,
                              &s.tree, err);
    src.tree = s.tree;
    if (!status)
        status = use_ops(&s, &src, place, err);
    if (!status)
        status = read_cases(&s, &src, err);
    buf_release(&text);
    if (status) {
        suite_free(&s);
        return status;
    }
    *out = s;
    return GATE_OK;
}

void suite_free(struct suite *s)
{
    fields_release(&suite_file, &s->file);
    cJSON_Delete(s->tree);
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
