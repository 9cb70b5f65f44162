/*
 * store_put_cases.c: the cases of a run, in the order of the tables; see store_put.h.
 *
 * A run of 5,000 series writes to as many pages of `point` and to some hundred of the tables that
 * go by track. In the document's order, which is by name, each of these would be read, and written
 * to the log, many times over, because SQLite's cache holds 500 pages; in the order of the tracks
 * it is once. What was held against which best is written in the document's order, for that is the
 * order of the log of bests.
 */
#include "store_put.h"

#include <stdlib.h>

struct placed {
    const struct run_case *row;
    struct put_track track;
};

/* Tells of which case an error is, and refuses what the tables could not tell apart. */
static enum gate_status name_case(const struct put *p, const struct run_case *c,
                                  enum gate_status status)
{
    if (status == GATE_OK)
        return status;
    if (sqlite3_extended_errcode(p->store->db) == SQLITE_CONSTRAINT_PRIMARYKEY)
        return gate_fail(p->err, GATE_IO, "run %s has the case '%s' twice", p->uuid, c->id);
    gate_fail_context(p->err, "run %s, case '%s'", p->uuid, c->id);
    return status;
}

static int compare_tracks(const void *a, const void *b)
{
    const struct placed *x = *(const struct placed *const *)a;
    const struct placed *y = *(const struct placed *const *)b;
    return (x->track.id > y->track.id) - (x->track.id < y->track.id);
}

static enum gate_status put_placed(const struct put *p, struct placed *cases,
                                   struct placed **by_track, size_t n)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < n && status == GATE_OK; i++) {
        by_track[i] = &cases[i];
        status = name_case(p, cases[i].row, put_case_track(p, cases[i].row, &cases[i].track));
    }
    if (status == GATE_OK)
        qsort(by_track, n, sizeof(struct placed *), compare_tracks);
    for (size_t i = 0; i < n && status == GATE_OK; i++)
        status = name_case(p, by_track[i]->row, put_case(p, by_track[i]->row, &by_track[i]->track));
    for (size_t i = 0; i < n && status == GATE_OK; i++) {
        if (cases[i].track.newest)
            status = name_case(p, cases[i].row, put_best(p, cases[i].row, cases[i].track.id));
    }
    return status;
}

enum gate_status put_cases(const struct put *p)
{
    size_t n = 0, room = p->rows->n + 1;
    struct placed *cases = calloc(room, sizeof(*cases));
    struct placed **by_track = calloc(room, sizeof(struct placed *));
    enum gate_status status = GATE_OK;
    if (cases && by_track) {
        for (const struct run_case *c = p->rows->first; c; c = c->next)
            cases[n++].row = c;
        status = put_placed(p, cases, by_track, n);
    } else {
        status = gate_fail(p->err, GATE_INTERNAL, "out of memory");
    }
    free(cases);
    free(by_track);
    return status;
}
