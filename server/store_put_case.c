/*
 * store_put_case.c: one case of a run: its track, whose newest result it may be; see store_put.h.
 */
#include "store_put.h"

#include <string.h>

bool is_timed(const cJSON *arm)
{
    return cJSON_IsObject(json_member(arm, "timing")) &&
           json_bool(json_member(arm, "verify"), "ok", false);
}

bool has_role(const cJSON *arm, const char *role)
{
    return strcmp(json_string(arm, "role", ""), role) == 0;
}

const cJSON *timed_arm(const cJSON *item, const char *role)
{
    const cJSON *arm = NULL;
    cJSON_ArrayForEach (arm, json_member(item, "arms")) {
        if (has_role(arm, role) && is_timed(arm))
            return arm;
    }
    return NULL;
}

static const cJSON *candidate_arm(const cJSON *item)
{
    bool wrong = strcmp(json_string(item, "verdict", "wrong"), "wrong") == 0;
    return wrong ? NULL : timed_arm(item, "candidate");
}

const cJSON *candidate_timing(const cJSON *item)
{
    return json_member(candidate_arm(item), "timing");
}

double best_p50_ns(const cJSON *item)
{
    const cJSON *arm = timed_arm(item, "best");
    if (arm)
        return json_number(json_member(arm, "timing"), "p50_ns", 0.0);
    return json_number(json_member(item, "best"), "p50_ns", 0.0);
}

/*
 * Candidate over this provider: from pairs of samples where there are any, since those drift
 * together. 0: the provider has no timing.
 */
static double ratio_to(const cJSON *arm, double candidate_p50_ns)
{
    const cJSON *timing = json_member(arm, "timing");
    double paired = json_number(json_member(timing, "ratio_to_candidate"), "value", 0.0);
    if (paired > 0.0)
        return paired;
    double p50_ns = json_number(timing, "p50_ns", 0.0);
    return p50_ns > 0.0 ? candidate_p50_ns / p50_ns : 0.0;
}

/* The provider that is hardest to beat. */
static const char *fastest_peer(const cJSON *item, double candidate_p50_ns, double *ratio)
{
    const char *peer = "";
    const cJSON *arm = NULL;
    *ratio = 0.0;
    cJSON_ArrayForEach (arm, json_member(item, "arms")) {
        if (!has_role(arm, "provider") || !is_timed(arm))
            continue;
        double r = ratio_to(arm, candidate_p50_ns);
        if (r > *ratio) {
            *ratio = r;
            peer = json_string(arm, "provider", "");
        }
    }
    return peer;
}

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
    f->track->newest = f->put->time_ms > time_ms ||
                       (f->put->time_ms == time_ms && f->put->run_id > column_int(q, 3));
    if (sqlite3_column_type(q->stmt, 4) != SQLITE_NULL)
        f->track->point_ms = column_int(q, 4);
    return true;
}

static enum gate_status make_case(const struct put *p, const cJSON *item, int64_t *id)
{
    struct query q = query_begin(p->store, SQL_PUT_CASE);
    bind_text(&q, json_string(item, "id", ""));
    bind_text(&q, json_string(item, "op", ""));
    bind_text(&q, json_string(item, "dtype", ""));
    return store_finish_new(p->store, &q, id, p->err);
}

static enum gate_status make_track(const struct put *p, int64_t case_id, int64_t *id)
{
    struct query q = query_begin(p->store, SQL_PUT_TRACK);
    bind_int(&q, case_id);
    bind_int(&q, p->device_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    return store_finish_new(p->store, &q, id, p->err);
}

enum gate_status put_case_track(const struct put *p, const cJSON *item, struct put_track *track)
{
    struct found_track found = {p, track, 0};
    *track = (struct put_track){.newest = true, .point_ms = -1};
    struct query q = query_begin(p->store, SQL_FIND_TRACK);
    bind_text(&q, json_string(item, "id", ""));
    bind_int(&q, p->device_id);
    enum gate_status status = store_each_row(p->store, &q, track_row, &found, p->err);
    if (status == GATE_OK && found.case_id == 0)
        status = make_case(p, item, &found.case_id);
    if (status == GATE_OK && track->id == 0)
        status = make_track(p, found.case_id, &track->id);
    return status;
}

static enum gate_status put_newest(const struct put *p, const cJSON *item,
                                   const struct put_track *track, int64_t series_id)
{
    const cJSON *arm = candidate_arm(item);
    const cJSON *timing = json_member(arm, "timing");
    const cJSON *ratio = json_member(item, "ratio");
    double p50_ns = json_number(timing, "p50_ns", 0.0);
    double peer_ratio = 0.0;
    const char *peer = timing ? fastest_peer(item, p50_ns, &peer_ratio) : "";
    double threshold = json_number(json_member(p->document, "policy"), "threshold", 0.0);

    struct query q = query_begin(p->store, SQL_NEWEST_OF_TRACK);
    bind_int(&q, track->id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, store_verdict_code(json_string(item, "verdict", "")));
    bind_text(&q, json_string(item, "reason", ""));
    bind_id_or_null(&q, series_id);
    bind_positive_or_null(&q, json_number(item, "threshold", threshold));
    bind_positive_or_null(&q, p50_ns);
    bind_positive_or_null(&q, json_number(timing, "p50_lo_ns", 0.0));
    bind_positive_or_null(&q, json_number(timing, "p50_hi_ns", 0.0));
    bind_positive_or_null(&q, json_number(timing, "tflops", 0.0));
    bind_positive_or_null(&q, json_number(timing, "gbps", 0.0));
    bind_positive_or_null(&q, json_number(timing, "ceiling", 0.0));
    bind_positive_or_null(&q, best_p50_ns(item));
    bind_positive_or_null(&q, json_number(ratio, "value", 0.0));
    bind_positive_or_null(&q, json_number(ratio, "lo", 0.0));
    bind_positive_or_null(&q, json_number(ratio, "hi", 0.0));
    bind_positive_or_null(&q, json_number(item, "mde", 0.0));
    bind_text(&q, peer);
    bind_positive_or_null(&q, peer_ratio);
    bind_positive_or_null(&q, track->control_ns);
    bind_number_or_null(&q, json_member(json_member(arm, "verify"), "rel_fro"));
    if (track->moves_point) {
        bind_int(&q, p->time_ms);
        bind_text(&q, p->contract);
    }
    return store_finish(p->store, &q, p->err);
}

/* A run that is older than the newest of the track, which may have no points. */
static enum gate_status put_late(const struct put *p, const struct put_track *track)
{
    struct query q = query_begin(p->store, SQL_COUNT_TRACK);
    bind_int(&q, track->id);
    enum gate_status status = store_finish(p->store, &q, p->err);
    if (status != GATE_OK || !track->moves_point)
        return status;
    q = query_begin(p->store, SQL_POINTS_OF_TRACK);
    bind_int(&q, track->id);
    bind_int(&q, p->time_ms);
    bind_text(&q, p->contract);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status put_result(const struct put *p, const cJSON *item, int64_t track_id,
                                   int64_t series_id, int arm)
{
    struct query q = query_begin(p->store, SQL_PUT_RESULT);
    bind_int(&q, p->run_id);
    bind_int(&q, track_id);
    bind_int(&q, store_verdict_code(json_string(item, "verdict", "")));
    bind_id_or_null(&q, series_id);
    if (series_id != 0)
        bind_int(&q, arm);
    return store_finish(p->store, &q, p->err);
}

/* No point tells of a wrong result. */
static enum gate_status put_wrong(const struct put *p, const cJSON *item, int64_t track_id)
{
    if (strcmp(json_string(item, "verdict", ""), "wrong") != 0)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_WRONG);
    bind_int(&q, track_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_text(&q, json_string(item, "reason", ""));
    return store_finish(p->store, &q, p->err);
}

enum gate_status put_case(const struct put *p, const cJSON *item, struct put_track *track)
{
    int64_t series_id = 0;
    int arm = 0;
    track->control_ns = control_ns(item);
    enum gate_status status = put_points(p, item, track, &series_id, &arm);
    /* Before what follows, because it is this one that tells a case that comes twice. */
    if (status == GATE_OK)
        status = put_result(p, item, track->id, series_id, arm);
    if (status == GATE_OK)
        status = put_wrong(p, item, track->id);
    if (status != GATE_OK)
        return status;
    return track->newest ? put_newest(p, item, track, series_id) : put_late(p, track);
}
