/*
 * store_put_point.c: the timings of a case; see store_put.h.
 *
 * A timing enters `point`, and so trends and the leaderboard, only if its arm passed verification
 * in this run, and a candidate's only if its case is not wrong. The best that is measured beside
 * the candidate is neither candidate nor provider: it is the line that both are held against.
 */
#include "store_put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROCESSES 64

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double control_ns(const cJSON *item)
{
    double values[MAX_PROCESSES];
    size_t n = 0;
    const cJSON *process = NULL;
    cJSON_ArrayForEach (process, json_member(item, "processes")) {
        double value = json_number(process, "control_ns", 0.0);
        if (value > 0.0 && n < MAX_PROCESSES)
            values[n++] = value;
    }
    if (n == 0)
        return 0.0;
    qsort(values, n, sizeof(values[0]), compare_numbers);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

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

/* A series, and the p50 of its leader; 0: it has none. */
struct put_series {
    int64_t id;
    int64_t leader_ps;
};

static bool series_row(struct query *q, void *call)
{
    *(struct put_series *)call = (struct put_series){column_int(q, 0), column_int(q, 1)};
    return true;
}

static enum gate_status find_series(const struct put *p, const cJSON *arm, int64_t track_id,
                                    struct put_series *series)
{
    const char *provider = json_string(arm, "provider", "");
    *series = (struct put_series){0};
    struct query q = query_begin(p->store, SQL_FIND_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, provider);
    bind_text(&q, p->contract);
    enum gate_status status = store_each_row(p->store, &q, series_row, series, p->err);
    if (status != GATE_OK || series->id != 0)
        return status;
    const cJSON *timing = json_member(arm, "timing");
    double p50_ns = json_number(timing, "p50_ns", 0.0);
    q = query_begin(p->store, SQL_PUT_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, provider);
    bind_text(&q, p->contract);
    bind_real(&q, json_number(timing, "tflops", 0.0) * p50_ns * 1e3);
    bind_real(&q, json_number(timing, "gbps", 0.0) * p50_ns);
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

static enum gate_status put_row(const struct put *p, const cJSON *item, double case_control_ns,
                                const cJSON *arm, int index, int64_t series_id, int64_t kernel_id)
{
    const cJSON *timing = json_member(arm, "timing");
    bool candidate = has_role(arm, "candidate");
    double clock_mhz = json_number(timing, "sm_clock_mhz", 0.0);
    struct query q = query_begin(p->store, SQL_PUT_POINT);
    bind_int(&q, series_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, index);
    bind_int(&q, candidate ? 0 : 1);
    bind_int(&q, store_verdict_code(json_string(item, "verdict", "")));
    bind_int(&q, kernel_id);
    bind_int(&q, picoseconds(json_number(timing, "p50_ns", 0.0)));
    bind_int(&q, picoseconds(json_number(timing, "p50_lo_ns", 0.0)));
    bind_int(&q, picoseconds(json_number(timing, "p50_hi_ns", 0.0)));
    bind_known_picoseconds(&q, json_number(timing, "p10_ns", 0.0));
    bind_int(&q, picoseconds(json_number(timing, "p90_ns", 0.0)));
    bind_known_picoseconds(&q, case_control_ns);
    bind_known_picoseconds(&q, candidate ? best_p50_ns(item) : 0.0);
    bind_id_or_null(&q, clock_mhz > 0.0 && clock_mhz < 1e9 ? llround(clock_mhz * 1e3) : 0);
    bind_count_or_null(&q, json_member(timing, "registers"));
    bind_count_or_null(&q, json_member(timing, "shared_bytes"));
    bind_count_or_null(&q, json_member(timing, "spill_bytes"));
    bind_number_or_null(&q, json_member(json_member(arm, "verify"), "rel_fro"));
    return store_finish(p->store, &q, p->err);
}

/* Mostly the leader is faster, and stays. */
static enum gate_status put_leader(const struct put *p, const cJSON *arm, int index,
                                   const struct put_series *series)
{
    int64_t p50_ps = picoseconds(json_number(json_member(arm, "timing"), "p50_ns", 0.0));
    if (series->leader_ps > 0 && series->leader_ps < p50_ps)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_LEADER);
    bind_int(&q, series->id);
    bind_int(&q, p50_ps);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, index);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status put_point(const struct put *p, const cJSON *item,
                                  const struct put_track *track, const cJSON *arm, int index,
                                  int64_t *series_id)
{
    int64_t kernel_id = 0;
    struct put_series series;
    enum gate_status status = find_series(p, arm, track->id, &series);
    if (status == GATE_OK)
        status = find_kernel(p, json_string(arm, "kernel", ""), index, &kernel_id);
    if (status == GATE_OK)
        status = put_row(p, item, track->control_ns, arm, index, series.id, kernel_id);
    *series_id = series.id;
    return status == GATE_OK ? put_leader(p, arm, index, &series) : status;
}

enum gate_status put_points(const struct put *p, const cJSON *item, struct put_track *track,
                            int64_t *series_id, int *candidate_arm)
{
    bool candidate_counts = candidate_timing(item) != NULL;
    enum gate_status status = GATE_OK;
    const cJSON *arm = NULL;
    int index = 0;
    int n = 0;
    cJSON_ArrayForEach (arm, json_member(item, "arms")) {
        bool candidate = has_role(arm, "candidate") && candidate_counts;
        if ((candidate || has_role(arm, "provider")) && is_timed(arm)) {
            int64_t id = 0;
            status = put_point(p, item, track, arm, index, &id);
            if (status != GATE_OK)
                return status;
            if (candidate && *series_id == 0) {
                *series_id = id;
                *candidate_arm = index;
            }
            n++;
        }
        index++;
    }
    track->moves_point = n > 0 && p->time_ms >= track->point_ms;
    return status;
}
