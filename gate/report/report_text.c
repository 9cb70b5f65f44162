/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text.c: a run as a table on a terminal: header, one line a case, reason and evidence of
 * each verdict that is not a plain pass, what this machine cannot resolve, and one line that sums
 * up. A calibration has a table of its own.
 */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "gate/report/report_calibration.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"
#include "gate/base/term.h"

static enum term_colour verdict_colour(enum verdict v)
{
    static const enum term_colour colours[VERDICT_COUNT] = {
        [VERDICT_PASS] = TERM_GREEN,        [VERDICT_IMPROVEMENT] = TERM_CYAN,
        [VERDICT_REGRESSION] = TERM_RED,    [VERDICT_WRONG] = TERM_RED,
        [VERDICT_NO_VERDICT] = TERM_YELLOW, [VERDICT_ENVIRONMENT] = TERM_YELLOW,
    };
    return colours[v];
}

static const char *rate(const struct document_case *c, const struct document_timing *timing,
                        char out[UNITS_MAX])
{
    double tflops = timing->tflops, gbps = timing->gbps;
    const struct dtype *dtype = dtype_by_name(c->dtype);
    bool compute = 1000 * tflops > gbps * (dtype ? dtype->balance : 100);
    return compute ? units_flops(tflops, out) : units_rate(gbps, "GB/s", out);
}

static void candidate_cells(struct table *t, const struct document_case *c,
                            const struct document_arm *arm)
{
    const struct document_timing *timing = report_timing(arm);
    char text[UNITS_MAX], p50_text[UNITS_MAX + 2];
    if (!timing) {
        bool failed = !arm && c->verdict == VERDICT_WRONG;
        table_cell(t, TERM_DIM, failed ? "failed" : report_no_timing(arm));
        for (int i = 0; i < 5; i++)
            table_cell(t, TERM_PLAIN, "");
        return;
    }
    double p50 = timing->p50_ns, half = (timing->p50_hi_ns - timing->p50_lo_ns) / 2;

    snprintf(p50_text, sizeof(p50_text), "%s%s", timing->cold ? "" : "*",
             units_duration(p50, text));
    table_cell(t, TERM_PLAIN, p50_text);
    snprintf(text, sizeof(text), half < 100 * p50 ? "%.2f %%" : "%.1g %%", 100 * half / p50);
    table_cell(t, TERM_DIM, text);
    table_cell(t, TERM_PLAIN, units_duration(timing->p90_ns, text));
    table_cell(t, TERM_PLAIN, rate(c, timing, text));
    table_cell(t, TERM_PLAIN, isnan(timing->ceiling) ? "" : units_share(timing->ceiling, text));
    double measured = timing->measured_ceiling;
    table_cell(t, TERM_PLAIN, isnan(measured) ? "" : units_share(measured, text));
}

static void baseline_cells(struct table *t, const struct document_case *c, enum verdict v)
{
    bool stored;
    double baseline_ns = report_baseline_ns(c, &stored), change = report_change(c);
    double half_width = report_half_width(c);
    char text[UNITS_MAX], baseline_text[UNITS_MAX + 2];
    const char *same = report_is_same_code(c) ? "same code" : "";
    units_duration(baseline_ns, text);
    snprintf(baseline_text, sizeof(baseline_text), stored ? "(%s)" : "%s", text);
    table_cell(t, stored ? TERM_DIM : TERM_PLAIN, baseline_ns > 0 ? baseline_text : "none");
    table_cell(t, v == VERDICT_PASS ? TERM_PLAIN : verdict_colour(v),
               change > 0 ? units_change(change, text) : same);
    table_cell(t, TERM_DIM, half_width >= 0 ? units_percent(half_width, text) : "");
}

static void mde_cell(struct table *t, const struct report_run *run, const struct document_case *c)
{
    char text[UNITS_MAX];
    table_cell(t, report_is_unresolved(run, c) ? TERM_YELLOW : TERM_PLAIN,
               c->mde >= 0 ? units_percent(c->mde, text) : "");
}

static void provider_cells(struct table *t, const struct document_case *c, const char *provider)
{
    const struct document_arm *arm = report_provider(c, provider);
    const struct document_timing *timing = report_timing(arm);
    double speed_up = report_speed_up(c, arm);
    char text[UNITS_MAX];
    if (timing)
        table_cell(t, TERM_PLAIN, units_duration(timing->p50_ns, text));
    else
        table_cell(t, TERM_DIM, report_no_timing(arm));
    table_cell(t, TERM_PLAIN, speed_up > 0 ? units_speed(speed_up, text) : "");
}

static void warning_cell(struct table *t, const struct document_case *c)
{
    struct buf text;
    buf_init(&text, 1024);
    report_warning(c, &text);
    table_cell(t, report_warns(c) ? TERM_YELLOW : TERM_DIM, text.len ? text.data : "");
    buf_release(&text);
}

static void case_row(struct table *t, const struct report_run *run, const struct document_case *c)
{
    enum verdict v = (enum verdict)c->verdict;
    table_cell(t, TERM_PLAIN, c->id);
    candidate_cells(t, c, document_candidate(c));
    baseline_cells(t, c, v);
    mde_cell(t, run, c);
    for (size_t i = 0; i < run->n_providers; i++)
        provider_cells(t, c, run->providers[i]);
    struct buf verdict;
    buf_init(&verdict, 256);
    report_verdict(run, c, &verdict);
    table_cell(t, verdict_colour(v), verdict.data ? verdict.data : "");
    buf_release(&verdict);
    if (run->document->policy.warn_against)
        warning_cell(t, c);
}

static void case_table(const struct report_run *run, const struct report_style *style,
                       struct buf *out)
{
    char against[REPORT_NAME_MAX];
    report_against(run->document->policy.against, against);
    /* What the verdict rests on stays longest. */
    struct table_column columns[13 + 2 * REPORT_MAX_PROVIDERS] = {
        {"case", false, 0},    {"p50", true, 0},
        {"\xc2\xb1", true, 8}, {"p90", true, 7},
        {"rate", true, 5},     {"ceiling", true, 6},
        {"here", true, 5},     {against, true, 4},
        {"change", true, 0},   {"change \xc2\xb1", true, 3},
        {"MDE", true, 1},
    };
    size_t n = 11;
    for (size_t i = 0; i < run->n_providers; i++) {
        columns[n++] = (struct table_column){run->providers[i], true, 2};
        columns[n++] = (struct table_column){"ours is", true, 2};
    }
    columns[n++] = (struct table_column){"verdict", false, 0};
    char warned[REPORT_NAME_MAX], vs[REPORT_NAME_MAX + 4];
    snprintf(vs, sizeof vs, "vs %s", report_against(run->document->policy.warn_against, warned));
    if (run->document->policy.warn_against)
        columns[n++] = (struct table_column){vs, false, 0};

    struct table *t = table_new(columns, n);
    for (size_t i = 0; i < run->document->n_cases; i++) {
        const struct document_case *c = &run->document->cases[i];
        case_row(t, run, c);
    }
    table_write(t, style, out);
    table_free(t);
}

static void field(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, "%-9s ", name);
    term_puts(value, out);
    buf_putc(out, '\n');
}

static void header(const struct report_run *run, struct buf *out)
{
    struct buf text;
    char time[UNITS_MAX];

    buf_init(&text, 16 * 1024);
    buf_printf(&text, "%s (%s), driver %s, runtime %s", run->document->device.name,
               run->document->device.model, run->document->device.driver,
               run->document->device.runtime);
    field("device", text.data, out);
    buf_clear(&text);
    report_commit(run, &text);
    field("commit", text.data, out);
    buf_clear(&text);
    buf_printf(&text, "%s, %s UTC", run->document->suite, units_time(run->document->time_ms, time));
    field("suite", text.data, out);
    buf_clear(&text);
    report_conditions(run, &text);
    field("measured", text.data, out);
    buf_clear(&text);
    if (report_ceilings(run->document, &text))
        field("here", text.data, out);
    for (size_t i = 0; i < run->document->n_absent; i++) {
        const struct document_absent *absent = &run->document->absent[i];
        buf_clear(&text);
        buf_printf(&text, "%s (%s)", absent->provider, absent->reason);
        field("absent", text.data, out);
    }
    buf_release(&text);
    buf_putc(out, '\n');
}

/* A name and what follows, broken at spaces to the width, its lines under each other. */
static void evidence_line(const char *name, const char *words, const struct report_style *style,
                          struct buf *out)
{
    int indent = 16, column = indent;
    buf_printf(out, "  %-*s", indent - 2, name);
    while (*words) {
        int len = (int)strcspn(words, " ");
        if (style->width > 0 && column > indent && column + 1 + len > style->width) {
            buf_printf(out, "\n%*s", indent, "");
            column = indent;
        }
        buf_printf(out, "%s%.*s", column > indent ? " " : "", len, words);
        column += len + (column > indent);
        words += len + (words[len] == ' ');
    }
    buf_putc(out, '\n');
}

struct evidence_page {
    const struct report_style *style;
    struct buf *out;
};

static void put_evidence(void *context, const char *name, bool figures, const char *words)
{
    const struct evidence_page *page = context;
    (void)figures;
    evidence_line(name, words, page->style, page->out);
}

#define REASON_LONG 160 /* characters, from which on it is told in several lines */
#define REASON_WIDTH 100

/* A line for each part of a long reason. A command stays whole, so that it can be copied. */
static void put_reason(const char *reason, struct buf *out)
{
    static const char indent[] = "    ";
    const int n = (int)strlen(indent);
    if (strlen(reason) <= REASON_LONG) {
        term_puts(reason, out);
        return;
    }
    for (const char *end; *reason; reason = end) {
        struct buf words;
        buf_init(&words, 65536);
        end = strstr(reason, "; ");
        size_t length = end ? (size_t)(end - reason) : strlen(reason);
        end = reason + length + (end ? 2 : 0);
        struct buf part;
        buf_init(&part, 65536);
        buf_append(&part, reason, length);
        term_puts(part.data ? part.data : "", &words);
        buf_putc(out, '\n');
        buf_puts(out, indent);
        if (!strncmp(reason, "again: ", 7))
            buf_append(out, words.data, words.len);
        else
            term_wrap(words.data, words.len, n, n, REASON_WIDTH, out);
        buf_release(&part);
        buf_release(&words);
    }
}

static void reasons(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    struct report_reasons said;
    bool first = true;
    report_reasons_count(run, &said);
    for (size_t i = 0; i < run->document->n_cases; i++) {
        const struct document_case *c = &run->document->cases[i];
        enum verdict v = (enum verdict)c->verdict;
        size_t alike = report_is_told(c) ? report_reasons_take(&said, c) : 0;
        if (!alike)
            continue;
        if (first)
            buf_putc(out, '\n');
        first = false;
        term_colour_begin(style->colour, verdict_colour(v), out);
        buf_puts(out, verdict_name(v));
        term_colour_end(style->colour, verdict_colour(v), out);
        buf_putc(out, ' ');
        if (alike > 1)
            buf_printf(out, "%zu cases", alike);
        else
            term_puts(c->id, out);
        buf_puts(out, ": ");
        put_reason(c->reason, out);
        buf_putc(out, '\n');
        report_each_evidence(c, put_evidence, &(struct evidence_page){style, out});
    }
}

static void warnings(const struct report_run *run, struct buf *out)
{
    char name[REPORT_NAME_MAX];
    report_against(run->document->policy.warn_against, name);
    for (size_t i = 0; i < run->document->n_cases; i++) {
        const struct document_case *c = &run->document->cases[i];
        if (!report_warns(c))
            continue;
        buf_puts(out, "warning ");
        term_puts(c->id, out);
        buf_puts(out, " against ");
        term_puts(name, out);
        buf_printf(out, ": %s: ", verdict_name((enum verdict)c->warning.verdict));
        term_puts(c->warning.reason, out);
        buf_putc(out, '\n');
    }
}

static bool has_stored_baseline(const struct report_run *run)
{
    for (size_t i = 0; i < run->document->n_cases; i++) {
        const struct document_case *c = &run->document->cases[i];
        bool stored;
        if (report_baseline_ns(c, &stored) > 0 && stored)
            return true;
    }
    return false;
}

static void notes(const struct report_run *run, struct buf *out)
{
    if (run->warm)
        buf_puts(out, "* warm: the inputs do not exceed three times the cache\n");
    if (run->document->n_cases > 0 && report_has_ceilings(run->document))
        buf_puts(out,
                 "ceiling: share of the data sheet's maximum; here: share of what the gate's own "
                 "kernels reach on this GPU\n");
    if (has_stored_baseline(run))
        buf_puts(out, "(baseline): the stored time; the baseline was not measured beside the "
                      "candidate\n");
    if (run->more_providers)
        buf_printf(out, "only the first %d providers have columns\n", REPORT_MAX_PROVIDERS);
}

static void calibration_row(struct table *t, const struct calibration *k,
                            const struct document_calibrated *c)
{
    char text[UNITS_MAX];
    table_cell(t, TERM_PLAIN, c->id);
    table_cell(t, TERM_PLAIN, c->mde >= 0 ? units_percent(c->mde, text) : "");
    table_cell(t, c->resolved ? TERM_GREEN : TERM_YELLOW, c->resolved ? "yes" : "no");
    for (size_t i = 0; i < k->n_shares; i++)
        table_cell(t, TERM_PLAIN, calibration_case_rate(c, k->shares[i], text));
}

static void calibration_table(const struct report_run *run, const struct report_style *style,
                              struct buf *out)
{
    struct table_column columns[3 + CALIBRATION_MAX_SHARES] = {
        {"case", false, 0}, {"MDE", true, 0}, {"resolved", false, 0}};
    char names[CALIBRATION_MAX_SHARES][UNITS_MAX];
    struct calibration c;
    struct buf line;
    if (!run->document->has_calibration)
        return;
    if (!calibration_read(&run->document->calibration, &c)) {
        out->failed = true;
        calibration_release(&c);
        return;
    }
    buf_printf(out,
               "%scalibration, %lld processes a case: decisions that were red, by the share of "
               "time that was added\n",
               run->document->n_cases ? "\n" : "", (long long)run->document->calibration.processes);
    for (size_t i = 0; i < c.n_shares; i++)
        columns[3 + i] =
            (struct table_column){calibration_share_name(c.shares[i], names[i]), true, 0};
    struct table *t = table_new(columns, 3 + c.n_shares);
    for (size_t i = 0; i < c.n_cases; i++)
        calibration_row(t, &c, c.cases[i]);
    table_write(t, style, out);
    table_free(t);

    buf_init(&line, 64 * 1024);
    calibration_summary(&c, run->document->policy.threshold, &line);
    buf_puts(out, "calibration: ");
    buf_append(out, line.data, line.len);
    buf_putc(out, '\n');
    buf_release(&line);
    calibration_incomplete(&run->document->calibration, "incomplete: ", term_puts, out);
    calibration_release(&c);
}

void report_text(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    enum verdict v = (enum verdict)run->document->verdict;
    char accept[REPORT_ACCEPT_MAX];

    header(run, out);
    if (run->document->n_cases > 0)
        case_table(run, style, out);
    notes(run, out);
    reasons(run, style, out);
    warnings(run, out);
    calibration_table(run, style, out);
    buf_putc(out, '\n');
    if (run->n_unresolved > 0) {
        report_unresolved(run, term_puts, out);
        buf_putc(out, '\n');
    }
    if (run->n_same_code > 0) {
        report_same_code(run, out);
        buf_putc(out, '\n');
    }
    left_out_write_lines(&run->left_out, out);
    if (run->document->n_not_served) {
        report_not_served(run, out);
        buf_putc(out, '\n');
    }
    if (run->document->n_filtered) {
        report_filtered(run, out);
        buf_putc(out, '\n');
    }
    if (run->document->policy.warn_against) {
        struct buf line;
        buf_init(&line, 4096);
        report_warned(run, &line);
        term_puts(line.data, out);
        buf_putc(out, '\n');
        buf_release(&line);
    }
    if (run->document->policy.n_changed) {
        struct buf line;
        buf_init(&line, 65536);
        report_changed(run, &line);
        term_puts(line.data, out);
        buf_putc(out, '\n');
        buf_release(&line);
    }
    if (run->document->not_stored) {
        struct buf line;
        buf_init(&line, 65536);
        report_not_stored(run, &line);
        term_puts(line.data, out);
        buf_putc(out, '\n');
        buf_release(&line);
    }
    report_counts(run, out);
    buf_puts(out, " (");
    report_policy(run, out);
    buf_puts(out, "): ");
    term_colour_begin(style->colour, verdict_colour(v), out);
    buf_puts(out, verdict_name(v));
    term_colour_end(style->colour, verdict_colour(v), out);
    buf_putc(out, '\n');
    if (report_accept(run, accept))
        buf_printf(out, "if a slowdown is intended: %s\n", accept);
    if (report_was_disturbed(run))
        buf_puts(out, "if other programs disturbed it: `chrt -f 1 gate run` (as root) comes before "
                      "them on a CPU\n");
    if (run->link) {
        report_link_run(run->link, run->document->uuid, out);
        buf_putc(out, '\n');
    }
}
