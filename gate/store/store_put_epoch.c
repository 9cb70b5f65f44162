/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_epoch.c: from when on a device model had which epoch; see store_put.h.
 *
 * A row of `epoch` is a border: a run whose epoch is not that of the run before it in time. Runs
 * may come in any order; one in the middle of a stretch cuts it in two.
 */
#include "gate/store/store_put.h"

#include <stdio.h>
#include <string.h>

struct border {
    int64_t from_ms;  /* -1: there is none */
    char epoch[1604]; /* as long as the schema lets it be, in bytes */
};

static bool border_row(struct query *q, void *call)
{
    struct border *b = call;
    b->from_ms = column_int(q, 0);
    snprintf(b->epoch, sizeof b->epoch, "%s", column_text(q, 1));
    return true;
}

static enum gate_status find_border(const struct put *p, enum store_sql id, int64_t time_ms,
                                    struct border *out)
{
    *out = (struct border){.from_ms = -1};
    struct query q = query_begin(p->store, id);
    bind_int(&q, p->device_id);
    bind_int(&q, time_ms);
    return store_each_row(p->store, &q, border_row, out, p->err);
}

static enum gate_status put_border(const struct put *p, int64_t from_ms, const char *epoch)
{
    struct query q = query_begin(p->store, SQL_PUT_EPOCH);
    bind_int(&q, p->device_id);
    bind_int(&q, from_ms);
    bind_text(&q, epoch);
    return store_finish(p->store, &q, p->err);
}

static enum gate_status drop_border(const struct put *p, int64_t from_ms)
{
    struct query q = query_begin(p->store, SQL_DROP_EPOCH);
    bind_int(&q, p->device_id);
    bind_int(&q, from_ms);
    return store_finish(p->store, &q, p->err);
}

enum gate_status put_epoch(const struct put *p)
{
    struct border before, next;
    if (p->epoch[0] == '\0')
        return GATE_OK;
    enum gate_status status = find_border(p, SQL_EPOCH_BEFORE, p->document->time_ms, &before);
    /* Of two runs at the same instant the first decides. */
    if (status || !strcmp(before.epoch, p->epoch) || before.from_ms == p->document->time_ms)
        return status;
    status = put_border(p, p->document->time_ms, p->epoch);
    if (!status)
        status = find_border(p, SQL_NEXT_RUN, p->document->time_ms, &next);
    if (status || next.from_ms < 0)
        return status;
    if (!strcmp(next.epoch, p->epoch))
        return drop_border(p, next.from_ms);
    return put_border(p, next.from_ms, next.epoch);
}
