/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_markdown.c: a run as the summary of a CI job, for GitHub and GitLab.
 *
 * A summary that would be too long shows the worst cases and says how many are left out, in the
 * table of a calibration too.
 */
#include "gate/report/report_run.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/report/report_calibration.h"
#include "gate/report/report_units.h"

#define AGAIN "; again: "
#define COMMANDS_MAX 3

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

/* What the services make links, mentions or commands of where a word follows. */
static bool begins_reference(const char *text, size_t left)
{
    if (left > 2 && text[0] == ':')
        return text[1] == '/';
    return left > 1 && strchr("@#!$%&~", text[0]) && text[0] &&
           (isalnum((unsigned char)text[1]) || text[1] == '"');
}

/* One line of text in which nothing is markup, neither Markdown's nor HTML's nor the table's, and
 * nothing is a reference: those are broken by a space of no width. */
static void put_text(const char *text, struct buf *out)
{
    size_t left = strlen(text);
    while (left > 0) {
        uint32_t code;
        size_t n = utf8_decode(text, left, &code);
        if (n == 0)
            buf_puts(out, "\xef\xbf\xbd");
        else if (code < 0x20 || code == 0x7f)
            buf_putc(out, ' ');
        else if (code == '<')
            buf_puts(out, "&lt;");
        else if (code == '>')
            buf_puts(out, "&gt;");
        else if (code == '&')
            buf_puts(out, "&amp;");
        else if (code < 0x80 && strchr("\\`*_[]|~#!", (int)code))
            buf_printf(out, "\\%c", (char)code);
        else
            buf_append(out, text, n);
        if (begins_reference(text, left) || (left > 4 && !strncasecmp(text, "www.", 4)))
            buf_puts(out, "\xe2\x80\x8b");
        n = n ? n : 1;
        text += n;
        left -= n;
    }
}

/* A code span. Its text can't be escaped, so what would end the span or the cell is replaced. */
static void put_code(const char *text, struct buf *out)
{
    buf_putc(out, '`');
    for (; *text; text++)
        buf_putc(out, *text == '`' || *text == '|' || (unsigned char)*text < 0x20 ? '?' : *text);
    buf_putc(out, '`');
}

/* The id of a case, which leads to its page where there is a dashboard. */
static void put_case(const struct report_run *run, const struct document_case *c, struct buf *out)
{
    buf_puts(out, run->link ? "[" : "");
    put_code(c->id, out);
    if (!run->link)
        return;
    buf_puts(out, "](");
    report_link_case(run->link, c->id, run->document->device.model, out);
    buf_putc(out, ')');
}

static void put_times(const struct document_arm *arm, struct buf *out)
{
    const struct document_timing *timing = report_timing(arm);
    char p50[UNITS_MAX], p90[UNITS_MAX];
    if (!timing)
        buf_puts(out, report_no_timing(arm));
    else
        buf_printf(out, "%s%s / %s", timing->cold ? "" : "(warm) ",
                   units_duration(timing->p50_ns, p50), units_duration(timing->p90_ns, p90));
}

static void put_change(const struct document_case *c, struct buf *out)
{
    double change = report_change(c), half_width = report_half_width(c);
    char text[UNITS_MAX];
    if (change > 0) {
        buf_puts(out, units_change(change, text));
        buf_printf(out, " \xc2\xb1 %s", units_percent(half_width, text));
    } else if (report_is_same_code(c)) {
        buf_puts(out, "same code");
    } else if (c->mode == MODE_NONE) {
        buf_puts(out, "no baseline");
    } else {
        buf_puts(out, "-");
    }
}

/* Of the data sheet's rates, and of those that the GPU reached. */
static void put_ceilings(const struct report_run *run, const struct document_arm *arm,
                         struct buf *out)
{
    const struct document_timing *timing = report_timing(arm);
    char text[UNITS_MAX];
    if (!report_has_ceilings(run->document))
        return;
    buf_puts(out, timing && timing->ceiling > 0 ? units_share(timing->ceiling, text) : "-");
    buf_puts(out, " / ");
    bool known = timing && timing->measured_ceiling > 0;
    buf_puts(out, known ? units_share(timing->measured_ceiling, text) : "-");
    buf_puts(out, " | ");
}

static void put_mde(double mde, struct buf *out)
{
    char text[UNITS_MAX];
    buf_puts(out, mde >= 0 ? units_percent(mde, text) : "-");
}

static void table_row(const struct report_run *run, const struct document_case *c, struct buf *out)
{
    enum verdict v = (enum verdict)c->verdict;
    const struct document_arm *candidate = document_candidate(c);
    char text[UNITS_MAX];

    buf_puts(out, "| ");
    put_case(run, c, out);
    buf_puts(out, " | ");
    if (candidate)
        put_times(candidate, out);
    else
        buf_puts(out, "failed");
    buf_puts(out, " | ");
    put_ceilings(run, candidate, out);
    for (size_t i = 0; i < run->n_providers; i++) {
        const struct document_arm *arm = report_provider(c, run->providers[i]);
        double speed_up = report_speed_up(c, arm);
        put_times(arm, out);
        buf_printf(out, " | %s | ", speed_up > 0 ? units_speed(speed_up, text) : "-");
    }
    put_change(c, out);
    buf_puts(out, " | ");
    put_mde(c->mde, out);
    buf_printf(out, " | %s ", mark(v));
    report_verdict(run, c, out);
    buf_puts(out, " |");
    if (run->document->policy.warn_against) {
        buf_puts(out, report_warns(c) ? " \xe2\x9a\xa0\xef\xb8\x8f " : " ");
        report_warning(c, out);
        buf_puts(out, " |");
    }
    buf_putc(out, '\n');
}

static void put_against(const char *against, struct buf *out)
{
    char name[REPORT_NAME_MAX];
    buf_puts(out, "vs ");
    put_text(report_against(against, name), out);
}

static void table_head(const struct report_run *run, struct buf *out)
{
    const struct document_policy *policy = &run->document->policy;
    const bool ceilings = report_has_ceilings(run->document);
    buf_printf(out, "| case | p50 / p90 | %s", ceilings ? "ceiling / here | " : "");
    for (size_t i = 0; i < run->n_providers; i++) {
        put_text(run->providers[i], out);
        buf_puts(out, " p50 / p90 | ours is | ");
    }
    put_against(policy->against, out);
    buf_puts(out, " | MDE | verdict |");
    if (policy->warn_against) {
        buf_putc(out, ' ');
        put_against(policy->warn_against, out);
        buf_puts(out, " |");
    }
    buf_printf(out, "\n|:--|--:|%s", ceilings ? "--:|" : "");
    for (size_t i = 0; i < run->n_providers; i++)
        buf_puts(out, "--:|--:|");
    buf_printf(out, "--:|--:|:--|%s\n", policy->warn_against ? ":--|" : "");
}

static void fact(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, "- **%s:** ", name);
    put_text(value, out);
    buf_putc(out, '\n');
}

static void head(const struct report_run *run, struct buf *out)
{
    enum verdict v = (enum verdict)run->document->verdict;
    struct buf text;

    buf_init(&text, 16 * 1024);
    buf_printf(out, "## %s Kernel Gate: %s\n\n**", mark(v), verdict_name(v));
    report_counts(run, out);
    buf_puts(out, "** (");
    report_policy(run, out);
    buf_puts(out, ")\n\n");
    if (run->document->policy.warn_against) {
        report_warned(run, &text);
        put_text(text.data, out);
        buf_puts(out, "\n\n");
        buf_clear(&text);
    }
    buf_printf(&text, "%s (%s)", run->document->device.name, run->document->device.model);
    fact("device", text.data, out);
    buf_clear(&text);
    buf_printf(&text, "%s, runtime %s", run->document->device.driver,
               run->document->device.runtime);
    fact("driver", text.data, out);
    buf_clear(&text);
    report_commit(run, &text);
    fact("commit", text.data, out);
    buf_clear(&text);
    if (run->link) {
        const char *uuid = run->document->uuid;
        buf_printf(out, "- **run:** [%.8s](", uuid);
        report_link_run(run->link, uuid, out);
        buf_puts(out, ")\n");
    }
    fact("suite", run->document->suite, out);
    report_conditions(run, &text);
    fact("measured", text.data, out);
    buf_clear(&text);
    if (report_ceilings(run->document, &text))
        fact("here", text.data, out);
    for (size_t i = 0; i < run->document->n_absent; i++) {
        const struct document_absent *absent = &run->document->absent[i];
        buf_clear(&text);
        buf_printf(&text, "%s: %s", absent->provider, absent->reason);
        fact("absent", text.data, out);
    }
    buf_putc(out, '\n');
    buf_release(&text);
}

/* The command that shows again what is wrong, at the end of a reason; NULL: there is none. */
static const char *find_command(const struct document_case *c)
{
    const char *found = NULL, *next = c->verdict == VERDICT_WRONG ? c->reason : NULL;
    while (next && (next = strstr(next, AGAIN)))
        found = next += strlen(AGAIN);
    return found;
}

static void put_reason(const struct document_case *c, struct buf *out)
{
    const char *command = find_command(c);
    struct buf words;
    buf_init(&words, 64 * 1024);
    buf_append(&words, c->reason, command ? (size_t)(command - c->reason) : strlen(c->reason));
    put_text(words.data ? words.data : "", out);
    buf_release(&words);
    if (command)
        put_code(command, out);
}

/* It is what one needs first, so it is not folded away. */
static void commands(const struct document_case *const *cases, size_t n, struct buf *out)
{
    size_t told = 0;
    for (size_t i = 0; i < n && told < COMMANDS_MAX; i++) {
        const char *command = find_command(cases[i]);
        if (!command)
            continue;
        buf_puts(out, told++ ? "- "
                             : "\n"
                               "To repeat the failures:\n"
                               "\n"
                               "- ");
        put_code(command, out);
        buf_putc(out, '\n');
    }
}

static void put_evidence(void *context, const char *name, bool figures, const char *words)
{
    buf_printf(context, "  - %s%s ", name, figures ? ":" : "");
    put_text(words, context);
    buf_putc(context, '\n');
}

static void warning(const struct report_run *run, const struct document_case *c, struct buf *out)
{
    buf_puts(out, "- \xe2\x9a\xa0\xef\xb8\x8f ");
    put_against(run->document->policy.warn_against, out);
    buf_printf(out, ": %s ", verdict_name((enum verdict)c->warning.verdict));
    put_case(run, c, out);
    buf_puts(out, ": ");
    put_text(c->warning.reason, out);
    buf_putc(out, '\n');
}

/* Reason and evidence of each case that is not a plain pass. */
static void details(const struct report_run *run, const struct document_case *const *cases,
                    size_t n, struct buf *out)
{
    size_t n_told = 0;
    struct report_reasons said;
    report_reasons_count(run, &said);
    for (size_t i = 0; i < n; i++)
        n_told += report_is_told(cases[i]) + report_warns(cases[i]);
    if (n_told == 0)
        return;
    buf_printf(out, "\n<details><summary>Reasons and evidence (%zu)</summary>\n\n", n_told);
    for (size_t i = 0; i < n; i++) {
        enum verdict v = (enum verdict)cases[i]->verdict;
        size_t alike = report_is_told(cases[i]) ? report_reasons_take(&said, cases[i]) : 0;
        if (!alike)
            continue;
        buf_printf(out, "- %s %s ", mark(v), verdict_name(v));
        if (alike > 1)
            buf_printf(out, "%zu cases", alike);
        else
            put_case(run, cases[i], out);
        buf_puts(out, ": ");
        put_reason(cases[i], out);
        buf_putc(out, '\n');
        report_each_evidence(cases[i], put_evidence, out);
    }
    for (size_t i = 0; i < n; i++)
        if (report_warns(cases[i]))
            warning(run, cases[i], out);
    buf_puts(out, "\n</details>\n");
}

static void calibration_row(const struct calibration *k, const struct document_calibrated *c,
                            struct buf *out)
{
    char text[UNITS_MAX];
    buf_puts(out, "| ");
    put_code(c->id, out);
    buf_puts(out, " | ");
    put_mde(c->mde, out);
    buf_puts(out, c->resolved ? " | yes |" : " | **no** |");
    for (size_t i = 0; i < k->n_shares; i++)
        buf_printf(out, " %s |", calibration_case_rate(c, k->shares[i], text));
    buf_putc(out, '\n');
}

static void calibration(const struct report_run *run, const struct calibration *c, size_t n_shown,
                        struct buf *out)
{
    char text[UNITS_MAX];
    buf_puts(out, "\n### Calibration\n\n**");
    calibration_summary(c, run->document->policy.threshold, out);
    buf_printf(out,
               "**\n\nDecisions that were red, by the share of time that was added, from %lld "
               "processes a case:\n\n| case | MDE | resolved |",
               (long long)run->document->calibration.processes);
    for (size_t i = 0; i < c->n_shares; i++)
        buf_printf(out, " %s |", calibration_share_name(c->shares[i], text));
    buf_puts(out, "\n|:--|--:|:--|");
    for (size_t i = 0; i < c->n_shares; i++)
        buf_puts(out, "--:|");
    buf_putc(out, '\n');
    for (size_t i = 0; i < n_shown; i++)
        calibration_row(c, c->cases[i], out);
    if (n_shown < c->n_cases)
        buf_printf(out, "\n%zu of %zu calibrated cases are left out; the worst come first.\n",
                   c->n_cases - n_shown, c->n_cases);
    if (run->document->calibration.n_incomplete > 0) {
        buf_puts(out, "\nIncomplete:\n\n");
        calibration_incomplete(&run->document->calibration, "- ", put_text, out);
    }
}

static void left_out(const struct report_run *run, struct buf *out)
{
    struct buf line;
    buf_init(&line, 16 * 1024);
    left_out_write(&run->left_out, &line);
    if (line.len > 0) {
        buf_puts(out, "\nLeft out: ");
        put_text(line.data, out);
        buf_putc(out, '\n');
    }
    if (run->left_out.own_shape_only > 0) {
        buf_puts(out, "\n\xe2\x9a\xa0\xef\xb8\x8f ");
        left_out_write_own_shape(&run->left_out, put_code, out);
        buf_putc(out, '\n');
    }
    buf_release(&line);
}

/* By class and op; nothing of documents that do not say. */
static void covered(const struct report_run *run, struct buf *out)
{
    const struct covered_sums *sums = &run->covered;
    struct covered_class row;
    size_t at = 0;
    if (!sums->n)
        return;
    buf_puts(out, "\n<details><summary>What verification covered</summary>\n\n| covered | class |");
    for (size_t i = 0; i < sums->n; i++)
        buf_printf(out, " %s |", sums->of[i].name);
    buf_puts(out, "\n|:--|:--|");
    for (size_t i = 0; i < sums->n; i++)
        buf_puts(out, "--:|");
    while (covered_next(sums, &at, &row)) {
        buf_printf(out, "\n| %s | %s |", row.what, row.name);
        for (size_t i = 0; i < sums->n; i++)
            buf_printf(out, " %lld |", (long long)row.count[i]);
    }
    buf_puts(out, "\n\n</details>\n");
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* Writes the whole summary with the first n of the cases, and of the calibrated ones. */
static void render(const struct report_run *run, const struct document_case *const *cases,
                   const struct calibration *calibrated, size_t n, struct buf *out)
{
    size_t n_shown = at_most(n, run->document->n_cases);
    char accept[REPORT_ACCEPT_MAX];
    head(run, out);
    if (n_shown > 0) {
        table_head(run, out);
        for (size_t i = 0; i < n_shown; i++)
            table_row(run, cases[i], out);
    }
    if (n_shown < run->document->n_cases)
        buf_printf(out, "\n%zu of %zu cases are left out; the worst come first.\n",
                   run->document->n_cases - n_shown, run->document->n_cases);
    if (run->more_providers)
        buf_printf(out, "\nOnly the first %d providers have columns.\n", REPORT_MAX_PROVIDERS);
    if (run->n_unresolved > 0) {
        buf_puts(out, "\n\xe2\x9a\xa0\xef\xb8\x8f ");
        report_unresolved(run, put_code, out);
        buf_putc(out, '\n');
    }
    if (run->n_same_code > 0) {
        buf_putc(out, '\n');
        report_same_code(run, out);
        buf_putc(out, '\n');
    }
    left_out(run, out);
    if (run->document->not_stored) {
        struct buf line;
        buf_init(&line, 65536);
        report_not_stored(run, &line);
        buf_puts(out, "\n\xe2\x9a\xa0\xef\xb8\x8f ");
        put_code(line.data, out);
        buf_putc(out, '\n');
        buf_release(&line);
    }
    if (run->document->policy.n_changed) {
        struct buf line;
        buf_init(&line, 65536);
        report_changed(run, &line);
        buf_puts(out, "\n\xe2\x9a\xa0\xef\xb8\x8f ");
        put_code(line.data, out);
        buf_putc(out, '\n');
        buf_release(&line);
    }
    if (run->document->n_not_served) {
        buf_putc(out, '\n');
        report_not_served(run, out);
        buf_putc(out, '\n');
    }
    if (run->document->n_filtered) {
        buf_putc(out, '\n');
        report_filtered(run, out);
        buf_putc(out, '\n');
    }
    commands(cases, n_shown, out);
    if (report_accept(run, accept)) {
        buf_puts(out, "\nIf a slowdown is intended: ");
        put_code(accept, out);
        buf_puts(out, " (elsewhere than on the runner: first `gate import gate-run.json`, an "
                      "artifact of the job)\n");
    }
    if (report_was_disturbed(run))
        buf_puts(out,
                 "\nIf other programs disturbed it: `chrt -f 1 gate run` (as root) comes before "
                 "them on a CPU.\n");
    details(run, cases, n_shown, out);
    covered(run, out);
    if (run->document->has_calibration)
        calibration(run, calibrated, at_most(n, calibrated->n_cases), out);
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

void report_markdown(const struct report_run *run, const struct report_style *style,
                     struct buf *out)
{
    const struct document_case **cases = calloc(run->document->n_cases + 1, sizeof(*cases));
    struct calibration calibrated = {0};
    struct buf summary;
    size_t n = 0;

    buf_init(&summary, style->markdown_max ? style->markdown_max : REPORT_MARKDOWN_MAX);
    if (!cases || !calibration_read(&run->document->calibration, &calibrated)) {
        out->failed = true;
        goto out;
    }
    for (size_t i = 0; i < run->document->n_cases; i++) {
        const struct document_case *c = &run->document->cases[i];
        cases[n++] = c;
    }
    n = n > calibrated.n_cases ? n : calibrated.n_cases;
    render(run, cases, &calibrated, n, &summary);
    if (summary.failed)
        qsort(cases, run->document->n_cases, sizeof *cases, compare_cases);
    while (summary.failed && n > 0) {
        n = n * 7 / 8;
        buf_clear(&summary);
        render(run, cases, &calibrated, n, &summary);
    }
    if (summary.failed)
        out->failed = true;
    buf_append(out, summary.data, summary.len);
out:
    calibration_release(&calibrated);
    buf_release(&summary);
    free(cases);
}

void report_markdown_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "### \xe2\x9d\x8c Kernel Gate ended early (exit code %d)\n\n", exit_code);
    put_text(message, out);
    buf_putc(out, '\n');
}
