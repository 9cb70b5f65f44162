/* SPDX-License-Identifier: Apache-2.0 */
/* report_cases.c: the tables of a run's cases and of a calibration, on a terminal and in a summary.
 */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops/dtype.h"

/* p50, its half width, p90, rate, and the shares of the highest rates. A host computes each dtype
 * as fast as fp32. */
static void candidate_cells(const struct page *p, struct table *t, const struct document_case *c)
{
    bool on_host = p->d->device.kind == DEVICE_HOST;
    const struct document_arm *arm = document_candidate(c);
    const struct document_timing *timing = report_timing(arm);
    const struct dtype *dtype = dtype_by_name(on_host ? "fp32" : c->dtype);
    char text[UNITS_MAX], p50_text[UNITS_MAX + 2];
    if (!timing) {
        bool failed = !arm && c->verdict == VERDICT_WRONG;
        table_cell(t, TERM_DIM, failed ? "failed" : report_no_timing(arm));
        for (int i = 0; i < 5; i++)
            table_cell(t, TERM_PLAIN, "");
        return;
    }
    double p50 = timing->p50_ns, half = (timing->p50_hi_ns - timing->p50_lo_ns) / 2;
    snprintf(p50_text, sizeof p50_text, "%s%s", timing->cold ? "" : "*", units_duration(p50, text));
    table_cell(t, TERM_PLAIN, p50_text);
    snprintf(text, sizeof text, half < 100 * p50 ? "%.2f %%" : "%.1g %%", 100 * half / p50);
    table_cell(t, TERM_DIM, isnan(half) ? "" : text); /* another tool may not say */
    table_cell(t, TERM_PLAIN, isnan(timing->p90_ns) ? "" : units_duration(timing->p90_ns, text));
    bool compute = 1000 * timing->tflops > timing->gbps * (dtype ? dtype->balance : 100);
    table_cell(t, TERM_PLAIN,
               compute            ? units_flops(timing->tflops, text)
               : timing->gbps > 0 ? units_rate(timing->gbps, "GB/s", text)
                                  : "");
    double shares[] = {timing->ceiling, timing->measured_ceiling};
    for (int i = 0; i < 2; i++)
        table_cell(t, TERM_PLAIN, isnan(shares[i]) ? "" : units_share(shares[i], text));
}

/* p50, p90, and how many times faster than the provider the candidate is. */
static void provider_cells(struct table *t, const struct document_case *c, const char *provider)
{
    const struct document_timing *ours = report_timing(document_candidate(c));
    const struct document_arm *arm = NULL;
    char text[UNITS_MAX];
    for (size_t i = 0; i < c->n_arms && !arm; i++)
        if (c->arms[i].role == ROLE_PROVIDER && !strcmp(c->arms[i].provider, provider))
            arm = &c->arms[i];
    const struct document_timing *timing = report_timing(arm);
    table_cell(t, timing ? TERM_PLAIN : TERM_DIM,
               timing ? units_duration(timing->p50_ns, text) : report_no_timing(arm));
    table_cell(t, TERM_PLAIN, timing ? units_duration(timing->p90_ns, text) : "");
    double speed_up = 0;
    if (ours &&
        timing) /* from pairs of samples if there were: two p50 may be of different clocks */
        speed_up = timing->has_ratio_to_candidate ? 1 / timing->ratio_to_candidate.value
                                                  : timing->p50_ns / ours->p50_ns;
    table_cell(t, TERM_PLAIN, speed_up > 0 ? units_speed(speed_up, text) : "");
}

static void case_row(const struct page *p, struct table *t, const struct document_case *c,
                     struct buf *text)
{
    char number[UNITS_MAX];
    enum verdict v = (enum verdict)c->verdict;
    bool stored;
    double baseline_ns = report_baseline_ns(c, &stored);
    buf_clear(text);
    page_put_case(p, c, text);
    table_cell(t, TERM_PLAIN, p->markdown ? text->data : c->id);
    candidate_cells(p, t, c);
    buf_clear(text);
    buf_printf(text, stored ? "(%s)" : "%s", units_duration(baseline_ns, number));
    table_cell(t, stored ? TERM_DIM : TERM_PLAIN, baseline_ns > 0 ? text->data : "none");
    table_cell(t, v == VERDICT_PASS ? TERM_PLAIN : page_colour(v),
               c->has_ratio && c->ratio.value > 0    ? units_change(c->ratio.value, number)
               : report_is_same_code(c)              ? "same code"
               : p->markdown && c->mode == MODE_NONE ? "no baseline"
                                                     : "");
    table_cell(t, TERM_DIM,
               c->has_ratio ? units_percent(fabs(c->ratio.hi - c->ratio.lo) / 2, number) : "");
    table_cell(t, report_is_unresolved(p->run, c) ? TERM_YELLOW : TERM_PLAIN,
               c->mde >= 0 ? units_percent(c->mde, number) : "");
    for (size_t i = 0; i < p->run->n_providers; i++)
        provider_cells(t, c, p->run->providers[i]);
    buf_clear(text);
    buf_printf(text, "%s%s%s", p->markdown ? page_mark(v) : "", p->markdown ? " " : "",
               verdict_name(v));
    if (!isnan(c->threshold) && c->threshold != p->d->policy.threshold)
        buf_printf(text, " (threshold %.3g %%)", 100 * c->threshold);
    const struct document_verify *verify = report_verify(document_candidate(c));
    if (p->run->n_remembered && verify && verify->ok)
        buf_puts(text, verify->verified_in ? ", verified in run " : ", verified");
    if (p->run->n_remembered && verify && verify->ok && verify->verified_in)
        buf_printf(text, "%.8s", verify->verified_in);
    table_cell(t, page_colour(v), text->data);
    if (!p->d->policy.warn_against)
        return;
    buf_clear(text);
    buf_puts(text, p->markdown && page_warns(c) ? PAGE_WARNING_SIGN : "");
    report_warning(c, text);
    table_cell(t, page_warns(c) ? TERM_YELLOW : TERM_DIM, text->len ? text->data : "");
}

void page_cases(const struct page *p)
{
    const bool ceilings = p->d->has_ceilings && !p->d->ceilings.message;
    const char *warn_against = p->d->policy.warn_against;
    char against[REPORT_NAME_MAX], warned[REPORT_NAME_MAX];
    char vs[REPORT_NAME_MAX + 4], vs_warned[REPORT_NAME_MAX + 4];
    char providers[REPORT_MAX_PROVIDERS][REPORT_NAME_MAX + 100];
    snprintf(vs, sizeof vs, "vs %s", report_against(p->d->policy.against, against));
    snprintf(vs_warned, sizeof vs_warned, "vs %s", report_against(warn_against, warned));
    /* What the verdict rests on stays longest. */
    struct table_column columns[13 + 3 * REPORT_MAX_PROVIDERS] = {
        {.title = "case", .raw = true},
        {"p50", true, 0, "p50 / p90", false},
        {"\xc2\xb1", true, 8, "", false},
        {"p90", true, 7, " / ", false},
        {"rate", true, 5, "", false},
        {"ceiling", true, 6, ceilings ? "ceiling / here" : "", false},
        {"here", true, 5, ceilings ? " / " : "", false},
        {against, true, 4, "", false},
        {"change", true, 0, vs, false},
        {"change \xc2\xb1", true, 3, " \xc2\xb1 ", false},
        {"MDE", true, 1, NULL, false},
    };
    size_t n = 11;
    for (size_t i = 0; i < p->run->n_providers; i++) {
        snprintf(providers[i], sizeof providers[i], "%s p50 / p90", p->run->providers[i]);
        columns[n++] = (struct table_column){p->run->providers[i], true, 2, providers[i], false};
        columns[n++] = (struct table_column){NULL, true, 2, " / ", false};
        columns[n++] = (struct table_column){"ours is", true, 2, NULL, false};
    }
    columns[n++] = (struct table_column){.title = "verdict", .raw = true};
    if (warn_against)
        columns[n++] = (struct table_column){.title = vs_warned, .raw = true};
    struct table *t = table_new(columns, n);
    RELEASED_BY(buf_release) struct buf text = buf_of(4096);
    for (size_t i = 0; i < p->n_cases; i++)
        case_row(p, t, p->cases[i], &text);
    page_put_table(p, t);
}

/* ---- the results of `gate calibrate` ---- */

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
        {.title = "case", .raw = true}, {.title = "MDE", .right = true}, {.title = "resolved"}};
    char names[SHARES_MAX][UNITS_MAX], text[UNITS_MAX];
    double red, decisions;
    RELEASED_BY(buf_release) struct buf id = buf_of(4096);
    for (size_t i = 0; i < s->n; i++)
        columns[3 + i] =
            (struct table_column){.title = share_name(s->of[i].share, names[i]), .right = true};
    struct table *t = table_new(columns, 3 + s->n);
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
