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

#include <string.h>

#include "gate/base/csv.h"
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
    FIRST, /* the d of each process of a stage; no key */
    CONFIRMATION,
    ARM,
    VERIFY,
    TIMING,
    PAIR,
    N_SOURCES
};

static const struct {
    const char *name;
    enum source source;
    const char *key;
} columns[] = {
    {"run_uuid", RUN, "uuid"},
    {"time_ms", RUN, "time_ms"},
    {"suite", RUN, "suite"},
    {"contract", RUN, "contract"},
    {"epoch", RUN, "epoch"},
    {"control_drift", RUN, "control_drift"},
    {"threshold", POLICY, "threshold"},
    {"against", POLICY, "against"},
    {"device_model", DEVICE, "model"},
    {"device_name", DEVICE, "name"},
    {"driver", DEVICE, "driver"},
    {"commit", GIT, "commit"},
    {"branch", GIT, "branch"},
    {"dirty", GIT, "dirty"},
    {"case", CASE, "id"},
    {"op", CASE, "op"},
    {"dtype", CASE, "dtype"},
    {"verdict", CASE, "verdict"},
    {"mode", CASE, "mode"},
    {"mde", CASE, "mde"},
    {"case_threshold", CASE, "threshold"},
    {"same_library", CASE, "same_library"},
    {"baseline_p50_ns", BASELINE, "p50_ns"},
    {"baseline_commit", BASELINE, "commit"},
    {"ratio", RATIO, "value"},
    {"ratio_lo", RATIO, "lo"},
    {"ratio_hi", RATIO, "hi"},
    {"ratio_p90", RATIO_P90, "value"},
    {"ratio_p90_lo", RATIO_P90, "lo"},
    {"ratio_p90_hi", RATIO_P90, "hi"},
    {"log_ratio_first", FIRST, NULL},
    {"log_ratio_confirmation", CONFIRMATION, NULL},
    {"provider", ARM, "provider"},
    {"role", ARM, "role"},
    {"kernel", ARM, "kernel"},
    {"verify_ok", VERIFY, "ok"},
    {"verify_seeds", VERIFY, "seeds"},
    {"rel_fro", VERIFY, "rel_fro"},
    {"rel_fro_limit", VERIFY, "limit"},
    {"max_abs", VERIFY, "max_abs"},
    {"allclose_1e2", VERIFY, "allclose_1e2"},
    {"allclose_1e3", VERIFY, "allclose_1e3"},
    {"nonfinite", VERIFY, "nonfinite"},
    {"p50_ns", TIMING, "p50_ns"},
    {"p50_lo_ns", TIMING, "p50_lo_ns"},
    {"p50_hi_ns", TIMING, "p50_hi_ns"},
    {"p90_ns", TIMING, "p90_ns"},
    {"samples", TIMING, "samples"},
    {"launches_per_sample", TIMING, "launches_per_sample"},
    {"input_sets", TIMING, "input_sets"},
    {"cold", TIMING, "cold"},
    {"tflops", TIMING, "tflops"},
    {"gbps", TIMING, "gbps"},
    {"ceiling", TIMING, "ceiling"},
    {"sm_clock_mhz", TIMING, "sm_clock_mhz"},
    {"single_p50_ns", TIMING, "single_p50_ns"},
    {"single_p90_ns", TIMING, "single_p90_ns"},
    {"ratio_to_candidate", PAIR, "value"},
    {"ratio_to_candidate_lo", PAIR, "lo"},
    {"ratio_to_candidate_hi", PAIR, "hi"},
    {"reason", CASE, "reason"},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void put_value(const cJSON *value, struct buf *out)
{
    if (cJSON_IsString(value))
        csv_put(out, value->valuestring);
    else if (cJSON_IsNumber(value))
        json_write_number(value->valuedouble, out);
    else if (cJSON_IsBool(value))
        buf_puts(out, cJSON_IsTrue(value) ? "true" : "false");
}

static void put_evidence(const cJSON *processes, const char *stage, struct buf *out)
{
    const cJSON *process;
    const char *separator = "";
    cJSON_ArrayForEach (process, processes) {
        if (strcmp(json_string(process, "stage", ""), stage) != 0)
            continue;
        buf_puts(out, separator);
        put_value(cJSON_GetObjectItemCaseSensitive(process, "log_ratio"), out);
        separator = ";";
    }
}

static void put_field(const cJSON *const sources[N_SOURCES], enum source source, const char *key,
                      struct buf *out)
{
    if (key)
        put_value(cJSON_GetObjectItemCaseSensitive(sources[source], key), out);
    else
        put_evidence(sources[source], source == FIRST ? "first" : "confirmation", out);
}

static void put_row(const cJSON *const sources[N_SOURCES], struct buf *out)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_field(sources, columns[i].source, columns[i].key, out);
    }
    buf_puts(out, "\r\n");
}

static void put_case(const struct report_run *run, const cJSON *one_case, struct buf *out)
{
    const cJSON *arm;
    const cJSON *arms = cJSON_GetObjectItemCaseSensitive(one_case, "arms");
    const cJSON *sources[N_SOURCES] = {
        [RUN] = run->document,
        [POLICY] = cJSON_GetObjectItemCaseSensitive(run->document, "policy"),
        [GIT] = run->git,
        [DEVICE] = run->device,
        [CASE] = one_case,
        [BASELINE] = cJSON_GetObjectItemCaseSensitive(one_case, "baseline"),
        [RATIO] = cJSON_GetObjectItemCaseSensitive(one_case, "ratio"),
        [RATIO_P90] = cJSON_GetObjectItemCaseSensitive(one_case, "ratio_p90"),
        [FIRST] = cJSON_GetObjectItemCaseSensitive(one_case, "processes"),
        [CONFIRMATION] = cJSON_GetObjectItemCaseSensitive(one_case, "processes"),
    };
    if (cJSON_GetArraySize(arms) == 0)
        put_row(sources, out);
    cJSON_ArrayForEach (arm, arms) {
        sources[ARM] = arm;
        sources[VERIFY] = report_verify(arm);
        sources[TIMING] = report_timing(arm);
        sources[PAIR] = cJSON_GetObjectItemCaseSensitive(sources[TIMING], "ratio_to_candidate");
        put_row(sources, out);
    }
}

void report_csv_header(struct buf *out)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", columns[i].name);
    buf_puts(out, "\r\n");
}

void report_csv_rows(const cJSON *run_document, struct buf *out)
{
    struct report_run run;
    const cJSON *one_case;
    report_run_read(run_document, &run);
    cJSON_ArrayForEach (one_case, run.cases) {
        put_case(&run, one_case, out);
    }
}

void report_csv_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "exit_code,error\r\n%d,", exit_code);
    csv_put(out, message);
    buf_puts(out, "\r\n");
}
