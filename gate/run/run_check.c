#include "run_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "decide/decide.h"
#include "report/report_run.h"

#define ROUNDING 1e-9

/* Always false, for the caller to return. `place` < 0: the pointer has no number. */
__attribute__((format(printf, 4, 5))) static bool
fail(struct schema_fault *fault, const char *pointer, int place, const char *format, ...)
{
    va_list args;
    *fault = (struct schema_fault){.of_key = false};
    if (place < 0)
        snprintf(fault->pointer, sizeof fault->pointer, "%s", pointer);
    else
        snprintf(fault->pointer, sizeof fault->pointer, "/cases/%d/%s", place, pointer);
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return false;
}

/* ---- one case ---- */

/* No estimate holds its value in its interval, and neither does one that is not there. */
static bool is_ordered(const cJSON *object, const char *lo, const char *value, const char *hi)
{
    double x = json_number(object, value, NAN);
    return isnan(x) || (json_number(object, lo, x) <= x && x <= json_number(object, hi, x));
}

static bool check_intervals(const cJSON *one_case, int at, struct schema_fault *fault)
{
    const cJSON *arm;
    if (!is_ordered(json_member(one_case, "ratio"), "lo", "value", "hi"))
        return fail(fault, "ratio", at, "the interval does not hold its value");
    cJSON_ArrayForEach (arm, json_member(one_case, "arms"))
        if (!is_ordered(json_member(arm, "timing"), "p50_lo_ns", "p50_ns", "p50_hi_ns"))
            return fail(fault, "arms", at, "the interval of a p50 does not hold it");
    return true;
}

static bool is_right_and_timed(const cJSON *one_case)
{
    const cJSON *arm = report_candidate(one_case);
    return report_timing(arm) && json_bool(report_verify(arm), "ok", false);
}

static bool was_confirmed(const cJSON *one_case)
{
    const cJSON *process;
    cJSON_ArrayForEach (process, json_member(one_case, "processes"))
        if (!strcmp(json_string(process, "stage", ""), "confirmation"))
            return true;
    return false;
}

/* What the ratio that a case reports lets its verdict be. */
static bool check_verdict(const cJSON *document, const cJSON *one_case, int at,
                          struct schema_fault *fault)
{
    enum verdict v = report_verdict(one_case);
    const cJSON *policy = json_member(document, "policy"), *ratio = json_member(one_case, "ratio");
    double limit = 1 + json_number(one_case, "threshold", json_number(policy, "threshold", 0));
    bool judged = v == VERDICT_PASS || v == VERDICT_IMPROVEMENT || v == VERDICT_REGRESSION;
    if (judged && !is_right_and_timed(one_case))
        return fail(fault, "verdict", at,
                    "is '%s' of a candidate that was not found right and timed", verdict_name(v));
    if (!cJSON_IsObject(ratio))
        return true;
    if (v == VERDICT_PASS && !was_confirmed(one_case) &&
        json_number(ratio, "hi", 0) >= limit + ROUNDING)
        return fail(fault, "verdict", at, "is 'pass' of a ratio of up to %.6g, over the threshold",
                    json_number(ratio, "hi", 0));
    bool less_accurate = json_number(one_case, "error_ratio", 0) > DECIDE_ERROR_JUMP;
    if (less_accurate && (v == VERDICT_PASS || v == VERDICT_IMPROVEMENT))
        return fail(fault, "verdict", at, "is '%s' of an error that is %.3g times the best's",
                    verdict_name(v), json_number(one_case, "error_ratio", 0));
    if (v == VERDICT_REGRESSION && !less_accurate &&
        json_number(ratio, "value", 0) <= limit - ROUNDING)
        return fail(fault, "verdict", at, "is 'regression' of a ratio of %.6g, below the threshold",
                    json_number(ratio, "value", 0));
    return true;
}

/* A best from the future would be the newest for ever, and one run of 1970 a trend of 50 years. */
static bool check_ahead(int64_t time_ms, int64_t now_ms, const char *pointer, int at,
                        struct schema_fault *fault)
{
    int64_t ahead_ms = time_ms - now_ms;
    return ahead_ms <= RUN_CHECK_AHEAD_MS ||
           fail(fault, pointer, at, "is %.1f days ahead of this machine's clock",
                (double)ahead_ms / (24 * 3600e3));
}

/* ---- all cases ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* An id that two cases have; NULL: none. */
static const char *find_twice(const char **ids, size_t n)
{
    if (n > 1)
        qsort(ids, n, sizeof *ids, compare_texts);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(ids[i - 1], ids[i]))
            return ids[i];
    return NULL;
}

/* Counts the verdicts. */
static bool check_cases(const cJSON *document, size_t counts[VERDICT_COUNT],
                        struct schema_fault *fault)
{
    const cJSON *cases = json_member(document, "cases"), *one_case;
    size_t n = 0;
    const char **ids = calloc((size_t)cJSON_GetArraySize(cases) + 1, sizeof *ids), *twice;
    bool good = true;
    if (!ids)
        return fail(fault, "", -1, "cannot be checked: out of memory");
    cJSON_ArrayForEach (one_case, cases) {
        good = good && check_intervals(one_case, (int)n, fault) &&
               check_verdict(document, one_case, (int)n, fault);
        counts[report_verdict(one_case)]++;
        ids[n++] = json_string(one_case, "id", "");
    }
    if (n == 0 && !json_member(document, "calibration"))
        good = fail(fault, "/cases", -1, "is empty, and there is no calibration");
    if (good && (twice = find_twice(ids, n)))
        good = fail(fault, "/cases", -1, "'%s' is there twice", twice);
    free(ids);
    return good;
}

/* ---- times ---- */

static bool check_times(const cJSON *document, int64_t now_ms, struct schema_fault *fault)
{
    int64_t time_ms = json_integer(document, "time_ms", 0);
    const cJSON *one_case;
    int at = 0;
    if (time_ms < RUN_CHECK_FIRST_MS)
        return fail(fault, "/time_ms", -1,
                    "is %lld, before 2015: set the clock of the machine that ran it",
                    (long long)time_ms);
    if (!check_ahead(time_ms, now_ms, "/time_ms", -1, fault))
        return false;
    cJSON_ArrayForEach (one_case, json_member(document, "cases"))
        if (!check_ahead(json_integer(json_member(one_case, "best"), "time_ms", 0), now_ms,
                         "best/time_ms", at++, fault))
            return false;
    return true;
}

/* ---- the run ---- */

/* A calibration says what it cannot resolve, and of which cases it lacks processes and why. */
static void count_calibrated(const cJSON *calibration, size_t counts[VERDICT_COUNT])
{
    const cJSON *calibrated, *incomplete;
    cJSON_ArrayForEach (calibrated, json_member(calibration, "cases"))
        counts[VERDICT_NO_VERDICT] += !json_bool(calibrated, "resolved", false);
    cJSON_ArrayForEach (incomplete, json_member(calibration, "incomplete"))
        counts[report_verdict(incomplete)]++;
}

/* What the cases give. */
static bool check_result(const size_t counts[VERDICT_COUNT], const cJSON *document,
                         struct schema_fault *fault)
{
    const char *verdict = verdict_name(verdict_of_run(counts));
    int code = verdict_exit_code(counts);
    if (strcmp(json_string(document, "verdict", ""), verdict) != 0)
        return fail(fault, "/verdict", -1, "is '%s', but the cases give '%s'",
                    json_string(document, "verdict", ""), verdict);
    if (json_integer(document, "exit_code", -1) != code)
        return fail(fault, "/exit_code", -1, "is %lld, but the cases give %d",
                    (long long)json_integer(document, "exit_code", -1), code);
    return true;
}

bool run_check(const cJSON *document, int64_t now_ms, struct schema_fault *fault)
{
    size_t counts[VERDICT_COUNT] = {0};
    if (!check_times(document, now_ms, fault) || !check_cases(document, counts, fault))
        return false;
    count_calibrated(json_member(document, "calibration"), counts);
    return check_result(counts, document, fault);
}
