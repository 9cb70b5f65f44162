/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_instructions.c: which instructions of a slower case's kernels occur more or less often.
 */
#include "gate/report/report_run.h"

#include <inttypes.h>

#include "gate/base/term.h"
#include "gate/library/opcode.h"

#define LINES_MAX 8
#define OPCODES_MAX 8 /* in a line */

/* The changes of one kernel; how many. */
static size_t put_line(const struct document_instructions *all, size_t at, struct buf *out)
{
    const struct document_instruction *first = &all->changed[at];
    size_t n = 0;
    report_safe_name(all->kernels[first->kernel], out);
    for (; at + n < all->n_changed && first[n].kernel == first->kernel; n++) {
        const struct document_instruction *i = first + n;
        const char *meaning = opcode_meaning(i->opcode);
        if (n >= OPCODES_MAX)
            continue;
        buf_puts(out, n ? ", " : ": ");
        report_safe_name(i->opcode, out);
        buf_printf(out, " %" PRId64 " -> %" PRId64, i->baseline, i->candidate);
        if (meaning)
            buf_printf(out, " (%s)", meaning);
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
