/* SPDX-License-Identifier: Apache-2.0 */
/* covered.c: see covered.h. */
#include "gate/document/covered.h"

#include <stdio.h>
#include <string.h>

#include "gate/document/fields_table.h"

const char *covered_op(size_t i)
{
    return field_ops[i];
}

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

void covered_add(struct covered_sums *sums, const char *op, const struct document_verify *verify)
{
    const struct field *group, *kind;
    size_t of = 0;
    while (of < COVERED_OPS && strcmp(field_ops[of], op) != 0)
        of++;
    if (of == COVERED_OPS || !verify || !verify->has_covered)
        return;
    struct document_covered one = verify->covered;
    sums->has[of] = true;
    for (size_t i = 0; (kind = class_at(i, &group)); i++)
        *count_of(&sums->of[of], group, kind) += larger(*count_of(&one, group, kind), 0);
    sums->pairs[of] = larger(sums->pairs[of], verify->pairs);
    sums->pairs_of[of] = larger(sums->pairs_of[of], verify->pairs_of);
}

bool covered_is_known(const struct covered_sums *sums)
{
    for (size_t i = 0; i < COVERED_OPS; i++)
        if (sums->has[i])
            return true;
    return false;
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
        for (size_t i = 0; i < COVERED_OPS; i++) {
            struct document_covered sum = sums->of[i];
            out->count[i] = *count_of(&sum, group, kind);
            any |= out->count[i] > 0;
        }
        if (any)
            return true;
    }
    return false;
}
