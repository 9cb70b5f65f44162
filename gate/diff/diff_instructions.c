/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/diff/listing.h"

#define OPCODE_MAX 24
#define OPCODES_MAX 400

/* How often each instruction occurs in the old and in the new code. */
struct mix {
    struct opcode {
        char name[OPCODE_MAX];
        size_t old, new;
    } list[OPCODES_MAX];
    size_t n;
};

static void count(struct mix *mix, const struct listing *l, bool is_new)
{
    char name[OPCODE_MAX];
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        listing_opcode(l->line[i], name, sizeof name);
        while (k < mix->n && strcmp(mix->list[k].name, name) != 0)
            k++;
        if (k == OPCODES_MAX)
            continue;
        if (k == mix->n) {
            memcpy(mix->list[k].name, name, sizeof name);
            mix->n++;
        }
        *(is_new ? &mix->list[k].new : &mix->list[k].old) += 1;
    }
}

static size_t change_of(const struct opcode *o)
{
    return o->new > o->old ? o->new - o->old : o->old - o->new;
}

static int compare_opcodes(const void *a, const void *b)
{
    const struct opcode *x = a, *y = b;
    if (change_of(x) != change_of(y))
        return change_of(x) > change_of(y) ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Those that changed, the most first. */
static void put_mix(struct mix *mix, struct buf *out)
{
    qsort(mix->list, mix->n, sizeof *mix->list, compare_opcodes);
    for (size_t i = 0; i < mix->n && change_of(&mix->list[i]); i++)
        buf_printf(out, "%-12s %zu -> %zu\n", mix->list[i].name, mix->list[i].old,
                   mix->list[i].new);
    if (!mix->n || !change_of(&mix->list[0]))
        buf_puts(out, "as many of each instruction\n");
}

static void put_listings(const struct listing *old, const struct listing *new, struct buf *out)
{
    struct mix mix = {.n = 0};
    struct buf sides;
    count(&mix, old, false);
    count(&mix, new, true);
    put_mix(&mix, out);
    buf_init(&sides, out->max);
    if (listing_compare(old, new, &sides))
        buf_printf(out, "\n%s", sides.data ? sides.data : "the same instructions\n");
    else
        buf_puts(out, "\ntoo many instructions differ to be shown\n");
    buf_release(&sides);
}

static enum gate_status put_row(const struct diff_row *row, struct buf *out, struct gate_error *err)
{
    struct listing old, new = {0};
    enum gate_status status = listing_read(row->old.kernel, &old, err);
    if (!status)
        status = listing_read(row->new.kernel, &new, err);
    if (!status)
        put_listings(&old, &new, out);
    listing_release(&old);
    listing_release(&new);
    return status;
}

/* Safe for a terminal, and without what ends a block of code. */
static void put_safe(const struct buf *text, struct buf *out)
{
    const char *from = text->data ? text->data : "";
    for (size_t n; *from; from += n + (from[n] == '\n')) {
        char line[256];
        n = strcspn(from, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, from);
        for (char *at = utf8_trim(line); *at; at++)
            *at = *at == '`' ? '\'' : *at;
        term_puts(line, out);
        buf_putc(out, '\n');
    }
}

enum gate_status diff_write_instructions(const struct diff *d, bool markdown, struct buf *out,
                                         struct gate_error *err)
{
    struct gate_error why = {0};
    for (size_t i = 0; i < d->n; i++) {
        struct buf text;
        if (d->rows[i].change != DIFF_CHANGED)
            continue;
        buf_init(&text, out->max);
        buf_printf(&text, "%s\n", d->rows[i].new.kernel->name);
        enum gate_status status = put_row(&d->rows[i], &text, &why);
        if (status == GATE_ENVIRONMENT) {
            buf_printf(out, "\nInstructions: absent, %s\n", why.message);
            buf_release(&text);
            return GATE_OK;
        }
        if (status == GATE_USAGE)
            buf_printf(&text, "absent: %s\n", why.message);
        buf_puts(out, markdown ? "\n```\n" : "\n");
        put_safe(&text, out);
        buf_puts(out, markdown ? "```\n" : "");
        buf_release(&text);
        if (status && status != GATE_USAGE)
            return gate_fail(err, status, "%s", why.message);
    }
    return GATE_OK;
}
