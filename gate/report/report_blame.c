/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_blame.c: which node of a launch carries a slowdown.
 */
#include "gate/report/report_run.h"

#include <math.h>

#include "gate/base/term.h"

#define LINES_MAX 6
#define MOST_OF_IT 0.5 /* of the slowdown: who carries less does not carry it alone */

static double share(const struct estimate *e)
{
    return e->value - 1;
}

/* No figure is "-0.00". */
static void put_share(const struct estimate *e, struct buf *out)
{
    double percent = fabs(share(e)) < 5e-5 ? 0 : 100 * share(e);
    buf_printf(out, "%.2f %% \xc2\xb1 %.2f %%", percent, 50 * (e->hi - e->lo));
}

static void put_node(const struct document_blame *b, size_t i, struct buf *out)
{
    buf_printf(out, "node %zu of %zu, ", i + 1, b->n_nodes);
    report_safe_name(b->nodes[i].name, out);
}

/* The number of the node that carries most of the slowdown; n_nodes: none is known to. */
static size_t blamed_of(const struct document_blame *b)
{
    size_t most = b->n_nodes;
    for (size_t i = 0; i < b->n_nodes; i++)
        if (b->nodes[i].has_carries &&
            (most == b->n_nodes || b->nodes[i].carries.value > b->nodes[most].carries.value))
            most = i;
    if (most == b->n_nodes || !b->has_slowdown || b->slowdown.lo <= 1)
        return b->n_nodes;
    const struct estimate *e = &b->nodes[most].carries;
    return e->lo > 1 && share(e) >= MOST_OF_IT * share(&b->slowdown) ? most : b->n_nodes;
}

static void put_names(const struct document_blame *b, struct buf *out)
{
    if (!b->n_baseline)
        return;
    buf_puts(out, "; the candidate's are");
    for (size_t i = 0; i < b->n_nodes; i++) {
        buf_puts(out, i ? ", " : " ");
        report_safe_name(b->nodes[i].name, out);
    }
    buf_puts(out, "; the baseline's are");
    for (size_t i = 0; i < b->n_baseline; i++) {
        buf_puts(out, i ? ", " : " ");
        report_safe_name(b->baseline[i], out);
    }
}

static void put_verdict(const struct document_blame *b, size_t blamed, struct buf *out)
{
    if (blamed < b->n_nodes) {
        put_node(b, blamed, out);
        buf_puts(out, " carries ");
        put_share(&b->nodes[blamed].carries, out);
        buf_printf(out, " of %.2f %%", 100 * share(&b->slowdown));
    } else {
        buf_puts(out, b->has_slowdown && b->slowdown.lo > 1
                          ? "no node is known to carry most of it"
                          : "none: it was not slower in the process that looked for the node");
        if (b->has_slowdown) {
            buf_puts(out, ": ");
            put_share(&b->slowdown, out);
        }
    }
    buf_putc(out, '\n');
}

static void put_other(const struct document_blame *b, size_t i, struct buf *out)
{
    const struct document_node *n = &b->nodes[i];
    put_node(b, i, out);
    buf_puts(out, ": ");
    if (n->has_carries) {
        put_share(&n->carries, out);
    } else {
        buf_puts(out, "not known: ");
        term_puts(n->message ? n->message : "", out);
    }
    buf_putc(out, '\n');
}

bool report_blame(const struct document_case *c, struct buf *out)
{
    const struct document_blame *b = &c->blame;
    size_t blamed = blamed_of(b), lines = 1;
    if (!c->has_blame)
        return false;
    if (b->message) {
        buf_puts(out, "none: ");
        term_puts(b->message, out);
        put_names(b, out);
        buf_putc(out, '\n');
        return true;
    }
    put_verdict(b, blamed, out);
    for (size_t i = 0; i < b->n_nodes && lines < LINES_MAX; i++)
        if (i != blamed) {
            put_other(b, i, out);
            lines++;
        }
    return true;
}
