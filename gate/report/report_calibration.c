/* SPDX-License-Identifier: Apache-2.0 */
/* report_calibration.c: the results of `gate calibrate` on a page. */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHARES_MAX 16
#define INCOMPLETE_MAX 20

/* The decisions of a case at a share of time that was added, and how many of them were red. */
static void add_up(const struct document_calibrated *c, double share, double *red,
                   double *decisions)
{
    *red = *decisions = 0;
    for (size_t i = 0; i < c->n_injected; i++) {
        if (c->injected[i].share == share) {
            *red += (double)c->injected[i].red;
            *decisions += (double)c->injected[i].decisions;
        }
    }
}

int page_compare_calibrated(const void *a, const void *b)
{
    const struct document_calibrated *x = *(const struct document_calibrated *const *)a;
    const struct document_calibrated *y = *(const struct document_calibrated *const *)b;
    double x_mde = isnan(x->mde) ? INFINITY : x->mde, y_mde = isnan(y->mde) ? INFINITY : y->mde;
    double x_fails, y_fails, decisions;
    add_up(x, 0, &x_fails, &decisions);
    add_up(y, 0, &y_fails, &decisions);
    if (x->resolved != y->resolved)
        return x->resolved ? 1 : -1;
    if (x_fails != y_fails)
        return x_fails < y_fails ? 1 : -1;
    if (x_mde != y_mde)
        return x_mde < y_mde ? 1 : -1;
    return (x > y) - (x < y);
}

/* Of all cases. */
struct shares {
    struct {
        double share, red, decisions;
    } of[SHARES_MAX]; /* ascending */
    size_t n;
};

/* Those for which there is no room are left out. */
static void add_share(struct shares *s, const struct document_injected *injected)
{
    size_t at = 0;
    while (at < s->n && s->of[at].share < injected->share)
        at++;
    if (at == s->n || s->of[at].share != injected->share) {
        if (s->n == SHARES_MAX)
            return;
        memmove(&s->of[at + 1], &s->of[at], (s->n++ - at) * sizeof s->of[0]);
        memset(&s->of[at], 0, sizeof s->of[0]);
        s->of[at].share = injected->share;
    }
    s->of[at].red += (double)injected->red;
    s->of[at].decisions += (double)injected->decisions;
}

/* "unchanged" for 0, else "+2.5 %". */
static const char *share_name(double share, char out[UNITS_MAX])
{
    if (share == 0)
        snprintf(out, UNITS_MAX, "unchanged");
    else
        snprintf(out, UNITS_MAX, "+%.3g %%", 100 * share);
    return out;
}

/* "99.64 %" of decisions were red; never rounded to 0 or 100 when it is not. "-": none were made.
 */
static const char *rate(double red, double decisions, char out[UNITS_MAX])
{
    double percent = 100 * red / decisions;
    if (!(decisions > 0))
        snprintf(out, UNITS_MAX, "-");
    else if (red <= 0 || red >= decisions)
        snprintf(out, UNITS_MAX, "%d %%", red <= 0 ? 0 : 100);
    else if (percent < 0.01 || percent > 99.99)
        snprintf(out, UNITS_MAX, "%s %%", percent < 50 ? "<0.01" : ">99.99");
    else
        snprintf(out, UNITS_MAX, "%.2f %%", percent);
    return out;
}

static struct table *table_of(const struct page *p, const struct shares *s)
{
    struct table_column columns[3 + SHARES_MAX] = {
        {"case", false, 0}, {"MDE", true, 0}, {"resolved", false, 0}};
    char names[SHARES_MAX][UNITS_MAX], text[UNITS_MAX];
    double red, decisions;
    RELEASED_BY(buf_release) struct buf id = buf_of(4096);
    for (size_t i = 0; i < s->n; i++)
        columns[3 + i] = (struct table_column){share_name(s->of[i].share, names[i]), true, 0};
    struct table *t = table_new(columns, 3 + s->n);
    table_markdown(t, 0, "case", true);
    for (size_t i = 0; i < p->n_calibrated; i++) {
        const struct document_calibrated *one = p->calibrated[i];
        buf_clear(&id);
        p->code(one->id, &id);
        table_cell(t, TERM_PLAIN, p->markdown ? id.data : one->id);
        table_cell(t, TERM_PLAIN, one->mde >= 0 ? units_percent(one->mde, text) : "");
        table_cell(t, one->resolved ? TERM_GREEN : TERM_YELLOW, one->resolved ? "yes" : "no");
        for (size_t k = 0; k < s->n; k++) {
            add_up(one, s->of[k].share, &red, &decisions);
            table_cell(t, TERM_PLAIN, rate(red, decisions, text));
        }
    }
    return t;
}

void page_calibration(const struct page *p)
{
    const struct document_calibration *made = &p->d->calibration;
    const char *bullet = p->markdown ? "- " : "incomplete: ";
    char name[UNITS_MAX], text[UNITS_MAX];
    struct shares s = {.n = 0};
    size_t n = made->n_cases, n_resolved = 0;
    for (size_t i = 0; i < n; i++) {
        n_resolved += made->cases[i].resolved;
        for (size_t k = 0; k < made->cases[i].n_injected; k++)
            add_share(&s, &made->cases[i].injected[k]);
    }
    buf_printf(p->out,
               "%scalibration, %lld processes a case: decisions that were red, by the share of "
               "time that was added\n%s",
               p->markdown     ? "\n### Calibration\n\n"
               : p->d->n_cases ? "\n"
                               : "",
               (long long)made->processes, p->markdown ? "\n" : "");
    page_put_table(p, table_of(p, &s));
    if (p->n_calibrated < n)
        buf_printf(p->out, "\n%zu of %zu calibrated cases are left out; the worst come first.\n",
                   n - p->n_calibrated, n);
    buf_printf(p->out, "%s%zu of %zu case%s resolve%s %.3g %%",
               p->markdown ? "\n" : "calibration: ", n_resolved, n, n == 1 ? "" : "s",
               n == 1 ? "s" : "", 100 * p->d->policy.threshold);
    for (size_t i = 0; i < s.n; i++) {
        buf_printf(p->out, "%s %s %s", i ? "," : "; red:", share_name(s.of[i].share, name),
                   rate(s.of[i].red, s.of[i].decisions, text));
        if (s.of[i].share == 0)
            buf_printf(p->out, " (%.0f of %.0f decisions)", s.of[i].red, s.of[i].decisions);
    }
    buf_puts(p->out, p->markdown && made->n_incomplete ? "\n\nIncomplete:\n\n" : "\n");
    for (size_t i = 0; i < made->n_incomplete && i < INCOMPLETE_MAX; i++) {
        const struct document_incomplete *one = &made->incomplete[i];
        buf_puts(p->out, bullet);
        p->text(one->id, p->out);
        buf_printf(p->out,
                   ": %s, %lld of %lld processes: ", verdict_name((enum verdict)one->verdict),
                   (long long)one->processes, (long long)one->wanted);
        p->text(one->reason, p->out);
        buf_putc(p->out, '\n');
    }
    if (made->n_incomplete > INCOMPLETE_MAX)
        buf_printf(p->out, "%sand %zu more\n", bullet, made->n_incomplete - INCOMPLETE_MAX);
}
