/* SPDX-License-Identifier: Apache-2.0 */
/* store_query.c: runs, documents, leaders; see store.h. */
#include "gate/store/store_pack.h"
#include "gate/store/store_private.h"

#include <stdio.h>
#include <string.h>

#define RUN_COLUMNS "r.uuid, r.device, r.time_ms"

/* ---- runs ---- */

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
        s, "SELECT " RUN_COLUMNS " FROM run r WHERE r.id = iif(?1 IS NULL,"
           " (SELECT id FROM run WHERE ?2 IS NULL OR device = ?2 ORDER BY time_ms DESC, uuid DESC"
           "  LIMIT 1),"
           " (SELECT id FROM run WHERE branch = ?1 AND (?2 IS NULL OR device = ?2)"
           "  ORDER BY time_ms DESC, uuid DESC LIMIT 1))");
    bind_text_or_null(&q, branch);
    bind_text_or_null(&q, device_model);
    return read_run(s, &q, out, err);
}

struct found_run {
    int64_t id;
    int n;
};

/* The id that a query finds, and how many it finds. */
static enum gate_status read_found(struct store *s, struct query *q, struct found_run *found,
                                   struct gate_error *err)
{
    *found = (struct found_run){0, 0};
    for (; query_row(q); found->n++)
        found->id = column_int(q, 0);
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
    struct found_run found;
    if (!is_hex(uuid, "-", 4))
        return gate_fail(err, GATE_USAGE,
                         "a run is named by its uuid or by the first 4 or more characters of it");
    struct query q =
        query_begin(s, "SELECT id FROM run WHERE uuid >= ?1 AND uuid < ?1 || '~' LIMIT 2");
    bind_text(&q, uuid);
    enum gate_status status = read_found(s, &q, &found, err);
    if (status)
        return status;
    if (found.n == 0)
        return gate_fail(err, GATE_USAGE, "run %s is not in '%s'", uuid, s->path);
    if (found.n > 1)
        return gate_fail(err, GATE_USAGE, "more than one run in '%s' begins with %s: type more",
                         s->path, uuid);
    *id = found.id;
    return GATE_OK;
}

static enum gate_status find_by_commit(struct store *s, const char *commit,
                                       const char *device_model, int64_t *id,
                                       struct gate_error *err)
{
    struct found_run found;
    struct query q = query_begin(
        s, "SELECT coalesce((SELECT r.id FROM run r WHERE r.revision_id = v.id "
           "AND (?2 IS NULL OR r.device = ?2) ORDER BY r.contract GLOB 'foreign-*', r.time_ms DESC,"
           " r.uuid DESC LIMIT 1), 0) "
           "FROM revision v WHERE v.commit_id >= ?1 AND v.commit_id < ?1 || '~'"
           " AND v.first_ms IS NOT NULL LIMIT 2");
    bind_text(&q, commit);
    bind_text_or_null(&q, device_model);
    enum gate_status status = read_found(s, &q, &found, err);
    if (!status && found.n == 1 && found.id != 0)
        *id = found.id;
    else if (!status && found.n > 1)
        status =
            gate_fail(err, GATE_USAGE, "more than one commit begins with %s: type more", commit);
    else if (!status)
        status = gate_fail(err, GATE_USAGE, "no run is of a commit %s", commit);
    return status;
}

enum gate_status store_find_run(struct store *s, const char *name, const char *device_model,
                                struct store_run *out, struct gate_error *err)
{
    struct gate_error no_run = {0};
    int64_t found = 0;
    enum gate_status status = find_by_uuid(s, name, &found, &no_run);
    if (status == GATE_USAGE && is_hex(name, "", 7))
        status = find_by_commit(s, name, device_model, &found, err);
    else if (status)
        gate_fail(err, status, "%s", no_run.message);
    if (status)
        return status;
    struct query q = query_begin(s, "SELECT " RUN_COLUMNS " FROM run r WHERE r.id = ?1");
    bind_int(&q, found);
    return read_run(s, &q, out, err);
}

/* ---- documents ---- */

static enum gate_status each_document(struct store *s, struct query *q, store_document_fn fn,
                                      void *context, struct gate_error *err)
{
    struct buf text;
    bool more = true;
    enum gate_status unpacked = GATE_OK;
    buf_init(&text, STORE_MAX_DOCUMENT);
    while (more && query_row(q)) {
        const void *bytes = sqlite3_column_blob(q->stmt, 0); /* before its size */
        size_t len = (size_t)sqlite3_column_bytes(q->stmt, 0);
        buf_clear(&text);
        unpacked = store_unpack(bytes, len, (size_t)column_int(q, 1), &text, err);
        more = !unpacked && fn(context, text.data, text.len);
    }
    buf_release(&text);
    enum gate_status status = query_done(s, q, err);
    return !status ? unpacked : status;
}

enum gate_status store_document(struct store *s, const char *uuid, store_document_fn fn,
                                void *context, struct gate_error *err)
{
    int64_t id = 0;
    enum gate_status status = find_by_uuid(s, uuid, &id, err);
    if (status)
        return status;
    struct query q = query_begin(s, "SELECT packed, n_bytes FROM document WHERE run_id = ?1");
    bind_int(&q, id);
    return each_document(s, &q, fn, context, err);
}

enum gate_status store_find_document(struct store *s, const char *uuid, int64_t *run_id,
                                     size_t *n_bytes, size_t *n_packed, struct gate_error *err)
{
    enum gate_status status = find_by_uuid(s, uuid, run_id, err);
    if (status)
        return status;
    struct query q =
        query_begin(s, "SELECT length(packed), n_bytes FROM document WHERE run_id = ?1");
    bind_int(&q, *run_id);
    if (query_row(&q)) {
        *n_packed = (size_t)column_int(&q, 0);
        *n_bytes = (size_t)column_int(&q, 1);
    }
    return query_done(s, &q, err);
}

enum gate_status store_document_piece(struct store *s, int64_t run_id, size_t n_packed, size_t at,
                                      void *out, size_t n, struct gate_error *err)
{
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(s->db, "main", "document", "packed", run_id, 0, &blob);
    if (rc == SQLITE_OK && (size_t)sqlite3_blob_bytes(blob) != n_packed)
        rc = SQLITE_ABORT;
    if (rc == SQLITE_OK)
        rc = sqlite3_blob_read(blob, out, (int)n, (int)at);
    sqlite3_blob_close(blob);
    return rc == SQLITE_OK ? GATE_OK : store_fail(s, rc, "read", err);
}

enum gate_status store_documents(struct store *s, store_document_fn fn, void *context,
                                 struct gate_error *err)
{
    struct query q =
        query_begin(s, "SELECT t.packed, t.n_bytes FROM run r "
                       "CROSS JOIN document t ON t.run_id = r.id ORDER BY r.time_ms, r.uuid");
    return each_document(s, &q, fn, context, err);
}

/* ---- rows of `gate history` and `gate baseline` ---- */

static struct store_point read_point(struct query *q)
{
    return (struct store_point){
        .time_ms = column_int(q, 0),
        .run_uuid = column_text(q, 1),
        .commit = column_text(q, 2),
        .provider = column_text(q, 3),
        .role = column_text(q, 4),
        .kernel = column_text(q, 5),
        .contract = column_text(q, 6),
        .verdict = column_text(q, 7),
        .p50_ns = column_real(q, 8),
        .p50_lo_ns = column_real(q, 9),
        .p50_hi_ns = column_real(q, 10),
        .p90_ns = column_real(q, 11),
        .tflops = column_real(q, 12),
        .gbps = column_real(q, 13),
        .baseline_p50_ns = column_real(q, 14),
        .dirty = column_int(q, 15) != 0,
    };
}

enum gate_status store_trend(struct store *s, const char *case_id, const char *device_model,
                             int64_t limit, store_point_fn fn, void *context,
                             struct gate_error *err)
{
    struct store_point row;
    bool more = true;
    if (limit < 1) /* it would mean "no limit" to SQLite */
        return gate_fail(err, GATE_USAGE, "the limit must be at least 1, is %lld",
                         (long long)limit);
    struct query q = query_begin(
        s,
        "SELECT e.time_ms, r.uuid, coalesce(v.commit_id, ''), e.provider, e.role, e.kernel, "
        "e.contract, iif(t.kind = 'foreign', t.kind, e.verdict), e.p50_ns, e.p50_lo_ns, "
        "e.p50_hi_ns, e.p90_ns, e.tflops, e.gbps, "
        "e.baseline_p50_ns, r.dirty "
        "FROM track t CROSS JOIN result e ON e.track_id = t.id CROSS JOIN run r ON r.id = e.run_id "
        "LEFT JOIN revision v ON v.id = r.revision_id "
        "WHERE t.case_id = ?1 AND t.device = ?2 AND e.p50_ns IS NOT NULL "
        "ORDER BY e.time_ms DESC, e.run_id DESC, e.arm LIMIT ?3");
    bind_text(&q, case_id);
    bind_text(&q, device_model);
    bind_int(&q, limit);
    while (more && query_row(&q)) {
        row = read_point(&q);
        more = fn(context, &row);
    }
    return query_done(s, &q, err);
}

static struct store_leader read_leader(struct query *q)
{
    return (struct store_leader){
        .case_id = column_text(q, 0),
        .device_model = column_text(q, 1),
        .provider = column_text(q, 2),
        .kernel = column_text(q, 3),
        .commit = column_text(q, 4),
        .run_uuid = column_text(q, 5),
        .time_ms = column_int(q, 6),
        .p50_ns = column_real(q, 7),
        .tflops = column_real(q, 8),
        .gbps = column_real(q, 9),
        .contract = column_text(q, 10),
        .role = column_text(q, 11),
        .dirty = column_int(q, 12) != 0,
    };
}

/* The contract of a track is that of its newest time; of equal times the first one counts. */
enum gate_status store_leaderboard(struct store *s, const char *device_model, store_leader_fn fn,
                                   void *context, struct gate_error *err)
{
    struct store_leader row;
    bool more = true;
    struct query q = query_begin(
        s, "SELECT l.case_id, l.device, l.provider, l.kernel, l.commit_id, l.run, min(l.time_ms),"
           " l.p50_ns, l.tflops, l.gbps, l.contract, l.role, r.dirty "
           "FROM leader l JOIN track t USING (case_id, device) JOIN run r ON r.uuid = l.run "
           "WHERE (?1 IS NULL OR l.device = ?1) AND l.contract = (SELECT e.contract FROM result e"
           " WHERE e.track_id = t.id AND e.p50_ns IS NOT NULL"
           " ORDER BY e.time_ms DESC, e.run_id DESC LIMIT 1) "
           "GROUP BY l.case_id, l.device, l.provider "
           "ORDER BY l.case_id, l.device, l.p50_ns, l.provider");
    bind_text_or_null(&q, device_model);
    while (more && query_row(&q)) {
        row = read_leader(&q);
        more = fn(context, &row);
    }
    return query_done(s, &q, err);
}

enum gate_status store_newest(struct store *s, const char *case_id, const char *device_model,
                              store_newest_fn fn, void *context, struct gate_error *err)
{
    struct query q =
        query_begin(s, "SELECT t.device, r.uuid, e.verdict FROM track t "
                       "CROSS JOIN result e ON e.track_id = t.id AND e.arm = 0 AND e.run_id ="
                       " (SELECT n.run_id FROM result n WHERE n.track_id = t.id"
                       "  ORDER BY n.time_ms DESC, n.run_id DESC LIMIT 1) "
                       "CROSS JOIN run r ON r.id = e.run_id "
                       "WHERE t.case_id = ?1 AND (?2 IS NULL OR t.device = ?2) ORDER BY t.device");
    bind_text(&q, case_id);
    bind_text_or_null(&q, device_model);
    while (query_row(&q) && fn(context, column_text(&q, 0), column_text(&q, 1), column_text(&q, 2)))
        ;
    return query_done(s, &q, err);
}

/* ---- the state ---- */

enum gate_status store_state(struct store *s, struct store_state *out, struct gate_error *err)
{
    out->text[0] = '\0';
    struct query q =
        query_begin(s, "SELECT i.value || c.value, w.value, coalesce(r.uuid, '') "
                       "FROM meta i CROSS JOIN meta c CROSS JOIN meta w "
                       "LEFT JOIN run r ON r.id = (SELECT max(id) FROM run) "
                       "WHERE i.key = 'identity' AND c.key = 'copy' AND w.key = 'n_writes'");
    if (query_row(&q))
        snprintf(out->text, sizeof out->text, "%s %lld %s", column_text(&q, 0),
                 (long long)column_int(&q, 1), column_text(&q, 2));
    return query_done(s, &q, err);
}

enum gate_status store_read_begin(struct store *s, struct gate_error *err)
{
    struct query q = query_begin(s, "BEGIN");
    int rc = query_step(&q);
    query_end(&q);
    return rc == SQLITE_DONE ? GATE_OK : store_fail(s, rc, "read", err);
}

void store_read_end(struct store *s)
{
    struct query q = query_begin(s, "COMMIT");
    query_step(&q); /* it wrote nothing, so there is nothing that could fail to be kept */
    query_end(&q);
}
