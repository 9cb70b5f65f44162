/* SPDX-License-Identifier: Apache-2.0 */
/* store_put.c: a run document into the tables, all of it or nothing; see store.h. */
#include "gate/store/store_put.h"

#include <math.h>
#include <string.h>

/* The commit's id, 0 outside of a repository. */
static enum gate_status put_revision(const struct put *p, int64_t *id)
{
    const struct document_git *git = &p->document->git;
    *id = 0;
    if (git->commit[0] == '\0')
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_REVISION);
    bind_text(&q, git->commit);
    bind_text(&q, git->parent);
    bind_text(&q, p->document->git.branch);
    bind_int(&q, p->document->time_ms);
    return store_finish_id(p->store, &q, id, p->err);
}

/* `who` is user@host. */
static const char *host_of(const struct document *d)
{
    const char *at = d->who ? strrchr(d->who, '@') : NULL;
    return at ? at + 1 : "";
}

/* By its GPU, since a runner in a container may have a new name each time; a CPU by its host. */
static enum gate_status put_machine(struct put *p)
{
    const char *gpu = p->document->device.uuid, *host = host_of(p->document);
    const char *name = gpu && gpu[0] != '\0' ? gpu : host;
    if (name[0] == '\0')
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_MACHINE);
    bind_int(&q, p->device_id);
    bind_text(&q, name);
    bind_text(&q, host);
    bind_text(&q, gpu ? gpu : "");
    bind_int(&q, p->document->time_ms);
    return store_finish_id(p->store, &q, &p->machine_id, p->err);
}

/* What all cases of a run say together. */
static void bind_means(struct query *q, const struct document *d)
{
    struct put_figures figures;
    double control = 0, vendor = 0;
    int64_t n_control = 0, n_vendor = 0;
    for (size_t i = 0; i < d->n_cases; i++) {
        put_figures_read(&d->cases[i], &figures);
        if (figures.control_ns > 0) {
            control += log(figures.control_ns);
            n_control++;
        }
        if (figures.peer_ratio > 0) {
            vendor += log(figures.peer_ratio);
            n_vendor++;
        }
    }
    bind_positive_or_null(q, n_control > 0 ? exp(control / (double)n_control) : 0);
    bind_real(q, d->control_drift);
    bind_positive_or_null(q, n_vendor > 0 ? exp(vendor / (double)n_vendor) : 0);
    bind_int(q, n_vendor);
}

static void bind_run(const struct put *p, struct query *q, int64_t revision_id)
{
    const struct document *d = p->document;
    int64_t n_verdicts[VERDICT_COUNT] = {0};
    for (size_t i = 0; i < d->n_cases; i++)
        n_verdicts[d->cases[i].verdict]++;
    bind_text(q, p->document->uuid);
    bind_int(q, p->document->time_ms);
    bind_id_or_null(q, revision_id);
    bind_text(q, p->document->git.branch);
    bind_text(q, d->git.subject);
    bind_text(q, d->git.author ? d->git.author : "");
    bind_int(q, d->git.dirty);
    bind_text(q, d->suite);
    bind_int(q, p->device_id);
    bind_text(q, d->device.name);
    bind_text(q, p->document->contract);
    bind_text(q, p->epoch);
    bind_text(q, verdict_name((enum verdict)d->verdict));
    bind_int(q, d->exit_code);
    bind_int(q, (int64_t)d->n_cases);
    for (int i = 0; i < VERDICT_COUNT; i++)
        bind_int(q, n_verdicts[i]);
    bind_text(q, host_of(d));
    bind_id_or_null(q, p->machine_id);
    bind_means(q, d);
}

static enum gate_status put_run_row(struct put *p)
{
    int64_t revision_id = 0;
    struct query q = query_begin(p->store, SQL_PUT_DEVICE);
    bind_text(&q, p->document->device.model);
    enum gate_status status = store_finish_id(p->store, &q, &p->device_id, p->err);
    if (!status)
        status = put_machine(p);
    if (!status)
        status = put_revision(p, &revision_id);
    if (status)
        return status;
    q = query_begin(p->store, SQL_PUT_RUN);
    bind_run(p, &q, revision_id);
    return store_finish_new(p->store, &q, &p->run_id, p->err);
}

static enum gate_status put_document(const struct put *p)
{
    const struct store_packed *d = p->packed;
    struct query q = query_begin(p->store, SQL_PUT_DOCUMENT);
    bind_int(&q, p->run_id);
    bind_int(&q, (int64_t)d->n_bytes);
    bind_blob(&q, d->sha256, sizeof d->sha256);
    bind_int(&q, d->has_samples);
    bind_blob(&q, d->bytes, d->len);
    return store_finish(p->store, &q, p->err);
}

/* Looks whether the run is there already, and whether it came as these bytes. */
static enum gate_status find_run(const struct put *p)
{
    struct query q = query_begin(p->store, SQL_RUN_EXISTS);
    bind_text(&q, p->document->uuid);
    int rc = query_step(&q);
    enum gate_status status = GATE_OK;
    if (rc == SQLITE_ROW) {
        const void *hash = sqlite3_column_blob(q.stmt, 0);
        bool same = hash && !memcmp(hash, p->packed->sha256, sizeof p->packed->sha256);
        *p->outcome = same ? STORE_PUT_EXISTED : STORE_PUT_DIFFERS;
    } else if (rc != SQLITE_DONE) {
        status = store_fail(p->store, rc, "read", p->err);
    }
    query_end(&q);
    return status;
}

/* Says which case an error is of, and refuses what the tables could not tell apart. */
static enum gate_status name_case(const struct put *p, const struct document_case *c,
                                  enum gate_status status)
{
    if (!status)
        return status;
    if (sqlite3_extended_errcode(p->store->db) == SQLITE_CONSTRAINT_PRIMARYKEY)
        return gate_fail(p->err, GATE_IO, "run %s has the case '%s' twice", p->document->uuid,
                         c->id);
    gate_fail_context(p->err, "run %s, case '%s'", p->document->uuid, c->id);
    return status;
}

static enum gate_status put_cases(const struct put *p)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < p->document->n_cases && !status; i++) {
        const struct document_case *c = &p->document->cases[i];
        struct put_track track = {0};
        status = put_case_track(p, c, &track);
        if (!status)
            status = put_case(p, c, &track);
        if (!status && track.newest && c->has_baseline)
            status = put_baseline(p, &c->baseline, track.id);
        if (!status)
            status = put_coverage(p, c);
        status = name_case(p, c, status);
    }
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
    status = put_run_row(p);
    if (!status)
        status = put_document(p);
    if (!status)
        status = put_epoch(p);
    if (!status)
        status = put_cases(p);
    if (!status)
        status = put_calibration(p);
    if (status && (sqlite3_errcode(p->store->db) & 0xff) == SQLITE_CONSTRAINT)
        *p->outcome = STORE_PUT_REFUSED;
    return status == GATE_OK ? store_touch(p->store, err) : status;
}

enum gate_status store_put_packed(struct store *s, const struct document *document,
                                  const struct store_packed *packed,
                                  enum store_put_outcome *outcome, struct gate_error *err)
{
    struct put_kernel kernels[PUT_N_KERNELS] = {{0}};
    struct put p = {
        .kernels = kernels,
        .store = s,
        .document = document,
        .packed = packed,
        .outcome = outcome,
        .epoch = document->epoch ? document->epoch : "",
    };
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
