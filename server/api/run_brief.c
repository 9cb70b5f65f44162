/* SPDX-License-Identifier: Apache-2.0 */
/* run_brief.c: see run_brief.h. */
#include "server/api/run_brief.h"

#include <math.h>
#include <stdlib.h>

#include "gate/store/store_figures.h"

#define DIGITS 7 /* of a number, more than a row shows */

struct brief_case {
    const struct document_case *of;
    struct store_figures figures;
};

/* null where it is not known */
static void put_rounded(struct emit *e, double value, bool known)
{
    if (!known || !isfinite(value)) {
        emit_null(e);
        return;
    }
    double unit = value != 0 ? pow(10, DIGITS - 1 - floor(log10(fabs(value)))) : 1;
    bool rounds = isfinite(unit) && isfinite(value * unit);
    emit_real(e, rounds ? round(value * unit) / unit : value);
}

static void write_id(struct emit *e, const struct brief_case *c)
{
    emit_string(e, c->of->id);
}

static void write_verdict(struct emit *e, const struct brief_case *c)
{
    emit_string(e, verdict_name((enum verdict)c->of->verdict));
}

/* A case that passed has no more to say than its numbers. */
static void write_reason(struct emit *e, const struct brief_case *c)
{
    if (c->of->verdict == VERDICT_PASS)
        emit_null(e);
    else
        emit_string(e, c->of->reason);
}

static void write_p50(struct emit *e, const struct brief_case *c)
{
    const struct document_arm *arm = c->figures.candidate;
    put_rounded(e, arm ? arm->timing.p50_ns : 0, arm != NULL);
}

static void write_baseline(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->figures.baseline_p50_ns, true);
}

static void write_ratio(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->of->ratio.value, c->of->has_ratio);
}

static void write_lo(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->of->ratio.lo, c->of->has_ratio);
}

static void write_hi(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->of->ratio.hi, c->of->has_ratio);
}

static void write_mde(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->of->mde, c->of->mde >= 0);
}

static void write_threshold(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->of->threshold, c->of->threshold > 0);
}

static void write_peer(struct emit *e, const struct brief_case *c)
{
    if (c->figures.peer_ratio > 0)
        emit_string(e, c->figures.peer);
    else
        emit_null(e);
}

static void write_peer_ratio(struct emit *e, const struct brief_case *c)
{
    put_rounded(e, c->figures.peer_ratio, c->figures.peer_ratio > 0);
}

static void write_ceiling(struct emit *e, const struct brief_case *c)
{
    const struct document_arm *arm = c->figures.candidate;
    put_rounded(e, arm ? arm->timing.ceiling : 0, arm && arm->timing.ceiling > 0);
}

static void write_measured_ceiling(struct emit *e, const struct brief_case *c)
{
    const struct document_arm *arm = c->figures.candidate;
    double share = arm ? arm->timing.measured_ceiling : 0;
    put_rounded(e, share, share > 0);
}

/* Of a second comparison that decides nothing, or null. */
static void write_warning(struct emit *e, const struct brief_case *c)
{
    if (c->of->has_warning)
        emit_string(e, verdict_name((enum verdict)c->of->warning.verdict));
    else
        emit_null(e);
}

/* For each process that compared anything its log_ratio, and 1 for a swapped one plus 2 for one of
 * the confirmation. */
static void write_processes(struct emit *e, const struct brief_case *c)
{
    emit_open(e, '[');
    for (size_t i = 0; i < c->of->n_processes; i++) {
        const struct document_process *p = &c->of->processes[i];
        if (!isfinite(p->log_ratio))
            continue;
        put_rounded(e, round(p->log_ratio * 1e5) / 1e5, true);
        emit_integer(e, (p->swapped ? 1 : 0) + (p->stage == STAGE_CONFIRMATION ? 2 : 0));
    }
    emit_close(e, ']');
}

static const struct {
    const char *name;
    void (*put)(struct emit *e, const struct brief_case *c);
} columns[] = {
    {"id", write_id},
    {"verdict", write_verdict},
    {"reason", write_reason},
    {"p50_ns", write_p50},
    {"baseline_p50_ns", write_baseline},
    {"ratio", write_ratio},
    {"ratio_lo", write_lo},
    {"ratio_hi", write_hi},
    {"mde", write_mde},
    {"threshold", write_threshold},
    {"peer", write_peer},
    {"peer_ratio", write_peer_ratio},
    {"ceiling", write_ceiling},
    {"measured_ceiling", write_measured_ceiling},
    {"warning", write_warning},
    {"processes", write_processes},
};

static void put_cases(const struct document *d, struct emit *e)
{
    struct brief_case *cases = calloc(d->n_cases + 1, sizeof *cases);
    if (!cases) {
        e->out->failed = true;
        return;
    }
    for (size_t i = 0; i < d->n_cases; i++) {
        cases[i].of = &d->cases[i];
        store_figures_read(cases[i].of, &cases[i].figures);
    }
    emit_key(e, "cases");
    emit_open(e, '{');
    for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
        emit_key(e, columns[k].name);
        emit_open(e, '[');
        for (size_t i = 0; i < d->n_cases; i++)
            columns[k].put(e, &cases[i]);
        emit_close(e, ']');
    }
    emit_close(e, '}');
    free(cases);
}

/* All but the cases, and what each process of the calibration measured. */
static void put_rest(const struct document *d, struct emit *e)
{
    struct document rest = *d;
    rest.n_cases = 0;
    for (size_t i = 0; i < d->calibration.n_cases; i++)
        for (size_t k = 0; k < d->calibration.cases[i].n_injected; k++)
            d->calibration.cases[i].injected[k].n_log_ratio = 0;
    buf_puts(e->out, ",\"run\":");
    document_write(&rest, e->out);
}

void run_brief_write(struct document *d, struct emit *e)
{
    emit_open(e, '{');
    put_cases(d, e);
    put_rest(d, e);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
}
