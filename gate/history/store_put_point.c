/* store_put_point.c: the timings of a case; see store_put.h. */
#include "gate/history/store_put.h"

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
static enum gate_status find_kernel(const struct put *p, const char *name, int index, int64_t *id)
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

static enum gate_status find_series(const struct put *p, const struct run_arm *arm,
                                    int64_t track_id, struct put_series *series)
{
    *series = (struct put_series){0};
    struct query q = query_begin(p->store, SQL_FIND_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, arm->provider);
    bind_text(&q, p->contract);
    bind_text(&q, p->branch);
    enum gate_status status = store_each_row(p->store, &q, series_row, series, p->err);
    if (status != GATE_OK || series->id != 0)
        return status;
    q = query_begin(p->store, SQL_PUT_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, arm->provider);
    bind_text(&q, p->contract);
    bind_real(&q, arm->tflops * arm->p50_ns * 1e3);
    bind_real(&q, arm->gbps * arm->p50_ns);
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
    if (ns == 0.0)
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
    if (count == RUN_NO_COUNT)
        bind_null(q);
    else
        bind_int(q, count);
}

static enum gate_status put_row(const struct put *p, const struct run_case *c,
                                const struct run_arm *arm, int64_t series_id, int64_t kernel_id)
{
    double clock_mhz = arm->sm_clock_mhz;
    struct query q = query_begin(p->store, SQL_PUT_POINT);
    bind_int(&q, series_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, arm->index);
    bind_int(&q, arm->is_candidate ? 0 : 1);
    bind_int(&q, c->verdict);
    bind_int(&q, kernel_id);
    bind_int(&q, picoseconds(arm->p50_ns));
    bind_int(&q, picoseconds(arm->p50_lo_ns));
    bind_int(&q, picoseconds(arm->p50_hi_ns));
    bind_known_picoseconds(&q, arm->p10_ns);
    bind_int(&q, picoseconds(arm->p90_ns));
    bind_known_picoseconds(&q, c->control_ns);
    bind_known_picoseconds(&q, arm->is_candidate ? c->baseline_p50_ns : 0.0);
    bind_id_or_null(&q, clock_mhz > 0.0 && clock_mhz < 1e9 ? llround(clock_mhz * 1e3) : 0);
    bind_known_count(&q, arm->registers);
    bind_known_count(&q, arm->shared_bytes);
    bind_known_count(&q, arm->spill_bytes);
    bind_real(&q, arm->rel_fro);
    bind_known_millionths(&q, arm->vendor_ratio);
    bind_positive_or_null(&q, arm->is_candidate && c->is_paired ? c->ratio : 0.0);
    bind_id_or_null(&q, arm->is_candidate && c->baseline.is_there ? c->baseline.stored_ms : 0);
    bind_text(&q, arm->is_candidate && c->baseline.is_there ? c->baseline.commit : "");
    return store_finish(p->store, &q, p->err);
}

/* Mostly the leader of the branch is faster, and stays. */
static enum gate_status put_leader(const struct put *p, const struct run_arm *arm,
                                   const struct put_series *series)
{
    int64_t p50_ps = picoseconds(arm->p50_ns);
    if (series->leader_ps > 0 && series->leader_ps < p50_ps)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_LEADER);
    bind_int(&q, series->id);
    bind_int(&q, p50_ps);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, arm->index);
    bind_text(&q, p->branch);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status put_point(const struct put *p, const struct run_case *c,
                                  const struct run_arm *arm, int64_t track_id, int64_t *series_id)
{
    int64_t kernel_id = 0;
    struct put_series series;
    enum gate_status status = find_series(p, arm, track_id, &series);
    if (status == GATE_OK)
        status = find_kernel(p, arm->kernel, arm->index, &kernel_id);
    if (status == GATE_OK)
        status = put_row(p, c, arm, series.id, kernel_id);
    *series_id = series.id;
    return status == GATE_OK ? put_leader(p, arm, &series) : status;
}

enum gate_status put_points(const struct put *p, const struct run_case *c, struct put_track *track,
                            int64_t *series_id)
{
    for (size_t i = 0; i < c->n_arms; i++) {
        int64_t id = 0;
        enum gate_status status = put_point(p, c, &c->arms[i], track->id, &id);
        if (status != GATE_OK)
            return status;
        if (&c->arms[i] == c->candidate)
            *series_id = id;
    }
    track->moves_point = c->n_arms > 0 && p->time_ms >= track->point_ms;
    return GATE_OK;
}
