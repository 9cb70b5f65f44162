/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/mix.h"

#include <stdlib.h>
#include <string.h>

#include "gate/library/opcode.h"

static void count_all(struct mix *m, const struct listing *l, bool is_new)
{
    char opcode[MIX_OPCODE_SIZE];
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        listing_opcode(l->line[i], opcode, sizeof opcode);
        if (!strcmp(opcode, "NOP"))
            continue;
        while (k < m->n && strcmp(m->rows[k].opcode, opcode) != 0)
            k++;
        if (k == MIX_ROWS_MAX)
            continue;
        if (k == m->n) {
            m->rows[m->n++] = (struct mix_row){0};
            memcpy(m->rows[k].opcode, opcode, strlen(opcode) + 1);
        }
        *(is_new ? &m->rows[k].new : &m->rows[k].old) += 1;
    }
}

static size_t change_of(const struct mix_row *r)
{
    return r->new > r->old ? r->new - r->old : r->old - r->new;
}

static int compare_rows(const void *a, const void *b)
{
    const struct mix_row *x = a, *y = b;
    bool x_works = opcode_is_work(x->opcode), y_works = opcode_is_work(y->opcode);
    size_t x_change = change_of(x), y_change = change_of(y);
    if (!x_change != !y_change)
        return x_change ? -1 : 1;
    if (x_works != y_works)
        return x_works ? -1 : 1;
    if (x_change != y_change)
        return x_change > y_change ? -1 : 1;
    return strcmp(x->opcode, y->opcode);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct mix_row *)a)->opcode, ((const struct mix_row *)b)->opcode);
}

void mix_count(const struct listing *new, const struct listing *old, struct mix *out)
{
    bool both = new &&old;
    out->n = out->n_changed = 0;
    if (new)
        count_all(out, new, true);
    if (old)
        count_all(out, old, false);
    for (size_t i = 0; i < out->n && both; i++)
        out->n_changed += change_of(&out->rows[i]) > 0;
    qsort(out->rows, out->n, sizeof *out->rows, both ? compare_rows : compare_names);
}
