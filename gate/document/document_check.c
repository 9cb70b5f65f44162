/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/document/document_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/decide.h"

#define ROUNDING 1e-9

/* Always false, for the caller to return. `place` < 0: the pointer has no number. */
__attribute__((format(printf, 4, 5))) static bool
fail(struct field_fault *fault, const char *pointer, int place, const char *format, ...)
{
    va_list args;
    *fault = (struct field_fault){.of_key = false};
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

static bool is_ordered(double lo, double value, double hi)
{
    return lo <= value && value <= hi;
}

static bool check_intervals(const struct document_case *c, int at, struct field_fault *fault)
{
    if (c->has_ratio && !is_ordered(c->ratio.lo, c->ratio.value, c->ratio.hi))
        return fail(fault, "ratio", at, "the interval does not hold its value");
    for (size_t i = 0; i < c->n_arms; i++) {
        const struct document_timing *t = &c->arms[i].timing;
        bool unknown = document_case_is_foreign(c) && isnan(t->p50_lo_ns) && isnan(t->p50_hi_ns);
        if (!c->arms[i].has_timing)
            continue;
        if (!unknown && !is_ordered(t->p50_lo_ns, t->p50_ns, t->p50_hi_ns))
            return fail(fault, "arms", at, "the interval of a p50 does not hold it");
        if (isnan(t->p90_ns) && !document_case_is_foreign(c))
            return fail(fault, "arms", at, "a p90 is not known");
    }
    return true;
}

/* Another tool's times must not look like those of the gate, nor the other way round. */
static bool check_foreign(const struct document *d, const struct document_case *c, int at,
                          struct field_fault *fault)
{
    bool same = document_is_foreign(d) == document_case_is_foreign(c);
    bool bare = c->verdict == VERDICT_NO_VERDICT && !c->has_ratio && !c->has_baseline;
    if (!same)
        return fail(fault, "id", at, "'%.160s' does not go with the contract '%s'", c->id,
                    d->contract);
    for (size_t i = 0; i < c->n_arms; i++)
        bare &= c->arms[i].role == ROLE_CANDIDATE && !c->arms[i].has_verify;
    return !document_is_foreign(d) || bare ||
           fail(fault, "verdict", at,
                "'%.100s' is of another tool: it has no verdict, no baseline, "
                "no verification and no other library",
                c->id);
}

static bool is_right_and_timed(const struct document_case *c)
{
    const struct document_arm *arm = document_candidate(c);
    return arm && arm->has_timing && arm->has_verify && arm->verify.ok;
}

static bool was_confirmed(const struct document_case *c)
{
    for (size_t i = 0; i < c->n_processes; i++)
        if (c->processes[i].stage == STAGE_CONFIRMATION)
            return true;
    return false;
}

/* What the ratio that a case reports lets its verdict be. */
static bool check_verdict(const struct document *d, const struct document_case *c, int at,
                          struct field_fault *fault)
{
    enum verdict v = (enum verdict)c->verdict;
    double limit = 1 + (isnan(c->threshold) ? d->policy.threshold : c->threshold);
    bool judged = v == VERDICT_PASS || v == VERDICT_IMPROVEMENT || v == VERDICT_REGRESSION;
    bool less_accurate = c->error_ratio > DECIDE_ERROR_JUMP;
    if (judged && !is_right_and_timed(c))
        return fail(fault, "verdict", at,
                    "is '%s' of a candidate that was not found right and timed", verdict_name(v));
    if (!c->has_ratio)
        return true;
    if (v == VERDICT_PASS && !was_confirmed(c) && c->ratio.hi >= limit + ROUNDING)
        return fail(fault, "verdict", at, "is 'pass' of a ratio of up to %.6g, over the threshold",
                    c->ratio.hi);
    if (less_accurate && (v == VERDICT_PASS || v == VERDICT_IMPROVEMENT))
        return fail(fault, "verdict", at, "is '%s' of an error that is %.3g times the baseline's",
                    verdict_name(v), c->error_ratio);
    if (v == VERDICT_REGRESSION && !less_accurate && c->ratio.value <= limit - ROUNDING)
        return fail(fault, "verdict", at, "is 'regression' of a ratio of %.6g, below the threshold",
                    c->ratio.value);
    return true;
}

static bool check_causes(const struct document_case *c, int at, struct field_fault *fault)
{
    for (size_t i = 0; i < c->counters.n_moved; i++)
        if (c->counters.moved[i].kernel >= (int64_t)c->counters.n_kernels)
            return fail(fault, "counters", at, "kernel number %lld does not exist",
                        (long long)c->counters.moved[i].kernel);
    for (size_t i = 0; i < c->instructions.n_changed; i++)
        if (c->instructions.changed[i].kernel >= (int64_t)c->instructions.n_kernels)
            return fail(fault, "instructions", at, "kernel number %lld does not exist",
                        (long long)c->instructions.changed[i].kernel);
    return true;
}

/* ---- all cases ---- */

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_ids(const struct document *d, struct field_fault *fault)
{
    const char *twice = NULL, **ids = calloc(d->n_cases + 1, sizeof *ids);
    if (!ids)
        return fail(fault, "", -1, "cannot be checked: out of memory");
    for (size_t i = 0; i < d->n_cases; i++)
        ids[i] = d->cases[i].id;
    qsort(ids, d->n_cases, sizeof *ids, compare_ids);
    for (size_t i = 1; i < d->n_cases && !twice; i++)
        twice = strcmp(ids[i - 1], ids[i]) ? NULL : ids[i];
    free(ids);
    return !twice || fail(fault, "/cases", -1, "'%s' is there twice", twice);
}

static bool check_cases(const struct document *d, struct field_fault *fault)
{
    if (d->n_cases == 0 && !d->has_calibration)
        return fail(fault, "/cases", -1, "is empty, and the document has no calibration");
    for (size_t i = 0; i < d->n_cases; i++)
        if (!check_foreign(d, &d->cases[i], (int)i, fault) ||
            !check_intervals(&d->cases[i], (int)i, fault) ||
            !check_causes(&d->cases[i], (int)i, fault) ||
            !check_verdict(d, &d->cases[i], (int)i, fault))
            return false;
    return check_ids(d, fault);
}

/* ---- times ---- */

/* A baseline from the future would be the newest for ever, and one run of 1970 a trend of 50 years.
 */
static bool check_ahead(int64_t time_ms, int64_t now_ms, const char *pointer, int at,
                        struct field_fault *fault)
{
    int64_t ahead_ms = time_ms - now_ms;
    return ahead_ms <= DOCUMENT_AHEAD_MS ||
           fail(fault, pointer, at, "is %.1f days ahead of this machine's clock",
                (double)ahead_ms / (24 * 3600e3));
}

static bool check_times(const struct document *d, int64_t now_ms, struct field_fault *fault)
{
    if (d->time_ms < DOCUMENT_FIRST_MS)
        return fail(fault, "/time_ms", -1,
                    "is %lld, before 2015: set the clock of the machine that ran it",
                    (long long)d->time_ms);
    if (!check_ahead(d->time_ms, now_ms, "/time_ms", -1, fault))
        return false;
    for (size_t i = 0; i < d->n_cases; i++)
        if (d->cases[i].has_baseline &&
            !check_ahead(d->cases[i].baseline.time_ms, now_ms, "baseline/time_ms", (int)i, fault))
            return false;
    return true;
}

/* ---- the run ---- */

/* A calibration says what it cannot resolve, and of which cases it lacks processes and why. */
static void count_verdicts(const struct document *d, size_t counts[VERDICT_COUNT])
{
    const struct document_calibration *k = &d->calibration;
    for (size_t i = 0; i < d->n_cases; i++)
        counts[d->cases[i].verdict]++;
    for (size_t i = 0; i < k->n_cases; i++)
        counts[VERDICT_NO_VERDICT] += !k->cases[i].resolved;
    for (size_t i = 0; i < k->n_incomplete; i++)
        counts[k->incomplete[i].verdict]++;
}

static bool check_first_parents(const struct document *d, struct field_fault *fault)
{
    const struct document_git *git = &d->git;
    return git->n_first_parents == 0 || !strcmp(git->first_parents[0].commit, git->commit) ||
           fail(fault, "/git/first_parents", -1, "does not begin with the commit");
}

bool document_check(const struct document *d, int64_t now_ms, struct field_fault *fault)
{
    size_t counts[VERDICT_COUNT] = {0};
    if (!check_times(d, now_ms, fault) || !check_first_parents(d, fault) || !check_cases(d, fault))
        return false;
    count_verdicts(d, counts);
    enum verdict verdict = verdict_of_run(counts);
    int code = verdict_exit_code(counts);
    if (d->verdict != (int)verdict)
        return fail(fault, "/verdict", -1, "is '%s', but the cases give '%s'",
                    verdict_name((enum verdict)d->verdict), verdict_name(verdict));
    return d->exit_code == code || fail(fault, "/exit_code", -1, "is %lld, but the cases give %d",
                                        (long long)d->exit_code, code);
}
