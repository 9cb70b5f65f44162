/* SPDX-License-Identifier: Apache-2.0 */
/* store_put.c: a run document into the tables, all of it or nothing; see store.h. */
#include <math.h>
#include <string.h>

#include "gate/store/store_figures.h"
#include "gate/store/store_pack.h"
#include "gate/store/store_put_run.h"
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

/* A track that the run has, as it was before. */
struct put_track {
    int64_t id;
    bool is_paired; /* its kind */
    bool is_newest; /* no run of the track that is stored is newer than this one */
};

static void bind_known(struct query *q, double value)
{
    bind_positive_or_null(q, isnan(value) ? 0.0 : value);
}

static void bind_known_count(struct query *q, int64_t count)
{
    if (count < 0)
        bind_null(q);
    else
        bind_int(q, count);
}

/* ---- the document ---- */

static enum gate_status put_document(const struct put *p)
{
    const struct store_packed *d = p->packed;
    struct query q =
        query_begin(p->store, "INSERT INTO document (run_id, n_bytes, sha256, has_samples, packed) "
                              "VALUES (?1, ?2, ?3, ?4, ?5)");
    bind_int(&q, p->run_id);
    bind_int(&q, (int64_t)d->n_bytes);
    bind_blob(&q, d->sha256, sizeof d->sha256);
    bind_int(&q, d->has_samples);
    bind_blob(&q, d->bytes, d->len);
    return store_finish(p->store, &q, p->err);
}

/* ---- a case ---- */

static bool is_paired(const struct document_case *c)
{
    return c->mode == MODE_PAIRED && c->has_ratio;
}

static enum gate_status find_track(const struct put *p, const struct document_case *c,
                                   struct put_track *track)
{
    *track = (struct put_track){.is_newest = true};
    struct query q =
        query_begin(p->store, "SELECT t.id, t.kind = 'paired', (SELECT e.time_ms FROM result e"
                              " WHERE e.track_id = t.id ORDER BY e.time_ms DESC LIMIT 1) "
                              "FROM track t WHERE t.case_id = ?1 AND t.device = ?2");
    bind_text(&q, c->id);
    bind_text(&q, p->document->device.model);
    if (query_row(&q)) {
        track->id = column_int(&q, 0);
        track->is_paired = column_int(&q, 1) != 0;
        track->is_newest = p->document->time_ms >= column_int(&q, 2);
    }
    enum gate_status status = query_done(p->store, &q, p->err);
    if (status || track->id != 0)
        return status;
    q = query_begin(p->store, "INSERT INTO track (case_id, op, dtype, device, kind, n_runs) "
                              "VALUES (?1, ?2, ?3, ?4, ?5, 0)");
    bind_text(&q, c->id);
    bind_text(&q, c->op);
    bind_text(&q, c->dtype);
    bind_text(&q, p->document->device.model);
    bind_text(&q, document_case_is_foreign(c) ? "foreign" : "unpaired");
    return store_finish_new(p->store, &q, &track->id, p->err);
}

static enum gate_status count_run(const struct put *p, const struct document_case *c,
                                  const struct put_track *track)
{
    struct query q = query_begin(p->store, "UPDATE track SET n_runs = n_runs + 1,"
                                           " kind = iif(?2, 'paired', kind) WHERE id = ?1");
    bind_int(&q, track->id);
    bind_int(&q, track->is_paired || is_paired(c));
    return store_finish(p->store, &q, p->err);
}

/* ---- baselines ---- */

/* How the baseline of a case changed. */
struct change {
    const char *kind; /* NULL: it did not */
    double from_ns;   /* 0: not known */
};

struct logged {
    bool known;
    int64_t stored_ms;
    double p50_ns;
    bool other_epoch; /* than this run's */
    bool other_contract;
};

/*
 * Only an accept raises a baseline. A slower one that none made, or the first one of its store,
 * does not follow from what was logged: a runner without the stored baselines began anew.
 */
static const char *kind_of(const struct logged *before, const struct document_baseline *baseline)
{
    const char *made_by = baseline->made_by ? baseline->made_by : "";
    if (!before->known || before->other_contract || !strcmp(made_by, "accept-new"))
        return "first";
    if (before->other_epoch)
        return "epoch";
    if (baseline->p50_ns < before->p50_ns)
        return "lowered";
    return !strcmp(made_by, "accept") ? "raised" : "first";
}

/*
 * Documents name the baseline of each case and when it became that (its time_ms). A change is a
 * baseline that is newer than all that were logged: a run from a branch that is behind brings an
 * old one, which is no change. Only the newest run of a track may log one.
 */
static enum gate_status find_change(const struct put *p, const struct document_case *c,
                                    const struct put_track *track, struct change *out)
{
    struct logged logged = {0};
    const struct document *d = p->document;
    const struct document_baseline *baseline = &c->baseline;
    *out = (struct change){0};
    if (!c->has_baseline || !track->is_newest)
        return GATE_OK;
    struct query q =
        query_begin(p->store, "SELECT e.baseline_ms, e.baseline_stored_ns, r.epoch, r.contract "
                              "FROM result e INDEXED BY result_baseline_of_track "
                              "CROSS JOIN run r ON r.id = e.run_id "
                              "WHERE e.track_id = ?1 AND e.baseline_change IS NOT NULL "
                              "ORDER BY e.run_id DESC LIMIT 1");
    bind_int(&q, track->id);
    if (query_row(&q))
        logged = (struct logged){
            .known = true,
            .stored_ms = column_int(&q, 0),
            .p50_ns = column_real(&q, 1),
            .other_epoch = strcmp(column_text(&q, 2), d->epoch ? d->epoch : ""),
            .other_contract = strcmp(column_text(&q, 3), d->contract),
        };
    enum gate_status status = query_done(p->store, &q, p->err);
    bool has_changed = !logged.known || logged.other_contract ||
                       (baseline->time_ms > logged.stored_ms && baseline->p50_ns != logged.p50_ns);
    if (status || !has_changed)
        return status;
    out->kind = kind_of(&logged, baseline);
    out->from_ns = strcmp(out->kind, "first") ? logged.p50_ns : 0;
    return GATE_OK;
}

/* ---- results ---- */

#define PUT_RESULT                                                                                 \
    "INSERT INTO result (track_id, time_ms, run_id, place_ms, branch, contract, verdict,"          \
    " control_ns, arm, role, provider, kernel, p50_ns, p50_lo_ns, p50_hi_ns, p10_ns, p90_ns,"      \
    " tflops, gbps, ceiling, sm_clock_mhz, registers, shared_bytes, spill_bytes, rel_err,"         \
    " vendor_error, threshold, ratio, ratio_lo, ratio_hi, paired, mde, peer, peer_ratio,"          \
    " baseline_p50_ns, baseline_ms, baseline_commit, baseline_stored_ns, baseline_change,"         \
    " baseline_from_ns, reason, peer_lo, peer_hi) "                                                \
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"     \
    " ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, coalesce(?31, 0), ?32,"          \
    " coalesce(?33, ''), ?34, ?35, ?36, coalesce(?37, ''), ?38, ?39, ?40, coalesce(?41, ''),"      \
    " ?42, ?43)"

/* What a case and one arm of it say; NULL: there is none that counts. */
static struct query begin_result(const struct put *p, const struct document_case *c,
                                 const struct store_figures *figures,
                                 const struct document_arm *arm, int64_t track_id, bool is_case)
{
    static const struct document_timing none = {
        .registers = -1, .shared_bytes = -1, .spill_bytes = -1};
    const struct document_timing *t = arm ? &arm->timing : &none;
    const struct document *d = p->document;
    static const char sql[] = PUT_RESULT;
    struct query q = query_begin(p->store, sql);
    bind_int(&q, track_id);
    bind_int(&q, d->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, p->place_ms);
    bind_text(&q, d->git.branch);
    bind_text(&q, d->contract);
    bind_text(&q, verdict_name((enum verdict)c->verdict));
    bind_known(&q, figures->control_ns);
    bind_int(&q, is_case ? 0 : arm - c->arms + 1);
    bind_text(&q, is_case || arm->role == ROLE_CANDIDATE ? "candidate" : "provider");
    bind_text(&q, arm ? arm->provider : "");
    bind_text(&q, arm ? arm->kernel : "");
    if (arm) /* it must be known, and the tables refuse a zero */
        bind_real(&q, isnan(t->p50_ns) ? 0.0 : t->p50_ns);
    else
        bind_null(&q);
    bind_known(&q, t->p50_lo_ns);
    bind_known(&q, t->p50_hi_ns);
    bind_known(&q, t->p10_ns);
    bind_known(&q, t->p90_ns);
    bind_known(&q, t->tflops);
    bind_known(&q, t->gbps);
    bind_known(&q, t->ceiling);
    bind_known(&q, t->sm_clock_mhz);
    bind_known_count(&q, t->registers);
    bind_known_count(&q, t->shared_bytes);
    bind_known_count(&q, t->spill_bytes);
    bind_real(&q, arm ? arm->verify.rel_fro : NAN);
    bind_real(&q, arm ? arm->verify.vendor_ratio : NAN);
    return q;
}

/* The row of the case, with the threshold that it was judged by. */
static enum gate_status put_case_row(const struct put *p, const struct document_case *c,
                                     const struct store_figures *figures, int64_t track_id,
                                     const struct change *change)
{
    static const struct estimate no_ratio;
    const struct estimate *ratio = c->has_ratio ? &c->ratio : &no_ratio;
    struct query q = begin_result(p, c, figures, figures->candidate, track_id, true);
    bind_known(&q, isnan(c->threshold) ? p->document->policy.threshold : c->threshold);
    bind_known(&q, ratio->value);
    bind_known(&q, ratio->lo);
    bind_known(&q, ratio->hi);
    bind_int(&q, is_paired(c));
    bind_known(&q, c->mde);
    bind_text(&q, figures->peer);
    bind_known(&q, figures->peer_ratio);
    bind_known(&q, figures->baseline_p50_ns);
    bind_id_or_null(&q, c->has_baseline ? c->baseline.time_ms : 0);
    bind_text(&q, c->has_baseline ? c->baseline.commit : "");
    bind_known(&q, c->has_baseline ? c->baseline.p50_ns : 0);
    bind_text_or_null(&q, change->kind);
    bind_known(&q, change->from_ns);
    bind_text(&q, c->reason);
    bind_known(&q, figures->peer_lo);
    bind_known(&q, figures->peer_hi);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status put_other_arms(const struct put *p, const struct document_case *c,
                                       const struct store_figures *figures, int64_t track_id)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < c->n_arms && !status; i++) {
        if (&c->arms[i] == figures->candidate || !store_arm_counts(c, &c->arms[i]))
            continue;
        struct query q = begin_result(p, c, figures, &c->arms[i], track_id, false);
        status = store_finish(p->store, &q, p->err);
    }
    return status;
}

/* Says which case an error is of, and refuses what the tables could not tell apart. */
static enum gate_status name_case(const struct put *p, const struct document_case *c,
                                  enum gate_status status)
{
    if (!status)
        return status;
    int rc = sqlite3_extended_errcode(p->store->db);
    if (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE)
        return gate_fail(p->err, GATE_IO, "run %s has the case '%s' twice", p->document->uuid,
                         c->id);
    gate_fail_context(p->err, "run %s, case '%s'", p->document->uuid, c->id);
    return status;
}

static enum gate_status put_case(const struct put *p, const struct document_case *c)
{
    struct put_track track;
    struct store_figures figures;
    struct change change;
    store_figures_read(c, &figures);
    enum gate_status status = find_track(p, c, &track);
    if (!status)
        status = find_change(p, c, &track, &change);
    if (!status)
        status = put_case_row(p, c, &figures, track.id, &change);
    if (!status)
        status = put_other_arms(p, c, &figures, track.id);
    return name_case(p, c, !status ? count_run(p, c, &track) : status);
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
    const void *packed = sqlite3_column_blob(q->stmt, 1);
    size_t len = (size_t)sqlite3_column_bytes(q->stmt, 1);
    if (!store_unpack(packed, len, (size_t)column_int(q, 2), &text, &why) &&
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
    struct query q = query_begin(
        p->store, "SELECT t.sha256, t.packed, t.n_bytes FROM run r CROSS JOIN document t "
                  "ON t.run_id = r.id "
                  "WHERE r.uuid = ?1");
    bind_text(&q, p->document->uuid);
    int rc = query_step(&q);
    enum gate_status status = GATE_OK;
    if (rc == SQLITE_ROW) {
        const void *hash = sqlite3_column_blob(q.stmt, 0);
        bool same = hash && !memcmp(hash, p->packed->sha256, sizeof p->packed->sha256);
        same = same || is_same_content(p, &q);
        *p->outcome = same ? STORE_PUT_EXISTED : STORE_PUT_DIFFERS;
    } else if (rc != SQLITE_DONE) {
        status = store_fail(p->store, rc, "read", p->err);
    }
    query_end(&q);
    return status;
}

/* Within a transaction; what it leaves behind when it fails is undone by that. */
static enum gate_status put_whole(void *context, struct gate_error *err)
{
    struct put *p = context;
    p->err = err;
    enum gate_status status = find_run(p);
    if (status || *p->outcome != STORE_PUT_CREATED)
        return status;
    status = store_put_run_row(p->store, p->document, &p->run_id, &p->place_ms, err);
    if (status)
        gate_fail_context(err, "run %s", p->document->uuid);
    else
        status = put_document(p);
    for (size_t i = 0; i < p->document->n_cases && !status; i++)
        status = put_case(p, &p->document->cases[i]);
    if (status && (sqlite3_errcode(p->store->db) & 0xff) == SQLITE_CONSTRAINT)
        *p->outcome = STORE_PUT_REFUSED;
    return status == GATE_OK ? store_touch(p->store, err) : status;
}

enum gate_status store_put_packed(struct store *s, const struct document *document,
                                  const struct store_packed *packed,
                                  enum store_put_outcome *outcome, struct gate_error *err)
{
    struct put p = {.store = s, .document = document, .packed = packed, .outcome = outcome};
    *outcome = STORE_PUT_CREATED;
    return store_atomically(s, put_whole, &p, err);
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
