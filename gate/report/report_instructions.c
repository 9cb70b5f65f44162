/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_instructions.c: which instructions of a slower case's kernels occur more or less often.
 */
#include "gate/report/report_run.h"

#include <inttypes.h>

#include "gate/base/term.h"

#define LINES_MAX 8
#define OPCODES_MAX 8 /* in a line */

static bool is_of_line(const struct document_instruction *a, const struct document_instruction *b)
{
    return a->kernel == b->kernel && a->loop == b->loop;
}

/* The changes of one kernel, or of one of its loops; how many. */
static size_t put_line(const struct document_instructions *all, size_t at, struct buf *out)
{
    const struct document_instruction *first = &all->changed[at];
    size_t n = 0;
    report_safe_name(all->kernels[first->kernel], out);
    if (first->loop)
        buf_printf(out, " in loop %" PRId64, first->loop);
    for (; at + n < all->n_changed && is_of_line(first, first + n); n++) {
        const struct document_instruction *i = first + n;
        if (n >= OPCODES_MAX)
            continue;
        buf_puts(out, n ? ", " : ": ");
        report_safe_name(i->opcode, out);
        buf_printf(out, " %" PRId64 " -> %" PRId64, i->baseline, i->candidate);
    }
    buf_puts(out, n > OPCODES_MAX ? " and others\n" : "\n");
    return n;
}

bool report_instructions(const struct document_case *c, struct buf *out)
{
    const struct document_instructions *all = &c->instructions;
    size_t lines = 0;
    if (!c->has_instructions)
        return false;
    for (size_t at = 0; at < all->n_changed && lines < LINES_MAX; lines++)
        at += put_line(all, at, out);
    if (all->message) {
        buf_puts(out, "not known: ");
        term_puts(all->message, out);
        buf_putc(out, '\n');
    } else if (!lines) {
        buf_puts(out, "as many of each\n");
    }
    return true;
}
