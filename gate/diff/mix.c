/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/mix.h"

#include <stdlib.h>
#include <string.h>

static const char *const work[] = {
    "HGMMA",  "IGMMA", "QGMMA",   "BGMMA",   "HMMA",   "IMMA", "QMMA", "DMMA", "FFMA",
    "FFMA2",  "FMUL",  "FADD",    "HFMA2",   "HMUL2",  "DFMA", "MUFU", "SHFL", "LDG",
    "LDGSTS", "STG",   "UTMALDG", "UTMASTG", "UBLKCP", "LDS",  "LDSM", "STS",  "STSM",
    "LDL",    "STL",   "ATOM",    "ATOMG",   "ATOMS",  "RED",  "REDG", NULL};
static const char *const waits[] = {"BAR", "SYNCS", "MEMBAR", "UCGABAR_WAIT", NULL};

static bool is_any(const char *opcode, const char *const *names)
{
    while (*names && strcmp(opcode, *names) != 0)
        names++;
    return *names != NULL;
}

bool mix_is_work(const char *opcode)
{
    return is_any(opcode, work);
}

bool mix_is_watched(const char *opcode)
{
    return is_any(opcode, work) || is_any(opcode, waits);
}

static void count(struct mix *m, size_t loop, const char *opcode, bool is_new)
{
    size_t k = 0;
    while (k < m->n && (m->rows[k].loop != loop || strcmp(m->rows[k].opcode, opcode) != 0))
        k++;
    if (k == MIX_ROWS_MAX)
        return;
    if (k == m->n) {
        m->rows[m->n++] = (struct mix_row){.loop = loop};
        memcpy(m->rows[k].opcode, opcode, strlen(opcode) + 1);
    }
    *(is_new ? &m->rows[k].new : &m->rows[k].old) += 1;
}

static void count_all(struct mix *m, const struct listing *l, bool is_new, bool loops)
{
    char opcode[MIX_OPCODE_SIZE];
    for (size_t i = 0; i < l->n; i++) {
        listing_opcode(l->line[i], opcode, sizeof opcode);
        if (!strcmp(opcode, "NOP"))
            continue;
        count(m, 0, opcode, is_new);
        if (loops && l->steps[i].loop)
            count(m, l->steps[i].loop, opcode, is_new);
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct mix_row *x = a, *y = b;
    if (x->loop != y->loop)
        return x->loop < y->loop ? -1 : 1;
    return strcmp(x->opcode, y->opcode);
}

void mix_count(const struct listing *new, const struct listing *old, struct mix *out)
{
    bool loops = !new || !old || new->n_loops == old->n_loops;
    out->n = 0;
    out->n_new = new ? new->n_loops : 0;
    out->n_old = old ? old->n_loops : 0;
    if (new)
        count_all(out, new, true, loops);
    if (old)
        count_all(out, old, false, loops);
    qsort(out->rows, out->n, sizeof *out->rows, compare_names);
}

static size_t change_of(const struct mix_row *r)
{
    return r->new > r->old ? r->new - r->old : r->old - r->new;
}

static int compare_changes(const void *a, const void *b)
{
    const struct mix_row *x = a, *y = b;
    bool x_watched = mix_is_watched(x->opcode), y_watched = mix_is_watched(y->opcode);
    if (x->loop != y->loop)
        return x->loop < y->loop ? -1 : 1;
    if (x_watched != y_watched)
        return x_watched ? -1 : 1;
    if (change_of(x) != change_of(y))
        return change_of(x) > change_of(y) ? -1 : 1;
    return strcmp(x->opcode, y->opcode);
}

void mix_keep_changes(struct mix *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (change_of(&m->rows[i]))
            m->rows[n++] = m->rows[i];
    m->n = n;
    qsort(m->rows, m->n, sizeof *m->rows, compare_changes);
}
