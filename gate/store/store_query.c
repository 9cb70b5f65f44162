/* SPDX-License-Identifier: Apache-2.0 */
/* store_query.c: runs, documents, leaders; see store.h. */
#include "gate/store/store_private.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"

/* ---- runs ---- */

#define RUN_COLUMNS "r.uuid, r.device, r.time_ms"

static enum gate_status read_run(struct store *s, struct query *q, struct store_run *out,
                                 struct gate_error *err)
{
    *out = (struct store_run){.time_ms = 0};
    if (query_row(q)) {
        snprintf(out->uuid, sizeof out->uuid, "%s", column_text(q, 0));
        snprintf(out->device_model, sizeof out->device_model, "%s", column_text(q, 1));
        out->time_ms = column_int(q, 2);
    }
    return query_done(s, q, err);
}

enum gate_status store_newest_run(struct store *s, const char *branch, const char *device_model,
                                  struct store_run *out, struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT " RUN_COLUMNS " FROM run r WHERE r.id = iif(?1 IS NULL,"
        " (SELECT id FROM run WHERE ?2 IS NULL OR device = ?2 ORDER BY time_ms DESC, uuid DESC"
        "  LIMIT 1),"
        " (SELECT id FROM run WHERE branch = ?1 AND (?2 IS NULL OR device = ?2)"
        "  ORDER BY time_ms DESC, uuid DESC LIMIT 1))",
        CELLS(cell_text(branch), cell_text(device_model)));
    return read_run(s, &q, out, err);
}

/* The id that a query finds, and how many it finds. */
static enum gate_status read_found(struct store *s, struct query *q, int64_t *id, int *n,
                                   struct gate_error *err)
{
    for (*n = 0; query_row(q); ++*n)
        *id = column_int(q, 0);
    return query_done(s, q, err);
}

static bool is_hex(const char *s, const char *more, size_t least)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = strspn(s, hex);
    while (s[n] != '\0' && strchr(more, s[n]))
        n += 1 + strspn(s + n + 1, hex);
    return n >= least && s[n] == '\0';
}

static enum gate_status find_by_uuid(struct store *s, const char *uuid, int64_t *id,
                                     struct gate_error *err)
{
    int n;
    if (!is_hex(uuid, "-", 4))
        return gate_fail(err, GATE_USAGE,
                         "a run is named by its uuid or by the first 4 or more characters of it");
    struct query q =
        query_begin(s, "SELECT id FROM run WHERE uuid >= ?1 AND uuid < ?1 || '~' LIMIT 2",
                    CELLS(cell_text(uuid)));
    TRY(read_found(s, &q, id, &n, err));
    if (n == 0)
        return gate_fail(err, GATE_USAGE, "run %s is not in '%s'", uuid, s->path);
    if (n > 1)
        return gate_fail(err, GATE_USAGE, "more than one run in '%s' begins with %s: type more",
                         s->path, uuid);
    return GATE_OK;
}

static enum gate_status find_by_commit(struct store *s, const char *commit,
                                       const char *device_model, int64_t *id,
                                       struct gate_error *err)
{
    int n;
    struct query q = query_begin(
        s,
        "SELECT (SELECT r.id FROM run r WHERE r.revision_id = v.id "
        "AND (?2 IS NULL OR r.device = ?2) ORDER BY r.contract GLOB 'foreign-*', r.time_ms DESC,"
        " r.uuid DESC LIMIT 1) "
        "FROM revision v WHERE v.commit_id >= ?1 AND v.commit_id < ?1 || '~'"
        " AND v.first_ms IS NOT NULL LIMIT 2",
        CELLS(cell_text(commit), cell_text(device_model)));
    TRY(read_found(s, &q, id, &n, err));
    if (n > 1)
        return gate_fail(err, GATE_USAGE, "more than one commit begins with %s: type more", commit);
    return n == 1 && *id != 0 ? GATE_OK
                              : gate_fail(err, GATE_USAGE, "no run is of a commit %s", commit);
}

enum gate_status store_find_run(struct store *s, const char *name, const char *device_model,
                                struct store_run *out, struct gate_error *err)
{
    struct gate_error no_run = {0};
    int64_t found = 0;
    enum gate_status status = find_by_uuid(s, name, &found, &no_run);
    if (status == GATE_USAGE && is_hex(name, "", 7))
        TRY(find_by_commit(s, name, device_model, &found, err));
    else if (status)
        return gate_fail(err, status, "%s", no_run.message);
    struct query q = query_begin(s, "SELECT " RUN_COLUMNS " FROM run r WHERE r.id = ?1",
                                 CELLS(cell_integer(found)));
    return read_run(s, &q, out, err);
}

/* ---- documents ---- */

enum gate_status column_document(struct query *q, int column, struct buf *out,
                                 struct gate_error *err)
{
    const void *bytes = sqlite3_column_blob(q->stmt, column); /* before its size */
    size_t len = (size_t)sqlite3_column_bytes(q->stmt, column);
    buf_clear(out);
    return store_unpack(bytes, len, (size_t)column_int(q, column + 1), out, err);
}

enum gate_status store_document(struct store *s, const char *uuid, struct buf *out,
                                struct gate_error *err)
{
    int64_t id = 0;
    TRY(find_by_uuid(s, uuid, &id, err));
    struct query q = query_begin(s, "SELECT packed, n_bytes FROM document WHERE run_id = ?1",
                                 CELLS(cell_integer(id)));
    bool found = query_row(&q);
    enum gate_status unpacked = found ? column_document(&q, 0, out, err) : GATE_OK;
    enum gate_status status = query_done(s, &q, unpacked ? NULL : err);
    if (!status && !found)
        return gate_fail(err, GATE_IO, "run %s has no document", uuid);
    return unpacked ? unpacked : status;
}

enum gate_status store_documents(struct store *s, store_document_fn fn, void *context,
                                 struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    enum gate_status unpacked = GATE_OK;
    bool more = true;
    struct query q =
        query_begin(s,
                    "SELECT t.packed, t.n_bytes FROM run r "
                    "CROSS JOIN document t ON t.run_id = r.id ORDER BY r.time_ms, r.uuid",
                    NULL, 0);
    while (more && query_row(&q)) {
        unpacked = column_document(&q, 0, &text, err);
        more = !unpacked && fn(context, text.data, text.len);
    }
    enum gate_status status = query_done(s, &q, unpacked ? NULL : err);
    return unpacked ? unpacked : status;
}

/* ---- rows of `gate history` and `gate baseline` ---- */

/* As a query has them, and ends it. */
static enum gate_status each_point(struct store *s, struct query *q, store_point_fn fn,
                                   void *context, struct gate_error *err)
{
    bool more = true;
    while (more && query_row(q)) {
        const struct store_point row = {
            .case_id = column_text(q, 0),
            .device_model = column_text(q, 1),
            .time_ms = column_int(q, 2),
            .run_uuid = column_text(q, 3),
            .commit = column_text(q, 4),
            .provider = column_text(q, 5),
            .role = column_text(q, 6),
            .kernel = column_text(q, 7),
            .contract = column_text(q, 8),
            .p50_ns = column_real(q, 9),
            .tflops = column_real(q, 10),
            .gbps = column_real(q, 11),
            .dirty = column_int(q, 12) != 0,
            .verdict = column_text(q, 13),
            .p50_lo_ns = column_real(q, 14),
            .p50_hi_ns = column_real(q, 15),
            .p90_ns = column_real(q, 16),
            .baseline_p50_ns = column_real(q, 17),
        };
        more = fn(context, &row);
    }
    return query_done(s, q, err);
}

enum gate_status store_trend(struct store *s, const char *case_id, const char *device_model,
                             int64_t limit, store_point_fn fn, void *context,
                             struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT t.case_id, t.device, e.time_ms, r.uuid, v.commit_id, e.provider, e.role, e.kernel,"
        " e.contract, e.p50_ns, e.tflops, e.gbps, r.dirty, iif(t.kind = 'foreign', t.kind,"
        " e.verdict), e.p50_lo_ns, e.p50_hi_ns, e.p90_ns, e.baseline_p50_ns "
        "FROM track t CROSS JOIN result e ON e.track_id = t.id CROSS JOIN run r ON r.id = e.run_id "
        "LEFT JOIN revision v ON v.id = r.revision_id "
        "WHERE t.case_id = ?1 AND t.device = ?2 AND e.p50_ns IS NOT NULL "
        "ORDER BY e.time_ms DESC, e.run_id DESC, e.arm LIMIT ?3",
        CELLS(cell_text(case_id), cell_text(device_model), cell_integer(limit)));
    return each_point(s, &q, fn, context, err);
}

/* The contract of a track is that of its newest time; of equal times the first one counts. */
enum gate_status store_leaderboard(struct store *s, const char *device_model, store_point_fn fn,
                                   void *context, struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT l.case_id, l.device, min(l.time_ms), l.run, l.commit_id, l.provider, l.role,"
        " l.kernel, l.contract, l.p50_ns, l.tflops, l.gbps, r.dirty, '', 0, 0, 0, 0 "
        "FROM leader l JOIN track t USING (case_id, device) JOIN run r ON r.uuid = l.run "
        "WHERE (?1 IS NULL OR l.device = ?1) AND l.contract = (SELECT e.contract FROM result e"
        " WHERE e.track_id = t.id AND e.p50_ns IS NOT NULL"
        " ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1) "
        "GROUP BY l.case_id, l.device, l.provider "
        "ORDER BY l.case_id, l.device, l.p50_ns, l.provider",
        CELLS(cell_text(device_model)));
    return each_point(s, &q, fn, context, err);
}

enum gate_status store_newest(struct store *s, const char *case_id, const char *device_model,
                              store_newest_fn fn, void *context, struct gate_error *err)
{
    struct query q =
        query_begin(s,
                    "SELECT t.device, r.uuid FROM track t CROSS JOIN run r ON r.id ="
                    " (SELECT n.run_id FROM result n WHERE n.track_id = t.id"
                    "  ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1) "
                    "WHERE t.case_id = ?1 AND (?2 IS NULL OR t.device = ?2) ORDER BY t.device",
                    CELLS(cell_text(case_id), cell_text(device_model)));
    while (query_row(&q) && fn(context, column_text(&q, 0), column_text(&q, 1)))
        ;
    return query_done(s, &q, err);
}

/* ---- the state ---- */

enum gate_status store_state(struct store *s, struct store_state *out, struct gate_error *err)
{
    out->text[0] = '\0';
    struct query q =
        query_begin(s,
                    "SELECT i.value || c.value, w.value, coalesce(r.uuid, '') "
                    "FROM meta i CROSS JOIN meta c CROSS JOIN meta w "
                    "LEFT JOIN run r ON r.id = (SELECT max(id) FROM run) "
                    "WHERE i.key = 'identity' AND c.key = 'copy' AND w.key = 'n_writes'",
                    NULL, 0);
    if (query_row(&q))
        snprintf(out->text, sizeof out->text, "%s %lld %s", column_text(&q, 0),
                 (long long)column_int(&q, 1), column_text(&q, 2));
    return query_done(s, &q, err);
}

enum gate_status store_read_begin(struct store *s, struct gate_error *err)
{
    struct query q = query_begin(s, "BEGIN", NULL, 0);
    query_row(&q);
    return query_done(s, &q, err);
}

void store_read_end(struct store *s)
{
    /* It wrote nothing, so there is nothing that could fail to be kept. */
    store_write(s, "COMMIT", NULL, 0, NULL);
}
