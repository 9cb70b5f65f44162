/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_case.c: one case of a run: its track, whose newest result it may be; see store_put.h.
 */
#include "gate/store/store_put.h"

#include <math.h>

struct found_track {
    const struct put *put;
    struct put_track *track;
    int64_t case_id;
};

static bool track_row(struct query *q, void *call)
{
    struct found_track *f = call;
    int64_t time_ms = column_int(q, 2);
    f->case_id = column_int(q, 0);
    f->track->id = column_int(q, 1);
    if (f->track->id == 0)
        return true;
    f->track->newest = f->put->document->time_ms > time_ms ||
                       (f->put->document->time_ms == time_ms && f->put->run_id > column_int(q, 3));
    if (sqlite3_column_type(q->stmt, 4) != SQLITE_NULL)
        f->track->point_ms = column_int(q, 4);
    return true;
}

static enum gate_status make_case(const struct put *p, const struct document_case *c, int64_t *id)
{
    struct query q = query_begin(p->store, SQL_PUT_CASE);
    bind_text(&q, c->id);
    bind_text(&q, c->op);
    bind_text(&q, c->dtype);
    return store_finish_new(p->store, &q, id, p->err);
}

static enum gate_status make_track(const struct put *p, int64_t case_id, int64_t *id)
{
    struct query q = query_begin(p->store, SQL_PUT_TRACK);
    bind_int(&q, case_id);
    bind_int(&q, p->device_id);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_text(&q, p->document->git.branch);
    return store_finish_new(p->store, &q, id, p->err);
}

enum gate_status put_case_track(const struct put *p, const struct document_case *c,
                                struct put_track *track)
{
    struct found_track found = {p, track, 0};
    *track = (struct put_track){.newest = true, .point_ms = -1};
    struct query q = query_begin(p->store, SQL_FIND_TRACK);
    bind_text(&q, c->id);
    bind_int(&q, p->device_id);
    enum gate_status status = store_each_row(p->store, &q, track_row, &found, p->err);
    if (status == GATE_OK && found.case_id == 0)
        status = make_case(p, c, &found.case_id);
    if (status == GATE_OK && track->id == 0)
        status = make_track(p, found.case_id, &track->id);
    return status;
}

/* The newest result of the branch, unless it has a newer one. */
static enum gate_status put_newest_result(const struct put *p, const struct document_case *c,
                                          const struct put_figures *figures,
                                          const struct put_track *track, int64_t series_id)
{
    static const struct document_timing no_timing;
    const struct document_arm *arm = figures->candidate;
    const struct document_timing *timing = arm ? &arm->timing : &no_timing;
    static const struct estimate no_ratio;
    const struct estimate *ratio = c->has_ratio ? &c->ratio : &no_ratio;
    struct query q = query_begin(p->store, SQL_PUT_NEWEST_RESULT);
    bind_int(&q, track->id);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, c->verdict);
    bind_text(&q, c->reason);
    bind_id_or_null(&q, series_id);
    bind_positive_or_null(&q, isnan(c->threshold) ? p->document->policy.threshold : c->threshold);
    bind_positive_or_null(&q, timing->p50_ns);
    bind_positive_or_null(&q, timing->p50_lo_ns);
    bind_positive_or_null(&q, timing->p50_hi_ns);
    bind_positive_or_null(&q, timing->tflops);
    bind_positive_or_null(&q, timing->gbps);
    bind_positive_or_null(&q, timing->ceiling);
    bind_positive_or_null(&q, figures->baseline_p50_ns);
    bind_positive_or_null(&q, ratio->value);
    bind_positive_or_null(&q, ratio->lo);
    bind_positive_or_null(&q, ratio->hi);
    bind_positive_or_null(&q, c->mde);
    bind_text(&q, figures->peer);
    bind_positive_or_null(&q, figures->peer_ratio);
    bind_positive_or_null(&q, figures->control_ns);
    bind_real(&q, arm ? arm->verify.rel_fro : NAN);
    bind_text(&q, p->document->git.branch);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status add_to_track(const struct put *p, const struct put_track *track)
{
    struct query q = query_begin(p->store, SQL_ADD_TO_TRACK);
    bind_int(&q, track->id);
    bind_id_or_null(&q, track->newest ? p->document->time_ms : 0);
    bind_id_or_null(&q, track->newest ? p->run_id : 0);
    bind_text_or_null(&q, track->newest ? p->document->git.branch : NULL);
    if (track->moves_point) {
        bind_int(&q, p->document->time_ms);
        bind_text(&q, p->document->contract);
    }
    return store_finish(p->store, &q, p->err);
}

/* With the threshold that it was judged by. */
static void put_ratio(struct query *q, const struct put *p, const struct document_case *c)
{
    static const struct estimate none;
    const struct estimate *ratio = c->has_ratio ? &c->ratio : &none;
    bind_positive_or_null(q, isnan(c->threshold) ? p->document->policy.threshold : c->threshold);
    bind_positive_or_null(q, ratio->value);
    bind_positive_or_null(q, ratio->lo);
    bind_positive_or_null(q, ratio->hi);
}

static enum gate_status put_result(const struct put *p, const struct document_case *c,
                                   const struct put_figures *figures, int64_t track_id,
                                   int64_t series_id)
{
    bool is_red = c->verdict == VERDICT_REGRESSION || c->verdict == VERDICT_WRONG;
    struct query q = query_begin(p->store, SQL_PUT_RESULT);
    bind_int(&q, p->run_id);
    bind_int(&q, track_id);
    bind_int(&q, c->verdict);
    bind_text_or_null(&q, is_red ? c->reason : NULL);
    put_ratio(&q, p, c);
    bind_id_or_null(&q, series_id);
    if (series_id != 0)
        bind_int(&q, figures->candidate - c->arms);
    return store_finish(p->store, &q, p->err);
}

/* No point tells of a wrong result. */
static enum gate_status put_wrong(const struct put *p, const struct document_case *c,
                                  int64_t track_id)
{
    if (c->verdict != VERDICT_WRONG)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_WRONG);
    bind_int(&q, track_id);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_text(&q, c->reason);
    return store_finish(p->store, &q, p->err);
}

enum gate_status put_case(const struct put *p, const struct document_case *c,
                          struct put_track *track)
{
    int64_t series_id = 0;
    struct put_figures figures;
    put_figures_read(c, &figures);
    enum gate_status status = put_points(p, c, &figures, track, &series_id);
    /* Before what follows, because it is this one that tells a case that comes twice. */
    if (status == GATE_OK)
        status = put_result(p, c, &figures, track->id, series_id);
    if (status == GATE_OK)
        status = put_wrong(p, c, track->id);
    if (status == GATE_OK)
        status = put_newest_result(p, c, &figures, track, series_id);
    return status == GATE_OK ? add_to_track(p, track) : status;
}
