/* SPDX-License-Identifier: Apache-2.0 */
/* report_run.c: see report_run.h. */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <ctype.h>

#include "gate/base/hex.h"
#include "gate/report/report_units.h"

/* A launch() that takes so many times as long on the host, and so much longer, is told, whatever
 * the verdict. */
#define CALLS_STAND_OUT 1.25
#define CALLS_STAND_OUT_NS 100e3

static void note_provider(struct report_run *run, const char *provider)
{
    for (size_t i = 0; i < run->n_providers; i++) {
        if (strcmp(run->providers[i], provider) == 0)
            return;
    }
    if (run->n_providers == REPORT_MAX_PROVIDERS)
        run->more_providers = true;
    else
        run->providers[run->n_providers++] = provider;
}

static void read_case(struct report_run *run, const struct document_case *c)
{
    const struct document_arm *candidate = document_candidate(c);
    const struct document_timing *timing = report_timing(candidate);
    left_out_add(&run->left_out, c->id, report_verify(candidate));
    covered_add(&run->covered, c->op, report_verify(candidate));
    run->counts[c->verdict]++;
    if (c->has_warning)
        run->warned[c->warning.verdict]++;
    run->n_unresolved += report_is_unresolved(run, c);
    run->n_same_code += report_is_same_code(c);
    run->warm |= timing && !timing->cold;
    for (size_t i = 0; i < c->n_arms; i++)
        if (c->arms[i].role == ROLE_PROVIDER) {
            note_provider(run, c->arms[i].provider);
            run->vendors_remembered |= c->arms[i].has_timing && c->arms[i].timing.measured_in;
        }
    run->n_remembered += candidate && candidate->has_verify && candidate->verify.verified_in;
}

void report_put_counts(const size_t counts[VERDICT_COUNT], struct buf *out)
{
    const char *separator = "";
    for (int severity = 0; severity < VERDICT_COUNT; severity++) {
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if (report_severity((enum verdict)v) != severity || counts[v] == 0)
                continue;
            buf_printf(out, "%s%zu %s", separator, counts[v], verdict_name((enum verdict)v));
            separator = ", ";
        }
    }
}

void report_run_read(const struct document *document, struct report_run *out)
{
    *out = (struct report_run){.document = document};
    for (size_t i = 0; i < document->n_cases; i++)
        read_case(out, &document->cases[i]);
}

static bool calls_stand_out(const struct document_case *c)
{
    const struct document_timing *t = report_timing(document_candidate(c));
    if (!c->has_ratio_calls || !t || !(c->ratio_calls.lo > CALLS_STAND_OUT))
        return false;
    return t->call_ns - t->call_ns / c->ratio_calls.value >= CALLS_STAND_OUT_NS;
}

bool report_is_told(const struct document_case *c)
{
    return c->verdict != VERDICT_PASS || (c->has_baseline && c->baseline.off == YES) ||
           calls_stand_out(c);
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

bool report_warns(const struct document_case *c)
{
    return c->has_warning && c->warning.verdict != VERDICT_PASS &&
           c->warning.verdict != VERDICT_IMPROVEMENT;
}

/* Its place among those that are alike, where it has one; NULL: what is said of it is its own. */
static struct report_reason *find_reason(struct report_reasons *r, const struct document_case *c,
                                         bool add)
{
    enum verdict v = (enum verdict)c->verdict;
    const char *reason = c->reason;
    if (v != VERDICT_NO_VERDICT && v != VERDICT_ENVIRONMENT)
        return NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->of[i].verdict == v && !strcmp(r->of[i].reason, reason))
            return &r->of[i];
    if (!add || r->n == REPORT_REASONS_MAX)
        return NULL;
    r->of[r->n] = (struct report_reason){.verdict = v, .reason = reason};
    return &r->of[r->n++];
}

void report_reasons_count(const struct report_run *run, struct report_reasons *out)
{
    out->n = 0;
    for (size_t i = 0; i < run->document->n_cases; i++) {
        struct report_reason *reason = find_reason(out, &run->document->cases[i], true);
        if (reason)
            reason->n_cases++;
    }
}

size_t report_reasons_take(struct report_reasons *r, const struct document_case *c)
{
    struct report_reason *reason = find_reason(r, c, false);
    if (!reason)
        return 1;
    size_t n = reason->n_cases;
    reason->n_cases = 0;
    return n;
}

int report_severity(enum verdict v)
{
    static const int severity[VERDICT_COUNT] = {
        [VERDICT_PASS] = 0,        [VERDICT_IMPROVEMENT] = 1, [VERDICT_NO_VERDICT] = 2,
        [VERDICT_ENVIRONMENT] = 3, [VERDICT_REGRESSION] = 4,  [VERDICT_WRONG] = 5,
    };
    return severity[v];
}

const struct document_arm *report_provider(const struct document_case *c, const char *provider)
{
    for (size_t i = 0; i < c->n_arms; i++)
        if (c->arms[i].role == ROLE_PROVIDER && !strcmp(c->arms[i].provider, provider))
            return &c->arms[i];
    return NULL;
}

const struct document_timing *report_timing(const struct document_arm *arm)
{
    return arm && arm->has_timing ? &arm->timing : NULL;
}

const struct document_verify *report_verify(const struct document_arm *arm)
{
    return arm && arm->has_verify ? &arm->verify : NULL;
}

double report_change(const struct document_case *c)
{
    return c->has_ratio ? c->ratio.value : 0;
}

double report_half_width(const struct document_case *c)
{
    return c->has_ratio ? fabs(c->ratio.hi - c->ratio.lo) / 2 : -1;
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

double report_speed_up(const struct document_case *c, const struct document_arm *provider_arm)
{
    const struct document_timing *ours = report_timing(document_candidate(c));
    const struct document_timing *theirs = report_timing(provider_arm);
    if (!ours || !theirs)
        return 0;
    /* From pairs of samples where there were pairs: the two p50 may be of different clocks. */
    return theirs->has_ratio_to_candidate ? 1 / theirs->ratio_to_candidate.value
                                          : theirs->p50_ns / ours->p50_ns;
}

const char *report_no_timing(const struct document_arm *arm)
{
    if (!arm)
        return "-";
    return arm->has_verify && !arm->verify.ok ? "wrong" : "not timed";
}

void report_counts(const struct report_run *run, struct buf *out)
{
    report_put_counts(run->counts, out);
    if (run->document->n_cases == 0)
        buf_puts(out, "no cases");
}

bool report_accept(const struct report_run *run, char out[REPORT_ACCEPT_MAX])
{
    const struct document *d = run->document;
    const char *against = d->policy.against;
    bool stored = !against || !against[0] || !strcmp(against, "baseline");
    if (!run->counts[VERDICT_REGRESSION] || !stored || d->has_shard)
        return false;
    snprintf(out, REPORT_ACCEPT_MAX, "gate baseline accept CASE --run %.8s --reason WHY", d->uuid);
    return true;
}

bool report_was_disturbed(const struct report_run *run)
{
    return run->document->device.kind == DEVICE_HOST && run->counts[VERDICT_ENVIRONMENT] > 0;
}

void report_commit(const struct report_run *run, struct buf *out)
{
    const struct document_git *git = &run->document->git;
    if (!git->commit[0]) {
        buf_puts(out, "not known");
        return;
    }
    buf_printf(out, "%.12s", git->commit);
    if (git->dirty)
        buf_puts(out, ", changed");
    if (git->branch[0])
        buf_printf(out, " (%s)", git->branch);
    if (git->subject[0])
        buf_printf(out, " %s", git->subject);
    if (git->subject[0] && git->author)
        buf_printf(out, ", by %s", git->author);
}

void report_conditions(const struct report_run *run, struct buf *out)
{
    char text[UNITS_MAX];
    const struct document *d = run->document;

    buf_printf(out, "contract %s", d->contract);
    if (d->epoch && d->epoch[0])
        buf_printf(out, ", epoch %s", d->epoch);
    if (d->n_processes > 0)
        buf_printf(out, ", %lld process%s", (long long)d->n_processes,
                   d->n_processes == 1 ? "" : "es");
    if (!isnan(d->control_drift))
        buf_printf(out, ", control drift %s", units_percent(d->control_drift, text));
    if (d->policy.against && d->policy.against[0])
        buf_printf(out, ", against %.*s", hex_is(d->policy.against, 40) ? 12 : -1,
                   d->policy.against);
    if (d->policy.base)
        buf_printf(out, ", where this branch left %s", d->policy.base);
    if (d->users_checked == NO)
        buf_puts(out, ", other users of the GPU not checked");
    if (d->launch_order_checked == NO)
        buf_puts(out, ", order of launches not checked");
}

bool report_has_ceilings(const struct document *d)
{
    return d->has_ceilings && !d->ceilings.message;
}

bool report_ceilings(const struct document *d, struct buf *out)
{
    const struct document_ceilings *c = &d->ceilings;
    const struct {
        const char *before;
        double value;
    } rates[] = {{"read ", c->read_gbps},          {", copy ", c->copy_gbps},
                 {" GB/s; fp16 ", c->fp16_tflops}, {", bf16 ", c->bf16_tflops},
                 {", TF32 ", c->tf32_tflops},      {", fp32 ", c->fp32_tflops}};
    if (!d->has_ceilings)
        return false;
    if (c->message) {
        buf_printf(out, "not measured here: %s", c->message);
        return true;
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        bool whole = rates[i].value >= 100 && rates[i].value < 1e6;
        buf_puts(out, rates[i].before);
        if (isnan(rates[i].value))
            buf_putc(out, '-');
        else
            buf_printf(out, whole ? "%.0f" : "%.3g", rates[i].value);
    }
    buf_puts(out, " TFLOP/s by the gate's own kernels");
    return true;
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
