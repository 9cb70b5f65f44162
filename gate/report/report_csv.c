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

#include <assert.h>
#include <math.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/json.h"

enum root { RUN, CASE, ARM, FIRST, CONFIRMATION };

static const struct {
    const char *name;
    enum root root;   /* FIRST and CONFIRMATION: the log_ratio of each process of a stage */
    const char *path; /* the keys from there to the member */
} columns[] = {
    {"run_uuid", RUN, "uuid"},
    {"time_ms", RUN, "time_ms"},
    {"suite", RUN, "suite"},
    {"contract", RUN, "contract"},
    {"epoch", RUN, "epoch"},
    {"control_drift", RUN, "control_drift"},
    {"threshold", RUN, "policy.threshold"},
    {"against", RUN, "policy.against"},
    {"device_model", RUN, "device.model"},
    {"device_name", RUN, "device.name"},
    {"driver", RUN, "device.driver"},
    {"commit", RUN, "git.commit"},
    {"branch", RUN, "git.branch"},
    {"dirty", RUN, "git.dirty"},
    {"case", CASE, "id"},
    {"op", CASE, "op"},
    {"dtype", CASE, "dtype"},
    {"verdict", CASE, "verdict"},
    {"mode", CASE, "mode"},
    {"mde", CASE, "mde"},
    {"case_threshold", CASE, "threshold"},
    {"same_library", CASE, "same_library"},
    {"baseline_p50_ns", CASE, "baseline.p50_ns"},
    {"baseline_commit", CASE, "baseline.commit"},
    {"ratio", CASE, "ratio.value"},
    {"ratio_lo", CASE, "ratio.lo"},
    {"ratio_hi", CASE, "ratio.hi"},
    {"ratio_p90", CASE, "ratio_p90.value"},
    {"ratio_p90_lo", CASE, "ratio_p90.lo"},
    {"ratio_p90_hi", CASE, "ratio_p90.hi"},
    {"log_ratio_first", FIRST, ""},
    {"log_ratio_confirmation", CONFIRMATION, ""},
    {"provider", ARM, "provider"},
    {"role", ARM, "role"},
    {"kernel", ARM, "kernel"},
    {"verify_ok", ARM, "verify.ok"},
    {"verify_seeds", ARM, "verify.seeds"},
    {"rel_fro", ARM, "verify.rel_fro"},
    {"rel_fro_limit", ARM, "verify.limit"},
    {"max_abs", ARM, "verify.max_abs"},
    {"allclose_1e2", ARM, "verify.allclose_1e2"},
    {"allclose_1e3", ARM, "verify.allclose_1e3"},
    {"nonfinite", ARM, "verify.nonfinite"},
    {"p50_ns", ARM, "timing.p50_ns"},
    {"p50_lo_ns", ARM, "timing.p50_lo_ns"},
    {"p50_hi_ns", ARM, "timing.p50_hi_ns"},
    {"p90_ns", ARM, "timing.p90_ns"},
    {"samples", ARM, "timing.samples"},
    {"launches_per_sample", ARM, "timing.launches_per_sample"},
    {"input_sets", ARM, "timing.input_sets"},
    {"cold", ARM, "timing.cold"},
    {"tflops", ARM, "timing.tflops"},
    {"gbps", ARM, "timing.gbps"},
    {"ceiling", ARM, "timing.ceiling"},
    {"sm_clock_mhz", ARM, "timing.sm_clock_mhz"},
    {"single_p50_ns", ARM, "timing.single_p50_ns"},
    {"single_p90_ns", ARM, "timing.single_p90_ns"},
    {"ratio_to_candidate", ARM, "timing.ratio_to_candidate.value"},
    {"ratio_to_candidate_lo", ARM, "timing.ratio_to_candidate.lo"},
    {"ratio_to_candidate_hi", ARM, "timing.ratio_to_candidate.hi"},
    {"reason", CASE, "reason"},
    {"warn_against", RUN, "policy.warn_against"},
    {"warning_verdict", CASE, "warning.verdict"},
    {"warning_ratio", CASE, "warning.ratio.value"},
    {"warning_ratio_lo", CASE, "warning.ratio.lo"},
    {"warning_ratio_hi", CASE, "warning.ratio.hi"},
    {"warning_mde", CASE, "warning.mde"},
    {"warning_reason", CASE, "warning.reason"},
    {"host_threshold", RUN, "policy.host_threshold"},
    {"ratio_calls", CASE, "ratio_calls.value"},
    {"ratio_calls_lo", CASE, "ratio_calls.lo"},
    {"ratio_calls_hi", CASE, "ratio_calls.hi"},
    {"call_ns", ARM, "timing.call_ns"},
    {"measured_ceiling", ARM, "timing.measured_ceiling"},
    {"verified_in", ARM, "verify.verified_in"},
    {"measured_in", ARM, "timing.measured_in"},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

#define STEPS_MAX 4 /* with the NULL behind them */

/* The fields on the way to the member of each column. */
struct steps {
    const struct field *of[N_COLUMNS][STEPS_MAX];
};

/* `arm`: NULL: there is none. */
static void put_row(const struct steps *steps, const struct document *d,
                    const struct document_case *c, const struct document_arm *arm, struct buf *out)
{
    const void *const roots[] = {[RUN] = d, [CASE] = c, [ARM] = arm};
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (i > 0)
            buf_putc(out, ',');
        const char *separator = "";
        for (size_t k = 0; k < c->n_processes && columns[i].root >= FIRST; k++) {
            const struct document_process *process = &c->processes[k];
            if ((process->stage == STAGE_FIRST) != (columns[i].root == FIRST))
                continue;
            buf_puts(out, separator);
            if (!isnan(process->log_ratio))
                json_write_number(process->log_ratio, out);
            separator = ";";
        }
        if (columns[i].root >= FIRST)
            continue;
        const char *from = roots[columns[i].root];
        const struct field *const *step = steps->of[i];
        for (; from && step[1]; step++) { /* a part on the way may not be known */
            bool known =
                step[0]->beside == FIELD_NOWHERE || *(const bool *)(from + step[0]->beside);
            from = known ? from + step[0]->offset : NULL;
        }
        const char *text = from ? field_text(*step, from) : NULL;
        if (text)
            csv_put(text, out);
        else if (from)
            field_write(*step, from, out);
    }
    buf_puts(out, "\r\n");
}

void report_csv_header(struct buf *out)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", columns[i].name);
    buf_puts(out, "\r\n");
}

void report_csv_rows(const struct document *document, struct buf *out)
{
    static const struct shape *const roots[] = {
        [RUN] = &document_shape, [CASE] = &document_case_shape, [ARM] = &document_arm_shape};
    struct steps steps = {{{NULL}}};
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct shape *s = columns[i].root < FIRST ? roots[columns[i].root] : NULL;
        const char *path = columns[i].path;
        for (size_t n, k = 0; s; path += n + 1, s = steps.of[i][k++]->shape) {
            const struct field *f = s->fields;
            for (n = strcspn(path, "."); strncmp(f->key, path, n) != 0 || f->key[n]; f++)
                assert(f + 1 < s->fields + s->n);
            steps.of[i][k] = f;
        }
    }
    for (size_t i = 0; i < document->n_cases; i++) {
        const struct document_case *c = &document->cases[i];
        if (c->n_arms == 0)
            put_row(&steps, document, c, NULL, out);
        for (size_t k = 0; k < c->n_arms; k++)
            put_row(&steps, document, c, &c->arms[k], out);
    }
}
