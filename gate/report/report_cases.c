/* SPDX-License-Identifier: Apache-2.0 */
/* report_cases.c: the table of a run's cases, on a terminal and in a summary. */
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

/* p50, change and its half width. */
static void baseline_cells(const struct page *p, struct table *t, const struct document_case *c)
{
    enum verdict v = (enum verdict)c->verdict;
    bool stored;
    double baseline_ns = report_baseline_ns(c, &stored);
    char text[UNITS_MAX], baseline_text[UNITS_MAX + 2];
    units_duration(baseline_ns, text);
    snprintf(baseline_text, sizeof baseline_text, stored ? "(%s)" : "%s", text);
    table_cell(t, stored ? TERM_DIM : TERM_PLAIN, baseline_ns > 0 ? baseline_text : "none");
    table_cell(t, v == VERDICT_PASS ? TERM_PLAIN : page_colour(v),
               c->has_ratio && c->ratio.value > 0    ? units_change(c->ratio.value, text)
               : report_is_same_code(c)              ? "same code"
               : p->markdown && c->mode == MODE_NONE ? "no baseline"
                                                     : "");
    table_cell(t, TERM_DIM,
               c->has_ratio ? units_percent(fabs(c->ratio.hi - c->ratio.lo) / 2, text) : "");
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
    char mde[UNITS_MAX];
    enum verdict v = (enum verdict)c->verdict;
    buf_clear(text);
    page_put_case(p, c, text);
    table_cell(t, TERM_PLAIN, p->markdown ? text->data : c->id);
    candidate_cells(p, t, c);
    baseline_cells(p, t, c);
    table_cell(t, report_is_unresolved(p->run, c) ? TERM_YELLOW : TERM_PLAIN,
               c->mde >= 0 ? units_percent(c->mde, mde) : "");
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
    enum { CASE, P50, P50_HALF, P90, RATE, CEILING, HERE, BASELINE, CHANGE, CHANGE_HALF, MDE };
    const char *warn_against = p->d->policy.warn_against;
    char against[REPORT_NAME_MAX], warned[REPORT_NAME_MAX];
    char vs[REPORT_NAME_MAX + 4], vs_warned[REPORT_NAME_MAX + 4];
    char providers[REPORT_MAX_PROVIDERS][REPORT_NAME_MAX + 100];
    snprintf(vs, sizeof vs, "vs %s", report_against(p->d->policy.against, against));
    snprintf(vs_warned, sizeof vs_warned, "vs %s", report_against(warn_against, warned));
    /* What the verdict rests on stays longest. */
    struct table_column columns[13 + 3 * REPORT_MAX_PROVIDERS] = {
        {"case", false, 0},    {"p50", true, 0},
        {"\xc2\xb1", true, 8}, {"p90", true, 7},
        {"rate", true, 5},     {"ceiling", true, 6},
        {"here", true, 5},     {against, true, 4},
        {"change", true, 0},   {"change \xc2\xb1", true, 3},
        {"MDE", true, 1},
    };
    size_t n = MDE + 1, n_providers = p->run->n_providers;
    for (size_t i = 0; i < n_providers; i++) {
        columns[n++] = (struct table_column){p->run->providers[i], true, 2};
        columns[n++] = (struct table_column){NULL, true, 2};
        columns[n++] = (struct table_column){"ours is", true, 2};
    }
    columns[n++] = (struct table_column){"verdict", false, 0};
    if (warn_against)
        columns[n++] = (struct table_column){vs_warned, false, 0};
    struct table *t = table_new(columns, n);
    bool ceilings = p->d->has_ceilings && !p->d->ceilings.message;
    table_markdown(t, CASE, "case", true);
    table_markdown(t, P50, "p50 / p90", false);
    table_markdown(t, P50_HALF, NULL, false);
    table_markdown(t, P90, " / ", false);
    table_markdown(t, RATE, NULL, false);
    table_markdown(t, CEILING, ceilings ? "ceiling / here" : NULL, false);
    table_markdown(t, HERE, ceilings ? " / " : NULL, false);
    table_markdown(t, BASELINE, NULL, false);
    table_markdown(t, CHANGE, vs, false);
    table_markdown(t, CHANGE_HALF, " \xc2\xb1 ", false);
    for (size_t i = 0; i < n_providers; i++) {
        snprintf(providers[i], sizeof providers[i], "%s p50 / p90", p->run->providers[i]);
        table_markdown(t, MDE + 1 + 3 * i, providers[i], false);
        table_markdown(t, MDE + 2 + 3 * i, " / ", false);
    }
    for (size_t i = MDE + 1 + 3 * n_providers; i < n; i++)
        table_markdown(t, i, columns[i].title, true);
    RELEASED_BY(buf_release) struct buf text = buf_of(4096);
    for (size_t i = 0; i < p->n_cases; i++)
        case_row(p, t, p->cases[i], &text);
    page_put_table(p, t);
}
