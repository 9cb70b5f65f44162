/*
 * report_junit.c: a run as JUnit XML, in the subset of Jenkins' xUnit-2 schema that GitLab and the
 * others read too: a regression or a wrong result is a <failure>, an unusable environment and a
 * case without verdict an <error>, so that the file is green where the exit code is 0; a case that
 * is not served, and does not count, is <skipped>.
 */
#include "gate/report/report_run.h"

#include <stdint.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/utf8.h"
#include "gate/report/report_units.h"

/* XML 1.0 has no form at all for other characters. */
static bool is_xml(uint32_t code)
{
    return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code <= 0xd7ff) ||
           (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
}

/* Text or the value of an attribute in double quotes. */
static void put_xml(const char *text, struct buf *out)
{
    size_t left = strlen(text);
    while (left > 0) {
        uint32_t code;
        size_t n = utf8_decode(text, left, &code);
        bool dropped = n == 0 || !is_xml(code);
        if (dropped)
            code = 0;
        else if (code == '<')
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
        n = n ? n : 1;
        text += n;
        left -= n;
    }
}

static void attribute(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, " %s=\"", name);
    put_xml(value, out);
    buf_putc(out, '"');
}

static size_t not_served(const struct report_run *run)
{
    return (size_t)cJSON_GetArraySize(json_member(run->document, "not_served"));
}

static void totals(const struct report_run *run, struct buf *out)
{
    buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"",
               run->n_cases + not_served(run),
               run->counts[VERDICT_REGRESSION] + run->counts[VERDICT_WRONG],
               run->counts[VERDICT_ENVIRONMENT] + run->counts[VERDICT_NO_VERDICT]);
}

static void property(const char *name, const char *value, struct buf *out)
{
    buf_puts(out, "      <property");
    attribute("name", name, out);
    attribute("value", value, out);
    buf_puts(out, "/>\n");
}

static void left_out(const struct report_run *run, struct buf *out)
{
    struct buf line;
    buf_init(&line, 16 * 1024);
    left_out_write(&run->left_out, &line);
    if (line.len > 0)
        property("left_out", line.data, out);
    buf_release(&line);
}

static void properties(const struct report_run *run, struct buf *out)
{
    buf_puts(out, "    <properties>\n");
    property("run", json_string(run->document, "uuid", ""), out);
    property("commit", json_string(run->git, "commit", ""), out);
    property("branch", json_string(run->git, "branch", ""), out);
    property("dirty", json_bool(run->git, "dirty", false) ? "true" : "false", out);
    property("device", json_string(run->device, "name", ""), out);
    property("device_model", json_string(run->device, "model", ""), out);
    property("driver", json_string(run->device, "driver", ""), out);
    property("contract", json_string(run->document, "contract", ""), out);
    property("epoch", json_string(run->document, "epoch", ""), out);
    property("against",
             json_string(cJSON_GetObjectItemCaseSensitive(run->document, "policy"), "against", ""),
             out);
    property("verdict", json_string(run->document, "verdict", ""), out);
    left_out(run, out);
    buf_puts(out, "    </properties>\n");
}

/* What the processes of the case found; nothing when they compared nothing. */
static void evidence(const cJSON *one_case, struct buf *out)
{
    static const char *const stages[] = {"first", "confirmation"};
    double mde = report_mde(one_case);
    char text[UNITS_MAX];
    struct buf line;
    buf_init(&line, 64 * 1024);
    for (size_t i = 0; i < 2; i++) {
        buf_clear(&line);
        if (report_evidence(one_case, stages[i], &line))
            buf_printf(out, "%s: %s\n", stages[i], line.data);
    }
    buf_clear(&line);
    if (report_p90(one_case, &line))
        buf_printf(out, "p90: %s\n", line.data);
    if (mde >= 0)
        buf_printf(out, "minimum detectable effect: %s\n", units_percent(mde, text));
    buf_release(&line);
}

static void outcome(const cJSON *one_case, enum verdict v, struct buf *out)
{
    static const struct {
        const char *element, *type;
    } outcomes[VERDICT_COUNT] = {
        [VERDICT_REGRESSION] = {"failure", "regression"},
        [VERDICT_WRONG] = {"failure", "wrong"},
        [VERDICT_ENVIRONMENT] = {"error", "environment"},
        [VERDICT_NO_VERDICT] = {"error", "no-verdict"},
    };
    if (!outcomes[v].element)
        return;
    buf_printf(out, "      <%s", outcomes[v].element);
    attribute("type", outcomes[v].type, out);
    attribute("message", json_string(one_case, "reason", ""), out);
    buf_putc(out, '>');
    evidence(one_case, out);
    buf_printf(out, "</%s>\n", outcomes[v].element);
}

static void measured(const cJSON *one_case, struct buf *out)
{
    const cJSON *arm;
    char p50[UNITS_MAX], p90[UNITS_MAX], change[UNITS_MAX];
    double ratio = report_change(one_case);

    buf_puts(out, "      <system-out>");
    cJSON_ArrayForEach (arm, cJSON_GetObjectItemCaseSensitive(one_case, "arms")) {
        const cJSON *timing = report_timing(arm);
        if (strcmp(json_string(arm, "role", ""), "baseline") == 0)
            buf_puts(out, "baseline");
        else
            put_xml(json_string(arm, "provider", ""), out);
        if (timing)
            buf_printf(out, ": p50 %s, p90 %s\n",
                       units_duration(json_number(timing, "p50_ns", 0), p50),
                       units_duration(json_number(timing, "p90_ns", 0), p90));
        else
            buf_printf(out, ": %s\n", report_no_timing(arm));
    }
    if (ratio > 0)
        buf_printf(out, "against the baseline: %s\n", units_change(ratio, change));
    if (json_bool(report_verify(report_candidate(one_case)), "own_shape_only", false))
        buf_puts(out, "looked at on its own shape alone: the kernel takes no other\n");
    buf_puts(out, "</system-out>\n");
}

static void test_case(const cJSON *one_case, struct buf *out)
{
    struct buf class;
    buf_init(&class, 1024);
    buf_printf(&class, "%s.%s", json_string(one_case, "op", ""),
               json_string(one_case, "dtype", ""));
    buf_puts(out, "    <testcase");
    attribute("classname", class.data, out);
    attribute("name", json_string(one_case, "id", ""), out);
    buf_puts(out, ">\n");
    outcome(one_case, report_verdict(one_case), out);
    measured(one_case, out);
    buf_puts(out, "    </testcase>\n");
    buf_release(&class);
}

void report_junit(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    const cJSON *one_case;
    char time[UNITS_MAX];

    (void)style;
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    totals(run, out);
    buf_puts(out, ">\n  <testsuite");
    attribute("name", json_string(run->document, "suite", ""), out);
    totals(run, out);
    buf_printf(out, " skipped=\"%zu\" time=\"%.3f\"", not_served(run),
               json_number(run->document, "duration_ms", 0) / 1000);
    attribute("timestamp", units_time_iso(json_integer(run->document, "time_ms", 0), time), out);
    buf_puts(out, ">\n");
    properties(run, out);
    cJSON_ArrayForEach (one_case, run->cases) {
        test_case(one_case, out);
    }
    cJSON_ArrayForEach (one_case, json_member(run->document, "not_served")) {
        buf_puts(out, "    <testcase classname=\"not-served\"");
        attribute("name", json_string(one_case, "id", ""), out);
        buf_puts(out, "><skipped message=\"not served\"/></testcase>\n");
    }
    buf_puts(out, "  </testsuite>\n</testsuites>\n");
}

void report_junit_early(int exit_code, const char *message, struct buf *out)
{
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuites tests=\"1\" failures=\"0\" errors=\"1\">\n"
                  "  <testsuite name=\"kernel-gate\" tests=\"1\" failures=\"0\" errors=\"1\">\n"
                  "    <testcase classname=\"gate\" name=\"run\">\n      <error");
    buf_printf(out, " type=\"exit-code-%d\"", exit_code);
    attribute("message", message, out);
    buf_puts(out, "/>\n    </testcase>\n  </testsuite>\n</testsuites>\n");
}
