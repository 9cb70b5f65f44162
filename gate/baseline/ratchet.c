/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/baseline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/decide/stats.h"

/* ---- what of a run becomes a baseline ---- */

bool baseline_of_arm(struct baseline_entry *entry, const struct document_process *processes,
                     size_t n, enum document_stage stage, const struct document_arm *arm)
{
    double p50[DOCUMENT_PROCESSES_MAX], control[DOCUMENT_PROCESSES_MAX];
    double log_ratio[DOCUMENT_PROCESSES_MAX], half_width[DOCUMENT_PROCESSES_MAX];
    bool is_baseline = arm && arm->role == ROLE_BASELINE;
    size_t used = 0;
    for (size_t i = 0; i < n && used < DOCUMENT_PROCESSES_MAX; i++) {
        const struct document_process *p = &processes[i];
        if (p->stage != (int)stage)
            continue;
        p50[used] = is_baseline ? p->baseline_p50_ns : p->p50_ns;
        control[used] = p->control_ns;
        if (!(p50[used] > 0 && control[used] > 0))
            return false;
        log_ratio[used] = log(p50[used] / control[used]);
        half_width[used++] = isnan(p->half_width) ? 0 : p->half_width;
    }
    if (!used || !arm || !arm->has_timing)
        return false;
    struct estimate e = decide_bounds(p50, used);
    entry->p50_ns = e.value;
    entry->p50_lo_ns = e.lo;
    entry->p50_hi_ns = e.hi;
    /* The arm's processes may be more than those of the stage. */
    entry->p90_ns = e.value * (arm->timing.p90_ns / arm->timing.p50_ns);
    entry->spread = stats_deviation(log_ratio, used);
    if (!is_baseline)
        entry->spread = fmax(entry->spread, decide_bounds(half_width, used).value);
    entry->control_ns = stats_middle(control, used);
    entry->kernel = arm->kernel;
    entry->launches = arm->timing.launches;
    entry->input_sets = arm->timing.input_sets;
    const struct document_verify *v = &arm->verify;
    if (!arm->has_verify || isnan(v->rel_fro))
        return true;
    entry->rel_fro = v->rel_fro;
    entry->outputs = v->outputs;
    entry->n_outputs = v->n_outputs;
    if (v->vendor && v->vendor_ratio > 0) {
        entry->vendor = v->vendor;
        entry->vendor_ratio = v->vendor_ratio;
    }
    return true;
}

/* ---- epochs ---- */

static double change_of(double from, double to)
{
    return from > 0 && to > 0 ? log(to / from) : 0;
}

bool ratchet_is_off(const struct baseline_entry *record, const struct baseline_entry *again,
                    char *why, size_t why_size)
{
    double change = change_of(record->p50_ns, again->p50_ns);
    double control = change_of(record->control_ns, again->control_ns);
    double spread = fmax(record->spread, again->spread);
    bool flat =
        record->control_ns > 0 && again->control_ns > 0 && fabs(control) <= DECIDE_CONTROL_FLAT;
    if (!flat || fabs(change) <= log1p(RATCHET_EPOCH_CHANGE) ||
        fabs(change) <= RATCHET_EPOCH_SPREADS * spread)
        return false;
    snprintf(why, why_size, "re-measures %.2f %% %s than its record, the control %+.2f %%",
             fabs(expm1(change)) * 100, change > 0 ? "slower" : "faster", expm1(control) * 100);
    return true;
}

/* A case whose baseline moves. */
struct moving {
    struct baseline *b;
    const char *case_id, *contract;
    const struct ratchet_run *run;
    struct baseline_entry record;
    struct ratchet_end *out;
};

/* The baseline as it was measured again is its record from now on. */
static enum gate_status begin_epoch(struct moving *m, const char *why, struct gate_error *err)
{
    char reason[300];
    struct baseline_entry *record = &m->record;
    snprintf(reason, sizeof reason, "the baseline's own library %s", why);
    const struct baseline_note note = {BASELINE_EPOCH, reason, m->run->author, m->run->time_ms};
    struct baseline_entry fresh = m->run->again;
    fresh.kernel = record->kernel;
    fresh.commit = record->commit;
    fresh.library_sha256 = record->library_sha256;
    fresh.code_sha256 = record->code_sha256;
    fresh.op_sha256 = record->op_sha256;
    fresh.launches = record->launches;
    fresh.dirty = record->dirty;
    fresh.rel_fro = record->rel_fro;
    fresh.outputs = record->outputs;
    fresh.n_outputs = record->n_outputs;
    fresh.vendor = record->vendor;
    fresh.vendor_ratio = record->vendor_ratio;
    TRY(baseline_set(m->b, m->case_id, m->contract, &fresh, &note, err));
    baseline_find(m->b, m->case_id, m->contract, record);
    m->out->changed = m->out->epoch = true;
    utf8_join(m->out->text, sizeof m->out->text, "; ", "a new epoch: %s", reason);
    return GATE_OK;
}

/* ---- lowering ---- */

bool ratchet_counts(struct estimate ratio, double threshold)
{
    return ratio.value > 0 && ratio.hi > 0 &&
           log(ratio.hi) < -log1p(threshold / RATCHET_TREND_PART);
}

/* The candidate as the baseline: its record is the old one's times the ratio of the pair. */
static enum gate_status lower(struct moving *m, enum baseline_action action, struct gate_error *err)
{
    const struct ratchet_run *run = m->run;
    char reason[200];
    double percent = 100 * (1 - run->ratio.value);
    if (action == BASELINE_RATCHET)
        snprintf(reason, sizeof reason, "confirmed to be %.2f %% faster in fresh processes",
                 percent);
    else
        snprintf(reason, sizeof reason, "%d runs in a row found it faster, this one by %.2f %%",
                 RATCHET_TREND_RUNS, percent);
    const struct baseline_note note = {action, reason, run->author, run->time_ms};
    struct baseline_entry e = run->candidate;
    const double p90_over_p50 = e.p90_ns / e.p50_ns;
    e.p50_ns = m->record.p50_ns * run->ratio.value;
    e.p50_lo_ns = m->record.p50_ns * run->ratio.lo;
    e.p50_hi_ns = m->record.p50_ns * run->ratio.hi;
    e.p90_ns = e.p50_ns * p90_over_p50;
    e.control_ns = m->record.control_ns;
    TRY(baseline_set(m->b, m->case_id, m->contract, &e, &note, err));
    m->out->changed = m->out->lowered = true;
    utf8_join(m->out->text, sizeof m->out->text, "; ", "taken as the baseline: %s", reason);
    return GATE_OK;
}

/* ---- trends ---- */

/* What several runs say together. */
static enum gate_status follow_trend(struct moving *m, struct gate_error *err)
{
    const struct ratchet_run *run = m->run;
    struct ratchet_end *out = m->out;
    const struct baseline_trend *before = baseline_trend(m->b, m->case_id);
    const struct baseline_evidence *runs = before ? before->runs : NULL;
    size_t n = before ? before->n_runs : 0;
    char why[240];
    bool faster = ratchet_counts(run->ratio, run->threshold);
    bool off = ratchet_is_off(&m->record, &run->again, why, sizeof why);
    double again = off ? run->again.p50_ns / m->record.p50_ns : NAN;
    out->faster = faster;
    out->off = off;
    /* The newest runs in a row that found the candidate faster, and the baseline off to the same
     * side. */
    for (size_t i = n; faster && i-- > 0 && ratchet_counts(runs[i].ratio, run->threshold);)
        out->faster++;
    for (size_t i = n; off && i-- > 0 && runs[i].again > 0 && (runs[i].again > 1) == (again > 1);)
        out->off++;
    if (off)
        utf8_join(out->text, sizeof out->text, "; ",
                  "the baseline's own library %s, run %zu of %d in a row that begins an epoch", why,
                  out->off, RATCHET_TREND_RUNS);
    if (out->off >= RATCHET_TREND_RUNS)
        TRY(begin_epoch(m, why, err));
    if (out->faster >= RATCHET_TREND_RUNS)
        TRY(lower(m, BASELINE_TREND, err));
    if (out->epoch || out->lowered)
        return GATE_OK;
    if (!faster && !off) {
        out->changed |= baseline_trend_end(m->b, m->case_id);
        return GATE_OK;
    }
    const struct baseline_evidence evidence = {.time_ms = run->again.time_ms,
                                               .run_uuid = run->again.run_uuid,
                                               .commit = run->candidate.commit,
                                               .ratio = run->ratio,
                                               .again = again};
    out->changed = true;
    if (out->faster)
        utf8_join(out->text, sizeof out->text, "; ",
                  "run %zu of %d in a row that makes it the baseline", out->faster,
                  RATCHET_TREND_RUNS);
    return baseline_trend_add(m->b, m->case_id, &evidence, err);
}

enum gate_status ratchet_move(struct baseline *b, const char *case_id, const char *contract,
                              const struct ratchet_run *run, struct ratchet_end *out,
                              struct gate_error *err)
{
    struct moving m = {.b = b, .case_id = case_id, .contract = contract, .run = run, .out = out};
    char why[240];
    *out = (struct ratchet_end){.changed = false};
    if (!baseline_find(b, case_id, contract, &m.record))
        return gate_fail(err, GATE_INTERNAL, "'%s' has no baseline that could move", case_id);
    /* Another driver, runtime or power limit. */
    const char *epoch = run->again.epoch;
    if (run->again.p50_ns > 0 && run->again.control_ns > 0 && strcmp(m.record.epoch, epoch) != 0) {
        snprintf(why, sizeof why, "is measured anew: the epoch was %.80s and is %.80s",
                 m.record.epoch[0] ? m.record.epoch : "not known", epoch);
        TRY(begin_epoch(&m, why, err));
    }
    if (run->confirmed)
        return lower(&m, BASELINE_RATCHET, err);
    return run->judged && !out->epoch ? follow_trend(&m, err) : GATE_OK;
}
