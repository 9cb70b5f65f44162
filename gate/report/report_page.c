/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.c: a run as a page for people: on a terminal, and as the summary of a CI job for
 * GitHub and GitLab. Both have the same facts, table of cases, reasons and sentences; only the
 * order and the marks differ.
 *
 * A summary that would be too long shows the worst cases and says how many are left out, in the
 * table of a calibration too.
 */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/term.h"
#include "kernels/ops/dtype.h"

#define AGAIN "; again: "
#define COMMANDS_MAX 3
#define WARNING_SIGN "\xe2\x9a\xa0\xef\xb8\x8f "

struct page {
    const struct report_run *run;
    const struct document *d; /* the run's */
    const struct report_style *style;
    bool markdown;
    report_put_fn text, code;           /* write words of others; an id or a command */
    const struct document_case **cases; /* in the order of the page */
    size_t n_cases;                     /* that are shown, */
    const struct calibration *calibration;
    size_t n_calibrated; /* and calibrated ones */
    struct buf *out;
};

static enum term_colour verdict_colour(enum verdict v)
{
    static const enum term_colour colours[VERDICT_COUNT] = {
        [VERDICT_PASS] = TERM_GREEN,        [VERDICT_IMPROVEMENT] = TERM_CYAN,
        [VERDICT_REGRESSION] = TERM_RED,    [VERDICT_WRONG] = TERM_RED,
        [VERDICT_NO_VERDICT] = TERM_YELLOW, [VERDICT_ENVIRONMENT] = TERM_YELLOW,
    };
    return colours[v];
}

static const char *mark(enum verdict v)
{
    static const char *const marks[VERDICT_COUNT] = {
        [VERDICT_PASS] = "\xe2\x9c\x85",
        [VERDICT_IMPROVEMENT] = "\xf0\x9f\x9a\x80",
        [VERDICT_REGRESSION] = "\xe2\x9d\x8c",
        [VERDICT_WRONG] = "\xe2\x9d\x8c",
        [VERDICT_NO_VERDICT] = "\xe2\x9a\xa0\xef\xb8\x8f",
        [VERDICT_ENVIRONMENT] = "\xe2\x9a\xa0\xef\xb8\x8f",
    };
    return marks[v];
}

static void put_verdict(const struct page *p, enum verdict v)
{
    const bool colour = p->style->colour;
    if (p->markdown)
        buf_printf(p->out, "%s ", mark(v));
    term_colour_begin(colour, verdict_colour(v), p->out);
    buf_puts(p->out, verdict_name(v));
    term_colour_end(colour, verdict_colour(v), p->out);
}

/* The id of a case; in Markdown it leads to its page where there is a dashboard. */
static void put_case(const struct page *p, const struct document_case *c, struct buf *out)
{
    bool linked = p->markdown && p->run->link;
    buf_puts(out, linked ? "[" : "");
    p->code(c->id, out);
    if (!linked)
        return;
    buf_puts(out, "](");
    report_link_case(p->run->link, c->id, p->d->device.model, out);
    buf_putc(out, ')');
}

/* ---- the table of the cases ---- */

static const char *rate(const struct document_case *c, const struct document_timing *timing,
                        char out[UNITS_MAX])
{
    double tflops = timing->tflops, gbps = timing->gbps;
    const struct dtype *dtype = dtype_by_name(c->dtype);
    bool compute = 1000 * tflops > gbps * (dtype ? dtype->balance : 100);
    return compute ? units_flops(tflops, out) : units_rate(gbps, "GB/s", out);
}

/* p50, its half width, p90, rate, and the shares of the highest rates. */
static void candidate_cells(struct table *t, const struct document_case *c)
{
    const struct document_arm *arm = document_candidate(c);
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
    snprintf(p50_text, sizeof p50_text, "%s%s", timing->cold ? "" : "*", units_duration(p50, text));
    table_cell(t, TERM_PLAIN, p50_text);
    snprintf(text, sizeof text, half < 100 * p50 ? "%.2f %%" : "%.1g %%", 100 * half / p50);
    table_cell(t, TERM_DIM, text);
    table_cell(t, TERM_PLAIN, units_duration(timing->p90_ns, text));
    table_cell(t, TERM_PLAIN, rate(c, timing, text));
    double shares[] = {timing->ceiling, timing->measured_ceiling};
    for (int i = 0; i < 2; i++)
        table_cell(t, TERM_PLAIN, isnan(shares[i]) ? "" : units_share(shares[i], text));
}

/* p50, change and its half width. */
static void baseline_cells(const struct page *p, struct table *t, const struct document_case *c)
{
    enum verdict v = (enum verdict)c->verdict;
    bool stored;
    double baseline_ns = report_baseline_ns(c, &stored), change = report_change(c);
    double half_width = report_half_width(c);
    char text[UNITS_MAX], baseline_text[UNITS_MAX + 2];
    units_duration(baseline_ns, text);
    snprintf(baseline_text, sizeof baseline_text, stored ? "(%s)" : "%s", text);
    table_cell(t, stored ? TERM_DIM : TERM_PLAIN, baseline_ns > 0 ? baseline_text : "none");
    table_cell(t, v == VERDICT_PASS ? TERM_PLAIN : verdict_colour(v),
               change > 0                            ? units_change(change, text)
               : report_is_same_code(c)              ? "same code"
               : p->markdown && c->mode == MODE_NONE ? "no baseline"
                                                     : "");
    table_cell(t, TERM_DIM, half_width >= 0 ? units_percent(half_width, text) : "");
}

static void provider_cells(struct table *t, const struct document_case *c, const char *provider)
{
    const struct document_arm *arm = report_provider(c, provider);
    const struct document_timing *timing = report_timing(arm);
    double speed_up = report_speed_up(c, arm);
    char text[UNITS_MAX];
    table_cell(t, timing ? TERM_PLAIN : TERM_DIM,
               timing ? units_duration(timing->p50_ns, text) : report_no_timing(arm));
    table_cell(t, TERM_PLAIN, timing ? units_duration(timing->p90_ns, text) : "");
    table_cell(t, TERM_PLAIN, speed_up > 0 ? units_speed(speed_up, text) : "");
}

static void case_row(const struct page *p, struct table *t, const struct document_case *c,
                     struct buf *text)
{
    char mde[UNITS_MAX];
    enum verdict v = (enum verdict)c->verdict;
    buf_clear(text);
    put_case(p, c, text);
    table_cell(t, TERM_PLAIN, p->markdown ? text->data : c->id);
    candidate_cells(t, c);
    baseline_cells(p, t, c);
    table_cell(t, report_is_unresolved(p->run, c) ? TERM_YELLOW : TERM_PLAIN,
               c->mde >= 0 ? units_percent(c->mde, mde) : "");
    for (size_t i = 0; i < p->run->n_providers; i++)
        provider_cells(t, c, p->run->providers[i]);
    buf_clear(text);
    buf_printf(text, "%s%s%s", p->markdown ? mark(v) : "", p->markdown ? " " : "", verdict_name(v));
    if (!isnan(c->threshold) && c->threshold != p->d->policy.threshold)
        buf_printf(text, " (threshold %.3g %%)", 100 * c->threshold);
    const struct document_verify *verify = report_verify(document_candidate(c));
    if (p->run->n_remembered && verify && verify->ok)
        buf_puts(text, verify->verified_in ? ", verified in run " : ", verified");
    if (p->run->n_remembered && verify && verify->ok && verify->verified_in)
        buf_printf(text, "%.8s", verify->verified_in);
    table_cell(t, verdict_colour(v), text->data);
    if (!p->d->policy.warn_against)
        return;
    buf_clear(text);
    if (c->has_warning) {
        buf_puts(text, p->markdown && report_warns(c) ? WARNING_SIGN : "");
        report_warning(c, text);
    }
    table_cell(t, report_warns(c) ? TERM_YELLOW : TERM_DIM, text->len ? text->data : "");
}

static void put_table(const struct page *p, struct table *t)
{
    if (p->markdown)
        table_write_markdown(t, p->out);
    else
        table_write(t, p->style, p->out);
    table_free(t);
}

static void case_table(const struct page *p)
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
    if (!t) {
        p->out->failed = true;
        return;
    }
    table_markdown(t, CASE, "case", true);
    table_markdown(t, P50, "p50 / p90", false);
    table_markdown(t, P50_HALF, NULL, false);
    table_markdown(t, P90, " / ", false);
    table_markdown(t, RATE, NULL, false);
    bool ceilings = report_has_ceilings(p->d);
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
    struct buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < p->n_cases; i++)
        case_row(p, t, p->cases[i], &text);
    buf_release(&text);
    put_table(p, t);
}

/* ---- facts ---- */

static void fact(const struct page *p, const char *name, struct buf *value)
{
    buf_printf(p->out, p->markdown ? "- **%s:** " : "%-9s ", name);
    p->text(value->data, p->out);
    buf_putc(p->out, '\n');
    buf_clear(value);
}

static void facts(const struct page *p)
{
    const struct document_device *device = &p->d->device;
    char time[UNITS_MAX];
    struct buf text;
    buf_init(&text, 16 * 1024);
    buf_printf(&text, "%s (%s), driver %s, runtime %s", device->name, device->model, device->driver,
               device->runtime);
    fact(p, "device", &text);
    report_commit(p->run, &text);
    fact(p, "commit", &text);
    if (p->markdown && p->run->link) {
        buf_printf(p->out, "- **run:** [%.8s](", p->d->uuid);
        report_link_run(p->run->link, p->d->uuid, p->out);
        buf_puts(p->out, ")\n");
    }
    buf_printf(&text, "%s, %s UTC", p->d->suite, units_time(p->d->time_ms, time));
    fact(p, "suite", &text);
    report_conditions(p->run, &text);
    fact(p, "measured", &text);
    if (report_ceilings(p->d, &text))
        fact(p, "here", &text);
    for (size_t i = 0; i < p->d->n_absent; i++) {
        buf_printf(&text, "%s (%s)", p->d->absent[i].provider, p->d->absent[i].reason);
        fact(p, "absent", &text);
    }
    buf_release(&text);
    buf_putc(p->out, '\n');
}

/* ---- reasons ---- */

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

static void put_evidence(void *context, const char *name, bool figures, const char *words)
{
    const struct page *p = context;
    if (!p->markdown) {
        evidence_line(name, words, p->style, p->out);
        return;
    }
    buf_printf(p->out, "  - %s%s ", name, figures ? ":" : "");
    markdown_text(words, p->out);
    buf_putc(p->out, '\n');
}

#define REASON_LONG 160 /* characters, from which on it is told in several lines */
#define REASON_WIDTH 100

/* A line for each part of a long reason. A command stays whole, so that it can be copied. */
static void put_reason_text(const char *reason, struct buf *out)
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

/* The command that shows again what is wrong, at the end of a reason; NULL: there is none. */
static const char *find_command(const struct document_case *c)
{
    const char *found = NULL, *next = c->verdict == VERDICT_WRONG ? c->reason : NULL;
    while (next && (next = strstr(next, AGAIN)))
        found = next += strlen(AGAIN);
    return found;
}

static void put_reason(const struct page *p, const struct document_case *c)
{
    const char *command = find_command(c);
    struct buf words;
    if (!p->markdown) {
        put_reason_text(c->reason, p->out);
        return;
    }
    buf_init(&words, 64 * 1024);
    buf_append(&words, c->reason, command ? (size_t)(command - c->reason) : strlen(c->reason));
    markdown_text(words.data ? words.data : "", p->out);
    buf_release(&words);
    if (command)
        markdown_code(command, p->out);
}

/* Reason and evidence of each case that is not a plain pass, then what the second comparison warns
 * of. */
static void reasons(const struct page *p)
{
    const char *bullet = p->markdown ? "- " : "";
    char name[REPORT_NAME_MAX];
    struct report_reasons said;
    report_reasons_count(p->run, &said);
    for (size_t i = 0; i < p->n_cases; i++) {
        const struct document_case *c = p->cases[i];
        size_t alike = report_is_told(c) ? report_reasons_take(&said, c) : 0;
        if (!alike)
            continue;
        buf_puts(p->out, bullet);
        put_verdict(p, (enum verdict)c->verdict);
        buf_putc(p->out, ' ');
        if (alike > 1)
            buf_printf(p->out, "%zu cases", alike);
        else
            put_case(p, c, p->out);
        buf_puts(p->out, ": ");
        put_reason(p, c);
        buf_putc(p->out, '\n');
        report_each_evidence(c, put_evidence, (void *)(uintptr_t)p);
    }
    for (size_t i = 0; i < p->n_cases; i++) {
        const struct document_case *c = p->cases[i];
        if (!report_warns(c))
            continue;
        buf_printf(p->out, "%s%s", bullet, p->markdown ? WARNING_SIGN : "warning ");
        put_case(p, c, p->out);
        buf_puts(p->out, " against ");
        p->text(report_against(p->d->policy.warn_against, name), p->out);
        buf_printf(p->out, ": %s: ", verdict_name((enum verdict)c->warning.verdict));
        p->text(c->warning.reason, p->out);
        buf_putc(p->out, '\n');
    }
}

static size_t count_told(const struct page *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_cases; i++)
        n += report_is_told(p->cases[i]) + report_warns(p->cases[i]);
    return n;
}

/* They are what one needs first, so they are not folded away. */
static void commands(const struct page *p)
{
    size_t told = 0;
    for (size_t i = 0; i < p->n_cases && told < COMMANDS_MAX; i++) {
        const char *command = find_command(p->cases[i]);
        if (!command)
            continue;
        buf_puts(p->out, told++ ? "- " : "\nTo repeat the failures:\n\n- ");
        markdown_code(command, p->out);
        buf_putc(p->out, '\n');
    }
}

/* ---- a calibration ---- */

static void calibration_table(const struct page *p)
{
    const struct calibration *c = p->calibration;
    const struct document_calibration *made = &p->d->calibration;
    struct table_column columns[3 + CALIBRATION_MAX_SHARES] = {
        {"case", false, 0}, {"MDE", true, 0}, {"resolved", false, 0}};
    char names[CALIBRATION_MAX_SHARES][UNITS_MAX], text[UNITS_MAX];
    struct buf id;
    buf_init(&id, 4096);
    for (size_t i = 0; i < c->n_shares; i++)
        columns[3 + i] =
            (struct table_column){calibration_share_name(c->shares[i], names[i]), true, 0};
    struct table *t = table_new(columns, 3 + c->n_shares);
    if (t)
        table_markdown(t, 0, "case", true);
    for (size_t i = 0; i < p->n_calibrated; i++) {
        const struct document_calibrated *one = c->cases[i];
        buf_clear(&id);
        p->code(one->id, &id);
        table_cell(t, TERM_PLAIN, p->markdown ? id.data : one->id);
        table_cell(t, TERM_PLAIN, one->mde >= 0 ? units_percent(one->mde, text) : "");
        table_cell(t, one->resolved ? TERM_GREEN : TERM_YELLOW, one->resolved ? "yes" : "no");
        for (size_t k = 0; k < c->n_shares; k++)
            table_cell(t, TERM_PLAIN, calibration_case_rate(one, c->shares[k], text));
    }
    buf_release(&id);
    buf_printf(p->out,
               "%scalibration, %lld processes a case: decisions that were red, by the share of "
               "time that was added\n%s",
               p->markdown     ? "\n### Calibration\n\n"
               : p->d->n_cases ? "\n"
                               : "",
               (long long)made->processes, p->markdown ? "\n" : "");
    put_table(p, t);
    if (p->n_calibrated < c->n_cases)
        buf_printf(p->out, "\n%zu of %zu calibrated cases are left out; the worst come first.\n",
                   c->n_cases - p->n_calibrated, c->n_cases);
    buf_puts(p->out, p->markdown ? "\n" : "calibration: ");
    calibration_summary(c, p->d->policy.threshold, p->out);
    buf_puts(p->out, p->markdown && made->n_incomplete ? "\n\nIncomplete:\n\n" : "\n");
    calibration_incomplete(made, p->markdown ? "- " : "incomplete: ", p->text, p->out);
}

/* ---- sentences, each a line of its own ---- */

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
    for (size_t i = 0; i < d->n_cases && n < REPORT_MAX_UNRESOLVED; i++) {
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
    for (size_t i = 0; i < n && i < REPORT_NOT_SERVED_MAX; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list[i].id);
    if (n > REPORT_NOT_SERVED_MAX)
        buf_printf(out, " and %zu more", n - REPORT_NOT_SERVED_MAX);
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

static void sentences(const struct page *p)
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
                       p->markdown && all[i].warns ? WARNING_SIGN : "");
        buf_append(p->out, line.data, line.len);
        buf_puts(p->out, line.len ? "\n" : "");
    }
    buf_release(&line);
}

/* What marks in the table mean. */
static void legend(const struct page *p)
{
    bool any_stored = false;
    for (size_t i = 0; i < p->d->n_cases; i++) {
        bool stored;
        any_stored |= report_baseline_ns(&p->d->cases[i], &stored) > 0 && stored;
    }
    const char *begin = p->markdown ? "\n" : "";
    if (p->run->warm)
        buf_printf(p->out, "%s* warm: the inputs do not exceed three times the cache\n",
                   p->markdown ? "\n\\" : "");
    if (p->d->n_cases > 0 && report_has_ceilings(p->d))
        buf_printf(p->out,
                   "%sceiling: share of the data sheet's maximum; here: share of what the gate's "
                   "own kernels reach on this GPU\n",
                   begin);
    if (any_stored && !p->markdown)
        buf_puts(p->out, "(baseline): the stored time; the baseline was not measured beside the "
                         "candidate\n");
    if (p->run->more_providers)
        buf_printf(p->out, "%s%s the first %d providers have columns\n", begin,
                   p->markdown ? "Only" : "only", REPORT_MAX_PROVIDERS);
}

static void totals(const struct page *p)
{
    report_counts(p->run, p->out);
    buf_puts(p->out, p->markdown ? "** (" : " (");
    buf_printf(p->out, "threshold %.3g %%", 100 * p->d->policy.threshold);
    if (p->d->policy.host_threshold > 0)
        buf_printf(p->out, ", %.3g %% of launch() on the host", 100 * p->d->policy.host_threshold);
    buf_putc(p->out, ')');
}

/* "against baseline, as a warning: 1 regression, 11 pass" */
static void warned(const struct page *p, const char *end)
{
    char name[REPORT_NAME_MAX];
    if (!p->d->policy.warn_against)
        return;
    buf_puts(p->out, "against ");
    p->text(report_against(p->d->policy.warn_against, name), p->out);
    buf_puts(p->out, ", as a warning: ");
    report_put_counts(p->run->warned, p->out);
    buf_puts(p->out, end);
}

/* ---- the two pages ---- */

static void text_page(const struct page *p)
{
    char accept[REPORT_ACCEPT_MAX];
    facts(p);
    if (p->d->n_cases > 0)
        case_table(p);
    legend(p);
    buf_puts(p->out, count_told(p) ? "\n" : "");
    reasons(p);
    if (p->d->has_calibration)
        calibration_table(p);
    buf_putc(p->out, '\n');
    sentences(p);
    warned(p, "\n");
    totals(p);
    buf_puts(p->out, ": ");
    put_verdict(p, (enum verdict)p->d->verdict);
    buf_putc(p->out, '\n');
    if (report_accept(p->run, accept))
        buf_printf(p->out, "if a slowdown is intended: %s\n", accept);
    if (report_was_disturbed(p->run))
        buf_puts(p->out, "if other programs disturbed it: `chrt -f 1 gate run` (as root) comes "
                         "before them on a CPU\n");
    if (p->run->link) {
        report_link_run(p->run->link, p->d->uuid, p->out);
        buf_putc(p->out, '\n');
    }
}

static void markdown_page(const struct page *p)
{
    enum verdict v = (enum verdict)p->d->verdict;
    char accept[REPORT_ACCEPT_MAX];
    buf_printf(p->out, "## %s Kernel Gate: %s\n\n**", mark(v), verdict_name(v));
    totals(p);
    buf_puts(p->out, "\n\n");
    warned(p, "\n\n");
    facts(p);
    if (p->n_cases > 0)
        case_table(p);
    if (p->n_cases < p->d->n_cases)
        buf_printf(p->out, "\n%zu of %zu cases are left out; the worst come first.\n",
                   p->d->n_cases - p->n_cases, p->d->n_cases);
    legend(p);
    sentences(p);
    commands(p);
    if (report_accept(p->run, accept)) {
        buf_puts(p->out, "\nIf a slowdown is intended: ");
        markdown_code(accept, p->out);
        buf_puts(p->out, " (elsewhere than on the runner: first `gate import gate-run.json`, an "
                         "artifact of the job)\n");
    }
    if (report_was_disturbed(p->run))
        buf_puts(p->out, "\nIf other programs disturbed it: `chrt -f 1 gate run` (as root) comes "
                         "before them on a CPU.\n");
    size_t n_told = count_told(p);
    if (n_told) {
        buf_printf(p->out, "\n<details><summary>Reasons and evidence (%zu)</summary>\n\n", n_told);
        reasons(p);
        buf_puts(p->out, "\n</details>\n");
    }
    struct table *covered = covered_table(&p->run->covered);
    if (covered) {
        buf_puts(p->out, "\n<details><summary>What verification covered</summary>\n\n");
        put_table(p, covered);
        buf_puts(p->out, "\n</details>\n");
    }
    if (p->d->has_calibration)
        calibration_table(p);
}

/* Of equal cases the first of the document comes first. */
static int compare_cases(const void *a, const void *b)
{
    const struct document_case *x = *(const struct document_case *const *)a,
                               *y = *(const struct document_case *const *)b;
    int order =
        report_severity((enum verdict)y->verdict) - report_severity((enum verdict)x->verdict);
    return order ? order : (x > y) - (x < y);
}

static void write_page(const struct report_run *run, const struct report_style *style,
                       bool markdown, struct buf *out)
{
    const struct document *d = run->document;
    struct calibration calibration;
    struct page p = {.run = run,
                     .d = d,
                     .style = style,
                     .markdown = markdown,
                     .text = markdown ? markdown_text : term_puts,
                     .code = markdown ? markdown_code : term_puts,
                     .cases = calloc(d->n_cases + 1, sizeof *p.cases),
                     .n_cases = d->n_cases,
                     .calibration = &calibration,
                     .out = out};
    if (!calibration_read(&d->calibration, &calibration) || !p.cases) {
        out->failed = true;
        calibration_release(&calibration);
        free(p.cases);
        return;
    }
    p.n_calibrated = calibration.n_cases;
    for (size_t i = 0; i < d->n_cases; i++)
        p.cases[i] = &d->cases[i];
    if (markdown) {
        struct buf summary;
        buf_init(&summary, style->markdown_max ? style->markdown_max : REPORT_MARKDOWN_MAX);
        p.out = &summary;
        markdown_page(&p);
        if (summary.failed)
            qsort(p.cases, d->n_cases, sizeof *p.cases, compare_cases);
        size_t n = d->n_cases > calibration.n_cases ? d->n_cases : calibration.n_cases;
        while (summary.failed && n > 0) {
            n = n * 7 / 8;
            p.n_cases = n < d->n_cases ? n : d->n_cases;
            p.n_calibrated = n < calibration.n_cases ? n : calibration.n_cases;
            buf_clear(&summary);
            markdown_page(&p);
        }
        out->failed |= summary.failed;
        buf_append(out, summary.data, summary.len);
        buf_release(&summary);
    } else {
        text_page(&p);
    }
    calibration_release(&calibration);
    free(p.cases);
}

void report_text(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    write_page(run, style, false, out);
}

void report_markdown(const struct report_run *run, const struct report_style *style,
                     struct buf *out)
{
    const struct report_style plain = {.markdown_max = style->markdown_max};
    write_page(run, &plain, true, out);
}

void report_markdown_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "### \xe2\x9d\x8c Kernel Gate ended early (exit code %d)\n\n", exit_code);
    markdown_text(message, out);
    buf_putc(out, '\n');
}
