/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_machine.c: see store_machine.h.
 *
 * The control kernel never changes, so machines of one model take the same time for it. The level
 * of a model is the median of its machines' levels. Its spread is the robust deviation of these,
 * but not less than what one machine scatters between its own runs, or than 0.1 %.
 */
#include "gate/store/store_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"
#include "gate/store/store_private.h"

#define LEAST_SPREAD 0.001
#define DEVIATION_OF_MEDIAN 1.4826 /* of a normal distribution, over its median deviation */

static double median(double *values, size_t n)
{
    stats_sort(values, n);
    return stats_quantile(values, n, 0.5);
}

/* Robust; the values are lost. */
static double scatter_of(double *values, size_t n, double level)
{
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - level);
    return DEVIATION_OF_MEDIAN * median(values, n);
}

/* ---- one machine ---- */

struct runs_call {
    struct store_machine *machine;
    double level[MACHINE_RUNS], drift[MACHINE_RUNS];
    size_t n_levels, n_drifts;
};

static bool run_row(struct query *q, void *call)
{
    struct runs_call *c = call;
    double control = column_real(q, 0);
    if (control > 0)
        c->level[c->n_levels++] = log(control);
    if (sqlite3_column_type(q->stmt, 1) != SQLITE_NULL)
        c->drift[c->n_drifts++] = column_real(q, 1);
    c->machine->n_cases += column_int(q, 2);
    c->machine->n_no_verdict += column_int(q, 3);
    c->machine->n_environment += column_int(q, 4);
    return true;
}

static enum gate_status read_runs(struct store *s, struct store_machine *m, struct gate_error *err)
{
    struct runs_call call = {.machine = m};
    struct query q = query_begin(
        s, "SELECT control_ns, control_drift, n_cases, n_no_verdict, n_environment "
           "FROM run WHERE machine = ?1 AND device = ?3 ORDER BY time_ms DESC, uuid DESC LIMIT ?2");
    bind_text(&q, m->name);
    bind_int(&q, MACHINE_RUNS);
    bind_text(&q, m->device_model);
    enum gate_status status = store_each_row(s, &q, run_row, &call, err);
    m->control_drift = call.n_drifts > 0 ? median(call.drift, call.n_drifts) : -1;
    m->n_levels = call.n_levels;
    if (call.n_levels == 0)
        return status;
    m->level = median(call.level, call.n_levels);
    m->scatter = scatter_of(call.level, call.n_levels, m->level);
    return status;
}

static bool calibration_row(struct query *q, void *call)
{
    struct store_machine *m = call;
    snprintf(m->calibration_run, sizeof m->calibration_run, "%s", column_text(q, 0));
    m->calibrated_ms = column_int(q, 1);
    m->threshold = column_real(q, 2);
    m->n_calibrated = column_int(q, 3);
    m->n_resolved = column_int(q, 4);
    if (sqlite3_column_type(q->stmt, 5) != SQLITE_NULL)
        m->mde = column_real(q, 5);
    return true;
}

static enum gate_status read_calibration(struct store *s, struct store_machine *m,
                                         struct gate_error *err)
{
    m->mde = -1;
    struct query q = query_begin(
        s, "SELECT r.uuid, r.time_ms, r.threshold, count(*), "
           " sum(json_extract(c.value, '$.resolved')), max(json_extract(c.value, '$.mde')) "
           "FROM (SELECT uuid, time_ms, calibration, json_extract(calibration, '$.threshold') AS "
           "threshold FROM run WHERE machine = ?1 AND device = ?2 "
           " AND calibration IS NOT NULL ORDER BY time_ms DESC, id DESC LIMIT 1) r "
           "CROSS JOIN json_each(r.calibration, '$.cases') c GROUP BY r.uuid");
    bind_text(&q, m->name);
    bind_text(&q, m->device_model);
    return store_each_row(s, &q, calibration_row, m, err);
}

/* ---- the machines of a model ---- */

static bool has_level(const struct store_machine *m, const char *device_model)
{
    return m->n_levels >= MACHINE_LEAST && !strcmp(m->device_model, device_model);
}

static void compare_one(struct store_machine *m, const struct store_machine *list, size_t n)
{
    double level[MACHINES_MAX], scatter[MACHINES_MAX];
    size_t n_levels = 0;
    for (size_t i = 0; i < n && n_levels < MACHINES_MAX; i++) {
        if (!has_level(&list[i], m->device_model))
            continue;
        scatter[n_levels] = list[i].scatter;
        level[n_levels++] = list[i].level;
    }
    if (n_levels < MACHINE_LEAST || !has_level(m, m->device_model))
        return;
    double of_model = median(level, n_levels);
    m->spread = fmax(scatter_of(level, n_levels, of_model), median(scatter, n_levels));
    m->spread = fmax(m->spread, LEAST_SPREAD);
    m->off = expm1(m->level - of_model);
    m->is_off = fabs(m->level - of_model) > MACHINE_FAR * m->spread;
}

void machines_compare(struct store_machine *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        compare_one(&list[i], list, n);
}

/* ---- all of them ---- */

struct list_call {
    struct store_machines *out;
    bool no_memory;
};

static bool machine_row(struct query *q, void *call)
{
    struct list_call *c = call;
    struct store_machine *m = &c->out->list[c->out->n++];
    *m = (struct store_machine){
        .name = strdup(column_text(q, 2)),
        .host = strdup(column_text(q, 3)),
        .gpu = strdup(column_text(q, 4)),
        .n_runs = column_int(q, 5),
        .time_ms = column_int(q, 6),
    };
    snprintf(m->device_model, sizeof m->device_model, "%s", column_text(q, 1));
    c->no_memory = !m->name || !m->host || !m->gpu;
    return !c->no_memory;
}

enum gate_status store_machines(struct store *s, const char *device_model,
                                struct store_machines *out, struct gate_error *err)
{
    struct list_call call = {.out = out};
    *out = (struct store_machines){.list = calloc(MACHINES_MAX, sizeof *out->list)};
    if (!out->list)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    struct query q = query_begin(
        s, "SELECT 0, n.device, n.machine, r.host, r.gpu, n.n_runs, r.time_ms "
           "FROM (SELECT device, machine, count(*) AS n_runs FROM run WHERE machine <> '' "
           " AND (?1 IS NULL OR device = ?1) GROUP BY machine, device) n "
           "CROSS JOIN run r ON r.id = (SELECT o.id FROM run o WHERE o.machine = n.machine "
           " AND o.device = n.device ORDER BY o.time_ms DESC, o.uuid DESC LIMIT 1) "
           "ORDER BY r.time_ms DESC, r.id DESC LIMIT ?2");
    bind_text_or_null(&q, device_model);
    bind_int(&q, MACHINES_MAX);
    enum gate_status status = store_each_row(s, &q, machine_row, &call, err);
    if (!status && call.no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < out->n && !status; i++) {
        status = read_runs(s, &out->list[i], err);
        if (!status)
            status = read_calibration(s, &out->list[i], err);
    }
    if (!status)
        machines_compare(out->list, out->n);
    return status;
}

void store_machines_release(struct store_machines *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->list[i].name);
        free(m->list[i].host);
        free(m->list[i].gpu);
    }
    free(m->list);
    *m = (struct store_machines){0};
}
