/* SPDX-License-Identifier: Apache-2.0 */
/* covered.c: see covered.h. */
#include "gate/document/covered.h"

#include <stdio.h>
#include <string.h>

#include "gate/document/fields_table.h"

/* Class `at` of all, and what it is one of. NULL: there are not so many. */
static const struct field *class_at(size_t at, const struct field **group)
{
    const struct shape *all = &document_covered_shape;
    for (size_t i = 0; i < all->n; i++) {
        *group = &all->fields[i];
        if (at < (*group)->shape->n)
            return &(*group)->shape->fields[at];
        at -= (*group)->shape->n;
    }
    return NULL;
}

static int64_t *count_of(struct document_covered *c, const struct field *group,
                         const struct field *kind)
{
    return (int64_t *)(void *)((char *)c + group->offset + kind->offset);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The sums of an op, in their place by name; NULL: there is no room for one more. */
static struct covered_op *sums_of(struct covered_sums *sums, const char *op)
{
    size_t at = 0;
    while (at < sums->n && strcmp(sums->of[at].name, op) < 0)
        at++;
    if (at < sums->n && !strcmp(sums->of[at].name, op))
        return &sums->of[at];
    if (sums->n == COVERED_OPS)
        return NULL;
    memmove(&sums->of[at + 1], &sums->of[at], (sums->n++ - at) * sizeof sums->of[0]);
    sums->of[at] = (struct covered_op){.pairs = 0};
    snprintf(sums->of[at].name, sizeof sums->of[at].name, "%s", op);
    return &sums->of[at];
}

void covered_add(struct covered_sums *sums, const char *op, const struct document_verify *verify)
{
    const struct field *group, *kind;
    struct covered_op *sum = verify && verify->has_covered ? sums_of(sums, op) : NULL;
    if (!sum)
        return;
    struct document_covered one = verify->covered;
    for (size_t i = 0; (kind = class_at(i, &group)); i++)
        *count_of(&sum->all, group, kind) += larger(*count_of(&one, group, kind), 0);
    sum->pairs = larger(sum->pairs, verify->pairs);
    sum->pairs_of = larger(sum->pairs_of, verify->pairs_of);
}

bool covered_next(const struct covered_sums *sums, size_t *at, struct covered_class *out)
{
    const struct field *group, *kind;
    while ((kind = class_at((*at)++, &group))) {
        bool any = false;
        out->what = group->key;
        snprintf(out->name, sizeof out->name, "%s", kind->key);
        for (char *c = out->name; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        for (size_t i = 0; i < sums->n; i++) {
            struct document_covered sum = sums->of[i].all;
            out->count[i] = *count_of(&sum, group, kind);
            any |= out->count[i] > 0;
        }
        if (any)
            return true;
    }
    return false;
}
