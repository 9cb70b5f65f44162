/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_json.c: the JSON files of nvbench (--json), pytest-benchmark (--benchmark-json) and
 * Google Benchmark (--benchmark_format=json). SQLite takes them apart; they may have more members
 * than are read here.
 */
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/utf8.h"
#include "gate/device/device.h"
#include "gate/foreign/foreign.h"

#define SHORT_MAX 100 /* bytes of a name, of which each may be 4 characters of a document */

/* Of all three tools, none of which has a member of another: version, host, time, commit, branch,
 * and whether the tree was changed. */
static const char about[] =
    "SELECT coalesce(?1 ->> '$.meta.version.nvbench.string', ?1 ->> '$.version',"
    "  ?1 ->> '$.context.library_version'),"
    " coalesce(?1 ->> '$.machine_info.node', ?1 ->> '$.context.host_name'),"
    " coalesce(?1 ->> '$.datetime', ?1 ->> '$.context.date'),"
    " ?1 ->> '$.commit_info.id', ?1 ->> '$.commit_info.branch', ?1 ->> '$.commit_info.dirty'";

/* Place, id, name, and what a model begins with. */
static const char devices[] =
    "SELECT '/devices/' || key, value ->> '$.id', value ->> '$.name', ''"
    " FROM json_each(?1, '$.devices') "
    "UNION ALL SELECT '/machine_info/cpu', 0, ?1 ->> '$.machine_info.cpu.brand_raw', 'host-'"
    " WHERE length(CAST(?1 ->> '$.machine_info.cpu.brand_raw' AS BLOB)) BETWEEN 1 AND 100";

#define BENCHMARKS                                                                                 \
    "WITH benchmark AS MATERIALIZED (SELECT '/benchmarks/' || key AS place, value AS v,"           \
    " value ->> '$.name' AS name FROM json_each(?1, '$.benchmarks'))"

enum column { PLACE, LEFT_OUT, NAME, TIME, SAMPLES, LAUNCHES, DEVICE };

/* What was timed, in the columns above. A name or a time that is NULL is not what `needs` says. */
static const struct {
    const char *results, *needs;
    double unit_ns;
} tools[] = {
    [FOREIGN_NVBENCH] =
        {BENCHMARKS
         ", state AS MATERIALIZED (SELECT coalesce(place || '/states/' || s.key, place) AS place,"
         "  name, s.value AS v FROM benchmark b LEFT JOIN json_each(b.v, '$.states') s"
         "  WHERE s.key IS NOT NULL OR json_type(b.v, '$.states') IS NOT 'array'),"
         " summary AS MATERIALIZED (SELECT place, m.value ->> '$.tag' AS tag,"
         "  coalesce((SELECT d.value ->> '$.value' FROM json_each(m.value, '$.data') d"
         "   WHERE d.value ->> '$.name' = 'value'), '') AS value"
         "  FROM state, json_each(v, '$.summaries') m) "
         "SELECT s.place, v IS NOT NULL AND (coalesce(v ->> '$.is_skipped', 0) IS NOT 0 OR m.tag "
         "IS NULL),"
         " name || coalesce((SELECT group_concat('/' || coalesce(a.value ->> '$.name', '') || '='"
         "  || coalesce(a.value ->> '$.value', ''), '') FROM json_each(v, '$.axis_values') a), ''),"
         " m.value, n.value, 1, coalesce(v ->> '$.device', -1) FROM state s"
         " LEFT JOIN summary m ON m.place = s.place AND m.tag = 'nv/cold/time/gpu/mean'"
         " LEFT JOIN summary n ON n.place = s.place AND n.tag = 'nv/cold/sample_size'",
         "a 'name', a list 'states', and in each the summary nv/cold/time/gpu/mean with a finite "
         "number as 'value'",
         1e9},
    [FOREIGN_PYTEST] =
        {BENCHMARKS
         " SELECT place, 0, v ->> '$.fullname', v ->> '$.stats.median', v ->> '$.stats.rounds',"
         " v ->> '$.stats.iterations', NULL FROM benchmark",
         "a text 'fullname', and in 'stats' a number 'median'", 1e9},
    /* The median of the repetitions, or that of the file, which may lack them. Other aggregates are
     * no times. */
    [FOREIGN_GOOGLE] =
        {BENCHMARKS
         ", one AS (SELECT place, v ->> '$.run_type' IS 'aggregate' AS is_median,"
         "  coalesce(v ->> '$.error_occurred', 0) IS NOT 0"
         "   OR coalesce(v ->> '$.skipped', 0) IS NOT 0 AS left_out,"
         "  coalesce(v ->> '$.run_name', name) AS name,"
         "  iif(json_type(v, '$.real_time') IN ('integer', 'real'), v ->> '$.real_time', NULL)"
         "   * CASE v ->> '$.time_unit'"
         "    WHEN 'ns' THEN 1.0 WHEN 'us' THEN 1e3 WHEN 'ms' THEN 1e6 WHEN 's' THEN 1e9 END AS ns"
         "  FROM benchmark"
         "  WHERE v ->> '$.run_type' IS NOT 'aggregate' OR v ->> '$.aggregate_name' IS 'median'),"
         " ranked AS (SELECT *, row_number() OVER (PARTITION BY name, is_median ORDER BY ns) AS at,"
         "  count(*) OVER (PARTITION BY name, is_median) AS n,"
         "  min(is_median) OVER (PARTITION BY name) AS is_all FROM one WHERE NOT left_out) "
         "SELECT place, 1, name, ns, 1, 1, NULL FROM one WHERE left_out "
         "UNION ALL SELECT min(place), 0, name,"
         " CASE WHEN count(ns) < n THEN NULL WHEN min(ns) <= 0 THEN min(ns)"
         "  ELSE avg(ns) FILTER (WHERE at IN ((n + 1) / 2, n / 2 + 1)) END,"
         " n, 1, NULL FROM ranked WHERE is_median = is_all GROUP BY name",
         "a text 'name', a number 'real_time', and one of 'ns' 'us' 'ms' 's' as 'time_unit'", 1},
};

/* The text of a column, where it is one. */
static const char *text_of(sqlite3_stmt *row, int column)
{
    bool is_text = sqlite3_column_type(row, column) == SQLITE_TEXT;
    return is_text ? (const char *)sqlite3_column_text(row, column) : "";
}

/* A number, which nvbench writes as a text. */
static bool number_of(sqlite3_stmt *row, int column, double *out)
{
    *out = sqlite3_column_double(row, column);
    int type = sqlite3_column_type(row, column);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT ||
           reading_number(text_of(row, column), out);
}

static int64_t count_of(sqlite3_stmt *row, int column)
{
    double number;
    return number_of(row, column, &number) && number >= 1 && number <= 1e9 ? (int64_t)number : 1;
}

/* A copy of a text, where it is one and a document may have it. */
static char *copy_of(const char *text)
{
    return *text && strlen(text) < SHORT_MAX ? xstrdup(text) : NULL;
}

static enum gate_status take_about(struct foreign_file *f, sqlite3_stmt *row, struct gate_error *)
{
    f->version = copy_of(text_of(row, 0));
    f->host = copy_of(text_of(row, 1));
    f->time_ms = reading_time_ms(text_of(row, 2), f->tool == FOREIGN_PYTEST);
    if (hex_is(text_of(row, 3), 40)) {
        f->commit = xstrdup(text_of(row, 3));
        f->branch = copy_of(text_of(row, 4));
        f->dirty = sqlite3_column_int(row, 5);
    }
    return GATE_OK;
}

static enum gate_status take_device(struct foreign_file *f, sqlite3_stmt *row,
                                    struct gate_error *err)
{
    const char *name = text_of(row, 2);
    struct foreign_device d = {.name = NULL};
    double id;
    device_model_key(text_of(row, 3), name, d.model, sizeof d.model);
    if (!number_of(row, 1, &id) || id < 0 || id > 1e6 || strlen(name) > SHORT_MAX || !d.model[0])
        return gate_fail(err, GATE_IO,
                         "%s: %s: must have an 'id' of 0 to 1000000, and a 'name' of 1 to %d bytes "
                         "with a letter or digit",
                         f->name, text_of(row, 0), SHORT_MAX);
    d.id = (int64_t)id;
    d.name = xstrdup(name);
    f->devices = xrealloc(f->devices, f->n_devices + 1, sizeof *f->devices);
    f->devices[f->n_devices++] = d;
    return GATE_OK;
}

static enum gate_status take_result(struct foreign_file *f, sqlite3_stmt *row,
                                    struct gate_error *err)
{
    const char *place = text_of(row, PLACE), *name = text_of(row, NAME);
    double time;
    size_t device = 0;
    if (sqlite3_column_int(row, LEFT_OUT)) {
        f->n_left_out++;
        return GATE_OK;
    }
    if (!*name || !number_of(row, TIME, &time))
        return gate_fail(err, GATE_IO, "%s: %s: must have %s", f->name, place,
                         tools[f->tool].needs);
    if (sqlite3_column_type(row, DEVICE) != SQLITE_NULL) {
        double id;
        const char *said = (const char *)sqlite3_column_text(row, DEVICE);
        if (!number_of(row, DEVICE, &id))
            id = NAN;
        while (device < f->n_devices && (double)f->devices[device].id != id)
            device++;
        if (device == f->n_devices)
            return gate_fail(err, GATE_IO, "%s: %s: its device %.20s is not among the devices",
                             f->name, place, said);
    }
    struct foreign_time *t = reading_add(f, name, time * tools[f->tool].unit_ns, place, err);
    if (!t)
        return GATE_IO;
    t->device = device;
    t->arm.timing.samples = count_of(row, SAMPLES);
    t->arm.timing.launches_per_sample = count_of(row, LAUNCHES);
    return GATE_OK;
}

static enum gate_status each_row(struct foreign_file *f, sqlite3 *db, const char *sql,
                                 enum gate_status (*take)(struct foreign_file *, sqlite3_stmt *,
                                                          struct gate_error *),
                                 struct gate_error *err)
{
    sqlite3_stmt *row = NULL;
    enum gate_status status = GATE_OK;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, f->text, (int)f->len, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        while (!status && (rc = sqlite3_step(row)) == SQLITE_ROW)
            status = take(f, row, err);
    if (!status && rc != SQLITE_DONE)
        status =
            gate_fail(err, GATE_IO, "%s: is no file of this tool: %s", f->name, sqlite3_errmsg(db));
    sqlite3_finalize(row);
    return status;
}

enum gate_status reading_json(struct foreign_file *f, struct gate_error *err)
{
    RELEASED_BY(json_delete_at) cJSON *tree = NULL;
    sqlite3 *db = NULL;
    TRY(json_parse(f->name, f->text, f->len, GATE_IO, &tree, err));
    if (!cJSON_IsArray(json_member(tree, "benchmarks")))
        return gate_fail(err, GATE_IO, "%s: has no list 'benchmarks'", f->name);
    sqlite3_open(":memory:", &db); /* where that fails, the first statement does */
    enum gate_status status = each_row(f, db, about, take_about, err);
    status = status ? status : each_row(f, db, devices, take_device, err);
    status = status ? status : each_row(f, db, tools[f->tool].results, take_result, err);
    sqlite3_close(db);
    return status;
}
