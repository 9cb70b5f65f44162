/* SPDX-License-Identifier: Apache-2.0 */
/* store_place.c: see store_put_run.h, and places.sql. */
#include "gate/store/store_put_run.h"

#include <stdlib.h>
#include <string.h>

#include "gate/store/store_private.h"

/* A commit that has a new place. */
struct moved {
    int64_t revision_id, place_ms;
};

/* The commit of a run. It is placed again where this tells more of it than was known. */
static enum gate_status note_measured(struct store *s, const struct document *d, int64_t *id,
                                      struct gate_error *err)
{
    struct query q = query_begin(
        s, "INSERT INTO revision (commit_id, parent, merge_base, first_ms, place_ms) "
           "VALUES (?1, ?2, ?3, ?4, -1) ON CONFLICT (commit_id) DO UPDATE SET"
           " place_ms = iif((parent = '' AND excluded.parent <> '')"
           "  OR (time_ms IS NULL AND excluded.first_ms < coalesce(first_ms, excluded.first_ms + 1)"
           "  ), -1, place_ms),"
           " parent = iif(parent = '', excluded.parent, parent),"
           " merge_base = iif(merge_base = '', excluded.merge_base, merge_base),"
           " first_ms = min(coalesce(first_ms, excluded.first_ms), excluded.first_ms) "
           "RETURNING id");
    bind_text(&q, d->git.commit);
    bind_text(&q, d->git.parent);
    bind_text(&q, d->git.merge_base ? d->git.merge_base : "");
    bind_int(&q, d->time_ms);
    return store_finish_id(s, &q, id, err);
}

static enum gate_status note_first_parents(struct store *s, const struct document_git *git,
                                           struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < git->n_first_parents && !status; i++) {
        const struct document_commit *c = &git->first_parents[i];
        struct query q = query_begin(
            s, "INSERT INTO revision (commit_id, parent, merge_base, time_ms, place_ms) "
               "VALUES (?1, ?2, '', ?3, -1) ON CONFLICT (commit_id) DO UPDATE SET"
               " parent = iif(parent = '', excluded.parent, parent),"
               " time_ms = coalesce(time_ms, excluded.time_ms), place_ms = -1 "
               "WHERE time_ms IS NULL OR (parent = '' AND excluded.parent <> '')");
        bind_text(&q, c->commit);
        bind_text(&q, i + 1 < git->n_first_parents ? c[1].commit : i == 0 ? git->parent : "");
        bind_int(&q, c->time_ms);
        status = store_finish(s, &q, err);
    }
    return status;
}

/* The runs of a commit go with it. */
static enum gate_status move_runs(struct store *s, const struct moved *m, struct gate_error *err)
{
    static const char *const sql[] = {
        "UPDATE result SET place_ms = ?2 WHERE run_id IN (SELECT id FROM run WHERE"
        " revision_id = ?1 AND place_ms <> ?2)",
        "UPDATE run SET place_ms = ?2 WHERE revision_id = ?1 AND place_ms <> ?2",
    };
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        struct query q = query_begin(s, sql[i]);
        bind_int(&q, m->revision_id);
        bind_int(&q, m->place_ms);
        status = store_finish(s, &q, err);
    }
    return status;
}

static enum gate_status move_commits(struct store *s, struct gate_error *err)
{
    struct moved *list = NULL;
    size_t n = 0, room = 0;
    bool no_memory = false;
    struct query q = query_begin(s, store_script("places.sql"));
    while (!no_memory && query_row(&q)) {
        if (n == room) {
            struct moved *more = realloc(list, (room = 2 * room + 16) * sizeof *more);
            no_memory = !more;
            list = more ? more : list;
        }
        if (!no_memory)
            list[n++] = (struct moved){column_int(&q, 0), column_int(&q, 1)};
    }
    enum gate_status status = query_done(s, &q, err);
    if (!status && no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < n && !status; i++)
        status = move_runs(s, &list[i], err);
    free(list);
    return status;
}

enum gate_status store_place(struct store *s, const struct document *document, int64_t *revision_id,
                             int64_t *place_ms, struct gate_error *err)
{
    *revision_id = 0;
    *place_ms = document->time_ms;
    if (document->git.commit[0] == '\0')
        return GATE_OK;
    enum gate_status status = note_measured(s, document, revision_id, err);
    if (!status)
        status = note_first_parents(s, &document->git, err);
    if (!status)
        status = move_commits(s, err);
    if (status)
        return status;
    struct query q = query_begin(s, "SELECT place_ms FROM revision WHERE id = ?1");
    bind_int(&q, *revision_id);
    return store_find_id(s, &q, place_ms, err);
}
