/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_junit.c: a run as JUnit XML, in the subset of Jenkins' xUnit-2 schema that GitLab and the
 * others read too: a regression or a wrong result is a <failure>, an unusable environment and a
 * case without verdict an <error>, so that the file is green where the exit code is 0; a case that
 * is not served, and does not count, is <skipped>.
 */
#include "gate/report/report_run.h"

#include <stdint.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/report/report_units.h"

void report_xml(const char *text, struct buf *out)
{
    uint32_t code;
    for (size_t n; (n = utf8_next(text, &code)); text += n) {
        /* XML 1.0 has no form at all for other characters. */
        if ((code < 0x20 && !strchr("\t\n\r", (int)code)) || (code >= 0xd800 && code <= 0xdfff) ||
            code == 0xfffe || code == 0xffff || code == UTF8_BAD)
            continue;
        if (code == '<')
            buf_puts(out, "&lt;");
        else if (code == '>')
            buf_puts(out, "&gt;");
        else if (code == '&')
            buf_puts(out, "&amp;");
        else if (code == '"')
            buf_puts(out, "&quot;");
        else if (code < 0x20)
            buf_printf(out, "&#%u;", (unsigned)code);
        else
            buf_append(out, text, n);
    }
}

static void attribute(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, " %s=\"", name);
    report_xml(value, out);
    buf_putc(out, '"');
}

static void totals(const struct report_run *run, struct buf *out)
{
    buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"",
               run->document->n_cases + run->document->n_not_served,
               run->counts[VERDICT_REGRESSION] + run->counts[VERDICT_WRONG],
               run->counts[VERDICT_ENVIRONMENT] + run->counts[VERDICT_NO_VERDICT]);
}

static void properties(const struct report_run *run, struct buf *out)
{
    const struct document *d = run->document;
    RELEASED_BY(buf_release) struct buf left_out = buf_of(16 * 1024);
    left_out_write(&run->left_out, &left_out);
    const struct {
        const char *name, *value; /* NULL: there is none */
    } all[] = {{"run", d->uuid},
               {"commit", d->git.commit},
               {"branch", d->git.branch},
               {"dirty", d->git.dirty ? "true" : "false"},
               {"device", d->device.name},
               {"device_model", d->device.model},
               {"driver", d->device.driver},
               {"contract", d->contract},
               {"epoch", d->epoch ? d->epoch : ""},
               {"against", d->policy.against ? d->policy.against : ""},
               {"warn_against", d->policy.warn_against},
               {"verdict", verdict_name((enum verdict)d->verdict)},
               {"left_out", left_out.len ? left_out.data : NULL}};
    buf_puts(out, "    <properties>\n");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i].value)
            continue;
        buf_puts(out, "      <property");
        attribute("name", all[i].name, out);
        attribute("value", all[i].value, out);
        buf_puts(out, "/>\n");
    }
    buf_puts(out, "    </properties>\n");
}

static void put_evidence(void *context, const char *name, bool figures, const char *words)
{
    if (figures)
        buf_printf(context, "%s: %s\n", name, words);
}

static void outcome(const struct report_run *run, const struct document_case *c, struct buf *out)
{
    static const struct {
        const char *element, *type;
    } outcomes[VERDICT_COUNT] = {
        [VERDICT_REGRESSION] = {"failure", "regression"},
        [VERDICT_WRONG] = {"failure", "wrong"},
        [VERDICT_ENVIRONMENT] = {"error", "environment"},
        [VERDICT_NO_VERDICT] = {"error", "no-verdict"},
    };
    char text[UNITS_MAX];
    enum verdict v = (enum verdict)c->verdict;
    if (!outcomes[v].element)
        return;
    buf_printf(out, "      <%s", outcomes[v].element);
    attribute("type", outcomes[v].type, out);
    attribute("message", c->reason, out);
    buf_putc(out, '>');
    report_each_evidence(c, put_evidence, out);
    if (c->mde >= 0)
        buf_printf(out, "minimum detectable effect: %s\n", units_percent(c->mde, text));
    if (run->link) { /* not all who show these reports show properties */
        RELEASED_BY(buf_release) struct buf link = buf_of(4096);
        report_link_run(run->link, run->document->uuid, &link);
        buf_puts(out, "run: ");
        report_xml(link.data, out);
        buf_putc(out, '\n');
    }
    buf_printf(out, "</%s>\n", outcomes[v].element);
}

static void put_against(const char *against, struct buf *out)
{
    char name[REPORT_NAME_MAX];
    buf_puts(out, "against ");
    report_xml(report_against(against, name), out);
    buf_puts(out, ": ");
}

static void measured(const struct document_policy *policy, const struct document_case *c,
                     struct buf *out)
{
    char p50[UNITS_MAX], p90[UNITS_MAX], change[UNITS_MAX];
    double ratio = c->has_ratio ? c->ratio.value : 0;

    buf_puts(out, "      <system-out>");
    for (size_t i = 0; i < c->n_arms; i++) {
        const struct document_arm *arm = &c->arms[i];
        const struct document_timing *timing = report_timing(arm);
        if (arm->role == ROLE_BASELINE)
            buf_puts(out, "baseline");
        else
            report_xml(arm->provider, out);
        if (timing)
            buf_printf(out, ": p50 %s, p90 %s\n", units_duration(timing->p50_ns, p50),
                       units_duration(timing->p90_ns, p90));
        else
            buf_printf(out, ": %s\n", report_no_timing(arm));
    }
    if (ratio > 0 || report_is_same_code(c)) {
        put_against(policy->against, out);
        buf_printf(out, "%s\n", ratio > 0 ? units_change(ratio, change) : "same code");
    }
    if (c->has_warning) {
        buf_puts(out, "as a warning, ");
        put_against(policy->warn_against, out);
        report_warning(c, out);
        buf_puts(out, ": ");
        report_xml(c->warning.reason, out);
        buf_putc(out, '\n');
    }
    const struct document_verify *verify = report_verify(document_candidate(c));
    if (verify && verify->own_shape_only == YES)
        buf_puts(out, "looked at on its own shape alone: the kernel takes no other\n");
    buf_puts(out, "</system-out>\n");
}

void report_junit(const struct document *d, const struct report_style *style, struct buf *out)
{
    struct report_run run;
    char time[UNITS_MAX];
    report_run_read(d, style, &run);
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    totals(&run, out);
    buf_puts(out, ">\n  <testsuite");
    attribute("name", d->suite, out);
    totals(&run, out);
    buf_printf(out, " skipped=\"%zu\" time=\"%.3f\"", d->n_not_served,
               (double)d->duration_ms / 1000);
    attribute("timestamp", units_time_iso(d->time_ms, time), out);
    buf_puts(out, ">\n");
    properties(&run, out);
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_case *c = &d->cases[i]; /* op and dtype are plain ASCII */
        buf_printf(out, "    <testcase classname=\"%s.%s\"", c->op, c->dtype);
        attribute("name", c->id, out);
        buf_puts(out, ">\n");
        outcome(&run, c, out);
        measured(&d->policy, c, out);
        buf_puts(out, "    </testcase>\n");
    }
    for (size_t i = 0; i < d->n_not_served; i++) {
        buf_puts(out, "    <testcase classname=\"not-served\"");
        attribute("name", d->not_served[i].id, out);
        buf_puts(out, "><skipped message=\"not served\"/></testcase>\n");
    }
    buf_puts(out, "  </testsuite>\n</testsuites>\n");
}
