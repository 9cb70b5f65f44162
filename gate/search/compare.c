/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/document/document.h"

#define PATIENCE_S 86400.0
#define REPORT_MAX_BYTES ((size_t)64 << 20)

/* What the processes found, "+9.31 +9.28 %". */
static void write_evidence(const struct document_case *c, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->n_processes && n + 40 < size; i++) {
        const struct document_process *p = &c->processes[i];
        if (i > 0 && p->stage == STAGE_CONFIRMATION && c->processes[i - 1].stage == STAGE_FIRST)
            n += (size_t)snprintf(out + n, size - n, "confirmed: ");
        if (!isnan(p->log_ratio))
            n += (size_t)snprintf(out + n, size - n, "%+.2f ", 100 * expm1(p->log_ratio));
    }
    if (n)
        snprintf(out + n, size - n, "%%");
}

static enum gate_status read_comparison(const char *path, struct comparison *out,
                                        struct gate_error *err)
{
    struct buf text;
    struct document d = {0};
    buf_init(&text, REPORT_MAX_BYTES);
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status = document_parse(path, 1, text.data, text.len, GATE_INTERNAL, &d, err);
    buf_release(&text);
    if (status)
        return status;
    if (d.n_cases == 1) {
        const struct document_case *c = &d.cases[0];
        *out =
            (struct comparison){.verdict = (enum verdict)c->verdict, .processes = c->n_processes};
        if (c->has_ratio && c->mode == MODE_PAIRED)
            out->ratio = c->ratio;
        snprintf(out->run, sizeof out->run, "%s", d.uuid);
        snprintf(out->reason, sizeof out->reason, "%s", c->reason);
        for (size_t i = 0; i < c->n_processes && out->n_log_ratios < MEASURE_VALUES; i++)
            if (c->mode == MODE_PAIRED && !isnan(c->processes[i].log_ratio)) {
                out->log_ratio_fresh[out->n_log_ratios] = c->processes[i].log_ratio_fresh;
                out->log_ratio[out->n_log_ratios++] = c->processes[i].log_ratio;
            }
        write_evidence(c, out->evidence, sizeof out->evidence);
    } else {
        status = gate_fail(err, GATE_INTERNAL, "a run of one case has %zu", d.n_cases);
    }
    document_release(&d);
    return status;
}

static enum gate_status run(char *const *argv, int *code, char *words, size_t size,
                            struct gate_error *err)
{
    struct process p = {0};
    struct buf line;
    enum gate_status status = process_start(&p, argv, err);
    if (status)
        return status;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (process_read_line(&p, PATIENCE_S, &line) == PROCESS_LINE)
        buf_clear(&line);
    *code = process_finish(&p, PATIENCE_S);
    snprintf(words, size, "%s", process_last_words(&p));
    buf_release(&line);
    return GATE_OK;
}

enum gate_status measure_pair(const struct measure_options *o, const char *new_library,
                              const char *old_library, double threshold, struct comparison *out,
                              struct gate_error *err)
{
    char gate[PATHS_MAX], report[PATHS_MAX + 8], percent[32], timeout[32], budget[32], pause[32],
        wait[32], words[500];
    const char *argv[40] = {gate,        "compare",  new_library, old_library,     "--filter",
                            o->case_id,  "--report", report,      "--threshold",   percent,
                            "--timeout", timeout,    "--budget",  budget,          "--pause",
                            pause,       "--wait",   wait,        "--no-ceilings", "--no-vendors"};
    const char *const optional[][2] = {
        {"--suite", o->suite}, {"--device", o->device}, {"--worker", o->worker}};
    size_t n = 20;
    int code = -1;
    snprintf(report, sizeof report, "json=%s", o->report);
    snprintf(percent, sizeof percent, "%.6g%%", 100 * threshold);
    snprintf(timeout, sizeof timeout, "%.6g", o->timeout_s);
    snprintf(budget, sizeof budget, "%.6g", o->budget_ms);
    snprintf(pause, sizeof pause, "%.6g", o->pause_s);
    snprintf(wait, sizeof wait, "%.6g", o->wait_s);
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (optional[i][1]) {
            argv[n++] = optional[i][0];
            argv[n++] = optional[i][1];
        }
    enum gate_status status = paths_beside("gate", gate, err);
    if (status)
        return status;
    if (unlink(o->report) && errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot remove '%s': %s", o->report, strerror(errno));
    status = run((char *const *)argv, &code, words, sizeof words, err);
    if (status)
        return status;
    /* One that measured nothing leaves a report that is no run. */
    if (read_comparison(o->report, out, NULL))
        return gate_fail(err, code > 0 ? (enum gate_status)code : GATE_INTERNAL,
                         "the measurement of %.200s ended with %d: %.500s", new_library, code,
                         words);
    return GATE_OK;
}
