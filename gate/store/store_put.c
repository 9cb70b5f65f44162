/* SPDX-License-Identifier: Apache-2.0 */
/* store_put.c: a run document into the tables, all of it or nothing; see store.h. */
#include <math.h>
#include <string.h>

#include "gate/store/store_figures.h"
#include "gate/store/store_private.h"

/* One run on its way in. */
struct put {
    struct store *store;
    const struct document *document;
    const struct store_packed *packed;
    enum store_put_outcome *outcome;
    int64_t run_id, place_ms;
    struct gate_error *err;
};

static struct store_cell cell_count(int64_t count) /* below 0: NULL */
{
    return count < 0 ? cell_id(0) : cell_integer(count);
}

/* ---- a case ---- */

static bool is_paired(const struct document_case *c)
{
    return c->mode == MODE_PAIRED && c->has_ratio;
}

/*
 * A row of what a case and one arm of it say; `arm` NULL: there is none that counts. The case's own
 * row, which `is_case`, has its baseline too, and the threshold that it was judged by.
 */
static enum gate_status put_result(const struct put *p, const struct document_case *c,
                                   const struct store_figures *figures,
                                   const struct document_arm *arm, int64_t track_id, bool is_case)
{
    static const struct document_timing none = {
        .registers = -1, .shared_bytes = -1, .spill_bytes = -1};
    const struct document_timing *t = arm ? &arm->timing : &none;
    const struct document *d = p->document;
    struct store_cell cells[43] = {
        cell_integer(track_id), cell_integer(d->time_ms), cell_integer(p->run_id),
        cell_integer(p->place_ms), cell_text(d->git.branch), cell_text(d->contract),
        cell_text(verdict_name((enum verdict)c->verdict)), cell_known(figures->control_ns),
        cell_integer(is_case ? 0 : arm - c->arms + 1),
        cell_text(is_case || arm->role == ROLE_CANDIDATE ? "candidate" : "provider"),
        cell_text(arm ? arm->provider : ""), cell_text(arm ? arm->kernel : ""),
        /* The time of an arm must be known, and the tables refuse a zero. */
        arm ? cell_real(isnan(t->p50_ns) ? 0.0 : t->p50_ns) : cell_text(NULL),
        cell_known(t->p50_lo_ns), cell_known(t->p50_hi_ns), cell_known(t->p10_ns),
        cell_known(t->p90_ns), cell_known(t->tflops), cell_known(t->gbps), cell_known(t->ceiling),
        cell_known(t->sm_clock_mhz), cell_count(t->registers), cell_count(t->shared_bytes),
        cell_count(t->spill_bytes), cell_real(arm ? arm->verify.rel_fro : NAN),
        cell_real(arm ? arm->verify.vendor_ratio : NAN)};
    if (is_case) {
        static const struct estimate no_ratio;
        static const struct document_baseline no_baseline = {.commit = ""};
        const struct estimate *ratio = c->has_ratio ? &c->ratio : &no_ratio;
        const struct document_baseline *baseline = c->has_baseline ? &c->baseline : &no_baseline;
        const struct store_cell of_case[] = {
            cell_known(isnan(c->threshold) ? d->policy.threshold : c->threshold),
            cell_known(ratio->value),
            cell_known(ratio->lo),
            cell_known(ratio->hi),
            cell_integer(is_paired(c)),
            cell_known(c->mde),
            cell_text(figures->peer),
            cell_known(figures->peer_ratio),
            cell_known(figures->baseline_p50_ns),
            cell_id(baseline->time_ms),
            cell_text(baseline->commit),
            cell_known(baseline->p50_ns),
            cell_text(!c->has_baseline    ? NULL
                      : baseline->made_by ? baseline->made_by
                                          : ""),
            cell_text(d->epoch ? d->epoch : ""),
            cell_text(c->reason),
            cell_known(figures->peer_lo),
            cell_known(figures->peer_hi)};
        memcpy(&cells[26], of_case, sizeof of_case);
    }
    return store_write(p->store, store_script("put_result.sql"), cells,
                       sizeof cells / sizeof *cells, p->err);
}

static enum gate_status put_case(const struct put *p, const struct document_case *c)
{
    struct store_figures figures;
    const char *kind = is_paired(c)                  ? "paired"
                       : document_case_is_foreign(c) ? "foreign"
                                                     : "unpaired";
    store_figures_read(c, &figures);
    struct query q =
        query_begin(p->store,
                    "INSERT INTO track (case_id, op, dtype, device, kind, n_runs) VALUES (?1, ?2, "
                    "?3, ?4, ?5, 1)"
                    " ON CONFLICT (case_id, device) DO UPDATE SET n_runs = n_runs + 1,"
                    " kind = iif(excluded.kind = 'paired', excluded.kind, kind) RETURNING id",
                    CELLS(cell_text(c->id), cell_text(c->op), cell_text(c->dtype),
                          cell_text(p->document->device.model), cell_text(kind)));
    int64_t track_id = query_row(&q) ? column_int(&q, 0) : 0;
    TRY(query_finish(p->store, &q, p->err));
    TRY(put_result(p, c, &figures, figures.candidate, track_id, true));
    for (size_t i = 0; i < c->n_arms; i++)
        if (&c->arms[i] != figures.candidate && store_arm_counts(c, &c->arms[i]))
            TRY(put_result(p, c, &figures, &c->arms[i], track_id, false));
    return GATE_OK;
}

/* ---- the whole ---- */

/* Other bytes may be the same document: with other spaces, say, as a report of the run has them. */
static bool is_same_content(const struct put *p, struct query *q)
{
    struct document stored;
    struct field_fault fault;
    struct gate_error why;
    struct buf text, one, other;
    bool same = false;
    buf_init(&text, STORE_MAX_DOCUMENT);
    buf_init(&one, 2 * STORE_MAX_DOCUMENT);
    buf_init(&other, 2 * STORE_MAX_DOCUMENT);
    if (!column_document(q, 1, &text, &why) &&
        document_take(text.data, text.len, &stored, &fault)) {
        document_write(&stored, &one);
        document_write(p->document, &other);
        same = !one.failed && !other.failed && one.len == other.len &&
               !memcmp(one.data, other.data, one.len);
        document_release(&stored);
    }
    buf_release(&other);
    buf_release(&one);
    buf_release(&text);
    return same;
}

/* Looks whether the run is there already, and whether it is this document. */
static enum gate_status find_run(const struct put *p)
{
    struct query q = query_begin(p->store,
                                 "SELECT t.sha256, t.packed, t.n_bytes FROM run r "
                                 "CROSS JOIN document t ON t.run_id = r.id WHERE r.uuid = ?1",
                                 CELLS(cell_text(p->document->uuid)));
    if (query_row(&q)) {
        const void *hash = sqlite3_column_blob(q.stmt, 0);
        bool same = hash && !memcmp(hash, p->packed->sha256, sizeof p->packed->sha256);
        same = same || is_same_content(p, &q);
        *p->outcome = same ? STORE_PUT_EXISTED : STORE_PUT_DIFFERS;
    }
    return query_done(p->store, &q, p->err);
}

static enum gate_status put_cases(const struct put *p)
{
    const struct store_packed *packed = p->packed;
    TRY(store_write(p->store,
                    "INSERT INTO document (run_id, n_bytes, sha256, has_samples, packed) "
                    "VALUES (?1, ?2, ?3, ?4, ?5)",
                    CELLS(cell_integer(p->run_id), cell_integer((int64_t)packed->n_bytes),
                          cell_bytes(packed->sha256, sizeof packed->sha256),
                          cell_integer(packed->has_samples),
                          cell_bytes(packed->bytes, packed->len)),
                    p->err));
    for (size_t i = 0; i < p->document->n_cases; i++) {
        const struct document_case *c = &p->document->cases[i];
        enum gate_status status = put_case(p, c);
        int rc = sqlite3_extended_errcode(p->store->db);
        /* The tables could not tell the two apart. */
        if (status && (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE))
            return gate_fail(p->err, GATE_IO, "run %s has the case '%s' twice", p->document->uuid,
                             c->id);
        if (status)
            return gate_fail_context(p->err, "run %s, case '%s'", p->document->uuid, c->id);
    }
    TRY(store_write(p->store, store_script("put_counts.sql"), CELLS(cell_integer(p->run_id)),
                    p->err));
    return store_touch(p->store, p->err);
}

/* Within a transaction; what it leaves behind when it fails is undone by that. */
static enum gate_status put_whole(struct put *p)
{
    TRY(find_run(p));
    if (*p->outcome != STORE_PUT_CREATED)
        return GATE_OK;
    enum gate_status status =
        store_put_run_row(p->store, p->document, &p->run_id, &p->place_ms, p->err);
    if (status)
        gate_fail_context(p->err, "run %s", p->document->uuid);
    else
        status = put_cases(p);
    if (status && (sqlite3_errcode(p->store->db) & 0xff) == SQLITE_CONSTRAINT)
        *p->outcome = STORE_PUT_REFUSED;
    return status;
}

enum gate_status store_put_packed(struct store *s, const struct document *document,
                                  const struct store_packed *packed,
                                  enum store_put_outcome *outcome, struct gate_error *err)
{
    struct put p = {
        .store = s, .document = document, .packed = packed, .outcome = outcome, .err = err};
    *outcome = STORE_PUT_CREATED;
    TRY(store_begin(s, err));
    return store_end(s, put_whole(&p), err);
}

enum gate_status store_put_run(struct store *s, const struct document *document, const char *text,
                               size_t len, bool *existed, struct gate_error *err)
{
    struct store_packed packed;
    enum store_put_outcome outcome = STORE_PUT_CREATED;
    enum gate_status status = store_pack(text, len, &packed, err);
    if (!status)
        status = store_put_packed(s, document, &packed, &outcome, err);
    *existed = outcome != STORE_PUT_CREATED;
    store_packed_release(&packed);
    return status;
}
