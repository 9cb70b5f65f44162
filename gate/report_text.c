/*
 * report_text.c: a run as a table on a terminal: header, one line a case, the reasons of what is
 * not good, and one line that sums up.
 */
#include "report_run.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "report_table.h"
#include "report_units.h"
#include "term.h"

static enum term_colour verdict_colour(enum verdict v)
{
    static const enum term_colour colours[VERDICT_COUNT] = {
        [VERDICT_PASS] = TERM_GREEN,        [VERDICT_IMPROVEMENT] = TERM_CYAN,
        [VERDICT_REGRESSION] = TERM_RED,    [VERDICT_WRONG] = TERM_RED,
        [VERDICT_NO_VERDICT] = TERM_YELLOW, [VERDICT_ENVIRONMENT] = TERM_YELLOW,
    };
    return colours[v];
}

/*
 * FLOP per byte above which a kernel is told in TFLOP/s rather than in GB/s: half of the ratio of
 * the peaks of data-center GPUs, so that a kernel near both bounds is told in TFLOP/s.
 */
static double balance(const char *dtype)
{
    if (strcmp(dtype, "fp32") == 0)
        return 8;
    return strcmp(dtype, "tf32") == 0 ? 50 : 100;
}

static const char *rate(const cJSON *one_case, const cJSON *timing, char out[UNITS_MAX])
{
    double tflops = json_number(timing, "tflops", 0), gbps = json_number(timing, "gbps", 0);
    bool compute = 1000 * tflops > gbps * balance(json_string(one_case, "dtype", ""));
    double value = compute ? tflops : gbps;
    snprintf(out, UNITS_MAX, value < 1e6 ? "%.*f %s" : "%.*g %s",
             value < 10    ? 2
             : value < 100 ? 1
             : value < 1e6 ? 0
                           : 3,
             value, compute ? "TFLOP/s" : "GB/s");
    return out;
}

static void candidate_cells(struct table *t, const cJSON *one_case, const cJSON *arm)
{
    const cJSON *timing = report_timing(arm);
    char text[UNITS_MAX], p50_text[UNITS_MAX + 2];
    if (!timing) {
        table_cell(t, TERM_DIM, arm ? report_no_timing(arm) : "failed");
        for (int i = 0; i < 4; i++)
            table_cell(t, TERM_PLAIN, "");
        return;
    }
    double p50 = json_number(timing, "p50_ns", 1);
    double half =
        (json_number(timing, "p50_hi_ns", p50) - json_number(timing, "p50_lo_ns", p50)) / 2;
    const cJSON *ceiling = cJSON_GetObjectItemCaseSensitive(timing, "ceiling");

    snprintf(p50_text, sizeof(p50_text), "%s%s", json_bool(timing, "cold", true) ? "" : "*",
             units_duration(p50, text));
    table_cell(t, TERM_PLAIN, p50_text);
    snprintf(text, sizeof(text), half < 100 * p50 ? "%.2f %%" : "%.1g %%", 100 * half / p50);
    table_cell(t, TERM_DIM, text);
    table_cell(t, TERM_PLAIN, units_duration(json_number(timing, "p90_ns", 0), text));
    table_cell(t, TERM_PLAIN, rate(one_case, timing, text));
    table_cell(t, TERM_PLAIN,
               cJSON_IsNumber(ceiling) ? units_share(ceiling->valuedouble, text) : "");
}

static void best_cells(struct table *t, const cJSON *one_case, enum verdict v)
{
    const cJSON *best = cJSON_GetObjectItemCaseSensitive(one_case, "best");
    double change = report_change(one_case);
    char text[UNITS_MAX];
    if (cJSON_IsObject(best))
        table_cell(t, TERM_PLAIN, units_duration(json_number(best, "p50_ns", 0), text));
    else
        table_cell(t, TERM_DIM, "none");
    if (change > 0)
        table_cell(t, v == VERDICT_PASS ? TERM_PLAIN : verdict_colour(v),
                   units_change(change, text));
    else
        table_cell(t, TERM_PLAIN, "");
}

static void provider_cells(struct table *t, const cJSON *one_case, const char *provider)
{
    const cJSON *arm = report_provider(one_case, provider);
    const cJSON *timing = report_timing(arm);
    double speed_up = report_speed_up(one_case, arm);
    char text[UNITS_MAX];
    if (timing)
        table_cell(t, TERM_PLAIN, units_duration(json_number(timing, "p50_ns", 0), text));
    else
        table_cell(t, TERM_DIM, report_no_timing(arm));
    table_cell(t, TERM_PLAIN, speed_up > 0 ? units_factor(speed_up, text) : "");
}

static void case_row(struct table *t, const struct report_run *run, const cJSON *one_case)
{
    enum verdict v = report_verdict(one_case);
    table_cell(t, TERM_PLAIN, json_string(one_case, "id", ""));
    candidate_cells(t, one_case, report_candidate(one_case));
    best_cells(t, one_case, v);
    for (size_t i = 0; i < run->n_providers; i++)
        provider_cells(t, one_case, run->providers[i]);
    table_cell(t, verdict_colour(v), verdict_name(v));
}

static void case_table(const struct report_run *run, const struct report_style *style,
                       struct buf *out)
{
    struct table_column columns[9 + 2 * REPORT_MAX_PROVIDERS] = {
        {"case", false, 0}, {"p50", true, 0},     {"\xc2\xb1", true, 6}, {"p90", true, 5},
        {"rate", true, 3},  {"ceiling", true, 4}, {"best", true, 2},     {"change", true, 0},
    };
    const cJSON *one_case;
    size_t n = 8;
    for (size_t i = 0; i < run->n_providers; i++) {
        columns[n++] = (struct table_column){run->providers[i], true, 1};
        columns[n++] = (struct table_column){"speed-up", true, 1};
    }
    columns[n++] = (struct table_column){"verdict", false, 0};

    struct table *t = table_new(columns, n);
    cJSON_ArrayForEach(one_case, run->cases)
    {
        case_row(t, run, one_case);
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
    const cJSON *absent;

    buf_init(&text, 16 * 1024);
    buf_printf(&text, "%s (%s), driver %s, runtime %s", json_string(run->device, "name", ""),
               json_string(run->device, "model", ""), json_string(run->device, "driver", ""),
               json_string(run->device, "runtime", ""));
    field("device", text.data, out);
    buf_clear(&text);
    report_commit(run, &text);
    buf_printf(&text, " %s", json_string(run->git, "subject", ""));
    field("commit", text.data, out);
    buf_clear(&text);
    buf_printf(&text, "%s, contract %s, %s UTC", json_string(run->document, "suite", ""),
               json_string(run->document, "contract", ""),
               units_time(json_integer(run->document, "time_ms", 0), time));
    field("suite", text.data, out);
    cJSON_ArrayForEach(absent, cJSON_GetObjectItemCaseSensitive(run->document, "absent"))
    {
        buf_clear(&text);
        buf_printf(&text, "%s (%s)", json_string(absent, "provider", ""),
                   json_string(absent, "reason", ""));
        field("absent", text.data, out);
    }
    buf_release(&text);
    buf_putc(out, '\n');
}

static void reasons(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    const cJSON *one_case;
    bool first = true;
    cJSON_ArrayForEach(one_case, run->cases)
    {
        enum verdict v = report_verdict(one_case);
        if (report_is_good(v))
            continue;
        if (first)
            buf_putc(out, '\n');
        first = false;
        term_colour_begin(style->colour, verdict_colour(v), out);
        buf_puts(out, verdict_name(v));
        term_colour_end(style->colour, verdict_colour(v), out);
        buf_putc(out, ' ');
        term_puts(json_string(one_case, "id", ""), out);
        buf_puts(out, ": ");
        term_puts(json_string(one_case, "reason", ""), out);
        buf_putc(out, '\n');
    }
}

void report_text(const struct report_run *run, const struct report_style *style, struct buf *out)
{
    enum verdict v = report_verdict(run->document);
    char threshold[UNITS_MAX];
    const cJSON *policy = cJSON_GetObjectItemCaseSensitive(run->document, "policy");

    header(run, out);
    if (run->n_cases > 0)
        case_table(run, style, out);
    if (run->warm)
        buf_puts(out, "* warm: the inputs do not exceed three times the cache\n");
    if (run->more_providers)
        buf_printf(out, "only the first %d providers have columns\n", REPORT_MAX_PROVIDERS);
    reasons(run, style, out);
    buf_putc(out, '\n');
    report_counts(run, out);
    snprintf(threshold, sizeof(threshold), "%.3g %%", 100 * json_number(policy, "threshold", 0));
    buf_printf(out, " (threshold %s): ", threshold);
    term_colour_begin(style->colour, verdict_colour(v), out);
    buf_puts(out, verdict_name(v));
    term_colour_end(style->colour, verdict_colour(v), out);
    buf_putc(out, '\n');
}
