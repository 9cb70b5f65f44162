/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: the formats, and what they share; see report.h and report_run.h. */
#include "gate/report/report_run.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/term.h"

#define EARLY_SCHEMA "gate-error/1"

static void write_json(const struct document *d, const struct report_style *, struct buf *out)
{
    fields_write_indented(&document_shape, d, out);
}

static void write_csv(const struct document *d, const struct report_style *, struct buf *out)
{
    report_csv_header(out);
    report_csv_rows(d, out);
}

#define JUNIT_BEGINS "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "
#define TELLING 50 /* bytes of a text before an exit code */

static const struct {
    const char *name;
    report_writer *write;
    const char *begins; /* each such report */
    const char *before; /* of a run that ended early: what comes before the exit code, */
    const char *between;
    report_put_fn put; /* before the message, and how that is written, */
    const char *behind;
} formats[] = {
    [REPORT_TEXT] = {"text", report_page, "device  ", "ended early (exit code ", "): ", term_puts,
                     "\n"},
    [REPORT_MARKDOWN] = {"markdown", report_page, "## " /* and a mark */,
                         "### \xe2\x9d\x8c Kernel Gate ended early (exit code ", ")\n\n",
                         markdown_text, "\n"},
    [REPORT_JSON] = {"json", write_json, "{\n  \"schema\": \"gate-run/",
                     "{\"schema\": \"" EARLY_SCHEMA "\", \"exit_code\": ", ", \"message\": \"",
                     json_escape, "\"}\n"},
    [REPORT_CSV] = {"csv", write_csv, "run_uuid,", "exit_code,error\r\n", ",", csv_put, "\r\n"},
    [REPORT_JUNIT] = {"junit", report_junit, JUNIT_BEGINS,
                      JUNIT_BEGINS
                      "tests=\"1\" failures=\"0\" errors=\"1\">\n"
                      "  <testsuite name=\"kernel-gate\" tests=\"1\" failures=\"0\" errors=\"1\">\n"
                      "    <testcase classname=\"gate\" name=\"run\">\n"
                      "      <error type=\"exit-code-",
                      "\" message=\"", report_xml,
                      "\"/>\n    </testcase>\n  </testsuite>\n</testsuites>\n"},
};

void report_write_early(enum report_format format, int exit_code, const char *message,
                        struct buf *out)
{
    buf_printf(out, "%s%d%s", formats[format].before, exit_code, formats[format].between);
    formats[format].put(message, out);
    buf_puts(out, formats[format].behind);
}

bool report_is_one(const char *beginning)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strncmp(beginning, formats[i].before, strnlen(formats[i].before, TELLING)) ||
            (!strncmp(beginning, formats[i].begins, strlen(formats[i].begins)) &&
             (i != REPORT_MARKDOWN || strstr(beginning, " Kernel Gate: "))))
            return true;
    return false;
}

bool report_read_early(const char *text, size_t len, struct report_early *out)
{
    RELEASED_BY(json_delete_at) cJSON *tree = NULL;
    if (json_parse("the report", text, len, GATE_IO, &tree, NULL))
        return false;
    const char *message = json_string(tree, "message", "");
    int64_t exit_code = json_integer(tree, "exit_code", 0);
    bool good = !strcmp(json_string(tree, "schema", ""), EARLY_SCHEMA) && exit_code > 0 &&
                exit_code < 256 && strlen(message) < sizeof out->message;
    if (good) {
        out->exit_code = (int)exit_code;
        memcpy(out->message, message, strlen(message) + 1);
    }
    return good;
}

bool report_format_parse(void *out, const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!strcmp(formats[i].name, name)) {
            *(enum report_format *)out = (enum report_format)i;
            return true;
        }
    }
    return false;
}

void report_write(const struct document *document, enum report_format format,
                  const struct report_style *style, struct buf *out)
{
    struct report_style of_format = *style;
    of_format.markdown = format == REPORT_MARKDOWN;
    formats[format].write(document, &of_format, out);
}

/* ---- what the formats share ---- */

void report_run_read(const struct document *document, const struct report_style *style,
                     struct report_run *out)
{
    *out = (struct report_run){.document = document,
                               .link = style->link && style->link[0] ? style->link : NULL};
    for (size_t i = 0; i < document->n_cases; i++) {
        const struct document_case *c = &document->cases[i];
        const struct document_arm *candidate = document_candidate(c);
        const struct document_timing *timing = report_timing(candidate);
        const struct document_verify *verify = report_verify(candidate);
        bool stored;
        left_out_add(&out->left_out, c->id, verify);
        covered_add(&out->covered, c->op, verify);
        out->counts[c->verdict]++;
        if (c->has_warning)
            out->warned[c->warning.verdict]++;
        out->n_unresolved += report_is_unresolved(out, c);
        out->n_same_code += report_is_same_code(c);
        out->n_remembered += verify && verify->verified_in;
        out->warm |= timing && !timing->cold;
        out->any_stored |= report_baseline_ns(c, &stored) > 0 && stored;
        for (size_t k = 0, at; k < c->n_arms; k++) {
            if (c->arms[k].role != ROLE_PROVIDER)
                continue;
            for (at = 0; at < out->n_providers; at++)
                if (!strcmp(out->providers[at], c->arms[k].provider))
                    break;
            if (at == REPORT_MAX_PROVIDERS)
                out->more_providers = true;
            else if (at == out->n_providers)
                out->providers[out->n_providers++] = c->arms[k].provider;
            out->vendors_remembered |= c->arms[k].has_timing && c->arms[k].timing.measured_in;
        }
    }
}

const struct document_timing *report_timing(const struct document_arm *arm)
{
    return arm && arm->has_timing ? &arm->timing : NULL;
}

const struct document_verify *report_verify(const struct document_arm *arm)
{
    return arm && arm->has_verify ? &arm->verify : NULL;
}

const char *report_no_timing(const struct document_arm *arm)
{
    if (!arm)
        return "-";
    return arm->has_verify && !arm->verify.ok ? "wrong" : "not timed";
}

double report_baseline_ns(const struct document_case *c, bool *stored)
{
    for (size_t i = 0; i < c->n_arms; i++) {
        if (c->arms[i].role == ROLE_BASELINE && c->arms[i].has_timing) {
            *stored = false;
            return c->arms[i].timing.p50_ns;
        }
    }
    *stored = true;
    return c->has_baseline ? c->baseline.p50_ns : 0;
}

bool report_is_unresolved(const struct report_run *run, const struct document_case *c)
{
    return (c->verdict == VERDICT_PASS || c->verdict == VERDICT_NO_VERDICT) &&
           c->mde > (isnan(c->threshold) ? run->document->policy.threshold : c->threshold);
}

bool report_is_same_code(const struct document_case *c)
{
    return c->verdict == VERDICT_PASS && c->mode == MODE_PAIRED && !c->has_ratio &&
           (c->same_library == YES || c->same_code == YES);
}

const char *report_against(const char *against, char out[REPORT_NAME_MAX])
{
    const char *name = against && against[0] ? against : "baseline", *slash = strrchr(name, '/');
    int n = strlen(name) == 40 ? 12 : REPORT_NAME_MAX - 1;
    snprintf(out, REPORT_NAME_MAX, "%.*s", n, slash ? slash + 1 : name);
    return out;
}

void report_warning(const struct document_case *c, struct buf *out)
{
    char text[UNITS_MAX];
    if (!c->has_warning)
        return;
    if (c->warning.has_ratio)
        buf_printf(out, "%s ", units_change(c->warning.ratio.value, text));
    buf_puts(out, verdict_name((enum verdict)c->warning.verdict));
}

/* ---- addresses of the dashboard's pages ---- */

static void put_encoded(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
            buf_putc(out, *text);
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

static void put_page(const char *link, const char *page, struct buf *out)
{
    size_t len = strlen(link);
    buf_append(out, link, len > 0 && link[len - 1] == '/' ? len - 1 : len);
    buf_printf(out, "/#/%s", page);
}

void report_link_run(const char *link, const char *uuid, struct buf *out)
{
    put_page(link, "run/", out);
    put_encoded(uuid, out);
}

void report_link_change(const char *link, const char *change, struct buf *out)
{
    put_page(link, "change/", out);
    put_encoded(change, out);
}

void report_link_case(const char *link, const char *id, const char *device_model, struct buf *out)
{
    put_page(link, "case?id=", out);
    put_encoded(id, out);
    buf_puts(out, "&device=");
    put_encoded(device_model, out);
}
