/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_csv.c: a run as CSV by RFC 4180, one row an arm.
 *
 * The columns are those of `columns` below: the name says where the value is in the run document
 * (run.schema.json), units included. A value that is null or absent is an empty field.
 * log_ratio_first and log_ratio_confirmation have one number a process, in order, with ';' between
 * them. A case without arms has one row without the arm's columns. Free text that a spreadsheet
 * would run as a formula gets an apostrophe before it.
 */
#include "gate/report/report_run.h"

#include <math.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/json.h"

enum source {
    RUN,
    POLICY,
    GIT,
    DEVICE,
    CASE,
    BASELINE,
    RATIO,
    RATIO_P90,
    RATIO_CALLS,
    WARNING,
    WARNING_RATIO,
    FIRST, /* the log_ratio of each process of a stage */
    CONFIRMATION,
    ARM,
    VERIFY,
    TIMING,
    PAIR,
    N_SOURCES
};

enum kind { TEXT, NUMBER, COUNT, BOOL, TOLD, VERDICT, MODE, ROLE, EVIDENCE };

static const struct {
    const char *name;
    enum source source;
    enum kind kind;
    size_t offset; /* in the struct of the source */
} columns[] = {
    {"run_uuid", RUN, TEXT, offsetof(struct document, uuid)},
    {"time_ms", RUN, COUNT, offsetof(struct document, time_ms)},
    {"suite", RUN, TEXT, offsetof(struct document, suite)},
    {"contract", RUN, TEXT, offsetof(struct document, contract)},
    {"epoch", RUN, TEXT, offsetof(struct document, epoch)},
    {"control_drift", RUN, NUMBER, offsetof(struct document, control_drift)},
    {"threshold", POLICY, NUMBER, offsetof(struct document_policy, threshold)},
    {"against", POLICY, TEXT, offsetof(struct document_policy, against)},
    {"device_model", DEVICE, TEXT, offsetof(struct document_device, model)},
    {"device_name", DEVICE, TEXT, offsetof(struct document_device, name)},
    {"driver", DEVICE, TEXT, offsetof(struct document_device, driver)},
    {"commit", GIT, TEXT, offsetof(struct document_git, commit)},
    {"branch", GIT, TEXT, offsetof(struct document_git, branch)},
    {"dirty", GIT, BOOL, offsetof(struct document_git, dirty)},
    {"case", CASE, TEXT, offsetof(struct document_case, id)},
    {"op", CASE, TEXT, offsetof(struct document_case, op)},
    {"dtype", CASE, TEXT, offsetof(struct document_case, dtype)},
    {"verdict", CASE, VERDICT, offsetof(struct document_case, verdict)},
    {"mode", CASE, MODE, offsetof(struct document_case, mode)},
    {"mde", CASE, NUMBER, offsetof(struct document_case, mde)},
    {"case_threshold", CASE, NUMBER, offsetof(struct document_case, threshold)},
    {"same_library", CASE, TOLD, offsetof(struct document_case, same_library)},
    {"baseline_p50_ns", BASELINE, NUMBER, offsetof(struct document_baseline, p50_ns)},
    {"baseline_commit", BASELINE, TEXT, offsetof(struct document_baseline, commit)},
    {"ratio", RATIO, NUMBER, offsetof(struct estimate, value)},
    {"ratio_lo", RATIO, NUMBER, offsetof(struct estimate, lo)},
    {"ratio_hi", RATIO, NUMBER, offsetof(struct estimate, hi)},
    {"ratio_p90", RATIO_P90, NUMBER, offsetof(struct estimate, value)},
    {"ratio_p90_lo", RATIO_P90, NUMBER, offsetof(struct estimate, lo)},
    {"ratio_p90_hi", RATIO_P90, NUMBER, offsetof(struct estimate, hi)},
    {"log_ratio_first", FIRST, EVIDENCE, 0},
    {"log_ratio_confirmation", CONFIRMATION, EVIDENCE, 0},
    {"provider", ARM, TEXT, offsetof(struct document_arm, provider)},
    {"role", ARM, ROLE, offsetof(struct document_arm, role)},
    {"kernel", ARM, TEXT, offsetof(struct document_arm, kernel)},
    {"verify_ok", VERIFY, BOOL, offsetof(struct document_verify, ok)},
    {"verify_seeds", VERIFY, COUNT, offsetof(struct document_verify, seeds)},
    {"rel_fro", VERIFY, NUMBER, offsetof(struct document_verify, rel_fro)},
    {"rel_fro_limit", VERIFY, NUMBER, offsetof(struct document_verify, limit)},
    {"max_abs", VERIFY, NUMBER, offsetof(struct document_verify, max_abs)},
    {"allclose_1e2", VERIFY, NUMBER, offsetof(struct document_verify, allclose_1e2)},
    {"allclose_1e3", VERIFY, NUMBER, offsetof(struct document_verify, allclose_1e3)},
    {"nonfinite", VERIFY, COUNT, offsetof(struct document_verify, nonfinite)},
    {"p50_ns", TIMING, NUMBER, offsetof(struct document_timing, p50_ns)},
    {"p50_lo_ns", TIMING, NUMBER, offsetof(struct document_timing, p50_lo_ns)},
    {"p50_hi_ns", TIMING, NUMBER, offsetof(struct document_timing, p50_hi_ns)},
    {"p90_ns", TIMING, NUMBER, offsetof(struct document_timing, p90_ns)},
    {"samples", TIMING, COUNT, offsetof(struct document_timing, samples)},
    {"launches_per_sample", TIMING, COUNT, offsetof(struct document_timing, launches_per_sample)},
    {"input_sets", TIMING, COUNT, offsetof(struct document_timing, input_sets)},
    {"cold", TIMING, BOOL, offsetof(struct document_timing, cold)},
    {"tflops", TIMING, NUMBER, offsetof(struct document_timing, tflops)},
    {"gbps", TIMING, NUMBER, offsetof(struct document_timing, gbps)},
    {"ceiling", TIMING, NUMBER, offsetof(struct document_timing, ceiling)},
    {"sm_clock_mhz", TIMING, NUMBER, offsetof(struct document_timing, sm_clock_mhz)},
    {"single_p50_ns", TIMING, NUMBER, offsetof(struct document_timing, single_p50_ns)},
    {"single_p90_ns", TIMING, NUMBER, offsetof(struct document_timing, single_p90_ns)},
    {"ratio_to_candidate", PAIR, NUMBER, offsetof(struct estimate, value)},
    {"ratio_to_candidate_lo", PAIR, NUMBER, offsetof(struct estimate, lo)},
    {"ratio_to_candidate_hi", PAIR, NUMBER, offsetof(struct estimate, hi)},
    {"reason", CASE, TEXT, offsetof(struct document_case, reason)},
    {"warn_against", POLICY, TEXT, offsetof(struct document_policy, warn_against)},
    {"warning_verdict", WARNING, VERDICT, offsetof(struct document_warning, verdict)},
    {"warning_ratio", WARNING_RATIO, NUMBER, offsetof(struct estimate, value)},
    {"warning_ratio_lo", WARNING_RATIO, NUMBER, offsetof(struct estimate, lo)},
    {"warning_ratio_hi", WARNING_RATIO, NUMBER, offsetof(struct estimate, hi)},
    {"warning_mde", WARNING, NUMBER, offsetof(struct document_warning, mde)},
    {"warning_reason", WARNING, TEXT, offsetof(struct document_warning, reason)},
    {"host_threshold", POLICY, NUMBER, offsetof(struct document_policy, host_threshold)},
    {"ratio_calls", RATIO_CALLS, NUMBER, offsetof(struct estimate, value)},
    {"ratio_calls_lo", RATIO_CALLS, NUMBER, offsetof(struct estimate, lo)},
    {"ratio_calls_hi", RATIO_CALLS, NUMBER, offsetof(struct estimate, hi)},
    {"call_ns", TIMING, NUMBER, offsetof(struct document_timing, call_ns)},
    {"measured_ceiling", TIMING, NUMBER, offsetof(struct document_timing, measured_ceiling)},
    {"verified_in", VERIFY, TEXT, offsetof(struct document_verify, verified_in)},
    {"measured_in", TIMING, TEXT, offsetof(struct document_timing, measured_in)},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void put_bool(bool value, struct buf *out)
{
    buf_puts(out, value ? "true" : "false");
}

static void put_known(double value, struct buf *out)
{
    if (!isnan(value))
        json_write_number(value, out);
}

static void put_value(enum kind kind, const void *at, struct buf *out)
{
    switch (kind) {
    case TEXT:
        if (*(const char *const *)at)
            csv_put(out, *(const char *const *)at);
        break;
    case NUMBER:
        put_known(*(const double *)at, out);
        break;
    case COUNT:
        if (*(const int64_t *)at >= 0)
            json_write_number((double)*(const int64_t *)at, out); /* without printf() */
        break;
    case BOOL:
        put_bool(*(const bool *)at, out);
        break;
    case TOLD:
        if (*(const enum yes_no *)at != UNKNOWN)
            put_bool(*(const enum yes_no *)at == YES, out);
        break;
    case VERDICT:
        buf_puts(out, verdict_names[*(const int *)at]);
        break;
    case MODE:
        if (*(const int *)at != MODE_UNKNOWN)
            buf_puts(out, document_modes[*(const int *)at]);
        break;
    default:
        buf_puts(out, document_roles[*(const int *)at]);
    }
}

static void put_row(const void *const sources[N_SOURCES], struct buf *out)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const char *from = sources[columns[i].source];
        if (i > 0)
            buf_putc(out, ',');
        const struct document_case *c = columns[i].kind == EVIDENCE ? sources[CASE] : NULL;
        const int stage = columns[i].source == FIRST ? STAGE_FIRST : STAGE_CONFIRMATION;
        const char *separator = "";
        for (size_t k = 0; c && k < c->n_processes; k++) {
            if (c->processes[k].stage != stage)
                continue;
            buf_puts(out, separator);
            put_known(c->processes[k].log_ratio, out);
            separator = ";";
        }
        if (from)
            put_value(columns[i].kind, from + columns[i].offset, out);
    }
    buf_puts(out, "\r\n");
}

static void put_case(const struct document *d, const struct document_case *c, struct buf *out)
{
    const void *sources[N_SOURCES] = {
        [RUN] = d,
        [POLICY] = &d->policy,
        [GIT] = &d->git,
        [DEVICE] = &d->device,
        [CASE] = c,
        [BASELINE] = c->has_baseline ? &c->baseline : NULL,
        [RATIO] = c->has_ratio ? &c->ratio : NULL,
        [RATIO_P90] = c->has_ratio_p90 ? &c->ratio_p90 : NULL,
        [RATIO_CALLS] = c->has_ratio_calls ? &c->ratio_calls : NULL,
        [WARNING] = c->has_warning ? &c->warning : NULL,
        [WARNING_RATIO] = c->has_warning && c->warning.has_ratio ? &c->warning.ratio : NULL,
    };
    if (c->n_arms == 0)
        put_row(sources, out);
    for (size_t i = 0; i < c->n_arms; i++) {
        const struct document_timing *timing = report_timing(&c->arms[i]);
        sources[ARM] = &c->arms[i];
        sources[VERIFY] = report_verify(&c->arms[i]);
        sources[TIMING] = timing;
        sources[PAIR] =
            timing && timing->has_ratio_to_candidate ? &timing->ratio_to_candidate : NULL;
        put_row(sources, out);
    }
}

void report_csv_header(struct buf *out)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", columns[i].name);
    buf_puts(out, "\r\n");
}

void report_csv_rows(const struct document *document, struct buf *out)
{
    for (size_t i = 0; i < document->n_cases; i++)
        put_case(document, &document->cases[i], out);
}

void report_csv_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "exit_code,error\r\n%d,", exit_code);
    csv_put(out, message);
    buf_puts(out, "\r\n");
}
