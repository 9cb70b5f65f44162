/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_run.c: the row of a run, and the order of commits: a run is where its commit is,
 * whenever it was measured.
 */
#include "gate/store/store_private.h"

#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/document/document.h"

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
    RELEASED_BY(buf_release) struct buf moved = buf_of(STORE_MAX_DOCUMENT); /* their ids, as JSON */
    struct query q = query_begin(s, store_script("places.sql"), NULL, 0);
    while (query_row(&q))
        buf_printf(&moved, "%c%lld", moved.len == 0 ? '[' : ',', (long long)column_int(&q, 0));
    TRY(query_done(s, &q, err));
    if (moved.len == 0)
        return GATE_OK;
    buf_putc(&moved, ']');
    if (moved.failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    TRY(store_write(s,
                    "UPDATE result SET place_ms = v.place_ms FROM json_each(?1) j"
                    " CROSS JOIN revision v ON v.id = j.value"
                    " CROSS JOIN run r ON r.revision_id = v.id AND r.place_ms <> v.place_ms "
                    "WHERE result.run_id = r.id",
                    CELLS(cell_text(moved.data)), err));
    return store_write(s,
                       "UPDATE run SET place_ms = v.place_ms FROM json_each(?1) j"
                       " CROSS JOIN revision v ON v.id = j.value "
                       "WHERE run.revision_id = v.id AND run.place_ms <> v.place_ms",
                       CELLS(cell_text(moved.data)), err);
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

#define MAX_COUNT (INT64_C(1) << 40) /* of a case: sums of these do not overflow */

/* What verification of each case covered, as JSON: [["op", checks, ...], ...]. */
static void write_covered(const struct document *d, struct buf *out)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_arm *arm = document_candidate(&d->cases[i]);
        const struct document_verify *v = arm && arm->has_verify ? &arm->verify : NULL;
        if (!v || (v->values <= 0 && v->shapes <= 0))
            continue;
        const int64_t counts[] = {v->checks,  v->shapes, v->layouts, v->launches,
                                  v->skipped, v->values, v->pairs,   v->pairs_of};
        buf_puts(out, out->len == 1 ? "[\"" : ",[\"");
        json_escape(d->cases[i].op, out);
        buf_putc(out, '"');
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            int64_t n = counts[k] < MAX_COUNT ? counts[k] : MAX_COUNT;
            buf_printf(out, ",%lld", (long long)(n > 0 ? n : 0)); /* -1 is not known */
        }
        buf_putc(out, ']');
    }
    buf_putc(out, ']');
}

enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err)
{
    /* A machine is its GPU, since a runner in a container may have a new name each time; a CPU is
     * its host. */
    const char *gpu = d->device.uuid ? d->device.uuid : "";
    const char *at = d->who ? strrchr(d->who, '@') : NULL, *host = at ? at + 1 : "";
    int64_t revision_id = 0;
    RELEASED_BY(buf_release) struct buf covered = buf_of(STORE_MAX_DOCUMENT);
    RELEASED_BY(buf_release) struct buf calibration = buf_of(STORE_MAX_DOCUMENT);
    TRY(place(s, d, &revision_id, place_ms, err));
    write_covered(d, &covered);
    struct document rest = *d;
    rest.n_cases = 0;
    if (d->has_calibration)
        document_write(&rest, &calibration);
    if (covered.failed || calibration.failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    TRY(store_write(
        s, store_script("put_run.sql"),
        CELLS(cell_text(d->uuid), cell_integer(d->time_ms), cell_id(revision_id),
              cell_text(d->git.branch), cell_text(d->git.subject),
              cell_text(d->git.author ? d->git.author : ""), cell_integer(d->git.dirty),
              cell_text(d->suite), cell_text(d->device.model), cell_text(d->device.name),
              cell_text(host), cell_text(gpu), cell_text(gpu[0] != '\0' ? gpu : host),
              cell_text(d->contract), cell_text(d->epoch ? d->epoch : ""),
              cell_text(verdict_name((enum verdict)d->verdict)), cell_integer(d->exit_code),
              cell_integer((int64_t)d->n_cases), cell_real(d->control_drift),
              cell_integer(*place_ms), cell_text(d->git.change ? d->git.change : ""),
              cell_text(d->git.job ? d->git.job : ""), cell_text(covered.data),
              cell_text(calibration.len > 0 ? calibration.data : NULL)),
        err));
    *run_id = sqlite3_last_insert_rowid(s->db);
    return GATE_OK;
}
