/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_record.c: see baseline_record.h; and what of a run becomes one, see baseline.h. */
#include "gate/baseline/baseline_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/decide_bounds.h"
#include "gate/decide/stats.h"

bool baseline_control(struct baseline_entry *entry, const double *p50_ns, const double *control_ns,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(p50_ns[i] > 0 && control_ns[i] > 0))
            return false;
    }
    double *x = n ? calloc(n, sizeof(*x)) : NULL;
    if (!x)
        return false;
    for (size_t i = 0; i < n; i++)
        x[i] = log(p50_ns[i] / control_ns[i]);
    entry->spread = stats_deviation(x, n);
    memcpy(x, control_ns, n * sizeof(*x));
    entry->control_ns = stats_middle(x, n);
    free(x);
    return true;
}

void baseline_allow_for(struct baseline_entry *entry, const double *half_width, size_t n)
{
    entry->spread = fmax(entry->spread, decide_bounds(half_width, n).value);
}

/* NAN: not known. */
static void add_output(struct baseline_error *e, const char *name, double rel_fro)
{
    if (isnan(rel_fro) || e->n_outputs == BASELINE_OUTPUTS_MAX)
        return;
    struct baseline_output *to = &e->outputs[e->n_outputs++];
    snprintf(to->name, sizeof to->name, "%s", name);
    to->rel_fro = rel_fro;
}

struct baseline_error baseline_error_of_document(const struct document_verify *v)
{
    struct baseline_error e = {
        .known = !isnan(v->rel_fro),
        .rel_fro = isnan(v->rel_fro) ? 0 : v->rel_fro,
        .vendor_ratio = isnan(v->vendor_ratio) ? 0 : v->vendor_ratio,
    };
    snprintf(e.vendor, sizeof e.vendor, "%s", v->vendor ? v->vendor : "");
    add_output(&e, "dx", v->has_outputs ? v->outputs.dx : NAN);
    add_output(&e, "dw", v->has_outputs ? v->outputs.dw : NAN);
    add_output(&e, "db", v->has_outputs ? v->outputs.db : NAN);
    return e;
}

static double zero_if_unknown(double value)
{
    return isnan(value) ? 0 : value;
}

static double unknown_if_zero(double value)
{
    return value > 0 ? value : NAN;
}

struct baseline_entry record_read(const struct file_entry *e)
{
    const struct document_verify verify = {.rel_fro = e->rel_fro,
                                           .has_outputs = e->has_outputs,
                                           .outputs = e->outputs,
                                           .vendor = e->vendor,
                                           .vendor_ratio = e->vendor_ratio};
    return (struct baseline_entry){
        .p50_ns = e->p50_ns,
        .p50_lo_ns = e->p50_lo_ns,
        .p50_hi_ns = e->p50_hi_ns,
        .p90_ns = e->p90_ns,
        .control_ns = e->control_ns,
        .spread = e->spread,
        .time_ms = e->time_ms,
        .kernel = e->kernel,
        .commit = e->commit,
        .run_uuid = e->run_uuid,
        .library_sha256 = e->library_sha256,
        .code_sha256 = e->code_sha256 ? e->code_sha256 : "",
        .dirty = e->dirty == YES,
        .epoch = e->epoch,
        .error = baseline_error_of_document(&verify),
        .suites = e->suites,
        .n_suites = e->n_suites,
    };
}

static void write_error(const struct baseline_error *error, struct file_entry *to)
{
    if (!error->known)
        return;
    to->rel_fro = error->rel_fro;
    to->has_outputs = error->n_outputs > 0;
    for (unsigned i = 0; i < error->n_outputs; i++) {
        const struct baseline_output *o = &error->outputs[i];
        *(!strcmp(o->name, "dx")   ? &to->outputs.dx
          : !strcmp(o->name, "dw") ? &to->outputs.dw
                                   : &to->outputs.db) = o->rel_fro;
    }
    if (error->vendor[0] && error->vendor_ratio > 0) {
        to->vendor = error->vendor;
        to->vendor_ratio = error->vendor_ratio;
    }
}

/* A file that people review has no digits that no clock knows. */
static double round_ns(double ns)
{
    return ns < 1 ? ns : round(ns * 100) / 100;
}

struct file_entry record_write(const struct baseline_entry *e)
{
    struct file_entry to;
    fields_clear(&baseline_entry_shape, &to);
    to.p50_ns = round_ns(e->p50_ns);
    to.p50_lo_ns = round_ns(e->p50_lo_ns);
    to.p50_hi_ns = round_ns(e->p50_hi_ns);
    to.p90_ns = round_ns(e->p90_ns);
    to.control_ns = round_ns(e->control_ns);
    to.spread = round(e->spread * 1e6) / 1e6;
    to.kernel = e->kernel;
    to.commit = e->commit;
    to.run_uuid = e->run_uuid;
    to.time_ms = e->time_ms;
    to.epoch = e->epoch;
    to.library_sha256 = e->library_sha256;
    to.code_sha256 = e->code_sha256 && e->code_sha256[0] ? e->code_sha256 : NULL;
    to.dirty = e->dirty ? YES : UNKNOWN;
    to.suites = (const char **)(uintptr_t)e->suites;
    to.n_suites = e->n_suites;
    write_error(&e->error, &to);
    return to;
}

struct file_change record_write_change(const struct baseline_change *c)
{
    return (struct file_change){.time_ms = c->time_ms,
                                .case_id = c->case_id,
                                .action = (int)c->action,
                                .from_ns = unknown_if_zero(round_ns(c->from_ns)),
                                .to_ns = unknown_if_zero(round_ns(c->to_ns)),
                                .reason = c->reason,
                                .author = c->author,
                                .commit = c->commit,
                                .run_uuid = c->run_uuid};
}

struct baseline_change record_read_change(const struct file_change *c)
{
    return (struct baseline_change){.time_ms = c->time_ms,
                                    .case_id = c->case_id,
                                    .action = (enum baseline_action)c->action,
                                    .from_ns = zero_if_unknown(c->from_ns),
                                    .to_ns = zero_if_unknown(c->to_ns),
                                    .reason = c->reason,
                                    .author = c->author,
                                    .commit = c->commit,
                                    .run_uuid = c->run_uuid};
}
