/* SPDX-License-Identifier: Apache-2.0 */
/* store_put_point.c: the timings of a case; see store_put.h. */
#include "gate/store/store_put.h"

#include <math.h>
#include <string.h>

static enum gate_status find_or_make_kernel(const struct put *p, const char *name, int64_t *id)
{
    struct query q = query_begin(p->store, SQL_FIND_KERNEL);
    bind_text(&q, name);
    enum gate_status status = store_find_id(p->store, &q, id, p->err);
    if (status != GATE_OK || *id != 0)
        return status;
    q = query_begin(p->store, SQL_PUT_KERNEL);
    bind_text(&q, name);
    return store_finish_new(p->store, &q, id, p->err);
}

/* Mostly it is that of the same arm of the case before. */
static enum gate_status find_kernel(const struct put *p, const char *name, size_t index,
                                    int64_t *id)
{
    struct put_kernel *last = &p->kernels[index % PUT_N_KERNELS];
    enum gate_status status = GATE_OK;
    if (!last->name || strcmp(last->name, name) != 0) {
        status = find_or_make_kernel(p, name, id);
        if (status == GATE_OK)
            *last = (struct put_kernel){name, *id};
    }
    *id = last->id;
    return status;
}

/* A series, and the p50 of its leader on the run's branch; 0: it has none. */
struct put_series {
    int64_t id;
    int64_t leader_ps;
};

static bool series_row(struct query *q, void *call)
{
    *(struct put_series *)call = (struct put_series){column_int(q, 0), column_int(q, 1)};
    return true;
}

static enum gate_status find_series(const struct put *p, const struct document_arm *arm,
                                    int64_t track_id, struct put_series *series)
{
    *series = (struct put_series){0};
    struct query q = query_begin(p->store, SQL_FIND_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, arm->provider);
    bind_text(&q, p->document->contract);
    bind_text(&q, p->document->git.branch);
    enum gate_status status = store_each_row(p->store, &q, series_row, series, p->err);
    if (status != GATE_OK || series->id != 0)
        return status;
    q = query_begin(p->store, SQL_PUT_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, arm->provider);
    bind_text(&q, p->document->contract);
    bind_real(&q, arm->timing.tflops * arm->timing.p50_ns * 1e3);
    bind_real(&q, arm->timing.gbps * arm->timing.p50_ns);
    return store_finish_new(p->store, &q, &series->id, p->err);
}

/*
 * Whole picoseconds. What is below one, or too long for a 64-bit integer, is a 0, which the
 * tables refuse.
 */
static int64_t picoseconds(double ns)
{
    return ns > 0.0 && ns < 9e15 ? (int64_t)llround(ns * 1e3) : 0;
}

static void bind_known_picoseconds(struct query *q, double ns)
{
    if (isnan(ns) || ns == 0.0)
        bind_null(q);
    else
        bind_int(q, picoseconds(ns));
}

/* What is too long for the integers that a double holds is told as the longest of them. */
static void bind_known_millionths(struct query *q, double value)
{
    if (isnan(value))
        bind_null(q);
    else
        bind_int(q, llround(fmin(value * 1e6, 9e15)));
}

static void bind_known_count(struct query *q, int64_t count)
{
    if (count < 0)
        bind_null(q);
    else
        bind_int(q, count);
}

static enum gate_status put_row(const struct put *p, const struct document_case *c,
                                const struct put_figures *figures, const struct document_arm *arm,
                                int64_t series_id, int64_t kernel_id)
{
    const struct document_timing *t = &arm->timing;
    const bool is_candidate = arm->role == ROLE_CANDIDATE;
    const bool has_baseline = is_candidate && c->has_baseline;
    const bool has_ratio = is_candidate && c->mode == MODE_PAIRED && c->has_ratio;
    struct query q = query_begin(p->store, SQL_PUT_POINT);
    bind_int(&q, series_id);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, arm - c->arms);
    bind_int(&q, is_candidate ? 0 : 1);
    bind_int(&q, c->verdict);
    bind_int(&q, kernel_id);
    bind_int(&q, picoseconds(t->p50_ns));
    bind_int(&q, picoseconds(t->p50_lo_ns));
    bind_int(&q, picoseconds(t->p50_hi_ns));
    bind_known_picoseconds(&q, t->p10_ns);
    bind_int(&q, picoseconds(t->p90_ns));
    bind_known_picoseconds(&q, figures->control_ns);
    bind_known_picoseconds(&q, is_candidate ? figures->baseline_p50_ns : NAN);
    bind_id_or_null(&q, t->sm_clock_mhz < 1e9 ? llround(t->sm_clock_mhz * 1e3) : 0);
    bind_known_count(&q, t->registers);
    bind_known_count(&q, t->shared_bytes);
    bind_known_count(&q, t->spill_bytes);
    bind_real(&q, arm->verify.rel_fro);
    bind_known_millionths(&q, arm->verify.vendor_ratio);
    bind_real(&q, has_ratio ? c->ratio.value : NAN);
    bind_id_or_null(&q, has_baseline ? c->baseline.time_ms : 0);
    bind_text(&q, has_baseline ? c->baseline.commit : "");
    return store_finish(p->store, &q, p->err);
}

/* Mostly the leader of the branch is faster, and stays. */
static enum gate_status put_leader(const struct put *p, const struct document_arm *arm,
                                   size_t index, const struct put_series *series)
{
    int64_t p50_ps = picoseconds(arm->timing.p50_ns);
    if (series->leader_ps > 0 && series->leader_ps < p50_ps)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_LEADER);
    bind_int(&q, series->id);
    bind_int(&q, p50_ps);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, (int64_t)index);
    bind_text(&q, p->document->git.branch);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status put_point(const struct put *p, const struct document_case *c,
                                  const struct put_figures *figures, size_t index, int64_t track_id,
                                  int64_t *series_id)
{
    const struct document_arm *arm = &c->arms[index];
    int64_t kernel_id = 0;
    struct put_series series;
    enum gate_status status = find_series(p, arm, track_id, &series);
    if (status == GATE_OK)
        status = find_kernel(p, arm->kernel, index, &kernel_id);
    if (status == GATE_OK)
        status = put_row(p, c, figures, arm, series.id, kernel_id);
    *series_id = series.id;
    return status == GATE_OK ? put_leader(p, arm, index, &series) : status;
}

enum gate_status put_points(const struct put *p, const struct document_case *c,
                            const struct put_figures *figures, struct put_track *track,
                            int64_t *series_id)
{
    for (size_t i = 0; i < c->n_arms; i++) {
        int64_t id = 0;
        if (!put_counts(c, &c->arms[i]))
            continue;
        enum gate_status status = put_point(p, c, figures, i, track->id, &id);
        if (status != GATE_OK)
            return status;
        if (&c->arms[i] == figures->candidate)
            *series_id = id;
        track->moves_point = p->document->time_ms >= track->point_ms;
    }
    return GATE_OK;
}
