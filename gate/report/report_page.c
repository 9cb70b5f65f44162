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

#include "gate/base/utf8.h"
#include "gate/base/term.h"

#define AGAIN "; again: "
#define COMMANDS_MAX 3

/* Severity is the order for "worst first". */
static const struct {
    int severity;
    enum term_colour colour;
    const char *mark;
} looks[VERDICT_COUNT] = {
    [VERDICT_PASS] = {0, TERM_GREEN, "\xe2\x9c\x85"},
    [VERDICT_IMPROVEMENT] = {1, TERM_CYAN, "\xf0\x9f\x9a\x80"},
    [VERDICT_NO_VERDICT] = {2, TERM_YELLOW, "\xe2\x9a\xa0\xef\xb8\x8f"},
    [VERDICT_ENVIRONMENT] = {3, TERM_YELLOW, "\xe2\x9a\xa0\xef\xb8\x8f"},
    [VERDICT_REGRESSION] = {4, TERM_RED, "\xe2\x9d\x8c"},
    [VERDICT_WRONG] = {5, TERM_RED, "\xe2\x9d\x8c"},
};

enum term_colour page_colour(enum verdict v)
{
    return looks[v].colour;
}

const char *page_mark(enum verdict v)
{
    return looks[v].mark;
}

bool page_warns(const struct document_case *c)
{
    return c->has_warning && c->warning.verdict != VERDICT_PASS &&
           c->warning.verdict != VERDICT_IMPROVEMENT;
}

void page_put_case(const struct page *p, const struct document_case *c, struct buf *out)
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

void page_put_table(const struct page *p, struct table *t)
{
    table_write(t, p->style, p->out);
    table_free(t);
}

static void put_verdict(const struct page *p, enum verdict v)
{
    const bool colour = p->style->colour;
    if (p->markdown)
        buf_printf(p->out, "%s ", page_mark(v));
    term_colour_begin(colour, page_colour(v), p->out);
    buf_puts(p->out, verdict_name(v));
    term_colour_end(colour, page_colour(v), p->out);
}

/* "12 pass, 1 regression", most severe last. */
static void put_counts(const size_t counts[VERDICT_COUNT], struct buf *out)
{
    const char *separator = "";
    for (int severity = 0; severity < VERDICT_COUNT; severity++) {
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if (looks[v].severity != severity || counts[v] == 0)
                continue;
            buf_printf(out, "%s%zu %s", separator, counts[v], verdict_name((enum verdict)v));
            separator = ", ";
        }
    }
}

/* ---- facts ---- */

static void fact(const struct page *p, const char *name, struct buf *value)
{
    buf_printf(p->out, p->markdown ? "- **%s:** " : "%-9s ", name);
    p->text(value->data, p->out);
    buf_putc(p->out, '\n');
    buf_clear(value);
}

/* "5c3f01a2b9d4, changed (main) subject, by author", "not known" */
static void put_commit(const struct document_git *git, struct buf *out)
{
    if (!git->commit[0]) {
        buf_puts(out, "not known");
        return;
    }
    buf_printf(out, "%.12s", git->commit);
    if (git->dirty)
        buf_puts(out, ", changed");
    if (git->branch[0])
        buf_printf(out, " (%s)", git->branch);
    if (git->subject[0])
        buf_printf(out, " %s", git->subject);
    if (git->subject[0] && git->author)
        buf_printf(out, ", by %s", git->author);
}

/* "contract paired-graph-v3, epoch ..., 10 processes, control drift 0.12 %, against baseline", as
 * far as the document has it. */
static void put_conditions(const struct document *d, struct buf *out)
{
    char text[UNITS_MAX];
    buf_printf(out, "contract %s", d->contract);
    if (d->epoch && d->epoch[0])
        buf_printf(out, ", epoch %s", d->epoch);
    if (d->n_processes > 0)
        buf_printf(out, ", %lld process%s", (long long)d->n_processes,
                   d->n_processes == 1 ? "" : "es");
    if (!isnan(d->control_drift))
        buf_printf(out, ", control drift %s", units_percent(d->control_drift, text));
    if (d->policy.against && d->policy.against[0])
        buf_printf(out, ", against %.*s", hex_is(d->policy.against, 40) ? 12 : -1,
                   d->policy.against);
    if (d->policy.base)
        buf_printf(out, ", where this branch left %s", d->policy.base);
    if (d->users_checked == NO)
        buf_puts(out, ", other users of the GPU not checked");
    if (d->launch_order_checked == NO)
        buf_puts(out, ", order of launches not checked");
}

/* "read 4530, copy 4250 GB/s; fp16 835, bf16 850, ... TFLOP/s", or why this is not known. */
static void put_ceilings(const struct document *d, struct buf *out)
{
    const struct document_ceilings *c = &d->ceilings;
    const struct {
        const char *before;
        double value;
    } rates[] = {{"read ", c->read_gbps},          {", copy ", c->copy_gbps},
                 {" GB/s; fp16 ", c->fp16_tflops}, {", bf16 ", c->bf16_tflops},
                 {", TF32 ", c->tf32_tflops},      {", fp32 ", c->fp32_tflops}};
    if (c->message) {
        buf_printf(out, "not measured here: %s", c->message);
        return;
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        bool whole = rates[i].value >= 100 && rates[i].value < 1e6;
        buf_puts(out, rates[i].before);
        if (isnan(rates[i].value))
            buf_putc(out, '-');
        else
            buf_printf(out, whole ? "%.0f" : "%.3g", rates[i].value);
    }
    buf_puts(out, " TFLOP/s by the gate's own kernels");
}

static void facts(const struct page *p)
{
    const struct document_device *device = &p->d->device;
    char time[UNITS_MAX];
    RELEASED_BY(buf_release) struct buf text = buf_of(16 * 1024);
    buf_printf(&text, "%s (%s), driver %s, runtime %s", device->name, device->model, device->driver,
               device->runtime);
    fact(p, "device", &text);
    put_commit(&p->d->git, &text);
    fact(p, "commit", &text);
    if (p->markdown && p->run->link) {
        buf_printf(p->out, "- **run:** [%.8s](", p->d->uuid);
        report_link_run(p->run->link, p->d->uuid, p->out);
        buf_puts(p->out, ")\n");
    }
    buf_printf(&text, "%s, %s UTC", p->d->suite, units_time(p->d->time_ms, time));
    fact(p, "suite", &text);
    put_conditions(p->d, &text);
    fact(p, "measured", &text);
    if (p->d->has_ceilings) {
        put_ceilings(p->d, &text);
        fact(p, "here", &text);
    }
    for (size_t i = 0; i < p->d->n_absent; i++) {
        buf_printf(&text, "%s (%s)", p->d->absent[i].provider, p->d->absent[i].reason);
        fact(p, "absent", &text);
    }
    buf_putc(p->out, '\n');
}

/* ---- reasons ---- */

/* A name and what follows, broken at spaces to the width, its lines under each other. */
static void put_evidence(void *context, const char *name, bool figures, const char *words)
{
    enum { INDENT = 16 };
    const struct page *p = context;
    if (p->markdown) {
        buf_printf(p->out, "  - %s%s ", name, figures ? ":" : "");
        markdown_text(words, p->out);
    } else {
        buf_printf(p->out, "  %-*s", INDENT - 2, name);
        term_wrap(words, strlen(words), INDENT, INDENT, p->style->width, p->out);
    }
    buf_putc(p->out, '\n');
}

#define REASON_LONG 160 /* characters, from which on it is told in several lines */
#define REASON_WIDTH 100
#define REASON_INDENT "    "

/* A line for each part of a long reason. A command stays whole, so that it can be copied. */
static void put_reason_text(const char *reason, struct buf *out)
{
    const int n = (int)strlen(REASON_INDENT);
    if (strlen(reason) <= REASON_LONG) {
        term_puts(reason, out);
        return;
    }
    RELEASED_BY(buf_release) struct buf part = buf_of(65536);
    RELEASED_BY(buf_release) struct buf words = buf_of(65536);
    for (const char *end; *reason; reason = end) {
        end = strstr(reason, "; ");
        size_t length = end ? (size_t)(end - reason) : strlen(reason);
        buf_clear(&part);
        buf_clear(&words);
        buf_append(&part, reason, length);
        term_puts(part.data, &words);
        buf_puts(out, "\n" REASON_INDENT);
        if (!strncmp(reason, "again: ", 7))
            buf_append(out, words.data, words.len);
        else
            term_wrap(words.data, words.len, n, n, REASON_WIDTH, out);
        end = reason + length + (end ? 2 : 0);
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
    if (!p->markdown) {
        put_reason_text(c->reason, p->out);
        return;
    }
    RELEASED_BY(buf_release) struct buf words = buf_of(64 * 1024);
    buf_append(&words, c->reason, command ? (size_t)(command - c->reason) : strlen(c->reason));
    markdown_text(words.data, p->out);
    if (command)
        markdown_code(command, p->out);
}

/* A launch() that takes so many times as long on the host, and so much longer, is told, whatever
 * the verdict. */
#define CALLS_STAND_OUT 1.25
#define CALLS_STAND_OUT_NS 100e3

/* A case whose reason is shown: it did not pass, its baseline's record is off, or its calls stand
 * out. */
static bool is_told(const struct document_case *c)
{
    const struct document_timing *t = report_timing(document_candidate(c));
    if (c->verdict != VERDICT_PASS || (c->has_baseline && c->baseline.off == YES))
        return true;
    return c->has_ratio_calls && t && c->ratio_calls.lo > CALLS_STAND_OUT &&
           t->call_ns - t->call_ns / c->ratio_calls.value >= CALLS_STAND_OUT_NS;
}

#define SAID_MAX 16

/* Cases of which the reason was said. */
struct said {
    const struct document_case *of[SAID_MAX];
    size_t n;
};

static bool is_alike(const struct document_case *a, const struct document_case *b)
{
    return a->verdict == b->verdict && !strcmp(a->reason, b->reason);
}

/* How many cases have the reason of this one; 0: it was said. One that many cases without a verdict
 * share, such as a missing baseline, is said once. */
static size_t count_alike(const struct page *p, const struct document_case *c, struct said *said)
{
    size_t n = 0;
    if (c->verdict != VERDICT_NO_VERDICT && c->verdict != VERDICT_ENVIRONMENT)
        return 1;
    for (size_t i = 0; i < said->n; i++)
        if (is_alike(said->of[i], c))
            return 0;
    if (said->n == SAID_MAX)
        return 1;
    said->of[said->n++] = c;
    for (size_t i = 0; i < p->d->n_cases; i++)
        n += is_alike(&p->d->cases[i], c);
    return n;
}

/* Reason and evidence of each case that is not a plain pass, then what the second comparison warns
 * of. */
static void reasons(const struct page *p)
{
    const char *bullet = p->markdown ? "- " : "";
    char name[REPORT_NAME_MAX];
    struct said said = {.n = 0};
    for (size_t i = 0; i < p->n_cases; i++) {
        const struct document_case *c = p->cases[i];
        size_t alike = is_told(c) ? count_alike(p, c, &said) : 0;
        if (!alike)
            continue;
        buf_puts(p->out, bullet);
        put_verdict(p, (enum verdict)c->verdict);
        buf_putc(p->out, ' ');
        if (alike > 1)
            buf_printf(p->out, "%zu cases", alike);
        else
            page_put_case(p, c, p->out);
        buf_puts(p->out, ": ");
        put_reason(p, c);
        buf_putc(p->out, '\n');
        report_each_evidence(c, put_evidence, (void *)(uintptr_t)p);
    }
    for (size_t i = 0; i < p->n_cases; i++) {
        const struct document_case *c = p->cases[i];
        if (!page_warns(c))
            continue;
        buf_printf(p->out, "%s%s", bullet, p->markdown ? PAGE_WARNING_SIGN : "warning ");
        page_put_case(p, c, p->out);
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
        n += is_told(p->cases[i]) + page_warns(p->cases[i]);
    return n;
}

/* ---- totals ---- */

static void totals(const struct page *p)
{
    put_counts(p->run->counts, p->out);
    if (!p->d->n_cases)
        buf_puts(p->out, "no cases");
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
    put_counts(p->run->warned, p->out);
    buf_puts(p->out, end);
}

/* ---- the two pages ---- */

/* What to do about a regression against a stored baseline, unless the run is a part, and where the
 * machine was not quiet: on a CPU it is mostly other programs. Where there was no library to be
 * paired with no time helps. */
static void put_hints(const struct page *p)
{
    const char *against = p->d->policy.against, *stop = p->markdown ? ".\n" : "\n";
    bool stored = !against || !against[0] || !strcmp(against, "baseline"), undecided = false;
    char command[80];
    if (p->run->counts[VERDICT_REGRESSION] && stored && !p->d->has_shard) {
        snprintf(command, sizeof command, "gate baseline accept CASE --run %.8s --reason WHY",
                 p->d->uuid);
        buf_puts(p->out,
                 p->markdown ? "\nIf a slowdown is intended: " : "if a slowdown is intended: ");
        p->code(command, p->out);
        buf_puts(p->out, p->markdown ? " (elsewhere than on the runner: first `gate import "
                                       "gate-run.json`, an artifact of the job)\n"
                                     : "\n");
    }
    for (size_t i = 0; i < p->d->n_cases; i++)
        undecided |= p->d->cases[i].verdict == VERDICT_NO_VERDICT &&
                     p->d->cases[i].mode == MODE_PAIRED && p->d->cases[i].has_ratio;
    if (p->d->device.kind == DEVICE_HOST && p->run->counts[VERDICT_ENVIRONMENT] > 0)
        buf_printf(p->out,
                   "%s other programs disturbed it: `chrt -f 1 gate run` (as root) comes before "
                   "them on a CPU%s",
                   p->markdown ? "\nIf" : "if", stop);
    if (undecided)
        buf_printf(p->out,
                   "%s decide what has no verdict: measure when nothing else runs, or longer, as "
                   "with `gate run --budget 1000`%s",
                   p->markdown ? "\nTo" : "to", stop);
}

static void text_page(const struct page *p)
{
    facts(p);
    if (p->d->n_cases > 0)
        page_cases(p);
    page_legend(p);
    buf_puts(p->out, count_told(p) ? "\n" : "");
    reasons(p);
    if (p->d->has_calibration)
        page_calibration(p);
    buf_putc(p->out, '\n');
    page_sentences(p);
    warned(p, "\n");
    totals(p);
    buf_puts(p->out, ": ");
    put_verdict(p, (enum verdict)p->d->verdict);
    buf_putc(p->out, '\n');
    put_hints(p);
    if (p->run->link) {
        report_link_run(p->run->link, p->d->uuid, p->out);
        buf_putc(p->out, '\n');
    }
}

static void markdown_page(const struct page *p)
{
    enum verdict v = (enum verdict)p->d->verdict;
    buf_printf(p->out, "## %s Kernel Gate: %s\n\n**", page_mark(v), verdict_name(v));
    totals(p);
    buf_puts(p->out, "\n\n");
    warned(p, "\n\n");
    facts(p);
    if (p->n_cases > 0)
        page_cases(p);
    if (p->n_cases < p->d->n_cases)
        buf_printf(p->out, "\n%zu of %zu cases are left out; the worst come first.\n",
                   p->d->n_cases - p->n_cases, p->d->n_cases);
    page_legend(p);
    page_sentences(p);
    /* These are what one needs first, so they are not folded away. */
    for (size_t i = 0, told = 0; i < p->n_cases && told < COMMANDS_MAX; i++) {
        const char *command = find_command(p->cases[i]);
        if (!command)
            continue;
        buf_puts(p->out, told++ ? "- " : "\nTo repeat the failures:\n\n- ");
        markdown_code(command, p->out);
        buf_putc(p->out, '\n');
    }
    put_hints(p);
    size_t n_told = count_told(p);
    if (n_told) {
        buf_printf(p->out, "\n<details><summary>Reasons and evidence (%zu)</summary>\n\n", n_told);
        reasons(p);
        buf_puts(p->out, "\n</details>\n");
    }
    struct table *covered = covered_table(&p->run->covered);
    if (covered) {
        buf_puts(p->out, "\n<details><summary>What verification covered</summary>\n\n");
        page_put_table(p, covered);
        buf_puts(p->out, "\n</details>\n");
    }
    if (p->d->has_calibration)
        page_calibration(p);
}

/* Of equal cases the first of the document comes first. */
static int compare_cases(const void *a, const void *b)
{
    const struct document_case *x = *(const struct document_case *const *)a,
                               *y = *(const struct document_case *const *)b;
    int order = looks[y->verdict].severity - looks[x->verdict].severity;
    return order ? order : (x > y) - (x < y);
}

void report_page(const struct document *d, const struct report_style *style, struct buf *out)
{
    const bool markdown = style->markdown;
    struct report_run run;
    const struct report_style plain = {.link = style->link, .markdown = true};
    size_t n_calibrated = d->calibration.n_cases;
    report_run_read(d, style, &run);
    struct page p = {.run = &run,
                     .d = d,
                     .style = markdown ? &plain : style,
                     .markdown = markdown,
                     .text = markdown ? markdown_text : term_puts,
                     .code = markdown ? markdown_code : term_puts,
                     .cases = xcalloc(d->n_cases, sizeof *p.cases),
                     .n_cases = d->n_cases,
                     .calibrated = xcalloc(n_calibrated, sizeof *p.calibrated),
                     .n_calibrated = n_calibrated};
    for (size_t i = 0; i < d->n_cases; i++)
        p.cases[i] = &d->cases[i];
    for (size_t i = 0; i < n_calibrated; i++)
        p.calibrated[i] = &d->calibration.cases[i];
    qsort(p.calibrated, n_calibrated, sizeof *p.calibrated, page_compare_calibrated);
    RELEASED_BY(buf_release)
    struct buf summary = buf_of(style->markdown_max ? style->markdown_max : REPORT_MARKDOWN_MAX);
    p.out = markdown ? &summary : out;
    (markdown ? markdown_page : text_page)(&p);
    /* A summary has all cases in their order, else as many of the worst as there is room for. */
    if (summary.failed)
        qsort(p.cases, d->n_cases, sizeof *p.cases, compare_cases);
    for (size_t n = d->n_cases > n_calibrated ? d->n_cases : n_calibrated;
         summary.failed && n > 0;) {
        n = n * 7 / 8;
        p.n_cases = n < d->n_cases ? n : d->n_cases;
        p.n_calibrated = n < n_calibrated ? n : n_calibrated;
        buf_clear(&summary);
        markdown_page(&p);
    }
    out->failed |= summary.failed;
    buf_append(out, summary.data, summary.len);
    free(p.cases);
    free(p.calibrated);
}
