/* SPDX-License-Identifier: Apache-2.0 */
/* store_outbox.c: see store_outbox.h. */
#include "gate/store/store_outbox.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/store/store_private.h"

static const char *const kinds[OUTBOX_KINDS] = {"run", "library"};

struct outbox_write {
    struct store *store;
    struct query query;
};

static enum gate_status write_entry(void *context, struct gate_error *err)
{
    struct outbox_write *w = context;
    return store_finish(w->store, &w->query, err);
}

enum gate_status store_outbox_put(struct store *s, const char *server, enum store_outbox_kind kind,
                                  const char *id, int64_t time_ms, struct gate_error *err)
{
    struct outbox_write w = {
        s, query_begin(s, "INSERT INTO outbox (server, kind, id, time_ms, state, reason) "
                          "VALUES (?1, ?2, ?3, ?4, 'waiting', '') "
                          "ON CONFLICT DO UPDATE SET state = 'waiting', reason = ''")};
    bind_text(&w.query, server);
    bind_text(&w.query, kinds[kind]);
    bind_text(&w.query, id);
    bind_int(&w.query, time_ms);
    return store_atomically(s, write_entry, &w, err);
}

enum gate_status store_outbox_settle(struct store *s, const char *server,
                                     const struct store_outbox_entry *entry, const char *reason,
                                     struct gate_error *err)
{
    struct outbox_write w = {s, query_begin(s, "UPDATE outbox SET state = ?4, reason = ?5 "
                                               "WHERE server = ?1 AND kind = ?2 AND id = ?3")};
    bind_text(&w.query, server);
    bind_text(&w.query, kinds[entry->kind]);
    bind_text(&w.query, entry->id);
    bind_text(&w.query, reason ? "refused" : "sent");
    bind_text(&w.query, reason ? reason : "");
    return store_atomically(s, write_entry, &w, err);
}

struct outbox_rows {
    struct store_outbox_entry *list;
    size_t n, room;
};

static bool add_entry(struct query *q, void *call)
{
    struct outbox_rows *rows = call;
    if (rows->n == rows->room) {
        rows->room = 2 * rows->room + 16;
        rows->list = xrealloc(rows->list, rows->room, sizeof *rows->list);
    }
    struct store_outbox_entry *entry = &rows->list[rows->n++];
    entry->kind = strcmp(column_text(q, 0), kinds[OUTBOX_RUN]) ? OUTBOX_LIBRARY : OUTBOX_RUN;
    snprintf(entry->id, sizeof entry->id, "%s", column_text(q, 1));
    return true;
}

enum gate_status store_outbox_read(struct store *s, const char *server, enum store_outbox_list list,
                                   struct store_outbox_entry **out, size_t *n,
                                   struct gate_error *err)
{
    struct outbox_rows rows = {0};
    struct query q = list == OUTBOX_WAITING
                         ? query_begin(s, "SELECT kind, id FROM outbox "
                                          "WHERE server = ?1 AND state = 'waiting' "
                                          "ORDER BY time_ms, kind DESC, id")
                         : query_begin(s, "SELECT 'run', r.uuid FROM run r WHERE NOT EXISTS"
                                          " (SELECT 1 FROM outbox o WHERE o.server = ?1"
                                          "  AND o.kind = 'run' AND o.id = r.uuid) "
                                          "ORDER BY r.time_ms, r.uuid");
    bind_text(&q, server);
    enum gate_status status = store_each_row(s, &q, add_entry, &rows, err);
    *out = rows.list;
    *n = rows.n;
    return status;
}
