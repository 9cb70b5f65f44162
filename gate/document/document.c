/* SPDX-License-Identifier: Apache-2.0 */
/* document.c: run documents are read, written, checked and searched; see document.h. */
#include "gate/document/document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/counters/counters.h"
#include "gate/decide/decide.h"
#include "gate/document/fields_table.h"

#define COUNT_MAX 1e9 /* summed over the cases of a run */
#define CASE_REASON_MAX 1600
#define CASES_MAX 10000
#define KERNEL_NAME_MAX (DOCUMENT_KERNEL_NAME_SIZE - 1)
#define SIZES_MAX 48 /* three whole numbers */
#define FILE_MAX_BYTES ((size_t)256 << 20)

static const char *const kinds[] = {"host", "cuda", NULL};
const char *const document_roles[] = {"candidate", "baseline", "provider", NULL};
const char *const document_modes[] = {"paired", "number", "none", NULL};
const char *const document_stages[] = {"first", "confirmation", NULL};
static const char *const schemas[] = {"gate-run/1", NULL};

#define OF estimate
static const struct field estimate_fields[] = {
    FACTOR(value, REQUIRED),
    FACTOR(lo, REQUIRED),
    FACTOR(hi, REQUIRED),
};
SHAPE(estimate);
#undef OF

/* clang-format off */
#define OF MEMBERS_OF
#define F(kind, ...) kind(__VA_ARGS__),
#define ASIDE(members)
#define BEGIN static const struct field JOIN(OF, _fields)[] = {
#define END }; const struct shape JOIN(OF, _shape) = SHAPE_OF(OF);
#include "gate/document/document_members.h"
/* clang-format on */

/* ---- use ---- */

bool document_case_is_foreign(const struct document_case *c)
{
    return !strncmp(c->id, DOCUMENT_FOREIGN "/", sizeof DOCUMENT_FOREIGN);
}

bool document_take(const char *text, size_t len, struct document *out, struct field_fault *fault)
{
    struct fields_taken taken;
    bool good = fields_take(&document_shape, text, len, out, &taken, fault);
    out->taken = taken;
    return good;
}

enum gate_status document_parse(const char *name, unsigned first_line, const char *text, size_t len,
                                enum gate_status status, struct document *out,
                                struct gate_error *err)
{
    struct fields_taken taken;
    TRY(fields_parse(&document_shape, name, first_line, text, len, status, out, &taken, err));
    out->taken = taken;
    return GATE_OK;
}

enum gate_status document_load(const char *path, struct document *out, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    TRY(file_read(path, &text, err));
    return document_parse(path, 1, text.data, text.len, GATE_IO, out, err);
}

void document_release(struct document *d)
{
    fields_release(&document_shape, d);
    free(d->taken.texts);
    d->taken = (struct fields_taken){0};
}

const struct document_arm *document_find_arm(const struct document_arm *arms, size_t n,
                                             enum document_role role)
{
    for (size_t i = 0; i < n; i++)
        if (arms[i].role == (int)role)
            return &arms[i];
    return NULL;
}

const struct document_arm *document_candidate(const struct document_case *c)
{
    return document_find_arm(c->arms, c->n_arms, ROLE_CANDIDATE);
}

const struct document_kernel *document_kernel_of(const struct document_timing *old,
                                                 const struct document_timing *new, size_t i)
{
    for (size_t k = 0; k < old->n_kernels; k++)
        if (!strcmp(old->kernels[k].name, new->kernels[i].name))
            return &old->kernels[k];
    return old->n_kernels == 1 && new->n_kernels == 1 ? &old->kernels[0] : NULL;
}

void document_count_named(const struct shape *s, void *counts, const char *name)
{
    for (const struct field *f = s->fields; f < s->fields + s->n; f++) {
        size_t k = 0;
        while (name[k] && f->key[k] == (name[k] == ' ' ? '_' : name[k]))
            k++;
        if (!name[k] && !f->key[k])
            document_count((int64_t *)(void *)((char *)counts + f->offset), 1);
    }
}

/* `element` begins with its id. */
static void keep_id(const struct shape *element, void *list, size_t *n, const char *id)
{
    char *from = list;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        char *item = from + i * element->bytes;
        if (strcmp(*(const char **)(void *)item, id) != 0)
            fields_release(element, item);
        else
            memmove(from + kept++ * element->bytes, item, element->bytes);
    }
    *n = kept;
}

void document_keep_case(struct document *d, const char *id)
{
    keep_id(&document_case_shape, d->cases, &d->n_cases, id);
    keep_id(&document_calibrated_shape, d->calibration.cases, &d->calibration.n_cases, id);
}

void document_write(const struct document *d, struct buf *out)
{
    fields_write(&document_shape, d, out);
    buf_putc(out, '\n');
}

/* ---- checks: one case ---- */

#define ROUNDING 1e-9

static bool is_ordered(double lo, double value, double hi)
{
    return lo <= value && value <= hi;
}

static bool check_intervals(const struct document_case *c, struct field_fault *fault)
{
    if (c->has_ratio && !is_ordered(c->ratio.lo, c->ratio.value, c->ratio.hi))
        return field_refuse(fault, "/ratio: the interval does not hold its value");
    for (size_t i = 0; i < c->n_arms; i++) {
        const struct document_timing *t = &c->arms[i].timing;
        bool unknown = document_case_is_foreign(c) && isnan(t->p50_lo_ns) && isnan(t->p50_hi_ns);
        if (!c->arms[i].has_timing)
            continue;
        if (!unknown && !is_ordered(t->p50_lo_ns, t->p50_ns, t->p50_hi_ns))
            return field_refuse(fault, "/arms: the interval of a p50 does not hold it");
        if (isnan(t->p90_ns) && !document_case_is_foreign(c))
            return field_refuse(fault, "/arms: a p90 is not known");
    }
    return true;
}

/* Another tool's times must not look like those of the gate, nor the other way round. */
static bool check_foreign(const struct document *d, const struct document_case *c,
                          struct field_fault *fault)
{
    bool foreign = !strncmp(d->contract, DOCUMENT_FOREIGN "-", sizeof DOCUMENT_FOREIGN);
    bool bare = c->verdict == VERDICT_NO_VERDICT && !c->has_ratio && !c->has_baseline;
    if (foreign != document_case_is_foreign(c))
        return field_refuse(fault, "/id: '%.160s' does not go with the contract '%s'", c->id,
                            d->contract);
    for (size_t i = 0; i < c->n_arms; i++)
        bare &= c->arms[i].role == ROLE_CANDIDATE && !c->arms[i].has_verify;
    return !foreign || bare ||
           field_refuse(fault,
                        "/verdict: '%.100s' is of another tool: it has no verdict, no baseline, "
                        "no verification and no other library",
                        c->id);
}

/* What the ratio that a case reports lets its verdict be. */
static bool check_verdict(const struct document *d, const struct document_case *c,
                          struct field_fault *fault)
{
    enum verdict v = (enum verdict)c->verdict;
    double limit = 1 + (isnan(c->threshold) ? d->policy.threshold : c->threshold);
    bool judged = v == VERDICT_PASS || v == VERDICT_IMPROVEMENT || v == VERDICT_REGRESSION;
    bool less_accurate = c->error_ratio > DECIDE_ERROR_JUMP, confirmed = false;
    const struct document_arm *arm = document_candidate(c);
    if (judged && !(arm && arm->has_timing && arm->has_verify && arm->verify.ok))
        return field_refuse(fault,
                            "/verdict: is '%s' of a candidate that was not found right and timed",
                            verdict_name(v));
    if (!c->has_ratio)
        return true;
    for (size_t i = 0; i < c->n_processes; i++)
        confirmed |= c->processes[i].stage == STAGE_CONFIRMATION;
    if (v == VERDICT_PASS && !confirmed && c->ratio.hi >= limit + ROUNDING)
        return field_refuse(
            fault, "/verdict: is 'pass' of a ratio of up to %.6g, over the threshold", c->ratio.hi);
    if (less_accurate && (v == VERDICT_PASS || v == VERDICT_IMPROVEMENT))
        return field_refuse(fault,
                            "/verdict: is '%s' of an error that is %.3g times the baseline's",
                            verdict_name(v), c->error_ratio);
    if (v == VERDICT_REGRESSION && !less_accurate && c->ratio.value <= limit - ROUNDING)
        return field_refuse(fault,
                            "/verdict: is 'regression' of a ratio of %.6g, below the threshold",
                            c->ratio.value);
    return true;
}

static bool check_causes(const struct document_case *c, struct field_fault *fault)
{
    for (size_t i = 0; i < c->counters.n_moved; i++)
        if (c->counters.moved[i].kernel >= (int64_t)c->counters.n_kernels)
            return field_refuse(fault, "/counters: kernel number %lld does not exist",
                                (long long)c->counters.moved[i].kernel);
    for (size_t i = 0; i < c->instructions.n_changed; i++)
        if (c->instructions.changed[i].kernel >= (int64_t)c->instructions.n_kernels)
            return field_refuse(fault, "/instructions: kernel number %lld does not exist",
                                (long long)c->instructions.changed[i].kernel);
    return true;
}

/* ---- times ---- */

/* A baseline from the future would be the newest for ever, and one run of 1970 a trend of 50 years.
 */
static bool check_times(const struct document *d, int64_t now_ms, struct field_fault *fault)
{
    char pointer[64] = "/time_ms";
    int64_t time_ms = d->time_ms;
    if (time_ms < DOCUMENT_FIRST_MS)
        return field_refuse(
            fault, "/time_ms: is %lld, before 2015: set the clock of the machine that ran it",
            (long long)time_ms);
    for (size_t i = 0; i < d->n_cases && time_ms - now_ms <= DOCUMENT_AHEAD_MS; i++)
        if (d->cases[i].has_baseline) {
            time_ms = d->cases[i].baseline.time_ms;
            snprintf(pointer, sizeof pointer, "/cases/%zu/baseline/time_ms", i);
        }
    return time_ms - now_ms <= DOCUMENT_AHEAD_MS ||
           field_refuse(fault, "%s: is %.1f days ahead of this machine's clock", pointer,
                        (double)(time_ms - now_ms) / (24 * 3600e3));
}

/* ---- the run ---- */

bool document_check(const struct document *d, int64_t now_ms, struct field_fault *fault)
{
    size_t counts[VERDICT_COUNT] = {0};
    const struct document_git *git = &d->git;
    const struct document_calibration *k = &d->calibration;
    const char *twice;
    if (!check_times(d, now_ms, fault))
        return false;
    if (git->n_first_parents && strcmp(git->first_parents[0].commit, git->commit) != 0)
        return field_refuse(fault, "/git/first_parents: does not begin with the commit");
    if (d->n_cases == 0 && !d->has_calibration)
        return field_refuse(fault, "/cases: is empty, and the document has no calibration");
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_case *c = &d->cases[i];
        counts[c->verdict]++;
        if (check_foreign(d, c, fault) && check_intervals(c, fault) && check_causes(c, fault) &&
            check_verdict(d, c, fault))
            continue;
        const struct field_fault inner = *fault;
        return field_refuse(fault, "/cases/%zu%s: %s", i, inner.pointer, inner.message);
    }
    if (!fields_twice(d->cases, d->n_cases, sizeof *d->cases, &twice))
        return field_refuse(fault, ": cannot be checked: out of memory");
    if (twice)
        return field_refuse(fault, "/cases: '%s' is there twice", twice);
    /* A calibration says what it cannot resolve, and of which cases it lacks processes and why. */
    for (size_t i = 0; i < k->n_cases; i++)
        counts[VERDICT_NO_VERDICT] += !k->cases[i].resolved;
    for (size_t i = 0; i < k->n_incomplete; i++)
        counts[k->incomplete[i].verdict]++;
    enum verdict verdict = verdict_of_run(counts);
    int code = verdict_exit_code(counts);
    if (d->verdict != (int)verdict)
        return field_refuse(fault, "/verdict: is '%s', but the cases give '%s'",
                            verdict_name((enum verdict)d->verdict), verdict_name(verdict));
    return d->exit_code == code || field_refuse(fault, "/exit_code: is %lld, but the cases give %d",
                                                (long long)d->exit_code, code);
}
