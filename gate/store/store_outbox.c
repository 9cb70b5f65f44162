/* SPDX-License-Identifier: Apache-2.0 */
/* store_outbox.c: see store_outbox.h. */
#include "gate/store/store_outbox.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/store/store_private.h"
#include "gate/store/store_rows.h"

static const char *const kinds[OUTBOX_KINDS] = {"run", "library"};

enum gate_status store_outbox_put(struct store *s, const char *server, enum store_outbox_kind kind,
                                  const char *id, int64_t time_ms, struct gate_error *err)
{
    const struct store_cell values[] = {
        store_text("server", server),
        store_text("kind", kinds[kind]),
        store_text("id", id),
        store_integer("time", time_ms),
    };
    return store_change(s,
                        "INSERT INTO outbox (server, kind, id, time_ms, state, reason) "
                        "VALUES (:server, :kind, :id, :time, 'waiting', '') "
                        "ON CONFLICT DO UPDATE SET state = 'waiting', reason = ''",
                        values, 4, NULL, err);
}

enum gate_status store_outbox_settle(struct store *s, const char *server,
                                     const struct store_outbox_entry *entry, const char *reason,
                                     struct gate_error *err)
{
    const struct store_cell values[] = {
        store_text("server", server),
        store_text("kind", kinds[entry->kind]),
        store_text("id", entry->id),
        store_text("reason", reason),
    };
    return store_change(s,
                        "UPDATE outbox SET state = iif(:reason IS NULL, 'sent', 'refused'),"
                        " reason = coalesce(:reason, '') "
                        "WHERE server = :server AND kind = :kind AND id = :id",
                        values, 4, NULL, err);
}

enum gate_status store_outbox_read(struct store *s, const char *server, enum store_outbox_list list,
                                   struct store_outbox_entry **out, size_t *n,
                                   struct gate_error *err)
{
    struct store_outbox_entry *entries = NULL;
    size_t room = 0;
    *n = 0;
    struct query q = list == OUTBOX_WAITING
                         ? query_begin(s, "SELECT kind, id FROM outbox "
                                          "WHERE server = ?1 AND state = 'waiting' "
                                          "ORDER BY time_ms, kind DESC, id")
                         : query_begin(s, "SELECT 'run', r.uuid FROM run r WHERE NOT EXISTS"
                                          " (SELECT 1 FROM outbox o WHERE o.server = ?1"
                                          "  AND o.kind = 'run' AND o.id = r.uuid) "
                                          "ORDER BY r.time_ms, r.uuid");
    bind_text(&q, server);
    while (query_row(&q)) {
        if (*n == room) {
            room = 2 * room + 16;
            entries = xrealloc(entries, room, sizeof *entries);
        }
        struct store_outbox_entry *entry = &entries[(*n)++];
        entry->kind = strcmp(column_text(&q, 0), kinds[OUTBOX_RUN]) ? OUTBOX_LIBRARY : OUTBOX_RUN;
        snprintf(entry->id, sizeof entry->id, "%s", column_text(&q, 1));
    }
    *out = entries;
    return query_done(s, &q, err);
}
