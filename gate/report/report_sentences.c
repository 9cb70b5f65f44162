/* SPDX-License-Identifier: Apache-2.0 */
/* report_sentences.c: what a page says below the table of cases, each a line of its own. */
#include "gate/report/report_run.h"

#include <stdio.h>

#define UNRESOLVED_MAX 10 /* cases that are named; the others are counted */
#define UNCOUNTED_MAX 6

/* "n of m cases cannot resolve the threshold here: A (3.10 %), B (2.4 %)" */
static void say_unresolved(const struct page *p, struct buf *out)
{
    char text[UNITS_MAX];
    const struct report_run *run = p->run;
    const struct document *d = p->d;
    size_t n = 0;
    if (run->n_unresolved == 0)
        return;
    buf_printf(out, "%zu of %zu case%s cannot resolve the threshold here: ", run->n_unresolved,
               d->n_cases, d->n_cases == 1 ? "" : "s");
    for (size_t i = 0; i < d->n_cases && n < UNRESOLVED_MAX; i++) {
        if (!report_is_unresolved(run, &d->cases[i]))
            continue;
        buf_puts(out, n++ ? ", " : "");
        p->code(d->cases[i].id, out);
        buf_printf(out, " (%s)", units_percent(d->cases[i].mde, text));
    }
    if (run->n_unresolved > n)
        buf_printf(out, " and %zu more", run->n_unresolved - n);
}

static void say_same_code(const struct page *p, struct buf *out)
{
    size_t n = p->run->n_same_code;
    if (n > 0)
        buf_printf(out,
                   "%zu of %zu case%s %s the same code on both sides: timed in one process as "
                   "a control",
                   n, p->d->n_cases, p->d->n_cases == 1 ? "" : "s", n == 1 ? "has" : "have");
}

static void say_remembered(const struct page *p, struct buf *out)
{
    size_t n = p->d->n_cases;
    if (p->run->n_remembered)
        buf_printf(out,
                   "%zu of %zu case%s verified in earlier runs of the same library; the others "
                   "anew, with new inputs (--full: all)",
                   p->run->n_remembered, n, n == 1 ? " was" : "s were");
    if (p->run->vendors_remembered)
        buf_printf(out, "%sthe vendors' times are those of earlier runs (--vendors: anew)",
                   p->run->n_remembered ? "; " : "");
}

static void say_left_out(const struct page *p, struct buf *out)
{
    struct buf line;
    buf_init(&line, 16 * 1024);
    left_out_write(&p->run->left_out, &line);
    if (line.len > 0) {
        buf_puts(out, "left out: ");
        p->text(line.data, out);
    }
    buf_release(&line);
}

static void say_own_shape(const struct page *p, struct buf *out)
{
    left_out_write_own_shape(&p->run->left_out, p->code, out);
}

/* "not served, and not counted: 2 of the suite's 3 cases: A, B": the ids are plain ASCII, by the
 * schema. */
static void put_uncounted(const struct page *p, const char *what,
                          const struct document_not_served *list, size_t n, struct buf *out)
{
    if (!n)
        return;
    buf_printf(out, "%s: %zu of the suite's %zu cases: ", what, n,
               p->d->n_cases + p->d->n_not_served + p->d->n_filtered);
    for (size_t i = 0; i < n && i < UNCOUNTED_MAX; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list[i].id);
    if (n > UNCOUNTED_MAX)
        buf_printf(out, " and %zu more", n - UNCOUNTED_MAX);
}

static void say_not_served(const struct page *p, struct buf *out)
{
    put_uncounted(p, "not served, and not counted", p->d->not_served, p->d->n_not_served, out);
}

static void say_filtered(const struct page *p, struct buf *out)
{
    put_uncounted(p, "left out by --filter", p->d->filtered, p->d->n_filtered, out);
}

/* "warning: this change moves thresholds: A: threshold 2 % -> 100 %; ..." */
static void say_changed(const struct page *p, struct buf *out)
{
    const struct document_policy *policy = &p->d->policy;
    struct buf line;
    buf_init(&line, 65536);
    for (size_t i = 0; i < policy->n_changed; i++)
        buf_printf(&line, "%s%s",
                   i ? "; " : "warning: this change moves thresholds: ", policy->changed[i]);
    if (line.len)
        p->code(line.data, out);
    buf_release(&line);
}

static void say_not_stored(const struct page *p, struct buf *out)
{
    if (!p->d->not_stored)
        return;
    buf_puts(out, "NOT STORED at its end, and no baseline has changed, whatever a reason says: ");
    p->code(p->d->not_stored, out);
    buf_puts(out, "; `gate import` takes its JSON report");
}

void page_sentences(const struct page *p)
{
    static const struct {
        bool warns;
        void (*say)(const struct page *p, struct buf *out);
    } all[] = {{true, say_unresolved}, {false, say_remembered}, {false, say_same_code},
               {false, say_left_out},  {true, say_own_shape},   {false, say_not_served},
               {false, say_filtered},  {true, say_changed},     {true, say_not_stored}};
    struct buf line;
    buf_init(&line, 128 * 1024);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_clear(&line);
        all[i].say(p, &line);
        if (line.len)
            buf_printf(p->out, "%s%s", p->markdown ? "\n" : "",
                       p->markdown && all[i].warns ? PAGE_WARNING_SIGN : "");
        buf_append(p->out, line.data, line.len);
        buf_puts(p->out, line.len ? "\n" : "");
    }
    buf_release(&line);
}

void page_legend(const struct page *p)
{
    const char *begin = p->markdown ? "\n" : "";
    if (p->run->warm)
        buf_printf(p->out, "%s* warm: the inputs do not exceed three times the cache\n",
                   p->markdown ? "\n\\" : "");
    if (p->d->n_cases > 0 && p->d->has_ceilings && !p->d->ceilings.message)
        buf_printf(p->out,
                   "%sceiling: share of the data sheet's maximum; here: share of what the gate's "
                   "own kernels reach on this GPU\n",
                   begin);
    if (p->run->any_stored && !p->markdown)
        buf_puts(p->out, "(baseline): the stored time; the baseline was not measured beside the "
                         "candidate\n");
    if (p->run->more_providers)
        buf_printf(p->out, "%s%s the first %d providers have columns\n", begin,
                   p->markdown ? "Only" : "only", REPORT_MAX_PROVIDERS);
}
