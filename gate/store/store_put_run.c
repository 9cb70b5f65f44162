/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_run.c: the row of a run, and the order of commits: a run is where its commit is,
 * whenever it was measured.
 */
#include "gate/store/store_private.h"

#include <math.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/store/store_figures.h"

/* ---- the place of its commit; see places.sql ---- */

/* The commit of a run. It is placed again where this tells more of it than was known. */
static enum gate_status note_measured(struct store *s, const struct document *d, int64_t *id,
                                      struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "INSERT INTO revision (commit_id, parent, merge_base, first_ms, place_ms) "
        "VALUES (?1, ?2, ?3, ?4, -1) ON CONFLICT (commit_id) DO UPDATE SET"
        " place_ms = iif((parent = '' AND excluded.parent <> '')"
        "  OR (time_ms IS NULL AND excluded.first_ms < coalesce(first_ms, excluded.first_ms + 1)"
        "  ), -1, place_ms),"
        " parent = iif(parent = '', excluded.parent, parent),"
        " merge_base = iif(merge_base = '', excluded.merge_base, merge_base),"
        " first_ms = min(coalesce(first_ms, excluded.first_ms), excluded.first_ms) "
        "RETURNING id",
        CELLS(cell_text(d->git.commit), cell_text(d->git.parent),
              cell_text(d->git.merge_base ? d->git.merge_base : ""), cell_integer(d->time_ms)));
    *id = query_row(&q) ? column_int(&q, 0) : 0;
    return query_finish(s, &q, err);
}

static enum gate_status note_first_parents(struct store *s, const struct document_git *git,
                                           struct gate_error *err)
{
    for (size_t i = 0; i < git->n_first_parents; i++) {
        const struct document_commit *c = &git->first_parents[i];
        const char *parent = i + 1 < git->n_first_parents ? c[1].commit : i == 0 ? git->parent : "";
        TRY(store_write(s,
                        "INSERT INTO revision (commit_id, parent, merge_base, time_ms, place_ms) "
                        "VALUES (?1, ?2, '', ?3, -1) ON CONFLICT (commit_id) DO UPDATE SET"
                        " parent = iif(parent = '', excluded.parent, parent),"
                        " time_ms = coalesce(time_ms, excluded.time_ms), place_ms = -1 "
                        "WHERE time_ms IS NULL OR (parent = '' AND excluded.parent <> '')",
                        CELLS(cell_text(c->commit), cell_text(parent), cell_integer(c->time_ms)),
                        err));
    }
    return GATE_OK;
}

/* Gives places to commits that have none; the runs of each go with it. */
static enum gate_status move_commits(struct store *s, struct gate_error *err)
{
    static const char *const moves[] = {
        "UPDATE result SET place_ms = ?2 WHERE run_id IN (SELECT id FROM run WHERE"
        " revision_id = ?1 AND place_ms <> ?2)",
        "UPDATE run SET place_ms = ?2 WHERE revision_id = ?1 AND place_ms <> ?2",
    };
    struct buf moved; /* pairs of a commit and its place */
    buf_init(&moved, STORE_MAX_DOCUMENT);
    struct query q = query_begin(s, store_script("places.sql"), NULL, 0);
    while (query_row(&q)) {
        const int64_t pair[2] = {column_int(&q, 0), column_int(&q, 1)};
        buf_append(&moved, pair, sizeof pair);
    }
    enum gate_status status = query_done(s, &q, err);
    if (!status && moved.failed)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t at = 0; at < moved.len && !status; at += 2 * sizeof(int64_t)) {
        const int64_t *pair = (const void *)(moved.data + at);
        for (size_t i = 0; i < 2 && !status; i++)
            status =
                store_write(s, moves[i], CELLS(cell_integer(pair[0]), cell_integer(pair[1])), err);
    }
    buf_release(&moved);
    return status;
}

/*
 * Notes a document's commit and its first parents, and moves what was stored of them where the
 * history says now. *revision_id is 0 outside of a repository, where *place_ms is the run's time.
 */
static enum gate_status place(struct store *s, const struct document *document,
                              int64_t *revision_id, int64_t *place_ms, struct gate_error *err)
{
    *revision_id = 0;
    *place_ms = document->time_ms;
    if (document->git.commit[0] == '\0')
        return GATE_OK;
    TRY(note_measured(s, document, revision_id, err));
    TRY(note_first_parents(s, &document->git, err));
    TRY(move_commits(s, err));
    struct query q = query_begin(s, "SELECT place_ms FROM revision WHERE id = ?1",
                                 CELLS(cell_integer(*revision_id)));
    *place_ms = query_row(&q) ? column_int(&q, 0) : 0;
    return query_done(s, &q, err);
}

/* ---- the row ---- */

#define MAX_OPS 32

/* Counts of verification, of which -1 is not known: their sum over cases, or the most of one. */
#define COUNT_OF(member, most)                                                                     \
    {                                                                                              \
#member, offsetof(struct document_verify, member), most                                    \
    }
static const struct {
    const char *name;
    size_t at;
    bool is_most;
} counts[] = {
    COUNT_OF(checks, false),   COUNT_OF(shapes, false),  COUNT_OF(layouts, false),
    COUNT_OF(launches, false), COUNT_OF(skipped, false), COUNT_OF(values, true),
    COUNT_OF(pairs, true),     COUNT_OF(pairs_of, true),
};
#define N_COUNTS (sizeof counts / sizeof counts[0])

/* Of each op; empty where nothing is known. */
static void write_covered(const struct document *d, struct buf *out)
{
    struct {
        const char *op;
        int64_t cases, sum[N_COUNTS];
    } list[MAX_OPS] = {{NULL, 0, {0}}};
    size_t n = 0;
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_arm *arm = document_candidate(&d->cases[i]);
        const char *op = d->cases[i].op;
        size_t at = 0;
        if (!arm || !arm->has_verify || (arm->verify.values <= 0 && arm->verify.shapes <= 0))
            continue;
        while (at < n && strcmp(list[at].op, op) != 0)
            at++;
        if (at == MAX_OPS)
            continue;
        n += at == n;
        list[at].op = op;
        list[at].cases++;
        for (size_t k = 0; k < N_COUNTS; k++) {
            int64_t value, *sum = &list[at].sum[k];
            memcpy(&value, (const char *)&arm->verify + counts[k].at, sizeof value);
            if (value > 0 && (!counts[k].is_most || value > *sum))
                *sum = counts[k].is_most ? value : *sum + value;
        }
    }
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i == 0 ? "[{\"op\":\"" : ",{\"op\":\"");
        json_escape(list[i].op, out);
        buf_printf(out, "\",\"runs\":1,\"cases\":%lld", (long long)list[i].cases);
        for (size_t k = 0; k < N_COUNTS; k++)
            buf_printf(out, ",\"%s\":%lld", counts[k].name, (long long)list[i].sum[k]);
        buf_putc(out, '}');
    }
    buf_puts(out, n > 0 ? "]" : "");
}

static void write_real(struct buf *out, const char *before, double value)
{
    if (isfinite(value))
        buf_printf(out, "%s%.15g", before, value);
    else
        buf_printf(out, "%snull", before);
}

static void write_calibrated(const struct document_calibrated *c, struct buf *out)
{
    buf_puts(out, "{\"id\":\"");
    json_escape(c->id, out);
    write_real(out, "\",\"mde\":", c->mde);
    buf_printf(out, ",\"resolved\":%s,\"injected\":[", c->resolved ? "true" : "false");
    for (size_t i = 0; i < c->n_injected; i++) {
        const struct document_injected *injected = &c->injected[i];
        write_real(out, i == 0 ? "{\"share\":" : ",{\"share\":", injected->share);
        buf_printf(out, ",\"decisions\":%lld,\"red\":%lld,\"pass\":%lld,\"no_verdict\":%lld}",
                   (long long)injected->decisions, (long long)injected->red,
                   (long long)injected->pass, (long long)injected->no_verdict);
    }
    buf_puts(out, "]}");
}

/* What a machine could tell, by `gate calibrate`. */
static void write_calibration(const struct document *d, struct buf *out)
{
    if (!d->has_calibration)
        return;
    write_real(out, "{\"threshold\":", d->policy.threshold);
    buf_printf(out, ",\"processes\":%lld,\"cases\":[", (long long)d->calibration.processes);
    for (size_t i = 0; i < d->calibration.n_cases; i++) {
        buf_puts(out, i == 0 ? "" : ",");
        write_calibrated(&d->calibration.cases[i], out);
    }
    buf_puts(out, "]}");
}

static struct store_cell cell_mean(double sum_of_logs, int64_t n)
{
    return cell_known(n > 0 ? exp(sum_of_logs / (double)n) : 0);
}

enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err)
{
    /* A machine is its GPU, since a runner in a container may have a new name each time; a CPU is
     * its host. */
    const char *gpu = d->device.uuid ? d->device.uuid : "";
    const char *at = d->who ? strrchr(d->who, '@') : NULL, *host = at ? at + 1 : "";
    int64_t revision_id = 0, n[VERDICT_COUNT] = {0}, n_control = 0, n_vendor = 0;
    double control = 0, vendor = 0;
    struct buf covered, calibration;
    TRY(place(s, d, &revision_id, place_ms, err));
    for (size_t i = 0; i < d->n_cases; i++) {
        struct store_figures figures;
        store_figures_read(&d->cases[i], &figures);
        n[d->cases[i].verdict]++;
        if (figures.control_ns > 0) {
            control += log(figures.control_ns);
            n_control++;
        }
        if (figures.peer_ratio > 0) {
            vendor += log(figures.peer_ratio);
            n_vendor++;
        }
    }
    buf_init(&covered, STORE_MAX_DOCUMENT);
    buf_init(&calibration, STORE_MAX_DOCUMENT);
    write_covered(d, &covered);
    write_calibration(d, &calibration);
    enum gate_status status =
        covered.failed || calibration.failed
            ? gate_fail(err, GATE_INTERNAL, "out of memory")
            : store_write(
                  s,
                  "INSERT INTO run (uuid, time_ms, revision_id, branch, subject, author, dirty,"
                  " suite, device, device_name, host, gpu, machine, contract, epoch, verdict,"
                  " exit_code, n_cases, n_pass, n_regression, n_improvement, n_wrong,"
                  " n_no_verdict, n_environment, control_ns, control_drift, vendor_ratio,"
                  " n_vendor, covered, calibration, place_ms, change, job) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
                  " ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31,"
                  " ?32, ?33)",
                  CELLS(cell_text(d->uuid), cell_integer(d->time_ms), cell_id(revision_id),
                        cell_text(d->git.branch), cell_text(d->git.subject),
                        cell_text(d->git.author ? d->git.author : ""), cell_integer(d->git.dirty),
                        cell_text(d->suite), cell_text(d->device.model), cell_text(d->device.name),
                        cell_text(host), cell_text(gpu), cell_text(gpu[0] != '\0' ? gpu : host),
                        cell_text(d->contract), cell_text(d->epoch ? d->epoch : ""),
                        cell_text(verdict_name((enum verdict)d->verdict)),
                        cell_integer(d->exit_code), cell_integer((int64_t)d->n_cases),
                        cell_integer(n[VERDICT_PASS]), cell_integer(n[VERDICT_REGRESSION]),
                        cell_integer(n[VERDICT_IMPROVEMENT]), cell_integer(n[VERDICT_WRONG]),
                        cell_integer(n[VERDICT_NO_VERDICT]), cell_integer(n[VERDICT_ENVIRONMENT]),
                        cell_mean(control, n_control), cell_real(d->control_drift),
                        cell_mean(vendor, n_vendor), cell_integer(n_vendor),
                        cell_text(covered.len > 0 ? covered.data : NULL),
                        cell_text(calibration.len > 0 ? calibration.data : NULL),
                        cell_integer(*place_ms), cell_text(d->git.change ? d->git.change : ""),
                        cell_text(d->git.job ? d->git.job : "")),
                  err);
    *run_id = sqlite3_last_insert_rowid(s->db);
    buf_release(&covered);
    buf_release(&calibration);
    return status;
}
