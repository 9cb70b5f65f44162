/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_counters.c: which hardware counters of a slower case moved most, and what they mean.
 */
#include "gate/report/report_run.h"

#include <math.h>

#include "gate/base/term.h"
#include "gate/counters/counters.h"

#define LINES_MAX 5
#define MOVED_MIN 0.05 /* less is what two readings of one kernel differ by */

static void put_scaled(double value, const char *const *units, double step, struct buf *out)
{
    while (value >= 999.5 && units[1]) {
        value /= step;
        units++;
    }
    buf_printf(out, "%.3g%s", value, *units);
}

static void put_value(enum counter_unit unit, double value, struct buf *out)
{
    static const char *const bytes[] = {" B", " kB", " MB", " GB", " TB", NULL};
    static const char *const counts[] = {"", " thousand", " million", " billion", NULL};
    switch (unit) {
    case COUNTER_PERCENT:
        buf_printf(out, "%.3g %%", value);
        break;
    case COUNTER_BYTES:
        put_scaled(value, bytes, 1e3, out);
        break;
    case COUNTER_COUNT:
        put_scaled(value, counts, 1e3, out);
        break;
    default:
        buf_printf(out, "%.3g", value);
    }
}

static void put_counter(const struct document_counters *all, const struct document_counter *moved,
                        struct buf *out)
{
    const struct counter *c = &counters[moved->counter];
    buf_printf(out, "%s ", c->label);
    put_value(c->unit, moved->baseline, out);
    buf_puts(out, " -> ");
    put_value(c->unit, moved->candidate, out);
    if (all->n_kernels > 1) {
        buf_puts(out, " in ");
        report_safe_name(all->kernels[moved->kernel], out);
    }
    buf_printf(out, ": %s\n", c->meaning);
}

bool report_counters(const struct document_case *c, struct buf *out)
{
    const struct document_counters *all = &c->counters;
    size_t lines = 0;
    if (!c->has_counters)
        return false;
    if (all->message) {
        buf_puts(out, "none: ");
        term_puts(all->message, out);
        buf_putc(out, '\n');
        return true;
    }
    for (size_t i = 0; i < all->n_moved && lines < LINES_MAX; i++)
        if (all->moved[i].moved >= MOVED_MIN) {
            put_counter(all, &all->moved[i], out);
            lines++;
        }
    if (!lines)
        buf_puts(out, all->n_moved ? "none moved by more than 5 %\n"
                                   : "none: no kernel is launched on both sides\n");
    return true;
}
